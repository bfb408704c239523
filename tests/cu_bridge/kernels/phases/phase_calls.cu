// Kernels that call functions of their own between waits, change their parameters, and wait by cooperative groups: cucc
// makes phases of them (fits_…), or must keep the threads' stacks (keeps_…). phases.cu has the rest.
#include <cooperative_groups.h>

#include <algorithm>

#include "../case.h"

namespace cg = cooperative_groups;

using namespace two_blocks;

#define RUN(...) [](int* in, int* out) { __VA_ARGS__<<<2, kThreads>>>(in, out); }

__global__ void fits_two_counters(const int* in, int* out) {
  __shared__ int s[kThreads];
  int total = 0;
  for (int a = blockIdx.x * kThreads, b = 0; b < 3; a += 1, b++) {
    s[threadIdx.x] = in[a - b + threadIdx.x] * (b + 1);
    __syncthreads();
    total += s[kThreads - 1 - threadIdx.x];
    __syncthreads();
  }
  out[blockIdx.x * kThreads + threadIdx.x] = total;
}
CASE(a_loop_with_two_counters) {
  check(RUN(fits_two_counters), [](int b, int t) { return 6 * of(b, kThreads - 1 - t); });
}

__global__ void fits_changed_parameters(const int* in, int* out) {
  in += blockIdx.x * blockDim.x + threadIdx.x;
  out += blockIdx.x * blockDim.x;
  __shared__ int s[kThreads];
  s[threadIdx.x] = in[0];
  __syncthreads();
  out += threadIdx.x;
  __syncthreads();
  *out = s[kThreads - 1 - threadIdx.x] + *in;
}
CASE(parameters_that_each_thread_changes) {
  check(RUN(fits_changed_parameters), [](int b, int t) { return of(b, kThreads - 1 - t) + of(b, t); });
}

__device__ inline int greatest(int a, int b) { return a > b ? a : b; }
template <int kFactor>
__device__ int scaled(const int* list, int place) {
  int value = list[place];
  for (int i = 1; i < kFactor; ++i) value += list[place];
  return greatest(value, 0);
}
__global__ void fits_group_and_calls(const int* in, int* out) {
  cg::thread_block block = cg::this_thread_block();
  __shared__ int s[kThreads];
  const unsigned rank = block.thread_rank();
  s[rank] = in[blockIdx.x * kThreads + rank];
  cg::sync(block);
  int v = scaled<3>(s, (rank + 1) % kThreads);
  block.sync();
  s[rank] = greatest(v, 30);
  block.sync();
  out[blockIdx.x * kThreads + rank] = s[kThreads - 1 - rank];
}
CASE(barriers_of_a_group_and_functions_that_do_not_wait) {
  check(RUN(fits_group_and_calls), [](int b, int t) {
    const int v = 3 * of(b, (kThreads - t) % kThreads);
    return v > 30 ? v : 30;
  });
}

