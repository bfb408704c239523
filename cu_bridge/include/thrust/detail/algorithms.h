// The algorithms, one function object each: plain loops over indices. The functions at the end give them thrust's names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include "../../mxmaca/pairwise.h"
#include "../functional.h"
#include "../pair.h"
#include "../tuple.h"
#include "iterators.h"
#include "policy.h"

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

// ---- Reductions -----------------------------------------------------------------------------------------------------------
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

// ---- Scans ------------------------------------------------------------------------------------------------------------------
struct transform_inclusive_scan {
  template <class I, class O, class F, class Op>
  MXMACA_OP O operator()(I first, I last, O out, F f, Op op) const {
    using T = std::decay_t<decltype(f(unwrapped(first)[0]))>;
    auto in = unwrapped(first);
    auto to = unwrapped(out);
    const Size n = last - first;
    if (n <= 0) return out;
    T sum = f(in[0]);
    to[0] = sum;
    for (Size i = 1; i < n; ++i) to[i] = sum = static_cast<T>(op(sum, f(in[i])));
    return out + n;
  }
  template <class I, class O, class F, class T, class Op>
  MXMACA_OP O operator()(I first, I last, O out, F f, T init, Op op) const {
    auto in = unwrapped(first);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) to[i] = init = static_cast<T>(op(init, f(in[i])));
    return out + n;
  }
};
struct inclusive_scan {
  template <class I, class O, class Op>
  MXMACA_OP O operator()(I first, I last, O out, Op op) const {
    return transform_inclusive_scan()(first, last, out, thrust::identity<Value<I>>(), op);
  }
  template <class I, class O>
  MXMACA_OP O operator()(I first, I last, O out) const {
    return (*this)(first, last, out, thrust::plus<>());
  }
  template <class I, class O, class T, class Op>
  MXMACA_OP O operator()(I first, I last, O out, T init, Op op) const {
    return transform_inclusive_scan()(first, last, out, thrust::identity<Value<I>>(), init, op);
  }
};
struct transform_exclusive_scan {
  template <class I, class O, class F, class T, class Op>
  MXMACA_OP O operator()(I first, I last, O out, F f, T init, Op op) const {
    auto in = unwrapped(first);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      // The input may be the output.
      const T next = static_cast<T>(op(init, f(in[i])));
      to[i] = init;
      init = next;
    }
    return out + n;
  }
};
struct exclusive_scan {
  template <class I, class O, class T, class Op>
  MXMACA_OP O operator()(I first, I last, O out, T init, Op op) const {
    return transform_exclusive_scan()(first, last, out, thrust::identity<Value<I>>(), init, op);
  }
  template <class I, class O, class T>
  MXMACA_OP O operator()(I first, I last, O out, T init) const {
    return (*this)(first, last, out, init, thrust::plus<>());
  }
  template <class I, class O>
  MXMACA_OP O operator()(I first, I last, O out) const {
    return (*this)(first, last, out, Value<I>(), thrust::plus<>());
  }
};
struct inclusive_scan_by_key {
  template <class K, class I, class O, class P, class Op>
  MXMACA_OP O operator()(K first, K last, I values, O out, P same, Op op) const {
    auto keys = unwrapped(first);
    auto in = unwrapped(values);
    auto to = unwrapped(out);
    const Size n = last - first;
    if (n <= 0) return out;
    Value<I> sum = in[0];
    // The keys may be overwritten too, so the one before is kept.
    Value<K> key = keys[0];
    to[0] = sum;
    for (Size i = 1; i < n; ++i) {
      const Value<K> next = keys[i];
      if (same(key, next))
        sum = static_cast<Value<I>>(op(sum, in[i]));
      else
        sum = in[i];
      key = next;
      to[i] = sum;
    }
    return out + n;
  }
  template <class K, class I, class O, class P>
  MXMACA_OP O operator()(K first, K last, I values, O out, P same) const {
    return (*this)(first, last, values, out, same, thrust::plus<>());
  }
  template <class K, class I, class O>
  MXMACA_OP O operator()(K first, K last, I values, O out) const {
    return (*this)(first, last, values, out, thrust::equal_to<>(), thrust::plus<>());
  }
};
struct exclusive_scan_by_key {
  template <class K, class I, class O, class T, class P, class Op>
  MXMACA_OP O operator()(K first, K last, I values, O out, T init, P same, Op op) const {
    auto keys = unwrapped(first);
    auto in = unwrapped(values);
    auto to = unwrapped(out);
    const Size n = last - first;
    if (n <= 0) return out;
    T sum = init;
    Value<K> key = keys[0];
    for (Size i = 0; i < n; ++i) {
      const Value<K> next_key = keys[i];
      if (!same(key, next_key)) sum = init;
      key = next_key;
      const T next = static_cast<T>(op(sum, in[i]));
      to[i] = sum;
      sum = next;
    }
    return out + n;
  }
  template <class K, class I, class O, class T, class P>
  MXMACA_OP O operator()(K first, K last, I values, O out, T init, P same) const {
    return (*this)(first, last, values, out, init, same, thrust::plus<>());
  }
  template <class K, class I, class O, class T>
  MXMACA_OP O operator()(K first, K last, I values, O out, T init) const {
    return (*this)(first, last, values, out, init, thrust::equal_to<>(), thrust::plus<>());
  }
  template <class K, class I, class O>
  MXMACA_OP O operator()(K first, K last, I values, O out) const {
    return (*this)(first, last, values, out, Value<I>(), thrust::equal_to<>(), thrust::plus<>());
  }
};
struct adjacent_difference {
  template <class I, class O, class Op>
  MXMACA_OP O operator()(I first, I last, O out, Op op) const {
    auto in = unwrapped(first);
    auto to = unwrapped(out);
    const Size n = last - first;
    if (n <= 0) return out;
    Value<I> before = in[0];
    to[0] = before;
    for (Size i = 1; i < n; ++i) {
      const Value<I> value = in[i];
      to[i] = op(value, before);
      before = value;
    }
    return out + n;
  }
  template <class I, class O>
  MXMACA_OP O operator()(I first, I last, O out) const {
    return (*this)(first, last, out, thrust::minus<>());
  }
};
struct reduce_by_key {
  template <class K, class I, class OK, class OV, class P, class Op>
  MXMACA_OP std::pair<OK, OV> operator()(K first, K last, I values, OK keys_out, OV values_out, P same, Op op) const {
    auto keys = unwrapped(first);
    auto in = unwrapped(values);
    auto to_keys = unwrapped(keys_out);
    auto to_values = unwrapped(values_out);
    const Size n = last - first;
    Size groups = 0;
    for (Size i = 0; i < n; ++groups) {
      const Value<K> head = keys[i];
      Value<K> key = head;
      ValueOr<OV, Value<I>> sum = in[i];
      for (++i; i < n; ++i) {
        const Value<K> next = keys[i];
        if (!same(key, next)) break;
        sum = op(sum, in[i]);
        key = next;
      }
      to_keys[groups] = head;
      to_values[groups] = sum;
    }
    return std::pair<OK, OV>(keys_out + groups, values_out + groups);
  }
  template <class K, class I, class OK, class OV, class P>
  MXMACA_OP std::pair<OK, OV> operator()(K first, K last, I values, OK keys_out, OV values_out, P same) const {
    return (*this)(first, last, values, keys_out, values_out, same, thrust::plus<>());
  }
  template <class K, class I, class OK, class OV>
  MXMACA_OP std::pair<OK, OV> operator()(K first, K last, I values, OK keys_out, OV values_out) const {
    return (*this)(first, last, values, keys_out, values_out, thrust::equal_to<>(), thrust::plus<>());
  }
};

