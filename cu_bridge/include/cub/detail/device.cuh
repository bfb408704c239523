// Device-wide algorithms: each one task in the order of its stream. The first call, without temporary storage, says how
// much of it is wanted (one byte: the tasks keep their own).
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>

#include "../../mxmaca/pairwise.h"
#include "../../mxmaca/stream_task.h"
#include "../util_type.cuh"
#include "iterators.cuh"
#include "order.cuh"

CUB_NAMESPACE_BEGIN

namespace detail {
using Size = std::ptrdiff_t;

template <class Body>
CUB_RUNTIME_FUNCTION cudaError_t device_task(void* storage, std::size_t& bytes, cudaStream_t stream, Body body) {
  if (storage == nullptr) {
    bytes = 1;
    return cudaSuccess;
  }
  return ::mxmaca::run_in_stream(body, stream);
}

// What operation gives on a start and an input value, which sums are kept in.
template <class Op, class Init, class Input>
using accumulator = std::decay_t<decltype(std::declval<Op&>()(std::declval<Init>(), std::declval<Input>()))>;

template <class Init>
struct initial_type {
  using type = Init;
};
template <class T, class Iterator>
struct initial_type<FutureValue<T, Iterator>> {
  using type = T;
};

}  // namespace detail

#define MXMACA_STORAGE void *d_temp_storage, std::size_t &temp_storage_bytes
#define MXMACA_STREAM cudaStream_t stream = 0, bool = false
#define MXMACA_TASK(...) detail::device_task(d_temp_storage, temp_storage_bytes, stream, [=]() mutable __VA_ARGS__)

