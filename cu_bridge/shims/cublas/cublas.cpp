// cuBLAS: handles, their settings, and copies. What is computed is in level1.h and the other families, and in
// typed.cpp.

#include "blas.h"

using namespace mxmaca;
using Status = cublasStatus_t;

namespace {
std::atomic<cublasLogCallback> logger{nullptr};
using Fields = LibraryHandle;
constexpr size_t kWorkspaceAlignment = 256;  // cuBLAS asks it of its callers

// The modes of arithmetic; later releases have two more, for emulation.
bool isMathMode(cublasMath_t mode) {
  const int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  return (base >= CUBLAS_DEFAULT_MATH && base <= CUBLAS_TF32_TENSOR_OP_MATH) || base == 4 || base == 8;
}

// A matrix whose elements have any size; a vector with increments is one of a single row.
Status copyMatrix(int64_t rows, int64_t columns, int64_t elementBytes, const void* from, int64_t fromLd, void* to,
                  int64_t toLd, cudaStream_t stream) {
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

#pragma GCC visibility push(default)
extern "C" {

Status cublasCreate(cublasHandle_t* handle) { return createHandle<Status>(handle); }
Status cublasDestroy(cublasHandle_t handle) { return destroyHandle<Status>(handle); }
Status cublasGetVersion(cublasHandle_t handle, int* version) {
  return live(handle) ? getVersion<Status>(version, CUBLAS_VERSION) : CUBLAS_STATUS_NOT_INITIALIZED;
}
Status cublasGetProperty(libraryPropertyType type, int* value) {
  return getProperty<Status>(type, value, CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH);
}
Status cublasSetStream(cublasHandle_t handle, cudaStream_t stream) { return setStream<Status>(handle, stream); }
Status cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) { return getStream<Status>(handle, stream); }
Status cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes) {
  const bool valid =
      reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment == 0 && (workspace != nullptr || bytes == 0);
  const Status status = setField<Status>(handle, &Fields::workspace, workspace, valid);
  return status == CUBLAS_STATUS_SUCCESS ? setField<Status>(handle, &Fields::workspaceBytes, bytes, true) : status;
}
Status cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return getField<Status>(handle, &Fields::pointerMode, mode);
}
Status cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return setField<Status>(handle, &Fields::pointerMode, mode,
                          mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE);
}
Status cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return getField<Status>(handle, &Fields::mathMode, mode);
}
Status cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return setField<Status>(handle, &Fields::mathMode, mode, isMathMode(mode));
}
Status cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return getField<Status>(handle, &Fields::atomicsMode, mode);
}
Status cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return setField<Status>(handle, &Fields::atomicsMode, mode,
                          mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED);
}

const char* cublasGetStatusName(Status status) {
  return statusText(kCublasStatuses, status, &StatusName::name, "CUBLAS_STATUS_UNKNOWN");
}
const char* cublasGetStatusString(Status status) {
  return statusText(kCublasStatuses, status, &StatusName::text, "unknown status");
}
size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }
Status cublasGetSmCountTarget(cublasHandle_t handle, int* count) {
  return getField<Status>(handle, &Fields::multiprocessors, count);
}
Status cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  return setField<Status>(handle, &Fields::multiprocessors, count, count >= 0);
}
Status cublasSetLoggerCallback(cublasLogCallback callback) {
  logger = callback;
  return CUBLAS_STATUS_SUCCESS;
}
Status cublasGetLoggerCallback(cublasLogCallback* callback) {
  if (callback == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = logger;
  return CUBLAS_STATUS_SUCCESS;
}

// A vector is a matrix of one row whose leading dimension is the increment. Both directions are one.
#define COPY(way, suffix, Int)                                                                                    \
  Status cublas##way##Vector##suffix(Int n, Int size, const void* x, Int incx, void* y, Int incy) {               \
    return copyMatrix(1, n, size, x, incx, y, incy, nullptr);                                                     \
  }                                                                                                               \
  Status cublas##way##Matrix##suffix(Int rows, Int cols, Int size, const void* A, Int lda, void* B, Int ldb) {    \
    return copyMatrix(rows, cols, size, A, lda, B, ldb, nullptr);                                                 \
  }                                                                                                               \
  Status cublas##way##VectorAsync##suffix(Int n, Int size, const void* x, Int incx, void* y, Int incy,            \
                                          cudaStream_t stream) {                                                  \
    return copyMatrix(1, n, size, x, incx, y, incy, stream);                                                      \
  }                                                                                                               \
  Status cublas##way##MatrixAsync##suffix(Int rows, Int cols, Int size, const void* A, Int lda, void* B, Int ldb, \
                                          cudaStream_t stream) {                                                  \
    return copyMatrix(rows, cols, size, A, lda, B, ldb, stream);                                                  \
  }
COPY(Set, , int)
COPY(Get, , int)
COPY(Set, _64, int64_t)
COPY(Get, _64, int64_t)

}  // extern "C"
#pragma GCC visibility pop
