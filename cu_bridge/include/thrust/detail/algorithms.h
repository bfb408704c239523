// The algorithms under thrust's names: with an execution policy before the arguments, or without.
#pragma once

#include "algorithm/order.h"

#undef MXMACA_OP

namespace thrust {

#define MXMACA_ALGORITHM(name, implementation)                                  \
  template <class First, class... Rest>                                         \
  __host__ __device__ auto name(First first, Rest... rest) {                    \
    return detail::dispatch<detail::algorithm::implementation>(first, rest...); \
  }
#define MXMACA_SAME(name) MXMACA_ALGORITHM(name, name)
MXMACA_SAME(for_each)
MXMACA_SAME(for_each_n)
MXMACA_SAME(transform)
MXMACA_SAME(transform_if)
MXMACA_SAME(copy)
MXMACA_SAME(copy_n)
MXMACA_SAME(copy_if)
MXMACA_SAME(remove)
MXMACA_SAME(remove_if)
MXMACA_SAME(remove_copy)
MXMACA_SAME(remove_copy_if)
MXMACA_SAME(fill)
MXMACA_SAME(fill_n)
MXMACA_SAME(generate)
MXMACA_SAME(generate_n)
MXMACA_SAME(tabulate)
MXMACA_SAME(sequence)
MXMACA_SAME(replace)
MXMACA_SAME(replace_if)
MXMACA_SAME(replace_copy)
MXMACA_SAME(replace_copy_if)
MXMACA_SAME(reduce)
MXMACA_SAME(transform_reduce)
MXMACA_SAME(inner_product)
MXMACA_SAME(reduce_by_key)
MXMACA_SAME(count)
MXMACA_SAME(count_if)
MXMACA_SAME(find)
MXMACA_SAME(find_if)
MXMACA_SAME(find_if_not)
MXMACA_SAME(any_of)
MXMACA_SAME(all_of)
MXMACA_SAME(none_of)
MXMACA_SAME(mismatch)
MXMACA_SAME(equal)
MXMACA_SAME(min_element)
MXMACA_SAME(max_element)
MXMACA_SAME(minmax_element)
MXMACA_SAME(inclusive_scan)
MXMACA_SAME(exclusive_scan)
MXMACA_SAME(transform_inclusive_scan)
MXMACA_SAME(transform_exclusive_scan)
MXMACA_SAME(inclusive_scan_by_key)
MXMACA_SAME(exclusive_scan_by_key)
MXMACA_SAME(adjacent_difference)
MXMACA_SAME(gather)
MXMACA_SAME(gather_if)
MXMACA_SAME(scatter)
MXMACA_SAME(scatter_if)
MXMACA_SAME(reverse)
MXMACA_SAME(reverse_copy)
MXMACA_SAME(swap_ranges)
MXMACA_SAME(unique)
MXMACA_SAME(unique_copy)
MXMACA_SAME(unique_count)
MXMACA_SAME(unique_by_key)
MXMACA_SAME(unique_by_key_copy)
MXMACA_SAME(stable_partition)
MXMACA_ALGORITHM(partition, stable_partition)
MXMACA_SAME(stable_partition_copy)
MXMACA_ALGORITHM(partition_copy, stable_partition_copy)
MXMACA_SAME(partition_point)
MXMACA_SAME(is_partitioned)
MXMACA_SAME(stable_sort)
MXMACA_ALGORITHM(sort, stable_sort)
MXMACA_SAME(stable_sort_by_key)
MXMACA_ALGORITHM(sort_by_key, stable_sort_by_key)
MXMACA_SAME(is_sorted)
MXMACA_SAME(is_sorted_until)
MXMACA_SAME(lower_bound)
MXMACA_SAME(upper_bound)
MXMACA_SAME(binary_search)
MXMACA_SAME(equal_range)
MXMACA_ALGORITHM(merge, merge_keys<detail::algorithm::Merge::all>)
MXMACA_ALGORITHM(set_union, merge_keys<detail::algorithm::Merge::unite>)
MXMACA_ALGORITHM(set_intersection, merge_keys<detail::algorithm::Merge::intersect>)
MXMACA_ALGORITHM(set_difference, merge_keys<detail::algorithm::Merge::subtract>)
MXMACA_ALGORITHM(set_symmetric_difference, merge_keys<detail::algorithm::Merge::differ>)
MXMACA_ALGORITHM(merge_by_key, merge_by_key<detail::algorithm::Merge::all>)
MXMACA_ALGORITHM(set_union_by_key, merge_by_key<detail::algorithm::Merge::unite>)
MXMACA_SAME(set_intersection_by_key)
MXMACA_ALGORITHM(set_difference_by_key, merge_by_key<detail::algorithm::Merge::subtract>)
MXMACA_ALGORITHM(set_symmetric_difference_by_key, merge_by_key<detail::algorithm::Merge::differ>)
MXMACA_SAME(shuffle)
MXMACA_SAME(shuffle_copy)
MXMACA_ALGORITHM(uninitialized_fill, fill)
MXMACA_ALGORITHM(uninitialized_fill_n, fill_n)
MXMACA_ALGORITHM(uninitialized_copy, copy)
MXMACA_ALGORITHM(uninitialized_copy_n, copy_n)
#undef MXMACA_SAME
#undef MXMACA_ALGORITHM

template <class Iterator>
__host__ __device__ auto distance(Iterator first, Iterator last) {
  return last - first;
}
template <class Iterator, class Distance>
__host__ __device__ void advance(Iterator& iterator, Distance n) {
  iterator += n;
}
template <class Iterator>
__host__ __device__ Iterator next(Iterator iterator, std::ptrdiff_t n = 1) {
  return iterator + n;
}
template <class Iterator>
__host__ __device__ Iterator prev(Iterator iterator, std::ptrdiff_t n = 1) {
  return iterator - n;
}
template <class T>
__host__ __device__ constexpr T(max)(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T>
__host__ __device__ constexpr T(min)(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T, class Less>
__host__ __device__ constexpr T(max)(const T& a, const T& b, Less less) {
  return less(a, b) ? b : a;
}
template <class T, class Less>
__host__ __device__ constexpr T(min)(const T& a, const T& b, Less less) {
  return less(b, a) ? b : a;
}

}  // namespace thrust
