// Launches with attributes: launching/attributes.h.

#include "launching/attributes.h"
#include "profiling/told.h"

#pragma GCC visibility push(default)

extern "C" {

namespace {

cudaError_t launchWithAttributes(const cudaLaunchConfig_t* config, const void* func, void** args) {
  if (config == nullptr) return static_cast<cudaError_t>(mcSetLastError(mcErrorInvalidValue, nullptr));
  mxmaca::LaunchWishes wishes;
  const char* detail = nullptr;
  const mcDim3 grid{config->gridDim.x, config->gridDim.y, config->gridDim.z};
  const mcError_t error = mxmaca::readAttributes(grid, config->attrs, config->numAttrs, &wishes, &detail);
  if (error != mcSuccess) return static_cast<cudaError_t>(mcSetLastError(error, detail));
  const auto launch = wishes.cooperative ? &cudaLaunchCooperativeKernel : &cudaLaunchKernel;
  cudaError_t status = launch(func, config->gridDim, config->blockDim, args, config->dynamicSmemBytes, config->stream);
  for (int i = 0; i < wishes.events && status == cudaSuccess; ++i) {
    status = cudaEventRecord(wishes.recorded[i], config->stream);
  }
  return status;
}

}  // namespace

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  constexpr mxmaca::ToldFunction kFunction{430, mcCallLaunchKernel, false};
  const auto launch = [&] { return launchWithAttributes(config, func, args); };
  return mxmaca::told(kFunction, func, launch, config, func, args);
}

}  // extern "C"
#pragma GCC visibility pop
