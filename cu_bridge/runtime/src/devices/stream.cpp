// Streams. Work on a stream is complete, in order, when its launch returns; so a stream is never busy.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "capture/capture.h"
#include "devices/device.h"
#include "state/state.h"
#include "state/stream_table.h"

using namespace mc;

namespace {
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

template <class Value, class Answer>
mcError_t ask(mcStream_t stream, Value* to, Answer&& answer) {
  if (to == nullptr) return fail(mcErrorInvalidValue);
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  *to = answer();
  return mcSuccess;
}
}  // namespace

mcError_t mcStreamCreateWithPriority(mcStream_t* stream, unsigned int flags, int priority) {
  MC_RETURN_IF_STICKY();
  if (stream == nullptr || flags > 1) return fail(mcErrorInvalidValue);
  if (visibleDevice(threadState.device) == nullptr) return fail(mcErrorNoDevice);
  markInitialized();
  static std::atomic<unsigned long long> lastId{16};
  *stream =
      streams.create(threadState.device, flags, std::clamp(priority, kGreatestPriority, kLeastPriority), ++lastId);
  return mcSuccess;
}

mcError_t mcStreamDestroy(mcStream_t stream) {
  if (isDefaultStream(stream) || !isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (capturing()) captureForget(stream);
  return streams.destroy(stream) ? checkSticky() : fail(mcErrorInvalidResourceHandle);
}

mcError_t mcStreamCheck(mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  return capturing() ? refuseWait(stream) : mcSuccess;
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

void mcStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
}

mcError_t mcLaunchHostFunction(mcStream_t stream, void (*function)(void*), void* argument) {
  if (function == nullptr) return fail(mcErrorInvalidValue);
  // All work before it is complete, so its turn has come.
  return submit(stream, "host", "", [=] {
    function(argument);
    return mcSuccess;
  });
}
