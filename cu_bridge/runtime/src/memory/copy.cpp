// Copying and filling memory. Both sides of a copy are checked before a byte moves.

#include <algorithm>
#include <cstring>
#include <vector>

#include "capture/capture.h"
#include "check/check.h"
#include "kernels/kernel_registry.h"
#include "memory/allocations.h"
#include "state/state.h"

using namespace mc;

namespace {

// Bytes from the first to the last of `height` rows; false if that is no size.
bool spanOfRows(size_t pitch, size_t width, size_t height, size_t* bytes) {
  return !__builtin_mul_overflow(height - 1, pitch, bytes) && !__builtin_add_overflow(*bytes, width, bytes);
}

enum class Side { Unknown, Host, Device, Either };

// Where [pointer, pointer + bytes) lies. Adjacent mappings of one kind count as one range. false: it runs out of its
// allocation.
bool classify(const void* pointer, size_t bytes, int way, Side* side) {
  const Allocation* found = findAllocation(pointer, way);
  if (found == nullptr) {
    *side = Side::Unknown;
    return true;
  }
  *side = found->kind == mcMemoryDevice ? Side::Device : found->kind == mcMemoryHost ? Side::Host : Side::Either;
  if (bytes > UINTPTR_MAX - reinterpret_cast<uintptr_t>(pointer)) return false;
  if (found->kind == mcMemoryHost) return true;  // the rest may be plain host memory
  const uintptr_t end = reinterpret_cast<uintptr_t>(pointer) + bytes;
  const mcMemoryKind kind = found->kind;
  for (uintptr_t next = found->base + found->size; next < end; next = found->base + found->size) {
    found = findAllocation(reinterpret_cast<const void*>(next), way);
    // The system may put the host's pinned memory right behind the device's.
    if (found == nullptr || found->kind != kind) return false;
  }
  return true;
}

mcError_t checkCopy(const void* to, size_t toBytes, const void* from, size_t fromBytes, mcMemcpyKind kind) {
  Side target;
  Side source;
  if (to == nullptr || from == nullptr) return mcErrorInvalidValue;
  if (!classify(to, toBytes, 0, &target) || !classify(from, fromBytes, 1, &source)) return mcErrorInvalidValue;
  if (kind == mcMemcpyDefault) return mcSuccess;
  const bool wantsDevice[2] = {kind == mcMemcpyHostToDevice || kind == mcMemcpyDeviceToDevice,
                               kind == mcMemcpyDeviceToHost || kind == mcMemcpyDeviceToDevice};
  const Side sides[2] = {target, source};
  const void* const places[2] = {to, from};
  const size_t sizes[2] = {toBytes, fromBytes};
  for (int i = 0; i < 2; ++i) {
    // Pinned memory is an address of both sides. Plain memory is none of the device's, and the reverse; a variable of
    // device code is no allocation.
    const bool variable = wantsDevice[i] && sides[i] == Side::Unknown && insideVariable(places[i], sizes[i]);
    if (!variable && (wantsDevice[i] ? sides[i] == Side::Unknown : sides[i] == Side::Device))
      return mcErrorInvalidValue;
  }
  return mcSuccess;
}

mcError_t checkRange(const void* pointer, size_t bytes) {
  Side side;
  if (!classify(pointer, bytes, 0, &side)) return mcErrorInvalidValue;
  return side != Side::Unknown || insideVariable(pointer, bytes) ? mcSuccess : mcErrorInvalidValue;
}

// Neither the runtime's own nor registered: the driver reads and writes such memory before the call returns.
bool isPageable(const void* pointer) { return findAllocation(pointer) == nullptr && !insideVariable(pointer, 1); }

mcMemoryKind kindOf(const void* pointer) {
  const Allocation* const allocation = findAllocation(pointer);
  return allocation == nullptr ? mcMemoryUnregistered : allocation->kind;
}

mcError_t copyChecked(void* to, const void* from, size_t bytes, mcMemcpyKind kind, bool copies = true) {
  if (kind < mcMemcpyHostToHost || kind > mcMemcpyDefault) return fail(mcErrorInvalidMemcpyDirection);
  if (bytes == 0) return mcSuccess;
  const mcError_t problem = checkCopy(to, bytes, from, bytes, kind);
  if (problem != mcSuccess) return fail(problem);
  if (copies) {
    const check::Scope computes("memcpy");
    std::memmove(to, from, bytes);
  }
  return mcSuccess;
}

mcError_t setChecked(void* pointer, int value, size_t bytes) {
  if (bytes == 0) return mcSuccess;
  const mcError_t problem = checkRange(pointer, bytes);
  if (problem != mcSuccess) return fail(problem);
  const check::Scope computes("memset");
  std::memset(pointer, value, bytes);
  return mcSuccess;
}

// Whether work on the stream would be queued now.
bool mayBeLate(mcStream_t stream) {
  return !undisturbed() && isStream(stream) && !isCaptured(stream) && isPending(stream);
}

// A copy or fill on a stream. What is wrong with it is found now, also if it runs later; a node is checked when it
// runs.
template <class Label, class Check, class Work>
mcError_t submitTransfer(mcStream_t stream, const char* kind, const Label& label, const Check& check,
                         const Work& work) {
  const auto whole = [=] {
    const mcError_t problem = check();
    if (problem != mcSuccess) return fail(problem);
    work();
    return mcSuccess;
  };
  if (!mayBeLate(stream)) return submit(stream, kind, label, whole);
  MC_RETURN_IF_STICKY();
  const mcError_t problem = check();
  return problem != mcSuccess ? fail(problem) : submit(stream, kind, label, whole);
}

CopyLabel copyLabel(const void* to, const void* from, size_t bytes) {
  if (!profiling()) return {bytes, mcMemoryUnregistered, mcMemoryUnregistered};
  return {bytes, kindOf(from), kindOf(to)};
}

constexpr size_t kStaged = 64 << 10;

// Runs a copy whose turn may not have come. Memory that is not pinned belongs to the caller again when the call
// returns: a small source is read now, for what else there is the call waits.
mcError_t copyLate(void* to, const void* from, size_t bytes, mcMemcpyKind kind, mcStream_t stream) {
  const bool staged = isPageable(from) && !isPageable(to) && bytes <= kStaged;
  if (!staged && (isPageable(to) || isPageable(from))) {
    waitTurn(stream);
    return mcMemcpyAsync(to, from, bytes, kind, stream);
  }
  const mcError_t problem = copyChecked(to, from, bytes, kind, false);
  if (problem != mcSuccess) return problem;
  const CopyLabel label = copyLabel(to, from, bytes);
  if (!staged) return submit(stream, "memcpy", label, [=] { return copyChecked(to, from, bytes, kind); });
  const auto* const first = static_cast<const char*>(from);
  return submit(stream, "memcpy", label, [to, kept = std::vector<char>(first, first + bytes)] {
    std::memcpy(to, kept.data(), kept.size());
    return mcSuccess;
  });
}

}  // namespace

