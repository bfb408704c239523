// Calls a function that does nothing on the simulated device: it must say so, not succeed.
#include <cublas_v2.h>
#include <cudnn.h>

#include "check.h"

extern "C" cudnnStatus_t cudnnRNNForward(cudnnHandle_t);

int main() {
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  cudaStream_t stream = nullptr;
  CHECK(cublasSetStream(handle, cudaStreamLegacy) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasGetStream(handle, &stream) == CUBLAS_STATUS_SUCCESS && stream == cudaStreamLegacy);
  cublasMath_t mode = CUBLAS_DEFAULT_MATH;
  CHECK(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasGetMathMode(handle, &mode) == CUBLAS_STATUS_SUCCESS && mode == CUBLAS_TF32_TENSOR_OP_MATH);
  for (int i = 0; i < 3; ++i) CHECK(cudnnRNNForward(nullptr) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}
