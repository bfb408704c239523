// Reductions over a group; every thread has the result.
#pragma once

// Programs that take the time count on the clocks, which come with it.
#include <chrono>

#include "../cooperative_groups.h"

#ifdef __CUDACC__
namespace cooperative_groups {

template <class T = void>
struct plus {
  template <class A, class B>
  __device__ constexpr auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
template <class T = void>
struct less {
  template <class A>
  __device__ constexpr A operator()(const A& a, const A& b) const {
    return b < a ? b : a;
  }
};
template <class T = void>
struct greater {
  template <class A>
  __device__ constexpr A operator()(const A& a, const A& b) const {
    return a < b ? b : a;
  }
};
template <class T = void>
struct bit_and {
  template <class A, class B>
  __device__ constexpr auto operator()(const A& a, const B& b) const {
    return a & b;
  }
};
template <class T = void>
struct bit_or {
  template <class A, class B>
  __device__ constexpr auto operator()(const A& a, const B& b) const {
    return a | b;
  }
};
template <class T = void>
struct bit_xor {
  template <class A, class B>
  __device__ constexpr auto operator()(const A& a, const B& b) const {
    return a ^ b;
  }
};

// By halves, so that the order does not depend on which lanes they are; any size of group.
template <class Group, class T, class Op>
__device__ auto reduce(const Group& group, T&& value, Op&& op) {
  std::decay_t<T> sum = value;
  const unsigned count = static_cast<unsigned>(group.num_threads()), rank = static_cast<unsigned>(group.thread_rank());
  for (unsigned offset = 1; offset < count; offset *= 2) {
    const std::decay_t<T> other = group.shfl_down(sum, offset);
    if (rank % (2 * offset) == 0 && rank + offset < count) sum = op(sum, other);
  }
  return group.shfl(sum, 0);
}
template <class Group, class T, class Op>
__device__ void reduce_update_async(const Group& group, T& target, T value, Op&& op) {
  const T sum = reduce(group, value, op);
  if (group.thread_rank() == 0) {
    T old = __atomic_load_n(&target, __ATOMIC_RELAXED), next;
    do {
      next = op(old, sum);
    } while (!__atomic_compare_exchange_n(&target, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }
}
template <class Group, class T, class Op>
__device__ void reduce_store_async(const Group& group, T* target, T value, Op&& op) {
  const T sum = reduce(group, value, op);
  if (group.thread_rank() == 0) *target = sum;
}

}  // namespace cooperative_groups
#endif