mcError_t mcMemcpy(void* to, const void* from, size_t bytes, mcMemcpyKind kind) {
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  const ProfiledCall call(mcCallMemcpy, to, from, bytes, kind);
  waitTurn(nullptr);
  if (lateMode && !inTask()) late::hostWaitedFor(nullptr);
  if (!profiling()) return copyChecked(to, from, bytes, kind);
  return timed(nullptr, profiledWork("memcpy", copyLabel(to, from, bytes)),
               [=] { return copyChecked(to, from, bytes, kind); })();
}

mcError_t mcMemcpyAsync(void* to, const void* from, size_t bytes, mcMemcpyKind kind, mcStream_t stream) {
  const ProfiledCall call(mcCallMemcpyAsync, to, from, bytes, kind, stream);
  if (mayBeLate(stream)) {
    MC_RETURN_IF_STICKY();
    return copyLate(to, from, bytes, kind, stream);
  }
  if (lateMode && isStream(stream) && !isCaptured(stream) && !inTask()) {
    const mcError_t problem = copyChecked(to, from, bytes, kind, false);
    if (problem != mcSuccess) return problem;
    const mcMemoryKind target = kindOf(to), source = kindOf(from);
    const bool toHost = target == mcMemoryHost && source == mcMemoryDevice;
    if (bytes != 0 && (toHost || (target == mcMemoryDevice && source == mcMemoryHost))) {
      late::takeCopy(to, from, bytes, toHost, stream);
      return mcSuccess;
    }
    // The driver's copy from or to other memory of the host has returned when it is done, and what was before it.
    if (isPageable(to)) late::hostWaitedFor(stream);
  }
  return submit(stream, "memcpy", copyLabel(to, from, bytes), [=] { return copyChecked(to, from, bytes, kind); });
}

