// Threads that go round a loop until another thread has stored something: one that runs after them in their block, or
// one of a block that begins after theirs.
#include <cuda/atomic>

#include "case.h"

const int kTurns = 640;

// Thread 0 waits for the last thread, and each for the one behind it.
__global__ void waits_for_the_next(volatile int* done, int* order, int* next) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < kTurns)
    while (done[i + 1] == 0);
  order[i] = atomicAdd(next, 1);
  __threadfence();
  done[i] = 1;
}
CASE(loops_that_read_volatile_memory) {
  for (const int block : {kTurns, 64, 32}) {
    Array<int> done(kTurns), order(kTurns), next(1);
    waits_for_the_next<<<kTurns / block, block>>>(done.data(), order.data(), next.data());
    DONE();
    const auto& v = order.get();
    for (int i = 0; i < kTurns; ++i) EXPECT(v[i] == kTurns - 1 - i);
  }
}

// The same turns by other words.
__device__ void until(int* flags, int i, int style) {
  volatile int* seen = flags;
  bool again = true;
  if (style == 0)
    do {
      again = *(seen + i) == 0;
    } while (again);
  if (style == 1)
    for (;;)
      if (seen[i] != 0) break;
  if (style == 2)
    while (atomicAdd(&flags[i], 0) == 0) {
    }
  if (style == 3)
    while (flags[i] == 0) __threadfence();
  if (style == 4) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[i]);
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
  }
  if (style == 5)
    do
      again = __ldcv(flags + i) == 0;
    while (again);
  if (style == 6)
    while (again) {
      int value;
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flags + i) : "memory");
      again = value == 0;
    }
}
__global__ void waits_by_a_function(int* done, int* order, int* next, int style) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < kTurns) until(done, i + 1, style);
  order[i] = atomicAdd(next, 1);
  __threadfence();
  atomicExch(&done[i], 1);
}
CASE(other_loops_that_wait_for_a_flag) {
  for (int style = 0; style < 7; ++style) {
    Array<int> done(kTurns), order(kTurns), next(1);
    waits_by_a_function<<<kTurns / 128, 128>>>(done.data(), order.data(), next.data(), style);
    DONE();
    const auto& v = order.get();
    for (int i = 0; i < kTurns; ++i) EXPECT(v[i] == kTurns - 1 - i);
  }
}

// A barrier of the whole grid by a counter, in a kernel that is a loop between its waits.
__device__ volatile int arrived;
__global__ void grid_barrier(int* data, int rounds) {
  const int blocks = gridDim.x, own = blockIdx.x;
  for (int round = 1; round <= rounds; ++round) {
    if (threadIdx.x == 0) {
      data[own * rounds + round - 1] = round == 1 ? own : data[(own + 1) % blocks * rounds + round - 2] + 1;
      __threadfence();
      atomicAdd(const_cast<int*>(&arrived), 1);
      while (arrived < blocks * round);
    }
    __syncthreads();
  }
}
CASE(blocks_that_wait_for_all_others) {
  const int blocks = 48, rounds = 5;
  Array<int> data(blocks * rounds);
  grid_barrier<<<blocks, 96>>>(data.data(), rounds);
  DONE();
  const auto& v = data.get();
  for (int b = 0; b < blocks; ++b) {
    for (int r = 0; r < rounds; ++r) EXPECT(v[b * rounds + r] == (b + r) % blocks + r);
  }
}
