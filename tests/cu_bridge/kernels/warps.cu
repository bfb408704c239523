// Warp operations.
#include "case.h"

__global__ void warp_sum(const float* x, float* out) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = v;
}
CASE(sum_by_five_shuffles) {
  auto x = Array<float>::of(1024, [](size_t i) { return float(i % 97); });
  Array<float> out(32);
  warp_sum<<<4, 256>>>(x.data(), out.data());
  DONE();
  auto& v = out.get();
  for (int w = 0; w < 32; ++w) {
    float sum = 0;
    for (int i = 0; i < 32; ++i) sum += float((w * 32 + i) % 97);
    EXPECT(v[w] == sum);
  }
}

__global__ void shuffles(int* out) {
  int t = threadIdx.x, *o = out + t * 8;
  o[0] = __shfl_sync(0xffffffffu, t * 10, 5);
  o[1] = __shfl_sync(0xffffffffu, t * 10, t + 3, 8);
  o[2] = __shfl_up_sync(0xffffffffu, t, 3);
  o[3] = __shfl_up_sync(0xffffffffu, t, 3, 8);
  o[4] = __shfl_down_sync(0xffffffffu, t, 3);
  o[5] = __shfl_down_sync(0xffffffffu, t, 3, 8);
  o[6] = __shfl_xor_sync(0xffffffffu, t, 5);
  o[7] = __shfl_xor_sync(0xffffffffu, t, 12, 8);
}
CASE(shuffles_of_all_kinds_and_widths) {
  Array<int> out(64 * 8);
  shuffles<<<1, 64>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int t = 0; t < 64; ++t) {
    const int w = t & ~31, l = t & 31;
    const int* o = &v[t * 8];
    EXPECT(o[0] == (w + 5) * 10);
    EXPECT(o[1] == (w + (l & ~7) + ((l + 3) & 7)) * 10);  // t + 3 modulo the width
    EXPECT(o[2] == (l >= 3 ? t - 3 : t));
    EXPECT(o[3] == ((l & 7) >= 3 ? t - 3 : t));
    EXPECT(o[4] == (l + 3 < 32 ? t + 3 : t));
    EXPECT(o[5] == ((l & 7) + 3 < 8 ? t + 3 : t));
    EXPECT(o[6] == (t ^ 5));
    EXPECT(o[7] == ((l ^ 12) >= (l & ~7) + 8 ? t : (w | (l ^ 12))));
  }
}

__global__ void wide(double* d, long long* l, unsigned long long* u) {
  int t = threadIdx.x;
  d[t] = __shfl_xor_sync(0xffffffffu, t + 0.25, 1);
  l[t] = __shfl_xor_sync(0xffffffffu, -(1LL << 40) - t, 1);
  u[t] = __shfl_xor_sync(0xffffffffu, (1ULL << 63) + t, 1);
}
CASE(shuffles_of_eight_bytes) {
  Array<double> d(32);
  Array<long long> l(32);
  Array<unsigned long long> u(32);
  wide<<<1, 32>>>(d.data(), l.data(), u.data());
  DONE();
  for (int t = 0; t < 32; ++t) {
    EXPECT(d.get()[t] == (t ^ 1) + 0.25);
    EXPECT(l.get()[t] == -(1LL << 40) - (t ^ 1));
    EXPECT(u.get()[t] == (1ULL << 63) + (t ^ 1));
  }
}

__global__ void votes(unsigned* out) {
  int t = threadIdx.x;
  unsigned ballot = __ballot_sync(0xffffffffu, t % 3 == 0);
  int any = __any_sync(0xffffffffu, t == 40), all = __all_sync(0xffffffffu, t < 32);
  out[t * 3] = ballot;
  out[t * 3 + 1] = any;
  out[t * 3 + 2] = all;
}
CASE(votes_of_each_warp) {
  Array<unsigned> out(64 * 3);
  votes<<<1, 64>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int t = 0; t < 64; ++t) {
    unsigned expected = 0;
    for (int i = 0; i < 32; ++i) expected |= ((t & ~31) + i) % 3 == 0 ? 1u << i : 0;
    EXPECT(v[t * 3] == expected && v[t * 3 + 1] == (t >= 32) && v[t * 3 + 2] == (t < 32));
  }
}

__global__ void halves(int* out) {
  int t = threadIdx.x;
  unsigned mask = t < 16 ? 0x0000ffffu : 0xffff0000u;
  int v = t;
  if (t < 16) {
    for (int o = 8; o > 0; o /= 2) v += __shfl_xor_sync(mask, v, o, 16);
  } else {
    for (int o = 1; o < 16; o *= 2) v = max(v, __shfl_xor_sync(mask, v, o, 16));
  }
  out[t] = v;
}
CASE(parts_of_a_warp_go_their_own_way) {
  Array<int> out(32);
  halves<<<1, 32>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int t = 0; t < 32; ++t) EXPECT(v[t] == (t < 16 ? 120 : 31));
}

