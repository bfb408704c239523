// Barriers in inline PTX: mbarrier objects in shared memory, and what lanes exchange. Included by ptx.h. The threads of
// a block run on one thread of the processor, so nothing here is atomic.
#pragma once

namespace mxmaca {
namespace ptx {

// ---- mbarrier -------------------------------------------------------------------------------------------------------
struct PhasedBarrier {
  uint64_t pending : 20, expected : 20, phase : 1;
  int64_t bytes : 23;  // that copies have still to bring

  void complete_if_nothing_is_missing() {
    if (pending != 0 || bytes != 0) return;
    pending = expected;
    phase ^= 1;
  }
};
static_assert(sizeof(PhasedBarrier) == 8, "PTX gives an mbarrier 8 bytes");

inline void barrier_initialize(void* place, uint32_t count) {
  const PhasedBarrier fresh = {count, count, 0, 0};
  memcpy(place, &fresh, sizeof fresh);
}
// The state before, as mbarrier.arrive returns it.
template <class Change>
inline uint64_t barrier_change(void* place, Change change) {
  uint64_t before;
  memcpy(&before, place, 8);
  PhasedBarrier barrier = bit_cast<PhasedBarrier>(before);
  change(barrier);
  barrier.complete_if_nothing_is_missing();
  memcpy(place, &barrier, 8);
  return before;
}
inline uint64_t barrier_arrive(void* place, uint32_t count, int32_t bytes = 0, bool drop = false) {
  return barrier_change(place, [=](PhasedBarrier& barrier) {
    if (count > barrier.pending) {
      ::__cudaKernelFail(cudaErrorLaunchFailure, "more arrivals at an mbarrier than its phase expects");
    }
    if (drop) barrier.expected -= count;
    barrier.bytes += bytes;
    barrier.pending -= count;
  });
}
inline void barrier_expect(void* place, int32_t bytes) {
  barrier_change(place, [=](PhasedBarrier& barrier) { barrier.bytes += bytes; });
}
inline bool barrier_passed(const void* place, bool phase) {
  for (int i = 0;; ++i) {
    PhasedBarrier barrier;
    memcpy(static_cast<void*>(&barrier), place, 8);
    if ((barrier.phase != 0) != phase) return true;
    if (i == 1) return false;
    yield();
  }
}
inline bool phase_of(uint64_t state) { return bit_cast<PhasedBarrier>(state).phase != 0; }
inline uint32_t pending_of(uint64_t state) { return static_cast<uint32_t>(bit_cast<PhasedBarrier>(state).pending); }

// The address in a block of the cluster, of which there is one.
template <class T>
inline T only_block(T address, uint32_t rank) {
  if (rank != 0) ::__cudaKernelFail(cudaErrorLaunchFailure, "mapa: clusters are of one block on this device");
  return address;
}

// ---- Warps ----------------------------------------------------------------------------------------------------------
struct Shuffled {
  uint32_t value;
  bool inside;
};
// bounds: the last lane of a segment in bits 0 to 4, and which bits of a lane's number say the segment in 8 to 12.
template <mcWarpOperation kind>
inline Shuffled shuffled(uint32_t value, uint32_t by, uint32_t bounds, uint32_t mask,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const int own = static_cast<int>(lane()), segment = static_cast<int>(bounds >> 8 & 31);
  const int first = own & segment, last = first | (static_cast<int>(bounds & 31) & ~segment);
  const int step = static_cast<int>(by & 31);
  int from;
  if constexpr (kind == mcWarpShuffleUp) {
    from = own - step;
  } else if constexpr (kind == mcWarpShuffleDown) {
    from = own + step;
  } else if constexpr (kind == mcWarpShuffleXor) {
    from = own ^ step;
  } else {
    from = first | (step & ~segment);
  }
  const bool inside = kind == mcWarpShuffleUp ? from >= last : from <= last;
  if (!inside) from = own;
  return {shuffle(kind, mask, value, static_cast<unsigned>(from), file, line), inside};
}

// Of the lanes that come here one is elected: the first.
inline bool elected(uint32_t mask, uint32_t& leader) {
  __syncwarp(mask);
  leader = mask == 0 ? 0 : static_cast<uint32_t>(__builtin_ctz(mask));
  return lane() == leader;
}

}  // namespace ptx
}  // namespace mxmaca
