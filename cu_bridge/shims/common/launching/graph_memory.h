// Memory that graphs allocate, as both interfaces ask for it: attributes 0 to 3, of 64 bits.
#pragma once

#include "mc_runtime.h"

namespace mxmaca {

enum GraphMemoryAttribute { kGraphUsed = 0, kGraphUsedHigh = 1, kGraphReserved = 2, kGraphReservedHigh = 3 };

inline mcGraphMemory amountOf(int attribute) {
  return attribute == kGraphUsed || attribute == kGraphUsedHigh ? mcGraphMemoryUsed : mcGraphMemoryReserved;
}

inline mcError_t getGraphMemory(int device, int attribute, void* value) {
  if (value == nullptr || attribute < kGraphUsed || attribute > kGraphReservedHigh) {
    return mcSetLastError(mcErrorInvalidValue, nullptr);
  }
  unsigned long long current = 0, high = 0;
  const mcError_t error = mcGraphMemoryGet(device, amountOf(attribute), &current, &high);
  if (error != mcSuccess) return error;
  const bool highest = attribute == kGraphUsedHigh || attribute == kGraphReservedHigh;
  *static_cast<unsigned long long*>(value) = highest ? high : current;
  return mcSuccess;
}

// High marks can be set to what is current, which is written as 0.
inline mcError_t setGraphMemory(int device, int attribute, const void* value) {
  const bool high = attribute == kGraphUsedHigh || attribute == kGraphReservedHigh;
  if (value == nullptr || !high || *static_cast<const unsigned long long*>(value) != 0) {
    return mcSetLastError(mcErrorInvalidValue, nullptr);
  }
  return mcGraphMemoryResetHigh(device, amountOf(attribute));
}

}  // namespace mxmaca