__global__ void matches(unsigned* out) {
  int t = threadIdx.x, same;
  out[t * 3] = __match_any_sync(0xffffffffu, t % 5);
  out[t * 3 + 1] = __match_all_sync(0xffffffffu, 42.0f, &same);
  out[t * 3 + 2] = __match_all_sync(0xffffffffu, t / 31, &same) + same;
}
CASE(match_any_and_all) {
  Array<unsigned> out(32 * 3);
  matches<<<1, 32>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int t = 0; t < 32; ++t) {
    unsigned expected = 0;
    for (int i = 0; i < 32; ++i) expected |= i % 5 == t % 5 ? 1u << i : 0;
    EXPECT(v[t * 3] == expected && v[t * 3 + 1] == 0xffffffffu && v[t * 3 + 2] == 0);
  }
}

__global__ void reductions(int* out) {
  int t = threadIdx.x, *o = out + t * 7;
  o[0] = __reduce_add_sync(0xffffffffu, t - 10);
  o[1] = __reduce_min_sync(0xffffffffu, t - 10);
  o[2] = __reduce_max_sync(0xffffffffu, t - 10);
  o[3] = (int)__reduce_max_sync(0xffffffffu, (unsigned)(t - 10));
  o[4] = (int)__reduce_and_sync(0xffffffffu, 0xf0u | t);
  o[5] = (int)__reduce_or_sync(0xffffffffu, 1u << (t % 4));
  o[6] = (int)__reduce_xor_sync(0xffffffffu, (unsigned)t * 3);
}
CASE(reductions_of_a_warp) {
  Array<int> out(32 * 7);
  reductions<<<1, 32>>>(out.data());
  DONE();
  unsigned x = 0;
  for (unsigned t = 0; t < 32; ++t) x ^= t * 3;
  auto& v = out.get();
  for (int t = 0; t < 32; ++t) {
    const int* o = &v[t * 7];
    EXPECT(o[0] == 31 * 16 - 320 && o[1] == -10 && o[2] == 21 && o[3] == -1);
    EXPECT(o[4] == 0xf0 - 0 && o[5] == 15 && unsigned(o[6]) == x);
  }
}

__global__ void short_block(int* out) {
  int v = 1;
  for (int o = 16; o > 0; o /= 2) {
    int other = __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 + o < (blockDim.x - threadIdx.x / 32 * 32)) v += other;
  }
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}
CASE(a_warp_that_is_not_full) {
  Array<int> out(2);
  short_block<<<1, 40>>>(out.data());
  DONE();
  EXPECT(out.get()[0] == 32);
  EXPECT(out.get()[1] == 8);
}

__global__ void through_shared(int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t;
  __syncwarp();
  int v = s[t ^ 1];
  __syncwarp();
  s[t] = v * 2;
  __syncwarp();
  out[t] = s[t ^ 1];
}
CASE(syncwarp_orders_shared_memory) {
  Array<int> out(64);
  through_shared<<<1, 64>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int t = 0; t < 64; ++t) EXPECT(v[t] == t * 2);
}

__global__ void aggregated(int* counter, int* seen) {
  if (threadIdx.x % 3 == 0) {
    unsigned active = __activemask();
    int leader = __ffs(active) - 1, lane = threadIdx.x % 32, base = 0;
    if (lane == leader) base = atomicAdd(counter, __popc(active));
    base = __shfl_sync(active, base, leader);
    seen[base + __popc(active & ((1u << lane) - 1))] = threadIdx.x;
  }
}
CASE(activemask_aggregates_an_atomic) {
  Array<int> counter(1), seen(64, -1);
  aggregated<<<1, 96>>>(counter.data(), seen.data());
  DONE();
  EXPECT(counter.get()[0] == 32);
  std::vector<int> sorted(seen.get().begin(), seen.get().begin() + 32);
  bool all[96] = {};
  for (int x : sorted) all[x] = true;
  for (int i = 0; i < 96; ++i) EXPECT(all[i] == (i % 3 == 0));
}

