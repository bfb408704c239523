// Loads, stores and exchanges of a block.
#pragma once

#include "common.cuh"

CUB_NAMESPACE_BEGIN
#ifdef __CUDACC__

template <class T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1,
          int LegacyArch = 0>
class BlockLoad {
 public:
  using TempStorage = std::conditional_t<Algorithm == BLOCK_LOAD_TRANSPOSE || Algorithm == BLOCK_LOAD_WARP_TRANSPOSE ||
                                             Algorithm == BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
                                         detail::ItemStorage<T, X * Y * Z * Items>, detail::NoStorage>;
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
  using TempStorage =
      std::conditional_t<Algorithm == BLOCK_STORE_TRANSPOSE || Algorithm == BLOCK_STORE_WARP_TRANSPOSE ||
                             Algorithm == BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
                         detail::ItemStorage<T, X * Y * Z * Items>, detail::NoStorage>;
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
  using TempStorage = detail::ItemStorage<T, X * Y * Z * Items>;
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

#endif
CUB_NAMESPACE_END
