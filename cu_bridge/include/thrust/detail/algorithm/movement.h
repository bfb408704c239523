// Algorithms that move elements: copies, removals, unique ones, partitions.
#pragma once

#include "scans.h"

namespace thrust {
namespace detail {
namespace algorithm {

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

// ---- Unique, partition ----------------------------------------------------------------------------------------------
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

}  // namespace algorithm
}  // namespace detail
}  // namespace thrust