// ---- Reduce -----------------------------------------------------------------------------------------------------------------
struct DeviceReduce {
  template <class In, class Out, class Op, class T, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Reduce(MXMACA_STORAGE, In in, Out out, Count count, Op op, T initial,
                                                 MXMACA_STREAM) {
    return MXMACA_TASK({
      using A = detail::accumulator<Op, T, detail::value_of<In>>;
      *out = ::mxmaca::pairwise(static_cast<detail::Size>(count), static_cast<A>(initial), op,
                                [&](detail::Size i) { return static_cast<A>(in[i]); });
    });
  }
  template <class In, class Out, class Count, class Op, class Transform, class T>
  CUB_RUNTIME_FUNCTION static cudaError_t TransformReduce(MXMACA_STORAGE, In in, Out out, Count count, Op op,
                                                          Transform transform, T initial, MXMACA_STREAM) {
    return MXMACA_TASK({
      using A = detail::accumulator<Op, T, decltype(transform(in[0]))>;
      *out = ::mxmaca::pairwise(static_cast<detail::Size>(count), static_cast<A>(initial), op,
                                [&](detail::Size i) { return static_cast<A>(transform(in[i])); });
    });
  }
  template <class In, class Out, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Sum(MXMACA_STORAGE, In in, Out out, Count count, MXMACA_STREAM) {
    using T = detail::output_value_t<Out, In>;
    return Reduce(d_temp_storage, temp_storage_bytes, in, out, count, CUB_NS_QUALIFIER::Sum(), T(), stream);
  }
  template <class In, class Out, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Min(MXMACA_STORAGE, In in, Out out, Count count, MXMACA_STREAM) {
    return Reduce(d_temp_storage, temp_storage_bytes, in, out, count, CUB_NS_QUALIFIER::Min(),
                  Traits<detail::value_of<In>>::Max(), stream);
  }
  template <class In, class Out, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Max(MXMACA_STORAGE, In in, Out out, Count count, MXMACA_STREAM) {
    return Reduce(d_temp_storage, temp_storage_bytes, in, out, count, CUB_NS_QUALIFIER::Max(),
                  Traits<detail::value_of<In>>::Lowest(), stream);
  }
  // Into a pair of index and value; of nothing: index 1 and the far end of the type, as cub.
  template <class In, class Out, class Count, class = std::enable_if_t<std::is_integral<Count>::value>>
  CUB_RUNTIME_FUNCTION static cudaError_t ArgMin(MXMACA_STORAGE, In in, Out out, Count count, MXMACA_STREAM) {
    return arg_pair(d_temp_storage, temp_storage_bytes, in, out, count, true, stream);
  }
  template <class In, class Out, class Count, class = std::enable_if_t<std::is_integral<Count>::value>>
  CUB_RUNTIME_FUNCTION static cudaError_t ArgMax(MXMACA_STORAGE, In in, Out out, Count count, MXMACA_STREAM) {
    return arg_pair(d_temp_storage, temp_storage_bytes, in, out, count, false, stream);
  }
  // Into a value and an index.
  template <class In, class Value, class Index, class Count, class = std::enable_if_t<!std::is_integral<Index>::value>>
  CUB_RUNTIME_FUNCTION static cudaError_t ArgMin(MXMACA_STORAGE, In in, Value value, Index index, Count count,
                                                 cudaStream_t stream = 0) {
    return MXMACA_TASK({ arg(in, static_cast<detail::Size>(count), true, *value, *index); });
  }
  template <class In, class Value, class Index, class Count, class = std::enable_if_t<!std::is_integral<Index>::value>>
  CUB_RUNTIME_FUNCTION static cudaError_t ArgMax(MXMACA_STORAGE, In in, Value value, Index index, Count count,
                                                 cudaStream_t stream = 0) {
    return MXMACA_TASK({ arg(in, static_cast<detail::Size>(count), false, *value, *index); });
  }
  template <class Keys, class UniqueKeys, class Values, class Aggregates, class Runs, class Op, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t ReduceByKey(MXMACA_STORAGE, Keys keys, UniqueKeys unique, Values values,
                                                      Aggregates aggregates, Runs runs, Op op, Count count,
                                                      MXMACA_STREAM) {
    return MXMACA_TASK({
      using V = detail::value_of<Values>;
      detail::Size groups = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++groups) {
        const detail::value_of<Keys> key = keys[i];
        detail::accumulator<Op, V, V> sum = values[i];
        for (++i; i < static_cast<detail::Size>(count) && key == keys[i]; ++i) sum = op(sum, values[i]);
        unique[groups] = key;
        aggregates[groups] = sum;
      }
      *runs = groups;
    });
  }

 private:
  friend struct DeviceSegmentedReduce;
  template <class In, class Value, class Index>
  __host__ __device__ static void arg(In in, detail::Size count, bool min, Value& value, Index& index) {
    detail::Size best = 0;
    for (detail::Size i = 1; i < count; ++i) {
      if (min ? in[i] < in[best] : in[best] < in[i]) best = i;
    }
    if (count > 0) value = in[best];
    index = static_cast<Index>(best);
  }
  template <class In, class Out, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t arg_pair(MXMACA_STORAGE, In in, Out out, Count count, bool min,
                                                   cudaStream_t stream) {
    return MXMACA_TASK({
      using T = detail::value_of<In>;
      KeyValuePair<int, T> result(1, min ? Traits<T>::Max() : Traits<T>::Lowest());
      if (count > 0) arg(in, static_cast<detail::Size>(count), min, result.value, result.key);
      *out = result;
    });
  }
};

