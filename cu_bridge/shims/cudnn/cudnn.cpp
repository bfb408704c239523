// cuDNN: handles and versions. The descriptors interface is in tensors.cpp, convolution.cpp and layers.cpp; recurrent
// networks, CTC loss, spatial transformers and the graph interface are refused.

#include "handle.h"

#include <cstdio>

#pragma GCC visibility push(default)
#include "driver_types.h"
#include "library_types.h"

struct cudnnContext;
MXMACA_OBJECT(cudnnContext, Cudnn);

using mxmaca::handleOf;
using mxmaca::live;
using Handle = cudnnContext*;

namespace {
enum Status { kSuccess = 0, kNotInitialized = 1001, kBadParameter = 2000, kNotSupported = 3000 };
// Every release accepts a library of its own major version that is at least as new as what it was compiled with.
constexpr int kMajor = 9;
constexpr int kMinor = 20;
constexpr int kPatch = 0;
}  // namespace

extern "C" {

size_t cudnnGetVersion(void) { return kMajor * 10000 + kMinor * 100 + kPatch; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

int cudnnGetProperty(libraryPropertyType type, int* value) {
  const int parts[] = {kMajor, kMinor, kPatch};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) return kBadParameter;
  *value = parts[type];
  return kSuccess;
}

int cudnnCreate(Handle* handle) {
  if (handle == nullptr) return kBadParameter;
  return mxmaca::createHandle(handle) ? kSuccess : kNotInitialized;
}
int cudnnDestroy(Handle handle) { return mxmaca::destroyHandle(handle) ? kSuccess : kNotInitialized; }
int cudnnSetStream(Handle handle, cudaStream_t stream) {
  if (!live(handle)) return kNotInitialized;
  if (!mxmaca::isStream(stream)) return kBadParameter;
  handleOf(handle)->stream = stream;
  return kSuccess;
}
int cudnnGetStream(Handle handle, cudaStream_t* stream) {
  if (!live(handle)) return kNotInitialized;
  if (stream == nullptr) return kBadParameter;
  *stream = static_cast<cudaStream_t>(handleOf(handle)->stream);
  return kSuccess;
}

const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kSuccess: return "CUDNN_STATUS_SUCCESS";
    case kNotInitialized: return "CUDNN_STATUS_NOT_INITIALIZED";
    case kBadParameter: return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported: return "CUDNN_STATUS_NOT_SUPPORTED";
    default: return "CUDNN_STATUS_UNKNOWN";
  }
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (message != nullptr && size > 0)
    std::snprintf(message, size,
                  "the function's status says what is wrong; what is not implemented is named on stderr");
}

}  // extern "C"
#pragma GCC visibility pop
