// Scans, plain ones and by key.
#pragma once

#include "reductions.h"

namespace thrust {
namespace detail {
namespace algorithm {

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

}  // namespace algorithm
}  // namespace detail
}  // namespace thrust
