// Events: a stamp of the monotonic clock; and, when they are recorded on a stream with pending work, the task that
// takes it. Those of several processes are numbers in memory that all of them map (host/shared_event.h).

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "capture/capture.h"
#include "capture/launch_work.h"
#include "devices/device.h"
#include "host/shared_event.h"
#include "profile/profile.h"
#include "queue/queue.h"
#include "state/state.h"
#include "state/stream_table.h"

struct mcEvent {
  int device;
  unsigned int flags;
  std::atomic<int64_t> nanoseconds{0};  // 0: never recorded
  std::atomic<bool> late{false};        // `point` is not null
  mc::TaskRef point{};                  // of its last record, until it is known to be finished; see detailMutex
  std::shared_ptr<mc::CapturedEvent> captured{};  // of its last record, if that was in a capture; see detailMutex
  std::shared_ptr<mc::SharedEvent> shared{};      // of interprocess events: what all processes know of its records
};

using namespace mc;

namespace {

constexpr unsigned int kKnownFlags = 7;  // blocking sync, disable timing, interprocess
constexpr char kIpcEventMagic[8] = "mcevent";

// Guards mcEvent::point and captured. Events are not touched by it while nothing is captured or pending.
std::mutex& detailMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::atomic<bool> anyCaptured{false};

std::shared_ptr<CapturedEvent> capturedIn(mcEvent_t event) {
  if (!anyCaptured.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard<std::mutex> lock(detailMutex());
  return event->captured;
}

// The unfinished task that the event's last record is, or null.
TaskRef pointOf(mcEvent_t event) {
  if (!event->late.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard<std::mutex> lock(detailMutex());
  if (event->point != nullptr && isFinished(event->point)) {
    event->nanoseconds.store(finishedAt(event->point), std::memory_order_relaxed);
    event->point = nullptr;
    event->late.store(false, std::memory_order_release);
  }
  return event->point;
}

// Other processes cannot ask about a task. Work behind it tells them.
void recordShared(const std::shared_ptr<SharedEvent>& shared, mcStream_t stream, bool pending) {
  const uint64_t record = shared->record();
  const auto reach = [shared, record] {
    shared->reach(record);
    return mcSuccess;
  };
  // Without a thread for it the calling one waits.
  if (!pending || enqueue(stream, kTaskAlways, reach) != mcSuccess) {
    waitTurn(stream);
    reach();
  }
}

// Whether the event's last record, by any process, is still to be reached. `record`: its number, of a shared event.
bool isPendingShared(mcEvent_t event, uint64_t* record) {
  if (event->shared == nullptr) return false;
  *record = event->shared->last();
  return !event->shared->isReached(*record);
}

void recordOn(mcEvent_t event, mcStream_t stream) {
  if (lateMode && !inTask()) late::eventRecorded(event, stream);
  TaskRef point = orderPoint(stream);
  if (event->shared != nullptr) {
    recordShared(event->shared, stream, point != nullptr);
    point = nullptr;
  }
  if (point != nullptr || event->late.load(std::memory_order_relaxed)) {
    const std::lock_guard<std::mutex> lock(detailMutex());
    event->late.store(point != nullptr, std::memory_order_release);
    event->point = std::move(point);
  }
  event->nanoseconds.store(monotonicNow(), std::memory_order_relaxed);
}

HandleTable<mcEvent> events;

bool isEvent(mcEvent_t event) { return events.contains(event); }
bool canRecord(mcEvent_t event, mcStream_t stream) {
  return isEvent(event) && isStream(stream) && event->device == streamDevice(stream);
}

}  // namespace

namespace {
// `shared`: of an event that another process has made; null: of none.
mcError_t createEvent(mcEvent_t* event, unsigned int flags, std::shared_ptr<SharedEvent> shared) {
  if (visibleDevice(threadState.device) == nullptr) return fail(mcErrorNoDevice);
  markInitialized();
  useDevice(threadState.device);
  if ((flags & mcEventInterprocess) != 0 && shared == nullptr) {
    shared = makeSharedEvent();
    if (shared == nullptr) return failWith(mcErrorMemoryAllocation, "no file for an event of several processes");
  }
  *event = events.create(threadState.device, flags);
  (*event)->shared = std::move(shared);
  return mcSuccess;
}
}  // namespace

mcError_t mcEventCreate(mcEvent_t* event, unsigned int flags) {
  MC_RETURN_IF_STICKY();
  const bool timedInterprocess = (flags & mcEventInterprocess) != 0 && (flags & mcEventDisableTiming) == 0;
  if (event == nullptr || (flags & ~kKnownFlags) != 0 || timedInterprocess) return fail(mcErrorInvalidValue);
  return createEvent(event, flags, nullptr);
}

mcError_t mcEventDestroy(mcEvent_t event) {
  if (lateMode) late::eventGone(event);
  return events.destroy(event) ? checkSticky() : fail(mcErrorInvalidResourceHandle);
}

// The event is no part of the capture itself.
mcError_t mcEventRecordExternal(mcEvent_t event, mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!canRecord(event, stream)) return fail(mcErrorInvalidResourceHandle);
  const auto record = [event, stream] {
    if (!isEvent(event)) return fail(mcErrorInvalidResourceHandle);
    recordOn(event, stream);
    return mcSuccess;
  };
  const auto afterLaunch = [event](mcStream_t launched) {
    if (isEvent(event) && isPending(launched)) recordOn(event, launched);
  };
  return submit(stream, "event record", "", LaunchWork{record, nullptr, afterLaunch});
}

mcError_t mcEventRecord(mcEvent_t event, mcStream_t stream) {
  const ProfiledCall call(mcCallEventRecord, event, stream);
  MC_RETURN_IF_STICKY();
  if (!canRecord(event, stream)) return fail(mcErrorInvalidResourceHandle);
  if (capturing() || anyCaptured.load(std::memory_order_relaxed)) {
    std::shared_ptr<CapturedEvent> captured;
    const mcError_t problem = captureEventRecord(stream, &captured);
    if (problem != mcSuccess) return problem;
    const std::lock_guard<std::mutex> lock(detailMutex());
    event->captured = captured;
    if (captured != nullptr) {
      anyCaptured.store(true, std::memory_order_relaxed);
      return mcSuccess;
    }
  }
  recordOn(event, stream);
  return mcSuccess;
}

namespace {
mcError_t checkAsked(mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  if (!isEvent(event)) return fail(mcErrorInvalidResourceHandle);
  if (capturedIn(event) != nullptr) return fail(mcErrorCapturedEvent);
  return capturing() ? refuseUnsafe() : mcSuccess;
}
}  // namespace

mcError_t mcEventQuery(mcEvent_t event) {
  const mcError_t problem = checkAsked(event);
  if (problem != mcSuccess) return problem;
  uint64_t record = 0;
  if (pointOf(event) != nullptr || isPendingShared(event, &record)) return fail(mcErrorNotReady);
  if (lateMode) late::hostWaitedForEvent(event);
  return mcSuccess;
}

mcError_t mcEventSynchronize(mcEvent_t event) {
  const ProfiledCall call(mcCallEventSynchronize, event);
  const mcError_t problem = checkAsked(event);
  if (problem != mcSuccess) return problem;
  const TaskRef point = pointOf(event);
  if (point != nullptr) waitFor(point);
  uint64_t record = 0;
  const bool waits = isPendingShared(event, &record);
  if (waits) event->shared->waitFor(record);
  if (lateMode) late::hostWaitedForEvent(event);
  return point == nullptr && !waits ? mcSuccess : checkSticky();
}

mcError_t mcEventCheck(mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  return isEvent(event) ? mcSuccess : fail(mcErrorInvalidResourceHandle);
}

namespace {
// What is launched on the stream from now on comes after the event's last record.
mcError_t orderBehind(mcEvent_t event, mcStream_t stream) {
  if (inTask()) return mcSuccess;
  const TaskRef point = pointOf(event);
  if (point != nullptr) orderAfter(stream, point);
  uint64_t record = 0;
  if (!isPendingShared(event, &record)) return mcSuccess;
  return enqueue(stream, kTaskWaits, [shared = event->shared, record] {
    shared->waitFor(record);
    return mcSuccess;
  });
}
}  // namespace

mcError_t mcStreamWaitEvent(mcStream_t stream, mcEvent_t event) {
  constexpr unsigned kFlags = 0;
  const ProfiledCall call(mcCallStreamWaitEvent, stream, event, kFlags);
  MC_RETURN_IF_STICKY();
  if (!isStream(stream) || !isEvent(event)) return fail(mcErrorInvalidResourceHandle);
  const std::shared_ptr<CapturedEvent> captured = capturedIn(event);
  if (captured != nullptr || capturing()) {
    const mcError_t problem = captureWait(stream, captured);
    if (problem != mcSuccess || captured != nullptr) return problem;
  }
  const mcError_t problem = orderBehind(event, stream);
  if (problem != mcSuccess) return fail(problem);
  if (lateMode && !inTask()) late::streamWaits(stream, event);
  return mcSuccess;
}

mcError_t mcStreamWaitEventExternal(mcStream_t stream, mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream) || !isEvent(event)) return fail(mcErrorInvalidResourceHandle);
  // The wait is for the record that there is now, also if the event is recorded again behind it.
  if (!isCaptured(stream)) return mcStreamWaitEvent(stream, event);
  const auto wait = [event] {
    if (!isEvent(event)) return fail(mcErrorInvalidResourceHandle);
    if (launchIsOrdered) return mcSuccess;
    const TaskRef point = pointOf(event);
    if (point != nullptr) waitFor(point);
    uint64_t record = 0;
    if (isPendingShared(event, &record)) event->shared->waitFor(record);
    return mcSuccess;
  };
  const auto beforeLaunch = [event](mcStream_t launched) {
    return isEvent(event) ? orderBehind(event, launched) : mcSuccess;  // `wait` says what is wrong
  };
  return submit(stream, "event wait", "", LaunchWork{wait, beforeLaunch, nullptr}, mcTaskWaits);
}

