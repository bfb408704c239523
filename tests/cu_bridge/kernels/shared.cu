// Shared memory and barriers.
#include "case.h"

__global__ void reverse(int* x) {
  __shared__ int s[256];
  s[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
CASE(static_shared_memory) {
  auto x = Array<int>::of(2560, [](size_t i) { return int(i); });
  reverse<<<10, 256>>>(x.data());
  DONE();
  auto& v = x.get();
  for (int i = 0; i < 2560; ++i) EXPECT(v[i] == i / 256 * 256 + 255 - i % 256);
}

template <class T>
__global__ void reverse_dynamic(T* x) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* s = reinterpret_cast<T*>(raw);
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
CASE(dynamic_shared_memory) {
  auto x = Array<double>::of(100, [](size_t i) { return double(i); });
  reverse_dynamic<<<1, 100, 100 * sizeof(double)>>>(x.data());
  DONE();
  auto& v = x.get();
  for (int i = 0; i < 100; ++i) EXPECT(v[i] == 99 - i);
}

extern __shared__ float at_namespace_scope[];
__global__ void two_parts(float* out, int n) {
  float* first = at_namespace_scope;
  int* second = (int*)&at_namespace_scope[n];
  first[threadIdx.x] = threadIdx.x * 0.5f;
  second[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = at_namespace_scope[n - 1 - threadIdx.x] + second[threadIdx.x];
}
CASE(dynamic_shared_memory_at_namespace_scope_in_two_parts) {
  Array<float> out(64);
  two_parts<<<1, 64, 64 * (sizeof(float) + sizeof(int))>>>(out.data(), 64);
  DONE();
  auto& v = out.get();
  for (int i = 0; i < 64; ++i) EXPECT(v[i] == (63 - i) * 0.5f + i);
}

template <int N>
__global__ void block_sum(const int* x, int* out) {
  __shared__ int s[N];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * N + t];
  __syncthreads();
  for (int k = N / 2; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
CASE(block_reduction_with_nine_barriers) {
  auto x = Array<int>::of(256 * 20, [](size_t i) { return int(i * 7 % 1000); });
  Array<int> out(20);
  block_sum<256><<<20, 256>>>(x.data(), out.data());
  DONE();
  auto& v = out.get();
  for (int b = 0; b < 20; ++b) {
    int sum = 0;
    for (int i = 0; i < 256; ++i) sum += (b * 256 + i) * 7 % 1000;
    EXPECT(v[b] == sum);
  }
}

__global__ void tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][17];
  int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[y][x] = a[row * n + k + x];
    tb[y][x] = b[(k + y) * n + col];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += ta[y][i] * tb[i][x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
CASE(tiled_matrix_product) {
  const int n = 64;
  auto a = Array<float>::of(n * n, [](size_t i) { return float(i % 13) - 6; });
  auto b = Array<float>::of(n * n, [](size_t i) { return float(i % 7) - 3; });
  Array<float> c(n * n);
  tiled<<<dim3(4, 4), dim3(16, 16)>>>(a.data(), b.data(), c.data(), n);
  DONE();
  auto& v = c.get();
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      EXPECT(v[i * n + j] == sum);
    }
}

__global__ void counted(int* out, int n) {
  int t = threadIdx.x;
  int count = __syncthreads_count(t % 3 == 0);
  int any = __syncthreads_or(t == n);
  int all = __syncthreads_and(t < n);
  int none = __syncthreads_or(0);
  out[t] = count * 1000 + any * 100 + all * 10 + none;
}
CASE(barriers_that_count) {
  Array<int> out(100);
  counted<<<1, 100>>>(out.data(), 50);
  DONE();
  for (int x : out.get()) EXPECT(x == 34 * 1000 + 100);
  counted<<<1, 100>>>(out.data(), 100);
  DONE();
  for (int x : out.get()) EXPECT(x == 34 * 1000 + 10);
}

__global__ void leave_before_barrier(int* out, int n) {
  __shared__ int s[128];
  if (threadIdx.x >= n) return;
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
CASE(threads_that_have_ended_are_not_waited_for) {
  Array<int> out(128, -1);
  leave_before_barrier<<<1, 128>>>(out.data(), 100);
  DONE();
  auto& v = out.get();
  for (int i = 0; i < 128; ++i) EXPECT(v[i] == (i < 100 ? 99 - i : -1));
}

__device__ void barrier_inside() { __syncthreads(); }
__device__ __noinline__ int neighbour(int* s) {
  barrier_inside();
  int v = s[(threadIdx.x + 1) % blockDim.x];
  barrier_inside();
  return v;
}
__global__ void barriers_in_functions(int* out) {
  __shared__ int s[96];
  int total = 0;
  for (int k = 0; k < 5; ++k) {
    s[threadIdx.x] = threadIdx.x * k;
    total += neighbour(s);
  }
  out[threadIdx.x] = total;
}
CASE(barriers_in_device_functions_and_loops) {
  Array<int> out(96);
  barriers_in_functions<<<1, 96>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int i = 0; i < 96; ++i) EXPECT(v[i] == (i + 1) % 96 * 10);
}

struct Pair {
  int a;
  float b;
};
template <class T>
__device__ T* table() {
  __shared__ T s[32];
  return s;
}
__global__ void shared_of_functions(float* out) {
  __shared__ Pair pair;
  volatile __shared__ int flag;
  int* ints = table<int>();
  float* floats = table<float>();
  if (threadIdx.x == 0) {
    pair.a = 3;
    pair.b = 0.5f;
    flag = 7;
  }
  ints[threadIdx.x] = threadIdx.x;
  floats[threadIdx.x] = 100;
  __syncthreads();
  out[threadIdx.x] = pair.a * pair.b + flag + ints[31 - threadIdx.x] + floats[threadIdx.x];
}
CASE(shared_structures_and_templates) {
  Array<float> out(32);
  shared_of_functions<<<1, 32>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int i = 0; i < 32; ++i) EXPECT(v[i] == 1.5f + 7 + 31 - i + 100);
}

__global__ void large_dynamic(int* out, int n) {
  extern __shared__ int s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *out = s[n - 1];
}
CASE(dynamic_shared_memory_above_48_kib_after_opting_in) {
  Array<int> out(1);
  const int n = 100 * 1024 / 4;
  large_dynamic<<<1, 64, n * 4>>>(out.data(), n);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  CUDA(cudaFuncSetAttribute(large_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 4));
  large_dynamic<<<1, 64, n * 4>>>(out.data(), n);
  DONE();
  EXPECT(out.get()[0] == n - 1);
  EXPECT(cudaFuncSetAttribute(large_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10) ==
         cudaErrorInvalidValue);
  cudaGetLastError();
}

__global__ void prefix(int* x) {
  __shared__ int s[2][512];
  int t = threadIdx.x, in = 0;
  s[0][t] = x[t];
  __syncthreads();
  for (int d = 1; d < 512; d *= 2) {
    s[1 - in][t] = s[in][t] + (t >= d ? s[in][t - d] : 0);
    in = 1 - in;
    __syncthreads();
  }
  x[t] = s[in][t];
}
CASE(prefix_sum_of_512_threads) {
  auto x = Array<int>::of(512, [](size_t i) { return int(i % 10); });
  prefix<<<1, 512>>>(x.data());
  DONE();
  auto& v = x.get();
  int sum = 0;
  for (int i = 0; i < 512; ++i) EXPECT(v[i] == (sum += i % 10));
}

__global__ void bitonic(unsigned* x) {
  __shared__ unsigned s[1024];
  unsigned t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (unsigned k = 2; k <= 1024; k *= 2)
    for (unsigned j = k / 2; j > 0; j /= 2) {
      unsigned p = t ^ j;
      if (p > t && ((t & k) == 0) == (s[t] > s[p])) {
        unsigned c = s[t];
        s[t] = s[p];
        s[p] = c;
      }
      __syncthreads();
    }
  x[t] = s[t];
}
CASE(bitonic_sort_of_1024_threads) {
  auto x = Array<unsigned>::of(1024, [](size_t i) { return unsigned(i * 2654435761u); });
  bitonic<<<1, 1024>>>(x.data());
  DONE();
  auto& v = x.get();
  for (int i = 1; i < 1024; ++i) EXPECT(v[i - 1] <= v[i]);
}

// Declared outside of functions, and read as other types by every kind of cast.
extern __shared__ unsigned char pool[];
namespace {
struct Two {
  int a, b;
};
extern __shared__ __align__(16) Two twos[];
template <class T>
__device__ T* behind(T* first) {
  return first + 1;
}
__device__ int sum_of(int i) { return twos[i].a + twos[i].b; }
}  // namespace
__global__ void one_pool(float* out) {
  float* floats = (float*)pool;
  const int* same = (int*)&pool;
  int* ints = reinterpret_cast<int*>(pool) + blockDim.x;
  const int t = threadIdx.x, last = blockDim.x - 1;
  floats[t] = t;
  ints[t] = 2 * t;
  __syncthreads();
  const float mixed = floats[last - t] + ints[last - t] + float(same - (int*)floats);
  __syncthreads();
  twos[t] = Two{t, int(blockIdx.x)};
  __syncthreads();
  out[blockIdx.x * blockDim.x + t] = mixed + sum_of(last - t) + behind(&twos[0])[t == last ? -1 : t].a;
}
CASE(dynamic_shared_memory_outside_of_functions_through_casts) {
  for (const int threads : {32, 96}) {
    Array<float> out(20 * threads);
    one_pool<<<20, threads, threads * 8>>>(out.data());
    DONE();
    const auto& v = out.get();
    for (int i = 0; i < 20 * threads; ++i) {
      const int t = i % threads, other = threads - 1 - t;
      EXPECT(v[i] == 3 * other + other + i / threads + (t == threads - 1 ? 0 : t + 1));
    }
  }
}