__global__ void block_of_warps(const int* x, int* out) {
  __shared__ int part[32];
  int v = x[blockIdx.x * blockDim.x + threadIdx.x], lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = lane < blockDim.x / 32 ? part[lane] : 0;
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    if (lane == 0) out[blockIdx.x] = v;
  }
}
CASE(warp_and_block_operations_together) {
  auto x = Array<int>::of(512 * 6, [](size_t i) { return int(i % 101); });
  Array<int> out(6);
  block_of_warps<<<6, 512>>>(x.data(), out.data());
  DONE();
  auto& v = out.get();
  for (int b = 0; b < 6; ++b) {
    int sum = 0;
    for (int i = 0; i < 512; ++i) sum += (b * 512 + i) % 101;
    EXPECT(v[b] == sum);
  }
}

// Lanes that count on their step, through volatile memory and without a barrier.
__device__ void sum_in_step(volatile int* s, int t) {
  s[t] += s[t + 16];
  s[t] += s[t + 8];
  s[t] += s[t + 4];
  s[t] += s[t + 2];
  s[t] += s[t + 1];
}
__global__ void sums_in_step(const int* x, int* out) {
  __shared__ int s[96];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) s[t] += s[t + 32];
  __syncthreads();
  if (t < 32) sum_in_step(s, t);
  if (t == 0) out[blockIdx.x] = s[0];
}
template <class T>
__global__ void sums_with_a_variable(const T* x, T* out) {
  __shared__ volatile T s[64];
  const int t = threadIdx.x;
  T sum = x[t];
  s[t] = sum;
  s[t + 32] = 0;
  s[t] = sum = sum + s[t + 16];
  s[t] = sum = sum + s[t + 8];
  for (int k = 4; k > 0; k >>= 1) s[t] = sum = sum + s[t + k];
  if (t == 0) out[0] = sum;
}
struct Scan {
  volatile int* s;
  __device__ int operator()(int value, int lane) const {
    volatile int* mine = s + lane;
    mine[0] = value;
    if (lane >= 1) mine[0] += mine[-1];
    if (lane >= 2) mine[0] += mine[-2];
    if (lane >= 4) mine[0] += mine[-4];
    if (lane >= 8)
      mine[0] += mine[-8];
    else
      mine[0] = mine[0];
    if (lane >= 16) mine[0] += mine[-16];
    return mine[0];
  }
};
__global__ void scans_in_step(const int* x, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  out[t] = Scan{s + t / 32 * 32}(x[t], t % 32);
}
__global__ void halves_in_step(const int* x, int* out) {
  __shared__ volatile int s[32];
  const int t = threadIdx.x;
  int half = 16;
  s[t] = x[t];
  while (half > 0) {
    if (t < half) s[t] += s[t + half];
    half /= 2;
  }
  if (t == 0) *out = s[0];
}
// Extremes as libraries write them: a call with a comma between its operands, and one more store in the statement.
__global__ void extremes_in_step(const int* x, int* least, int* most) {
  __shared__ int low[64];
  __shared__ volatile int high[64];
  const int t = threadIdx.x;
  low[t] = low[t + 32] = x[t];
  high[t] = high[t + 32] = x[t];
  volatile int* s = low;
  for (int k = 16; k > 0; k /= 2) {
    s[t] = min(s[t], s[t + k]);
    high[t] = max(high[t], high[t + k]), *most = high[0];
  }
  if (t == 0) *least = s[0];
}
CASE(lanes_that_count_on_their_step) {
  auto x = Array<int>::of(128, [](size_t i) { return int(i * i % 101); });
  auto wide = Array<double>::of(32, [](size_t i) { return double(i) / 4; });
  Array<int> sums(2), scans(64), halves(1), least(1), most(1);
  Array<double> wideSum(1);
  sums_in_step<<<2, 64>>>(x.data(), sums.data());
  scans_in_step<<<1, 64>>>(x.data(), scans.data());
  halves_in_step<<<1, 32>>>(x.data(), halves.data());
  extremes_in_step<<<1, 32>>>(x.data() + 3, least.data(), most.data());
  sums_with_a_variable<<<1, 32>>>(wide.data(), wideSum.data());
  DONE();
  auto& s = scans.get();
  int low = x[3], high = x[3];
  for (int i = 3; i < 35; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  EXPECT(least.get()[0] == low && most.get()[0] == high);
  int total = 0;
  for (int i = 0; i < 128; ++i) {
    total = (i % 64 == 0 ? 0 : total) + x[i];
    if (i % 64 == 63) EXPECT(sums.get()[i / 64] == total);
  }
  for (int i = 0, scan = 0; i < 64; ++i) {
    scan = (i % 32 == 0 ? 0 : scan) + x[i];
    EXPECT(s[i] == scan);
    if (i == 31) EXPECT(halves.get()[0] == scan);
  }
  EXPECT(wideSum.get()[0] == 31 * 32 / 2 / 4.0);
}
