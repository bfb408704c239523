// Nanoseconds per CUDA thread beside a plain loop of the same program.
#include <cuda_runtime.h>

#include <time.h>

#include <algorithm>
#include <cstdio>

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

__attribute__((noinline)) void plain(int n, float a, const float* x, float* y) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

// The processor time of the fastest run: other programs on the machine do not count.
template <class F>
double best(F run) {
  double shortest = 1e9;
  for (int round = 0; round < 15; ++round) {
    timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    run();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    shortest = std::min(shortest, (after.tv_sec - before.tv_sec) + (after.tv_nsec - before.tv_nsec) * 1e-9);
  }
  return shortest * 1e9;
}

int main() {
  const int n = 1 << 17, rounds = 50;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  for (int i = 0; i < n; ++i) x[i] = y[i] = 1;
  const auto many = [&](auto run) { return best([&] { for (int k = 0; k < rounds; ++k) run(); }) / n / rounds; };
  std::printf("loop %.4f\n", many([&] { plain(n, 1e-9f, x, y); }));
  std::printf("saxpy %.4f\n", many([&] { saxpy<<<n / 256, 256>>>(n, 1e-9f, x, y); }));
  std::printf("block_sum %.4f\n", best([&] { block_sum<<<n / 256, 256>>>(x, y); }) / n);
  std::printf("warp_sum %.4f\n", best([&] { warp_sum<<<n / 256, 256>>>(x, y); }) / n);
}
