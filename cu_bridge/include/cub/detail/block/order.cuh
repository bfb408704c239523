// Sorting and histograms of a block.
#pragma once

#include "common.cuh"
#include "exchange.cuh"

CUB_NAMESPACE_BEGIN
#ifdef __CUDACC__

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

// ---- Histogram ------------------------------------------------------------------------------------------------------
template <class T, int X, int Items, int Bins, BlockHistogramAlgorithm Algorithm = BLOCK_HISTO_SORT, int Y = 1,
          int Z = 1, int LegacyArch = 0>
class BlockHistogram {
 public:
  struct __align__(16) TempStorage {
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

#endif
CUB_NAMESPACE_END
