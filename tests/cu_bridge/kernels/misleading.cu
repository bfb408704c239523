// Kernels that look as if they could be loops between their waits in a simpler way than they can: values that live across
// waits, names that come again, aliases, branches and trip counts that are the same for all threads and do not show it.
#include <vector>

#include "case.h"

const int kSize = 256, kBlocks = 2;

// Runs the kernel for n = 1, 3, 4; `expected(in, n)` gives what a block writes.
template <class Kernel, class Expected>
void compare(Kernel kernel, Expected expected) {
  std::vector<int> values(kSize);
  for (int t = 0; t < kSize; ++t) values[t] = t * 37 % 101;
  Array<int> in = Array<int>::of(kSize, [&](size_t i) { return values[i]; });
  for (int n : {1, 3, 4}) {
    Array<int> out(kBlocks * kSize, -1);
    kernel<<<kBlocks, kSize>>>(in.data(), out.data(), n);
    DONE();
    const std::vector<int> wanted = expected(values, n);
    const auto& found = out.get();
    for (int i = 0; i < kBlocks * kSize; ++i) EXPECT(found[i] == wanted[i % kSize]);
  }
}
template <class Value>
std::vector<int> each(Value value) {
  std::vector<int> made(kSize);
  for (int t = 0; t < kSize; ++t) made[t] = value(t);
  return made;
}
typedef const std::vector<int>& In;

__global__ void running_sums(const int* in, int* out, int n) {
  __shared__ int s[kSize];
  int t = threadIdx.x;
  s[t] = in[t];
  int a = 0;
  __syncthreads();
  for (int i = 0; i < n; i++) {
    a += s[(t + i) % kSize];
    __syncthreads();
    s[t] = a;
    __syncthreads();
  }
  out[blockIdx.x * kSize + t] = a;
}
CASE(a_sum_lives_across_the_waits_of_a_loop) {
  compare(running_sums, [](In in, int n) {
    std::vector<int> s = in, a(kSize);
    for (int i = 0; i < n; ++i) {
      for (int t = 0; t < kSize; ++t) a[t] += s[(t + i) % kSize];
      s = a;
    }
    return a;
  });
}

__global__ void shadowed(const int* in, int* out, int n) {
  __shared__ int s[kSize];
  int t = threadIdx.x;
  int v = t;
  {
    int v = in[t];
    s[t] = v;
  }
  __syncthreads();
  v += s[kSize - 1 - t];
  __syncthreads();
  out[blockIdx.x * kSize + t] = v;
}
CASE(an_inner_variable_has_the_name_of_one_that_lives_on) {
  compare(shadowed, [](In in, int) { return each([&](int t) { return t + in[kSize - 1 - t]; }); });
}

__global__ void broadcast_sum(const int* in, int* out, int n) {
  int t = threadIdx.x;
  int v = in[t];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffff, v, d);
  v = __shfl_sync(0xffffffff, v, 0);
  out[blockIdx.x * kSize + t] = v;
}
CASE(a_shuffled_variable_is_shuffled_again) {
  compare(broadcast_sum, [](In in, int) {
    return each([&](int t) {
      int sum = 0;
      for (int lane = 0; lane < 32; ++lane) sum += in[t / 32 * 32 + lane];
      return sum;
    });
  });
}

__global__ void branch_that_waits(const int* in, int* out, int n) {
  __shared__ int s[kSize];
  int t = threadIdx.x, u = t;
  s[t] = in[t];
  __syncthreads();
  if (n > 2) {
    u = s[(t * 7) % kSize];
    __syncthreads();
    s[t] = u + 1;
  }
  __syncthreads();
  out[blockIdx.x * kSize + t] = s[(t + 3) % kSize] + u;
}
CASE(a_variable_is_changed_in_a_branch_that_waits) {
  compare(branch_that_waits, [](In in, int n) {
    return each([&](int t) {
      const int other = (t + 3) % kSize;
      return n > 2 ? in[other * 7 % kSize] + 1 + in[t * 7 % kSize] : in[other] + t;
    });
  });
}

__global__ void one_thread_differs(const int* in, int* out, int n) {
  __shared__ int s[kSize];
  int t = threadIdx.x;
  int m = n;
  s[t] = in[t];
  if (t == 5) m = n + 1;
  __syncthreads();
  int r = 0;
  for (int i = 0; i < n; i++) {
    r += s[(t + i + m) % kSize];
    __syncthreads();
  }
  out[blockIdx.x * kSize + t] = r;
}
CASE(a_copy_of_a_parameter_differs_in_one_thread) {
  compare(one_thread_differs, [](In in, int n) {
    return each([&](int t) {
      int r = 0;
      for (int i = 0; i < n; ++i) r += in[(t + i + n + (t == 5)) % kSize];
      return r;
    });
  });
}

