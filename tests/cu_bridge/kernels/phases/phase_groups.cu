// Kernels that wait by tiles of cooperative groups: cucc makes phases of them (fits_…), or must keep the threads' stacks
// (keeps_…).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "../case.h"

namespace cg = cooperative_groups;

using namespace two_blocks;

#define RUN(...) [](int* in, int* out) { __VA_ARGS__<<<2, kThreads>>>(in, out); }

namespace {
// What the threads first to last of a block read, added up.
int sum_of(int b, int first, int last) {
  int sum = 0;
  for (int t = first; t <= last; ++t) sum += of(b, t);
  return sum;
}
int most_of(int b, int first, int last) {
  int most = of(b, first);
  for (int t = first; t <= last; ++t) most = of(b, t) > most ? of(b, t) : most;
  return most;
}
}  // namespace

__global__ void fits_sum_by_tiles(const int* in, int* out) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  __shared__ int s[32];
  const unsigned rank = block.thread_rank();
  int v = in[blockIdx.x * block.size() + rank];
  for (int o = tile.size() / 2; o > 0; o /= 2) v += tile.shfl_down(v, o);
  if (tile.thread_rank() == 0) s[tile.meta_group_rank()] = v;
  block.sync();
  if (tile.meta_group_rank() == 0) {
    int w = tile.thread_rank() < tile.meta_group_size() ? s[tile.thread_rank()] : 0;
    w = cg::reduce(tile, w, cg::plus<int>());
    if (rank == 0) s[0] = w;
  }
  block.sync();
  out[blockIdx.x * block.size() + rank] = s[0];
}
CASE(a_sum_of_a_block_by_tiles) {
  check(RUN(fits_sum_by_tiles), [](int b, int) { return sum_of(b, 0, kThreads - 1); });
}

template <class T, class Group>
__device__ T best(const Group& group, T v) {
  return cg::reduce(group, v, cg::greater<T>());
}
__device__ int sum_of_eight(cg::thread_block_tile<8> eight, int v) {
  for (int i = 4; i > 0; i >>= 1) v += eight.shfl_xor(v, i);
  eight.sync();
  return v;
}
__global__ void fits_tiles_in_functions(const int* in, int* out) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  const auto eight = cg::tiled_partition<8>(cg::this_thread_block());
  const int v = in[blockIdx.x * kThreads + threadIdx.x];
  const int most = best(warp, v);
  int sum = sum_of_eight(eight, v);
  auto least = cg::reduce(eight, v, cg::less<int>());
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = most * 1000000 + sum * 1000 + least;
}
CASE(tiles_that_functions_are_given) {
  check(RUN(fits_tiles_in_functions), [](int b, int t) {
    int least = of(b, t / 8 * 8);
    for (int i = 0; i < 8; ++i) least = of(b, t / 8 * 8 + i) < least ? of(b, t / 8 * 8 + i) : least;
    return most_of(b, t / 32 * 32, t / 32 * 32 + 31) * 1000000 + sum_of(b, t / 8 * 8, t / 8 * 8 + 7) * 1000 + least;
  });
}

// A shuffle of a tile has the type of its value: 200 + 100 is 44 in a char.
__global__ void fits_votes_and_small_types(const int* in, int* out) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const auto half = cg::tiled_partition<16>(cg::this_thread_block());
  const int v = in[blockIdx.x * kThreads + threadIdx.x];
  unsigned char small = 200 + threadIdx.x % 4;
  small = cg::reduce(half, small, cg::plus<unsigned char>());
  const unsigned many = tile.ballot(v > 20);
  const int some = tile.any(v == 36);
  const int all = tile.all(v < 37);
  const int first = half.shfl(v, 17);  // of sixteen: the second
  const int up = half.shfl_up(v, 3);
  out[blockIdx.x * kThreads + threadIdx.x] = small + 256 * (__popc(many) + 64 * (some + 2 * all)) + first + up;
}
CASE(votes_of_tiles_and_values_of_small_types) {
  check(RUN(fits_votes_and_small_types), [](int b, int t) {
    int many = 0, some = 0;
    for (int i = t / 32 * 32; i < t / 32 * 32 + 32; ++i) many += of(b, i) > 20, some |= of(b, i) == 36;
    const int small = (16 * 200 + 4 * (0 + 1 + 2 + 3)) % 256;
    const int up = t % 16 < 3 ? of(b, t) : of(b, t - 3);
    return small + 256 * (many + 64 * (some + 2)) + of(b, t / 16 * 16 + 1) + up;
  });
}

// ---- What may not become phases -------------------------------------------------------------------------------------

__global__ void keeps_a_hidden_tile(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int v = in[blockIdx.x * kThreads + threadIdx.x];
  {
    int tile = 3;
    v += tile;
  }
  v += tile.shfl_xor(v, 1);
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(a_variable_that_hides_a_tile) {
  check(RUN(keeps_a_hidden_tile), [](int b, int t) { return of(b, t) + of(b, t ^ 1) + 6; });
}

__global__ void keeps_a_tile_in_a_branch(const int* in, int* out) {
  auto half = cg::tiled_partition<16>(cg::this_thread_block());
  int v = in[blockIdx.x * kThreads + threadIdx.x];
  if (threadIdx.x % 32 < 16) v += half.shfl_xor(v, 1);
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(a_tile_whose_warp_divides) {
  check(RUN(keeps_a_tile_in_a_branch), [](int b, int t) { return of(b, t) + (t % 32 < 16 ? of(b, t ^ 1) : 0); });
}

// Other programs' tiles and operations under the same names.
namespace own {
struct Tile {
  int by;
  __device__ int shfl_down(int v, int) const { return v * by; }
  __device__ int shfl_down(int v) const { return __shfl_down_sync(0xffffffffu, v, 1); }
};
template <int kSize>
__device__ Tile tiled_partition(cg::thread_block) {
  return {kSize};
}
template <class T>
struct plus {
  __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};
}  // namespace own
__global__ void keeps_another_tile(const int* in, int* out) {
  auto tile = own::tiled_partition<32>(cg::this_thread_block());
  const int v = in[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = tile.shfl_down(v, 1);
}
CASE(a_tile_of_the_programs_own) {
  check(RUN(keeps_another_tile), [](int b, int t) { return 32 * of(b, t); });
}
__global__ void keeps_another_operation(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int v = in[blockIdx.x * kThreads + threadIdx.x];
  out[blockIdx.x * kThreads + threadIdx.x] = cg::reduce(tile, v, own::plus<int>());
}
CASE(an_operation_of_the_programs_own) {
  check(RUN(keeps_another_operation), [](int b, int t) { return most_of(b, t / 32 * 32, t / 32 * 32 + 31); });
}
