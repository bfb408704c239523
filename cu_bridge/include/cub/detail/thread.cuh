// What one thread does with an array of its own, and searches in sorted ranges.
#pragma once

#include <utility>

#include "../util_type.cuh"

CUB_NAMESPACE_BEGIN

// ---- Sums -----------------------------------------------------------------------------------------------------------

namespace internal {

template <int Length, class T, class Op, class Prefix>
__host__ __device__ Prefix ThreadReduce(const T* input, Op op, Prefix prefix) {
  for (int i = 0; i < Length; ++i) prefix = op(prefix, input[i]);
  return prefix;
}
template <int Length, class T, class Op>
__host__ __device__ T ThreadReduce(const T* input, Op op) {
  return ThreadReduce<Length - 1>(input + 1, op, T(input[0]));
}
template <int Length, class T, class Op, class Prefix>
__host__ __device__ Prefix ThreadReduce(const T (&input)[Length], Op op, Prefix prefix) {
  return ThreadReduce<Length>(static_cast<const T*>(input), op, prefix);
}
template <int Length, class T, class Op>
__host__ __device__ T ThreadReduce(const T (&input)[Length], Op op) {
  return ThreadReduce<Length>(static_cast<const T*>(input), op);
}

// The scans return the sum of all. Output may be the input.
template <int Length, class T, class Op>
__host__ __device__ T ThreadScanExclusive(const T* input, T* output, Op op, T prefix, bool apply_prefix = true) {
  T sum = apply_prefix ? prefix : T(input[0]);
  int first = 0;
  if (!apply_prefix) first = 1;  // what stands at 0 is undefined then, and stays
  for (int i = first; i < Length; ++i) {
    const T value = input[i];
    output[i] = sum;
    sum = op(sum, value);
  }
  return sum;
}
template <int Length, class T, class Op>
__host__ __device__ T ThreadScanExclusive(const T (&input)[Length], T (&output)[Length], Op op, T prefix,
                                          bool apply_prefix = true) {
  return ThreadScanExclusive<Length>(static_cast<const T*>(input), static_cast<T*>(output), op, prefix, apply_prefix);
}
template <int Length, class T, class Op>
__host__ __device__ T ThreadScanInclusive(const T* input, T* output, Op op) {
  T sum = input[0];
  output[0] = sum;
  for (int i = 1; i < Length; ++i) output[i] = sum = op(sum, input[i]);
  return sum;
}
template <int Length, class T, class Op>
__host__ __device__ T ThreadScanInclusive(const T* input, T* output, Op op, T prefix, bool apply_prefix = true) {
  T sum = apply_prefix ? T(op(prefix, input[0])) : T(input[0]);
  output[0] = sum;
  for (int i = 1; i < Length; ++i) output[i] = sum = op(sum, input[i]);
  return sum;
}
template <int Length, class T, class Op>
__host__ __device__ T ThreadScanInclusive(const T (&input)[Length], T (&output)[Length], Op op) {
  return ThreadScanInclusive<Length>(static_cast<const T*>(input), static_cast<T*>(output), op);
}
template <int Length, class T, class Op>
__host__ __device__ T ThreadScanInclusive(const T (&input)[Length], T (&output)[Length], Op op, T prefix,
                                          bool apply_prefix = true) {
  return ThreadScanInclusive<Length>(static_cast<const T*>(input), static_cast<T*>(output), op, prefix, apply_prefix);
}

}  // namespace internal
using internal::ThreadReduce;

// ---- Searches -------------------------------------------------------------------------------------------------------

// Where a diagonal of the grid of two sorted lists crosses the path that merges them; equal elements of `a` come first.
template <class A, class B, class Offset, class Coordinate>
__host__ __device__ void MergePathSearch(Offset diagonal, A a, B b, Offset a_count, Offset b_count,
                                         Coordinate& coordinate) {
  Offset low = diagonal > b_count ? diagonal - b_count : 0;
  Offset high = diagonal < a_count ? diagonal : a_count;
  while (low < high) {
    const Offset middle = low + (high - low) / 2;
    if (b[diagonal - middle - 1] < a[middle])
      high = middle;
    else
      low = middle + 1;
  }
  coordinate.x = low < a_count ? low : a_count;
  coordinate.y = diagonal - low;
}
// The place of the first element that is not less than the value; of the first that is greater.
template <class Input, class Offset, class T>
__host__ __device__ Offset LowerBound(Input input, Offset count, T value) {
  Offset first = 0;
  while (count > 0) {
    const Offset half = count / 2;
    if (input[first + half] < value) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}
template <class Input, class Offset, class T>
__host__ __device__ Offset UpperBound(Input input, Offset count, T value) {
  Offset first = 0;
  while (count > 0) {
    const Offset half = count / 2;
    if (value < input[first + half]) {
      count = half;
    } else {
      first += half + 1;
      count -= half + 1;
    }
  }
  return first;
}

// ---- Order ----------------------------------------------------------------------------------------------------------

template <class T>
__host__ __device__ void Swap(T& a, T& b) {
  T kept = std::move(a);
  a = std::move(b);
  b = std::move(kept);
}
// Stable, for a few elements.
template <class Key, class Value, class Less, int Items>
__host__ __device__ void StableOddEvenSort(Key (&keys)[Items], Value (&values)[Items], Less less) {
  for (int i = 1; i < Items; ++i) {
    for (int j = i; j > 0 && less(keys[j], keys[j - 1]); --j) {
      Swap(keys[j], keys[j - 1]);
      if constexpr (!std::is_same<Value, NullType>::value) Swap(values[j], values[j - 1]);
    }
  }
}

CUB_NAMESPACE_END
