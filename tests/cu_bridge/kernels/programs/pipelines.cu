// cuda::pipeline in all its forms: of a thread, of a block whose threads do both, of producers and consumers; and the
// barriers of cuda::barrier that are waited for by parity, or left.
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/pipeline>

#include "../check.h"

namespace cg = cooperative_groups;
constexpr int kThreads = 128, kBatches = 10;

template <int stages>
__global__ void unified(const int* in, int* out) {
  const auto block = cg::this_thread_block();
  __shared__ int s[stages * kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto pipe = cuda::make_pipeline(block, &state);
  const auto bytes = cuda::aligned_size_t<16>(sizeof(int) * kThreads);
  for (int batch = 0, fetched = 0; batch < kBatches; ++batch) {
    for (; fetched < kBatches && fetched < batch + stages; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s + fetched % stages * kThreads, in + fetched * kThreads, bytes, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    out[batch * kThreads + threadIdx.x] = s[batch % stages * kThreads + (threadIdx.x ^ 1)] * 2;
    pipe.consumer_release();
  }
}

// The first threads write, each a few elements; the others read what a neighbour of the same stage has.
template <bool by_count>
__global__ void roles(const int* in, int* out) {
  constexpr int kProducers = 32, kConsumers = kThreads - kProducers;
  const auto block = cg::this_thread_block();
  __shared__ int s[2][kConsumers];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const bool produces = threadIdx.x < kProducers;
  const auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = by_count ? cuda::make_pipeline(block, &state, kProducers) : cuda::make_pipeline(block, &state, role);
  for (int batch = 0; batch < kBatches; ++batch) {
    if (produces) {
      pipe.producer_acquire();
      for (int i = static_cast<int>(threadIdx.x); i < kConsumers; i += kProducers) {
        cuda::memcpy_async(&s[batch % 2][i], &in[batch * kThreads + i], sizeof(int), pipe);
      }
      pipe.producer_commit();
    } else {
      const int own = static_cast<int>(threadIdx.x) - kProducers;
      pipe.consumer_wait();
      out[batch * kThreads + own] = s[batch % 2][kConsumers - 1 - own];
      pipe.consumer_release();
    }
  }
  pipe.quit();
}

__global__ void of_threads(const int* in, int* out) {
  __shared__ int s[2][kThreads];
  auto pipe = cuda::make_pipeline();
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(&s[i][threadIdx.x], &in[i * kThreads + threadIdx.x], sizeof(int), pipe);
    pipe.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  __syncthreads();
  out[threadIdx.x] = s[0][kThreads - 1 - threadIdx.x];
  pipe.consumer_release();
}

__global__ void parities(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> meeting;
  __shared__ int s[kThreads];
  if (threadIdx.x == 0) init(&meeting, kThreads);
  __syncthreads();
  int sum = 0;
  // Every round a thread leaves, and is not waited for.
  for (int round = 0; round < 8; ++round) {
    s[threadIdx.x] = in[threadIdx.x] + round;
    if (static_cast<int>(threadIdx.x) == round) {
      meeting.arrive_and_drop();
      break;
    }
    (void)meeting.arrive();
    meeting.wait_parity(round % 2 != 0);
    EXPECT(meeting.try_wait_parity(round % 2 != 0));
    sum += s[(threadIdx.x + 1) % kThreads];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

int main() {
  int *in, *out;
  const int count = kThreads * kBatches;
  cudaMallocManaged(&in, count * sizeof(int));
  cudaMallocManaged(&out, count * sizeof(int));
  for (int i = 0; i < count; ++i) in[i] = i * 7 % 1000;
  unified<1><<<1, kThreads>>>(in, out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < count; ++i) CHECK(out[i] == in[i ^ 1] * 2);
  unified<3><<<1, kThreads>>>(in, out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < count; ++i) CHECK(out[i] == in[i ^ 1] * 2);
  for (auto* kernel : {&roles<false>, &roles<true>}) {
    for (int i = 0; i < count; ++i) out[i] = -1;
    kernel<<<1, kThreads>>>(in, out);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < count; ++i)
      CHECK(out[i] == (i % kThreads < 96 ? in[i / kThreads * kThreads + 95 - i % kThreads] : -1));
  }
  of_threads<<<1, kThreads>>>(in, out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < kThreads; ++i) CHECK(out[i] == in[kThreads - 1 - i]);
  parities<<<1, kThreads>>>(in, out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 8; i < kThreads - 1; ++i) CHECK(out[i] == 8 * in[i + 1] + 28);
  return summary();
}