mcError_t mcEventElapsedTime(float* milliseconds, mcEvent_t start, mcEvent_t end) {
  MC_RETURN_IF_STICKY();
  if (milliseconds == nullptr) return fail(mcErrorInvalidValue);
  if (!isEvent(start) || !isEvent(end)) return fail(mcErrorInvalidResourceHandle);
  if (capturedIn(start) != nullptr || capturedIn(end) != nullptr) return fail(mcErrorCapturedEvent);
  const bool unfinished = pointOf(start) != nullptr || pointOf(end) != nullptr;
  const int64_t from = start->nanoseconds.load(std::memory_order_relaxed);
  const int64_t to = end->nanoseconds.load(std::memory_order_relaxed);
  const bool untimed = ((start->flags | end->flags) & mcEventDisableTiming) != 0;
  // Devices have clocks of their own.
  if (untimed || from == 0 || to == 0 || start->device != end->device) return fail(mcErrorInvalidResourceHandle);
  if (unfinished) return fail(mcErrorNotReady);
  *milliseconds = static_cast<float>(static_cast<double>(to - from) * 1e-6);
  return mcSuccess;
}

namespace {
struct EventHandle {
  char magic[8];
  SharedEventHandle shared;
};
static_assert(sizeof(EventHandle) <= sizeof(mcIpcHandle));
}  // namespace

