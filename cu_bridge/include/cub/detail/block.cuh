// Collectives of a block. All threads put what they have into shared memory; after one barrier the first thread works it
// out, in the order of operations that cub has, and after another all read. One barrier costs a simulated block more than
// the work that would be saved by sharing it.
#pragma once

#include "../util_type.cuh"
#include "iterators.cuh"
#include "order.cuh"
#include "warp.cuh"

CUB_NAMESPACE_BEGIN

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

#ifdef __CUDACC__

namespace detail {
// Of the collectives that users also build without naming any storage.
template <class Storage>
__device__ Storage& private_storage() {
  __shared__ Storage storage;
  return storage;
}
}  // namespace detail

#define MXMACA_BLOCK(name)                                                                \
  __device__ name() : storage_(detail::private_storage<TempStorage>()), thread_(tid()) {} \
  __device__ explicit name(TempStorage& storage) : storage_(storage), thread_(tid()) {}   \
                                                                                          \
 private:                                                                                 \
  static constexpr int threads = X * Y * Z;                                               \
  static __device__ int tid() { return static_cast<int>(RowMajorTid(X, Y, Z)); }          \
  TempStorage & storage_;                                                                 \
  const int thread_;                                                                      \
                                                                                          \
 public:

template <class T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int LegacyArch = 0>
class BlockReduce {
 public:
  struct TempStorage {
    Uninitialized<T> item[X * Y * Z];
  };
  MXMACA_BLOCK(BlockReduce)

