// Selections, partitions and run lengths on a device.
#pragma once

#include "common.cuh"
#include "sums.cuh"

CUB_NAMESPACE_BEGIN

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
  // Into three: what the first predicate takes, what the second takes of the rest, and what is left; each in order.
  template <class In, class First, class Second, class Rest, class Selected, class Count, class TakesFirst,
            class TakesSecond>
  CUB_RUNTIME_FUNCTION static cudaError_t If(MXMACA_STORAGE, In in, First first, Second second, Rest rest,
                                             Selected selected, Count count, TakesFirst takes_first,
                                             TakesSecond takes_second, cudaStream_t stream = 0) {
    return MXMACA_TASK({
      detail::Size in_first = 0, in_second = 0, left = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (takes_first(in[i]))
          first[in_first++] = in[i];
        else if (takes_second(in[i]))
          second[in_second++] = in[i];
        else
          rest[left++] = in[i];
      }
      selected[0] = in_first;
      selected[1] = in_second;
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

CUB_NAMESPACE_END
