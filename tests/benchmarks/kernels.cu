// Nanoseconds per CUDA thread beside a plain loop of the same program.
#include <cuda_runtime.h>

#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void block_sum(const float* x, float* out) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__global__ void warp_sum(const float* x, float* out) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = v;
}

// A kernel that computes: two hundred operations for each thread.
__global__ void series(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 100; ++k) sum = sum * x[i] + 1;
  y[i] = sum;
}

// The same sum by a function that waits, which cucc takes in.
__device__ void halve(float* s, int t) {
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
}
__global__ void block_sum_function(const float* x, float* out) {
  __shared__ float s[256];
  s[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  halve(s, threadIdx.x);
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

// By a method, which cucc does not take in: each thread has a stack of its own.
struct Halves {
  static __device__ __noinline__ void halve(float* s, int t) { ::halve(s, t); }
};
__global__ void block_sum_stacks(const float* x, float* out) {
  __shared__ float s[256];
  s[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  Halves::halve(s, threadIdx.x);
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

// The sum as programs have it: by warps, then the first warp over their sums.
__device__ float warp_reduce(float v) {
  for (int o = warpSize / 2; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__device__ float block_reduce(float v) {
  static __shared__ float shared[32];
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  v = warp_reduce(v);
  if (lane == 0) shared[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? shared[lane] : 0;
  if (warp == 0) v = warp_reduce(v);
  return v;
}
__global__ void block_sum_warps(const float* x, float* out) {
  const float sum = block_reduce(x[blockIdx.x * 256 + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__attribute__((noinline)) void plain(int n, float a, const float* x, float* y) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

double now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

// kernels ROUNDS: nanoseconds of processor time for each thread, all of them in each round, so that what else the
// machine does meets all of them. kernels scaling: nanoseconds by the wall for each thread of larger grids.
int main(int count, char** arguments) {
  const bool scaling = count > 1 && !std::strcmp(arguments[1], "scaling");
  const int n = scaling ? 1 << 20 : 1 << 17, repeats = scaling ? 20 : 50, most = scaling ? 1 << 22 : n;
  const int rounds = scaling || count < 2 ? 9 : std::atoi(arguments[1]);
  const clockid_t clock = scaling ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
  float *x, *y;
  cudaMalloc(&x, most * sizeof(float));
  cudaMalloc(&y, most * sizeof(float));
  for (int i = 0; i < most; ++i) x[i] = y[i] = 1;
  const auto line = [&](const char* name, int times, auto run, int threads = 0) {
    const double before = now(clock);
    for (int k = 0; k < times; ++k) run();
    std::printf("%s %.5f\n", name, (now(clock) - before) / times / (threads ? threads : n));
  };
  for (int round = 0; round < rounds; ++round) {
    if (!scaling) line("loop", repeats, [&] { plain(n, 1e-9f, x, y); });
    line("saxpy", repeats, [&] { saxpy<<<n / 256, 256>>>(n, 1e-9f, x, y); });
    line("block_sum", repeats, [&] { block_sum<<<n / 256, 256>>>(x, y); });
    line("warp_sum", repeats, [&] { warp_sum<<<n / 256, 256>>>(x, y); });
    line("function", repeats, [&] { block_sum_function<<<n / 256, 256>>>(x, y); });
    line("warps", repeats, [&] { block_sum_warps<<<n / 256, 256>>>(x, y); });
    line("stacks", 1, [&] { block_sum_stacks<<<n / 256, 256>>>(x, y); });
    if (!scaling) line("series_17", 1, [&] { series<<<n / 256, 256>>>(x, y); });
    for (int power : {17, 20, 22}) {
      char name[16];
      std::snprintf(name, sizeof name, "series_%d", power);
      const int threads = 1 << power;
      if (scaling) line(name, power < 20 ? 8 : 1, [&] { series<<<threads / 256, 256>>>(x, y); }, threads);
    }
  }
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
}
