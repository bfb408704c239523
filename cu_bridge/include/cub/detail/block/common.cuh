// Collectives of a block. All threads put what they have into shared memory; after one barrier the first thread works
// it out, in the order of operations that cub has, and after another all read. One barrier costs a simulated block more
// than the work that would be saved by sharing it.
#pragma once

#include "../../util_type.cuh"
#include "../iterators.cuh"
#include "../order.cuh"
#include "../warp.cuh"

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

#endif

CUB_NAMESPACE_END
