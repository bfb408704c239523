// Sorting on a device.
#pragma once

#include "common.cuh"
#include "sums.cuh"

CUB_NAMESPACE_BEGIN

namespace detail {
// Sorts [first, last) of keys and values from in to out (which may be the same).
template <class KeysIn, class KeysOut, class ValuesIn, class ValuesOut, class Less>
__host__ __device__ void sort_range(KeysIn keys_in, KeysOut keys_out, ValuesIn values_in, ValuesOut values_out,
                                    Size first, Size last, Less less) {
  using Key = value_of<KeysIn>;
  const Size n = last - first;
  if (n <= 0) return;
  if constexpr (std::is_same<ValuesIn, NullType*>::value && std::is_pointer<KeysOut>::value) {
    for (Size i = first; i < last; ++i) keys_out[i] = keys_in[i];
    std::stable_sort(keys_out + first, keys_out + last, less);
  } else {
    const std::size_t count = static_cast<std::size_t>(n);
    const std::unique_ptr<Size[]> order(new Size[count]);
    const std::unique_ptr<Uninitialized<Key>[]> keys(new Uninitialized<Key>[count]);
    for (Size i = 0; i < n; ++i) new (&keys[static_cast<std::size_t>(i)]) Key(keys_in[first + i]);
    stable_order(&keys[0].Alias(), n, less, order.get());
    if constexpr (!std::is_same<ValuesIn, NullType*>::value) {
      using Value = value_of<ValuesIn>;
      const std::unique_ptr<Uninitialized<Value>[]> values(new Uninitialized<Value>[count]);
      for (Size i = 0; i < n; ++i) new (&values[static_cast<std::size_t>(i)]) Value(values_in[first + i]);
      for (Size i = 0; i < n; ++i) {
        values_out[first + i] = values[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])].Alias();
      }
    }
    for (Size i = 0; i < n; ++i) {
      keys_out[first + i] = keys[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])].Alias();
    }
  }
}
}  // namespace detail

#define MXMACA_BITS int begin_bit = 0, int end_bit = sizeof(Key) * 8
#define MXMACA_RADIX(name, descending)                                                                                 \
  template <class Key, class Value, class Count>                                                                       \
  CUB_RUNTIME_FUNCTION static cudaError_t SortPairs##name(MXMACA_STORAGE, const Key* keys_in, Key* keys_out,           \
                                                          const Value* values_in, Value* values_out, Count count,      \
                                                          MXMACA_BITS, MXMACA_STREAM) {                                \
    return MXMACA_TASK({                                                                                               \
      detail::sort_range(keys_in, keys_out, values_in, values_out, 0, static_cast<detail::Size>(count),                \
                         detail::RadixKey<Key>{begin_bit, end_bit, descending});                                       \
    });                                                                                                                \
  }                                                                                                                    \
  template <class Key, class Value, class Count>                                                                       \
  CUB_RUNTIME_FUNCTION static cudaError_t SortPairs##name(                                                             \
      MXMACA_STORAGE, DoubleBuffer<Key>& keys, DoubleBuffer<Value>& values, Count count, MXMACA_BITS, MXMACA_STREAM) { \
    if (d_temp_storage != nullptr) {                                                                                   \
      keys.selector ^= 1;                                                                                              \
      values.selector ^= 1;                                                                                            \
    }                                                                                                                  \
    return SortPairs##name(d_temp_storage, temp_storage_bytes, static_cast<const Key*>(keys.Alternate()),              \
                           keys.Current(), static_cast<const Value*>(values.Alternate()), values.Current(), count,     \
                           begin_bit, end_bit, stream);                                                                \
  }                                                                                                                    \
  template <class Key, class Count>                                                                                    \
  CUB_RUNTIME_FUNCTION static cudaError_t SortKeys##name(MXMACA_STORAGE, const Key* keys_in, Key* keys_out,            \
                                                         Count count, MXMACA_BITS, MXMACA_STREAM) {                    \
    return MXMACA_TASK({                                                                                               \
      NullType* const none = nullptr;                                                                                  \
      detail::sort_range(keys_in, keys_out, none, none, 0, static_cast<detail::Size>(count),                           \
                         detail::RadixKey<Key>{begin_bit, end_bit, descending});                                       \
    });                                                                                                                \
  }                                                                                                                    \
  template <class Key, class Count>                                                                                    \
  CUB_RUNTIME_FUNCTION static cudaError_t SortKeys##name(MXMACA_STORAGE, DoubleBuffer<Key>& keys, Count count,         \
                                                         MXMACA_BITS, MXMACA_STREAM) {                                 \
    if (d_temp_storage != nullptr) keys.selector ^= 1;                                                                 \
    return SortKeys##name(d_temp_storage, temp_storage_bytes, static_cast<const Key*>(keys.Alternate()),               \
                          keys.Current(), count, begin_bit, end_bit, stream);                                          \
  }