// ---- Movement -----------------------------------------------------------------------------------------------------------------
struct gather {
  template <class M, class I, class O>
  MXMACA_OP O operator()(M first, M last, I input, O out) const {
    auto map = unwrapped(first);
    auto in = unwrapped(input);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) to[i] = in[static_cast<Size>(map[i])];
    return out + n;
  }
};
struct gather_if {
  template <class M, class S, class I, class O, class P>
  MXMACA_OP O operator()(M first, M last, S stencil, I input, O out, P p) const {
    auto map = unwrapped(first);
    auto mask = unwrapped(stencil);
    auto in = unwrapped(input);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i])) to[i] = in[static_cast<Size>(map[i])];
    }
    return out + n;
  }
  template <class M, class S, class I, class O>
  MXMACA_OP O operator()(M first, M last, S stencil, I input, O out) const {
    return (*this)(first, last, stencil, input, out, thrust::identity<>());
  }
};
struct scatter_if {
  template <class I, class M, class S, class O, class P>
  MXMACA_OP void operator()(I first, I last, M map_first, S stencil, O out, P p) const {
    auto in = unwrapped(first);
    auto map = unwrapped(map_first);
    auto mask = unwrapped(stencil);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i])) to[static_cast<Size>(map[i])] = in[i];
    }
  }
  template <class I, class M, class S, class O>
  MXMACA_OP void operator()(I first, I last, M map, S stencil, O out) const {
    (*this)(first, last, map, stencil, out, thrust::identity<>());
  }
};
struct scatter {
  template <class I, class M, class O>
  MXMACA_OP void operator()(I first, I last, M map, O out) const {
    scatter_if()(first, last, map, thrust::constant_iterator<bool>(true), out);
  }
};
struct reverse {
  template <class I>
  MXMACA_OP void operator()(I first, I last) const {
    auto in = unwrapped(first);
    for (Size i = 0, j = last - first - 1; i < j; ++i, --j) {
      const Value<I> value = in[i];
      in[i] = static_cast<Value<I>>(in[j]);
      in[j] = value;
    }
  }
};
struct reverse_copy {
  template <class I, class O>
  MXMACA_OP O operator()(I first, I last, O out) const {
    auto in = unwrapped(first);
    auto to = unwrapped(out);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) to[i] = in[n - 1 - i];
    return out + n;
  }
};
struct swap_ranges {
  template <class I, class J>
  MXMACA_OP J operator()(I first, I last, J second) const {
    auto a = unwrapped(first);
    auto b = unwrapped(second);
    const Size n = last - first;
    for (Size i = 0; i < n; ++i) {
      const Value<I> value = a[i];
      a[i] = static_cast<Value<J>>(b[i]);
      b[i] = value;
    }
    return second + n;
  }
};

