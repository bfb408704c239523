// Barriers by number, in inline PTX and as functions: groups of warps that meet by themselves, producers that only arrive, votes.
#include "../../check.h"

__device__ void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ void arrive(int barrier, int threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Each pair of warps turns its own numbers round, as often as its number says: a barrier of all threads would not fit.
__global__ void groups(int* out) {
  __shared__ int numbers[256];
  const int group = threadIdx.x / 64, first = group * 64, lane = threadIdx.x % 64;
  numbers[threadIdx.x] = threadIdx.x;
  for (int round = 0; round <= group; ++round) {
    __barrier_sync_count(1 + group, 64);
    const int taken = numbers[first + (lane + 1) % 64];
    meet(1 + group, 64);
    numbers[threadIdx.x] = taken;
  }
  out[threadIdx.x] = numbers[threadIdx.x];
}

// The first warp fills a buffer of two places, the second one empties it; neither waits for more than a place.
__global__ void pipeline(int* out, int steps) {
  __shared__ int buffer[2][32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < steps; ++i) {
      if (i >= 2) meet(3 + i % 2, 64);
      buffer[i % 2][31 - lane] = i * 100 + lane;
      __threadfence_block();
      arrive(1 + i % 2, 64);
    }
  } else {
    int sum = 0;
    for (int i = 0; i < steps; ++i) {
      meet(1 + i % 2, 64);
      sum = sum * 3 + buffer[i % 2][lane];
      if (i + 2 < steps) arrive(3 + i % 2, 64);
    }
    out[lane] = sum;
  }
}

// A warp of 16 lanes counts as a whole one, and so does one that has lost lanes.
__global__ void partial(int* out) {
  __shared__ int numbers[48];
  if (threadIdx.x == 5) return;
  numbers[threadIdx.x] = threadIdx.x;
  asm volatile("barrier.sync 7, 64;" ::: "memory");
  out[threadIdx.x] = numbers[47 - threadIdx.x];
}

__global__ void votes(const int* in, int* out) {
  const int group = threadIdx.x / 64;
  unsigned count;
  int all, any;
  asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %3, 0; bar.red.popc.u32 %0, %4, 64, p; bar.red.and.pred q, %4, 64, p;"
               " selp.s32 %1, 1, 0, q; barrier.cta.red.or.aligned.pred q, %4, 64, !p; selp.s32 %2, 1, 0, q; }"
               : "=r"(count), "=r"(all), "=r"(any)
               : "r"(in[threadIdx.x]), "r"(group + 1));
  out[threadIdx.x] = static_cast<int>(count) * 100 + all * 10 + any;
}

// Without a number of threads it is the whole block, those that have ended left out; 0 is __syncthreads().
__global__ void whole(int* out) {
  __shared__ int numbers[96];
  if (threadIdx.x >= 80) return;
  numbers[threadIdx.x] = threadIdx.x;
  __barrier_sync(15);
  const int taken = numbers[79 - threadIdx.x];
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 0;" ::: "memory");
  } else {
    asm volatile("barrier.sync.aligned %0;" ::"r"(0) : "memory");
  }
  numbers[threadIdx.x] = 2 * taken;
  asm volatile("bar.sync 15, 96;" ::: "memory");
  out[threadIdx.x] = numbers[threadIdx.x];
}

int main() {
  int *in, *out;
  CHECK(cudaMallocManaged(&in, 256 * sizeof(int)) == cudaSuccess);
  CHECK(cudaMallocManaged(&out, 256 * sizeof(int)) == cudaSuccess);
  groups<<<3, 256>>>(out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 256; ++i) CHECK(out[i] == i / 64 * 64 + (i % 64 + i / 64 + 1) % 64);

  const int steps = 9;
  pipeline<<<2, 64>>>(out, steps);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int lane = 0; lane < 32; ++lane) {
    int sum = 0;
    for (int i = 0; i < steps; ++i) sum = sum * 3 + i * 100 + 31 - lane;
    CHECK(out[lane] == sum);
  }

  out[5] = -1;
  partial<<<2, 48>>>(out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 48; ++i) CHECK(i == 42 || out[i] == (i == 5 ? -1 : 47 - i));

  for (int i = 0; i < 128; ++i) in[i] = i >= 64 || i % 4 == 0;
  votes<<<2, 128>>>(in, out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 128; ++i) CHECK(out[i] == (i < 64 ? 1601 : 6410));

  whole<<<2, 96>>>(out);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 80; ++i) CHECK(out[i] == 2 * (79 - i));
  return summary();
}
