// The functions of CUDA's driver interface that the launcher calls, found in the libcuda.so.1 of the process.
#pragma once

#include <cuda.h>

namespace launcher {

struct Driver {
  decltype(&cuGetErrorString) getErrorString;
  decltype(&cuCtxGetCurrent) ctxGetCurrent;
  decltype(&cuCtxSetCurrent) ctxSetCurrent;
  decltype(&cuCtxSynchronize) ctxSynchronize;
  decltype(&cuDevicePrimaryCtxRetain) devicePrimaryCtxRetain;
  decltype(&cuDeviceGetAttribute) deviceGetAttribute;
  decltype(&cuModuleLoadData) moduleLoadData;
  decltype(&cuModuleUnload) moduleUnload;
  decltype(&cuModuleGetFunction) moduleGetFunction;
  decltype(&cuFuncGetAttribute) funcGetAttribute;
  decltype(&cuFuncSetAttribute) funcSetAttribute;
  decltype(&cuPointerGetAttribute) pointerGetAttribute;
  decltype(&cuLaunchKernel) launchKernel;
  decltype(&cuLaunchCooperativeKernel) launchCooperativeKernel;
  decltype(&cuThreadExchangeStreamCaptureMode) threadExchangeStreamCaptureMode;
};

// Null, with a Python exception, where libcuda.so.1 or one of its functions is missing.
const Driver* driver();

// False, with Triton's exception for the error, unless `code` says success.
bool succeeded(CUresult code);

}  // namespace launcher
