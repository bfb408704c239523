// What a library computes in the calling thread with device memory, as the runtime's check of memory knows it.
#pragma once

#include "mc_runtime.h"

namespace mxmaca {

class DeviceWork {
 public:
  explicit DeviceWork(const char* what) : what_(mcCheckMode() != 0 ? what : nullptr) {
    if (what_ != nullptr) mcCheckEnter();
  }
  ~DeviceWork() {
    if (what_ != nullptr) mcCheckLeave(what_);
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

 private:
  const char* what_;
};

}  // namespace mxmaca
