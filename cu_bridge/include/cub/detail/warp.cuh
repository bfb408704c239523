// Collectives of a warp or of a power-of-two part of one. Reductions and scans go through shuffles in cub's order.
#pragma once

#include <algorithm>

#include "../util_type.cuh"
#include "iterators.cuh"
#include "order.cuh"

#ifdef __CUDACC__
CUB_NAMESPACE_BEGIN

namespace detail {
template <int Threads>
struct LogicalWarp {
  int lane;
  unsigned mask;
  __device__ LogicalWarp() {
    const unsigned hardware_lane = LaneId();
    lane = static_cast<int>(Threads == 32 || !PowerOfTwo<Threads>::VALUE ? hardware_lane : hardware_lane % Threads);
    mask = WarpMask<Threads>(hardware_lane / Threads);
  }
};
// Programs put memory of their own behind a collective's: its size keeps what follows aligned.
struct __align__(16) NoStorage {
  char unused;
};
// What others need who hand the items on through memory; here they are read where they lie.
template <class T, int Count>
struct __align__(16) ItemStorage {
  Uninitialized<T> item[Count];
};
}  // namespace detail

template <class T, int LogicalThreads = 32, int LegacyArch = 0>
class WarpReduce : detail::LogicalWarp<LogicalThreads> {
 public:
  using TempStorage = detail::NoStorage;
  __device__ explicit WarpReduce(TempStorage&) {}

  template <class Op>
  __device__ T Reduce(T input, Op op, int valid) {
    for (int offset = 1; offset < LogicalThreads; offset *= 2) {
      const T other = detail::shuffle_words(
          input, [&](auto word) { return __shfl_down_sync(this->mask, word, static_cast<unsigned>(offset), width()); });
      if (this->lane + offset < valid) input = op(input, other);
    }
    return input;
  }
  template <class Op>
  __device__ T Reduce(T input, Op op) {
    return Reduce(input, op, LogicalThreads);
  }
  __device__ T Sum(T input) { return Reduce(input, cub_sum()); }
  __device__ T Sum(T input, int valid) { return Reduce(input, cub_sum(), valid); }
  __device__ T Max(T input) { return Reduce(input, cub_max()); }
  __device__ T Max(T input, int valid) { return Reduce(input, cub_max(), valid); }
  __device__ T Min(T input) { return Reduce(input, cub_min()); }
  __device__ T Min(T input, int valid) { return Reduce(input, cub_min(), valid); }

  // Reductions of the segments that flags begin (head) or end (tail): the result is in each segment's first lane.
  template <class Op, class Flag>
  __device__ T HeadSegmentedReduce(T input, Flag flag, Op op) {
    return segmented(input, flag != 0, true, op);
  }
  template <class Op, class Flag>
  __device__ T TailSegmentedReduce(T input, Flag flag, Op op) {
    return segmented(input, flag != 0, false, op);
  }
  template <class Flag>
  __device__ T HeadSegmentedSum(T input, Flag flag) {
    return HeadSegmentedReduce(input, flag, cub_sum());
  }
  template <class Flag>
  __device__ T TailSegmentedSum(T input, Flag flag) {
    return TailSegmentedReduce(input, flag, cub_sum());
  }

 private:
  using cub_sum = CUB_NS_QUALIFIER::Sum;
  using cub_max = CUB_NS_QUALIFIER::Max;
  using cub_min = CUB_NS_QUALIFIER::Min;
  static constexpr int width() { return PowerOfTwo<LogicalThreads>::VALUE ? LogicalThreads : 32; }

  template <class Op>
  __device__ T segmented(T input, bool flag, bool heads, Op op) {
    const int hardware_lane = static_cast<int>(LaneId()), base = hardware_lane - this->lane;
    const unsigned flags = __ballot_sync(this->mask, flag) >> base;
    // The last lane of this lane's segment.
    const unsigned after = heads ? (this->lane == 31 ? 0 : flags >> (this->lane + 1)) : flags >> this->lane;
    int last = LogicalThreads - 1;
    if (after != 0) last = std::min(last, this->lane + __ffs(static_cast<int>(after)) - 1);
    for (int offset = 1; offset < LogicalThreads; offset *= 2) {
      const T other = detail::shuffle_down(input, static_cast<unsigned>(offset), width(), this->mask);
      if (this->lane + offset <= last) input = op(input, other);
    }
    return input;
  }
};

