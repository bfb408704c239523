// What every file of the runtime shares: the calling thread's state, the sticky error, the fork guard.
#pragma once

#include <atomic>
#include <cstdint>

#include "mc_runtime.h"

namespace mc {

// Lives in initial-exec TLS, so that calls on hot paths cost one load: keep it small and trivially destructible.
struct ThreadState {
  int device;
  mcError_t lastError;
  bool noContext;  // the thread has popped its last context; see mcContextSet
  uint16_t part;   // of the current context; see Note [Parts]
  bool ofRuntime;  // the runtime has made the thread
};
extern thread_local ThreadState threadState;

extern std::atomic<int> stickyError;

inline mcError_t fail(mcError_t error) {
  threadState.lastError = error;
  return error;
}

// As `fail`, and mcGetErrorString shows `detail` behind the message from now on.
mcError_t failWith(mcError_t error, const char* detail);

// The process's sticky error, recorded for the calling thread too.
inline mcError_t checkSticky() {
  const int sticky = stickyError.load(std::memory_order_relaxed);
  return __builtin_expect(sticky != 0, 0) ? fail(static_cast<mcError_t>(sticky)) : mcSuccess;
}

// Whether the device belongs to the process that this one was forked from.
inline bool isForkedChild() { return stickyError.load(std::memory_order_relaxed) == mcErrorInitializationError; }

void setSticky(mcError_t error, const char* detail);

// Devices that the process has used: each has a context from then on, as a driver makes it at the first use.
inline std::atomic<uint64_t> usedDevices{0};
inline void useDevice(int device) {
  const uint64_t bit = uint64_t{1} << static_cast<unsigned>(device);
  if ((usedDevices.load(std::memory_order_relaxed) & bit) == 0) usedDevices.fetch_or(bit);
}

// Called by what gives the process something that a fork cannot take along (memory, streams, events): from then on a
// forked child gets an initialization error, as on real hardware.
void markInitialized();

#define MC_RETURN_IF_STICKY()                           \
  do {                                                  \
    const mcError_t stickyError_ = ::mc::checkSticky(); \
    if (stickyError_ != mcSuccess) return stickyError_; \
  } while (0)

}  // namespace mc