struct DeviceSegmentedReduce {
  template <class In, class Out, class Begin, class End, class Op, class T>
  CUB_RUNTIME_FUNCTION static cudaError_t Reduce(MXMACA_STORAGE, In in, Out out, std::int64_t segments, Begin begin,
                                                 End end, Op op, T initial, MXMACA_STREAM) {
    return MXMACA_TASK({
      using A = detail::accumulator<Op, T, detail::value_of<In>>;
      for (std::int64_t s = 0; s < segments; ++s) {
        const detail::Size first = begin[s], count = static_cast<detail::Size>(end[s]) - first;
        out[s] = ::mxmaca::pairwise(count, static_cast<A>(initial), op,
                                    [&](detail::Size i) { return static_cast<A>(in[first + i]); });
      }
    });
  }
  template <class In, class Out, class Begin, class End>
  CUB_RUNTIME_FUNCTION static cudaError_t Sum(MXMACA_STORAGE, In in, Out out, std::int64_t segments, Begin begin,
                                              End end, MXMACA_STREAM) {
    using T = detail::output_value_t<Out, In>;
    return Reduce(d_temp_storage, temp_storage_bytes, in, out, segments, begin, end, CUB_NS_QUALIFIER::Sum(), T(),
                  stream);
  }
  template <class In, class Out, class Begin, class End>
  CUB_RUNTIME_FUNCTION static cudaError_t Min(MXMACA_STORAGE, In in, Out out, std::int64_t segments, Begin begin,
                                              End end, MXMACA_STREAM) {
    return Reduce(d_temp_storage, temp_storage_bytes, in, out, segments, begin, end, CUB_NS_QUALIFIER::Min(),
                  Traits<detail::value_of<In>>::Max(), stream);
  }
  template <class In, class Out, class Begin, class End>
  CUB_RUNTIME_FUNCTION static cudaError_t Max(MXMACA_STORAGE, In in, Out out, std::int64_t segments, Begin begin,
                                              End end, MXMACA_STREAM) {
    return Reduce(d_temp_storage, temp_storage_bytes, in, out, segments, begin, end, CUB_NS_QUALIFIER::Max(),
                  Traits<detail::value_of<In>>::Lowest(), stream);
  }
  template <class In, class Out, class Begin, class End>
  CUB_RUNTIME_FUNCTION static cudaError_t ArgMin(MXMACA_STORAGE, In in, Out out, std::int64_t segments, Begin begin,
                                                 End end, MXMACA_STREAM) {
    return arg(d_temp_storage, temp_storage_bytes, in, out, segments, begin, end, true, stream);
  }
  template <class In, class Out, class Begin, class End>
  CUB_RUNTIME_FUNCTION static cudaError_t ArgMax(MXMACA_STORAGE, In in, Out out, std::int64_t segments, Begin begin,
                                                 End end, MXMACA_STREAM) {
    return arg(d_temp_storage, temp_storage_bytes, in, out, segments, begin, end, false, stream);
  }

 private:
  template <class In, class Out, class Begin, class End>
  CUB_RUNTIME_FUNCTION static cudaError_t arg(MXMACA_STORAGE, In in, Out out, std::int64_t segments, Begin begin,
                                              End end, bool min, cudaStream_t stream) {
    return MXMACA_TASK({
      using T = detail::value_of<In>;
      for (std::int64_t s = 0; s < segments; ++s) {
        const detail::Size first = begin[s], count = static_cast<detail::Size>(end[s]) - first;
        KeyValuePair<int, T> result(1, min ? Traits<T>::Max() : Traits<T>::Lowest());
        if (count > 0) DeviceReduce::arg(in + first, count, min, result.value, result.key);
        out[s] = result;
      }
    });
  }
};

