// Streams, events, captures and graphs.

#include "contexts.h"
#include "stream_work.h"

namespace {

template <class Value>
CUresult writeValue(CUstream stream, CUdeviceptr target, Value value, unsigned int flags) {
  constexpr unsigned int kNoMemoryBarrier = 1;
  mcPointerAttributes attributes;
  RETURN_IF_WRONG(mcStreamCheck(own(stream)));  // waits: the value is written at once
  RETURN_IF_WRONG(checkFlags(flags, kNoMemoryBarrier));
  RETURN_IF_WRONG(mcPointerGetAttributes(&attributes, address(target)));
  const size_t offset = reinterpret_cast<uintptr_t>(address(target)) - reinterpret_cast<uintptr_t>(attributes.base);
  if (attributes.kind == mcMemoryUnregistered || target % sizeof(Value) != 0 ||
      attributes.size - offset < sizeof(Value)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const mxmaca::DeviceWork computes("cuStreamWriteValue");
  __atomic_store_n(static_cast<Value*>(address(target)), value, __ATOMIC_RELEASE);
  return CUDA_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

#define SAME(name, parameters, call) \
  CUresult cu##name parameters { return result(call); }
#include "same_functions.inc"

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  NEEDS_CONTEXT();
  return result(mcStreamCreateWithPriority(own(stream), flags, priority));
}
CUresult cuStreamCreate(CUstream* stream, unsigned int flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaEventWaitExternal));
  return result((flags & cudaEventWaitExternal) != 0 ? mcStreamWaitEventExternal(own(stream), own(event))
                                                     : mcStreamWaitEvent(own(stream), own(event)));
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  int device = 0;
  RETURN_IF_NULL(context);
  const mcError_t error = mcStreamGetDevice(own(stream), &device);
  if (error == mcSuccess) *context = primaryContext(device);
  return result(error);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  RETURN_IF_WRONG(checkFlags(flags, kInstantiateFlags));
  if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0) {
    return result(mcSetLastError(mcErrorNotSupported, "graphs that device code launches"));
  }
  return result(mcGraphInstantiate(own(exec), own(graph)));
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr target, uint32_t value, unsigned int flags) {
  return writeValue(stream, target, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr target, uint64_t value, unsigned int flags) {
  return writeValue(stream, target, value, flags);
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  NEEDS_CONTEXT();
  return result(mcEventCreate(own(event), flags));
}

// Names of the first form, for callers that look symbols up by name; the form itself is the same.
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
FIRST_FORM(cuStreamDestroy, (CUstream))
FIRST_FORM(cuEventDestroy, (CUevent))
FIRST_FORM(cuStreamWriteValue32, (CUstream, CUdeviceptr, uint32_t, unsigned int))
FIRST_FORM(cuStreamWriteValue64, (CUstream, CUdeviceptr, uint64_t, unsigned int))

}  // extern "C"
#pragma GCC visibility pop
