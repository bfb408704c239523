// Philox in kernels: the known answer, and the same numbers whatever the launch.
#include <curand_kernel.h>

#include "../check.h"

__global__ void words(unsigned* out, int threads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= threads) return;
  curandStatePhilox4_32_10_t state;
  curand_init(1234, i, 4, &state);
  const uint4 four = curand4(&state);
  out[4 * i] = four.x;
  out[4 * i + 1] = four.y;
  out[4 * i + 2] = four.z;
  out[4 * i + 3] = four.w;
}

__global__ void uniform(float* out) {
  curandState state;
  curand_init(1234, threadIdx.x, 0, &state);
  out[threadIdx.x] = curand_uniform(&state);
}

int main() {
  unsigned *a, *b;
  float* u;
  cudaMallocManaged(&a, 400 * sizeof *a);
  cudaMallocManaged(&b, 400 * sizeof *b);
  cudaMallocManaged(&u, 10 * sizeof *u);
  words<<<1, 128>>>(a, 100);
  words<<<13, 8>>>(b, 100);
  uniform<<<1, 10>>>(u);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 400; ++i) CHECK(a[i] == b[i]);
  const uint4 zero = curand_Philox4x32_10(make_uint4(1, 0, 0, 0), make_uint2(1234, 0));
  CHECK(a[0] == zero.x && a[3] == zero.w);
  CHECK(u[0] > 0.1454f && u[0] < 0.1456f && u[9] > 0.2854f && u[9] < 0.2856f);
  return summary();
}