// ---- Scan -------------------------------------------------------------------------------------------------------------------
struct DeviceScan {
  template <class In, class Out, class Op, class Init, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t ExclusiveScan(MXMACA_STORAGE, In in, Out out, Op op, Init initial,
                                                        Count count, MXMACA_STREAM) {
    return MXMACA_TASK({
      using T = typename detail::initial_type<Init>::type;
      using A = detail::accumulator<Op, T, detail::value_of<In>>;
      A sum = static_cast<T>(initial);
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        const A next = op(sum, in[i]);
        out[i] = sum;
        sum = next;
      }
    });
  }
  template <class In, class Out, class Op, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t InclusiveScan(MXMACA_STORAGE, In in, Out out, Op op, Count count,
                                                        MXMACA_STREAM) {
    return MXMACA_TASK({
      if (count <= 0) return;
      using V = detail::value_of<In>;
      detail::accumulator<Op, V, V> sum = in[0];
      out[0] = sum;
      for (detail::Size i = 1; i < static_cast<detail::Size>(count); ++i) out[i] = sum = op(sum, in[i]);
    });
  }
  template <class In, class Out, class Op, class Init, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t InclusiveScanInit(MXMACA_STORAGE, In in, Out out, Op op, Init initial,
                                                            Count count, MXMACA_STREAM) {
    return MXMACA_TASK({
      detail::accumulator<Op, typename detail::initial_type<Init>::type, detail::value_of<In>> sum = initial;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) out[i] = sum = op(sum, in[i]);
    });
  }
  template <class In, class Out, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t ExclusiveSum(MXMACA_STORAGE, In in, Out out, Count count, MXMACA_STREAM) {
    return ExclusiveScan(d_temp_storage, temp_storage_bytes, in, out, CUB_NS_QUALIFIER::Sum(), detail::value_of<In>(),
                         count, stream);
  }
  template <class In, class Out, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t InclusiveSum(MXMACA_STORAGE, In in, Out out, Count count, MXMACA_STREAM) {
    return InclusiveScan(d_temp_storage, temp_storage_bytes, in, out, CUB_NS_QUALIFIER::Sum(), count, stream);
  }
  // In place.
  template <class InOut, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t ExclusiveSum(MXMACA_STORAGE, InOut data, Count count,
                                                       cudaStream_t stream = 0) {
    return ExclusiveSum(d_temp_storage, temp_storage_bytes, data, data, count, stream);
  }
  template <class InOut, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t InclusiveSum(MXMACA_STORAGE, InOut data, Count count,
                                                       cudaStream_t stream = 0) {
    return InclusiveSum(d_temp_storage, temp_storage_bytes, data, data, count, stream);
  }
  template <class Keys, class In, class Out, class Op, class Init, class Count, class Equal = Equality>
  CUB_RUNTIME_FUNCTION static cudaError_t ExclusiveScanByKey(MXMACA_STORAGE, Keys keys, In in, Out out, Op op,
                                                             Init initial, Count count, Equal equal = Equal(),
                                                             cudaStream_t stream = 0) {
    return MXMACA_TASK({
      detail::accumulator<Op, Init, detail::value_of<In>> sum = initial;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (i > 0 && !equal(keys[i - 1], keys[i])) sum = initial;
        const auto next = op(sum, in[i]);
        out[i] = sum;
        sum = next;
      }
    });
  }
  template <class Keys, class In, class Out, class Op, class Count, class Equal = Equality>
  CUB_RUNTIME_FUNCTION static cudaError_t InclusiveScanByKey(MXMACA_STORAGE, Keys keys, In in, Out out, Op op,
                                                             Count count, Equal equal = Equal(),
                                                             cudaStream_t stream = 0) {
    return MXMACA_TASK({
      if (count <= 0) return;
      using V = detail::value_of<In>;
      detail::accumulator<Op, V, V> sum = in[0];
      out[0] = sum;
      for (detail::Size i = 1; i < static_cast<detail::Size>(count); ++i) {
        if (equal(keys[i - 1], keys[i]))
          sum = op(sum, in[i]);
        else
          sum = in[i];
        out[i] = sum;
      }
    });
  }
  template <class Keys, class In, class Out, class Count, class Equal = Equality>
  CUB_RUNTIME_FUNCTION static cudaError_t ExclusiveSumByKey(MXMACA_STORAGE, Keys keys, In in, Out out, Count count,
                                                            Equal equal = Equal(), cudaStream_t stream = 0) {
    return ExclusiveScanByKey(d_temp_storage, temp_storage_bytes, keys, in, out, CUB_NS_QUALIFIER::Sum(),
                              detail::value_of<In>(), count, equal, stream);
  }
  template <class Keys, class In, class Out, class Count, class Equal = Equality>
  CUB_RUNTIME_FUNCTION static cudaError_t InclusiveSumByKey(MXMACA_STORAGE, Keys keys, In in, Out out, Count count,
                                                            Equal equal = Equal(), cudaStream_t stream = 0) {
    return InclusiveScanByKey(d_temp_storage, temp_storage_bytes, keys, in, out, CUB_NS_QUALIFIER::Sum(), count, equal,
                              stream);
  }
};

