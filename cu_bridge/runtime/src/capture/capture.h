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

#include "check/check.h"
#include "late/late.h"
#include "mc_runtime.h"
#include "profile/profile.h"
#include "queue/queue.h"
#include "state/activity.h"
#include "state/state.h"
#include "state/stream_table.h"

namespace mc {

struct Capture;
struct KernelLaunch;

// How much of each stream's captured work somebody has waited for: stream id to number of nodes.
using CaptureClock = std::map<unsigned long long, size_t>;

// What an event that was recorded in a capture stands for.
struct CapturedEvent {
  std::shared_ptr<Capture> capture;
  CaptureClock clock;
};

// Whether the calling thread's work on capturing streams runs at once (mcCaptureSuspend).
bool captureSuspended();

// One node for the capture of `stream`, if it has one and the thread has not suspended it: *recorded. Fails for a
// capture that is invalid, and for work on a default stream that would wait for a capturing one.
struct NodeWork {
  const char* kind;
  std::string label;
  std::function<mcError_t()> work;
  unsigned flags = 0;                            // of its task; see mcStreamSubmit
  std::shared_ptr<const KernelLaunch> launch{};  // of a kernel
};
mcError_t recordWork(mcStream_t stream, NodeWork work, bool* recorded);

// A call that waits for `stream` (NULL: for all of the device) or asks about it ends its capture.
mcError_t refuseWait(mcStream_t stream);

// A call that is not allowed while the thread's capture mode protects a capture (memory, events, waiting).
mcError_t refuseUnsafe();

mcError_t captureEventRecord(mcStream_t stream, std::shared_ptr<CapturedEvent>* captured);
mcError_t captureWait(mcStream_t stream, const std::shared_ptr<CapturedEvent>& captured);

// Begins a capture into `graph` (NULL: a new one), whose first work comes after `dependencies`. Nobody is told of a
// quiet one, which ends in the call of the program that began it.
struct CaptureTarget {
  mcGraph_t graph = nullptr;
  const mcGraphNode_t* dependencies = nullptr;
  size_t count = 0;
  bool quiet = false;
};
mcError_t beginCapture(mcStream_t stream, mcCaptureMode mode, const CaptureTarget& target);

// Whether work on the stream becomes a node.
bool isCaptured(mcStream_t stream);

// A stream that goes while it is captured takes its capture with it.
void captureForget(mcStream_t stream);

// As a call that waits for `stream`, without waiting: it is one, the device works, and nobody captures it.
mcError_t checkUncaptured(mcStream_t stream);

// What submitted work is, beside its kind: a text for a node of a graph, and a record for a profiler.
struct KernelLabel {
  std::string name;
  mcDim3 grid, block;
  size_t sharedBytes, staticSharedBytes;
  std::shared_ptr<const KernelLaunch> launch{};  // NULL: nobody can ask a node for it
};
struct CopyLabel {
  size_t bytes;
  mcMemoryKind source, target;
};
struct FillLabel {
  size_t bytes;
  unsigned value;
};
inline std::string nodeLabel(const char* text) { return text; }
inline std::string nodeLabel(const KernelLabel& kernel) { return kernel.name; }
inline std::string nodeLabel(const CopyLabel& copy) { return std::to_string(copy.bytes) + " bytes"; }
inline std::string nodeLabel(const FillLabel& fill) { return std::to_string(fill.bytes) + " bytes"; }

template <class Label>
std::shared_ptr<const KernelLaunch> nodeLaunch(const Label& /*label*/) {
  return nullptr;
}
inline std::shared_ptr<const KernelLaunch> nodeLaunch(const KernelLabel& kernel) { return kernel.launch; }

ProfiledWork profiledWork(const char* kind, const char* label);
ProfiledWork profiledWork(const char* kind, const KernelLabel& kernel);
ProfiledWork profiledWork(const char* kind, const CopyLabel& copy);
ProfiledWork profiledWork(const char* kind, const FillLabel& fill);
mcCall callOf(const char* kind);

template <class Work>
mcError_t submitNow(mcStream_t stream, const char* kind, unsigned flags, Work&& work) {
  if (inTask()) return work();
  if (lateMode) late::workBegins(stream);
  if ((flags & mcTaskWaits) != 0 || isPending(stream)) return enqueue(stream, flags, std::forward<Work>(work));
  const check::Scope computes(kind);
  return work();
}

// Runs `work` for the stream: now; as a node of its capture; or, behind what is pending, as a task. `flags` as for
// mcStreamSubmit.
template <class Label, class Work>
mcError_t submit(mcStream_t stream, const char* kind, const Label& label, Work&& work, unsigned flags = 0) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (undisturbed() && (flags & mcTaskWaits) == 0) return work();
  const ProfiledCall call(profiling() ? callOf(kind) : mcCallOther);
  // Of captured work a profiler sees the launches of its graph.
  if (profiling() && !isProfileSilent() && !isCaptured(stream)) {
    return submitNow(stream, kind, flags, timed(stream, profiledWork(kind, label), work));
  }
  if (capturing()) {
    bool recorded = false;
    const mcError_t problem = recordWork(stream, {kind, nodeLabel(label), work, flags, nodeLaunch(label)}, &recorded);
    if (problem != mcSuccess || recorded) return problem;
  }
  return submitNow(stream, kind, flags, std::forward<Work>(work));
}

#define MC_RETURN_IF_CAPTURE_FORBIDS()                      \
  do {                                                      \
    if (::mc::capturing()) {                                \
      const mcError_t captureError_ = ::mc::refuseUnsafe(); \
      if (captureError_ != mcSuccess) return captureError_; \
    }                                                       \
  } while (0)

}  // namespace mc
