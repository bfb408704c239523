// Kernels that call functions that wait: cucc takes these into phases (fits_…), or must keep the threads' stacks
// (keeps_…). phases.cu and phase_calls.cu have the rest.
#include <cooperative_groups.h>

#include "../case.h"

namespace cg = cooperative_groups;

using namespace two_blocks;

static int sum_of(int b, int from = 0, int to = kThreads) {
  int total = 0;
  for (int t = from; t < to; ++t) total += of(b, t);
  return total;
}
#define RUN(...) [](int* in, int* out) { __VA_ARGS__<<<2, kThreads>>>(in, out); }

// ---- Reductions as programs have them -------------------------------------------------------------------------------

__inline__ __device__ int warp_sum(int val) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}
__inline__ __device__ int block_sum(int val) {
  static __shared__ int shared[32];
  int lane = threadIdx.x % warpSize;
  int wid = threadIdx.x / warpSize;
  val = warp_sum(val);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
  if (wid == 0) val = warp_sum(val);
  return val;
}
__global__ void fits_block_sum(const int* in, int* out) {
  int sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  sum = block_sum(sum);
  out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x == 0 ? sum : 5;
}
CASE(a_sum_by_warps_and_by_the_first_warp) {
  check(RUN(fits_block_sum), [](int b, int t) { return t == 0 ? sum_of(b) : 5; });
}
CASE(a_sum_by_warps_of_blocks_with_rows) {
  auto in = Array<int>::of(128, [](size_t i) { return int(i); });
  // Rows of half a warp run on stacks.
  for (const dim3 shape : {dim3(64, 1), dim3(32, 2), dim3(16, 4)}) {
    Array<int> out(128, -1);
    fits_block_sum<<<1, shape>>>(in.data(), out.data());
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    if (shape.y == 1) EXPECT(out.get()[0] == 63 * 64 / 2);
  }
}

template <typename T, int kBlock>
__device__ T greatest(T v) {
  __shared__ T s[kBlock];
  const int tid = threadIdx.x;
  s[tid] = v;
  __syncthreads();
#pragma unroll
  for (int k = kBlock / 2; k > 0; k >>= 1) {
    if (tid < k) s[tid] = s[tid] > s[tid + k] ? s[tid] : s[tid + k];
    __syncthreads();
  }
  T r = s[0];
  __syncthreads();
  return r;
}
// Each instantiation has shared memory of its own, and each call of one has the same.
template <class T>
__global__ void fits_templates(const T* in, T* out) {
  const T own = in[blockIdx.x * blockDim.x + threadIdx.x];
  T m = greatest<T, kThreads>(own), n = greatest<T, kThreads>(-own);
  double half = greatest<double, kThreads>(own * 0.5);
  out[blockIdx.x * blockDim.x + threadIdx.x] = m * 100 - n + (half * 2 == m);
}
CASE(templates_with_arguments) {
  check(RUN(fits_templates<int>), [](int b, int) {
    int most = 0, least = 99;
    for (int t = 0; t < kThreads; ++t) {
      most = of(b, t) > most ? of(b, t) : most;
      least = of(b, t) < least ? of(b, t) : least;
    }
    return most * 100 + least + 1;
  });
}

struct Wide {
  int low, high;
  __host__ __device__ Wide(int value = 0) : low(value), high(7) {}
  __host__ __device__ bool operator>(const Wide& other) const { return low > other.low; }
  __host__ __device__ Wide operator-() const { return Wide(-low); }
  __host__ __device__ Wide operator-(const Wide& other) const { return Wide(low - other.low); }
  __host__ __device__ double operator*(double by) const { return low * by; }
  __host__ __device__ Wide operator*(int by) const { return Wide(low * by); }
  __host__ __device__ Wide operator+(bool by) const { return Wide(low + by); }
};
__host__ __device__ inline bool operator==(double a, const Wide& b) { return a == b.low; }
// A template's type may be a class: those are left to the stacks, when the program runs.
CASE(templates_of_classes) {
  auto in = Array<Wide>::of(kThreads, [](size_t i) { return Wide(int(i)); });
  Array<Wide> out(kThreads);
  fits_templates<Wide><<<1, kThreads>>>(in.data(), out.data());
  DONE();
  for (const Wide& one : out.get()) EXPECT(one.low == 63 * 100 + 1 && one.high == 7);
}

