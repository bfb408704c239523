// cuBLAS: handles, their settings, and copies. What is computed is in families.h and typed.cpp.

#include "handle.h"

#pragma GCC visibility push(default)
#include "cublas_v2.h"

MXMACA_OBJECT(cublasContext, Cublas);

using mxmaca::handleOf;

namespace {
std::atomic<cublasLogCallback> logger{nullptr};
constexpr int kVersion = CUBLAS_VERSION;

// What a handle keeps: set to a value that must be valid, or read to where the caller wants it.
template <class Field, class Value>
cublasStatus_t set(cublasHandle_t handle, Field field, Value value, bool valid) {
  if (!mxmaca::live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  handleOf(handle)->*field = value;
  return CUBLAS_STATUS_SUCCESS;
}
template <class Field, class Value>
cublasStatus_t get(cublasHandle_t handle, Field field, Value* value) {
  if (!mxmaca::live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *value = static_cast<Value>(handleOf(handle)->*field);
  return CUBLAS_STATUS_SUCCESS;
}

using Fields = mxmaca::LibraryHandle;
constexpr size_t kWorkspaceAlignment = 256;  // cuBLAS asks it of its callers

// The modes of arithmetic; later releases have two more, for emulation.
bool valid(cublasMath_t mode) {
  const int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  return (base >= CUBLAS_DEFAULT_MATH && base <= CUBLAS_TF32_TENSOR_OP_MATH) || base == 4 || base == 8;
}

// A matrix whose elements have any size; a vector with increments is one of a single row.
cublasStatus_t copyMatrix(int64_t rows, int64_t columns, int64_t elementBytes, const void* from, int64_t fromLd,
                          void* to, int64_t toLd, cudaStream_t stream) {
  if (rows < 0 || columns < 0 || elementBytes <= 0 || fromLd < rows || toLd < rows || fromLd <= 0 || toLd <= 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  if (from == nullptr || to == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const auto bytes = [elementBytes](int64_t count) { return static_cast<size_t>(count * elementBytes); };
  const mcError_t error =
      mcMemcpy2DAsync(to, bytes(toLd), from, bytes(fromLd), bytes(rows), static_cast<size_t>(columns), mcMemcpyDefault,
                      reinterpret_cast<mcStream_t>(stream));
  return error == mcSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}
}  // namespace

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return mxmaca::createHandle(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  return mxmaca::destroyHandle(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version) {
  if (!mxmaca::live(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = kVersion;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  const int parts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
  *value = parts[type];
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return set(handle, &Fields::stream, stream, mxmaca::isStream(stream));
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return get(handle, &Fields::stream, stream);
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes) {
  const bool valid =
      reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment == 0 && (workspace != nullptr || bytes == 0);
  const cublasStatus_t status = set(handle, &Fields::workspace, workspace, valid);
  return status == CUBLAS_STATUS_SUCCESS ? set(handle, &Fields::workspaceBytes, bytes, true) : status;
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return get(handle, &Fields::pointerMode, mode);
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return set(handle, &Fields::pointerMode, mode,
             mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE);
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return get(handle, &Fields::mathMode, mode);
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return set(handle, &Fields::mathMode, mode, valid(mode));
}
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return get(handle, &Fields::atomicsMode, mode);
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return set(handle, &Fields::atomicsMode, mode, mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED);
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "CUBLAS_STATUS_UNKNOWN";
}
const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "a resource could not be allocated";
    case CUBLAS_STATUS_INVALID_VALUE: return "an argument has an unsupported value";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "the device lacks a feature that the function needs";
    case CUBLAS_STATUS_MAPPING_ERROR: return "device memory could not be accessed";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the work failed on the device";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR: return "a licence is missing";
  }
  return "unknown status";
}
size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }
cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* count) {
  return get(handle, &Fields::multiprocessors, count);
}
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  return set(handle, &Fields::multiprocessors, count, count >= 0);
}
cublasStatus_t cublasSetLoggerCallback(cublasLogCallback callback) {
  logger = callback;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* callback) {
  if (callback == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = logger;
  return CUBLAS_STATUS_SUCCESS;
}

// A vector is a matrix of one row whose leading dimension is the increment.
#define COPIES(suffix, Int)                                                                                           \
  cublasStatus_t cublasSetVector##suffix(Int n, Int size, const void* x, Int incx, void* y, Int incy) {               \
    return copyMatrix(1, n, size, x, incx, y, incy, nullptr);                                                         \
  }                                                                                                                   \
  cublasStatus_t cublasGetVector##suffix(Int n, Int size, const void* x, Int incx, void* y, Int incy) {               \
    return copyMatrix(1, n, size, x, incx, y, incy, nullptr);                                                         \
  }                                                                                                                   \
  cublasStatus_t cublasSetMatrix##suffix(Int rows, Int cols, Int size, const void* A, Int lda, void* B, Int ldb) {    \
    return copyMatrix(rows, cols, size, A, lda, B, ldb, nullptr);                                                     \
  }                                                                                                                   \
  cublasStatus_t cublasGetMatrix##suffix(Int rows, Int cols, Int size, const void* A, Int lda, void* B, Int ldb) {    \
    return copyMatrix(rows, cols, size, A, lda, B, ldb, nullptr);                                                     \
  }                                                                                                                   \
  cublasStatus_t cublasSetVectorAsync##suffix(Int n, Int size, const void* x, Int incx, void* y, Int incy,            \
                                              cudaStream_t stream) {                                                  \
    return copyMatrix(1, n, size, x, incx, y, incy, stream);                                                          \
  }                                                                                                                   \
  cublasStatus_t cublasGetVectorAsync##suffix(Int n, Int size, const void* x, Int incx, void* y, Int incy,            \
                                              cudaStream_t stream) {                                                  \
    return copyMatrix(1, n, size, x, incx, y, incy, stream);                                                          \
  }                                                                                                                   \
  cublasStatus_t cublasSetMatrixAsync##suffix(Int rows, Int cols, Int size, const void* A, Int lda, void* B, Int ldb, \
                                              cudaStream_t stream) {                                                  \
    return copyMatrix(rows, cols, size, A, lda, B, ldb, stream);                                                      \
  }                                                                                                                   \
  cublasStatus_t cublasGetMatrixAsync##suffix(Int rows, Int cols, Int size, const void* A, Int lda, void* B, Int ldb, \
                                              cudaStream_t stream) {                                                  \
    return copyMatrix(rows, cols, size, A, lda, B, ldb, stream);                                                      \
  }
COPIES(, int)
COPIES(_64, int64_t)

}  // extern "C"
#pragma GCC visibility pop
