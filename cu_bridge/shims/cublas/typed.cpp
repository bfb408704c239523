// cuBLAS's functions whose types are chosen at run time.

#include "families.h"

namespace mxmaca {
namespace cublas {
namespace {

struct Combination {
  cublasComputeType_t compute;
  cudaDataType ab, c, scale;
  Arithmetic arithmetic;
};

// As cuBLAS documents them for cublasGemmEx; the faster and the pedantic forms of a compute type are that type here.
constexpr Combination kCombinations[] = {
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, Arithmetic::Half},
    {CUBLAS_COMPUTE_32I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, Arithmetic::Integer},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_8I, CUDA_R_32F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_C_8I, CUDA_C_32F, CUDA_C_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_32F, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, Arithmetic::Float},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, Arithmetic::Double},
    {CUBLAS_COMPUTE_64F, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, Arithmetic::Double},
};

template <class Pointer>
Pointer offset(Pointer data, cudaDataType type, Index elements) {
  using Byte = std::conditional_t<std::is_const<std::remove_pointer_t<Pointer>>::value, const char, char>;
  return static_cast<Byte*>(data) + elements * static_cast<Index>(elementBytes(type));
}

bool isFloat(cudaDataType type) {
  return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_C_32F ||
         type == CUDA_C_64F;
}
// Vectors of one type, computed in it or, for 16 bits, in float.
bool vectorTypes(cudaDataType x, cudaDataType other, cudaDataType execution) {
  if (!isFloat(x) || x != other) return false;
  return execution == x || ((x == CUDA_R_16F || x == CUDA_R_16BF) && execution == CUDA_R_32F);
}

}  // namespace

bool productTypes(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c, Product* product) {
  for (const Combination& entry : kCombinations) {
    if (entry.compute != base(compute) || entry.ab != a || a != b || entry.c != c) continue;
    product->scaleType = entry.scale;
    product->arithmetic = entry.arithmetic;
    product->aType = a;
    product->bType = b;
    product->cType = product->dType = c;
    return true;
  }
  return false;
}

const void* groupScalar(const void* scalars, Index group, cublasComputeType_t compute, cudaDataType a, cudaDataType b,
                        cudaDataType c) {
  Product p;
  return productTypes(compute, a, b, c, &p) ? offset(scalars, p.scaleType, group) : nullptr;
}

Status gemmEx(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const void* alpha,
              const void* A, cudaDataType aType, Index lda, const void* B, cudaDataType bType, Index ldb,
              const void* beta, void* C, cudaDataType cType, Index ldc, cublasComputeType_t compute,
              cublasGemmAlgo_t algo) {
  return gemmStridedBatchedEx(transa, transb, m, n, k, alpha, A, aType, lda, 0, B, bType, ldb, 0, beta, C, cType, ldc,
                              0, 1, compute, algo);
}