template <class T>
__device__ T added(T value, T more = T(3)) {
  for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(~0u, value, o);
  return value + more;
}
__global__ void fits_deduced(const int* in, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float half = in[i] * 0.5f;
  long wide = in[i];
  int total = added(in[i]) + added(half * 2) * 10;
  total += added(wide + 1, 1L << 33) >> 33 ? 5000 : 0;
  out[i] = total;
}
CASE(templates_whose_types_are_those_of_the_arguments) {
  check(RUN(fits_deduced), [](int b, int t) {
    const int sum = sum_of(b, t / 32 * 32, t / 32 * 32 + 32);
    return sum + 3 + (sum + 3) * 10 + 5000;
  });
}

// ---- Names ----------------------------------------------------------------------------------------------------------

const int weight = 3;
__device__ int scale = 2;
__device__ int swapped(int v, int t) {
  __shared__ int s[kThreads];
  int i = threadIdx.x;
  s[i] = v * weight;
  __syncthreads();
  {
    int i = t;
    v = s[i] * scale;
  }
  __syncthreads();
  return v;
}
// `weight`, `scale`, `s`, `i`, `v` and `t` are others here.
__global__ void fits_names(const int* in, int* out) {
  __shared__ int s[kThreads];
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = 1000, weight = 7, t = kThreads - 1 - threadIdx.x;
  s[threadIdx.x] = weight;
  const int scale = swapped(in[i], t);
  __syncthreads();
  for (int k = 0; k < 2; ++k) weight += swapped(k, threadIdx.x);
  out[i] = scale + v + weight + s[t];
}
CASE(names_of_the_kernel_and_of_the_function) {
  check(RUN(fits_names), [](int b, int t) { return of(b, kThreads - 1 - t) * 6 + 1000 + 7 + 6 + 7; });
}

__device__ int doubled_own(int v) {
  v *= 2;
  __syncthreads();
  v += 1;
  return v;
}
__global__ void fits_value_parameters(const int* in, int* out) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  int w = doubled_own(v) + v;
  w = doubled_own(w) - doubled_own(v);
  out[blockIdx.x * blockDim.x + threadIdx.x] = w * 100 + v;
}
CASE(a_parameter_that_the_function_changes) {
  check(RUN(fits_value_parameters), [](int b, int t) {
    const int v = of(b, t), w = 3 * v + 1;
    return (2 * w + 1 - 2 * v - 1) * 100 + v;
  });
}

template <int n>
__device__ void both(const int* list, int place, int& first, int& second, const int& by) {
  first = list[place];
  __syncthreads();
  second += list[n - 1 - place] * by;
  __syncthreads();
}
__global__ void fits_references(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int tid = threadIdx.x;
  int a, b = 1;
  s[tid] = in[blockIdx.x * kThreads + tid];
  __syncthreads();
  both<kThreads>(s, tid, a, b, 10);
  both<kThreads>(in + blockIdx.x * kThreads, (tid + 1) % kThreads, b, a, tid * 2);
  out[blockIdx.x * kThreads + tid] = a * 1000 + b;
}
CASE(references_and_pointers) {
  check(RUN(fits_references), [](int b, int t) {
    const int next = (t + 1) % kThreads;
    return (of(b, t) + of(b, kThreads - 1 - next) * t * 2) * 1000 + of(b, next);
  });
}

// ---- Where calls stand, and how functions end -----------------------------------------------------------------------

__device__ int next_of(int v) {
  __shared__ int s[kThreads];
  s[threadIdx.x] = v;
  __syncthreads();
  int r = s[(threadIdx.x + 1) % kThreads];
  __syncthreads();
  return r;
}
__device__ int second_next(int v, int times = 2) { return times < 2 ? next_of(v) : next_of(next_of(v)); }
__device__ int next_twice(int v) { return next_of(next_of(v)); }
__device__ int next_but(int v, int mode) {
  if (mode == 0) return v;
  if (mode == 1) {
    v = next_of(v);
    return v + 1;
  } else if (mode == 2) {
    return next_twice(v);
  }
  if (threadIdx.x == 3) return 77;
  return -v;
}
__global__ void fits_places(const int* in, int* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x, v = in[i];
  int total = 0, a = next_of(v), b = a + next_twice(v);
  next_of(9);
  if (next_of(v) > 10) total += 1;
  for (int k = 0; k < 4; ++k) total += 10 * next_but(v, k);
  if (blockIdx.x == 0)
    total -= next_of(total);
  else if (blockIdx.x == 1)
    total -= next_of(next_of(total) + next_twice(1));
  out[i] = total + a * b;
}
CASE(calls_within_statements_and_loops) {
  check(RUN(fits_places), [](int b, int t) {
    const auto v = [b](int t) { return of(b, t % kThreads); };
    const auto total = [&](int t) {
      t %= kThreads;
      return (v(t + 1) > 10) + 10 * (v(t) + v(t + 1) + 1 + v(t + 2) + (t == 3 ? 77 : -v(t)));
    };
    const int a = v(t + 1), c = a + v(t + 2);
    return total(t) - (b == 0 ? total(t + 1) : total(t + 2) + 1) + a * c;
  });
}

