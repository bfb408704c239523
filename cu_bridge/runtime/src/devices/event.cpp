// Events: a stamp of the monotonic clock. Their stream's work is complete when they are recorded.

#include <time.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "capture/capture.h"
#include "devices/device.h"
#include "state/state.h"
#include "state/stream_table.h"

struct mcEvent {
  int device;
  unsigned int flags;
  std::atomic<int64_t> nanoseconds{0};            // 0: never recorded
  std::shared_ptr<mc::CapturedEvent> captured{};  // of its last record, if that was in a capture; see capturedMutex
};

using namespace mc;

namespace {

constexpr unsigned int kKnownFlags = 7;  // blocking sync, disable timing, interprocess
constexpr char kIpcEventMagic[8] = "mcevent";

int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// Guards mcEvent::captured. Events are not touched by it while nothing is captured.
std::mutex& capturedMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::atomic<bool> anyCaptured{false};

std::shared_ptr<CapturedEvent> capturedIn(mcEvent_t event) {
  if (!anyCaptured.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard<std::mutex> lock(capturedMutex());
  return event->captured;
}

HandleTable<mcEvent> events;

bool isEvent(mcEvent_t event) { return events.contains(event); }
bool canRecord(mcEvent_t event, mcStream_t stream) {
  return isEvent(event) && isStream(stream) && event->device == streamDevice(stream);
}

}  // namespace

mcError_t mcEventCreate(mcEvent_t* event, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  const bool timedInterprocess = (flags & mcEventInterprocess) != 0 && (flags & mcEventDisableTiming) == 0;
  if (event == nullptr || (flags & ~kKnownFlags) != 0 || timedInterprocess) return fail(mcErrorInvalidValue);
  if (visibleDevice(threadState.device) == nullptr) return fail(mcErrorNoDevice);
  markInitialized();
  *event = events.create(threadState.device, flags);
  return mcSuccess;
}

mcError_t mcEventDestroy(mcEvent_t event) {
  return events.destroy(event) ? checkSticky() : fail(mcErrorInvalidResourceHandle);
}

// In a capture an external record is a node: the event is recorded by each launch of the graph, and is no part of the
// capture itself.
mcError_t mcEventRecordExternal(mcEvent_t event, mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!canRecord(event, stream)) return fail(mcErrorInvalidResourceHandle);
  return submit(stream, "event record", "", [event] {
    if (!isEvent(event)) return fail(mcErrorInvalidResourceHandle);
    event->nanoseconds.store(now(), std::memory_order_relaxed);
    return mcSuccess;
  });
}

mcError_t mcEventRecord(mcEvent_t event, mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!canRecord(event, stream)) return fail(mcErrorInvalidResourceHandle);
  if (capturing() || anyCaptured.load(std::memory_order_relaxed)) {
    std::shared_ptr<CapturedEvent> captured;
    const mcError_t problem = captureEventRecord(stream, &captured);
    if (problem != mcSuccess) return problem;
    const std::lock_guard<std::mutex> lock(capturedMutex());
    event->captured = captured;
    if (captured != nullptr) {
      anyCaptured.store(true, std::memory_order_relaxed);
      return mcSuccess;
    }
  }
  event->nanoseconds.store(now(), std::memory_order_relaxed);
  return mcSuccess;
}

mcError_t mcEventCheck(mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  if (!isEvent(event)) return fail(mcErrorInvalidResourceHandle);
  if (capturedIn(event) != nullptr) return fail(mcErrorCapturedEvent);
  return capturing() ? refuseUnsafe() : mcSuccess;
}

mcError_t mcStreamWaitEvent(mcStream_t stream, mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream) || !isEvent(event)) return fail(mcErrorInvalidResourceHandle);
  const std::shared_ptr<CapturedEvent> captured = capturedIn(event);
  return captured != nullptr || capturing() ? captureWait(stream, captured) : mcSuccess;
}

// In a capture an external wait is a node. The event's work is complete when it is recorded, so the node has nothing to
// wait for when it runs.
mcError_t mcStreamWaitEventExternal(mcStream_t stream, mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream) || !isEvent(event)) return fail(mcErrorInvalidResourceHandle);
  return submit(stream, "event wait", "",
                [event] { return isEvent(event) ? mcSuccess : fail(mcErrorInvalidResourceHandle); });
}

mcError_t mcEventElapsedTime(float* milliseconds, mcEvent_t start, mcEvent_t end) {
  MC_RETURN_IF_STICKY();
  if (milliseconds == nullptr) return fail(mcErrorInvalidValue);
  if (!isEvent(start) || !isEvent(end)) return fail(mcErrorInvalidResourceHandle);
  if (capturedIn(start) != nullptr || capturedIn(end) != nullptr) return fail(mcErrorCapturedEvent);
  const int64_t from = start->nanoseconds.load(std::memory_order_relaxed);
  const int64_t to = end->nanoseconds.load(std::memory_order_relaxed);
  const bool untimed = ((start->flags | end->flags) & mcEventDisableTiming) != 0;
  if (untimed || from == 0 || to == 0) return fail(mcErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>(static_cast<double>(to - from) * 1e-6);
  return mcSuccess;
}

// The work before a recorded event is complete in its own process, so an opened event has nothing to wait for: the
// handle needs to carry no more than its kind.
mcError_t mcIpcGetEventHandle(mcIpcHandle* handle, mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  if (handle == nullptr || !isEvent(event)) return fail(mcErrorInvalidResourceHandle);
  if ((event->flags & mcEventInterprocess) == 0) return fail(mcErrorInvalidResourceHandle);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle->reserved, kIpcEventMagic, sizeof kIpcEventMagic);
  return mcSuccess;
}

mcError_t mcIpcOpenEventHandle(mcEvent_t* event, const mcIpcHandle* handle) {
  if (event == nullptr || handle == nullptr) return fail(mcErrorInvalidValue);
  if (std::memcmp(handle->reserved, kIpcEventMagic, sizeof kIpcEventMagic) != 0)
    return fail(mcErrorInvalidResourceHandle);
  return mcEventCreate(event, mcEventInterprocess | mcEventDisableTiming);
}
