// The first interface of cuBLAS: characters for enumerators, scalars by value, results returned, one handle that nobody
// sees, and errors that are asked for. It goes to the second one, with a handle for the process; a program includes one
// of the two headers, since they share names.
#pragma once
#ifdef CUBLAS_V2_H_
#error "cublas.h and cublas_v2.h have the same names for different functions: include one of them"
#endif

#include "cublas_v2.h"
#include "cuda_runtime_api.h"

#define CUBLAS_H_
#define CUBLASAPI

typedef cublasStatus_t cublasStatus;

// One of the process, whatever files include this.
__attribute__((weak)) cublasHandle_t mxmacaCublasHandle = 0;
__attribute__((weak)) cublasStatus_t mxmacaCublasError = CUBLAS_STATUS_SUCCESS;

// Keeps the first error until it is asked for.
static inline cublasStatus_t mxmacaCublasKeep(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS && mxmacaCublasError == CUBLAS_STATUS_SUCCESS) mxmacaCublasError = status;
  return status;
}
static inline cublasOperation_t mxmacaCublasOperation(char letter) {
  switch (letter) {
    case 'N':
    case 'n': return CUBLAS_OP_N;
    case 'T':
    case 't': return CUBLAS_OP_T;
    case 'C':
    case 'c': return CUBLAS_OP_C;
    default: return (cublasOperation_t)-1;
  }
}
static inline cublasFillMode_t mxmacaCublasFill(char letter) {
  if (letter == 'L' || letter == 'l') return CUBLAS_FILL_MODE_LOWER;
  return letter == 'U' || letter == 'u' ? CUBLAS_FILL_MODE_UPPER : (cublasFillMode_t)-1;
}
static inline cublasSideMode_t mxmacaCublasSide(char letter) {
  if (letter == 'L' || letter == 'l') return CUBLAS_SIDE_LEFT;
  return letter == 'R' || letter == 'r' ? CUBLAS_SIDE_RIGHT : (cublasSideMode_t)-1;
}
static inline cublasDiagType_t mxmacaCublasDiagonal(char letter) {
  if (letter == 'U' || letter == 'u') return CUBLAS_DIAG_UNIT;
  return letter == 'N' || letter == 'n' ? CUBLAS_DIAG_NON_UNIT : (cublasDiagType_t)-1;
}

static inline cublasStatus cublasInit(void) {
  return mxmacaCublasHandle != 0 ? CUBLAS_STATUS_SUCCESS : mxmacaCublasKeep(cublasCreate_v2(&mxmacaCublasHandle));
}
static inline cublasStatus cublasShutdown(void) {
  const cublasStatus_t status = cublasDestroy_v2(mxmacaCublasHandle);
  mxmacaCublasHandle = 0;
  return status;
}
static inline cublasStatus cublasGetError(void) {
  const cublasStatus_t status = mxmacaCublasError;
  mxmacaCublasError = CUBLAS_STATUS_SUCCESS;
  return status;
}
static inline cublasStatus cublasAlloc(int count, int bytes, void** pointer) {
  if (count <= 0 || bytes <= 0 || pointer == 0) return mxmacaCublasKeep(CUBLAS_STATUS_INVALID_VALUE);
  return mxmacaCublasKeep(cudaMalloc(pointer, (size_t)count * (size_t)bytes) == cudaSuccess
                              ? CUBLAS_STATUS_SUCCESS
                              : CUBLAS_STATUS_ALLOC_FAILED);
}
static inline cublasStatus cublasFree(void* pointer) {
  return mxmacaCublasKeep(cudaFree(pointer) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR);
}
static inline cublasStatus cublasSetKernelStream(cudaStream_t stream) {
  return mxmacaCublasKeep(cublasSetStream_v2(mxmacaCublasHandle, stream));
}

