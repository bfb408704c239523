// The simulated devices of this process, as profiles and environment variables describe them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mc_runtime.h"

namespace mc {

struct Device {
  mcDeviceProperties properties;
  mcDeviceSensors sensors;
  uint64_t accountKey;  // which account of the ledger this device's memory is charged to
};

struct System {
  std::vector<Device> physical;
  std::vector<int> visible;  // physical index of each visible device
  std::string problem;       // why there are no devices, if the environment is wrong
};

// Read from the environment at first use.
const System& system();

// nullptr if there is no such visible device.
const Device* visibleDevice(int device);

}  // namespace mc
