// Sorting, searching, merging and sets.
#pragma once

#include "movement.h"

namespace thrust {
namespace detail {
namespace algorithm {

struct stable_sort {
  template <class I, class C>
  MXMACA_OP void operator()(I first, I last, C less) const {
    auto in = unwrapped(first);
    const Size n = last - first;
    if constexpr (std::is_pointer<decltype(in)>::value) {
      std::stable_sort(in, in + n, less);
    } else {
      Buffer<Value<I>> sorted(in, n);
      std::stable_sort(sorted.begin(), sorted.end(), less);
      for (Size i = 0; i < n; ++i) in[i] = sorted[i];
    }
  }
  template <class I>
  MXMACA_OP void operator()(I first, I last) const {
    (*this)(first, last, thrust::less<>());
  }
};
struct stable_sort_by_key {
  template <class K, class I, class C>
  MXMACA_OP void operator()(K first, K last, I values, C less) const {
    auto keys = unwrapped(first);
    auto in = unwrapped(values);
    const Size n = last - first;
    Buffer<Value<K>> old_keys(keys, n);
    Buffer<Value<I>> old_values(in, n);
    Buffer<Size> order(thrust::counting_iterator<Size>(0), n);
    std::stable_sort(order.begin(), order.end(), [&](Size a, Size b) { return less(old_keys[a], old_keys[b]); });
    for (Size i = 0; i < n; ++i) {
      keys[i] = old_keys[order[i]];
      in[i] = old_values[order[i]];
    }
  }
  template <class K, class I>
  MXMACA_OP void operator()(K first, K last, I values) const {
    (*this)(first, last, values, thrust::less<>());
  }
};
struct is_sorted_until {
  template <class I, class C>
  MXMACA_OP I operator()(I first, I last, C less) const {
    auto in = unwrapped(first);
    const Size n = last - first;
    for (Size i = 1; i < n; ++i) {
      if (less(in[i], in[i - 1])) return first + i;
    }
    return last;
  }
  template <class I>
  MXMACA_OP I operator()(I first, I last) const {
    return (*this)(first, last, thrust::less<>());
  }
};
struct is_sorted {
  template <class I, class... C>
  MXMACA_OP bool operator()(I first, I last, C... less) const {
    return is_sorted_until()(first, last, less...) == last;
  }
};

template <class I, class T, class C>
MXMACA_OP Size bound(I in, Size n, const T& value, C less, bool upper) {
  Size low = 0;
  while (n > 0) {
    const Size half = n / 2;
    const bool before = upper ? !less(value, in[low + half]) : less(in[low + half], value);
    if (before) {
      low += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return low;
}
#define MXMACA_SEARCH(name, one, many)                                                      \
  struct name {                                                                             \
    template <class I, class T, class C>                                                    \
    MXMACA_OP auto operator()(I first, I last, T value, C less) const {                     \
      auto in = unwrapped(first);                                                           \
      const Size n = last - first;                                                          \
      return one;                                                                           \
    }                                                                                       \
    template <class I, class T>                                                             \
    MXMACA_OP auto operator()(I first, I last, T value) const {                             \
      return (*this)(first, last, value, thrust::less<>());                                 \
    }                                                                                       \
    template <class I, class V, class O, class C>                                           \
    MXMACA_OP O operator()(I first, I last, V values, V values_last, O out, C less) const { \
      auto in = unwrapped(first);                                                           \
      auto wanted = unwrapped(values);                                                      \
      auto to = unwrapped(out);                                                             \
      const Size n = last - first, count = values_last - values;                            \
      for (Size i = 0; i < count; ++i) {                                                    \
        const Value<V> value = wanted[i];                                                   \
        to[i] = many;                                                                       \
      }                                                                                     \
      return out + count;                                                                   \
    }                                                                                       \
    template <class I, class V, class O>                                                    \
    MXMACA_OP O operator()(I first, I last, V values, V values_last, O out) const {         \
      return (*this)(first, last, values, values_last, out, thrust::less<>());              \
    }                                                                                       \
  };
template <class I, class T, class C>
MXMACA_OP bool contains(I in, Size n, const T& value, C less) {
  const Size i = bound(in, n, value, less, false);
  return i < n && !less(value, in[i]);
}
MXMACA_SEARCH(lower_bound, first + bound(in, n, value, less, false), bound(in, n, value, less, false))
MXMACA_SEARCH(upper_bound, first + bound(in, n, value, less, true), bound(in, n, value, less, true))
MXMACA_SEARCH(binary_search, contains(in, n, value, less), contains(in, n, value, less))
#undef MXMACA_SEARCH
struct equal_range {
  template <class I, class T, class C>
  MXMACA_OP std::pair<I, I> operator()(I first, I last, T value, C less) const {
    return std::pair<I, I>(lower_bound()(first, last, value, less), upper_bound()(first, last, value, less));
  }
  template <class I, class T>
  MXMACA_OP std::pair<I, I> operator()(I first, I last, T value) const {
    return (*this)(first, last, value, thrust::less<>());
  }
};

// Merging two sorted ranges with their values. Of equal keys, m in the first and n in the second range, a merge takes
// all, a union max(m, n), an intersection min(m, n) (from the first), a difference max(m - n, 0), a symmetric one |m -
// n|.
enum class Merge { all, unite, intersect, subtract, differ };
template <Merge kind>
struct merge_by_key {
  template <class K1, class K2, class I1, class I2, class OK, class OV, class C>
  MXMACA_OP std::pair<OK, OV> operator()(K1 first1, K1 last1, K2 first2, K2 last2, I1 values1, I2 values2, OK keys_out,
                                         OV values_out, C less) const {
    auto a = unwrapped(first1);
    auto b = unwrapped(first2);
    auto x = unwrapped(values1);
    auto y = unwrapped(values2);
    auto to_keys = unwrapped(keys_out);
    auto to_values = unwrapped(values_out);
    const Size m = last1 - first1, n = last2 - first2;
    Size i = 0, j = 0, out = 0;
    while (i < m || j < n) {
      const bool only_first = i < m && (j >= n || less(a[i], b[j]));
      const bool only_second = !only_first && j < n && (i >= m || less(b[j], a[i]));
      if (only_first) {
        if (kind != Merge::intersect) {
          to_keys[out] = a[i];
          to_values[out++] = x[i];
        }
        ++i;
      } else if (only_second) {
        if (kind == Merge::all || kind == Merge::unite || kind == Merge::differ) {
          to_keys[out] = b[j];
          to_values[out++] = y[j];
        }
        ++j;
      } else {
        if (kind == Merge::all || kind == Merge::unite || kind == Merge::intersect) {
          to_keys[out] = a[i];
          to_values[out++] = x[i];
        }
        ++i;
        // A merge writes the second's equal keys after all of the first's.
        if (kind != Merge::all) ++j;
      }
    }
    return std::pair<OK, OV>(keys_out + out, values_out + out);
  }
  template <class K1, class K2, class I1, class I2, class OK, class OV>
  MXMACA_OP std::pair<OK, OV> operator()(K1 first1, K1 last1, K2 first2, K2 last2, I1 values1, I2 values2, OK keys_out,
                                         OV values_out) const {
    return (*this)(first1, last1, first2, last2, values1, values2, keys_out, values_out, thrust::less<>());
  }
};
// An intersection has values of the first range only.
struct set_intersection_by_key {
  template <class K1, class K2, class I1, class OK, class OV, class C>
  MXMACA_OP std::pair<OK, OV> operator()(K1 first1, K1 last1, K2 first2, K2 last2, I1 values1, OK keys_out,
                                         OV values_out, C less) const {
    return merge_by_key<Merge::intersect>()(first1, last1, first2, last2, values1, values1, keys_out, values_out, less);
  }
  template <class K1, class K2, class I1, class OK, class OV>
  MXMACA_OP std::pair<OK, OV> operator()(K1 first1, K1 last1, K2 first2, K2 last2, I1 values1, OK keys_out,
                                         OV values_out) const {
    return (*this)(first1, last1, first2, last2, values1, keys_out, values_out, thrust::less<>());
  }
};
template <Merge kind>
struct merge_keys {
  template <class I, class J, class O, class C>
  MXMACA_OP O operator()(I first1, I last1, J first2, J last2, O out, C less) const {
    const thrust::constant_iterator<char> nothing(0);
    return merge_by_key<kind>()(first1, last1, first2, last2, nothing, nothing, out, thrust::discard_iterator<>(), less)
        .first;
  }
  template <class I, class J, class O>
  MXMACA_OP O operator()(I first1, I last1, J first2, J last2, O out) const {
    return (*this)(first1, last1, first2, last2, out, thrust::less<>());
  }
};

struct shuffle_copy {
  template <class I, class O, class G>
  MXMACA_OP void operator()(I first, I last, O out, G generator) const {
    auto to = unwrapped(out);
    const Size n = last - first;
    Buffer<Value<I>> values(unwrapped(first), n);
    std::shuffle(values.begin(), values.end(), generator);
    for (Size i = 0; i < n; ++i) to[i] = values[i];
  }
};
struct shuffle {
  template <class I, class G>
  MXMACA_OP void operator()(I first, I last, G generator) const {
    shuffle_copy()(first, last, first, generator);
  }
};

}  // namespace algorithm
}  // namespace detail
}  // namespace thrust