__global__ void pointer_into_shared(const int* in, int* out, int n) {
  __shared__ int s[kSize];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  int* p = &s[t];
  int x = *p;
  __syncthreads();
  s[kSize - 1 - t] = x * 2;
  __syncthreads();
  out[blockIdx.x * kSize + t] = *p;
}
CASE(a_pointer_into_shared_memory_lives_on) {
  compare(pointer_into_shared, [](In in, int) { return each([&](int t) { return in[kSize - 1 - t] * 2; }); });
}

__global__ void read_total(const int* in, int* out, int n) {
  __shared__ int total;
  int t = threadIdx.x;
  if (t == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, in[t]);
  __syncthreads();
  int limit = total;
  __syncthreads();
  if (t == 0) total = 1;
  __syncthreads();
  out[blockIdx.x * kSize + t] = limit + total;
}
CASE(a_value_of_shared_memory_is_kept_while_that_changes) {
  compare(read_total, [](In in, int) {
    int sum = 1;
    for (int value : in) sum += value;
    return std::vector<int>(kSize, sum);
  });
}

__global__ void warp_scan(const int* in, int* out, int n) {
  int t = threadIdx.x;
  int v = in[t];
  for (int d = 1; d < 32; d *= 2) {
    int w = __shfl_up_sync(~0u, v, d);
    if ((t & 31) >= d) v += w;
  }
  out[blockIdx.x * kSize + t] = v;
}
CASE(a_scan_by_shuffles_adds_in_some_lanes) {
  compare(warp_scan, [](In in, int) {
    return each([&](int t) {
      int sum = 0;
      for (int from = t / 32 * 32; from <= t; ++from) sum += in[from];
      return sum;
    });
  });
}

__global__ void groups_of_eight(const int* in, int* out, int n) {
  int t = threadIdx.x;
  int v = in[t];
  for (int d = 4; d > 0; d /= 2) v = max(v, __shfl_xor_sync(0xffffffffu, v, d, 8));
  int q = __shfl_sync(0xffffffff, v, t ^ 1);
  out[blockIdx.x * kSize + t] = v * 1000 + q;
}
CASE(a_shuffle_within_the_arguments_of_a_function) {
  compare(groups_of_eight, [](In in, int) {
    return each([&](int t) {
      int most = 0;
      for (int k = 0; k < 8; ++k) most = std::max(most, in[t / 8 * 8 + k]);
      return most * 1001;
    });
  });
}

__global__ void tree_and_tail(const int* in, int* out, int n) {
  __shared__ int s[kSize];
  int t = threadIdx.x;
  unsigned i = t;
  s[i] = in[t];
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) s[1] = s[0] * 2;
  __syncthreads();
  out[blockIdx.x * kSize + t] = s[1] + i;
}
CASE(one_thread_writes_between_two_waits) {
  compare(tree_and_tail, [](In in, int) {
    int sum = 0;
    for (int value : in) sum += value;
    return each([&](int t) { return 2 * sum + t; });
  });
}

// Nothing of these may be taken for the same in all threads, or for free of waits.
struct Slot {
  int value, turn;
};
#define WAIT_HERE    \
  do {               \
    __syncthreads(); \
  } while (0)
__global__ void hidden_waits(const int* in, int* out, int n) {
  __shared__ Slot slots[kSize];
  const int t = threadIdx.x;
  slots[t] = {in[t], t};
  auto next = [&](int step) {
    __syncthreads();
    int v = slots[(t + step) % kSize].value;
    __syncthreads();
    return v;
  };
  int kept[2] = {0, 0};
  for (int i = 0; i < n; ++i) {
    if (t > 5000) break;
    kept[i & 1] += next(i + 1);
    WAIT_HERE;
    slots[t].value += (i == 1 && kept[1] > 0) ? 1 : 0;
  }
  WAIT_HERE;
  if (t == 3) {
    out[blockIdx.x * kSize + t] = -4;
    return;
  }
  WAIT_HERE;
  out[blockIdx.x * kSize + t] = kept[0] * 3 + kept[1] + slots[t].turn;
}
CASE(waits_hide_in_macros_and_lambdas_and_some_threads_end_early) {
  compare(hidden_waits, [](In in, int n) {
    std::vector<int> value = in, first(kSize), second(kSize);
    for (int i = 0; i < n; ++i) {
      auto& kept = i & 1 ? second : first;
      for (int t = 0; t < kSize; ++t) kept[t] += value[(t + i + 1) % kSize];
      for (int t = 0; t < kSize && i == 1; ++t) value[t] += second[t] > 0;
    }
    return each([&](int t) { return t == 3 ? -4 : first[t] * 3 + second[t] + t; });
  });
}