struct DeviceRadixSort {
  MXMACA_RADIX(, false)
  MXMACA_RADIX(Descending, true)
};
#undef MXMACA_RADIX

// By segments; elements outside every segment of a sort between buffers stay unwritten. Of two buffers the current one
// is the sorted one afterwards.
#define MXMACA_SEGMENTED(name, order, parameters, arguments, passed)                                                   \
  template <class Key, class Value, class Begin, class End>                                                            \
  CUB_RUNTIME_FUNCTION static cudaError_t name##Pairs##order(                                                          \
      MXMACA_STORAGE, const Key* keys_in, Key* keys_out, const Value* values_in, Value* values_out, std::int64_t,      \
      std::int64_t segments, Begin begin, End end, parameters) {                                                       \
    return MXMACA_TASK({                                                                                               \
      for (std::int64_t s = 0; s < segments; ++s) {                                                                    \
        detail::sort_range(keys_in, keys_out, values_in, values_out, static_cast<detail::Size>(begin[s]),              \
                           static_cast<detail::Size>(end[s]), detail::RadixKey<Key>{arguments});                       \
      }                                                                                                                \
    });                                                                                                                \
  }                                                                                                                    \
  template <class Key, class Value, class Begin, class End>                                                            \
  CUB_RUNTIME_FUNCTION static cudaError_t name##Pairs##order(                                                          \
      MXMACA_STORAGE, DoubleBuffer<Key>& keys, DoubleBuffer<Value>& values, std::int64_t count, std::int64_t segments, \
      Begin begin, End end, parameters) {                                                                              \
    if (d_temp_storage != nullptr) {                                                                                   \
      keys.selector ^= 1;                                                                                              \
      values.selector ^= 1;                                                                                            \
    }                                                                                                                  \
    return name##Pairs##order(d_temp_storage, temp_storage_bytes, static_cast<const Key*>(keys.Alternate()),           \
                              keys.Current(), static_cast<const Value*>(values.Alternate()), values.Current(), count,  \
                              segments, begin, end, passed);                                                           \
  }                                                                                                                    \
  template <class Key, class Begin, class End>                                                                         \
  CUB_RUNTIME_FUNCTION static cudaError_t name##Keys##order(MXMACA_STORAGE, DoubleBuffer<Key>& keys,                   \
                                                            std::int64_t count, std::int64_t segments, Begin begin,    \
                                                            End end, parameters) {                                     \
    if (d_temp_storage != nullptr) keys.selector ^= 1;                                                                 \
    return name##Keys##order(d_temp_storage, temp_storage_bytes, static_cast<const Key*>(keys.Alternate()),            \
                             keys.Current(), count, segments, begin, end, passed);                                     \
  }                                                                                                                    \
  template <class Key, class Begin, class End>                                                                         \
  CUB_RUNTIME_FUNCTION static cudaError_t name##Keys##order(MXMACA_STORAGE, const Key* keys_in, Key* keys_out,         \
                                                            std::int64_t, std::int64_t segments, Begin begin, End end, \
                                                            parameters) {                                              \
    return MXMACA_TASK({                                                                                               \
      NullType* const none = nullptr;                                                                                  \
      for (std::int64_t s = 0; s < segments; ++s) {                                                                    \
        detail::sort_range(keys_in, keys_out, none, none, static_cast<detail::Size>(begin[s]),                         \
                           static_cast<detail::Size>(end[s]), detail::RadixKey<Key>{arguments});                       \
      }                                                                                                                \
    });                                                                                                                \
  }