// ---- Sort -------------------------------------------------------------------------------------------------------------------
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

// By segments; elements outside every segment of a sort between buffers stay unwritten.
#define MXMACA_SEGMENTED(name, order, parameters, arguments)                                                           \
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
#define MXMACA_ALL_BITS 0 MXMACA_COMMA static_cast<int>(sizeof(Key) * 8)
struct DeviceSegmentedRadixSort {
  MXMACA_SEGMENTED(Sort, , int begin_bit = 0 MXMACA_COMMA int end_bit = sizeof(Key) * 8 MXMACA_COMMA MXMACA_STREAM,
                   begin_bit MXMACA_COMMA end_bit MXMACA_COMMA false)
  MXMACA_SEGMENTED(Sort, Descending,
                   int begin_bit = 0 MXMACA_COMMA int end_bit = sizeof(Key) * 8 MXMACA_COMMA MXMACA_STREAM,
                   begin_bit MXMACA_COMMA end_bit MXMACA_COMMA true)
};
struct DeviceSegmentedSort {
  MXMACA_SEGMENTED(Sort, , MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA false)
  MXMACA_SEGMENTED(Sort, Descending, MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA true)
  MXMACA_SEGMENTED(StableSort, , MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA false)
  MXMACA_SEGMENTED(StableSort, Descending, MXMACA_STREAM, MXMACA_ALL_BITS MXMACA_COMMA true)
};
#undef MXMACA_SEGMENTED
#undef MXMACA_ALL_BITS
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

// ---- Select, partition --------------------------------------------------------------------------------------------------------
struct DeviceSelect {
  template <class In, class Flags, class Out, class Selected, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Flagged(MXMACA_STORAGE, In in, Flags flags, Out out, Selected selected,
                                                  Count count, MXMACA_STREAM) {
    return MXMACA_TASK({
      detail::Size kept = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (flags[i]) out[kept++] = in[i];
      }
      *selected = kept;
    });
  }
  template <class In, class Out, class Selected, class Count, class Predicate>
  CUB_RUNTIME_FUNCTION static cudaError_t If(MXMACA_STORAGE, In in, Out out, Selected selected, Count count,
                                             Predicate predicate, MXMACA_STREAM) {
    return FlaggedIf(d_temp_storage, temp_storage_bytes, in, in, out, selected, count, predicate, stream);
  }
  template <class In, class Flags, class Out, class Selected, class Count, class Predicate>
  CUB_RUNTIME_FUNCTION static cudaError_t FlaggedIf(MXMACA_STORAGE, In in, Flags flags, Out out, Selected selected,
                                                    Count count, Predicate predicate, cudaStream_t stream = 0) {
    return MXMACA_TASK({
      detail::Size kept = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (predicate(flags[i])) out[kept++] = in[i];
      }
      *selected = kept;
    });
  }
  template <class In, class Out, class Selected, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Unique(MXMACA_STORAGE, In in, Out out, Selected selected, Count count,
                                                 MXMACA_STREAM) {
    return UniqueByKey(d_temp_storage, temp_storage_bytes, in, ::thrust::constant_iterator<char>(0), out,
                       ::thrust::discard_iterator<>(), selected, count, Equality(), stream);
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Selected, class Count, class Equal,
            class = std::enable_if_t<!std::is_convertible<Equal, cudaStream_t>::value>>
  CUB_RUNTIME_FUNCTION static cudaError_t UniqueByKey(MXMACA_STORAGE, Keys keys, Values values, KeysOut keys_out,
                                                      ValuesOut values_out, Selected selected, Count count, Equal equal,
                                                      cudaStream_t stream = 0) {
    return MXMACA_TASK({
      detail::Size kept = 0;
      if (count > 0) {
        detail::value_of<Keys> before = keys[0];
        for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
          const detail::value_of<Keys> key = keys[i];
          if (i == 0 || !equal(before, key)) {
            keys_out[kept] = key;
            values_out[kept++] = values[i];
          }
          before = key;
        }
      }
      *selected = kept;
    });
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Selected, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t UniqueByKey(MXMACA_STORAGE, Keys keys, Values values, KeysOut keys_out,
                                                      ValuesOut values_out, Selected selected, Count count,
                                                      MXMACA_STREAM) {
    return UniqueByKey(d_temp_storage, temp_storage_bytes, keys, values, keys_out, values_out, selected, count,
                       Equality(), stream);
  }
};

