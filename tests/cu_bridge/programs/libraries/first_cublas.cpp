// cuBLAS's first interface, against loops on the host.
#include <cublas.h>
#include <cuda_runtime.h>

#include <cmath>
#include <vector>

#include "../check.h"

template <class T>
static T* device(const std::vector<T>& values) {
  T* memory = nullptr;
  CHECK(cublasAlloc(static_cast<int>(values.size()), sizeof(T), reinterpret_cast<void**>(&memory)) == 0);
  CHECK(cublasSetVector(static_cast<int>(values.size()), sizeof(T), values.data(), 1, memory, 1) == 0);
  return memory;
}

int main() {
  const std::vector<float> a{1, 2, 3, 4, 5, -6}, b{1, 0, 2, 1, 3, 1}, square{2, 1, 0, 4};
  CHECK(cublasSdot(6, a.data(), 1, b.data(), 1) == 0 && cublasGetError() == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasInit() == CUBLAS_STATUS_SUCCESS);
  float *const A = device(a), *const B = device(b), *const C = device(std::vector<float>(4));
  cublasSgemm('n', 'N', 2, 2, 3, 2.0F, A, 2, B, 3, 0.0F, C, 2);
  std::vector<float> c(4);
  CHECK(cublasGetMatrix(2, 2, sizeof(float), C, 2, c.data(), 2) == CUBLAS_STATUS_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      float sum = 0;
      for (int k = 0; k < 3; ++k) sum += a[i + 2 * k] * b[k + 3 * j];
      CHECK(c[i + 2 * j] == 2 * sum);
    }
  }
  CHECK(cublasIsamax(6, A, 1) == 6 && cublasIsamin(6, A, 1) == 1 && cublasSasum(6, A, 1) == 21);
  CHECK(std::fabs(cublasSnrm2(6, A, 1) - std::sqrt(91.0F)) < 1e-5F && cublasSdot(6, A, 1, B, 1) == 20);
  cublasSaxpy(6, 0.5F, A, 1, B, 1);
  cublasSscal(6, 2.0F, B, 1);
  std::vector<float> sum(6);
  CHECK(cublasGetVector(6, sizeof(float), B, 1, sum.data(), 1) == CUBLAS_STATUS_SUCCESS);
  for (int i = 0; i < 6; ++i) CHECK(sum[i] == 2 * b[i] + a[i]);
  // op(S) x = alpha b, then S x again.
  float *const S = device(square), *const x = device(std::vector<float>{4, 8});
  cublasStrsm('l', 'L', 'n', 'N', 2, 1, 1.0F, S, 2, x, 2);
  cublasStrmm('L', 'l', 'N', 'n', 2, 1, 3.0F, S, 2, x, 2);
  cublasSgemv('t', 2, 2, 1.0F, S, 2, x, 1, 0.0F, C, 1);
  CHECK(cublasGetVector(2, sizeof(float), C, 1, c.data(), 1) == CUBLAS_STATUS_SUCCESS && c[0] == 48 && c[1] == 96);
  CHECK(cublasGetError() == CUBLAS_STATUS_SUCCESS);

  const std::vector<cuDoubleComplex> z{{1, 2}, {3, -4}};
  cuDoubleComplex* const Z = device(z);
  const cuDoubleComplex plain = cublasZdotu(2, Z, 1, Z, 1), conjugated = cublasZdotc(2, Z, 1, Z, 1);
  CHECK(plain.x == -10 && plain.y == -20 && conjugated.x == 30 && conjugated.y == 0 && cublasDzasum(2, Z, 1) == 10);
  cublasZdscal(2, 2.0, Z, 1);
  CHECK(cublasDznrm2(2, Z, 1) == std::sqrt(120.0));

  // The first error stays until it is asked for.
  cublasSgemm('x', 'N', 2, 2, 3, 1.0F, A, 2, B, 3, 0.0F, C, 2);
  cublasSgemm('n', 'N', 2, 2, 3, 1.0F, A, 2, B, 3, 0.0F, C, 2);
  CHECK(cublasGetError() == CUBLAS_STATUS_INVALID_VALUE && cublasGetError() == CUBLAS_STATUS_SUCCESS);
  cublasStrsm('l', '?', 'n', 'N', 2, 1, 1.0F, S, 2, x, 2);
  CHECK(cublasGetError() == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasFree(A) == 0 && cublasFree(B) == 0 && cublasFree(Z) == 0);
  CHECK(cublasShutdown() == CUBLAS_STATUS_SUCCESS && cublasShutdown() == CUBLAS_STATUS_NOT_INITIALIZED);
  return 0;
}
