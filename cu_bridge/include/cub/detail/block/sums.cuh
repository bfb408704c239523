// Reductions and scans of a block.
#pragma once

#include "common.cuh"

CUB_NAMESPACE_BEGIN
#ifdef __CUDACC__

template <class T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int LegacyArch = 0>
class BlockReduce {
 public:
  struct __align__(16) TempStorage {
    Uninitialized<T> item[X * Y * Z];
  };
  MXMACA_BLOCK(BlockReduce)

  // The result is the first thread's.
  template <class Op>
  __device__ T Reduce(T input, Op op, int valid) {
    // Blocks that are larger than the template says have their sum of the first threads on hardware.
    if (thread_ < threads) new (&storage_.item[thread_]) T(input);
    __syncthreads();
    if (thread_ != 0) return input;
    T* const item = &storage_.item[0].Alias();
    if (valid > threads) valid = threads;
    T total = input;
    for (int warp = 0; warp < valid; warp += 32) {
      const int width = valid - warp < 32 ? valid - warp : 32;
      for (int offset = 1; offset < width; offset *= 2) {
        for (int lane = 0; lane + offset < width; lane += 2 * offset) {
          item[warp + lane] = op(item[warp + lane], item[warp + lane + offset]);
        }
      }
      total = warp == 0 ? item[0] : static_cast<T>(op(total, item[warp]));
    }
    return total;
  }
  template <class Op>
  __device__ T Reduce(T input, Op op) {
    return Reduce(input, op, threads);
  }
  template <int Items, class Op>
  __device__ T Reduce(T (&inputs)[Items], Op op) {
    T partial = inputs[0];
    for (int i = 1; i < Items; ++i) partial = op(partial, inputs[i]);
    return Reduce(partial, op, threads);
  }
  __device__ T Sum(T input) { return Reduce(input, CUB_NS_QUALIFIER::Sum()); }
  __device__ T Sum(T input, int valid) { return Reduce(input, CUB_NS_QUALIFIER::Sum(), valid); }
  template <int Items>
  __device__ T Sum(T (&inputs)[Items]) {
    return Reduce(inputs, CUB_NS_QUALIFIER::Sum());
  }
};

