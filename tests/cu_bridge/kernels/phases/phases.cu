// Kernels that cucc turns into a loop for each phase between two waits, and kernels that look like these but must keep a
// stack for each thread. test_cucc.py knows which is which by the name: fits_… and keeps_….
#include "../case.h"

const int kThreads = 96;

// What a kernel writes for each thread, beside what `expected(block, thread)` says.
template <class Kernel, class Expected>
void check(Kernel kernel, Expected expected) {
  const int blocks = 3;
  Array<int> in = Array<int>::of(blocks * kThreads, [](size_t i) { return int(i * 7 % 31); });
  Array<int> out(blocks * kThreads, -1);
  kernel(blocks, in.data(), out.data());
  DONE();
  const auto& v = out.get();
  for (int i = 0; i < blocks * kThreads; ++i) EXPECT(v[i] == expected(i / kThreads, i % kThreads));
}
static int value(int block, int thread) { return (block * kThreads + thread) * 7 % 31; }
static int sum(int block, int from = 0, int to = kThreads) {
  int total = 0;
  for (int t = from; t < to; ++t) total += value(block, t);
  return total;
}
#define RUN(kernel) [](int blocks, int* in, int* out) { kernel<<<blocks, kThreads>>>(in, out); }

__global__ void fits_reduction(const int* in, int* out) {
  __shared__ int s[128];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = in[i];
  if (t < 32) s[t + 96] = 0;
  __syncthreads();
  for (int k = 64; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  out[i] = s[0];
}
CASE(phases_of_a_block_reduction) {
  check(RUN(fits_reduction), [](int b, int) { return sum(b); });
}

__global__ void fits_kept_values(const int* in, int* out) {
  extern __shared__ int s[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = in[i], w;
  const int* from = in + blockIdx.x * blockDim.x;
  unsigned long long wide = 1ull << 40;
  w = v * 2;
  s[threadIdx.x] = w;
  __syncthreads();
  v += s[(threadIdx.x + 1) % blockDim.x];
  from += threadIdx.x;
  wide += v;
  __syncthreads();
  s[threadIdx.x] = -1;
  if (wide >> 40 != 1) v = -2;
  {
    int v = 5;  // another one
    w += v;
  }
  __syncthreads();
  out[i] = v + w + *from;
}
CASE(phases_keep_the_variables_of_each_thread) {
  check([](int blocks, int* in, int* out) { fits_kept_values<<<blocks, kThreads, kThreads * 4>>>(in, out); },
        [](int b, int t) { return value(b, t) * 4 + 5 + 2 * value(b, (t + 1) % kThreads); });
}

typedef int index_t;
__global__ void fits_pointers(const int* in, int* out) {
  __shared__ int s[kThreads];
  const auto t = threadIdx.x;
  const index_t row = blockIdx.x * blockDim.x;
  const int* p = in + row + t;
  int* q = &s[t];
  *q = *p;
  __syncthreads();
  out[row + t] = s[blockDim.x - 1 - t] + *p + *q;
}
CASE(phases_keep_pointers_into_arrays) {
  check(RUN(fits_pointers), [](int b, int t) { return value(b, kThreads - 1 - t) + value(b, t) + value(b, t); });
}

template <int kTimes>
__global__ void fits_uniform_branches(const int* in, int* out, int n, bool twice) {
  __shared__ int s[kThreads];
  int sum = 0;
  const int rounds = n * kTimes;
  for (int r = 0; r < rounds; ++r) {
    if (twice && r % 2 == 0) {
      s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x] + r;
      __syncthreads();
    } else {
      s[threadIdx.x] = r;
      __syncthreads();
    }
    for (int j = 0; j < 2; j++) {
      sum += s[(threadIdx.x + j) % blockDim.x];
      __syncthreads();
    }
  }
  if (threadIdx.x == 7) return;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
CASE(phases_within_uniform_loops_and_branches) {
  check([](int blocks, int* in, int* out) { fits_uniform_branches<2><<<blocks, kThreads>>>(in, out, 2, true); },
        [](int b, int t) {
          if (t == 7) return -1;
          return 2 * (value(b, t) + value(b, (t + 1) % kThreads)) + 2 * (0 + 1 + 2 + 3);
        });
}

__global__ void fits_matrix_product(const int* a, int* c) {  // of 16 x 16 matrices, blocks of 8 x 8 x 1
  __shared__ int left[8][8], right[8][8];
  int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 8 + threadIdx.x;
  int total = 0;
  for (int tile = 0; tile < 2; ++tile) {
    left[threadIdx.y][threadIdx.x] = a[row * 16 + tile * 8 + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = a[(tile * 8 + threadIdx.y) * 16 + column];
    __syncthreads();
    for (int k = 0; k < 8; ++k) total += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * 16 + column] = total;
}
CASE(phases_of_a_tiled_product) {
  auto a = Array<int>::of(256, [](size_t i) { return int(i * 5 % 17) - 8; });
  Array<int> c(256);
  fits_matrix_product<<<dim3(2, 2), dim3(8, 8)>>>(a.data(), c.data());
  DONE();
  const auto& v = c.get();
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      int total = 0;
      for (int k = 0; k < 16; ++k) total += a[i * 16 + k] * a[k * 16 + j];
      EXPECT(v[i * 16 + j] == total);
    }
}

// ---- Shuffles -----------------------------------------------------------------------------------------------------------

__global__ void fits_shuffles(const double* in, double* out, int width, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double v = in[i];
  double down = __shfl_down_sync(0xffffffff, v, by, width), up = 0, other;
  up = __shfl_up_sync(~0u, v + 1, by, width);
  other = __shfl_xor_sync(-1, v * 2, by, width) * 100 + 1;
  __syncwarp();
  int far = __shfl_sync(0xffffffffu, (int)threadIdx.x, threadIdx.x + by, width);
  out[i * 4] = down;
  out[i * 4 + 1] = up;
  out[i * 4 + 2] = other;
  out[i * 4 + 3] = far;
}
CASE(phases_between_shuffles_of_every_width) {
  for (int threads : {96, 70}) {  // the last warp of 70 has six lanes: the others have no value to give
    auto in = Array<double>::of(threads, [](size_t i) { return double(i * i); });
    const auto same = [&](double got, int from, double factor, double more) {
      return from < threads ? got == in[from] * factor + more : got != got;
    };
    for (int width : {32, 16, 4})
      for (int by : {0, 1, 3, 5, 31}) {
        Array<double> out(threads * 4);
        fits_shuffles<<<1, threads>>>(in.data(), out.data(), width, by);
        DONE();
        const auto& v = out.get();
        for (int t = 0; t < threads; ++t) {
          const int first = t / width * width, warp = t / 32 * 32;
          const int down = t - first + by < width ? t + by : t, up = t - first >= by ? t - by : t;
          const int swapped = ((t - warp) ^ by) < (first - warp) + width ? warp + ((t - warp) ^ by) : t;
          const int far = first + (t + by) % width;
          EXPECT(same(v[t * 4], down, 1, 0));
          EXPECT(same(v[t * 4 + 1], up, 1, 1));
          EXPECT(same(v[t * 4 + 2], swapped, 200, 1));
          EXPECT(v[t * 4 + 3] == (far < threads ? far : -1));
        }
      }
  }
}

__global__ void fits_warp_sums(const int* in, int* out) {
  __shared__ int sums[32];
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int i = 0; i < (int)blockDim.x / 32; ++i) v += sums[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
CASE(phases_of_sums_by_warps) {
  check(RUN(fits_warp_sums), [](int b, int) { return sum(b); });
}

// ---- What may not become phases -------------------------------------------------------------------------------------------

__global__ void fits_changed_parameter(const int* in, int* out) {
  in += blockIdx.x * blockDim.x;
  in += threadIdx.x;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = *in;
}
CASE(a_parameter_is_each_threads_own) {
  check(RUN(fits_changed_parameter), [](int b, int t) { return value(b, t); });
}

struct Settings {
  int list[2];
  int n;
};
__global__ void keeps_changed_member(const int* in, int* out, Settings settings, int n) {
  settings.list[threadIdx.x < 40 ? 0 : 1] += threadIdx.x;
  (n)++;
  int& same = n;
  same += 2;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = settings.list[0] + settings.list[1] + n + 0 * in[0];
}
CASE(a_part_of_a_parameter_is_each_threads_own) {
  check([](int blocks, int* in,
           int* out) { keeps_changed_member<<<blocks, kThreads>>>(in, out, Settings{{1, 2}, 0}, 4); },
        [](int, int t) { return 1 + 2 + t + 7; });
}

__global__ void keeps_early_return(const int* in, int* out) {
  __shared__ int s;
  if (threadIdx.x >= 50) return;
  if (threadIdx.x == 49) s = in[blockIdx.x * blockDim.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
CASE(a_thread_that_has_returned_runs_no_later_phase) {
  check(RUN(keeps_early_return), [](int b, int t) { return t < 50 ? value(b, 0) : -1; });
}

__device__ int counter;
__global__ void fits_memory_read_once(const int* in, int* out) {
  __shared__ int shared;
  if (threadIdx.x == 0) counter = 3;
  if (threadIdx.x == 0) shared = 4;
  __syncthreads();
  int before = counter, one = shared, first = *out + in[0], again = *(out + 0);
  __syncthreads();
  if (threadIdx.x == 0) shared = 5;
  if (threadIdx.x == 1) atomicExch(&counter, 6);
  if (threadIdx.x == 2) *out = 100;
  __syncthreads();
  out[threadIdx.x] = before * 1000 + one * 100 + first * 10 + again;
}
CASE(what_memory_held_before_a_wait_is_kept) {
  Array<int> in(1, 2), out(kThreads, 1);
  fits_memory_read_once<<<1, kThreads>>>(in.data(), out.data());
  DONE();
  for (int v : out.get()) EXPECT(v == 3431);
}

__global__ void keeps_varying_loop(const int* in, int* out) {
  __shared__ int s[kThreads];
  int total = 0;
  for (int i = threadIdx.x; i < kThreads + (int)threadIdx.x; ++i) {
    s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    total += s[i % kThreads];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
CASE(a_loop_that_begins_elsewhere_in_each_thread) {
  check(RUN(keeps_varying_loop), [](int b, int) { return sum(b); });
}

__global__ void fits_first_warp(const int* in, int* out) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (threadIdx.x < 32) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x % 32 == 0 ? v : 0;
}
CASE(shuffles_of_one_warp_only) {
  check(RUN(fits_first_warp), [](int b, int t) { return t == 0 ? sum(b, 0, 32) : t % 32 == 0 ? value(b, t) : 0; });
}

__global__ void fits_kept_array(const int* in, int* out) {
  int own[3] = {1, 2, in[blockIdx.x * blockDim.x + threadIdx.x]};
  __syncthreads();
  own[0] += own[2];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = own[0] + own[1];
}
CASE(an_array_that_lives_across_a_wait) {
  check(RUN(fits_kept_array), [](int b, int t) { return value(b, t) + 3; });
}

__device__ int exchanged(int v) {
  __shared__ int s[kThreads];
  s[threadIdx.x] = v;
  __syncthreads();
  const int other = s[kThreads - 1 - threadIdx.x];
  __syncthreads();
  return other;
}
__global__ void fits_call(const int* in, int* out) {
  int v = exchanged(in[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
CASE(a_function_that_waits) {
  check(RUN(fits_call), [](int b, int t) { return value(b, kThreads - 1 - t); });
}

__global__ void keeps_effect_in_shuffle(const int* in, int* out) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x], n = 0;
  int w = __shfl_sync(0xffffffffu, v + n++, 1);
  w += n;
  __syncthreads();
  for (int k = 0; k < 3; ++k) {
    if (v < 0) break;
    w += k;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = w;
}
CASE(an_effect_in_what_a_shuffle_gives) {
  check(RUN(keeps_effect_in_shuffle), [](int b, int t) { return value(b, t / 32 * 32 + 1) + 1 + 3; });
}

// Loops whose threads count for themselves, all alike.
__global__ void fits_break(const int* in, int* out, int rounds) {
  __shared__ int s[kThreads], next[kThreads];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = in[i];
  __syncthreads();
  bool computed;
  for (int k = 0; k < rounds; k++) {
    computed = false;
    if (t >= k + 1 && t < kThreads - 1 - k) {
      computed = true;
      next[t] = s[t - 1] + s[t + 1];
    }
    __syncthreads();
    if (k == rounds - 1) break;
    if (computed) s[t] = next[t];
    __syncthreads();
  }
  out[i] = computed ? next[t] : -5;
}
CASE(a_loop_that_all_threads_leave_together) {
  check([](int blocks, int* in, int* out) { fits_break<<<blocks, kThreads>>>(in, out, 3); },
        [](int b, int t) {
          if (t < 3 || t >= kThreads - 3) return -5;
          return value(b, t - 3) + 3 * value(b, t - 1) + 3 * value(b, t + 1) + value(b, t + 3);
        });
}

__global__ void fits_while(const int* in, int* out, int n) {
  extern __shared__ int s[];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = in[i];
  if (t < 32) s[t + 96] = 0;
  int offset = 1, d = n >> 1;
  while (d > 0) {
    __syncthreads();
    if (t < d) s[offset * (2 * t + 2) - 1] += s[offset * (2 * t + 1) - 1];
    offset *= 2;
    d >>= 1;
  }
  if (t == 0) s[n - 1] = 0;
  for (d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      const int first = offset * (2 * t + 1) - 1, second = offset * (2 * t + 2) - 1;
      const int moved = s[first];
      s[first] = s[second];
      s[second] += moved;
    }
  }
  __syncthreads();
  out[i] = s[t] + offset * 1000 + d;
}
CASE(a_scan_with_strides_that_its_threads_compute) {
  check([](int blocks, int* in, int* out) { fits_while<<<blocks, kThreads, 512>>>(in, out, 128); },
        [](int b, int t) { return sum(b, 0, t) + 1000 + 128; });
}

__global__ void fits_outer_counter(const int* in, int* out) {
  __shared__ int s[kThreads];
  int i, j, total = 0;
  s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (i = 0; i <= __log2f(16); i++) {
    for (j = 0; j < i; j++) total += s[threadIdx.x] * j;
    __syncthreads();
    if (threadIdx.x == i) s[i] += 1;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = total + i * 10000 + s[1] * 100000;
}
CASE(counters_that_are_declared_outside_of_their_loops) {
  check(RUN(fits_outer_counter), [](int b, int t) {
    int total = 0;
    for (int i = 0; i <= 4; ++i) {
      for (int j = 0; j < i; ++j) total += (value(b, t) + (t < i)) * j;
    }
    return total + 50000 + (value(b, 1) + 1) * 100000;
  });
}

__global__ void fits_continue(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x, from = blockIdx.x * blockDim.x;
  int round = 0, total = 0;
  unsigned step = 1;
  do {
    s[t] = in[from + (t + round) % kThreads];
    __syncthreads();
    round += step;
    if (round == 3) continue;
    if (round % 2 == 0) {
      total += s[kThreads - 1 - t];
      __syncthreads();
      if (round > 6) break;
    } else {
      total += 7 * s[(t + 1) % kThreads];
      __syncthreads();
    }
    for (int k = 0; k < 3; k++) {
      if (k == 1) continue;
      total += s[k] * 2;
      __syncthreads();
    }
  } while (round < n);
  // The launch's values, which each thread changes.
  while (n > 0) {
    __syncthreads();
    s[t] = n;
    n = n / 2 - (n == 1 ? 5 : 0);
    __syncthreads();
    total ^= s[(t + 5) % kThreads];
  }
  out[from + t] = total + n;
}
CASE(loops_that_go_on_together_at_their_end) {
  check([](int blocks, int* in, int* out) { fits_continue<<<blocks, kThreads>>>(in, out, 100); },
        [](int b, int t) {
          int total = 0;
          for (int round = 1; round <= 8; ++round) {
            const auto s = [&](int place) { return value(b, (place + round - 1) % kThreads); };
            if (round == 3) continue;
            total += round % 2 == 0 ? s(kThreads - 1 - t) : 7 * s((t + 1) % kThreads);
            if (round == 8) break;
            total += 2 * s(0) + 2 * s(2);
          }
          for (int n : {100, 50, 25, 12, 6, 3, 1}) total ^= n;
          return total - 5;
        });
}

__global__ void keeps_changed_by_some(const int* in, int* out) {
  const int t = threadIdx.x;
  int v = in[blockIdx.x * blockDim.x + t], k = 0, end = 2;
  if (t == 5000) end = 9;
  while (k < end) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    __syncthreads();
    k++;
  }
  out[blockIdx.x * blockDim.x + t] = v;
}
__global__ void keeps_changed_behind_continue(const int* in, int* out) {
  const int t = threadIdx.x;
  int v = in[blockIdx.x * blockDim.x + t], k = 0, end = 0;
  for (int i = 0; i < 3; ++i) {
    if (i == (t & 1)) continue;
    end += 1;
  }
  do {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    __syncthreads();
    k++;
  } while (k < end);
  out[blockIdx.x * blockDim.x + t] = v;
}
__global__ void keeps_address(const int* in, int* out) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x], end = 2;
  int* p = &end;
  for (int k = 0; k < end; k++) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    __syncthreads();
    *p = 2;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void keeps_memory(const int* in, int* out) {
  __shared__ int end;
  int v = in[blockIdx.x * blockDim.x + threadIdx.x], k = 0;
  if (threadIdx.x == 0) end = 2;
  __syncthreads();
  while (k < end) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    __syncthreads();
    k++;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void keeps_left_by_warps(const int* in, int* out) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int k = 0; k < 5; k++) {
    if (threadIdx.x / 32 < 3 && k == 2) break;
    v += __shfl_xor_sync(0xffffffffu, v, 1);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
constexpr int kTwice = 2;
__global__ void keeps_hidden_end(const int* in, int* out) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x], k;
  for (k = 0; k < kTwice; k++) {
    const int kTwice = threadIdx.x;
    v += __shfl_xor_sync(0xffffffffu, v + kTwice - threadIdx.x, 1);
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
CASE(loops_whose_rounds_may_differ_between_threads) {
  const auto expected = [](int b, int t) { return 2 * (value(b, t) + value(b, t ^ 1)); };
  check(RUN(keeps_changed_by_some), expected);
  check(RUN(keeps_changed_behind_continue), expected);
  check(RUN(keeps_address), expected);
  check(RUN(keeps_memory), expected);
  check(RUN(keeps_left_by_warps), expected);
  check(RUN(keeps_hidden_end), expected);
}

template <int Threads>
__global__ void fits_names_and_clocks(const int* in, int* out) {
  static_assert(Threads >= 64, "two warps and more");
  using Number = int;
  __shared__ Number s[Threads];
  const long long start = clock64();
  const int v = in[blockIdx.x * Threads + threadIdx.x];
  s[threadIdx.x] = v;
  __syncthreads();
  static_assert(sizeof(Number) == 4, "");
  const int other = s[Threads - 1 - threadIdx.x];
  __syncthreads();
  // Time does not go back.
  out[blockIdx.x * Threads + threadIdx.x] = clock64() >= start ? v + other : -1;
}
CASE(names_of_types_checks_and_clocks_in_a_kernel_that_waits) {
  check(RUN(fits_names_and_clocks<kThreads>), [](int b, int t) { return value(b, t) + value(b, kThreads - 1 - t); });
}
