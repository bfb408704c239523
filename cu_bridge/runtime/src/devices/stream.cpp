// Streams, and host functions on them. What of a stream is unfinished is in queue/.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>

#include "capture/capture.h"
#include "capture/resources.h"
#include "devices/device.h"
#include "profile/profile.h"
#include "queue/queue.h"
#include "state/kept_bytes.h"
#include "state/locked.h"
#include "state/parts.h"
#include "state/state.h"
#include "state/stream_table.h"

using namespace mc;

namespace {
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

// By the stream's number, which is never given twice; the default streams are no objects.
struct KeptOfStreams {
  std::map<unsigned long long, KeptBytes> byId;
};

template <class Value, class Answer>
mcError_t ask(mcStream_t stream, Value* to, Answer&& answer) {
  if (to == nullptr) return fail(mcErrorInvalidValue);
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  *to = answer();
  return mcSuccess;
}

mcError_t createStream(mcStream_t* stream, int device, unsigned part, unsigned int flags, int priority) {
  MC_RETURN_IF_STICKY();
  if (stream == nullptr || flags > 1) return fail(mcErrorInvalidValue);
  if (visibleDevice(device) == nullptr) return fail(mcErrorNoDevice);
  markInitialized();
  useDevice(device);
  static std::atomic<unsigned long long> lastId{16};
  const int bounded = std::clamp(priority, kGreatestPriority, kLeastPriority);
  *stream = streams.create(device, flags, bounded, ++lastId, makeTimeline(device, flags == 0, bounded), part);
  tellOfStream(mcStreamCreated, *stream);
  return mcSuccess;
}
}  // namespace

mcError_t mcStreamCreateWithPriority(mcStream_t* stream, unsigned int flags, int priority) {
  return createStream(stream, threadState.device, partOf(nullptr), flags, priority);
}

mcError_t mcStreamCreateInPart(mcStream_t* stream, unsigned int part, unsigned int flags, int priority) {
  const Part of = part < kParts ? parts[part].load() : Part{0, 0};
  if (of.multiprocessors == 0) return fail(mcErrorInvalidValue);
  return createStream(stream, of.device, part, flags, priority);
}

