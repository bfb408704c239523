// Which lane another one reads from, and what lanes exchange where a kernel's threads run as loops between its waits.
#pragma once

#include <cstdlib>
#include <type_traits>

#include "mc_device_limits.h"

namespace mxmaca {

constexpr unsigned most_threads = mc::limits::kThreadsPerBlock;

// The lane that `lane` of a group of `width` lanes reads from, or its own where the group ends.
static inline unsigned shuffle_up_lane(unsigned own, unsigned delta, int width) {
  return (own & (static_cast<unsigned>(width) - 1)) < delta ? own : own - delta;
}
static inline unsigned shuffle_down_lane(unsigned own, unsigned delta, int width) {
  const unsigned place = own & (static_cast<unsigned>(width) - 1);
  return delta >= static_cast<unsigned>(width) - place ? own : own + delta;
}
static inline unsigned shuffle_index_lane(unsigned own, int index, int width) {
  return (own & ~(static_cast<unsigned>(width) - 1)) |
         (static_cast<unsigned>(index) & (static_cast<unsigned>(width) - 1));
}
static inline unsigned shuffle_xor_lane(unsigned own, int bits, int width) {
  const unsigned from = own ^ static_cast<unsigned>(bits);
  // A lane of a later group may not be read, one of an earlier group may.
  return from >= ((own & ~(static_cast<unsigned>(width) - 1)) + static_cast<unsigned>(width)) ? own : from;
}

// An array that each thread has of its own, in memory for as long as the variable is in scope (cucc's arrays.py).
template <class T>
class PerThread {
 public:
  explicit PerThread(unsigned threads)
      : memory_(static_cast<T*>(std::aligned_alloc(64, (threads * sizeof(T) + 63) / 64 * 64))) {
    if (memory_ == nullptr) __builtin_trap();
  }
  ~PerThread() { __builtin_free(memory_); }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;
  T& operator[](int thread) const { return memory_[thread]; }

 private:
  T* memory_;
};
template <class T>
__attribute__((always_inline)) inline void start_array(T& array, const T& first) {
  __builtin_memcpy(static_cast<void*>(&array), static_cast<const void*>(&first), sizeof(T));
}

// A shuffle between two phases: the first puts the lanes' values into an array that has room for a warp at both ends,
// so that the second can read its neighbours' unconditionally, and with them many at a time.
constexpr unsigned lanes_bytes = 8 * (most_threads + 64);
template <class T>
__attribute__((always_inline)) inline T lane_at(const char* lanes, int thread) {
  T value;
  __builtin_memcpy(static_cast<void*>(&value), lanes + (thread + 32) * static_cast<int>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
__attribute__((always_inline)) inline void put_lane(char* lanes, int thread, const T& value) {
  __builtin_memcpy(lanes + (thread + 32) * static_cast<int>(sizeof(T)), static_cast<const void*>(&value), sizeof(T));
}
// Every lane that is read is there: blocks with a part of a warp run on stacks (WholeWarps).
template <class T>
__attribute__((always_inline)) inline T lane_down(const char* lanes, int thread, unsigned delta, int width) {
  const T own = lane_at<T>(lanes, thread), other = lane_at<T>(lanes, thread + static_cast<int>(delta & 31));
  const unsigned place = static_cast<unsigned>(thread) & (static_cast<unsigned>(width) - 1);
  return delta < static_cast<unsigned>(width) - place ? other : own;
}
template <class T>
__attribute__((always_inline)) inline T lane_up(const char* lanes, int thread, unsigned delta, int width) {
  const T own = lane_at<T>(lanes, thread), other = lane_at<T>(lanes, thread - static_cast<int>(delta & 31));
  return (static_cast<unsigned>(thread) & (static_cast<unsigned>(width) - 1)) < delta ? own : other;
}
template <class T>
__attribute__((always_inline)) inline T lane_from(const char* lanes, int thread, unsigned from) {
  return lane_at<T>(lanes, (thread & ~31) + static_cast<int>(from));
}
template <class T>
__attribute__((always_inline)) inline T lane_xor(const char* lanes, int thread, int bits, int width) {
  return lane_from<T>(lanes, thread, shuffle_xor_lane(static_cast<unsigned>(thread) & 31, bits, width));
}
template <class T>
__attribute__((always_inline)) inline T lane_index(const char* lanes, int thread, int index, int width) {
  return lane_from<T>(lanes, thread, shuffle_index_lane(static_cast<unsigned>(thread) & 31, index, width));
}

// What a tile of cooperative groups exchanges is of the type that it is given, also where that is no word of a shuffle.
template <class T, class = typename std::enable_if<sizeof(T) <= 8 && std::is_trivially_copyable<T>::value>::type>
T lane_value(T);
// A reduction of a tile between two phases, by the last of its threads: in the order of cooperative_groups/reduce.h.
// The result lies in the place of the first one.
template <class T, class Op>
__attribute__((always_inline)) inline void reduce_lanes(char* lanes, int thread, int size, const Op& op) {
  if (((thread + 1) & (size - 1)) != 0) return;
  const int first = thread + 1 - size;
  T sums[32];
  for (int i = 0; i < size; ++i) sums[i] = lane_at<T>(lanes, first + i);
  for (int offset = 1; offset < size; offset *= 2) {
    for (int i = 0; i < size; i += 2 * offset) sums[i] = op(sums[i], sums[i + offset]);
  }
  put_lane<T>(lanes, first, sums[0]);
}

// A vote of a warp between two phases: a bit for each lane, of which the first comes first.
__attribute__((always_inline)) inline void put_vote(char* lanes, int thread, int predicate) {
  char* const place = lanes + (thread >> 5) * 4;
  unsigned votes = 0;
  if ((thread & 31) != 0) __builtin_memcpy(&votes, place, 4);
  votes |= static_cast<unsigned>(predicate != 0) << (thread & 31);
  __builtin_memcpy(place, &votes, 4);
}
__attribute__((always_inline)) inline unsigned lane_ballot(const char* lanes, int thread) {
  unsigned votes;
  __builtin_memcpy(&votes, lanes + (thread >> 5) * 4, 4);
  return votes;
}
__attribute__((always_inline)) inline int lane_any(const char* lanes, int thread) {
  return lane_ballot(lanes, thread) != 0;
}
__attribute__((always_inline)) inline int lane_all(const char* lanes, int thread) {
  return lane_ballot(lanes, thread) == 0xffffffffU;
}

}  // namespace mxmaca
