// Part of cusparse.h: matrices in blocks (BSR), incomplete factorizations, and what their steps keep.
#pragma once

typedef struct csrilu02Info* csrilu02Info_t;
typedef struct csric02Info* csric02Info_t;
typedef struct bsrilu02Info* bsrilu02Info_t;
typedef struct bsric02Info* bsric02Info_t;
typedef struct bsrsv2Info* bsrsv2Info_t;
typedef struct bsrsm2Info* bsrsm2Info_t;

#ifdef __cplusplus
extern "C" {
#endif
cusparseStatus_t cusparseCreateCsrilu02Info(csrilu02Info_t* info);
cusparseStatus_t cusparseDestroyCsrilu02Info(csrilu02Info_t info);
cusparseStatus_t cusparseXcsrilu02_zeroPivot(cusparseHandle_t handle, csrilu02Info_t info, int* position);
cusparseStatus_t cusparseCreateCsric02Info(csric02Info_t* info);
cusparseStatus_t cusparseDestroyCsric02Info(csric02Info_t info);
cusparseStatus_t cusparseXcsric02_zeroPivot(cusparseHandle_t handle, csric02Info_t info, int* position);
cusparseStatus_t cusparseCreateBsrilu02Info(bsrilu02Info_t* info);
cusparseStatus_t cusparseDestroyBsrilu02Info(bsrilu02Info_t info);
cusparseStatus_t cusparseXbsrilu02_zeroPivot(cusparseHandle_t handle, bsrilu02Info_t info, int* position);
cusparseStatus_t cusparseCreateBsric02Info(bsric02Info_t* info);
cusparseStatus_t cusparseDestroyBsric02Info(bsric02Info_t info);
cusparseStatus_t cusparseXbsric02_zeroPivot(cusparseHandle_t handle, bsric02Info_t info, int* position);
cusparseStatus_t cusparseCreateBsrsv2Info(bsrsv2Info_t* info);
cusparseStatus_t cusparseDestroyBsrsv2Info(bsrsv2Info_t info);
cusparseStatus_t cusparseXbsrsv2_zeroPivot(cusparseHandle_t handle, bsrsv2Info_t info, int* position);
cusparseStatus_t cusparseCreateBsrsm2Info(bsrsm2Info_t* info);
cusparseStatus_t cusparseDestroyBsrsm2Info(bsrsm2Info_t info);
cusparseStatus_t cusparseXbsrsm2_zeroPivot(cusparseHandle_t handle, bsrsm2Info_t info, int* position);

// The functions that exist for float (S), double (D), cuComplex (C) and cuDoubleComplex (Z).
#define MXMACA_CUSPARSE_CSR(T) \
  int m, int nnz, const cusparseMatDescr_t descrA, T *csrVal, const int *csrRowPtr, const int *csrColInd
#define MXMACA_CUSPARSE_BSR(T)                                                                                  \
  cusparseDirection_t dirA, int mb, int nnzb, const cusparseMatDescr_t descrA, T *bsrVal, const int *bsrRowPtr, \
      const int *bsrColInd, int blockDim
#define MXMACA_CUSPARSE_BSRSM(T)                                                                              \
  cusparseDirection_t dirA, cusparseOperation_t transA, cusparseOperation_t transXY, int mb, int n, int nnzb, \
      const cusparseMatDescr_t descrA, T *bsrVal, const int *bsrRowPtr, const int *bsrColInd, int blockDim

#define MXMACA_CUSPARSE_FACTORIZATION(L, T, name, MATRIX, ANALYSED)                                                   \
  cusparseStatus_t cusparse##L##name##_bufferSize(cusparseHandle_t handle, MATRIX(T), name##Info_t info, int* bytes); \
  cusparseStatus_t cusparse##L##name##_bufferSizeExt(cusparseHandle_t handle, MATRIX(T), name##Info_t info,           \
                                                     size_t* bytes);                                                  \
  cusparseStatus_t cusparse##L##name##_analysis(cusparseHandle_t handle, MATRIX(ANALYSED), name##Info_t info,         \
                                                cusparseSolvePolicy_t policy, void* buffer);                          \
  cusparseStatus_t cusparse##L##name(cusparseHandle_t handle, MATRIX(T), name##Info_t info,                           \
                                     cusparseSolvePolicy_t policy, void* buffer);
