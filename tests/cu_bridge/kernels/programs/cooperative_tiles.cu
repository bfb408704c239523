// Tiles, coalesced threads, partitions, reduce and scan.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "../check.h"

namespace cg = cooperative_groups;

__global__ void kernel() {
  const cg::thread_block block = cg::this_thread_block();
  const int i = block.thread_rank();
  EXPECT(block.size() == 96 && i == static_cast<int>(threadIdx.y * 16 + threadIdx.x));
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  EXPECT(warp.meta_group_rank() == static_cast<unsigned>(i / 32) && warp.meta_group_size() == 3);
  EXPECT(warp.shfl(i, 5) == i / 32 * 32 + 5);
  EXPECT(cg::reduce(warp, i, cg::plus<int>()) == 32 * (i / 32 * 32) + 496);
  EXPECT(cg::reduce(warp, static_cast<double>(i), cg::greater<double>()) == i / 32 * 32 + 31);
  const auto four = cg::tiled_partition<4>(warp);
  EXPECT(four.thread_rank() == static_cast<unsigned>(i % 4) && four.meta_group_size() == 8);
  EXPECT(four.shfl_xor(i, 1) == (i ^ 1) && four.shfl_down(i, 3) == (i % 4 == 0 ? i + 3 : i));
  EXPECT(four.ballot(i % 2) == 0xa && four.any(i % 4 == 3) && !four.all(i % 4 == 3));
  EXPECT(cg::inclusive_scan(four, 1) == i % 4 + 1 && cg::exclusive_scan(warp, 2) == i % 32 * 2);
  if (i % 3 == 0) {
    const cg::coalesced_group some = cg::coalesced_threads();
    EXPECT(some.shfl(i, 0) / 32 == i / 32 && some.num_threads() >= 10);
    EXPECT(cg::reduce(some, 1, cg::plus<int>()) == static_cast<int>(some.num_threads()));
    const int rank = some.thread_rank();
    EXPECT(some.shfl_up(rank, 1) == (rank > 0 ? rank - 1 : 0));
  }
  const auto parts = cg::labeled_partition(warp, i % 5);
  EXPECT(cg::reduce(parts, i % 5, cg::plus<int>()) == i % 5 * static_cast<int>(parts.num_threads()));
  const auto halves = cg::binary_partition(warp, i % 32 < 10);
  EXPECT(halves.num_threads() == (i % 32 < 10 ? 10u : 22u));
  block.sync();
}

struct Three {
  int part[3];
};

// Tiles of several warps. One of them meets more often than the others, so no barrier of the block can be behind it.
__global__ void wide(int* seen) {
  __shared__ cg::block_tile_memory<256> memory;
  const cg::thread_block block = cg::this_thread_block(memory);
  const int i = block.thread_rank(), first = i / 64 * 64;
  const auto tile = cg::tiled_partition<64>(block);
  EXPECT(tile.num_threads() == 64 && tile.thread_rank() == static_cast<unsigned>(i % 64));
  EXPECT(tile.meta_group_rank() == static_cast<unsigned>(i / 64) && tile.meta_group_size() == 4);
  for (int round = 0; round < 3 + i / 64; ++round) {
    seen[i] = i + round;
    tile.sync();
    EXPECT(seen[first + (i + 37) % 64] == first + (i + 37) % 64 + round);
    tile.sync();
  }
  EXPECT(tile.shfl(i, 40) == first + 40 && tile.shfl(Three{{i, 2 * i, 3 * i}}, 33).part[2] == 3 * (first + 33));
  EXPECT(tile.any(i == 70) == (first == 64) && tile.all(i >= 64) == (first >= 64));
  EXPECT(cg::reduce(tile, i, cg::plus<int>()) == 64 * first + 2016);
  EXPECT(cg::inclusive_scan(tile, 2LL) == 2LL * (i % 64 + 1));
  const auto warp = cg::tiled_partition<32>(tile);
  EXPECT(warp.meta_group_rank() == static_cast<unsigned>(i % 64 / 32) && warp.meta_group_size() == 2);
  const auto half = cg::tiled_partition<128>(block);
  EXPECT(cg::reduce(half, 1, cg::plus<int>()) == 128 && half.meta_group_size() == 2);
  const auto part = cg::tiled_partition<64>(half);
  EXPECT(part.meta_group_size() == 2 && part.shfl(i, 0) == first);
}

__global__ void grid(int* cells) {
  const cg::grid_group all = cg::this_grid();
  const unsigned n = all.size(), i = all.thread_rank();
  for (int round = 0; round < 4; ++round) {
    const int left = cells[(i + n - 1) % n];
    all.sync();
    cells[i] = left;
    all.sync();
  }
}

int main() {
  kernel<<<2, dim3(16, 6)>>>();
  int* cells;
  cudaMallocManaged(&cells, 128 * sizeof *cells);
  for (int i = 0; i < 128; ++i) cells[i] = i;
  int* seen;
  cudaMallocManaged(&seen, 256 * sizeof *seen);
  wide<<<1, 256>>>(seen);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  void* arguments[] = {&cells};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&grid), dim3(4), dim3(32), arguments, 0, 0) ==
        cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 128; ++i) CHECK(cells[i] == (i + 124) % 128);
  return summary();
}
