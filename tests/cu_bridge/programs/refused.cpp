// Calls a function that does nothing on the simulated device: it must say so, not succeed.
#include <cublas_v2.h>

#include "check.h"

extern "C" cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                         const float*, const float*, int, const float*, int, const float*, float*, int);

int main() {
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  cudaStream_t stream = nullptr;
  CHECK(cublasSetStream(handle, cudaStreamLegacy) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasGetStream(handle, &stream) == CUBLAS_STATUS_SUCCESS && stream == cudaStreamLegacy);
  cublasMath_t mode = CUBLAS_DEFAULT_MATH;
  CHECK(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasGetMathMode(handle, &mode) == CUBLAS_STATUS_SUCCESS && mode == CUBLAS_TF32_TENSOR_OP_MATH);
  const float one = 1;
  float result = 0;
  for (int i = 0; i < 3; ++i) {
    CHECK(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, &one, 1, &one, 1, &one, &result, 1) ==
          CUBLAS_STATUS_NOT_SUPPORTED);
  }
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}
