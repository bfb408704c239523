// Reductions: plain loops over indices, in the order that thrust documents.
#pragma once

#include "elementwise.h"

namespace thrust {
namespace detail {
namespace algorithm {

struct transform_reduce {
  template <class I, class F, class T, class Op>
  MXMACA_OP T operator()(I first, I last, F f, T init, Op op) const {
    auto in = unwrapped(first);
    return mxmaca::pairwise(last - first, init, op, [&](Size i) { return static_cast<T>(f(in[i])); });
  }
};
struct reduce {
  template <class I, class T, class Op>
  MXMACA_OP T operator()(I first, I last, T init, Op op) const {
    auto in = unwrapped(first);
    return mxmaca::pairwise(last - first, init, op, [&](Size i) { return static_cast<T>(in[i]); });
  }
  template <class I, class T>
  MXMACA_OP T operator()(I first, I last, T init) const {
    return (*this)(first, last, init, thrust::plus<T>());
  }
  template <class I>
  MXMACA_OP Value<I> operator()(I first, I last) const {
    return (*this)(first, last, Value<I>(), thrust::plus<Value<I>>());
  }
};
struct inner_product {
  template <class I, class J, class T, class Op1, class Op2>
  MXMACA_OP T operator()(I first, I last, J second, T init, Op1 add, Op2 multiply) const {
    auto a = unwrapped(first);
    auto b = unwrapped(second);
    return mxmaca::pairwise(last - first, init, add, [&](Size i) { return static_cast<T>(multiply(a[i], b[i])); });
  }
  template <class I, class J, class T>
  MXMACA_OP T operator()(I first, I last, J second, T init) const {
    return (*this)(first, last, second, init, thrust::plus<T>(), thrust::multiplies<T>());
  }
};
struct count_if {
  template <class I, class P>
  MXMACA_OP Size operator()(I first, I last, P p) const {
    auto in = unwrapped(first);
    const Size n = last - first;
    Size found = 0;
    for (Size i = 0; i < n; ++i) found += p(in[i]) ? 1 : 0;
    return found;
  }
};
struct count {
  template <class I, class T>
  MXMACA_OP Size operator()(I first, I last, T value) const {
    return count_if()(first, last, Is<T>{value});
  }
};
struct find_if {
  template <class I, class P>
  MXMACA_OP I operator()(I first, I last, P p) const {
    auto in = unwrapped(first);
    const Size n = last - first;
    Size i = 0;
    while (i < n && !p(in[i])) ++i;
    return first + i;
  }
};
struct find_if_not {
  template <class I, class P>
  MXMACA_OP I operator()(I first, I last, P p) const {
    return find_if()(first, last, Not<P>{p});
  }
};
struct find {
  template <class I, class T>
  MXMACA_OP I operator()(I first, I last, T value) const {
    return find_if()(first, last, Is<T>{value});
  }
};
struct any_of {
  template <class I, class P>
  MXMACA_OP bool operator()(I first, I last, P p) const {
    return find_if()(first, last, p) != last;
  }
};
struct all_of {
  template <class I, class P>
  MXMACA_OP bool operator()(I first, I last, P p) const {
    return find_if_not()(first, last, p) == last;
  }
};
struct none_of {
  template <class I, class P>
  MXMACA_OP bool operator()(I first, I last, P p) const {
    return !any_of()(first, last, p);
  }
};
struct mismatch {
  template <class I, class J, class P>
  MXMACA_OP std::pair<I, J> operator()(I first, I last, J second, P p) const {
    auto a = unwrapped(first);
    auto b = unwrapped(second);
    const Size n = last - first;
    Size i = 0;
    while (i < n && p(a[i], b[i])) ++i;
    return std::pair<I, J>(first + i, second + i);
  }
  template <class I, class J>
  MXMACA_OP std::pair<I, J> operator()(I first, I last, J second) const {
    return (*this)(first, last, second, thrust::equal_to<>());
  }
};
struct equal {
  template <class I, class J, class P>
  MXMACA_OP bool operator()(I first, I last, J second, P p) const {
    return mismatch()(first, last, second, p).first == last;
  }
  template <class I, class J>
  MXMACA_OP bool operator()(I first, I last, J second) const {
    return (*this)(first, last, second, thrust::equal_to<>());
  }
};
struct minmax_element {
  template <class I, class C>
  MXMACA_OP std::pair<I, I> operator()(I first, I last, C less) const {
    auto in = unwrapped(first);
    const Size n = last - first;
    Size low = 0, high = 0;
    for (Size i = 1; i < n; ++i) {
      if (less(in[i], in[low])) low = i;
      if (less(in[high], in[i])) high = i;
    }
    return std::pair<I, I>(first + low, first + high);
  }
  template <class I>
  MXMACA_OP std::pair<I, I> operator()(I first, I last) const {
    return (*this)(first, last, thrust::less<>());
  }
};
struct min_element {
  template <class I, class... C>
  MXMACA_OP I operator()(I first, I last, C... less) const {
    return minmax_element()(first, last, less...).first;
  }
};
struct max_element {
  template <class I, class... C>
  MXMACA_OP I operator()(I first, I last, C... less) const {
    return minmax_element()(first, last, less...).second;
  }
};

}  // namespace algorithm
}  // namespace detail
}  // namespace thrust