// The rejected come after the selected, in reverse order, as cub has them.
struct DevicePartition {
  template <class In, class Flags, class Out, class Selected, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Flagged(MXMACA_STORAGE, In in, Flags flags, Out out, Selected selected,
                                                  Count count, MXMACA_STREAM) {
    return MXMACA_TASK({
      detail::Size kept = 0, rear = static_cast<detail::Size>(count);
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (flags[i])
          out[kept++] = in[i];
        else
          out[--rear] = in[i];
      }
      *selected = kept;
    });
  }
  template <class In, class Out, class Selected, class Count, class Predicate>
  CUB_RUNTIME_FUNCTION static cudaError_t If(MXMACA_STORAGE, In in, Out out, Selected selected, Count count,
                                             Predicate predicate, MXMACA_STREAM) {
    return MXMACA_TASK({
      detail::Size kept = 0, rear = static_cast<detail::Size>(count);
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (predicate(in[i]))
          out[kept++] = in[i];
        else
          out[--rear] = in[i];
      }
      *selected = kept;
    });
  }
};

struct DeviceRunLengthEncode {
  template <class In, class Unique, class Lengths, class Runs, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t Encode(MXMACA_STORAGE, In in, Unique unique, Lengths lengths, Runs runs,
                                                 Count count, MXMACA_STREAM) {
    return MXMACA_TASK({
      detail::Size groups = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++groups) {
        const detail::Size first = i;
        const detail::value_of<In> value = in[i];
        while (i < static_cast<detail::Size>(count) && value == in[i]) ++i;
        // A value that is not itself (NaN) is a run of one.
        if (i == first) ++i;
        unique[groups] = value;
        lengths[groups] = i - first;
      }
      *runs = groups;
    });
  }
  template <class In, class Offsets, class Lengths, class Runs, class Count>
  CUB_RUNTIME_FUNCTION static cudaError_t NonTrivialRuns(MXMACA_STORAGE, In in, Offsets offsets, Lengths lengths,
                                                         Runs runs, Count count, MXMACA_STREAM) {
    return MXMACA_TASK({
      detail::Size groups = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count);) {
        const detail::Size first = i;
        const detail::value_of<In> value = in[i];
        while (i < static_cast<detail::Size>(count) && value == in[i]) ++i;
        if (i == first) ++i;
        if (i - first > 1) {
          offsets[groups] = first;
          lengths[groups++] = i - first;
        }
      }
      *runs = groups;
    });
  }
};