__device__ void turn(cg::thread_block cta, int* s, int v) {
  const unsigned rank = cta.thread_rank();
  s[rank] = v;
  cg::sync(cta);
}
__global__ void fits_groups(const int* in, int* out) {
  __shared__ int s[kThreads];
  cg::thread_block block = cg::this_thread_block();
  turn(block, s, in[blockIdx.x * kThreads + threadIdx.x]);
  out[blockIdx.x * kThreads + threadIdx.x] = s[kThreads - 1 - block.thread_rank()];
}
CASE(a_function_that_is_given_the_group) {
  check(RUN(fits_groups), [](int b, int t) { return of(b, kThreads - 1 - t); });
}

__device__ int masked(unsigned mask, int v) {
  v += __shfl_xor_sync(mask, v, 1);
  __syncwarp(mask);
  return v;
}
__global__ void fits_masks(const int* in, int* out) {
  const int v = in[blockIdx.x * kThreads + threadIdx.x];
  int w = 0;
  if (threadIdx.x < 32) {
    w = masked(0xffffffff, v);
  } else {
    w = -masked(0xffffffffu, v + 1);
  }
  out[blockIdx.x * kThreads + threadIdx.x] = w;
}
CASE(a_function_that_is_given_the_mask) {
  check(RUN(fits_masks), [](int b, int t) { return t < 32 ? of(b, t) + of(b, t ^ 1) : -of(b, t) - of(b, t ^ 1) - 2; });
}

