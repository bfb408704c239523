// Arrays that threads keep over waits, and conditions that read memory: fits_… and keeps_… as in phases.cu.
#include <cooperative_groups.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "../case.h"

namespace cg = cooperative_groups;

const int kThreads = 96, kBlocks = 3;

template <class Kernel, class Expected>
void check(Kernel kernel, Expected expected) {
  Array<int> in = Array<int>::of(kBlocks * kThreads, [](size_t i) { return int(i * 7 % 31); });
  Array<int> out(kBlocks * kThreads, -1);
  kernel<<<kBlocks, kThreads>>>(in.data(), out.data());
  DONE();
  const auto& v = out.get();
  for (int i = 0; i < kBlocks * kThreads; ++i) EXPECT(v[i] == expected(i / kThreads, i % kThreads));
}
static int value(int block, int thread) { return (block * kThreads + thread % kThreads) * 7 % 31; }

template <int Rows>
__global__ void fits_sums_in_a_tile(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  int sum[Rows][(Rows > 2 ? 2 : 4)] = {}, more[Rows > 1 ? Rows : 1];
  int last = 0;
  for (int k = 0; k < 4; ++k) {
    s[t] = in[first + t] + k;
    __syncthreads();
    for (int row = 0; row < Rows; ++row) {
      sum[row][0] += s[(t + row) % kThreads];
      sum[row][1] = more[row] = sum[row][0] * 2;
    }
    __syncthreads();
    last = more[Rows - 1];
  }
  out[first + t] = sum[0][1] + sum[Rows - 1][0] + last;
}
CASE(sums_in_a_tile_that_live_across_waits) {
  check(fits_sums_in_a_tile<3>, [](int b, int t) {
    return (4 * value(b, t) + 6) * 2 + (4 * value(b, t + 2) + 6) * 3;
  });
}

__global__ void fits_constant_table(const int* in, int* out) {
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x, by = blockDim.x;
  const int weights[] = {3, 1, 2 + by};
  constexpr int steps[2][2] = {{1, 2}, {3, 4}};
  __shared__ int s[kThreads];
  s[t] = in[first + t] * weights[t % 3];
  __syncthreads();
  out[first + t] = s[(t + steps[1][0]) % kThreads] + weights[2];
}
CASE(a_table_of_constants_is_one_for_all_threads) {
  const int weights[] = {3, 1, 98};
  check(fits_constant_table, [&](int b, int t) { return value(b, t + 3) * weights[(t + 3) % kThreads % 3] + 98; });
}

__global__ void fits_pointer_into_array(const int* in, int* out) {
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  int own[4] = {t, in[first + t], 0, 0};
  int* second = own + 1;
  __syncthreads();
  *second += 5;
  second[1] = 7;
  __syncthreads();
  const int2 pair = *reinterpret_cast<const int2*>(&own[0]);
  out[first + t] = pair.x + pair.y * 2 + own[2];
}
CASE(a_pointer_into_an_array_that_is_kept) {
  check(fits_pointer_into_array, [](int b, int t) { return t + (value(b, t) + 5) * 2 + 7; });
}

__global__ void keeps_array_of_two_scopes(const int* in, int* out) {
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  int* from = nullptr;
  int own[2] = {in[first + t], t};
  {
    int own[2] = {1, 2};
    from = &own[0];
    out[first + t] = from[1];
  }
  __syncthreads();
  from = &own[1];
  __syncthreads();
  out[first + t] += own[0] + *from;
}
CASE(arrays_of_one_name_in_two_scopes) {
  check(keeps_array_of_two_scopes, [](int b, int t) { return value(b, t) + t + 2; });
}

__global__ void fits_rounds_in_memory(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x, rounds = in[blockIdx.x + 1];
  s[t] = in[first + t];
  for (int k = 0; k < rounds; ++k) {
    __syncthreads();
    const int next = s[(t + 1) % kThreads];
    __syncthreads();
    s[t] = next;
  }
  if (in[first] > 1000) __syncthreads();
  out[first + t] = s[t];
}
CASE(rounds_that_constants_in_memory_say) {
  check(fits_rounds_in_memory, [](int b, int t) { return value(b, t + (b + 1) * 7); });
}

__global__ void fits_return_by_memory(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  out[first + t] = -3;
  if (in[blockIdx.x] == 7) return;
  s[t] = in[first + t];
  if (__syncthreads_and(s[t] < 0)) return;
  out[first + t] = s[kThreads - 1 - t];
}
CASE(a_return_that_memory_decides) {
  check(fits_return_by_memory, [](int b, int t) { return b == 1 ? -3 : value(b, kThreads - 1 - t); });
}

__global__ void fits_flag_in_shared_memory(const int* in, int* out) {
  __shared__ int s[kThreads], left;
  __shared__ bool last;
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  if (t == 0) left = 3;
  s[t] = in[first + t];
  __syncthreads();
  while (left > 0) {
    const int next = s[(t + 5) % kThreads];
    __syncthreads();
    s[t] = next;
    if (t == 40) --left;
    last = left == 0 && s[0] >= 0;
    __syncthreads();
  }
  int v = -1;
  if (last) {
    __syncthreads();
    v = s[t] + left;
  }
  out[first + t] = v;
}
CASE(a_flag_in_shared_memory_that_all_threads_read) {
  check(fits_flag_in_shared_memory, [](int b, int t) { return value(b, t + 15); });
}

