// Streams, events and captures.

#include "contexts.h"
#include "launching/kept_attributes.h"
#include "profiling/told.h"

#pragma GCC visibility push(default)
extern "C" {

#define SAME(name, parameters, call) \
  CUresult cu##name parameters { return result(call); }
#define TOLD(name, parameters, call, like, number, runtimes, ...) \
  CUresult cu##name parameters {                                  \
    const auto work = [&] { return result(call); };               \
    return toldOfDriver((number), (like), work, __VA_ARGS__);     \
  }
#include "same_functions.inc"

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  NEEDS_CONTEXT();
  return result(mcStreamCreateWithPriority(own(stream), flags, priority));
}
CUresult cuStreamCreate(CUstream* stream, unsigned int flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  const auto work = [&]() -> CUresult {
    RETURN_IF_WRONG(checkFlags(flags, cudaEventWaitExternal));
    return result((flags & cudaEventWaitExternal) != 0 ? mcStreamWaitEventExternal(own(stream), own(event))
                                                       : mcStreamWaitEvent(own(stream), own(event)));
  };
  return toldOfDriver(295, mcCallStreamWaitEvent, work, stream, event, flags);
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  int device = 0;
  RETURN_IF_NULL(context);
  const mcError_t error = mcStreamGetDevice(own(stream), &device);
  if (error == mcSuccess) *context = primaryContext(device);
  return result(error);
}
// The one of *context and *green that the stream has no part of is NULL.
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  RETURN_IF_NULL(context);
  RETURN_IF_NULL(green);
  const CUresult error = cuStreamGetGreenCtx(stream, green);
  *context = nullptr;
  return error != CUDA_SUCCESS || *green != nullptr ? error : cuStreamGetCtx(stream, context);
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) { return result(mcStreamGetId(own(stream), id)); }
CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) { return result(mcStreamGetDevice(own(stream), device)); }
static_assert(sizeof(CUstreamAttrValue) == sizeof(cudaLaunchAttributeValue), "one layout in both interfaces");
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  return result(setStreamAttribute(own(stream), attribute, reinterpret_cast<const cudaLaunchAttributeValue*>(value)));
}
CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return result(getStreamAttribute(own(stream), attribute, reinterpret_cast<cudaLaunchAttributeValue*>(value)));
}
CUresult cuStreamCopyAttributes(CUstream to, CUstream from) { return result(copyStreamAttributes(own(to), own(from))); }
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaEventRecordExternal));
  return result((flags & cudaEventRecordExternal) != 0 ? mcEventRecordExternal(own(event), own(stream))
                                                       : mcEventRecord(own(event), own(stream)));
}
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  struct Call {
    CUstreamCallback callback;
    CUstream stream;
    void* data;
  };
  const auto run = [](void* kept) {
    const Call& call = *static_cast<Call*>(kept);
    call.callback(call.stream, result(mcStickyError()), call.data);
    return mcSuccess;
  };
  // Callbacks cannot be captured.
  mcCaptureStatus status = mcCaptureNone;
  RETURN_IF_WRONG(mcStreamCaptureInfo(own(stream), &status, nullptr, nullptr, nullptr, nullptr));
  if (status != mcCaptureNone) return result(mcStreamCheck(own(stream)));
  return result(mcStreamSubmit(own(stream), "host", "callback", mcTaskWaits | mcTaskAlways, run,
                               new Call{callback, stream, data}, [](void* kept) { delete static_cast<Call*>(kept); }));
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  NEEDS_CONTEXT();
  return result(mcEventCreate(own(event), flags));
}

// Names of the first form, for callers that look symbols up by name; the form itself is the same.
#undef cuStreamDestroy
#undef cuEventDestroy
FIRST_FORM(cuStreamDestroy, (CUstream))
FIRST_FORM(cuEventDestroy, (CUevent))

}  // extern "C"
#pragma GCC visibility pop
