// Runs and digits of a block's elements.
#pragma once

#include "common.cuh"

CUB_NAMESPACE_BEGIN

// The digit of a key between two bits. The keys are as radix sort has made them, so their order is that of their bits.
template <class Key>
struct BFEDigitExtractor {
  std::uint32_t bit_start, num_bits;
  explicit __host__ __device__ BFEDigitExtractor(std::uint32_t start = 0, std::uint32_t bits = 0)
      : bit_start(start), num_bits(bits) {}
  __host__ __device__ std::uint32_t Digit(Key key) const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(key) >> bit_start) & ((1U << num_bits) - 1);
  }
};
template <class Key>
struct ShiftDigitExtractor : BFEDigitExtractor<Key> {
  using BFEDigitExtractor<Key>::BFEDigitExtractor;
};

#ifdef __CUDACC__

// Items and the lengths of their runs become the items, each as often as its run is long, in windows of as many as the
// block's threads hold.
template <class Item, int X, int Runs, int Decoded, class DecodedOffset = std::uint32_t, int Y = 1, int Z = 1>
class BlockRunLengthDecode {
 public:
  struct __align__(16) TempStorage {
    Uninitialized<Item> items[X * Y * Z * Runs];
    DecodedOffset begin[X * Y * Z * Runs + 1];
  };

  template <class Length, class Total>
  __device__ BlockRunLengthDecode(TempStorage& storage, Item (&items)[Runs], Length (&lengths)[Runs], Total& total)
      : storage_(storage), thread_(tid()) {
    for (int i = 0; i < Runs; ++i) storage_.begin[thread_ * Runs + i] = static_cast<DecodedOffset>(lengths[i]);
    put(items);
    __syncthreads();
    if (thread_ == 0) {
      DecodedOffset sum = 0;
      for (DecodedOffset& begin : storage_.begin) {
        const DecodedOffset length = &begin == &storage_.begin[threads * Runs] ? DecodedOffset{0} : begin;
        begin = sum;
        sum += length;
      }
    }
    __syncthreads();
    total = static_cast<Total>(storage_.begin[threads * Runs]);
  }
  // With the place of each run, where it is known already.
  template <class Offset>
  __device__ BlockRunLengthDecode(TempStorage& storage, Item (&items)[Runs], Offset (&offsets)[Runs])
      : storage_(storage), thread_(tid()) {
    for (int i = 0; i < Runs; ++i) storage_.begin[thread_ * Runs + i] = static_cast<DecodedOffset>(offsets[i]);
    put(items);
    if (thread_ == 0) storage_.begin[threads * Runs] = static_cast<DecodedOffset>(~DecodedOffset{0});
    __syncthreads();
  }

  // What lies past the end of all runs is undefined.
  template <class Relative>
  __device__ void RunLengthDecode(Item (&decoded)[Decoded], Relative (&offsets)[Decoded], DecodedOffset from = 0) {
    for (int i = 0; i < Decoded; ++i) {
      const DecodedOffset place = from + static_cast<DecodedOffset>(thread_ * Decoded + i);
      const int run = find(place);
      decoded[i] = storage_.items[run].Alias();
      offsets[i] = static_cast<Relative>(place - storage_.begin[run]);
    }
  }
  __device__ void RunLengthDecode(Item (&decoded)[Decoded], DecodedOffset from = 0) {
    DecodedOffset offsets[Decoded];
    RunLengthDecode(decoded, offsets, from);
  }

 private:
  static constexpr int threads = X * Y * Z;
  static __device__ int tid() { return static_cast<int>(RowMajorTid(X, Y, Z)); }
  __device__ void put(Item (&items)[Runs]) {
    for (int i = 0; i < Runs; ++i) new (&storage_.items[thread_ * Runs + i]) Item(items[i]);
  }
  // The last run that begins at or before the place; those that are empty begin where the next one does.
  __device__ int find(DecodedOffset place) const {
    int low = 0, high = threads * Runs;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (storage_.begin[middle] <= place)
        low = middle;
      else
        high = middle;
    }
    return low;
  }

  TempStorage& storage_;
  const int thread_;
};

// The place that each key takes when the block's keys, blocked, are sorted by a digit, stably.
template <int X, int RadixBits, bool Descending, bool MemoizeOuterScan = true,
          BlockScanAlgorithm Algorithm = BLOCK_SCAN_WARP_SCANS,
          cudaSharedMemConfig Config = cudaSharedMemBankSizeFourByte, int Y = 1, int Z = 1>
class BlockRadixRank {
 public:
  enum { BINS_TRACKED_PER_THREAD = ((1 << RadixBits) + X * Y * Z - 1) / (X * Y * Z) };
  struct __align__(16) TempStorage {
    std::uint32_t count[X * Y * Z][1 << RadixBits];
    std::uint32_t begin[1 << RadixBits];
  };
  MXMACA_BLOCK(BlockRadixRank)

  template <class Bits, int Keys, class Extractor>
  __device__ void RankKeys(Bits (&keys)[Keys], int (&ranks)[Keys], Extractor digits) {
    for (std::uint32_t& count : storage_.count[thread_]) count = 0;
    for (int i = 0; i < Keys; ++i) ranks[i] = static_cast<int>(storage_.count[thread_][digit(keys[i], digits)]++);
    __syncthreads();
    if (thread_ == 0) {
      std::uint32_t sum = 0;
      for (int bin = 0; bin < bins; ++bin) {
        storage_.begin[bin] = sum;
        for (int thread = 0; thread < threads; ++thread) {
          const std::uint32_t count = storage_.count[thread][bin];
          storage_.count[thread][bin] = sum;
          sum += count;
        }
      }
    }
    __syncthreads();
    for (int i = 0; i < Keys; ++i) ranks[i] += static_cast<int>(storage_.count[thread_][digit(keys[i], digits)]);
  }
  template <class Bits, int Keys, class Extractor>
  __device__ void RankKeys(Bits (&keys)[Keys], int (&ranks)[Keys], Extractor digits,
                           int (&exclusive_prefix)[BINS_TRACKED_PER_THREAD]) {
    RankKeys(keys, ranks, digits);
    for (int i = 0; i < BINS_TRACKED_PER_THREAD; ++i) {
      const int bin = thread_ * BINS_TRACKED_PER_THREAD + i;
      if (bin < bins) exclusive_prefix[i] = static_cast<int>(storage_.begin[Descending ? bins - 1 - bin : bin]);
    }
  }

 private:
  static constexpr int bins = 1 << RadixBits;
  template <class Bits, class Extractor>
  __device__ int digit(Bits key, Extractor& digits) const {
    const int found = static_cast<int>(digits.Digit(key));
    return Descending ? bins - 1 - found : found;
  }
};

#endif
CUB_NAMESPACE_END