// The second interface's macros of these names.
#undef cublasIsamax
#undef cublasIsamin
#undef cublasSasum
#undef cublasSnrm2
#undef cublasSaxpy
#undef cublasScopy
#undef cublasSswap
#undef cublasSscal
#undef cublasSdot
#undef cublasSrot
#undef cublasSgemv
#undef cublasSger
#undef cublasStrmv
#undef cublasStrsv
#undef cublasSsymv
#undef cublasSsyr
#undef cublasSsyr2
#undef cublasSgemm
#undef cublasSsymm
#undef cublasSsyrk
#undef cublasSsyr2k
#undef cublasStrsm
#undef cublasStrmm
#undef cublasIdamax
#undef cublasIdamin
#undef cublasDasum
#undef cublasDnrm2
#undef cublasDaxpy
#undef cublasDcopy
#undef cublasDswap
#undef cublasDscal
#undef cublasDdot
#undef cublasDrot
#undef cublasDgemv
#undef cublasDger
#undef cublasDtrmv
#undef cublasDtrsv
#undef cublasDsymv
#undef cublasDsyr
#undef cublasDsyr2
#undef cublasDgemm
#undef cublasDsymm
#undef cublasDsyrk
#undef cublasDsyr2k
#undef cublasDtrsm
#undef cublasDtrmm
#undef cublasIcamax
#undef cublasIcamin
#undef cublasScasum
#undef cublasScnrm2
#undef cublasCaxpy
#undef cublasCcopy
#undef cublasCswap
#undef cublasCscal
#undef cublasCdotu
#undef cublasCdotc
#undef cublasCsscal
#undef cublasCgemv
#undef cublasCgeru
#undef cublasCgerc
#undef cublasCtrmv
#undef cublasCtrsv
#undef cublasChemv
#undef cublasCgemm
#undef cublasCsymm
#undef cublasChemm
#undef cublasCsyrk
#undef cublasCherk
#undef cublasCsyr2k
#undef cublasCtrsm
#undef cublasCtrmm
#undef cublasIzamax
#undef cublasIzamin
#undef cublasDzasum
#undef cublasDznrm2
#undef cublasZaxpy
#undef cublasZcopy
#undef cublasZswap
#undef cublasZscal
#undef cublasZdotu
#undef cublasZdotc
#undef cublasZdscal
#undef cublasZgemv
#undef cublasZgeru
#undef cublasZgerc
#undef cublasZtrmv
#undef cublasZtrsv
#undef cublasZhemv
#undef cublasZgemm
#undef cublasZsymm
#undef cublasZhemm
#undef cublasZsyrk
#undef cublasZherk
#undef cublasZsyr2k
#undef cublasZtrsm
#undef cublasZtrmm