__device__ inline void ordered(int& a, int& b, int up) {
  if ((a > b) == (up != 0)) {
    int t = a;
    a = b;
    b = t;
  }
}
// Batcher's bitonic network over a block's values, as programs write it.
__global__ void fits_sorting_network(const int* in, int* out) {
  auto block = cg::this_thread_block();
  __shared__ int s[kThreads];
  s[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  for (int size = 2; size < kThreads; size <<= 1) {
    int up = (threadIdx.x & (size / 2)) == 0;
    for (int stride = size / 2; stride > 0; stride >>= 1) {
      block.sync();
      int place = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      if (threadIdx.x < kThreads / 2) ordered(s[place], s[place + stride], up);
    }
  }
  for (int stride = kThreads / 2; stride > 0; stride >>= 1) {
    block.sync();
    int place = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
    if (threadIdx.x < kThreads / 2) ordered(s[place], s[place + stride], 1);
  }
  block.sync();
  out[blockIdx.x * kThreads + threadIdx.x] = s[threadIdx.x];
}
CASE(a_network_of_functions_that_change_what_they_are_given) {
  check(RUN(fits_sorting_network), [](int b, int t) {
    std::vector<int> all;
    for (int i = 0; i < kThreads; ++i) all.push_back(of(b, i));
    std::sort(all.begin(), all.end());
    return all[t];
  });
}

__device__ inline void raise(int& value, int by) { value += by; }
// What a function changes is each thread's own, though no assignment shows it.
__global__ void fits_changed_by_a_call(const int* in, int* out, int start) {
  int n = blockDim.x, kept = 5;
  raise(start, threadIdx.x);
  raise(n, threadIdx.x);
  __syncthreads();
  raise(kept, n);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = start * 1000 + n + kept + 0 * in[0];
}
CASE(what_a_call_changes_is_each_threads_own) {
  check([](int* in, int* out) { fits_changed_by_a_call<<<2, kThreads>>>(in, out, 7); },
        [](int, int t) { return (7 + t) * 1000 + 2 * (kThreads + t) + 5; });
}

__global__ void fits_variables_of_two_scopes(const int* in, int* out) {
  __shared__ int s[kThreads];
  int total = 0;
  {
    const int v = in[blockIdx.x * kThreads + threadIdx.x];
    s[threadIdx.x] = v;
    __syncthreads();
    total += v;
  }
  {
    const int v = s[kThreads - 1 - threadIdx.x] * 10;
    __syncthreads();
    total += v;
  }
  out[blockIdx.x * kThreads + threadIdx.x] = total;
}
CASE(variables_of_one_name_in_two_scopes) {
  check(RUN(fits_variables_of_two_scopes), [](int b, int t) { return of(b, t) + 10 * of(b, kThreads - 1 - t); });
}

// ---- What may not become phases -------------------------------------------------------------------------------------

__device__ int turned(cg::thread_block block, int v) {
  __shared__ int s[kThreads];
  s[threadIdx.x] = v;
  block.sync();
  const int other = s[kThreads - 1 - threadIdx.x];
  block.sync();
  return other;
}
__device__ int turned_twice(cg::thread_block block, int v) { return turned(block, turned(block, v) + 1); }
__global__ void fits_call_of_a_call(const int* in, int* out) {
  cg::thread_block block = cg::this_thread_block();
  const int v = turned_twice(block, in[blockIdx.x * kThreads + threadIdx.x]);
  block.sync();
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(a_function_that_calls_one_that_waits) {
  check(RUN(fits_call_of_a_call), [](int b, int t) { return of(b, t) + 1; });
}

__device__ int fewer(int n) { return n < 2 ? n : fewer(n - 1) + 1; }
__global__ void fits_recursion(const int* in, int* out) {
  const int v = fewer(in[blockIdx.x * kThreads + threadIdx.x]);
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(a_function_that_calls_itself) {
  check(RUN(fits_recursion), [](int b, int t) { return of(b, t); });
}

__global__ void keeps_counter_handed_on(const int* in, int* out) {
  int total = 0;
  for (int i = 0; i < 4; ++i) {
    raise(i, threadIdx.x & 1);
    __syncthreads();
    total += i;
    if (threadIdx.x >= kThreads) total += in[0];
  }
  out[blockIdx.x * kThreads + threadIdx.x] = total;
}
CASE(a_counter_that_a_function_changes) {
  auto in = Array<int>::of(1, [](size_t) { return 0; });
  Array<int> out(1, -1);
  keeps_counter_handed_on<<<1, 1>>>(in.data(), out.data());
  DONE();
  EXPECT(out.get()[0] == 6);
}

__device__ int* place_of(int& value) { return &value; }
__global__ void keeps_address_through_a_call(const int* in, int* out) {
  int own = in[blockIdx.x * kThreads + threadIdx.x];
  int* p = place_of(own);
  __syncthreads();
  *p += 2;
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = own;
}
CASE(an_address_that_a_function_gives) {
  check(RUN(keeps_address_through_a_call), [](int b, int t) { return of(b, t) + 2; });
}

__device__ int& same(int& value) { return value; }
__global__ void keeps_reference_through_a_call(const int* in, int* out) {
  int own = in[blockIdx.x * kThreads + threadIdx.x];
  int* p = &same(own);
  __syncthreads();
  *p += 2;
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = own;
}
CASE(a_reference_that_a_function_gives) {
  check(RUN(keeps_reference_through_a_call), [](int b, int t) { return of(b, t) + 2; });
}

// ---- Atomic functions that threads may wait by ----------------------------------------------------------------------

// More exchanges than a thread may try before it lets others run.
__global__ void fits_exchanges_in_a_counted_loop(const int* in, int* out) {
  __shared__ int first[kThreads];
  first[threadIdx.x] = -1;
  __syncthreads();
  for (int i = 0; i < kThreads; ++i) {
    if (atomicCAS(&first[i], -1, 1) == -1) atomicExch(&first[i], in[blockIdx.x * kThreads + i]);
  }
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = first[threadIdx.x];
}
CASE(exchanges_in_a_counted_loop) { check(RUN(fits_exchanges_in_a_counted_loop), of); }

__device__ void add_by_exchange(int* to, int value) {
  int old = *to, assumed;
  do {
    assumed = old;
    old = atomicCAS(to, assumed, value + assumed);
  } while (assumed != old);
}
__global__ void fits_exchange_that_is_tried_again(const int* in, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int i = 0; i < 40; ++i) add_by_exchange(&sum, in[blockIdx.x * kThreads + threadIdx.x]);
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}
CASE(an_exchange_that_is_tried_again) {
  check(RUN(fits_exchange_that_is_tried_again), [](int b, int) {
    int sum = 0;
    for (int t = 0; t < kThreads; ++t) sum += 40 * of(b, t);
    return sum;
  });
}

// The sum of doubles as programs had it before there was one.
__device__ double add_double(double* to, double value) {
  unsigned long long int* place = (unsigned long long int*)to;
  unsigned long long int old = *place, assumed;
  do {
    assumed = old;
    old = atomicCAS(place, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__global__ void fits_sum_of_doubles_by_exchange(const int* in, int* out) {
  __shared__ double sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int i = 0; i < 40; ++i) add_double(&sum, in[blockIdx.x * kThreads + threadIdx.x] * 0.5);
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = int(2 * sum);
}
CASE(a_sum_of_doubles_by_exchange) {
  check(RUN(fits_sum_of_doubles_by_exchange), [](int b, int) {
    int sum = 0;
    for (int t = 0; t < kThreads; ++t) sum += 40 * of(b, t);
    return sum;
  });
}

// Each thread waits for the one behind it.
__global__ void keeps_turns_by_exchange(const int* in, int* out) {
  __shared__ int turn;
  if (threadIdx.x == 0) turn = kThreads;
  __syncthreads();
  const int own = threadIdx.x;
  while (atomicCAS(&turn, own + 1, own) != own + 1) {
  }
  out[blockIdx.x * kThreads + own] = in[blockIdx.x * kThreads + own];
}
CASE(turns_by_exchange) { check(RUN(keeps_turns_by_exchange), of); }

__device__ void take(int* lock, int free) {
  for (int tries = 0;; ++tries) {
    if (atomicCAS(lock, free, -2) == free) return;
  }
}
__global__ void keeps_lock_in_a_function(const int* in, int* out) {
  __shared__ int lock;
  if (threadIdx.x == 0) lock = kThreads;
  __syncthreads();
  const int own = threadIdx.x;
  take(&lock, own + 1);
  out[blockIdx.x * kThreads + own] = in[blockIdx.x * kThreads + own];
  atomicExch(&lock, own);
}
CASE(a_lock_in_a_function) { check(RUN(keeps_lock_in_a_function), of); }

// Votes.
__global__ void fits_votes(const int* in, int* out) {
  const int t = threadIdx.x;
  int v = in[blockIdx.x * kThreads + t];
  const int count = __syncthreads_count(v > 12);
  const unsigned odd = __ballot_sync(0xffffffff, v & 1);
  int some = 0;
  some += __any_sync(~0u, v > 28) * 2;
  int every = __all_sync(0xffffffffu, t >= 32);
  // A predicate is an int.
  const bool fraction = __syncthreads_or(0.5f);
  bool all = __syncthreads_and(v >= 0);
  if (t < 32) {
    const unsigned own = __ballot_sync(0xffffffff, t & 2);
    some += own == 0xccccccccu ? 8 : 0;
  }
  all &= !fraction && __popc(odd) >= 0;
  out[blockIdx.x * kThreads + t] = count + 1000 * (odd >> (t & 31) & 1) + 10000 * some + 1000000 * every + all;
}
CASE(votes_of_warps_and_blocks) {
  check(RUN(fits_votes), [](int b, int t) {
    int count = 0, any = 0;
    for (int i = 0; i < kThreads; ++i) count += of(b, i) > 12;
    for (int i = t / 32 * 32; i < t / 32 * 32 + 32; ++i) any |= of(b, i) > 28;
    return count + 1000 * (of(b, t) & 1) + 10000 * (2 * any + (t < 32 ? 8 : 0)) + 1000000 * (t >= 32) + 1;
  });
}

// The largest value of all before each thread, in as many rounds as that takes, or in four.
__global__ void fits_until_all_agree(const int* in, int* out) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * kThreads + t];
  int changed = 1, rounds = 0;
  while (changed) {
    __syncthreads();
    const int before = t > 0 ? s[t - 1] : -1, mine = s[t];
    changed = __syncthreads_or(before > mine);
    s[t] = before > mine ? before : mine;
    rounds++;
    if (rounds == 4) break;
  }
  __syncthreads();
  const int left = __syncthreads_count(t > 0 && s[t] < s[t - 1]);
  if (left == 0) {
    s[t] += 100;
    __syncthreads();
  }
  out[blockIdx.x * kThreads + t] = s[t] + 1000 * rounds;
}
CASE(a_loop_that_goes_on_by_a_vote) {
  check(RUN(fits_until_all_agree), [](int b, int t) {
    int s[kThreads], next[kThreads], rounds = 0;
    for (int i = 0; i < kThreads; ++i) s[i] = of(b, i);
    for (bool changed = true; changed && rounds < 4; ++rounds) {
      changed = false;
      for (int i = 0; i < kThreads; ++i) {
        next[i] = i > 0 && s[i - 1] > s[i] ? s[i - 1] : s[i];
        changed |= next[i] != s[i];
      }
      std::copy(next, next + kThreads, s);
    }
    const bool sorted = std::is_sorted(s, s + kThreads);
    return s[t] + (sorted ? 100 : 0) + 1000 * rounds;
  });
}

// The votes of warps differ, and only some threads vote.
__global__ void keeps_going_by_warps(const int* in, int* out) {
  int v = in[blockIdx.x * kThreads + threadIdx.x], go = 1, rounds = 0;
  while (go) {
    go = __any_sync(0xffffffffu, v > 3 && rounds < 2);
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    rounds++;
  }
  out[blockIdx.x * kThreads + threadIdx.x] = rounds;
}
CASE(loops_that_go_on_by_votes_of_warps) {
  check(RUN(keeps_going_by_warps), [](int, int) { return 3; });
}

// Votes as conditions.
__global__ void fits_asked_votes(const int* in, int* out, int n) {
  __shared__ int s[kThreads];
  const int t = threadIdx.x;
  int v = in[blockIdx.x * kThreads + t] & 15, rounds = 0, more = 0, k = 0;
  while (__syncthreads_or(v > 2)) {
    rounds++;
    s[t] = v;
    __syncthreads();
    if (v > 0) v--;
    if (rounds == 3) continue;
    more += s[kThreads - 1 - t] & 1;
  }
  do {
    __syncthreads();
    s[t] = rounds + k;
    if (__syncthreads_count(t < k) > 4) break;
    more += s[(t + 1) % kThreads];
    k++;
  } while (__syncthreads_and(k < n) && k < 100);
  if (__syncthreads_count(v == 2) != kThreads) {
    s[t] = v;
    __syncthreads();
    more += 1000 * s[kThreads - 1 - t];
  } else {
    more = -1;
  }
  if (__any_sync(0xffffffff, t == 40))
    more += 100000;
  else
    more += 200000;
  out[blockIdx.x * kThreads + t] = more;
}
CASE(conditions_that_are_votes) {
  const auto expected = [](int n) {
    return [n](int b, int t) {
      const auto own = [&](int i) { return of(b, i) & 15; };
      int most = 0, more = 0, k = 0;
      for (int i = 0; i < kThreads; ++i) most = std::max(most, own(i));
      const int rounds = std::max(most - 2, 0);
      for (int i = 0; i < rounds; ++i) more += i == 2 ? 0 : std::max(own(kThreads - 1 - t) - i, 0) & 1;
      do {
        if (k > 4) break;
        more += rounds + k++;
      } while (k < n);
      more += 1000 * std::max(own(kThreads - 1 - t) - rounds, 0);
      return more + (t / 32 == 1 ? 100000 : 200000);
    };
  };
  for (int n : {3, 50}) {
    check([n](int* in, int* out) { fits_asked_votes<<<2, kThreads>>>(in, out, n); }, expected(n));
  }
}

__global__ void keeps_vote_that_may_not_be_reached(const int* in, int* out) {
  int v = in[blockIdx.x * kThreads + threadIdx.x];
  if (v >= 0 && __syncthreads_or(v > 2)) {
    v += 1;
    __syncthreads();
  }
  out[blockIdx.x * kThreads + threadIdx.x] = v;
}
CASE(a_vote_that_may_not_be_reached) {
  check(RUN(keeps_vote_that_may_not_be_reached), [](int b, int t) { return of(b, t) + 1; });
}
