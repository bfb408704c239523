// Scans over a group, in the order of the ranks.
#pragma once

#include "reduce.h"

#ifdef __CUDACC__
namespace cooperative_groups {

template <class Group, class T, class Op>
__device__ auto inclusive_scan(const Group& group, T&& value, Op&& op) {
  std::decay_t<T> sum = value;
  const unsigned count = static_cast<unsigned>(group.num_threads()), rank = static_cast<unsigned>(group.thread_rank());
  for (unsigned offset = 1; offset < count; offset *= 2) {
    const std::decay_t<T> other = group.shfl_up(sum, offset);
    if (rank >= offset) sum = op(other, sum);
  }
  return sum;
}
template <class Group, class T>
__device__ auto inclusive_scan(const Group& group, T&& value) {
  return inclusive_scan(group, value, plus<>());
}
// The first thread gets T(): the identity of a sum.
template <class Group, class T, class Op>
__device__ auto exclusive_scan(const Group& group, T&& value, Op&& op) {
  const auto inclusive = inclusive_scan(group, value, op);
  const std::decay_t<T> before = group.shfl_up(inclusive, 1);
  return group.thread_rank() == 0 ? std::decay_t<T>() : before;
}
template <class Group, class T>
__device__ auto exclusive_scan(const Group& group, T&& value) {
  return exclusive_scan(group, value, plus<>());
}

}  // namespace cooperative_groups
#endif