__global__ void switches_and_jumps(const int* in, int* out, int n) {
  __shared__ int s[kSize];
  const int t = threadIdx.x;
  int v = in[t];
  int& alias = v;
  int turns = 0;
again:
  switch (n & 3) {
    case 1: alias += 1;
    case 3:
      s[t] = v;
      __syncthreads();
      v += s[(t + 1) % kSize];
      break;
    default: v = v > 10 && __shfl_xor_sync(__activemask(), t, 0) == t ? v - 10 : v;
  }
  __syncthreads();
  if (++turns < 2) goto again;
  out[blockIdx.x * kSize + t] = alias;
}
CASE(waits_within_a_switch_and_behind_a_label) {
  compare(switches_and_jumps, [](In in, int n) {
    std::vector<int> v = in;
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<int> s = v;
      for (int t = 0; t < kSize; ++t) s[t] += n == 1;
      for (int t = 0; t < kSize; ++t) v[t] = n == 4 ? (v[t] > 10 ? v[t] - 10 : v[t]) : s[t] + s[(t + 1) % kSize];
    }
    return v;
  });
}

// ---- Aliases of a thread's own variables that outlive a wait -------------------------------------------------------------
__global__ void pointer_to_own(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  int v = in[t];
  int* p = &v;
  float2 pair = make_float2(v, t);
  const float* of_pair = &pair.x;
  __syncthreads();
  out[blockIdx.x * kSize + t] = *p + n * int(of_pair[0] + 2 * of_pair[1]);
}
CASE(a_pointer_to_a_variable_of_the_thread_lives_on) {
  compare(pointer_to_own, [](In in, int n) { return each([&](int t) { return in[t] + n * (in[t] + 2 * t); }); });
}

__global__ void pointer_set_later(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  int v = in[t] + n;
  const int* p = in;
  p = (const int*)&v;
  __syncthreads();
  out[blockIdx.x * kSize + t] = *p;
}
CASE(a_pointer_is_later_set_to_a_variable_of_the_thread) {
  compare(pointer_set_later, [](In in, int n) { return each([&](int t) { return in[t] + n; }); });
}

__global__ void pointer_to_array(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  int values[2];
  values[0] = in[t];
  values[1] = t;
  int* p = values;
  __syncthreads();
  out[blockIdx.x * kSize + t] = p[0] + n * p[1];
}
CASE(a_pointer_to_an_array_of_the_thread_lives_on) {
  compare(pointer_to_array, [](In in, int n) { return each([&](int t) { return in[t] + n * t; }); });
}

__global__ void pointer_in_shared(const int* in, int* out, int n) {
  __shared__ int* places[kSize];
  const int t = threadIdx.x;
  int v = in[t] * n;
  places[t] = &v;
  __syncthreads();
  out[blockIdx.x * kSize + t] = *places[t];
}
CASE(shared_memory_keeps_a_pointer_to_a_variable_of_the_thread) {
  compare(pointer_in_shared, [](In in, int n) { return each([&](int t) { return in[t] * n; }); });
}

__global__ void one_of_two(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  int a = 5, b = 6, c = 7, d = 8;
  (t & 1 ? a : b) = n;
  ++(t & 2 ? c : d);
  int& chosen = t & 4 ? a : d;
  chosen += 100;
  __syncthreads();
  out[blockIdx.x * kSize + t] = a + 10 * b + 1000 * c + 10000 * d + in[0];
}
CASE(one_of_two_variables_is_changed) {
  compare(one_of_two, [](In in, int n) {
    return each([&](int t) {
      int a = t & 1 ? n : 5, b = t & 1 ? 6 : n, c = t & 2 ? 8 : 7, d = t & 2 ? 8 : 9;
      (t & 4 ? a : d) += 100;
      return a + 10 * b + 1000 * c + 10000 * d + in[0];
    });
  });
}

__global__ void deduced_pointer(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  auto* p = in;
  p += t;
  __syncthreads();
  out[blockIdx.x * kSize + t] = *p * n;
}
CASE(a_pointer_of_deduced_type_lives_on) {
  compare(deduced_pointer, [](In in, int n) { return each([&](int t) { return in[t] * n; }); });
}

__global__ void guarded_shuffle(const int* in, int* out, int n) {
  const int t = threadIdx.x;
  const int* maybe = n > 1 ? in : nullptr;
  int v = n > 1 ? __shfl_xor_sync(0xffffffff, maybe[t], 1) : t;
  bool both = n > 1 && __shfl_sync(0xffffffff, maybe[t], 0) == in[t / 32 * 32];
  out[blockIdx.x * kSize + t] = v + both;
}
CASE(the_value_of_a_shuffle_that_is_not_reached_is_not_computed) {
  compare(guarded_shuffle, [](In in, int n) { return each([&](int t) { return n > 1 ? in[t ^ 1] + 1 : t; }); });
}
