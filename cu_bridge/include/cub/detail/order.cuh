// Sorting by a comparison or by bits, for collectives (one thread sorts what all have put) and for the device.
#pragma once

#include <algorithm>
#include <memory>

#include "../util_type.cuh"

CUB_NAMESPACE_BEGIN
namespace detail {

// The bits [begin, end) of a key in radix order. -0.0 sorts as +0.0.
template <class Key>
struct RadixKey {
  using Bits = typename Traits<Key>::UnsignedBits;
  int begin, end;
  bool descending;
  __host__ __device__ Bits of(const Key& key) const {
    static_assert(Traits<Key>::CATEGORY != NOT_A_NUMBER, "radix sort: the key must be a number");
    Bits bits = ::mxmaca::bit_cast<Bits>(key);
    if (Traits<Key>::CATEGORY == FLOATING_POINT && bits == Traits<Key>::HIGH_BIT) bits = 0;
    bits = Traits<Key>::TwiddleIn(bits);
    if (descending) bits = static_cast<Bits>(~bits);
    constexpr int all = 8 * static_cast<int>(sizeof(Key));
    if (end < all) bits = static_cast<Bits>(bits & ((Bits{1} << end) - 1));
    return begin >= all ? Bits{0} : static_cast<Bits>(bits >> begin);
  }
  __host__ __device__ bool operator()(const Key& a, const Key& b) const { return of(a) < of(b); }
};

// The stable order of n keys: order[i] is the place of the i-th.
template <class Keys, class Less>
__host__ __device__ void stable_order(Keys keys, std::ptrdiff_t n, Less less, std::ptrdiff_t* order) {
  for (std::ptrdiff_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order, order + n, [&](std::ptrdiff_t a, std::ptrdiff_t b) { return less(keys[a], keys[b]); });
}

// Keys and values of a group of threads in shared memory, blocked.
template <class Key, class Value, int Count>
struct __align__(16) SortStorage {
  Uninitialized<Key> key[Count];
  Uninitialized<Value> value[std::is_same<Value, NullType>::value ? 1 : Count];

  template <int Items, class V>
  __host__ __device__ void put(int thread, const Key (&keys)[Items], const V (&values)[Items]) {
    for (int i = 0; i < Items; ++i) {
      new (&key[thread * Items + i]) Key(keys[i]);
      if constexpr (!std::is_same<V, NullType>::value) new (&value[thread * Items + i]) Value(values[i]);
    }
  }
  template <int Items, class V>
  __host__ __device__ void get(int thread, Key (&keys)[Items], V (&values)[Items]) {
    for (int i = 0; i < Items; ++i) {
      keys[i] = key[thread * Items + i].Alias();
      if constexpr (!std::is_same<V, NullType>::value) values[i] = value[thread * Items + i].Alias();
    }
  }
  template <int Items, class V>
  __host__ __device__ void get_striped(int thread, int threads, Key (&keys)[Items], V (&values)[Items]) {
    for (int i = 0; i < Items; ++i) {
      keys[i] = key[i * threads + thread].Alias();
      if constexpr (!std::is_same<V, NullType>::value) values[i] = value[i * threads + thread].Alias();
    }
  }
  // Sorts the first `valid`; the others become *rest.
  template <class Less>
  __host__ __device__ void sort(int valid, const Key* rest, Less less) {
    Key* const keys = &key[0].Alias();
    const std::unique_ptr<std::ptrdiff_t[]> order(new std::ptrdiff_t[static_cast<std::size_t>(Count)]);
    stable_order(keys, valid, less, order.get());
    // Permutes in place, cycle by cycle.
    for (int start = 0; start < valid; ++start) {
      std::ptrdiff_t to = start, from = order[static_cast<std::size_t>(start)];
      if (from < 0) continue;
      const Key first_key = keys[start];
      const Value first_value = value_at(start);
      while (true) {
        order[static_cast<std::size_t>(to)] = -1;
        if (from == start) break;
        keys[to] = keys[from];
        value_at(static_cast<int>(to)) = value_at(static_cast<int>(from));
        to = from;
        from = order[static_cast<std::size_t>(to)];
      }
      keys[to] = first_key;
      value_at(static_cast<int>(to)) = first_value;
    }
    for (int i = valid; rest != nullptr && i < Count; ++i) keys[i] = *rest;
  }

 private:
  __host__ __device__ Value& value_at(int i) { return value[std::is_same<Value, NullType>::value ? 0 : i].Alias(); }
};

// What a block's and a warp's merge sort offer. Sorter::run does the work on Count keys.
template <class Sorter, class Key, int Items, class Value, int Count>
class MergeSorting {
 public:
  template <class Less>
  __device__ void Sort(Key (&keys)[Items], Less less) {
    NullType none[Items];
    self().run(keys, none, less, Count, nullptr);
  }
  template <class Less>
  __device__ void Sort(Key (&keys)[Items], Less less, int valid, Key rest) {
    NullType none[Items];
    self().run(keys, none, less, valid, &rest);
  }
  template <class Less>
  __device__ void Sort(Key (&keys)[Items], Value (&values)[Items], Less less) {
    self().run(keys, values, less, Count, nullptr);
  }
  template <class Less>
  __device__ void Sort(Key (&keys)[Items], Value (&values)[Items], Less less, int valid, Key rest) {
    self().run(keys, values, less, valid, &rest);
  }
  template <class... Arguments>
  __device__ void StableSort(Arguments&&... arguments) {
    Sort(std::forward<Arguments>(arguments)...);
  }

 private:
  __device__ Sorter& self() { return static_cast<Sorter&>(*this); }
};

}  // namespace detail
CUB_NAMESPACE_END