mcError_t mcStreamDestroy(mcStream_t stream) {
  if (isDefaultStream(stream) || !isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  tellOfStream(mcStreamDestroys, stream);
  if (capturing()) captureForget(stream);
  Writing<KeptOfStreams>()->byId.erase(stream->id);
  return streams.destroy(stream) ? checkSticky() : fail(mcErrorInvalidResourceHandle);
}

mcError_t mcStreamQuery(mcStream_t stream) {
  const mcError_t problem = checkUncaptured(stream);
  if (problem != mcSuccess) return problem;
  if (isPending(stream)) return fail(mcErrorNotReady);
  if (lateMode) late::hostWaitedFor(stream);
  return mcSuccess;
}

mcError_t mcStreamSynchronize(mcStream_t stream) {
  const ProfiledCall call(mcCallStreamSynchronize, stream);
  const mcError_t error = mcStreamCheck(stream);
  if (lateMode && error == mcSuccess && !inTask()) late::hostWaitedFor(stream);
  return error;
}

mcError_t mcStreamCheck(mcStream_t stream) {
  const mcError_t problem = checkUncaptured(stream);
  if (problem != mcSuccess || !anythingPending()) return problem;
  waitTurn(stream);
  if (lateMode && !inTask()) late::workBegins(stream);
  return checkSticky();  // of what was waited for
}

mcError_t mcStreamDefers(mcStream_t stream, int* defers) {
  MC_RETURN_IF_STICKY();
  return ask(stream, defers, [=] { return isCaptured(stream) || isPending(stream) ? 1 : 0; });
}

mcError_t mcStreamWaitTurn(mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  waitTurn(stream);
  if (lateMode && !inTask()) late::workBegins(stream);
  return checkSticky();
}

mcError_t mcStreamGetPriority(mcStream_t stream, int* priority) {
  return ask(stream, priority, [=] { return isDefaultStream(stream) ? kLeastPriority : stream->priority; });
}

mcError_t mcStreamGetFlags(mcStream_t stream, unsigned int* flags) {
  return ask(stream, flags, [=] { return isDefaultStream(stream) ? 0 : stream->flags; });
}

mcError_t mcStreamGetDevice(mcStream_t stream, int* device) {
  return ask(stream, device, [=] { return streamDevice(stream); });
}

mcError_t mcStreamGetId(mcStream_t stream, unsigned long long* id) {
  return ask(stream, id, [=] { return isDefaultStream(stream) ? reinterpret_cast<uintptr_t>(stream) : stream->id; });
}

mcError_t mcStreamKeep(mcStream_t stream, int number, const void* bytes, size_t count) {
  unsigned long long id = 0;
  const mcError_t error = mcStreamGetId(stream, &id);
  if (error != mcSuccess) return error;
  if (bytes == nullptr && count != 0) return fail(mcErrorInvalidValue);
  const Writing<KeptOfStreams> all;
  all->byId[id].set(number, bytes, count);
  return mcSuccess;
}

mcError_t mcStreamKept(mcStream_t stream, int number, void* bytes, size_t count) {
  unsigned long long id = 0;
  const mcError_t error = mcStreamGetId(stream, &id);
  if (error != mcSuccess) return error;
  if (bytes == nullptr) return fail(mcErrorInvalidValue);
  const Reading<KeptOfStreams> all;
  const auto found = all->byId.find(id);
  return found == all->byId.end() ? mcErrorNotSupported : found->second.get(number, bytes, count);
}

void mcStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
}

mcError_t mcLaunchHostFunction(mcStream_t stream, void (*function)(void*), void* argument) {
  const ProfiledCall call(mcCallLaunchHostFunction, stream, function, argument);
  if (function == nullptr) return fail(mcErrorInvalidValue);
  // Never in the calling thread: the function may wait for something that its program does next.
  return submit(
      stream, "host", "",
      [=] {
        function(argument);
        return mcSuccess;
      },
      mcTaskWaits);
}

namespace {
std::shared_ptr<void> owned(void* data, void (*destroy)(void*)) {
  return {data, [destroy](void* gone) {
            if (destroy != nullptr) destroy(gone);
          }};
}
}  // namespace

mcError_t mcStreamSubmit(mcStream_t stream, const char* kind, const char* label, unsigned int flags,
                         mcError_t (*run)(void*), void* data, void (*destroy)(void*)) {
  const std::shared_ptr<void> owner = owned(data, destroy);
  if (run == nullptr || (flags & ~(mcTaskWaits | mcTaskAlways)) != 0) return fail(mcErrorInvalidValue);
  return submit(stream, kind, label == nullptr ? "" : label, [run, owner] { return run(owner.get()); }, flags);
}

mcError_t mcStreamSubmitOpen(mcStream_t stream, const char* kind, const char* label, void (*begin)(void*, mcTask_t),
                             void* data, void (*destroy)(void*)) {
  // Held by the task, and by a node of a graph for its next launch.
  auto owner = owned(data, destroy);
  if (begin == nullptr) return fail(mcErrorInvalidValue);
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  const auto work = [stream, begin, owner] {
    return enqueueOpen(
        stream, [begin, data = owner.get()](mcTask_t task) { begin(data, task); },
        [kept = owner]() mutable { kept = nullptr; });
  };
  if (capturing()) {
    bool recorded = false;
    const mcError_t problem = recordWork(stream, {kind, label == nullptr ? "" : label, work, mcTaskWaits}, &recorded);
    if (problem != mcSuccess || recorded) return problem;
  }
  if (lateMode && !inTask()) late::workBegins(stream);
  return work();
}
