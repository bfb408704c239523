// Handles of CUDA's runtime and driver, which are of one type in both, as handles of the runtime below.
#pragma once

#include "mc_runtime.h"

#pragma GCC visibility push(default)
#include "driver_types.h"
#pragma GCC visibility pop

namespace mxmaca {

#define MXMACA_SAME_HANDLE(Theirs, Ours)                                                         \
  inline Ours own(Theirs handle) { return reinterpret_cast<Ours>(handle); }                      \
  inline Ours* own(Theirs* handle) { return reinterpret_cast<Ours*>(handle); }                   \
  inline Ours const* own(Theirs const* handle) { return reinterpret_cast<Ours const*>(handle); } \
  inline Ours const** own(Theirs const** handle) { return reinterpret_cast<Ours const**>(handle); }
MXMACA_SAME_HANDLE(cudaStream_t, mcStream_t)
MXMACA_SAME_HANDLE(cudaEvent_t, mcEvent_t)
MXMACA_SAME_HANDLE(cudaGraph_t, mcGraph_t)
MXMACA_SAME_HANDLE(cudaGraphNode_t, mcGraphNode_t)
MXMACA_SAME_HANDLE(cudaGraphExec_t, mcGraphExec_t)
MXMACA_SAME_HANDLE(cudaMemPool_t, mcMemoryPool_t)
MXMACA_SAME_HANDLE(cudaUserObject_t, mcUserObject_t)
#undef MXMACA_SAME_HANDLE

inline mcCaptureMode own(cudaStreamCaptureMode mode) { return static_cast<mcCaptureMode>(mode); }
inline mcCaptureMode* own(cudaStreamCaptureMode* mode) { return reinterpret_cast<mcCaptureMode*>(mode); }
inline mcCaptureStatus* own(cudaStreamCaptureStatus* status) { return reinterpret_cast<mcCaptureStatus*>(status); }

// Handles between processes: the same bytes in each interface.
template <class Handle>
mcIpcHandle* ownIpc(Handle* handle) {
  static_assert(sizeof(Handle) == sizeof(mcIpcHandle), "the same bytes");
  return reinterpret_cast<mcIpcHandle*>(handle);
}

}  // namespace mxmaca
