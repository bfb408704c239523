// What cuBLASLt's opaque descriptors hold, and the product itself.
#pragma once

#include <cstddef>
#include <cstring>

#include "blas.h"

#pragma GCC visibility push(default)
#include "cublasLt.h"
#pragma GCC visibility pop

MXMACA_OBJECT(cublasLtContext, CublasLt);
MXMACA_OBJECT(cublasLtMatrixLayoutOpaque_t, CublasLtLayout);
MXMACA_OBJECT(cublasLtMatmulDescOpaque_t, CublasLtOperation);
MXMACA_OBJECT(cublasLtMatmulPreferenceOpaque_t, CublasLtPreference);
MXMACA_OBJECT(cublasLtMatrixTransformDescOpaque_t, CublasLtTransform);

namespace mxmaca {
namespace lt {

// A handle of cuBLAS is one of cuBLASLt as well.
inline bool isHandle(cublasLtHandle_t handle) {
  return live(handle) || live(reinterpret_cast<const cublasContext*>(handle));
}

// The one algorithm that there is; what a caller brings from elsewhere is none.
inline cublasLtMatmulAlgo_t theAlgorithm() {
  cublasLtMatmulAlgo_t algorithm = {};
  algorithm.data[0] = 0x6d786d616361;
  return algorithm;
}
inline bool isAlgorithm(const cublasLtMatmulAlgo_t& algorithm) { return algorithm.data[0] == theAlgorithm().data[0]; }

struct Layout {
  int32_t type = CUDA_R_32F;
  int32_t order = CUBLASLT_ORDER_COL;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;
  int64_t plane = 0;
};

struct Operation {
  int32_t compute = CUBLAS_COMPUTE_32F;
  int32_t scaleType = CUDA_R_32F;
  int32_t pointerMode = CUBLASLT_POINTER_MODE_HOST;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N, transC = CUBLAS_OP_N;
  int32_t fillMode = CUBLAS_FILL_MODE_FULL;
  int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  int64_t biasStride = 0;
  void* aux = nullptr;
  int64_t auxLd = 0, auxStride = 0, alphaStride = 0;
  int32_t multiprocessors = 0;
  const float *scaleA = nullptr, *scaleB = nullptr, *scaleC = nullptr, *scaleD = nullptr;
  float* amaxD = nullptr;
  int32_t auxType = -1;
  const float* scaleAux = nullptr;
  float* amaxAux = nullptr;
  int8_t fastAccumulation = 0;
  int32_t biasType = -1;
  int32_t modeA = 0, modeB = 0, modeC = 0, modeD = 0, modeAux = 0;
  void* outScaleD = nullptr;
  int32_t outModeD = 0;
};

struct Preference {
  uint32_t searchMode = 0;
  uint64_t workspace = 0;
  uint32_t reductions = 0xffffffff;
  uint32_t alignmentA = 256, alignmentB = 256, alignmentC = 256, alignmentD = 256;
  float waves = 0;
  uint64_t implementations = ~uint64_t{0};
};

struct Transform {
  int32_t scaleType = CUDA_R_32F;
  int32_t pointerMode = CUBLASLT_POINTER_MODE_HOST;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
};

// Whether the product can be computed: shapes, types, orders, epilogue.
cublasStatus_t check(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d);

}  // namespace lt
}  // namespace mxmaca