// What only some warps do may divide by what is 0 for all of them.
__global__ void fits_branch_of_no_warp(const int* in, int* out, int n) {
  int v = in[blockIdx.x * kThreads + threadIdx.x];
  if (threadIdx.x >= 64) {
    const int part = 100 / n;
    for (int o = part; o > 0; o /= n) v += __shfl_xor_sync(0xffffffff, v, o);
  }
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(a_branch_that_no_warp_takes) {
  check([](int* in, int* out) { fits_branch_of_no_warp<<<2, kThreads>>>(in, out, 0); }, of);
}

// The host's version of the function, which nobody calls, must link: there `blockDim` is never anything but 1.
__device__ int last_of(int v) {
  __shared__ int s[32];
  if (threadIdx.x % 32 == 31) s[threadIdx.x / 32] = v;
  __syncthreads();
  const int last = s[blockDim.x / 32 - 1];
  __syncthreads();
  return last;
}
__global__ void fits_last_warp(const int* in, int* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = last_of(in[blockIdx.x * kThreads + threadIdx.x]);
}
CASE(an_index_that_is_computed_from_the_size_of_the_block) {
  check(RUN(fits_last_warp), [](int b, int) { return of(b, kThreads - 1); });
}

namespace rows {
namespace {
constexpr int kWarp = 32;
const unsigned kAll = 0xffffffffu;
typedef int Number;
template <Number (*combine)(Number, Number), int kBlock>
__device__ Number combined(Number v) {
  constexpr int kWarps = kBlock / kWarp;
  __shared__ Number parts[kWarps];
  for (int o = kWarp / 2; o > 0; o >>= 1) {
    Number other = __shfl_xor_sync(kAll, v, o, kWarp);
    v = combine(v, other);
  }
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = v;
  __syncthreads();
  v = parts[0];
  for (int i = 1; i < kWarps; ++i) v = combine(v, parts[i]);
  __syncthreads();
  return v;
}
__device__ Number plus(Number a, Number b) { return a + b; }
__device__ Number most(Number a, Number b) { return a > b ? a : b; }
}  // namespace
// The first blocks do nothing, and one warp of the others.
__global__ void fits_early_returns(const int* in, int* out, unsigned first) {
  if (blockIdx.x < first) return;
  Number v = in[blockIdx.x * kThreads + threadIdx.x];
  const Number sum = combined<plus, kThreads>(v), top = combined<most, kThreads>(v);
  const int warp = threadIdx.x / kWarp;
  if (warp >= 1) {
    return;
  }
  v += __shfl_down_sync(kAll, v, 1);
  out[blockIdx.x * kThreads + threadIdx.x] = sum * 100 + top + v * 10000;
}
}  // namespace rows
CASE(blocks_and_warps_that_return_early) {
  const auto expected = [](int b, int t) {
    int top = 0;
    for (int i = 0; i < kThreads; ++i) top = of(b, i) > top ? of(b, i) : top;
    const int v = of(b, t) + of(b, t % 32 == 31 ? t : t + 1);
    return b == 0 || t >= 32 ? -1 : sum_of(b) * 100 + top + v * 10000;
  };
  check([](int* in, int* out) { rows::fits_early_returns<<<2, kThreads>>>(in, out, 1u); }, expected);
}

__device__ void transpose(int tile[8][8], const int (&from)[8][8]) {
  tile[threadIdx.x % 8][threadIdx.x / 8] = from[threadIdx.x / 8][threadIdx.x % 8];
  __syncthreads();
}
__global__ void fits_arrays(const int* in, int* out) {
  __shared__ int a[8][8], b[8][8];
  a[threadIdx.x / 8][threadIdx.x % 8] = in[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
  transpose(b, a);
  transpose(a, b);
  out[blockIdx.x * kThreads + threadIdx.x] = a[threadIdx.x / 8][threadIdx.x % 8] * 100 + (&b[0][0])[threadIdx.x];
}
CASE(arrays_of_two_dimensions) {
  check(RUN(fits_arrays), [](int b, int t) { return of(b, t) * 100 + of(b, t % 8 * 8 + t / 8); });
}

namespace inner {
__device__ int next_here(int v) { return next_of(v); }
}  // namespace inner

// ---- What may not become phases -------------------------------------------------------------------------------------

__global__ void keeps_choice(const int* in, int* out) {
  const int v = in[blockIdx.x * kThreads + threadIdx.x];
  out[blockIdx.x * kThreads + threadIdx.x] = blockIdx.x == 0 ? next_of(v) : next_twice(v);
}
CASE(a_call_that_may_not_be_reached) {
  check(RUN(keeps_choice), [](int b, int t) { return of(b, (t + 1 + b) % kThreads); });
}

__global__ void keeps_choice_in_a_function(const int* in, int* out) {
  const int v = second_next(in[blockIdx.x * kThreads + threadIdx.x]);
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(a_call_in_a_function_that_may_not_be_reached) {
  check(RUN(keeps_choice_in_a_function), [](int b, int t) { return of(b, (t + 2) % kThreads); });
}

__global__ void keeps_order(const int* in, int* out) {
  int v = in[blockIdx.x * kThreads + threadIdx.x], w = 0;
  if (threadIdx.x < kThreads && (w = next_of(v)) > 0) w += 1000;
  v = (v += 1, next_of(v));
  out[blockIdx.x * kThreads + threadIdx.x] = w + v;
}
CASE(calls_behind_what_changes_something) {
  check(RUN(keeps_order), [](int b, int t) {
    const int next = of(b, (t + 1) % kThreads);
    return next + (next > 0 ? 1000 : 0) + next + 1;
  });
}

__device__ int down(int v, int n) { return n == 0 ? v : down(next_of(v), n - 1); }
__global__ void keeps_recursion_that_waits(const int* in, int* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = down(in[blockIdx.x * kThreads + threadIdx.x], 3);
}
CASE(a_function_that_waits_and_calls_itself) {
  check(RUN(keeps_recursion_that_waits), [](int b, int t) { return of(b, (t + 3) % kThreads); });
}

struct Turned {
  int* s;
  __device__ int of(int v) const {
    s[threadIdx.x] = v;
    __syncthreads();
    return s[kThreads - 1 - threadIdx.x];
  }
};
__global__ void keeps_method(const int* in, int* out) {
  __shared__ int s[kThreads];
  Turned turned{s};
  out[blockIdx.x * kThreads + threadIdx.x] = turned.of(in[blockIdx.x * kThreads + threadIdx.x]);
}
CASE(a_method_that_waits) {
  check(RUN(keeps_method), [](int b, int t) { return of(b, kThreads - 1 - t); });
}

__device__ int rounds(int v) {
  for (int k = 0;; ++k) {
    v = next_of(v);
    if (k == 2) return v;
  }
}
__global__ void keeps_return_in_a_loop(const int* in, int* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = rounds(in[blockIdx.x * kThreads + threadIdx.x]);
}
CASE(a_function_that_returns_from_a_loop) {
  check(RUN(keeps_return_in_a_loop), [](int b, int t) { return of(b, (t + 3) % kThreads); });
}

__device__ int either(int v) { return next_of(v); }
__device__ int either(long v) { return next_of(int(v)) + 1; }
__global__ void keeps_overloads(const int* in, int* out) {
  const short v = in[blockIdx.x * kThreads + threadIdx.x];
  out[blockIdx.x * kThreads + threadIdx.x] = either(v) + either(v * 1L);
}
CASE(functions_of_one_name) {
  check(RUN(keeps_overloads), [](int b, int t) { return 2 * of(b, (t + 1) % kThreads) + 1; });
}

__device__ void raise_both(int& a, const int& b) {
  __syncthreads();
  a += 1;
  __syncthreads();
  a += b;
}
__global__ void keeps_reference_to_memory(const int* in, int* out) {
  __shared__ int s[kThreads];
  s[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  raise_both(s[threadIdx.x], s[threadIdx.x]);
  out[blockIdx.x * kThreads + threadIdx.x] = s[threadIdx.x];
}
CASE(references_to_one_place) {
  check(RUN(keeps_reference_to_memory), [](int b, int t) { return 2 * of(b, t) + 2; });
}
__global__ void fits_references_to_one_variable(const int* in, int* out) {
  int v = in[blockIdx.x * kThreads + threadIdx.x];
  raise_both(v, v);
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(references_to_one_variable) {
  check(RUN(fits_references_to_one_variable), [](int b, int t) { return 2 * of(b, t) + 2; });
}

__device__ int later(int v) { return v + 1; }
__device__ int uses_later(int v) {
  __syncthreads();
  return later(v * 2L);
}
__device__ int later(long v) { return int(v) + 100; }
__global__ void keeps_name_declared_between(const int* in, int* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = uses_later(in[blockIdx.x * kThreads + threadIdx.x]);
}
CASE(a_name_that_means_more_behind_the_function) {
  check(RUN(keeps_name_declared_between), [](int b, int t) { return 2 * of(b, t) + 1; });
}

__global__ void keeps_other_scope(const int* in, int* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = inner::next_here(in[blockIdx.x * kThreads + threadIdx.x]);
}
CASE(a_function_of_another_namespace) {
  check(RUN(keeps_other_scope), [](int b, int t) { return of(b, (t + 1) % kThreads); });
}

__global__ void keeps_part_of_a_warp(const int* in, int* out) {
  int v = in[blockIdx.x * kThreads + threadIdx.x];
  if (threadIdx.x < kThreads) v = block_sum(v);
  out[blockIdx.x * kThreads + threadIdx.x] = threadIdx.x == 0 ? v : 0;
}
CASE(a_barrier_in_a_branch_of_threads) {
  check(RUN(keeps_part_of_a_warp), [](int b, int t) { return t == 0 ? sum_of(b) : 0; });
}

// A value that is handed over is the one of the call, whatever its variable holds later.
__device__ int total;
__device__ int kept_value(int before) {
  __syncthreads();
  if (threadIdx.x == 0) total = 50;
  __syncthreads();
  return before;
}
__global__ void fits_value_of_memory(const int* in, int* out) {
  __shared__ int cell;
  if (threadIdx.x == 0) total = cell = 4;
  __syncthreads();
  int a = kept_value(total), b = kept_value(cell);
  if (threadIdx.x == 0) cell = 60;
  __syncthreads();
  if (blockIdx.x == 0) out[threadIdx.x] = a * 10 + b + 0 * in[0];
}
CASE(values_of_memory_that_changes) {
  auto in = Array<int>::of(1, [](size_t) { return 0; });
  Array<int> out(kThreads, -1);
  fits_value_of_memory<<<1, kThreads>>>(in.data(), out.data());
  DONE();
  for (int v : out.get()) EXPECT(v == 44);
}

// A parameter is the function's own, also where what it calls changes it by a reference.
template <class T>
__device__ void grow(T& v) {
  v += 17;
}
__device__ void grow_together(int& v) {
  __syncthreads();
  v += 5;
}
__device__ int grown(int v) {
  __syncthreads();
  grow(v);
  __syncthreads();
  return v;
}
__device__ int grown_together(int v) {
  grow_together(v);
  __syncthreads();
  return v;
}
__global__ void fits_parameter_changed_by_reference(const int* in, int* out) {
  int t = threadIdx.x;
  const int a = grown(t);
  out[blockIdx.x * kThreads + threadIdx.x] = a * 1000 + t;
}
__global__ void fits_parameter_changed_together(const int* in, int* out) {
  int t = threadIdx.x;
  const int a = grown_together(t);
  out[blockIdx.x * kThreads + threadIdx.x] = a * 1000 + t;
}
CASE(parameters_that_are_changed_by_reference) {
  check(RUN(fits_parameter_changed_by_reference), [](int, int t) { return (t + 17) * 1000 + t; });
  check(RUN(fits_parameter_changed_together), [](int, int t) { return (t + 5) * 1000 + t; });
}