// ---- Histogram ----------------------------------------------------------------------------------------------------------------
struct DeviceHistogram {
  template <class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t HistogramEven(MXMACA_STORAGE, Samples samples, Counter* histogram, int levels,
                                                        Level lower, Level upper, Offset count, MXMACA_STREAM) {
    return MXMACA_TASK({
      for (int bin = 0; bin + 1 < levels; ++bin) histogram[bin] = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i)
        even(samples[i], histogram, levels, lower, upper);
    });
  }
  template <class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t HistogramRange(MXMACA_STORAGE, Samples samples, Counter* histogram,
                                                         int levels, const Level* edges, Offset count, MXMACA_STREAM) {
    return MXMACA_TASK({
      for (int bin = 0; bin + 1 < levels; ++bin) histogram[bin] = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) range(samples[i], histogram, levels, edges);
    });
  }
  template <int Channels, int Active, class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t MultiHistogramEven(MXMACA_STORAGE, Samples samples,
                                                             Counter* (&histogram)[Active], const int (&levels)[Active],
                                                             const Level (&lower)[Active], const Level (&upper)[Active],
                                                             Offset pixels, MXMACA_STREAM) {
    PerChannel<Active, Counter, Level> all;
    for (int c = 0; c < Active; ++c) all.channel[c] = {histogram[c], levels[c], lower[c], upper[c], nullptr};
    return MXMACA_TASK({
      for (int c = 0; c < Active; ++c) {
        for (int bin = 0; bin + 1 < all.channel[c].levels; ++bin) all.channel[c].histogram[bin] = 0;
        for (detail::Size i = 0; i < static_cast<detail::Size>(pixels); ++i) {
          even(samples[i * Channels + c], all.channel[c].histogram, all.channel[c].levels, all.channel[c].lower,
               all.channel[c].upper);
        }
      }
    });
  }
  template <int Channels, int Active, class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t MultiHistogramRange(MXMACA_STORAGE, Samples samples,
                                                              Counter* (&histogram)[Active],
                                                              const int (&levels)[Active],
                                                              const Level* const (&edges)[Active], Offset pixels,
                                                              MXMACA_STREAM) {
    PerChannel<Active, Counter, Level> all;
    for (int c = 0; c < Active; ++c) all.channel[c] = {histogram[c], levels[c], Level(), Level(), edges[c]};
    return MXMACA_TASK({
      for (int c = 0; c < Active; ++c) {
        for (int bin = 0; bin + 1 < all.channel[c].levels; ++bin) all.channel[c].histogram[bin] = 0;
        for (detail::Size i = 0; i < static_cast<detail::Size>(pixels); ++i) {
          range(samples[i * Channels + c], all.channel[c].histogram, all.channel[c].levels, all.channel[c].edges);
        }
      }
    });
  }

 private:
  template <int Active, class Counter, class Level>
  struct PerChannel {
    struct {
      Counter* histogram;
      int levels;
      Level lower, upper;
      const Level* edges;
    } channel[Active];
  };
  // Bins are half open; what lies outside is not counted.
  template <class Sample, class Counter, class Level>
  __host__ __device__ static void even(const Sample& sample, Counter* histogram, int levels, Level lower, Level upper) {
    using T = std::common_type_t<Sample, Level>;
    const T value = static_cast<T>(sample);
    if (!(value >= static_cast<T>(lower) && value < static_cast<T>(upper))) return;
    const int bins = levels - 1;
    int bin;
    if constexpr (std::is_integral<T>::value) {
      // The product of two 64-bit numbers does not fit one.
      bin =
          static_cast<int>(static_cast<unsigned __int128>(value - static_cast<T>(lower)) * static_cast<unsigned>(bins) /
                           static_cast<unsigned __int128>(static_cast<T>(upper) - static_cast<T>(lower)));
    } else {
      bin = static_cast<int>((value - static_cast<T>(lower)) *
                             (static_cast<T>(bins) / (static_cast<T>(upper) - static_cast<T>(lower))));
    }
    ++histogram[bin < bins ? bin : bins - 1];
  }
  template <class Sample, class Counter, class Level>
  __host__ __device__ static void range(const Sample& sample, Counter* histogram, int levels, const Level* edges) {
    const detail::Size above = std::upper_bound(edges, edges + levels, sample) - edges;
    if (above > 0 && above < levels) ++histogram[above - 1];
  }
};

