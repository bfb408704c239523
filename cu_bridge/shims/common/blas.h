// Enumerations and statuses of cuBLAS, which other libraries use too.
#pragma once

#include "library.h"

#pragma GCC visibility push(default)
#include "cublas_v2.h"
#pragma GCC visibility pop

MXMACA_OBJECT(cublasContext, Cublas);
MXMACA_ANSWERS(cublasStatus_t, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_INVALID_VALUE,
               CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
MXMACA_RANGE(cublasOperation_t, CUBLAS_OP_N, CUBLAS_OP_C);
MXMACA_RANGE(cublasFillMode_t, CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER);
MXMACA_RANGE(cublasDiagType_t, CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT);
MXMACA_RANGE(cublasSideMode_t, CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT);

namespace mxmaca {

constexpr StatusName kCublasStatuses[] = {
    MXMACA_STATUS(CUBLAS_STATUS_SUCCESS, "success"),
    MXMACA_STATUS(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized"),
    MXMACA_STATUS(CUBLAS_STATUS_ALLOC_FAILED, "a resource could not be allocated"),
    MXMACA_STATUS(CUBLAS_STATUS_INVALID_VALUE, "an argument has an unsupported value"),
    MXMACA_STATUS(CUBLAS_STATUS_ARCH_MISMATCH, "the device lacks a feature that the function needs"),
    MXMACA_STATUS(CUBLAS_STATUS_MAPPING_ERROR, "device memory could not be accessed"),
    MXMACA_STATUS(CUBLAS_STATUS_EXECUTION_FAILED, "the work failed on the device"),
    MXMACA_STATUS(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed"),
    MXMACA_STATUS(CUBLAS_STATUS_NOT_SUPPORTED, "the functionality is not supported"),
    MXMACA_STATUS(CUBLAS_STATUS_LICENSE_ERROR, "a licence is missing"),
};

inline char letter(cublasOperation_t op) { return "NTC"[op]; }
inline char letter(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U'; }
inline char letter(cublasDiagType_t diag) { return diag == CUBLAS_DIAG_UNIT ? 'U' : 'N'; }
inline char letter(cublasSideMode_t side) { return side == CUBLAS_SIDE_LEFT ? 'L' : 'R'; }

// The faster and the pedantic forms of a compute type are that type here.
inline int base(int compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F_PEDANTIC: return CUBLAS_COMPUTE_16F;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32: return CUBLAS_COMPUTE_32F;
    case CUBLAS_COMPUTE_64F_PEDANTIC: return CUBLAS_COMPUTE_64F;
    case CUBLAS_COMPUTE_32I_PEDANTIC: return CUBLAS_COMPUTE_32I;
    default: return compute;
  }
}

// The least that a leading dimension may be.
inline int64_t least(int64_t rows) { return rows > 1 ? rows : 1; }

}  // namespace mxmaca
