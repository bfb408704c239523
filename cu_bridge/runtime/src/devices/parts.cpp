// Parts of devices, made and ended. See Note [Parts].

#include "state/parts.h"

#include <deque>

#include "devices/device.h"
#include "state/locked.h"

using namespace mc;

namespace {

// Numbers that are free. One is used again as late as possible, since a stream may outlive its part.
struct Numbers {
  std::deque<unsigned> free{};
  unsigned next = 1;
};

}  // namespace

mcError_t mcPartCreate(unsigned int* part, int device, unsigned int multiprocessors) {
  MC_RETURN_IF_STICKY();
  const Device* const found = visibleDevice(device);
  if (part == nullptr || multiprocessors == 0) return fail(mcErrorInvalidValue);
  if (found == nullptr) return fail(mcErrorInvalidDevice);
  if (multiprocessors > static_cast<unsigned>(found->properties.multiprocessors)) return fail(mcErrorInvalidValue);
  const Writing<Numbers> numbers;
  if (numbers->next < kParts) {
    *part = numbers->next++;
  } else if (!numbers->free.empty()) {
    *part = numbers->free.front();
    numbers->free.pop_front();
  } else {
    return failWith(mcErrorMemoryAllocation, "more parts of devices at once than 4095");
  }
  parts[*part].store({static_cast<uint16_t>(device), static_cast<uint16_t>(multiprocessors)});
  return mcSuccess;
}

mcError_t mcPartDestroy(unsigned int part) {
  if (part == 0 || part >= kParts) return fail(mcErrorInvalidValue);
  const Writing<Numbers> numbers;
  if (parts[part].exchange({0, 0}).multiprocessors == 0) return fail(mcErrorInvalidValue);
  numbers->free.push_back(part);
  return mcSuccess;
}

mcError_t mcPartSet(unsigned int part) {
  if (part >= kParts || (part != 0 && parts[part].load().multiprocessors == 0)) return fail(mcErrorInvalidValue);
  threadState.part = static_cast<uint16_t>(part);
  return mcSuccess;
}

mcError_t mcStreamGetPart(mcStream_t stream, unsigned int* part) {
  if (part == nullptr) return fail(mcErrorInvalidValue);
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  *part = partOf(stream);
  return mcSuccess;
}
