// Limits and preferences of contexts and functions: what is set is read again, and nothing depends on it.
#include "checks.h"
#include "contexts.h"
#include "mc_preferences.h"

#pragma GCC visibility push(default)
#include "cudaProfiler.h"
#pragma GCC visibility pop

using namespace mxmaca;

namespace {

mcError_t checkBanks(int config) { return valueError(config >= 0 && config <= 2); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  NEEDS_CONTEXT();
  return result(mcLimitGet(value, limit));
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  NEEDS_CONTEXT();
  return result(mcLimitSet(limit, value));
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  NEEDS_CONTEXT();
  RETURN_IF_NULL(config);
  *config = static_cast<CUfunc_cache>(mcCacheConfigGet());
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  NEEDS_CONTEXT();
  return result(mcCacheConfigSet(config));
}

// Shared memory has banks of 4 bytes since 2014, whatever is asked for.
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  NEEDS_CONTEXT();
  RETURN_IF_NULL(config);
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(checkBanks(config));
  return CUDA_SUCCESS;
}
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) {
  RETURN_IF_WRONG(checkBanks(config));
  return result(mcKernelCheck(function));
}

CUresult cuCtxResetPersistingL2Cache(void) {
  NEEDS_CONTEXT();
  return result(mcStickyError());
}
// No external profiler can be attached; as on a real device, that is no error.
// The profiler that read such a file and wrote the other went with CUDA 11.
CUresult cuProfilerInitialize(const char* configFile, const char* outputFile, CUoutput_mode mode) {
  NEEDS_CONTEXT();
  RETURN_IF_NULL(configFile);
  RETURN_IF_NULL(outputFile);
  RETURN_IF_WRONG(valueError(mode == CU_OUT_KEY_VALUE_PAIR || mode == CU_OUT_CSV));
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuProfilerStart(void) {
  NEEDS_CONTEXT();
  return CUDA_SUCCESS;
}
CUresult cuProfilerStop(void) { return cuProfilerStart(); }

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr memory, size_t bytes, unsigned int flags) {
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(checkAttachment(own(stream), address(memory), bytes, flags));
  return CUDA_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