// The functions that exist for float (S), double (D), cuComplex (C) and cuDoubleComplex (Z); of results and of what
// complex functions have of real type, R is the real type.
#define MXMACA_CUBLAS_ALL(L, T)                                                                                       \
  static inline void cublas##L##axpy(int n, T alpha, const T* x, int incx, T* y, int incy) {                          \
    mxmacaCublasKeep(cublas##L##axpy_v2(mxmacaCublasHandle, n, &alpha, x, incx, y, incy));                            \
  }                                                                                                                   \
  static inline void cublas##L##copy(int n, const T* x, int incx, T* y, int incy) {                                   \
    mxmacaCublasKeep(cublas##L##copy_v2(mxmacaCublasHandle, n, x, incx, y, incy));                                    \
  }                                                                                                                   \
  static inline void cublas##L##swap(int n, T* x, int incx, T* y, int incy) {                                         \
    mxmacaCublasKeep(cublas##L##swap_v2(mxmacaCublasHandle, n, x, incx, y, incy));                                    \
  }                                                                                                                   \
  static inline void cublas##L##scal(int n, T alpha, T* x, int incx) {                                                \
    mxmacaCublasKeep(cublas##L##scal_v2(mxmacaCublasHandle, n, &alpha, x, incx));                                     \
  }                                                                                                                   \
  static inline void cublas##L##gemv(char trans, int m, int n, T alpha, const T* A, int lda, const T* x, int incx,    \
                                     T beta, T* y, int incy) {                                                        \
    mxmacaCublasKeep(cublas##L##gemv_v2(mxmacaCublasHandle, mxmacaCublasOperation(trans), m, n, &alpha, A, lda, x,    \
                                        incx, &beta, y, incy));                                                       \
  }                                                                                                                   \
  static inline void cublas##L##trmv(char uplo, char trans, char diag, int n, const T* A, int lda, T* x, int incx) {  \
    mxmacaCublasKeep(cublas##L##trmv_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), mxmacaCublasOperation(trans),     \
                                        mxmacaCublasDiagonal(diag), n, A, lda, x, incx));                             \
  }                                                                                                                   \
  static inline void cublas##L##trsv(char uplo, char trans, char diag, int n, const T* A, int lda, T* x, int incx) {  \
    mxmacaCublasKeep(cublas##L##trsv_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), mxmacaCublasOperation(trans),     \
                                        mxmacaCublasDiagonal(diag), n, A, lda, x, incx));                             \
  }                                                                                                                   \
  static inline void cublas##L##gemm(char transa, char transb, int m, int n, int k, T alpha, const T* A, int lda,     \
                                     const T* B, int ldb, T beta, T* C, int ldc) {                                    \
    mxmacaCublasKeep(cublas##L##gemm_v2(mxmacaCublasHandle, mxmacaCublasOperation(transa),                            \
                                        mxmacaCublasOperation(transb), m, n, k, &alpha, A, lda, B, ldb, &beta, C,     \
                                        ldc));                                                                        \
  }                                                                                                                   \
  static inline void cublas##L##symm(char side, char uplo, int m, int n, T alpha, const T* A, int lda, const T* B,    \
                                     int ldb, T beta, T* C, int ldc) {                                                \
    mxmacaCublasKeep(cublas##L##symm_v2(mxmacaCublasHandle, mxmacaCublasSide(side), mxmacaCublasFill(uplo), m, n,     \
                                        &alpha, A, lda, B, ldb, &beta, C, ldc));                                      \
  }                                                                                                                   \
  static inline void cublas##L##syrk(char uplo, char trans, int n, int k, T alpha, const T* A, int lda, T beta, T* C, \
                                     int ldc) {                                                                       \
    mxmacaCublasKeep(cublas##L##syrk_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), mxmacaCublasOperation(trans), n,  \
                                        k, &alpha, A, lda, &beta, C, ldc));                                           \
  }                                                                                                                   \
  static inline void cublas##L##syr2k(char uplo, char trans, int n, int k, T alpha, const T* A, int lda, const T* B,  \
                                      int ldb, T beta, T* C, int ldc) {                                               \
    mxmacaCublasKeep(cublas##L##syr2k_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), mxmacaCublasOperation(trans), n, \
                                         k, &alpha, A, lda, B, ldb, &beta, C, ldc));                                  \
  }                                                                                                                   \
  static inline void cublas##L##trsm(char side, char uplo, char trans, char diag, int m, int n, T alpha, const T* A,  \
                                     int lda, T* B, int ldb) {                                                        \
    mxmacaCublasKeep(cublas##L##trsm_v2(mxmacaCublasHandle, mxmacaCublasSide(side), mxmacaCublasFill(uplo),           \
                                        mxmacaCublasOperation(trans), mxmacaCublasDiagonal(diag), m, n, &alpha, A,    \
                                        lda, B, ldb));                                                                \
  }                                                                                                                   \
  static inline void cublas##L##trmm(char side, char uplo, char trans, char diag, int m, int n, T alpha, const T* A,  \
                                     int lda, T* B, int ldb) {                                                        \
    mxmacaCublasKeep(cublas##L##trmm_v2(mxmacaCublasHandle, mxmacaCublasSide(side), mxmacaCublasFill(uplo),           \
                                        mxmacaCublasOperation(trans), mxmacaCublasDiagonal(diag), m, n, &alpha, A,    \
                                        lda, B, ldb, B, ldb));                                                        \
  }