#define MXMACA_COMMA ,
#define MXMACA_OF_BITS begin_bit MXMACA_COMMA end_bit MXMACA_COMMA stream
#define MXMACA_ALL_BITS 0 MXMACA_COMMA static_cast<int>(sizeof(Key) * 8)
struct DeviceSegmentedRadixSort {
  MXMACA_SEGMENTED(Sort, , int begin_bit = 0 MXMACA_COMMA int end_bit = sizeof(Key) * 8 MXMACA_COMMA MXMACA_STREAM,
                   begin_bit MXMACA_COMMA end_bit MXMACA_COMMA false, MXMACA_OF_BITS)
  MXMACA_SEGMENTED(Sort, Descending,
                   int begin_bit = 0 MXMACA_COMMA int end_bit = sizeof(Key) * 8 MXMACA_COMMA MXMACA_STREAM,
                   begin_bit MXMACA_COMMA end_bit MXMACA_COMMA true, MXMACA_OF_BITS)
};
struct DeviceSegmentedSort {
  MXMACA_SEGMENTED(Sort, , MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA false, stream)
  MXMACA_SEGMENTED(Sort, Descending, MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA true, stream)
  MXMACA_SEGMENTED(StableSort, , MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA false, stream)
  MXMACA_SEGMENTED(StableSort, Descending, MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA true, stream)
};
#undef MXMACA_SEGMENTED
#undef MXMACA_ALL_BITS
#undef MXMACA_OF_BITS
#undef MXMACA_COMMA
#undef MXMACA_BITS

struct DeviceMergeSort {
#define MXMACA_MERGE_SORT(name)                                                                               \
  template <class Keys, class Values, class Count, class Less>                                                \
  CUB_RUNTIME_FUNCTION static cudaError_t name##Pairs(MXMACA_STORAGE, Keys keys, Values values, Count count,  \
                                                      Less less, MXMACA_STREAM) {                             \
    return MXMACA_TASK(                                                                                       \
        { detail::sort_range(keys, keys, values, values, 0, static_cast<detail::Size>(count), less); });      \
  }                                                                                                           \
  template <class Keys, class Count, class Less>                                                              \
  CUB_RUNTIME_FUNCTION static cudaError_t name##Keys(MXMACA_STORAGE, Keys keys, Count count, Less less,       \
                                                     MXMACA_STREAM) {                                         \
    return MXMACA_TASK({                                                                                      \
      NullType* const none = nullptr;                                                                         \
      detail::sort_range(keys, keys, none, none, 0, static_cast<detail::Size>(count), less);                  \
    });                                                                                                       \
  }                                                                                                           \
  template <class KeysIn, class KeysOut, class Count, class Less>                                             \
  CUB_RUNTIME_FUNCTION static cudaError_t name##KeysCopy(MXMACA_STORAGE, KeysIn in, KeysOut out, Count count, \
                                                         Less less, MXMACA_STREAM) {                          \
    return MXMACA_TASK({                                                                                      \
      NullType* const none = nullptr;                                                                         \
      detail::sort_range(in, out, none, none, 0, static_cast<detail::Size>(count), less);                     \
    });                                                                                                       \
  }
  MXMACA_MERGE_SORT(Sort)
  MXMACA_MERGE_SORT(StableSort)
#undef MXMACA_MERGE_SORT
  template <class KeysIn, class ValuesIn, class KeysOut, class ValuesOut, class Count, class Less>
  CUB_RUNTIME_FUNCTION static cudaError_t SortPairsCopy(MXMACA_STORAGE, KeysIn keys_in, ValuesIn values_in,
                                                        KeysOut keys_out, ValuesOut values_out, Count count, Less less,
                                                        MXMACA_STREAM) {
    return MXMACA_TASK(
        { detail::sort_range(keys_in, keys_out, values_in, values_out, 0, static_cast<detail::Size>(count), less); });
  }
};

CUB_NAMESPACE_END
