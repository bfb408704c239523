// What NVML's files share: statuses, handles of devices, and how busy a device is.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "mc_runtime.h"

namespace mxmaca::nvml {

enum Status {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kArgumentVersionMismatch = 25,
};

// Initialisations that no shutdown has ended yet.
extern std::atomic<int> initialized;

#define NEEDS_INITIALIZATION()                                        \
  do {                                                                \
    if (mxmaca::nvml::initialized.load() == 0) return kUninitialized; \
  } while (0)

using Device = struct nvmlDevice_st*;

// A handle is the physical index, counted from one.
inline Device handleOf(int index) { return reinterpret_cast<Device>(static_cast<uintptr_t>(index) + 1); }
// -1 for what is no handle.
inline int indexOf(Device device) {
  const uintptr_t number = reinterpret_cast<uintptr_t>(device);
  return number <= static_cast<uintptr_t>(mcPhysicalDeviceCount()) ? static_cast<int>(number) - 1 : -1;
}

inline bool properties(Device device, mcDeviceProperties* p) {
  return mcGetPhysicalDeviceProperties(p, indexOf(device)) == mcSuccess;
}

// The processes that hold memory of a device (physical index).
std::vector<mcProcessUse> users(int index);

// Share of the host's processors, from 0 to 1, that the device's processes used lately. A simulated device computes
// there. Waits for a short sample if there is none yet.
double busyShare(int index);

// What a device has used since this process first asked, in seconds, and the share of the host's processors of each.
struct Used {
  double seconds;      // that have passed
  double busySeconds;  // the integral of the share over them
};
Used usedSinceFirst(int index);

}  // namespace mxmaca::nvml