mcError_t mcIpcGetEventHandle(mcIpcHandle* handle, mcEvent_t event) {
  MC_RETURN_IF_STICKY();
  if (handle == nullptr || !isEvent(event) || event->shared == nullptr) return fail(mcErrorInvalidResourceHandle);
  EventHandle filled{};
  std::memcpy(filled.magic, kIpcEventMagic, sizeof kIpcEventMagic);
  filled.shared = event->shared->handle();
  // Only who made an event can hand it on.
  if (filled.shared.file < 0) return fail(mcErrorInvalidResourceHandle);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle->reserved, &filled, sizeof filled);
  return mcSuccess;
}

mcError_t mcIpcOpenEventHandle(mcEvent_t* event, const mcIpcHandle* handle) {
  MC_RETURN_IF_STICKY();
  if (event == nullptr || handle == nullptr) return fail(mcErrorInvalidValue);
  EventHandle wanted;
  std::memcpy(&wanted, handle->reserved, sizeof wanted);
  if (std::memcmp(wanted.magic, kIpcEventMagic, sizeof kIpcEventMagic) != 0) return fail(mcErrorInvalidResourceHandle);
  std::shared_ptr<SharedEvent> shared = openSharedEvent(wanted.shared);
  if (shared == nullptr) return fail(mcErrorInvalidResourceHandle);
  return createEvent(event, mcEventInterprocess | mcEventDisableTiming, std::move(shared));
}