Status gemmBatchedEx(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k, const void* alpha,
                     const void* const* A, cudaDataType aType, Index lda, const void* const* B, cudaDataType bType,
                     Index ldb, const void* beta, void* const* C, cudaDataType cType, Index ldc, Index batch,
                     cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  MXMACA_REQUIRE(batch >= 0);
  for (Index i = 0; i < batch; ++i) {
    const Status status = gemmEx(transa, transb, m, n, k, alpha, at(A, i), aType, lda, at(B, i), bType, ldb, beta,
                                 at(C, i), cType, ldc, compute, algo);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

Status gemmStridedBatchedEx(cublasOperation_t transa, cublasOperation_t transb, Index m, Index n, Index k,
                            const void* alpha, const void* A, cudaDataType aType, Index lda, Index strideA,
                            const void* B, cudaDataType bType, Index ldb, Index strideB, const void* beta, void* C,
                            cudaDataType cType, Index ldc, Index strideC, Index batch, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo) {
  const Status status = checkGemm(transa, transb, m, n, k, lda, ldb, ldc);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && batch >= 0 && valid(algo));
  Product p;
  if (!productTypes(compute, aType, bType, cType, &p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  p.transA = letter(transa);
  p.transB = letter(transb);
  p.m = m;
  p.n = n;
  p.k = k;
  p.lda = lda;
  p.ldb = ldb;
  p.ldc = p.ldd = ldc;
  p.alpha = alpha;
  p.beta = beta;
  for (Index i = 0; i < batch; ++i) {
    p.a = offset(A, aType, i * strideA);
    p.b = offset(B, bType, i * strideB);
    p.c = p.d = offset(C, cType, i * strideC);
    multiply(p);
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Sums of these are kept in double and rounded once: at least as exact as the execution type.
Status axpyEx(Index n, const void* alpha, cudaDataType alphaType, const void* x, cudaDataType xType, Index incx,
              void* y, cudaDataType yType, Index incy, cudaDataType executionType) {
  MXMACA_REQUIRE(alpha != nullptr);
  if (!vectorTypes(xType, yType, executionType) || (alphaType != xType && alphaType != executionType)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  reachData();
  const std::complex<double> factor = readElement(alpha, alphaType, 0);
  const Index fromX = first(n, incx);
  const Index fromY = first(n, incy);
  for (Index i = 0; i < n; ++i) {
    const Index at = fromY + i * incy;
    writeElement(y, yType, at, factor * readElement(x, xType, fromX + i * incx) + readElement(y, yType, at));
  }
  return CUBLAS_STATUS_SUCCESS;
}

namespace {
Status dotProduct(Index n, const void* x, cudaDataType xType, Index incx, const void* y, cudaDataType yType, Index incy,
                  void* result, cudaDataType resultType, cudaDataType executionType, bool conjugated) {
  MXMACA_REQUIRE(result != nullptr);
  if (!vectorTypes(xType, yType, executionType) || (resultType != xType && resultType != executionType)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  reachData();
  const Index fromX = first(n, incx);
  const Index fromY = first(n, incy);
  std::complex<double> sum = 0;
  for (Index i = 0; i < n; ++i) {
    const std::complex<double> a = readElement(x, xType, fromX + i * incx);
    sum += (conjugated ? std::conj(a) : a) * readElement(y, yType, fromY + i * incy);
  }
  writeElement(result, resultType, 0, sum);
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace

Status dotEx(Index n, const void* x, cudaDataType xType, Index incx, const void* y, cudaDataType yType, Index incy,
             void* result, cudaDataType resultType, cudaDataType executionType) {
  return dotProduct(n, x, xType, incx, y, yType, incy, result, resultType, executionType, false);
}
Status dotcEx(Index n, const void* x, cudaDataType xType, Index incx, const void* y, cudaDataType yType, Index incy,
              void* result, cudaDataType resultType, cudaDataType executionType) {
  return dotProduct(n, x, xType, incx, y, yType, incy, result, resultType, executionType, true);
}

Status nrm2Ex(Index n, const void* x, cudaDataType xType, Index incx, void* result, cudaDataType resultType,
              cudaDataType executionType) {
  MXMACA_REQUIRE(result != nullptr);
  const bool complex = xType == CUDA_C_32F || xType == CUDA_C_64F;
  const cudaDataType real = xType == CUDA_C_32F ? CUDA_R_32F : xType == CUDA_C_64F ? CUDA_R_64F : xType;
  if (complex ? resultType != real || executionType != real : !vectorTypes(xType, resultType, executionType)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  reachData();
  double norm = 0;
  if (n > 0 && incx > 0) {
    double scale = 0;  // of the greatest element, so that no square overflows
    for (Index i = 0; i < n; ++i) scale = std::max(scale, std::abs(readElement(x, xType, i * incx)));
    double sum = 0;
    for (Index i = 0; i < n && scale > 0; ++i) sum += std::norm(readElement(x, xType, i * incx) / scale);
    norm = scale * std::sqrt(sum);
  }
  writeElement(result, resultType, 0, norm);
  return CUBLAS_STATUS_SUCCESS;
}

Status scalEx(Index n, const void* alpha, cudaDataType alphaType, void* x, cudaDataType xType, Index incx,
              cudaDataType executionType) {
  MXMACA_REQUIRE(alpha != nullptr);
  if (!vectorTypes(xType, xType, executionType) || (alphaType != xType && alphaType != executionType)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  reachData();
  const std::complex<double> factor = readElement(alpha, alphaType, 0);
  for (Index i = 0; incx > 0 && i < n; ++i) {
    writeElement(x, xType, i * incx, factor * readElement(x, xType, i * incx));
  }
  return CUBLAS_STATUS_SUCCESS;
}

namespace {
cudaDataType realOf(cudaDataType type) {
  return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}
// BLAS's magnitude: of complex numbers the sum of both parts'.
double magnitude(const void* x, cudaDataType type, Index i) {
  const std::complex<double> value = readElement(x, type, i);
  return std::fabs(value.real()) + std::fabs(value.imag());
}
}  // namespace

Status extremeEx(Index n, const void* x, cudaDataType xType, Index incx, bool least, Index* result) {
  if (!isFloat(xType)) return CUBLAS_STATUS_NOT_SUPPORTED;
  reachData();
  *result = 0;
  double best = 0;
  for (Index i = 0; incx > 0 && i < n; ++i) {
    const double value = magnitude(x, xType, i * incx);
    if (i > 0 && !(least ? value < best : value > best)) continue;
    best = value;
    *result = i + 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

Status asumEx(Index n, const void* x, cudaDataType xType, Index incx, void* result, cudaDataType resultType,
              cudaDataType executionType) {
  MXMACA_REQUIRE(result != nullptr);
  const cudaDataType real = realOf(xType);
  if (real != xType ? resultType != real || executionType != real : !vectorTypes(xType, resultType, executionType)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  reachData();
  double sum = 0;
  for (Index i = 0; incx > 0 && i < n; ++i) sum += magnitude(x, xType, i * incx);
  writeElement(result, resultType, 0, sum);
  return CUBLAS_STATUS_SUCCESS;
}

Status copyEx(Index n, const void* x, cudaDataType xType, Index incx, void* y, cudaDataType yType, Index incy) {
  if (!vectorTypes(xType, yType, xType)) return CUBLAS_STATUS_NOT_SUPPORTED;
  reachData();
  const Index fromX = first(n, incx);
  const Index fromY = first(n, incy);
  for (Index i = 0; i < n; ++i) writeElement(y, yType, fromY + i * incy, readElement(x, xType, fromX + i * incx));
  return CUBLAS_STATUS_SUCCESS;
}

Status swapEx(Index n, void* x, cudaDataType xType, Index incx, void* y, cudaDataType yType, Index incy) {
  if (!vectorTypes(xType, yType, xType)) return CUBLAS_STATUS_NOT_SUPPORTED;
  reachData();
  const Index fromX = first(n, incx);
  const Index fromY = first(n, incy);
  for (Index i = 0; i < n; ++i) {
    const std::complex<double> a = readElement(x, xType, fromX + i * incx);
    writeElement(x, xType, fromX + i * incx, readElement(y, yType, fromY + i * incy));
    writeElement(y, yType, fromY + i * incy, a);
  }
  return CUBLAS_STATUS_SUCCESS;
}

// The cosine is real, in the sine's precision; the sine has the vectors' type, or is real as well.
Status rotEx(Index n, void* x, cudaDataType xType, Index incx, void* y, cudaDataType yType, Index incy, const void* c,
             const void* s, cudaDataType csType, cudaDataType executionType) {
  MXMACA_REQUIRE(c != nullptr && s != nullptr);
  if (!vectorTypes(xType, yType, executionType) ||
      (csType != xType && csType != realOf(xType) && csType != executionType)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  reachData();
  const double cosine = readElement(c, realOf(csType), 0).real();
  const std::complex<double> sine = readElement(s, csType, 0);
  const Index fromX = first(n, incx);
  const Index fromY = first(n, incy);
  for (Index i = 0; i < n; ++i) {
    const std::complex<double> a = readElement(x, xType, fromX + i * incx);
    const std::complex<double> b = readElement(y, yType, fromY + i * incy);
    writeElement(x, xType, fromX + i * incx, cosine * a + sine * b);
    writeElement(y, yType, fromY + i * incy, cosine * b - std::conj(sine) * a);
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace cublas
}  // namespace mxmaca