// The first thread stores what the others are asked: all of them have stored before any is asked.
__global__ void fits_store_and_question(const int* in, int* out) {
  __shared__ int rounds[2];
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  int v = in[first + t];
  if (t == kThreads - 1) rounds[1] = 2;
  __syncthreads();
  do {
    v += 10;
    __syncthreads();
    if (t == 0) rounds[1]--;
    __syncthreads();
  } while (rounds[1] > 0);
  out[first + t] = v;
}
CASE(a_question_behind_a_store) {
  check(fits_store_and_question, [](int b, int t) { return value(b, t) + 20; });
}

__global__ void keeps_memory_of_each_thread(const int* in, int* out) {
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  int v = in[first + t];
  if (in[first + t % 32] > 1000) __syncthreads();
  out[first + t] = v;
}
CASE(a_condition_that_each_thread_reads_for_itself) {
  check(keeps_memory_of_each_thread, [](int b, int t) { return value(b, t); });
}

template <class T>
__device__ void halve(T& a, T& b, const T& by) {
  a = (a + T(by)) / T(2);
  b += T(1);
}
template <class T>
__device__ T folded(T v, T count) {
  for (int o = 16; o > 0; o >>= 1) {
    auto other = __shfl_xor_sync(0xffffffffu, v, o);
    auto rounds = __shfl_xor_sync(0xffffffffu, count, o);
    halve(v, count, other);
    count = max(count, rounds);
  }
  return v * 10 + count;
}
__global__ void fits_deduced_from_shuffles(const int* in, int* out) {
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  typedef int number;
  const bool same = std::is_same<number, int>::value, other = std::is_same<number, long>::value;
  int v = in[first + t] * 32, count = same && !other ? 0 : 100;
  v = folded(v, count);
  out[first + t] = v;
}
CASE(variables_whose_types_a_shuffle_says) {
  check(fits_deduced_from_shuffles, [](int b, int t) {
    int v[32], w[32];
    for (int i = 0; i < 32; ++i) v[i] = value(b, t / 32 * 32 + i) * 32;
    for (int o = 16; o > 0; o >>= 1) {
      for (int i = 0; i < 32; ++i) w[i] = (v[i] + v[i ^ o]) / 2;
      for (int i = 0; i < 32; ++i) v[i] = w[i];
    }
    return v[t % 32] * 10 + 5;
  });
}

__global__ void fits_sync_of_a_tile(const int* in, int* out) {
  __shared__ int s[kThreads];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  s[t] = in[first + t];
  cg::sync(tile);
  for (int i = tile.size() / 2; i > 0; i >>= 1) {
    if (tile.thread_rank() < i) s[t] += s[t + i];
    cg::sync(tile);
  }
  cg::sync(block);
  out[first + t] = s[t / 32 * 32];
}
CASE(a_tile_that_is_synchronised_by_a_function) {
  check(fits_sync_of_a_tile, [](int b, int t) {
    int sum = 0;
    for (int i = 0; i < 32; ++i) sum += value(b, t / 32 * 32 + i);
    return sum;
  });
}

__device__ int folded_twice(int a) { return a * 2 + 1; }
__device__ int folded_twice(int a, int b) { return folded_twice(a) ^ folded_twice(folded_twice(b)); }
__global__ void fits_overload_that_calls_another(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  s[t] = folded_twice(in[first + t], t);
  __syncthreads();
  out[first + t] = s[kThreads - 1 - t];
}
CASE(a_function_that_calls_another_of_its_name) {
  check(fits_overload_that_calls_another, [](int b, int t) {
    const int other = kThreads - 1 - t, twice = other * 2 + 1;
    return (value(b, other) * 2 + 1) ^ (twice * 2 + 1);
  });
}

__global__ void fits_halves(const int* in, int* out) {
  __shared__ half2 s[kThreads];
  const int t = threadIdx.x, first = blockIdx.x * blockDim.x;
  half2 v = __floats2half2_rn(in[first + t], t);
  half by = __float2half_rn(0.5f);
  s[t] = __hmul2(v, __half2half2(by));
  __syncthreads();
  v = __hadd2(v, s[(t + 1) % kThreads]);
  __syncthreads();
  out[first + t] = int(__low2float(v) * 2) * 1000 + int(__high2float(v) * 2) + (__half2float(by) == 0.5f);
}
CASE(halves_that_live_across_a_wait) {
  check(fits_halves, [](int b, int t) {
    return (value(b, t) * 2 + value(b, t + 1)) * 1000 + t * 2 + (t + 1) % kThreads + 1;
  });
}

__global__ void fits_rows_of_warps(const int* in, int* out) {
  __shared__ int s[4];
  const int rank = threadIdx.y * blockDim.x + threadIdx.x, warp = rank / warpSize;
  int v = in[rank];
  if (warp == 1) v = __shfl_xor_sync(0xffffffffu, v, 1);
  if (rank % 32 == 3) s[warp] = v;
  __syncthreads();
  out[rank] = v + s[2];
}
CASE(warps_of_a_block_of_two_dimensions) {
  Array<int> in = Array<int>::of(96, [](size_t i) { return int(i * i % 37); });
  Array<int> out(96, -1);
  fits_rows_of_warps<<<1, dim3(32, 3)>>>(in.data(), out.data());
  DONE();
  const auto& v = out.get();
  for (int i = 0; i < 96; ++i) {
    const int from = i / 32 == 1 ? i ^ 1 : i;
    EXPECT(v[i] == from * from % 37 + 67 * 67 % 37);
  }
}