template <class T, int LogicalThreads = 32, int LegacyArch = 0>
class WarpScan : detail::LogicalWarp<LogicalThreads> {
 public:
  using TempStorage = detail::NoStorage;
  __device__ explicit WarpScan(TempStorage&) {}

  template <class Op>
  __device__ void InclusiveScan(T input, T& output, Op op) {
    for (int offset = 1; offset < LogicalThreads; offset *= 2) {
      const T other = detail::shuffle_up(input, static_cast<unsigned>(offset), width(), this->mask);
      if (this->lane >= offset) input = op(other, input);
    }
    output = input;
  }
  template <class Op>
  __device__ void InclusiveScan(T input, T& output, Op op, T& aggregate) {
    InclusiveScan(input, output, op);
    aggregate = detail::shuffle_index(output, LogicalThreads - 1, width(), this->mask);
  }
  // Without an initial value the first lane's exclusive result is undefined (here: its input).
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, Op op) {
    T inclusive;
    Scan(input, inclusive, output, op);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, T initial, Op op) {
    T inclusive;
    Scan(input, inclusive, output, initial, op);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, Op op, T& aggregate) {
    T inclusive;
    Scan(input, inclusive, output, op);
    aggregate = detail::shuffle_index(inclusive, LogicalThreads - 1, width(), this->mask);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, T initial, Op op, T& aggregate) {
    T inclusive;
    InclusiveScan(input, inclusive, op, aggregate);
    exclusive_of(inclusive, output, initial, op);
  }
  template <class Op>
  __device__ void Scan(T input, T& inclusive, T& exclusive, Op op) {
    InclusiveScan(input, inclusive, op);
    exclusive = detail::shuffle_up(inclusive, 1, width(), this->mask);
  }
  template <class Op>
  __device__ void Scan(T input, T& inclusive, T& exclusive, T initial, Op op) {
    InclusiveScan(input, inclusive, op);
    exclusive_of(inclusive, exclusive, initial, op);
    inclusive = op(initial, inclusive);
  }
  __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub_sum()); }
  __device__ void InclusiveSum(T input, T& output, T& aggregate) { InclusiveScan(input, output, cub_sum(), aggregate); }
  __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), cub_sum()); }
  __device__ void ExclusiveSum(T input, T& output, T& aggregate) {
    ExclusiveScan(input, output, T(0), cub_sum(), aggregate);
  }
  __device__ void Sum(T input, T& inclusive, T& exclusive) { Scan(input, inclusive, exclusive, T(0), cub_sum()); }
  __device__ T Broadcast(T input, unsigned source) {
    return detail::shuffle_index(input, static_cast<int>(source), width(), this->mask);
  }

 private:
  using cub_sum = CUB_NS_QUALIFIER::Sum;
  static constexpr int width() { return PowerOfTwo<LogicalThreads>::VALUE ? LogicalThreads : 32; }
  template <class Op>
  __device__ void exclusive_of(const T& inclusive, T& exclusive, const T& initial, Op op) {
    const T before = detail::shuffle_up(inclusive, 1, width(), this->mask);
    exclusive = this->lane == 0 ? initial : static_cast<T>(op(initial, before));
  }
};

// ---- Loads, stores, exchanges ---------------------------------------------------------------------------------------
enum WarpLoadAlgorithm { WARP_LOAD_DIRECT, WARP_LOAD_STRIPED, WARP_LOAD_VECTORIZE, WARP_LOAD_TRANSPOSE };
enum WarpStoreAlgorithm { WARP_STORE_DIRECT, WARP_STORE_STRIPED, WARP_STORE_VECTORIZE, WARP_STORE_TRANSPOSE };

template <class T, int Items, WarpLoadAlgorithm Algorithm = WARP_LOAD_DIRECT, int LogicalThreads = 32,
          int LegacyArch = 0>
