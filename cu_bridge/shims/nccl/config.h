// What a program may set for a communicator (ncclConfig_t).
#pragma once

#include <cstddef>

#include "report/result.h"

namespace nccl {

// The members that have an effect here; those behind them have none on the simulated device.
struct Config {
  size_t bytes;  // of the caller's structure, which later releases have made longer
  unsigned int magic;
  unsigned int version;
  int blocking;
};
constexpr unsigned int kConfigMagic = 0xcafebeef;
constexpr int kUndefined = -2147483647 - 1;

// Whether calls on the communicator wait until it is made; `otherwise` if the configuration does not say.
inline Result readConfig(const Config* config, bool otherwise, bool* blocking) {
  *blocking = otherwise;
  if (config == nullptr) return kSuccess;
  if (config->magic != kConfigMagic || config->bytes < sizeof(Config)) {
    return fail(kInvalidArgument, "a configuration that NCCL_CONFIG_INITIALIZER has not set");
  }
  if (config->blocking == kUndefined) return kSuccess;
  if (config->blocking != 0 && config->blocking != 1)
    return fail(kInvalidArgument, "config.blocking is neither 0 nor 1");
  *blocking = config->blocking == 1;
  return kSuccess;
}

}  // namespace nccl
