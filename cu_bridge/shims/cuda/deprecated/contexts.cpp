// Contexts whose users are counted.

#include "contexts.h"

#pragma GCC visibility push(default)
extern "C" {

CUresult cuCtxAttach(CUcontext* context, unsigned int flags) {
  CUcontext current = nullptr;
  NEEDS_CONTEXT();
  RETURN_IF_NULL(context);
  RETURN_IF_WRONG(checkFlags(flags, 0));
  const CUresult error = cuCtxGetCurrent(&current);
  if (error != CUDA_SUCCESS) return error;
  ++current->users;
  *context = current;
  return CUDA_SUCCESS;
}

// The last user ends a context that was created. A device's primary one, and a green one's, have owners of their own.
CUresult cuCtxDetach(CUcontext context) {
  CUcontext current = nullptr;
  NEEDS_CONTEXT();
  const CUresult error = cuCtxGetCurrent(&current);
  if (error != CUDA_SUCCESS) return error;
  if (context == nullptr || context != current) return CUDA_ERROR_INVALID_CONTEXT;
  const bool created = context != primaryContext(context->device) && context->part == 0;
  if (context->users == 1) return created ? cuCtxDestroy(context) : CUDA_ERROR_INVALID_CONTEXT;
  --context->users;
  return CUDA_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
