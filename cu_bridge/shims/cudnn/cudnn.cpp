// cuDNN: handles and versions. The descriptors interface is in the other files; recurrent networks, CTC loss, spatial
// transformers and the graph interface are refused.

#include <cstdio>

#include "mxmaca/versions/cudnn8.h"
#include "tensors.h"

using namespace mxmaca;
using Status = cudnnStatus_t;

namespace {
#if defined(MXMACA_SOVERSION) && MXMACA_SOVERSION == 8
constexpr size_t kVersion = CUDNN8_VERSION;
constexpr int kMajor = CUDNN8_MAJOR, kMinor = CUDNN8_MINOR, kPatchLevel = CUDNN8_PATCHLEVEL;
#else
constexpr size_t kVersion = CUDNN_VERSION;
constexpr int kMajor = CUDNN_MAJOR, kMinor = CUDNN_MINOR, kPatchLevel = CUDNN_PATCHLEVEL;
#endif
constexpr StatusName kStatuses[] = {
    MXMACA_STATUS(CUDNN_STATUS_SUCCESS, nullptr),
    MXMACA_STATUS(CUDNN_STATUS_NOT_INITIALIZED, nullptr),
    MXMACA_STATUS(CUDNN_STATUS_BAD_PARAM, nullptr),
    MXMACA_STATUS(CUDNN_STATUS_NOT_SUPPORTED, nullptr),
};
}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Every release accepts a library of its own major version that is at least as new as what it was compiled with.
size_t cudnnGetVersion(void) { return kVersion; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }
Status cudnnGetProperty(libraryPropertyType type, int* value) {
  return getProperty<Status>(type, value, kMajor, kMinor, kPatchLevel);
}

Status cudnnCreate(cudnnHandle_t* handle) { return createHandle<Status>(handle); }
Status cudnnDestroy(cudnnHandle_t handle) { return destroyHandle<Status>(handle); }
Status cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) { return setStream<Status>(handle, stream); }
Status cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) { return getStream<Status>(handle, stream); }

const char* cudnnGetErrorString(Status status) {
  return statusText(kStatuses, status, &StatusName::name, "CUDNN_STATUS_UNKNOWN");
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (message != nullptr && size > 0)
    std::snprintf(message, size,
                  "the function's status says what is wrong; what is not implemented is named on stderr");
}

}  // extern "C"
#pragma GCC visibility pop
