// Atomic functions, from many blocks at once.
#include <cuda/atomic>

#include "case.h"

__global__ void add_all(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  atomicAdd(i, -1);
  atomicAdd(u, 2u);
  atomicAdd(l, 1ULL << 33);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  atomicSub(i + 1, 3);
}
CASE(atomic_add_of_every_type) {
  Array<int> i(2);
  Array<unsigned> u(1);
  Array<unsigned long long> l(1);
  Array<float> f(1);
  Array<double> d(1);
  add_all<<<64, 128>>>(i.data(), u.data(), l.data(), f.data(), d.data());
  DONE();
  EXPECT(i.get()[0] == -8192 && i.get()[1] == -3 * 8192 && u.get()[0] == 16384);
  EXPECT(l.get()[0] == 8192ULL << 33 && f.get()[0] == 4096 && d.get()[0] == 2048);
}

__global__ void extremes(int* low, int* high, unsigned* ulow, unsigned* uhigh, long long* wide) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMin(low, 100 - t);
  atomicMax(high, t - 100);
  atomicMin(ulow, unsigned(t + 5));
  atomicMax(uhigh, unsigned(t));
  atomicMax(wide, (long long)t << 32);
}
CASE(atomic_min_and_max) {
  Array<int> low(1, 1000), high(1, -1000);
  Array<unsigned> ulow(1, ~0u), uhigh(1, 0);
  Array<long long> wide(1, -1);
  extremes<<<32, 64>>>(low.data(), high.data(), ulow.data(), uhigh.data(), wide.data());
  DONE();
  EXPECT(low.get()[0] == 100 - 2047 && high.get()[0] == 1947 && ulow.get()[0] == 5 && uhigh.get()[0] == 2047);
  EXPECT(wide.get()[0] == 2047LL << 32);
}

__global__ void bits(unsigned* a, unsigned* o, unsigned* x) {
  unsigned t = threadIdx.x;
  atomicAnd(a, ~(1u << (t % 32)));
  atomicOr(o, 1u << (t % 20));
  atomicXor(x, t * 2654435761u);
}
CASE(atomic_bits) {
  Array<unsigned> a(1, ~0u), o(1), x(1);
  bits<<<1, 128>>>(a.data(), o.data(), x.data());
  DONE();
  unsigned expected = 0;
  for (unsigned t = 0; t < 128; ++t) expected ^= t * 2654435761u;
  EXPECT(a.get()[0] == 0 && o.get()[0] == (1u << 20) - 1 && x.get()[0] == expected);
}

__global__ void wrap(unsigned* up, unsigned* down) {
  atomicInc(up, 9u);
  atomicDec(down, 9u);
}
CASE(atomic_inc_and_dec_wrap) {
  Array<unsigned> up(1), down(1, 3);
  wrap<<<1, 33>>>(up.data(), down.data());
  DONE();
  EXPECT(up.get()[0] == 33 % 10 && down.get()[0] == 0);
}

__device__ double add_by_cas(double* address, double value) {
  auto* word = (unsigned long long*)address;
  unsigned long long old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__global__ void cas_loop(double* sum) { add_by_cas(sum, threadIdx.x); }
CASE(compare_and_swap_loop) {
  Array<double> sum(1);
  cas_loop<<<16, 256>>>(sum.data());
  DONE();
  EXPECT(sum.get()[0] == 16 * 255 * 128.0);
}

__global__ void histogram(const unsigned char* x, unsigned* out, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&s[x[i]], 1u);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], s[threadIdx.x]);
}
CASE(histogram_in_shared_memory) {
  auto x = Array<unsigned char>::of(50000, [](size_t i) { return (unsigned char)(i * i % 256); });
  Array<unsigned> out(256);
  histogram<<<8, 256>>>(x.data(), out.data(), 50000);
  DONE();
  std::vector<unsigned> expected(256);
  for (size_t i = 0; i < 50000; ++i) ++expected[i * i % 256];
  EXPECT(out.get() == expected);
}

__global__ void exchange(int* slot, int* seen) {
  int mine = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int before = atomicExch(slot, mine);
  if (before) seen[before - 1] = 1;
}
CASE(every_exchanged_value_is_seen_once) {
  Array<int> slot(1), seen(1024);
  exchange<<<8, 128>>>(slot.data(), seen.data());
  DONE();
  int last = slot.get()[0];
  auto& v = seen.get();
  for (int i = 0; i < 1024; ++i) EXPECT(v[i] == (i + 1 != last));
}

__global__ void lock_in_a_block(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *count = *count + 1;
  __threadfence();
  atomicExch(lock, 0);
}
CASE(spin_lock_between_threads) {
  Array<int> lock(1), count(1);
  lock_in_a_block<<<4, 64>>>(lock.data(), count.data());
  DONE();
  EXPECT(count.get()[0] == 256);
}

__global__ void last_block(const int* x, int* partial, unsigned* arrived, int* out) {
  __shared__ bool last;
  int sum = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&partial[blockIdx.x], sum);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(arrived, gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += atomicAdd(&partial[i], 0);
    *out = total;
  }
}
CASE(the_last_block_adds_up) {
  auto x = Array<int>::of(40 * 64, [](size_t i) { return int(i); });
  Array<int> partial(40), out(1);
  Array<unsigned> arrived(1);
  last_block<<<40, 64>>>(x.data(), partial.data(), arrived.data(), out.data());
  DONE();
  EXPECT(out.get()[0] == 2560 * 2559 / 2);
}

__global__ void scopes(int* x) {
  atomicAdd_block(&x[0], 1);
  atomicAdd_system(&x[1], 1);
  atomicMax_block(&x[2], int(threadIdx.x));
  atomicCAS_system(&x[3], 0, 5);
}
CASE(atomics_of_every_scope) {
  Array<int> x(4);
  scopes<<<2, 32>>>(x.data());
  DONE();
  auto& v = x.get();
  EXPECT(v[0] == 64 && v[1] == 64 && v[2] == 31 && v[3] == 5);
}

// ---- Loops until another thread has stored something: one that runs later in its block, or one of a later block ----

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
  if (style == 0) do {
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
  if (style == 5) do
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

// The name is one that this distribution's own headers have for something else.
__device__ volatile int counter;
__device__ void meet(int count) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(const_cast<int*>(&counter), 1);
    while (counter < count);
  }
  __syncthreads();
}
__global__ void waits_for_all_blocks(const int* in, int* between, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  between[i] = in[i] + 1;
  meet(gridDim.x);
  out[i] = between[(i + 777) % n];
}
CASE(a_grid_waits_by_a_volatile_variable) {
  const int n = 64 * 256;
  auto in = Array<int>::of(n, [](size_t i) { return int(i); });
  Array<int> between(n), out(n);
  waits_for_all_blocks<<<64, 256>>>(in.data(), between.data(), out.data(), n);
  DONE();
  const auto& v = out.get();
  for (int i = 0; i < n; ++i) EXPECT(v[i] == (i + 777) % n + 1);
}
