// Whether an iterator's elements lie in memory one behind another, and the pointer to them.
#pragma once

#include <iterator>
#include <type_traits>

#include "../detail/vector.h"

namespace thrust {

template <class Iterator>
struct proclaim_contiguous_iterator : std::false_type {};
namespace detail {
template <class Iterator>
struct is_contiguous : std::is_pointer<Iterator> {};
template <class T>
struct is_contiguous<device_ptr<T>> : std::true_type {};
// Of std::vector, and so of host_vector.
template <class T, class C>
struct is_contiguous<__gnu_cxx::__normal_iterator<T, C>> : std::true_type {};
}  // namespace detail
template <class Iterator>
struct is_contiguous_iterator
    : std::bool_constant<detail::is_contiguous<Iterator>::value || proclaim_contiguous_iterator<Iterator>::value> {};
template <class Iterator>
constexpr bool is_contiguous_iterator_v = is_contiguous_iterator<Iterator>::value;

template <class Iterator>
__host__ __device__ auto unwrap_contiguous_iterator(Iterator it) {
  static_assert(is_contiguous_iterator<Iterator>::value, "the elements lie anywhere");
  if constexpr (std::is_pointer<Iterator>::value) {
    return it;
  } else if constexpr (detail::on_device<Iterator>::value) {
    return it.get();
  } else {
    return &*it;
  }
}
template <class Iterator>
using unwrap_contiguous_iterator_t = decltype(unwrap_contiguous_iterator(std::declval<Iterator>()));

}  // namespace thrust
#define THRUST_PROCLAIM_CONTIGUOUS_ITERATOR(...)                          \
  namespace thrust {                                                      \
  template <>                                                             \
  struct proclaim_contiguous_iterator<__VA_ARGS__> : ::std::true_type {}; \
  }
