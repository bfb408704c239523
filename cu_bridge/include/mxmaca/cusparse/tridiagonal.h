// Part of cusparse.h: solvers of tridiagonal systems.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
// The functions that exist for float (S), double (D), cuComplex (C) and cuDoubleComplex (Z).
#define MXMACA_CUSPARSE_TYPED(L, T)                                                                                  \
  cusparseStatus_t cusparse##L##gtsv2_bufferSizeExt(cusparseHandle_t handle, int m, int n, const T* dl, const T* d,  \
                                                    const T* du, const T* B, int ldb, size_t* bytes);                \
  cusparseStatus_t cusparse##L##gtsv2(cusparseHandle_t handle, int m, int n, const T* dl, const T* d, const T* du,   \
                                      T* B, int ldb, void* buffer);                                                  \
  cusparseStatus_t cusparse##L##gtsv2_nopivot_bufferSizeExt(cusparseHandle_t handle, int m, int n, const T* dl,      \
                                                            const T* d, const T* du, const T* B, int ldb,            \
                                                            size_t* bytes);                                          \
  cusparseStatus_t cusparse##L##gtsv2_nopivot(cusparseHandle_t handle, int m, int n, const T* dl, const T* d,        \
                                              const T* du, T* B, int ldb, void* buffer);                             \
  cusparseStatus_t cusparse##L##gtsv2StridedBatch_bufferSizeExt(cusparseHandle_t handle, int m, const T* dl,         \
                                                                const T* d, const T* du, const T* x, int batchCount, \
                                                                int batchStride, size_t* bytes);                     \
  cusparseStatus_t cusparse##L##gtsv2StridedBatch(cusparseHandle_t handle, int m, const T* dl, const T* d,           \
                                                  const T* du, T* x, int batchCount, int batchStride, void* buffer); \
  cusparseStatus_t cusparse##L##gtsvInterleavedBatch_bufferSizeExt(cusparseHandle_t handle, int algo, int m,         \
                                                                   const T* dl, const T* d, const T* du, const T* x, \
                                                                   int batchCount, size_t* bytes);                   \
  cusparseStatus_t cusparse##L##gtsvInterleavedBatch(cusparseHandle_t handle, int algo, int m, T* dl, T* d, T* du,   \
                                                     T* x, int batchCount, void* buffer);
MXMACA_CUSPARSE_TYPED(S, float)
MXMACA_CUSPARSE_TYPED(D, double)
MXMACA_CUSPARSE_TYPED(C, cuComplex)
MXMACA_CUSPARSE_TYPED(Z, cuDoubleComplex)
#undef MXMACA_CUSPARSE_TYPED
#ifdef __cplusplus
}
#endif
