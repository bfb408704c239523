// Part of cusparse.h: matrices to blocks and back, counts of elements, a dense matrix with a sparse vector, and systems
// with five diagonals.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
cusparseStatus_t cusparseXcsr2bsrNnz(cusparseHandle_t handle, cusparseDirection_t direction, int m, int n,
                                     const cusparseMatDescr_t descrA, const int* rowsA, const int* colsA, int blockDim,
                                     const cusparseMatDescr_t descrC, int* rowsC, int* nnz);
// The functions that exist for float (S), double (D), cuComplex (C) and cuDoubleComplex (Z).
#define MXMACA_CUSPARSE_TYPED(L, T)                                                                                  \
  cusparseStatus_t cusparse##L##csr2bsr(cusparseHandle_t handle, cusparseDirection_t direction, int m, int n,        \
                                        const cusparseMatDescr_t descrA, const T* valA, const int* rowsA,            \
                                        const int* colsA, int blockDim, const cusparseMatDescr_t descrC, T* valC,    \
                                        int* rowsC, int* colsC);                                                     \
  cusparseStatus_t cusparse##L##bsr2csr(cusparseHandle_t handle, cusparseDirection_t direction, int mb, int nb,      \
                                        const cusparseMatDescr_t descrA, const T* valA, const int* rowsA,            \
                                        const int* colsA, int blockDim, const cusparseMatDescr_t descrC, T* valC,    \
                                        int* rowsC, int* colsC);                                                     \
  cusparseStatus_t cusparse##L##nnz(cusparseHandle_t handle, cusparseDirection_t direction, int m, int n,            \
                                    const cusparseMatDescr_t descrA, const T* A, int lda, int* nnzPerRowColumn,      \
                                    int* nnz);                                                                       \
  cusparseStatus_t cusparse##L##nnz_compress(cusparseHandle_t handle, int m, const cusparseMatDescr_t descr,         \
                                             const T* valA, const int* rowsA, int* nnzPerRow, int* nnzC, T tol);     \
  cusparseStatus_t cusparse##L##csr2csr_compress(                                                                    \
      cusparseHandle_t handle, int m, int n, const cusparseMatDescr_t descrA, const T* valA, const int* colsA,       \
      const int* rowsA, int nnzA, const int* nnzPerRow, T* valC, int* colsC, int* rowsC, T tol);                     \
  cusparseStatus_t cusparse##L##gemvi_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, int m, int n,      \
                                                 int nnz, int* bytes);                                               \
  cusparseStatus_t cusparse##L##gemvi(cusparseHandle_t handle, cusparseOperation_t op, int m, int n, const T* alpha, \
                                      const T* A, int lda, int nnz, const T* x, const int* indices, const T* beta,   \
                                      T* y, cusparseIndexBase_t base, void* buffer);                                 \
  cusparseStatus_t cusparse##L##gpsvInterleavedBatch_bufferSizeExt(                                                  \
      cusparseHandle_t handle, int algo, int m, const T* ds, const T* dl, const T* d, const T* du, const T* dw,      \
      const T* x, int batchCount, size_t* bytes);                                                                    \
  cusparseStatus_t cusparse##L##gpsvInterleavedBatch(cusparseHandle_t handle, int algo, int m, T* ds, T* dl, T* d,   \
                                                     T* du, T* dw, T* x, int batchCount, void* buffer);
MXMACA_CUSPARSE_TYPED(S, float)
MXMACA_CUSPARSE_TYPED(D, double)
MXMACA_CUSPARSE_TYPED(C, cuComplex)
MXMACA_CUSPARSE_TYPED(Z, cuDoubleComplex)
#undef MXMACA_CUSPARSE_TYPED
#ifdef __cplusplus
}
#endif
