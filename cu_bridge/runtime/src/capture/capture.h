// Stream capture, as the files of the runtime that take work for a stream see it.
//
// Work that is submitted to a capturing stream becomes a node of a graph instead of running. Nodes keep the order in
// which they were submitted, which is one that all dependencies allow, and a launch runs them in that order.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "mc_runtime.h"
#include "state/state.h"
#include "state/stream_table.h"

namespace mc {

struct Capture;

// How much of each stream's captured work somebody has waited for: stream id to number of nodes.
using CaptureClock = std::map<unsigned long long, size_t>;

// What an event that was recorded in a capture stands for.
struct CapturedEvent {
  std::shared_ptr<Capture> capture;
  CaptureClock clock;
};

// Captures under way in the process. Nothing else of a capture is looked at while it is 0.
extern std::atomic<int> activeCaptures;

// Whether the calling thread's work on capturing streams runs at once (mcCaptureSuspend).
bool captureSuspended();

// One node for the capture of `stream`, if it has one and the thread has not suspended it: *recorded. Fails for a
// capture that is invalid, and for work on a default stream that would wait for a capturing one.
mcError_t recordWork(mcStream_t stream, const char* kind, const std::string& label, std::function<mcError_t()> work,
                     bool* recorded);

// A call that waits for `stream` (NULL: for all of the device) or asks about it ends its capture.
mcError_t refuseWait(mcStream_t stream);

// A call that is not allowed while the thread's capture mode protects a capture (memory, events, waiting).
mcError_t refuseUnsafe();

mcError_t captureEventRecord(mcStream_t stream, std::shared_ptr<CapturedEvent>* captured);
mcError_t captureWait(mcStream_t stream, const std::shared_ptr<CapturedEvent>& captured);

// A stream that goes while it is captured takes its capture with it.
void captureForget(mcStream_t stream);

inline bool capturing() { return __builtin_expect(activeCaptures.load(std::memory_order_relaxed) != 0, 0); }

inline std::string nodeLabel(const char* text) { return text; }
inline std::string nodeLabel(size_t bytes) { return std::to_string(bytes) + " bytes"; }

// Runs `work` for the stream: now, or as a node of its capture.
template <class Label, class Work>
mcError_t submit(mcStream_t stream, const char* kind, const Label& label, Work&& work) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (!capturing()) return work();
  bool recorded = false;
  const mcError_t problem = recordWork(stream, kind, nodeLabel(label), work, &recorded);
  return problem != mcSuccess || recorded ? problem : work();
}

#define MC_RETURN_IF_CAPTURE_FORBIDS()                      \
  do {                                                      \
    if (::mc::capturing()) {                                \
      const mcError_t captureError_ = ::mc::refuseUnsafe(); \
      if (captureError_ != mcSuccess) return captureError_; \
    }                                                       \
  } while (0)

}  // namespace mc
