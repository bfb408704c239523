// Transformations, merges and a sparse product on a device.
#pragma once

#include "common.cuh"

CUB_NAMESPACE_BEGIN

// These keep no storage and have one call.
struct DeviceTransform {
  template <class... In, class Out, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t Transform(std::tuple<In...> in, Out out, Count count, Op op,
                                                    cudaStream_t stream = 0) {
    return ::mxmaca::run_in_stream(
        [=]() mutable {
          for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
            out[i] = std::apply([&](auto&... inputs) { return op(inputs[i]...); }, in);
          }
        },
        stream);
  }
  template <class In, class Out, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t Transform(In in, Out out, Count count, Op op, cudaStream_t stream = 0) {
    return Transform(std::tuple<In>(in), out, count, op, stream);
  }
  template <class... In, class Out, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t TransformStableArgumentAddresses(std::tuple<In...> in, Out out, Count count,
                                                                           Op op, cudaStream_t stream = 0) {
    return Transform(in, out, count, op, stream);
  }
  template <class In, class Out, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t TransformStableArgumentAddresses(In in, Out out, Count count, Op op,
                                                                           cudaStream_t stream = 0) {
    return Transform(std::tuple<In>(in), out, count, op, stream);
  }
  template <class Out, class Count, class Generator>
  CUB_RUNTIME_FUNCTION static cudaError_t Generate(Out out, Count count, Generator generator, cudaStream_t stream = 0) {
    return Transform(std::tuple<>(), out, count, generator, stream);
  }
  template <class Out, class Count, class Value>
  CUB_RUNTIME_FUNCTION static cudaError_t Fill(Out out, Count count, Value value, cudaStream_t stream = 0) {
    return Transform(std::tuple<>(), out, count, [value] { return value; }, stream);
  }
};

// Equal elements of the first list come first.
struct DeviceMerge {
 private:
  struct Smaller {
    template <class X, class Y>
    __host__ __device__ bool operator()(const X& x, const Y& y) const {
      return x < y;
    }
  };

 public:
  template <class A, class B, class Out, class Less = Smaller>
  CUB_RUNTIME_FUNCTION static cudaError_t MergeKeys(MXMACA_STORAGE, A a, std::int64_t a_count, B b,
                                                    std::int64_t b_count, Out out, Less less = {},
                                                    cudaStream_t stream = 0) {
    return MXMACA_TASK({
      detail::Size i = 0, j = 0;
      for (detail::Size k = 0; k < a_count + b_count; ++k) {
        const bool second = i == a_count || (j < b_count && less(b[j], a[i]));
        if (second)
          out[k] = b[j++];
        else
          out[k] = a[i++];
      }
    });
  }
  template <class A, class ValuesA, class B, class ValuesB, class Out, class ValuesOut, class Less = Smaller>
  CUB_RUNTIME_FUNCTION static cudaError_t MergePairs(MXMACA_STORAGE, A a, ValuesA a_values, std::int64_t a_count, B b,
                                                     ValuesB b_values, std::int64_t b_count, Out out,
                                                     ValuesOut out_values, Less less = {}, cudaStream_t stream = 0) {
    return MXMACA_TASK({
      detail::Size i = 0, j = 0;
      for (detail::Size k = 0; k < a_count + b_count; ++k) {
        const bool second = i == a_count || (j < b_count && less(b[j], a[i]));
        if (second) {
          out[k] = b[j];
          out_values[k] = b_values[j++];
        } else {
          out[k] = a[i];
          out_values[k] = a_values[i++];
        }
      }
    });
  }
};

struct DeviceSpmv {
  // y = A x, of a matrix in CSR with `rows` + 1 offsets.
  template <class T>
  CUB_RUNTIME_FUNCTION static cudaError_t CsrMV(MXMACA_STORAGE, const T* values, const int* offsets, const int* columns,
                                                const T* x, T* y, int rows, int, int, MXMACA_STREAM) {
    return MXMACA_TASK({
      for (int row = 0; row < rows; ++row) {
        T sum{};
        for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum += values[i] * x[columns[i]];
        y[row] = sum;
      }
    });
  }
};

CUB_NAMESPACE_END
