// Parts of a device: how many of its multiprocessors the kernels of a stream or a thread get. See Note [Parts].
//
// Note [Parts]
// ~~~~~~~~~~~~
// The multiprocessors of a device are the threads that run its blocks. A kernel in a part of N of M multiprocessors is
// run by N/M of those threads, by one at least. A part is a number, so that a thread's current one fits into its state;
// 0 is the whole device. A stream belongs to the part that was current when it was made; the default streams belong to
// the calling thread's.
#pragma once

#include <atomic>
#include <cstdint>

#include "state/stream_table.h"

namespace mc {

constexpr unsigned kParts = 4096;
struct Part {
  uint16_t device, multiprocessors;  // of the latter 0: no such part
};
inline std::atomic<Part> parts[kParts];

inline unsigned partOf(mcStream_t stream) {
  if (!isDefaultStream(stream)) return stream->part;
  const unsigned part = threadState.part;
  if (__builtin_expect(part == 0, 1)) return 0;
  return parts[part].load(std::memory_order_relaxed).device == threadState.device ? part : 0;
}

// How many multiprocessors of a device, which has `all` of them, the part has. One that is over has all again.
inline unsigned multiprocessorsOf(unsigned part, unsigned all) {
  const unsigned own = part == 0 ? 0 : parts[part].load(std::memory_order_relaxed).multiprocessors;
  return own == 0 || own > all ? all : own;
}

}  // namespace mc