#define MXMACA_CUSPARSE_TYPED(L, T)                                                                                    \
  MXMACA_CUSPARSE_FACTORIZATION(L, T, csrilu02, MXMACA_CUSPARSE_CSR, const T)                                          \
  MXMACA_CUSPARSE_FACTORIZATION(L, T, csric02, MXMACA_CUSPARSE_CSR, const T)                                           \
  MXMACA_CUSPARSE_FACTORIZATION(L, T, bsrilu02, MXMACA_CUSPARSE_BSR, T)                                                \
  MXMACA_CUSPARSE_FACTORIZATION(L, T, bsric02, MXMACA_CUSPARSE_BSR, const T)                                           \
  cusparseStatus_t cusparse##L##csrilu02_numericBoost(cusparseHandle_t handle, csrilu02Info_t info, int enable_boost,  \
                                                      double* tol, T* boost_val);                                      \
  cusparseStatus_t cusparse##L##bsrilu02_numericBoost(cusparseHandle_t handle, bsrilu02Info_t info, int enable_boost,  \
                                                      double* tol, T* boost_val);                                      \
  cusparseStatus_t cusparse##L##bsrmv(cusparseHandle_t handle, cusparseDirection_t dirA, cusparseOperation_t transA,   \
                                      int mb, int nb, int nnzb, const T* alpha, const cusparseMatDescr_t descrA,       \
                                      const T* bsrVal, const int* bsrRowPtr, const int* bsrColInd, int blockDim,       \
                                      const T* x, const T* beta, T* y);                                                \
  cusparseStatus_t cusparse##L##bsrmm(cusparseHandle_t handle, cusparseDirection_t dirA, cusparseOperation_t transA,   \
                                      cusparseOperation_t transB, int mb, int n, int kb, int nnzb, const T* alpha,     \
                                      const cusparseMatDescr_t descrA, const T* bsrVal, const int* bsrRowPtr,          \
                                      const int* bsrColInd, const int blockSize, const T* B, const int ldb,            \
                                      const T* beta, T* C, int ldc);                                                   \
  cusparseStatus_t cusparse##L##bsrsv2_bufferSize(cusparseHandle_t handle, cusparseDirection_t dirA,                   \
                                                  cusparseOperation_t transA, int mb, int nnzb,                        \
                                                  const cusparseMatDescr_t descrA, T* bsrVal, const int* bsrRowPtr,    \
                                                  const int* bsrColInd, int blockDim, bsrsv2Info_t info, int* bytes);  \
  cusparseStatus_t cusparse##L##bsrsv2_bufferSizeExt(                                                                  \
      cusparseHandle_t handle, cusparseDirection_t dirA, cusparseOperation_t transA, int mb, int nnzb,                 \
      const cusparseMatDescr_t descrA, T* bsrVal, const int* bsrRowPtr, const int* bsrColInd, int blockSize,           \
      bsrsv2Info_t info, size_t* bytes);                                                                               \
  cusparseStatus_t cusparse##L##bsrsv2_analysis(                                                                       \
      cusparseHandle_t handle, cusparseDirection_t dirA, cusparseOperation_t transA, int mb, int nnzb,                 \
      const cusparseMatDescr_t descrA, const T* bsrVal, const int* bsrRowPtr, const int* bsrColInd, int blockDim,      \
      bsrsv2Info_t info, cusparseSolvePolicy_t policy, void* buffer);                                                  \
  cusparseStatus_t cusparse##L##bsrsv2_solve(                                                                          \
      cusparseHandle_t handle, cusparseDirection_t dirA, cusparseOperation_t transA, int mb, int nnzb, const T* alpha, \
      const cusparseMatDescr_t descrA, const T* bsrVal, const int* bsrRowPtr, const int* bsrColInd, int blockDim,      \
      bsrsv2Info_t info, const T* f, T* x, cusparseSolvePolicy_t policy, void* buffer);                                \
  cusparseStatus_t cusparse##L##bsrsm2_bufferSize(cusparseHandle_t handle, MXMACA_CUSPARSE_BSRSM(T),                   \
                                                  bsrsm2Info_t info, int* bytes);                                      \
  cusparseStatus_t cusparse##L##bsrsm2_bufferSizeExt(cusparseHandle_t handle, MXMACA_CUSPARSE_BSRSM(T),                \
                                                     bsrsm2Info_t info, size_t* bytes);                                \
  cusparseStatus_t cusparse##L##bsrsm2_analysis(cusparseHandle_t handle, MXMACA_CUSPARSE_BSRSM(const T),               \
                                                bsrsm2Info_t info, cusparseSolvePolicy_t policy, void* buffer);        \
  cusparseStatus_t cusparse##L##bsrsm2_solve(                                                                          \
      cusparseHandle_t handle, cusparseDirection_t dirA, cusparseOperation_t transA, cusparseOperation_t transXY,      \
      int mb, int n, int nnzb, const T* alpha, const cusparseMatDescr_t descrA, const T* bsrVal, const int* bsrRowPtr, \
      const int* bsrColInd, int blockDim, bsrsm2Info_t info, const T* B, int ldb, T* X, int ldx,                       \
      cusparseSolvePolicy_t policy, void* buffer);
MXMACA_CUSPARSE_TYPED(S, float)
MXMACA_CUSPARSE_TYPED(D, double)
MXMACA_CUSPARSE_TYPED(C, cuComplex)
MXMACA_CUSPARSE_TYPED(Z, cuDoubleComplex)
#undef MXMACA_CUSPARSE_TYPED
#undef MXMACA_CUSPARSE_FACTORIZATION
#undef MXMACA_CUSPARSE_BSRSM
#undef MXMACA_CUSPARSE_BSR
#undef MXMACA_CUSPARSE_CSR
#ifdef __cplusplus
}
#endif
