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
  void* arguments[] = {&cells};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&grid), dim3(4), dim3(32), arguments, 0, 0) ==
        cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 128; ++i) CHECK(cells[i] == (i + 124) % 128);
  return summary();
}
