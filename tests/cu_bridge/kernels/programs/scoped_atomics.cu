// cuda::atomic, cuda::barrier, cuda::std and copies to shared memory.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/complex>
#include <cuda/std/tuple>

#include "../check.h"

namespace cg = cooperative_groups;

__global__ void atomics(cuda::atomic<int, cuda::thread_scope_device>* count, float* largest) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  count->fetch_add(1, cuda::std::memory_order_relaxed);
  cuda::atomic_ref<float, cuda::thread_scope_device>(*largest).fetch_max(static_cast<float>(i * 37 % 101));
}

__global__ void barrier(const float* in, float* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> meeting;
  __shared__ float tile[64];
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&meeting, 64);
  __syncthreads();
  tile[threadIdx.x] = in[threadIdx.x];
  meeting.arrive_and_wait();
  const float other = tile[63 - threadIdx.x];
  meeting.arrive_and_wait();
  cg::memcpy_async(block, tile, in, sizeof tile);
  cg::wait(block);
  EXPECT(tile[(threadIdx.x + 1) % 64] == in[(threadIdx.x + 1) % 64]);
  __syncthreads();
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[63 - threadIdx.x], sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  EXPECT(tile[threadIdx.x] == other);
  const cuda::std::complex<float> z(0, other);
  out[threadIdx.x] = (z * z).real();
  EXPECT(cuda::std::get<1>(cuda::std::make_tuple(1, 2.5f)) == 2.5f);
}

int main() {
  cuda::atomic<int, cuda::thread_scope_device>* count;
  float *largest, *in, *out;
  cudaMallocManaged(&count, sizeof *count);
  cudaMallocManaged(&largest, sizeof *largest);
  cudaMallocManaged(&in, 64 * sizeof *in);
  cudaMallocManaged(&out, 64 * sizeof *out);
  new (count) cuda::atomic<int, cuda::thread_scope_device>(0);
  *largest = -1;
  for (int i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  atomics<<<8, 64>>>(count, largest);
  barrier<<<1, 64>>>(in, out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(count->load() == 512 && *largest == 100);
  for (int i = 0; i < 64; ++i) CHECK(out[i] == -static_cast<float>((63 - i) * (63 - i)));
  return summary();
}