// ---- Unique, partition ----------------------------------------------------------------------------------------------------------
struct unique_by_key_copy {
  template <class K, class I, class OK, class OV, class P>
  MXMACA_OP std::pair<OK, OV> operator()(K first, K last, I values, OK keys_out, OV values_out, P same) const {
    auto keys = unwrapped(first);
    auto in = unwrapped(values);
    auto to_keys = unwrapped(keys_out);
    auto to_values = unwrapped(values_out);
    const Size n = last - first;
    Size kept = 0;
    if (n > 0) {
      Value<K> key = keys[0];
      for (Size i = 0; i < n; ++i) {
        const Value<K> next = keys[i];
        if (i == 0 || !same(key, next)) {
          to_values[kept] = in[i];
          to_keys[kept++] = next;
        }
        key = next;
      }
    }
    return std::pair<OK, OV>(keys_out + kept, values_out + kept);
  }
  template <class K, class I, class OK, class OV>
  MXMACA_OP std::pair<OK, OV> operator()(K first, K last, I values, OK keys_out, OV values_out) const {
    return (*this)(first, last, values, keys_out, values_out, thrust::equal_to<>());
  }
};
struct unique_by_key {
  template <class K, class I, class P>
  MXMACA_OP std::pair<K, I> operator()(K first, K last, I values, P same) const {
    return unique_by_key_copy()(first, last, values, first, values, same);
  }
  template <class K, class I>
  MXMACA_OP std::pair<K, I> operator()(K first, K last, I values) const {
    return (*this)(first, last, values, thrust::equal_to<>());
  }
};
struct unique_copy {
  template <class I, class O, class P>
  MXMACA_OP O operator()(I first, I last, O out, P same) const {
    return unique_by_key_copy()(first, last, thrust::constant_iterator<char>(0), out, thrust::discard_iterator<>(),
                                same)
        .first;
  }
  template <class I, class O>
  MXMACA_OP O operator()(I first, I last, O out) const {
    return (*this)(first, last, out, thrust::equal_to<>());
  }
};
struct unique {
  template <class I, class... P>
  MXMACA_OP I operator()(I first, I last, P... same) const {
    return unique_copy()(first, last, first, same...);
  }
};
struct unique_count {
  template <class I, class... P>
  MXMACA_OP Size operator()(I first, I last, P... same) const {
    return unique_copy()(first, last, thrust::discard_iterator<>(), same...) - thrust::discard_iterator<>();
  }
};
struct stable_partition_copy {
  template <class I, class S, class O1, class O2, class P>
  MXMACA_OP std::pair<O1, O2> operator()(I first, I last, S stencil, O1 yes, O2 no, P p) const {
    auto in = unwrapped(first);
    auto mask = unwrapped(stencil);
    auto to_yes = unwrapped(yes);
    auto to_no = unwrapped(no);
    const Size n = last - first;
    Size kept = 0, dropped = 0;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i]))
        to_yes[kept++] = in[i];
      else
        to_no[dropped++] = in[i];
    }
    return std::pair<O1, O2>(yes + kept, no + dropped);
  }
  template <class I, class O1, class O2, class P>
  MXMACA_OP std::pair<O1, O2> operator()(I first, I last, O1 yes, O2 no, P p) const {
    return (*this)(first, last, first, yes, no, p);
  }
};
struct stable_partition {
  template <class I, class S, class P>
  MXMACA_OP I operator()(I first, I last, S stencil, P p) const {
    auto in = unwrapped(first);
    auto mask = unwrapped(stencil);
    const Size n = last - first;
    Buffer<Value<I>> rest(in, n);
    Size kept = 0, dropped = 0;
    for (Size i = 0; i < n; ++i) {
      if (p(mask[i])) {
        const Value<I> value = in[i];
        in[kept++] = value;
      } else {
        rest[dropped++] = in[i];
      }
    }
    for (Size i = 0; i < dropped; ++i) in[kept + i] = rest[i];
    return first + kept;
  }
  template <class I, class P>
  MXMACA_OP I operator()(I first, I last, P p) const {
    // The stencil must not change under the loop.
    Buffer<Value<I>> before(unwrapped(first), last - first);
    return (*this)(first, last, before.begin(), p);
  }
};
struct partition_point {
  template <class I, class P>
  MXMACA_OP I operator()(I first, I last, P p) const {
    return find_if_not()(first, last, p);
  }
};
struct is_partitioned {
  template <class I, class P>
  MXMACA_OP bool operator()(I first, I last, P p) const {
    return none_of()(find_if_not()(first, last, p), last, p);
  }
};

// ---- Order ------------------------------------------------------------------------------------------------------------------------
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

// Merging two sorted ranges with their values. Of equal keys, m in the first and n in the second range, a merge takes all,
// a union max(m, n), an intersection min(m, n) (from the first), a difference max(m - n, 0), a symmetric one |m - n|.
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
#undef MXMACA_OP

}  // namespace algorithm
}  // namespace detail

// The public names: with an execution policy before the arguments, or without.
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
