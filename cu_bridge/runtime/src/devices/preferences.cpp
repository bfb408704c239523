// Limits and preferences of kernels: what is set is read again, and nothing depends on it.
#include "mc_preferences.h"

#include <atomic>

namespace {

constexpr int kLimits = 7;
std::atomic<size_t> limits[kLimits] = {{1024}, {1048576}, {8388608}, {2}, {2048}, {128}, {0}};
std::atomic<int> cacheConfig{0};

}  // namespace

mcError_t mcLimitGet(size_t* value, int limit) {
  if (value == nullptr) return mcSetLastError(mcErrorInvalidValue, nullptr);
  if (limit < 0 || limit >= kLimits) return mcSetLastError(mcErrorUnsupportedLimit, nullptr);
  *value = limits[limit];
  return mcSuccess;
}

mcError_t mcLimitSet(int limit, size_t value) {
  if (limit < 0 || limit >= kLimits) return mcSetLastError(mcErrorUnsupportedLimit, nullptr);
  limits[limit] = value;
  return mcSuccess;
}

int mcCacheConfigGet(void) { return cacheConfig; }

mcError_t mcCacheConfigSet(int config) {
  if (config < 0 || config > 3) return mcSetLastError(mcErrorInvalidValue, nullptr);
  cacheConfig = config;
  return mcSuccess;
}
