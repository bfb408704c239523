// Matrix products whose types are chosen at run time, as cuBLAS and cuBLASLt have them.
#pragma once

#include <cstdint>

#include "library_types.h"
#include "openblas.h"

namespace mxmaca {

// What a product computes in. Half precision is computed in float and rounded once at the end, which is at least as
// exact as the device; 8-bit integers are summed exactly.
enum class Arithmetic { Float, Double, Integer, Half };

struct Product {
  char transA = 'N';  // N, T or C
  char transB = 'N';
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  cudaDataType aType = CUDA_R_32F;
  int64_t lda = 0;
  const void* b = nullptr;
  cudaDataType bType = CUDA_R_32F;
  int64_t ldb = 0;
  const void* c = nullptr;  // read if beta is not zero; may be d
  cudaDataType cType = CUDA_R_32F;
  int64_t ldc = 0;
  void* d = nullptr;
  cudaDataType dType = CUDA_R_32F;
  int64_t ldd = 0;
  const void* alpha = nullptr;
  const void* beta = nullptr;
  cudaDataType scaleType = CUDA_R_32F;
  Arithmetic arithmetic = Arithmetic::Float;
};

// d = alpha * op(a) * op(b) + beta * c. The types must have been checked. Throws BlasMissing, std::bad_alloc.
void multiply(const Product& product);

// op(a) * op(b) alone, as m x n elements without gaps, in float or double, real or complex.
template <class T>
void plainProduct(const Product& product, T alpha, T* out);

template <class T>
void gemm(char transA, char transB, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
          int64_t ldb, T beta, T* c, int64_t ldc) {
  MXMACA_BLAS(T, "?gemm_",
              void(const char*, const char*, const BlasInt*, const BlasInt*, const BlasInt*, const T*, const T*,
                   const BlasInt*, const T*, const BlasInt*, const T*, T*, const BlasInt*))
  (&transA, &transB, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

}  // namespace mxmaca
