// What the algorithms share, and those that give each element its value: one function object each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include "../../../mxmaca/arithmetic/pairwise.h"
#include "../../functional.h"
#include "../../pair.h"
#include "../../tuple.h"
#include "../iterators.h"
#include "../policy.h"

namespace thrust {
namespace detail {
namespace algorithm {

using Size = std::ptrdiff_t;

// Room for n values, default-constructible or not.
template <class T>
class Buffer {
 public:
  template <class Iterator>
  __host__ __device__ Buffer(Iterator first, Size n)
      : n_(n), values_(std::allocator<T>().allocate(static_cast<std::size_t>(n > 0 ? n : 1))) {
    for (Size i = 0; i < n; ++i) new (values_ + i) T(first[i]);
  }
  Buffer(const Buffer&) = delete;
  __host__ __device__ ~Buffer() {
    for (Size i = 0; i < n_; ++i) values_[i].~T();
    std::allocator<T>().deallocate(values_, static_cast<std::size_t>(n_ > 0 ? n_ : 1));
  }
  __host__ __device__ T* begin() { return values_; }
  __host__ __device__ T* end() { return values_ + n_; }
  __host__ __device__ T& operator[](Size i) { return values_[i]; }

 private:
  Size n_;
  T* values_;
};

template <class I>
using Value = iterator_value_t<decltype(unwrapped(std::declval<I>()))>;
// The value type of the input where the output has none (discard).
template <class O, class Other>
using ValueOr =
    std::conditional_t<std::is_same<Value<O>, any_assign>::value || std::is_void<Value<O>>::value, Other, Value<O>>;

#define MXMACA_OP __host__ __device__

struct for_each_n {
  template <class I, class N, class F>
  MXMACA_OP I operator()(I first, N n, F f) const {
    auto in = unwrapped(first);
    for (Size i = 0; i < static_cast<Size>(n); ++i) f(in[i]);
    return first + static_cast<Size>(n);
  }
};
struct for_each {
  template <class I, class F>
  MXMACA_OP I operator()(I first, I last, F f) const {
    return for_each_n()(first, last - first, f);
  }
};
struct transform {
  template <class I, class O, class F>
  MXMACA_OP O operator()(I first, I last, O out, F f) const {
    auto in = unwrapped(first);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) to[i] = f(in[i]);
    return out + n;
  }
  template <class I, class J, class O, class F>
  MXMACA_OP O operator()(I first, I last, J second, O out, F f) const {
    auto a = unwrapped(first);
    auto b = unwrapped(second);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
    return out + n;
  }
};
struct transform_if {
  template <class I, class O, class F, class P>
  MXMACA_OP O operator()(I first, I last, O out, F f, P p) const {
    return (*this)(first, last, first, out, f, p);
  }
  template <class I, class S, class O, class F, class P>
  MXMACA_OP O operator()(I first, I last, S stencil, O out, F f, P p) const {
    auto in = unwrapped(first);
    auto mask = unwrapped(stencil);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i])) to[i] = f(in[i]);
    }
    return out + n;
  }
  template <class I, class J, class S, class O, class F, class P>
  MXMACA_OP O operator()(I first, I last, J second, S stencil, O out, F f, P p) const {
    auto a = unwrapped(first);
    auto b = unwrapped(second);
    auto mask = unwrapped(stencil);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i])) to[i] = f(a[i], b[i]);
    }
    return out + n;
  }
};
struct copy {
  template <class I, class O>
  MXMACA_OP O operator()(I first, I last, O out) const {
    auto to = unwrapped(out);
    Size n = 0;
    using Category = typename std::iterator_traits<I>::iterator_category;
    if constexpr (std::is_convertible<Category, std::random_access_iterator_tag>::value) {
      auto in = unwrapped(first);
      n = last - first;
      for (Size i = 0; i < n; ++i) to[i] = in[i];
    } else {
      for (; first != last; ++first, ++n) to[n] = *first;
    }
    // A host container's iterator without random access is walked.
    std::advance(out, n);
    return out;
  }
};
struct copy_n {
  template <class I, class N, class O>
  MXMACA_OP O operator()(I first, N n, O out) const {
    return copy()(first, first + static_cast<Size>(n), out);
  }
};
struct copy_if {
  template <class I, class S, class O, class P>
  MXMACA_OP O operator()(I first, I last, S stencil, O out, P p) const {
    auto in = unwrapped(first);
    auto mask = unwrapped(stencil);
    auto to = unwrapped(out);
    const Size n = last - first;
    Size kept = 0;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i])) to[kept++] = in[i];
    }
    return out + kept;
  }
  template <class I, class O, class P>
  MXMACA_OP O operator()(I first, I last, O out, P p) const {
    return (*this)(first, last, first, out, p);
  }
};
template <class P>
struct Not {
  P p;
  template <class... T>
  MXMACA_OP bool operator()(const T&... values) const {
    return !p(values...);
  }
};
template <class T>
struct Is {
  T value;
  template <class U>
  MXMACA_OP bool operator()(const U& other) const {
    return other == value;
  }
};
struct remove_copy_if {
  template <class I, class O, class P>
  MXMACA_OP O operator()(I first, I last, O out, P p) const {
    return copy_if()(first, last, out, Not<P>{p});
  }
  template <class I, class S, class O, class P>
  MXMACA_OP O operator()(I first, I last, S stencil, O out, P p) const {
    return copy_if()(first, last, stencil, out, Not<P>{p});
  }
};
struct remove_copy {
  template <class I, class O, class T>
  MXMACA_OP O operator()(I first, I last, O out, T value) const {
    return remove_copy_if()(first, last, out, Is<T>{value});
  }
};
struct remove_if {
  template <class I, class P>
  MXMACA_OP I operator()(I first, I last, P p) const {
    return copy_if()(first, last, first, Not<P>{p});
  }
  template <class I, class S, class P>
  MXMACA_OP I operator()(I first, I last, S stencil, P p) const {
    return copy_if()(first, last, stencil, first, Not<P>{p});
  }
};
struct remove {
  template <class I, class T>
  MXMACA_OP I operator()(I first, I last, T value) const {
    return remove_if()(first, last, Is<T>{value});
  }
};
struct fill_n {
  template <class O, class N, class T>
  MXMACA_OP O operator()(O first, N n, T value) const {
    auto to = unwrapped(first);
    for (Size i = 0; i < static_cast<Size>(n); ++i) to[i] = value;
    return first + static_cast<Size>(n);
  }
};
struct fill {
  template <class O, class T>
  MXMACA_OP void operator()(O first, O last, T value) const {
    fill_n()(first, last - first, value);
  }
};
struct generate_n {
  template <class O, class N, class F>
  MXMACA_OP O operator()(O first, N n, F f) const {
    auto to = unwrapped(first);
    for (Size i = 0; i < static_cast<Size>(n); ++i) to[i] = f();
    return first + static_cast<Size>(n);
  }
};
struct generate {
  template <class O, class F>
  MXMACA_OP void operator()(O first, O last, F f) const {
    generate_n()(first, last - first, f);
  }
};
struct tabulate {
  template <class O, class F>
  MXMACA_OP void operator()(O first, O last, F f) const {
    auto to = unwrapped(first);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) to[i] = f(i);
  }
};
struct sequence {
  template <class O>
  MXMACA_OP void operator()(O first, O last) const {
    (*this)(first, last, Value<O>(0));
  }
  template <class O, class T>
  MXMACA_OP void operator()(O first, O last, T start) const {
    (*this)(first, last, start, T(1));
  }
  template <class O, class T>
  MXMACA_OP void operator()(O first, O last, T start, T step) const {
    auto to = unwrapped(first);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) to[i] = static_cast<Value<O>>(start + static_cast<T>(i) * step);
  }
};
struct replace_if {
  template <class I, class P, class T>
  MXMACA_OP void operator()(I first, I last, P p, T value) const {
    (*this)(first, last, first, p, value);
  }
  template <class I, class S, class P, class T>
  MXMACA_OP void operator()(I first, I last, S stencil, P p, T value) const {
    auto in = unwrapped(first);
    auto mask = unwrapped(stencil);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i])) in[i] = value;
    }
  }
};
struct replace {
  template <class I, class T>
  MXMACA_OP void operator()(I first, I last, T old, T value) const {
    replace_if()(first, last, Is<T>{old}, value);
  }
};
struct replace_copy_if {
  template <class I, class O, class P, class T>
  MXMACA_OP O operator()(I first, I last, O out, P p, T value) const {
    return (*this)(first, last, first, out, p, value);
  }
  template <class I, class S, class O, class P, class T>
  MXMACA_OP O operator()(I first, I last, S stencil, O out, P p, T value) const {
    auto in = unwrapped(first);
    auto mask = unwrapped(stencil);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i]))
        to[i] = value;
      else
        to[i] = in[i];
    }
    return out + n;
  }
};
struct replace_copy {
  template <class I, class O, class T>
  MXMACA_OP O operator()(I first, I last, O out, T old, T value) const {
    return replace_copy_if()(first, last, out, Is<T>{old}, value);
  }
};

}  // namespace algorithm
}  // namespace detail
}  // namespace thrust