  // The result is the first thread's.
  template <class Op>
  __device__ T Reduce(T input, Op op, int valid) {
    new (&storage_.item[thread_]) T(input);
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
  struct TempStorage {
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

// ---- Loads and stores -----------------------------------------------------------------------------------------------------
template <class T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1,
          int LegacyArch = 0>
class BlockLoad {
 public:
  using TempStorage = detail::NoStorage;
  __device__ BlockLoad() {}
  __device__ explicit BlockLoad(TempStorage&) {}
  template <class Iterator>
  __device__ void Load(Iterator from, T (&items)[Items]) {
    for (int i = 0; i < Items; ++i) items[i] = from[position(i)];
  }
  template <class Iterator>
  __device__ void Load(Iterator from, T (&items)[Items], int valid) {
    for (int i = 0; i < Items; ++i) {
      if (position(i) < valid) items[i] = from[position(i)];
    }
  }
  template <class Iterator, class Default>
  __device__ void Load(Iterator from, T (&items)[Items], int valid, Default rest) {
    for (int i = 0; i < Items; ++i) {
      if (position(i) < valid)
        items[i] = from[position(i)];
      else
        items[i] = rest;
    }
  }

 private:
  static __device__ int position(int i) {
    const int thread = static_cast<int>(RowMajorTid(X, Y, Z));
    return Algorithm == BLOCK_LOAD_STRIPED ? i * X * Y * Z + thread : thread * Items + i;
  }
};
template <class T, int X, int Items, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
          int LegacyArch = 0>
class BlockStore {
 public:
  using TempStorage = detail::NoStorage;
  __device__ BlockStore() {}
  __device__ explicit BlockStore(TempStorage&) {}
  template <class Iterator>
  __device__ void Store(Iterator to, T (&items)[Items]) {
    for (int i = 0; i < Items; ++i) to[position(i)] = items[i];
  }
  template <class Iterator>
  __device__ void Store(Iterator to, T (&items)[Items], int valid) {
    for (int i = 0; i < Items; ++i) {
      if (position(i) < valid) to[position(i)] = items[i];
    }
  }

 private:
  static __device__ int position(int i) {
    const int thread = static_cast<int>(RowMajorTid(X, Y, Z));
    return Algorithm == BLOCK_STORE_STRIPED ? i * X * Y * Z + thread : thread * Items + i;
  }
};

// The free functions of the same arrangements.
template <class T, int Items, class Iterator>
__device__ void LoadDirectBlocked(int thread, Iterator from, T (&items)[Items]) {
  for (int i = 0; i < Items; ++i) items[i] = from[thread * Items + i];
}
template <class T, int Items, class Iterator>
__device__ void LoadDirectBlocked(int thread, Iterator from, T (&items)[Items], int valid) {
  for (int i = 0; i < Items; ++i) {
    if (thread * Items + i < valid) items[i] = from[thread * Items + i];
  }
}
template <int Threads, class T, int Items, class Iterator>
__device__ void LoadDirectStriped(int thread, Iterator from, T (&items)[Items]) {
  for (int i = 0; i < Items; ++i) items[i] = from[thread + i * Threads];
}
template <int Threads, class T, int Items, class Iterator>
__device__ void LoadDirectStriped(int thread, Iterator from, T (&items)[Items], int valid) {
  for (int i = 0; i < Items; ++i) {
    if (thread + i * Threads < valid) items[i] = from[thread + i * Threads];
  }
}
template <class T, int Items, class Iterator>
__device__ void StoreDirectBlocked(int thread, Iterator to, T (&items)[Items]) {
  for (int i = 0; i < Items; ++i) to[thread * Items + i] = items[i];
}
template <class T, int Items, class Iterator>
__device__ void StoreDirectBlocked(int thread, Iterator to, T (&items)[Items], int valid) {
  for (int i = 0; i < Items; ++i) {
    if (thread * Items + i < valid) to[thread * Items + i] = items[i];
  }
}
template <int Threads, class T, int Items, class Iterator>
__device__ void StoreDirectStriped(int thread, Iterator to, T (&items)[Items]) {
  for (int i = 0; i < Items; ++i) to[thread + i * Threads] = items[i];
}
template <int Threads, class T, int Items, class Iterator>
__device__ void StoreDirectStriped(int thread, Iterator to, T (&items)[Items], int valid) {
  for (int i = 0; i < Items; ++i) {
    if (thread + i * Threads < valid) to[thread + i * Threads] = items[i];
  }
}

template <class T, int X, int Items, bool TimeSlicing = false, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockExchange {
 public:
  struct TempStorage {
    Uninitialized<T> item[X * Y * Z * Items];
  };
  MXMACA_BLOCK(BlockExchange)

  template <class Out>
  __device__ void BlockedToStriped(const T (&in)[Items], Out (&out)[Items]) {
    exchange(in, out, [this](int i) { return blocked(i); }, [this](int i) { return striped(i); });
  }
  template <class Out>
  __device__ void StripedToBlocked(const T (&in)[Items], Out (&out)[Items]) {
    exchange(in, out, [this](int i) { return striped(i); }, [this](int i) { return blocked(i); });
  }
  template <class Out>
  __device__ void BlockedToWarpStriped(const T (&in)[Items], Out (&out)[Items]) {
    exchange(in, out, [this](int i) { return blocked(i); }, [this](int i) { return warp_striped(i); });
  }
  template <class Out>
  __device__ void WarpStripedToBlocked(const T (&in)[Items], Out (&out)[Items]) {
    exchange(in, out, [this](int i) { return warp_striped(i); }, [this](int i) { return blocked(i); });
  }
  template <class Out, class Offset>
  __device__ void ScatterToBlocked(const T (&in)[Items], Out (&out)[Items], Offset (&ranks)[Items]) {
    exchange(in, out, [&](int i) { return static_cast<int>(ranks[i]); }, [this](int i) { return blocked(i); });
  }
  template <class Out, class Offset>
  __device__ void ScatterToStriped(const T (&in)[Items], Out (&out)[Items], Offset (&ranks)[Items]) {
    exchange(in, out, [&](int i) { return static_cast<int>(ranks[i]); }, [this](int i) { return striped(i); });
  }
  // A negative rank is not written.
  template <class Out, class Offset>
  __device__ void ScatterToStripedGuarded(const T (&in)[Items], Out (&out)[Items], Offset (&ranks)[Items]) {
    exchange(in, out, [&](int i) { return static_cast<int>(ranks[i]); }, [this](int i) { return striped(i); });
  }
  template <class Out, class Offset, class Flag>
  __device__ void ScatterToStripedFlagged(const T (&in)[Items], Out (&out)[Items], Offset (&ranks)[Items],
                                          Flag (&valid)[Items]) {
    exchange(
        in, out, [&](int i) { return valid[i] ? static_cast<int>(ranks[i]) : -1; },
        [this](int i) { return striped(i); });
  }
  // In place.
  __device__ void BlockedToStriped(T (&items)[Items]) { BlockedToStriped(items, items); }
  __device__ void StripedToBlocked(T (&items)[Items]) { StripedToBlocked(items, items); }
  __device__ void BlockedToWarpStriped(T (&items)[Items]) { BlockedToWarpStriped(items, items); }
  __device__ void WarpStripedToBlocked(T (&items)[Items]) { WarpStripedToBlocked(items, items); }
  template <class Offset>
  __device__ void ScatterToBlocked(T (&items)[Items], Offset (&ranks)[Items]) {
    ScatterToBlocked(items, items, ranks);
  }
  template <class Offset>
  __device__ void ScatterToStriped(T (&items)[Items], Offset (&ranks)[Items]) {
    ScatterToStriped(items, items, ranks);
  }

 private:
  __device__ int blocked(int i) const { return thread_ * Items + i; }
  __device__ int striped(int i) const { return i * threads + thread_; }
  __device__ int warp_striped(int i) const {
    const int warp = thread_ / 32, width = threads - warp * 32 < 32 ? threads - warp * 32 : 32;
    return warp * 32 * Items + i * width + thread_ % 32;
  }
  template <class Out, class To, class From>
  __device__ void exchange(const T (&in)[Items], Out (&out)[Items], To to, From from) {
    for (int i = 0; i < Items; ++i) {
      const int place = to(i);
      if (place >= 0) new (&storage_.item[place]) T(in[i]);
    }
    __syncthreads();
    for (int i = 0; i < Items; ++i) out[i] = storage_.item[from(i)].Alias();
  }
};

// ---- Sorting ----------------------------------------------------------------------------------------------------------------
template <class Key, int X, int Items, class Value = NullType, int RadixBits = 4, bool MemoizeOuterScan = true,
          BlockScanAlgorithm InnerScan = BLOCK_SCAN_WARP_SCANS,
          cudaSharedMemConfig Banks = cudaSharedMemBankSizeFourByte, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockRadixSort {
 public:
  using TempStorage = detail::SortStorage<Key, Value, X * Y * Z * Items>;
  MXMACA_BLOCK(BlockRadixSort)

  __device__ void Sort(Key (&keys)[Items], int begin_bit = 0, int end_bit = sizeof(Key) * 8) {
    NullType none[Items];
    run(keys, none, begin_bit, end_bit, false, false);
  }
  __device__ void Sort(Key (&keys)[Items], Value (&values)[Items], int begin_bit = 0, int end_bit = sizeof(Key) * 8) {
    run(keys, values, begin_bit, end_bit, false, false);
  }
  __device__ void SortDescending(Key (&keys)[Items], int begin_bit = 0, int end_bit = sizeof(Key) * 8) {
    NullType none[Items];
    run(keys, none, begin_bit, end_bit, true, false);
  }
  __device__ void SortDescending(Key (&keys)[Items], Value (&values)[Items], int begin_bit = 0,
                                 int end_bit = sizeof(Key) * 8) {
    run(keys, values, begin_bit, end_bit, true, false);
  }
  __device__ void SortBlockedToStriped(Key (&keys)[Items], int begin_bit = 0, int end_bit = sizeof(Key) * 8) {
    NullType none[Items];
    run(keys, none, begin_bit, end_bit, false, true);
  }
  __device__ void SortBlockedToStriped(Key (&keys)[Items], Value (&values)[Items], int begin_bit = 0,
                                       int end_bit = sizeof(Key) * 8) {
    run(keys, values, begin_bit, end_bit, false, true);
  }
  __device__ void SortDescendingBlockedToStriped(Key (&keys)[Items], int begin_bit = 0, int end_bit = sizeof(Key) * 8) {
    NullType none[Items];
    run(keys, none, begin_bit, end_bit, true, true);
  }
  __device__ void SortDescendingBlockedToStriped(Key (&keys)[Items], Value (&values)[Items], int begin_bit = 0,
                                                 int end_bit = sizeof(Key) * 8) {
    run(keys, values, begin_bit, end_bit, true, true);
  }

 private:
  template <class V>
  __device__ void run(Key (&keys)[Items], V (&values)[Items], int begin_bit, int end_bit, bool descending,
                      bool to_striped) {
    storage_.put(thread_, keys, values);
    __syncthreads();
    if (thread_ == 0) {
      storage_.sort(threads * Items, nullptr, detail::RadixKey<Key>{begin_bit, end_bit, descending});
    }
    __syncthreads();
    if (to_striped)
      storage_.get_striped(thread_, threads, keys, values);
    else
      storage_.get(thread_, keys, values);
  }
};

template <class Key, int X, int Items, class Value = NullType, int Y = 1, int Z = 1>
class BlockMergeSort
    : public detail::MergeSorting<BlockMergeSort<Key, X, Items, Value, Y, Z>, Key, Items, Value, X * Y * Z * Items> {
 public:
  using TempStorage = detail::SortStorage<Key, Value, X * Y * Z * Items>;
  MXMACA_BLOCK(BlockMergeSort)

 private:
  friend class detail::MergeSorting<BlockMergeSort, Key, Items, Value, threads * Items>;
  template <class V, class Less>
  __device__ void run(Key (&keys)[Items], V (&values)[Items], Less less, int valid, const Key* rest) {
    storage_.put(thread_, keys, values);
    __syncthreads();
    if (thread_ == 0) storage_.sort(valid, rest, less);
    __syncthreads();
    storage_.get(thread_, keys, values);
  }
};

// ---- Histogram --------------------------------------------------------------------------------------------------------------
template <class T, int X, int Items, int Bins, BlockHistogramAlgorithm Algorithm = BLOCK_HISTO_SORT, int Y = 1,
          int Z = 1, int LegacyArch = 0>
class BlockHistogram {
 public:
  struct TempStorage {
    Uninitialized<T> item[X * Y * Z * Items];
  };
  MXMACA_BLOCK(BlockHistogram)

  template <class Counter>
  __device__ void InitHistogram(Counter (&histogram)[Bins]) {
    for (int bin = thread_; bin < Bins; bin += threads) histogram[bin] = 0;
  }
  template <class Counter>
  __device__ void Histogram(T (&items)[Items], Counter (&histogram)[Bins]) {
    InitHistogram(histogram);
    __syncthreads();
    Composite(items, histogram);
  }
  template <class Counter>
  __device__ void Composite(T (&items)[Items], Counter (&histogram)[Bins]) {
    for (int i = 0; i < Items; ++i) new (&storage_.item[thread_ * Items + i]) T(items[i]);
    __syncthreads();
    if (thread_ == 0) {
      for (int i = 0; i < threads * Items; ++i) ++histogram[static_cast<int>(storage_.item[i].Alias())];
    }
  }
};

// ---- Neighbours ---------------------------------------------------------------------------------------------------------------
namespace detail {
template <class Op, class T>
__device__ auto with_index(Op& op, const T& a, const T& b, int index) {
  if constexpr (std::is_invocable<Op&, const T&, const T&, int>::value)
    return op(a, b, index);
  else
    return static_cast<void>(index), op(a, b);
}
}  // namespace detail

template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockDiscontinuity {
 public:
  struct TempStorage {
    Uninitialized<T> first[X * Y * Z], last[X * Y * Z];
  };
  MXMACA_BLOCK(BlockDiscontinuity)

  template <int Items, class Flag, class Op>
  __device__ void FlagHeads(Flag (&heads)[Items], T (&input)[Items], Op op) {
    put(input);
    set_heads(heads, input, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagHeads(Flag (&heads)[Items], T (&input)[Items], Op op, T tile_predecessor) {
    put(input);
    set_heads(heads, input, op, &tile_predecessor);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagTails(Flag (&tails)[Items], T (&input)[Items], Op op) {
    put(input);
    set_tails(tails, input, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagTails(Flag (&tails)[Items], T (&input)[Items], Op op, T tile_successor) {
    put(input);
    set_tails(tails, input, op, &tile_successor);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagHeadsAndTails(Flag (&heads)[Items], Flag (&tails)[Items], T (&input)[Items], Op op) {
    put(input);
    set_heads(heads, input, op, nullptr);
    set_tails(tails, input, op, nullptr);
  }
  template <int Items, class Flag, class Op>
  __device__ void FlagHeadsAndTails(Flag (&heads)[Items], T tile_predecessor, Flag (&tails)[Items], T tile_successor,
                                    T (&input)[Items], Op op) {
    put(input);
    set_heads(heads, input, op, &tile_predecessor);
    set_tails(tails, input, op, &tile_successor);
  }

 private:
  template <int Items>
  __device__ void put(T (&input)[Items]) {
    new (&storage_.first[thread_]) T(input[0]);
    new (&storage_.last[thread_]) T(input[Items - 1]);
    __syncthreads();
  }
  template <int Items, class Flag, class Op>
  __device__ void set_heads(Flag (&heads)[Items], T (&input)[Items], Op& op, const T* before) {
    const T* previous = thread_ == 0 ? before : &storage_.last[thread_ - 1].Alias();
    for (int i = 0; i < Items; ++i) {
      heads[i] = previous == nullptr ? 1 : detail::with_index(op, *previous, input[i], thread_ * Items + i);
      previous = &input[i];
    }
  }
  template <int Items, class Flag, class Op>
  __device__ void set_tails(Flag (&tails)[Items], T (&input)[Items], Op& op, const T* after) {
    const T* const next = thread_ == threads - 1 ? after : &storage_.first[thread_ + 1].Alias();
    for (int i = 0; i < Items; ++i) {
      const T* const following = i + 1 < Items ? &input[i + 1] : next;
      tails[i] = following == nullptr ? 1 : detail::with_index(op, input[i], *following, thread_ * Items + i + 1);
    }
  }
};

template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockAdjacentDifference {
 public:
  struct TempStorage {
    Uninitialized<T> first[X * Y * Z], last[X * Y * Z];
  };
  MXMACA_BLOCK(BlockAdjacentDifference)

  template <int Items, class Out, class Op>
  __device__ void SubtractLeft(T (&input)[Items], Out (&output)[Items], Op op) {
    left(input, output, op, nullptr, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractLeft(T (&input)[Items], Out (&output)[Items], Op op, T tile_predecessor) {
    left(input, output, op, &tile_predecessor, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractLeftPartialTile(T (&input)[Items], Out (&output)[Items], Op op, int valid) {
    left(input, output, op, nullptr, valid);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractRight(T (&input)[Items], Out (&output)[Items], Op op) {
    right(input, output, op, nullptr, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractRight(T (&input)[Items], Out (&output)[Items], Op op, T tile_successor) {
    right(input, output, op, &tile_successor, threads * Items);
  }
  template <int Items, class Out, class Op>
  __device__ void SubtractRightPartialTile(T (&input)[Items], Out (&output)[Items], Op op, int valid) {
    right(input, output, op, nullptr, valid);
  }

 private:
  template <int Items>
  __device__ void put(T (&input)[Items]) {
    new (&storage_.first[thread_]) T(input[0]);
    new (&storage_.last[thread_]) T(input[Items - 1]);
    __syncthreads();
  }
  template <int Items, class Out, class Op>
  __device__ void left(T (&input)[Items], Out (&output)[Items], Op& op, const T* before, int valid) {
    put(input);
    for (int i = Items - 1; i >= 0; --i) {
      const T* const previous = i > 0 ? &input[i - 1] : thread_ > 0 ? &storage_.last[thread_ - 1].Alias() : before;
      output[i] = previous == nullptr || thread_ * Items + i >= valid ? input[i] : op(input[i], *previous);
    }
  }
  template <int Items, class Out, class Op>
  __device__ void right(T (&input)[Items], Out (&output)[Items], Op& op, const T* after, int valid) {
    put(input);
    for (int i = 0; i < Items; ++i) {
      const T* const next = i + 1 < Items           ? &input[i + 1]
                            : thread_ + 1 < threads ? &storage_.first[thread_ + 1].Alias()
                                                    : after;
      const bool alone =
          next == nullptr || thread_ * Items + i >= valid || (after == nullptr && thread_ * Items + i + 1 >= valid);
      output[i] = alone ? input[i] : op(input[i], *next);
    }
  }
};

template <class T, int X, int Y = 1, int Z = 1, int LegacyArch = 0>
class BlockShuffle {
 public:
  struct TempStorage {
    Uninitialized<T> item[X * Y * Z], other[X * Y * Z];
  };
  MXMACA_BLOCK(BlockShuffle)

  // Out of the block: the output keeps its value.
  __device__ void Offset(T input, T& output, int distance = 1) {
    put(input, input);
    const int from = thread_ + distance;
    if (from >= 0 && from < threads) output = storage_.item[from].Alias();
  }
  __device__ void Rotate(T input, T& output, unsigned distance = 1) {
    put(input, input);
    output = storage_.item[(static_cast<unsigned>(thread_) + distance) % threads].Alias();
  }
  template <int Items>
  __device__ void Up(T (&input)[Items], T (&previous)[Items]) {
    put(input[0], input[Items - 1]);
    for (int i = Items - 1; i > 0; --i) previous[i] = input[i - 1];
    if (thread_ > 0) previous[0] = storage_.other[thread_ - 1].Alias();
  }
  template <int Items>
  __device__ void Up(T (&input)[Items], T (&previous)[Items], T& block_suffix) {
    Up(input, previous);
    block_suffix = storage_.other[threads - 1].Alias();
  }
  template <int Items>
  __device__ void Down(T (&input)[Items], T (&next)[Items]) {
    put(input[0], input[Items - 1]);
    for (int i = 0; i + 1 < Items; ++i) next[i] = input[i + 1];
    if (thread_ + 1 < threads) next[Items - 1] = storage_.item[thread_ + 1].Alias();
  }
  template <int Items>
  __device__ void Down(T (&input)[Items], T (&next)[Items], T& block_prefix) {
    Down(input, next);
    block_prefix = storage_.item[0].Alias();
  }

 private:
  __device__ void put(const T& first, const T& last) {
    new (&storage_.item[thread_]) T(first);
    new (&storage_.other[thread_]) T(last);
    __syncthreads();
  }
};
#undef MXMACA_BLOCK
#endif

CUB_NAMESPACE_END