#define MXMACA_CUBLAS_RESULTS(N, S, R, T)                                           \
  static inline int cublasI##N##amax(int n, const T* x, int incx) {                 \
    int result = 0;                                                                 \
    mxmacaCublasKeep(cublasI##N##amax_v2(mxmacaCublasHandle, n, x, incx, &result)); \
    return result;                                                                  \
  }                                                                                 \
  static inline int cublasI##N##amin(int n, const T* x, int incx) {                 \
    int result = 0;                                                                 \
    mxmacaCublasKeep(cublasI##N##amin_v2(mxmacaCublasHandle, n, x, incx, &result)); \
    return result;                                                                  \
  }                                                                                 \
  static inline R cublas##S##asum(int n, const T* x, int incx) {                    \
    R result = 0;                                                                   \
    mxmacaCublasKeep(cublas##S##asum_v2(mxmacaCublasHandle, n, x, incx, &result));  \
    return result;                                                                  \
  }                                                                                 \
  static inline R cublas##S##nrm2(int n, const T* x, int incx) {                    \
    R result = 0;                                                                   \
    mxmacaCublasKeep(cublas##S##nrm2_v2(mxmacaCublasHandle, n, x, incx, &result));  \
    return result;                                                                  \
  }
#define MXMACA_CUBLAS_REAL(L, T)                                                                                     \
  static inline T cublas##L##dot(int n, const T* x, int incx, const T* y, int incy) {                                \
    T result = 0;                                                                                                    \
    mxmacaCublasKeep(cublas##L##dot_v2(mxmacaCublasHandle, n, x, incx, y, incy, &result));                           \
    return result;                                                                                                   \
  }                                                                                                                  \
  static inline void cublas##L##rot(int n, T* x, int incx, T* y, int incy, T c, T s) {                               \
    mxmacaCublasKeep(cublas##L##rot_v2(mxmacaCublasHandle, n, x, incx, y, incy, &c, &s));                            \
  }                                                                                                                  \
  static inline void cublas##L##ger(int m, int n, T alpha, const T* x, int incx, const T* y, int incy, T* A,         \
                                    int lda) {                                                                       \
    mxmacaCublasKeep(cublas##L##ger_v2(mxmacaCublasHandle, m, n, &alpha, x, incx, y, incy, A, lda));                 \
  }                                                                                                                  \
  static inline void cublas##L##symv(char uplo, int n, T alpha, const T* A, int lda, const T* x, int incx, T beta,   \
                                     T* y, int incy) {                                                               \
    mxmacaCublasKeep(                                                                                                \
        cublas##L##symv_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), n, &alpha, A, lda, x, incx, &beta, y, incy)); \
  }                                                                                                                  \
  static inline void cublas##L##syr(char uplo, int n, T alpha, const T* x, int incx, T* A, int lda) {                \
    mxmacaCublasKeep(cublas##L##syr_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), n, &alpha, x, incx, A, lda));     \
  }                                                                                                                  \
  static inline void cublas##L##syr2(char uplo, int n, T alpha, const T* x, int incx, const T* y, int incy, T* A,    \
                                     int lda) {                                                                      \
    mxmacaCublasKeep(                                                                                                \
        cublas##L##syr2_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), n, &alpha, x, incx, y, incy, A, lda));        \
  }
#define MXMACA_CUBLAS_COMPLEX(L, N, R, T)                                                                             \
  static inline T cublas##L##dotu(int n, const T* x, int incx, const T* y, int incy) {                                \
    T result = {0, 0};                                                                                                \
    mxmacaCublasKeep(cublas##L##dotu_v2(mxmacaCublasHandle, n, x, incx, y, incy, &result));                           \
    return result;                                                                                                    \
  }                                                                                                                   \
  static inline T cublas##L##dotc(int n, const T* x, int incx, const T* y, int incy) {                                \
    T result = {0, 0};                                                                                                \
    mxmacaCublasKeep(cublas##L##dotc_v2(mxmacaCublasHandle, n, x, incx, y, incy, &result));                           \
    return result;                                                                                                    \
  }                                                                                                                   \
  static inline void cublas##L##geru(int m, int n, T alpha, const T* x, int incx, const T* y, int incy, T* A,         \
                                     int lda) {                                                                       \
    mxmacaCublasKeep(cublas##L##geru_v2(mxmacaCublasHandle, m, n, &alpha, x, incx, y, incy, A, lda));                 \
  }                                                                                                                   \
  static inline void cublas##L##gerc(int m, int n, T alpha, const T* x, int incx, const T* y, int incy, T* A,         \
                                     int lda) {                                                                       \
    mxmacaCublasKeep(cublas##L##gerc_v2(mxmacaCublasHandle, m, n, &alpha, x, incx, y, incy, A, lda));                 \
  }                                                                                                                   \
  static inline void cublas##L##hemv(char uplo, int n, T alpha, const T* A, int lda, const T* x, int incx, T beta,    \
                                     T* y, int incy) {                                                                \
    mxmacaCublasKeep(                                                                                                 \
        cublas##L##hemv_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), n, &alpha, A, lda, x, incx, &beta, y, incy));  \
  }                                                                                                                   \
  static inline void cublas##L##hemm(char side, char uplo, int m, int n, T alpha, const T* A, int lda, const T* B,    \
                                     int ldb, T beta, T* C, int ldc) {                                                \
    mxmacaCublasKeep(cublas##L##hemm_v2(mxmacaCublasHandle, mxmacaCublasSide(side), mxmacaCublasFill(uplo), m, n,     \
                                        &alpha, A, lda, B, ldb, &beta, C, ldc));                                      \
  }                                                                                                                   \
  static inline void cublas##L##herk(char uplo, char trans, int n, int k, R alpha, const T* A, int lda, R beta, T* C, \
                                     int ldc) {                                                                       \
    mxmacaCublasKeep(cublas##L##herk_v2(mxmacaCublasHandle, mxmacaCublasFill(uplo), mxmacaCublasOperation(trans), n,  \
                                        k, &alpha, A, lda, &beta, C, ldc));                                           \
  }                                                                                                                   \
  static inline void cublas##N##scal(int n, R alpha, T* x, int incx) {                                                \
    mxmacaCublasKeep(cublas##N##scal_v2(mxmacaCublasHandle, n, &alpha, x, incx));                                     \
  }
MXMACA_CUBLAS_ALL(S, float)
MXMACA_CUBLAS_ALL(D, double)
MXMACA_CUBLAS_ALL(C, cuComplex)
MXMACA_CUBLAS_ALL(Z, cuDoubleComplex)
MXMACA_CUBLAS_RESULTS(s, S, float, float)
MXMACA_CUBLAS_RESULTS(d, D, double, double)
MXMACA_CUBLAS_RESULTS(c, Sc, float, cuComplex)
MXMACA_CUBLAS_RESULTS(z, Dz, double, cuDoubleComplex)
MXMACA_CUBLAS_REAL(S, float)
MXMACA_CUBLAS_REAL(D, double)
MXMACA_CUBLAS_COMPLEX(C, Cs, float, cuComplex)
MXMACA_CUBLAS_COMPLEX(Z, Zd, double, cuDoubleComplex)
#undef MXMACA_CUBLAS_ALL
#undef MXMACA_CUBLAS_RESULTS
#undef MXMACA_CUBLAS_REAL
#undef MXMACA_CUBLAS_COMPLEX