// ---- Loops and copies ---------------------------------------------------------------------------------------------------------
struct DeviceFor {
  template <class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t Bulk(MXMACA_STORAGE, Count count, Op op, cudaStream_t stream = 0) {
    return MXMACA_TASK({
      for (Count i = 0; i < count; ++i) op(i);
    });
  }
  template <class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t Bulk(Count count, Op op, cudaStream_t stream = 0) {
    std::size_t bytes = 1;
    return Bulk(&bytes, bytes, count, op, stream);
  }
  template <class Iterator, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t ForEachN(Iterator first, Count count, Op op, cudaStream_t stream = 0) {
    std::size_t temp_storage_bytes = 1;
    void* const d_temp_storage = &temp_storage_bytes;
    return MXMACA_TASK({
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) op(first[i]);
    });
  }
  template <class Iterator, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t ForEach(Iterator first, Iterator last, Op op, cudaStream_t stream = 0) {
    return ForEachN(first, last - first, op, stream);
  }
  template <class Iterator, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t ForEachCopy(Iterator first, Iterator last, Op op, cudaStream_t stream = 0) {
    return ForEachN(first, last - first, op, stream);
  }
};

struct DeviceAdjacentDifference {
  template <class In, class Out, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractLeftCopy(MXMACA_STORAGE, In in, Out out, Count count, Op op,
                                                           MXMACA_STREAM) {
    return MXMACA_TASK({
      if (count <= 0) return;
      detail::value_of<In> before = in[0];
      out[0] = before;
      for (detail::Size i = 1; i < static_cast<detail::Size>(count); ++i) {
        const detail::value_of<In> value = in[i];
        out[i] = op(value, before);
        before = value;
      }
    });
  }
  template <class In, class Out, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractRightCopy(MXMACA_STORAGE, In in, Out out, Count count, Op op,
                                                            MXMACA_STREAM) {
    return MXMACA_TASK({
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (i + 1 < static_cast<detail::Size>(count))
          out[i] = op(in[i], in[i + 1]);
        else
          out[i] = in[i];
      }
    });
  }
  template <class InOut, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractLeft(MXMACA_STORAGE, InOut data, Count count, Op op, MXMACA_STREAM) {
    return SubtractLeftCopy(d_temp_storage, temp_storage_bytes, data, data, count, op, stream);
  }
  template <class InOut, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractRight(MXMACA_STORAGE, InOut data, Count count, Op op, MXMACA_STREAM) {
    return SubtractRightCopy(d_temp_storage, temp_storage_bytes, data, data, count, op, stream);
  }
};

struct DeviceMemcpy {
  template <class From, class To, class Bytes>
  CUB_RUNTIME_FUNCTION static cudaError_t Batched(MXMACA_STORAGE, From from, To to, Bytes bytes, std::int64_t count,
                                                  cudaStream_t stream = 0) {
    return MXMACA_TASK({
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(to[i], from[i], static_cast<std::size_t>(bytes[i]));
    });
  }
};
struct DeviceCopy {
  template <class From, class To, class Sizes>
  CUB_RUNTIME_FUNCTION static cudaError_t Batched(MXMACA_STORAGE, From from, To to, Sizes sizes, std::int64_t count,
                                                  cudaStream_t stream = 0) {
    return MXMACA_TASK({
      for (std::int64_t i = 0; i < count; ++i) {
        auto source = from[i];
        auto target = to[i];
        for (detail::Size k = 0; k < static_cast<detail::Size>(sizes[i]); ++k) target[k] = source[k];
      }
    });
  }
};
#undef MXMACA_TASK
#undef MXMACA_STREAM
#undef MXMACA_STORAGE

// Allocation behind cub's interface; the device's own allocator is quick enough to need no cache.
struct CachingDeviceAllocator {
  template <class... Options>
  explicit CachingDeviceAllocator(Options...) {}
  cudaError_t DeviceAllocate(void** pointer, std::size_t bytes, cudaStream_t = 0) {
    return ::cudaMalloc(pointer, bytes);
  }
  cudaError_t DeviceFree(void* pointer) { return ::cudaFree(pointer); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

CUB_NAMESPACE_END
