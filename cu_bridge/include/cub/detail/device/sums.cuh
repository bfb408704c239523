// Reductions and scans of a device.
#pragma once

#include "common.cuh"

CUB_NAMESPACE_BEGIN

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

// ---- Scan -----------------------------------------------------------------------------------------------------------
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

CUB_NAMESPACE_END