template <class T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockScan {
 public:
  struct __align__(16) TempStorage {
    Uninitialized<T> item[X * Y * Z];
    Uninitialized<T> prefix;
  };
  MXMACA_BLOCK(BlockScan)

  // ---- One item a thread
  template <class Op>
  __device__ void InclusiveScan(T input, T& output, Op op, T& aggregate) {
    put_and_scan(input, op);
    output = item(thread_);
    aggregate = item(threads - 1);
  }
  template <class Op>
  __device__ void InclusiveScan(T input, T& output, Op op) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate);
  }
  template <class Op>
  __device__ void InclusiveScan(T input, T& output, T initial, Op op, T& aggregate) {
    InclusiveScan(input, output, op, aggregate);
    output = op(initial, output);
  }
  template <class Op, class Prefix, class = std::enable_if_t<!std::is_same<Prefix, T>::value>>
  __device__ void InclusiveScan(T input, T& output, Op op, Prefix& prefix) {
    T before;
    scan_with_prefix(input, before, op, prefix);
    output = op(before, input);
  }
  // Without an initial value the first thread's exclusive result is undefined (here: its input).
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, Op op, T& aggregate) {
    put_and_scan(input, op);
    output = thread_ == 0 ? input : item(thread_ - 1);
    aggregate = item(threads - 1);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, Op op) {
    T aggregate;
    ExclusiveScan(input, output, op, aggregate);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, T initial, Op op, T& aggregate) {
    ExclusiveScan(input, output, op, aggregate);
    output = thread_ == 0 ? initial : static_cast<T>(op(initial, output));
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, T initial, Op op) {
    T aggregate;
    ExclusiveScan(input, output, initial, op, aggregate);
  }
  template <class Op, class Prefix,
            class = std::enable_if_t<!std::is_same<Prefix, T>::value && !std::is_convertible<Op, T>::value>>
  __device__ void ExclusiveScan(T input, T& output, Op op, Prefix& prefix) {
    scan_with_prefix(input, output, op, prefix);
  }

  // ---- Several items a thread, blocked
  template <int Items, class Op>
  __device__ void InclusiveScan(T (&input)[Items], T (&output)[Items], Op op, T& aggregate) {
    T before;
    ExclusiveScan(partial(input, op), before, op, aggregate);
    inclusive(input, output, op, before, thread_ != 0);
  }
  template <int Items, class Op>
  __device__ void InclusiveScan(T (&input)[Items], T (&output)[Items], Op op) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate);
  }
  template <int Items, class Op, class Prefix, class = std::enable_if_t<!std::is_same<Prefix, T>::value>>
  __device__ void InclusiveScan(T (&input)[Items], T (&output)[Items], Op op, Prefix& prefix) {
    T before;
    scan_with_prefix(partial(input, op), before, op, prefix);
    inclusive(input, output, op, before, true);
  }
  template <int Items, class Op>
  __device__ void ExclusiveScan(T (&input)[Items], T (&output)[Items], Op op, T& aggregate) {
    T before;
    ExclusiveScan(partial(input, op), before, op, aggregate);
    exclusive(input, output, op, before, thread_ != 0);
  }
  template <int Items, class Op>
  __device__ void ExclusiveScan(T (&input)[Items], T (&output)[Items], Op op) {
    T aggregate;
    ExclusiveScan(input, output, op, aggregate);
  }
  template <int Items, class Op>
  __device__ void ExclusiveScan(T (&input)[Items], T (&output)[Items], T initial, Op op, T& aggregate) {
    T before;
    ExclusiveScan(partial(input, op), before, initial, op, aggregate);
    exclusive(input, output, op, before, true);
  }
  template <int Items, class Op>
  __device__ void ExclusiveScan(T (&input)[Items], T (&output)[Items], T initial, Op op) {
    T aggregate;
    ExclusiveScan(input, output, initial, op, aggregate);
  }
  template <int Items, class Op, class Prefix,
            class = std::enable_if_t<!std::is_same<Prefix, T>::value && !std::is_convertible<Op, T>::value>>
  __device__ void ExclusiveScan(T (&input)[Items], T (&output)[Items], Op op, Prefix& prefix) {
    T before;
    scan_with_prefix(partial(input, op), before, op, prefix);
    exclusive(input, output, op, before, true);
  }

  // ---- Sums
  __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, plus()); }
  template <class Last>
  __device__ void InclusiveSum(T input, T& output, Last& aggregate_or_prefix) {
    InclusiveScan(input, output, plus(), aggregate_or_prefix);
  }
  __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), plus()); }
  __device__ void ExclusiveSum(T input, T& output, T& aggregate) {
    ExclusiveScan(input, output, T(0), plus(), aggregate);
  }
  template <class Prefix, class = std::enable_if_t<!std::is_same<Prefix, T>::value>>
  __device__ void ExclusiveSum(T input, T& output, Prefix& prefix) {
    ExclusiveScan(input, output, plus(), prefix);
  }
  template <int Items>
  __device__ void InclusiveSum(T (&input)[Items], T (&output)[Items]) {
    InclusiveScan(input, output, plus());
  }
  template <int Items, class Last>
  __device__ void InclusiveSum(T (&input)[Items], T (&output)[Items], Last& aggregate_or_prefix) {
    InclusiveScan(input, output, plus(), aggregate_or_prefix);
  }
  template <int Items>
  __device__ void ExclusiveSum(T (&input)[Items], T (&output)[Items]) {
    ExclusiveScan(input, output, T(0), plus());
  }
  template <int Items>
  __device__ void ExclusiveSum(T (&input)[Items], T (&output)[Items], T& aggregate) {
    ExclusiveScan(input, output, T(0), plus(), aggregate);
  }
  template <int Items, class Prefix, class = std::enable_if_t<!std::is_same<Prefix, T>::value>>
  __device__ void ExclusiveSum(T (&input)[Items], T (&output)[Items], Prefix& prefix) {
    ExclusiveScan(input, output, plus(), prefix);
  }

 private:
  using plus = CUB_NS_QUALIFIER::Sum;
  __device__ T& item(int i) { return storage_.item[i].Alias(); }
  template <class Op>
  __device__ void put_and_scan(const T& input, Op& op) {
    new (&storage_.item[thread_]) T(input);
    __syncthreads();
    if (thread_ == 0) {
      for (int i = 1; i < threads; ++i) item(i) = op(item(i - 1), item(i));
    }
    __syncthreads();
  }
  // The first warp asks for what comes before the block; its first lane's answer counts.
  template <class Op, class Prefix>
  __device__ void scan_with_prefix(const T& input, T& before, Op op, Prefix& prefix) {
    put_and_scan(input, op);
    const T inclusive_before = thread_ == 0 ? input : item(thread_ - 1);
    if (thread_ < 32) {
      const T block_prefix = prefix(item(threads - 1));
      if (thread_ == 0) new (&storage_.prefix) T(block_prefix);
    }
    __syncthreads();
    const T& start = storage_.prefix.Alias();
    before = thread_ == 0 ? start : static_cast<T>(op(start, inclusive_before));
  }
  template <int Items, class Op>
  static __device__ T partial(T (&input)[Items], Op& op) {
    T sum = input[0];
    for (int i = 1; i < Items; ++i) sum = op(sum, input[i]);
    return sum;
  }
  template <int Items, class Op>
  static __device__ void inclusive(T (&input)[Items], T (&output)[Items], Op& op, T before, bool has_before) {
    for (int i = 0; i < Items; ++i) {
      before = i > 0 || has_before ? static_cast<T>(op(before, input[i])) : input[i];
      output[i] = before;
    }
  }
  template <int Items, class Op>
  static __device__ void exclusive(T (&input)[Items], T (&output)[Items], Op& op, T before, bool has_before) {
    for (int i = 0; i < Items; ++i) {
      // The input may be the output.
      const T value = input[i];
      output[i] = before;
      before = i > 0 || has_before ? static_cast<T>(op(before, value)) : value;
    }
  }
};

#endif
CUB_NAMESPACE_END