mcError_t mcMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height,
                          mcMemcpyKind kind, mcStream_t stream) {
  if (mayBeLate(stream) && (isPageable(to) || isPageable(from))) waitTurn(stream);
  const auto check = [=] {
    if (kind < mcMemcpyHostToHost || kind > mcMemcpyDefault) return mcErrorInvalidMemcpyDirection;
    if (width == 0 || height == 0) return mcSuccess;
    if (width > toPitch || width > fromPitch) return mcErrorInvalidPitchValue;
    size_t toBytes = 0, fromBytes = 0;
    if (!spanOfRows(toPitch, width, height, &toBytes) || !spanOfRows(fromPitch, width, height, &fromBytes)) {
      return mcErrorInvalidValue;
    }
    return checkCopy(to, toBytes, from, fromBytes, kind);
  };
  return submitTransfer(stream, "memcpy", copyLabel(to, from, width * height), check, [=] {
    for (size_t row = 0; row < height && width != 0; ++row) {
      std::memmove(static_cast<char*>(to) + row * toPitch, static_cast<const char*>(from) + row * fromPitch, width);
    }
  });
}

mcError_t mcMemset(void* pointer, int value, size_t bytes) {
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  const ProfiledCall call(mcCallMemset, pointer, value, bytes);
  waitTurn(nullptr);
  if (lateMode && !inTask()) late::workBegins(nullptr);
  if (!profiling()) return setChecked(pointer, value, bytes);
  return timed(nullptr, profiledWork("memset", FillLabel{bytes, static_cast<unsigned>(value)}),
               [=] { return setChecked(pointer, value, bytes); })();
}

mcError_t mcMemsetAsync(void* pointer, int value, size_t bytes, mcStream_t stream) {
  const ProfiledCall call(mcCallMemsetAsync, pointer, value, bytes, stream);
  return submitTransfer(
      stream, "memset", FillLabel{bytes, static_cast<unsigned>(value)},
      [=] { return bytes == 0 ? mcSuccess : checkRange(pointer, bytes); },
      [=] {
        if (bytes != 0) std::memset(pointer, value, bytes);
      });
}

mcError_t mcMemset2DAsync(void* pointer, size_t pitch, unsigned int value, unsigned int elementBytes, size_t width,
                          size_t height, mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (elementBytes != 1 && elementBytes != 2 && elementBytes != 4) return fail(mcErrorInvalidValue);
  if (reinterpret_cast<uintptr_t>(pointer) % elementBytes != 0) return fail(mcErrorInvalidValue);
  if (width == 0 || height == 0) return mcSuccess;
  size_t rowBytes = 0, bytes = 0;
  if (__builtin_mul_overflow(width, elementBytes, &rowBytes)) return fail(mcErrorInvalidValue);
  if (height > 1 && rowBytes > pitch) return fail(mcErrorInvalidPitchValue);
  if (!spanOfRows(pitch, rowBytes, height, &bytes)) return fail(mcErrorInvalidValue);
  const auto check = [=] { return checkRange(pointer, bytes); };
  return submitTransfer(stream, "memset", FillLabel{rowBytes * height, value}, check, [=] {
    for (size_t row = 0; row < height; ++row) {
      char* const start = static_cast<char*>(pointer) + row * pitch;
      if (elementBytes == 1) {
        std::memset(start, static_cast<int>(value), width);
      } else if (elementBytes == 2) {
        std::fill_n(reinterpret_cast<uint16_t*>(start), width, static_cast<uint16_t>(value));
      } else {
        std::fill_n(reinterpret_cast<uint32_t*>(start), width, value);
      }
    }
  });
}
