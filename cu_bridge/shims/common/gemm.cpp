#include "gemm.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "numbers.h"

namespace mxmaca {
namespace {

template <class T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType kType<std::complex<float>> = CUDA_C_32F;
template <>
constexpr cudaDataType kType<std::complex<double>> = CUDA_C_64F;

// A matrix as T: the caller's own memory where its type is T, else a converted copy.
template <class T>
class Operand {
 public:
  Operand(const void* data, cudaDataType type, int64_t rows, int64_t columns, int64_t ld) {
    if (type == kType<T>) {
      data_ = static_cast<const T*>(data);
      ld_ = ld;
    } else {
      copy_.reset(new T[static_cast<size_t>(rows * columns)]);
      readMatrix(data, type, rows, columns, ld, copy_.get());
      data_ = copy_.get();
      ld_ = std::max<int64_t>(rows, 1);
    }
  }
  const T* data() const { return data_; }
  int64_t ld() const { return ld_; }

 private:
  std::unique_ptr<T[]> copy_;
  const T* data_ = nullptr;
  int64_t ld_ = 0;
};

template <class T>
T scalar(const void* pointer, cudaDataType type) {
  const std::complex<double> value = readElement(pointer, type, 0);
  if constexpr (kComplex<T>) {
    return {static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag())};
  } else {
    return static_cast<T>(value.real());
  }
}

template <class T>
void productInto(const Product& p, T alpha, T beta, T* out, int64_t ld) {
  const bool plainA = p.transA == 'N';
  const bool plainB = p.transB == 'N';
  if (p.k == 0 || alpha == T(0)) {
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t i = 0; i < p.m; ++i) out[i + j * ld] = beta == T(0) ? T(0) : beta * out[i + j * ld];
    }
    return;
  }
  const Operand<T> a(p.a, p.aType, plainA ? p.m : p.k, plainA ? p.k : p.m, p.lda);
  const Operand<T> b(p.b, p.bType, plainB ? p.k : p.n, plainB ? p.n : p.k, p.ldb);
  gemm<T>(p.transA, p.transB, p.m, p.n, p.k, alpha, a.data(), a.ld(), b.data(), b.ld(), beta, out, ld);
}

template <class T>
void multiplyIn(const Product& p) {
  const T alpha = scalar<T>(p.alpha, p.scaleType);
  const T beta = scalar<T>(p.beta, p.scaleType);
  if (p.dType == kType<T> && (beta == T(0) || (p.c == p.d && p.cType == p.dType && p.ldc == p.ldd))) {
    productInto<T>(p, alpha, beta, static_cast<T*>(p.d), p.ldd);
    return;
  }
  const std::unique_ptr<T[]> out(new T[static_cast<size_t>(p.m * p.n)]);
  if (beta != T(0)) readMatrix(p.c, p.cType, p.m, p.n, p.ldc, out.get());
  productInto<T>(p, alpha, beta, out.get(), p.m);
  writeMatrix(p.d, p.dType, p.m, p.n, p.ldd, out.get());
}

// Sums of 8-bit products are exact in double; the result wraps at 32 bits, as integer arithmetic does.
void multiplyIntegers(const Product& p) {
  const auto alpha = *static_cast<const int32_t*>(p.alpha);
  const auto beta = *static_cast<const int32_t*>(p.beta);
  const std::unique_ptr<double[]> out(new double[static_cast<size_t>(p.m * p.n)]);
  productInto<double>(p, 1.0, 0.0, out.get(), p.m);
  for (int64_t j = 0; j < p.n; ++j) {
    for (int64_t i = 0; i < p.m; ++i) {
      auto sum = static_cast<uint32_t>(static_cast<int64_t>(out[i + j * p.m])) * static_cast<uint32_t>(alpha);
      if (beta != 0) {
        sum += static_cast<uint32_t>(beta) * static_cast<const uint32_t*>(p.c)[i + j * p.ldc];
      }
      static_cast<int32_t*>(p.d)[i + j * p.ldd] = static_cast<int32_t>(sum);
    }
  }
}

// 8-bit integers into float: a sum in float would lose units beyond 2^24.
bool wantsDouble(const Product& p) { return p.aType == CUDA_R_8I || p.aType == CUDA_C_8I; }

}  // namespace

void multiply(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  reachData();
  if (p.arithmetic == Arithmetic::Integer) return multiplyIntegers(p);
  const bool complex = isComplex(p.aType);
  if (p.arithmetic == Arithmetic::Double || wantsDouble(p)) {
    return complex ? multiplyIn<std::complex<double>>(p) : multiplyIn<double>(p);
  }
  return complex ? multiplyIn<std::complex<float>>(p) : multiplyIn<float>(p);
}

template <class T>
void plainProduct(const Product& p, T alpha, T* out) {
  productInto<T>(p, alpha, T(0), out, std::max<int64_t>(p.m, 1));
}
template void plainProduct(const Product&, float, float*);
template void plainProduct(const Product&, double, double*);
template void plainProduct(const Product&, std::complex<float>, std::complex<float>*);
template void plainProduct(const Product&, std::complex<double>, std::complex<double>*);

}  // namespace mxmaca
