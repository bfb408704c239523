// Atomic functions on shared memory, which cucc makes those of the block's scope, and what only looks like it.
#include "case.h"

const int kBlocks = 64, kThreads = 128;

__global__ void counts(const int* in, int* bins, float* sums) {
  __shared__ unsigned counted[16], limited[2];
  __shared__ int matrix[4][4], extremes[2];
  __shared__ float total[1];
  if (threadIdx.x < 16) counted[threadIdx.x] = 0, matrix[threadIdx.x / 4][threadIdx.x % 4] = 0;
  if (threadIdx.x == 0) extremes[0] = 1000, extremes[1] = -1000, total[0] = 0, limited[0] = 0, limited[1] = 5;
  __syncthreads();
  const int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&counted[v & 15], 1u);
  atomicAdd(&matrix[v & 3][(v >> 2) & 3], v);
  atomicMin(&extremes[0], v);
  atomicMax(&extremes[1], v);
  atomicAdd(&total[0], 0.5f);
  atomicInc(&limited[0], 9u);
  atomicDec(&limited[1], 6u);
  __syncthreads();
  int* out = bins + blockIdx.x * 40;
  if (threadIdx.x < 16) out[threadIdx.x] = counted[threadIdx.x];
  if (threadIdx.x < 16) out[16 + threadIdx.x] = matrix[threadIdx.x / 4][threadIdx.x % 4];
  if (threadIdx.x == 0) {
    out[32] = extremes[0], out[33] = extremes[1], out[34] = limited[0], out[35] = limited[1];
    sums[blockIdx.x] = total[0];
  }
}
CASE(atomic_functions_on_shared_memory) {
  auto in = Array<int>::of(kBlocks * kThreads, [](size_t i) { return int(i * 7919 % 997); });
  Array<int> bins(kBlocks * 40);
  Array<float> sums(kBlocks);
  counts<<<kBlocks, kThreads>>>(in.data(), bins.data(), sums.data());
  DONE();
  const auto& v = bins.get();
  const auto& s = sums.get();
  for (int b = 0; b < kBlocks; ++b) {
    int want[36] = {};
    want[32] = 1000, want[33] = -1000;
    for (int t = 0; t < kThreads; ++t) {
      const int one = in[b * kThreads + t];
      ++want[one & 15];
      want[16 + (one & 3) * 4 + (one >> 2 & 3)] += one;
      want[32] = one < want[32] ? one : want[32];
      want[33] = one > want[33] ? one : want[33];
      want[34] = want[34] >= 9 ? 0 : want[34] + 1;
    }
    int left = 5;
    for (int t = 0; t < kThreads; ++t) left = left == 0 || left > 6 ? 6 : left - 1;
    want[35] = left;
    for (int i = 0; i < 36; ++i) EXPECT(v[b * 40 + i] == want[i]);
    EXPECT(s[b] == kThreads * 0.5f);
  }
}

// The inner variable of the name leads to memory that all blocks share, so the function there needs the bus lock.
__global__ void hidden(int* total, int rounds) {
  __shared__ int where[2];
  if (threadIdx.x == 0) where[0] = where[1] = 0;
  __syncthreads();
  for (int i = 0; i < rounds; ++i) {
    int* where = total;
    atomicAdd(&where[0], 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&total[1], where[0]);
}
CASE(a_pointer_with_the_name_of_shared_memory) {
  Array<int> total(2);
  hidden<<<kBlocks, kThreads>>>(total.data(), 200);
  DONE();
  EXPECT(total.get()[0] == kBlocks * kThreads * 200);
  EXPECT(total.get()[1] == 0);
}

// A program's own overload of a name.
__device__ float atomicMax(float* address, float value) {
  const int old = atomicMax(reinterpret_cast<int*>(address), __float_as_int(value));
  return __int_as_float(old);
}
__global__ void overloaded(const int* in, float* out) {
  __shared__ float most[1];
  if (threadIdx.x == 0) most[0] = 0;
  __syncthreads();
  atomicMax(&most[0], float(in[threadIdx.x]));
  __syncthreads();
  if (threadIdx.x == 0) out[0] = most[0];
}
CASE(an_overload_of_an_atomic_function) {
  auto in = Array<int>::of(kThreads, [](size_t i) { return int(i * 31 % 113); });
  Array<float> out(1);
  overloaded<<<1, kThreads>>>(in.data(), out.data());
  DONE();
  float want = 0;
  for (int i = 0; i < kThreads; ++i) want = float(in[i]) > want ? float(in[i]) : want;
  EXPECT(out.get()[0] == want);
}