class WarpLoad : detail::LogicalWarp<LogicalThreads> {
 public:
  using TempStorage = std::conditional_t<Algorithm == WARP_LOAD_TRANSPOSE,
                                         detail::ItemStorage<T, LogicalThreads * Items>, detail::NoStorage>;
  __device__ WarpLoad() = default;
  __device__ explicit WarpLoad(TempStorage&) {}
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
  __device__ int position(int i) const {
    return Algorithm == WARP_LOAD_STRIPED ? i * LogicalThreads + this->lane : this->lane * Items + i;
  }
};
template <class T, int Items, WarpStoreAlgorithm Algorithm = WARP_STORE_DIRECT, int LogicalThreads = 32,
          int LegacyArch = 0>
class WarpStore : detail::LogicalWarp<LogicalThreads> {
 public:
  using TempStorage = std::conditional_t<Algorithm == WARP_STORE_TRANSPOSE,
                                         detail::ItemStorage<T, LogicalThreads * Items>, detail::NoStorage>;
  __device__ WarpStore() = default;
  __device__ explicit WarpStore(TempStorage&) {}
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
  __device__ int position(int i) const {
    return Algorithm == WARP_STORE_STRIPED ? i * LogicalThreads + this->lane : this->lane * Items + i;
  }
};

enum WarpExchangeAlgorithm { WARP_EXCHANGE_SMEM, WARP_EXCHANGE_SHUFFLE };
template <class T, int Items, int LogicalThreads = 32, int LegacyArch = 0,
          WarpExchangeAlgorithm Algorithm = WARP_EXCHANGE_SMEM>
class WarpExchange : detail::LogicalWarp<LogicalThreads> {
 public:
  using TempStorage = detail::ItemStorage<T, LogicalThreads * Items>;
  __device__ explicit WarpExchange(TempStorage& storage) : storage_(storage) {}
  template <class Out>
  __device__ void BlockedToStriped(const T (&in)[Items], Out (&out)[Items]) {
    for (int i = 0; i < Items; ++i) storage_.item[this->lane * Items + i].Alias() = in[i];
    __syncwarp(this->mask);
    for (int i = 0; i < Items; ++i) out[i] = storage_.item[i * LogicalThreads + this->lane].Alias();
  }
  template <class Out>
  __device__ void StripedToBlocked(const T (&in)[Items], Out (&out)[Items]) {
    for (int i = 0; i < Items; ++i) storage_.item[i * LogicalThreads + this->lane].Alias() = in[i];
    __syncwarp(this->mask);
    for (int i = 0; i < Items; ++i) out[i] = storage_.item[this->lane * Items + i].Alias();
  }
  template <class Offset>
  __device__ void ScatterToStriped(T (&items)[Items], Offset (&ranks)[Items]) {
    for (int i = 0; i < Items; ++i) storage_.item[ranks[i]].Alias() = items[i];
    __syncwarp(this->mask);
    for (int i = 0; i < Items; ++i) items[i] = storage_.item[i * LogicalThreads + this->lane].Alias();
  }

 private:
  TempStorage& storage_;
};

template <class Key, int Items, int LogicalThreads = 32, class Value = NullType, int LegacyArch = 0>
class WarpMergeSort : detail::LogicalWarp<LogicalThreads>,
                      public detail::MergeSorting<WarpMergeSort<Key, Items, LogicalThreads, Value, LegacyArch>, Key,
                                                  Items, Value, LogicalThreads * Items> {
 public:
  using TempStorage = detail::SortStorage<Key, Value, LogicalThreads * Items>;
  __device__ explicit WarpMergeSort(TempStorage& storage) : storage_(storage) {}
  __device__ unsigned get_member_mask() const { return this->mask; }

 private:
  friend class detail::MergeSorting<WarpMergeSort, Key, Items, Value, LogicalThreads * Items>;
  template <class V, class Less>
  __device__ void run(Key (&keys)[Items], V (&values)[Items], Less less, int valid, const Key* rest) {
    storage_.put(this->lane, keys, values);
    __syncwarp(this->mask);
    if (this->lane == 0) storage_.sort(valid, rest, less);
    __syncwarp(this->mask);
    storage_.get(this->lane, keys, values);
  }
  TempStorage& storage_;
};

CUB_NAMESPACE_END
#endif
