// Where a block lays out its elements for the threads of one warp, each of which goes through a segment of them.
#pragma once

#include "common.cuh"

CUB_NAMESPACE_BEGIN

// A segment of even length has an element behind it that is not used: on GPUs it puts neighbours' segments into
// different banks. Programs that reach into the storage themselves count on these places.
template <class T, int BlockThreads, int /*legacy_ptx_arch*/ = 0>
struct BlockRakingLayout {
  enum {
    SHARED_ELEMENTS = BlockThreads,
    MAX_RAKING_THREADS = BlockThreads < CUB_PTX_WARP_THREADS ? BlockThreads : CUB_PTX_WARP_THREADS,
    SEGMENT_LENGTH = (SHARED_ELEMENTS + MAX_RAKING_THREADS - 1) / MAX_RAKING_THREADS,
    RAKING_THREADS = (SHARED_ELEMENTS + SEGMENT_LENGTH - 1) / SEGMENT_LENGTH,
    HAS_CONFLICTS = CUB_PTX_WARP_THREADS % SEGMENT_LENGTH == 0,
    CONFLICT_DEGREE = HAS_CONFLICTS ? MAX_RAKING_THREADS * SEGMENT_LENGTH / CUB_PTX_WARP_THREADS : 1,
    USE_SEGMENT_PADDING = SEGMENT_LENGTH % 2 == 0 && SEGMENT_LENGTH > 2,
    GRID_ELEMENTS = RAKING_THREADS * (SEGMENT_LENGTH + USE_SEGMENT_PADDING),
    // Whether all threads have whole segments.
    UNGUARDED = SHARED_ELEMENTS % RAKING_THREADS == 0,
  };
  struct __align__(16) _TempStorage {
    T buff[GRID_ELEMENTS];
  };
  struct TempStorage : Uninitialized<_TempStorage> {};

  // The place of a thread's element.
  static __device__ T* PlacementPtr(TempStorage& storage, unsigned linear_tid) {
    const unsigned padding = USE_SEGMENT_PADDING ? linear_tid / SEGMENT_LENGTH : 0;
    return storage.Alias().buff + linear_tid + padding;
  }
  // The begin of the segment that a thread goes through.
  static __device__ T* RakingPtr(TempStorage& storage, unsigned linear_tid) {
    return storage.Alias().buff + linear_tid * (SEGMENT_LENGTH + USE_SEGMENT_PADDING);
  }
};

CUB_NAMESPACE_END
