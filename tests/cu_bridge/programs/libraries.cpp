// A program as users write it: the usual headers, the usual names, memory of the device.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <cufft.h>
#include <cufftXt.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>

#include <cmath>
#include <vector>

#include "check.h"

template <class T>
T* device(const std::vector<T>& values) {
  T* pointer = nullptr;
  CHECK(cudaMalloc(&pointer, values.size() * sizeof(T)) == cudaSuccess);
  CHECK(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  return pointer;
}
template <class T>
std::vector<T> host(const T* pointer, size_t count) {
  std::vector<T> values(count);
  CHECK(cudaMemcpy(values.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
  return values;
}

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  float* const a = device<float>({1, 2, 3, 4});
  float* const b = device<float>({5, 6, 7, 8});
  float* const c = device<float>({0, 0, 0, 0});
  const float one = 1, zero = 0;

  cublasHandle_t blas;
  CHECK(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetStream(blas, stream) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, b, 2, &zero, c, 2) == CUBLAS_STATUS_SUCCESS);
  CHECK(host(c, 4) == (std::vector<float>{23, 34, 31, 46}));
  float norm = 0;
  CHECK(cublasSnrm2_64(blas, 4, a, 1, &norm) == CUBLAS_STATUS_SUCCESS && std::fabs(norm - std::sqrt(30.F)) < 1e-6F);
  CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &one, a, CUDA_R_32F, 2, b, CUDA_R_32F, 2, &zero, c,
                     CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  CHECK(host(c, 4) == (std::vector<float>{17, 39, 23, 53}));
  // As before CUDA 11, with a data type for the compute type.
  CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, CUDA_R_32F, 2, b, CUDA_R_32F, 2, &zero, c,
                     CUDA_R_32F, 2, CUDA_R_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  CHECK(host(c, 4) == (std::vector<float>{23, 34, 31, 46}));
  CHECK(cublasGemmStridedBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 2, &one, a, CUDA_R_32F, 2, 0, b, CUDA_R_32F, 2,
                                   2, &zero, c, CUDA_R_32F, 2, 2, 2, CUDA_R_32F,
                                   CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  CHECK(host(c, 4) == (std::vector<float>{23, 34, 31, 46}));
  cublasComputeType_t compute = CUBLAS_COMPUTE_16F;
  CHECK(cublasSetMathMode(blas, CUBLAS_PEDANTIC_MATH) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasMigrateComputeType(blas, CUDA_C_64F, &compute) == CUBLAS_STATUS_SUCCESS &&
        compute == CUBLAS_COMPUTE_64F_PEDANTIC);
  CHECK(cublasMigrateComputeType(blas, CUDA_R_8I, &compute) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);

  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t square;
  CHECK(cublasLtCreate(&lt) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, 2, 2, 2) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasLtMatmul(lt, product, &one, a, square, b, square, &zero, c, square, c, square, nullptr, nullptr, 0,
                       stream) == CUBLAS_STATUS_SUCCESS);
  CHECK(host(c, 4) == (std::vector<float>{23, 34, 31, 46}));

  cufftHandle plan;
  auto* const line = device<cufftComplex>({{1, 0}, {2, 0}, {3, 0}, {4, 0}});
  CHECK(cufftPlan1d(&plan, 4, CUFFT_C2C, 1) == CUFFT_SUCCESS && cufftSetStream(plan, stream) == CUFFT_SUCCESS);
  CHECK(cufftExecC2C(plan, line, line, CUFFT_FORWARD) == CUFFT_SUCCESS);
  const auto spectrum = host(line, 4);
  CHECK(spectrum[0].x == 10 && spectrum[1].x == -2 && std::fabs(spectrum[1].y - 2) < 1e-6F && spectrum[2].x == -2);

  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS);
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 0) == CURAND_STATUS_SUCCESS);
  auto* const words = device<unsigned>({0, 0});
  CHECK(curandGenerate(generator, words, 2) == CURAND_STATUS_SUCCESS);
  CHECK(host(words, 2) == (std::vector<unsigned>{0x6627e8d5U, 0xe169c58dU}));

  cusolverDnHandle_t solver;
  CHECK(cusolverDnCreate(&solver) == CUSOLVER_STATUS_SUCCESS);
  auto* const positive = device<double>({4, 2, 2, 5});
  int* const info = device<int>({-1});
  int size = 0;
  CHECK(cusolverDnDpotrf_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, 2, positive, 2, &size) == CUSOLVER_STATUS_SUCCESS);
  auto* const workspace = device<double>(std::vector<double>(static_cast<size_t>(size)));
  CHECK(cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_LOWER, 2, positive, 2, workspace, size, info) ==
        CUSOLVER_STATUS_SUCCESS);
  CHECK(host(positive, 4) == (std::vector<double>{2, 1, 2, 2}) && host(info, 1)[0] == 0);

  cusparseHandle_t sparse;
  cusparseSpMatDescr_t matrix;
  cusparseDnVecDescr_t x, y;
  CHECK(cusparseCreate(&sparse) == CUSPARSE_STATUS_SUCCESS);
  CHECK(cusparseCreateCsr(&matrix, 2, 2, 2, device<int>({0, 1, 2}), device<int>({1, 0}), device<float>({3, 4}),
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                          CUDA_R_32F) == CUSPARSE_STATUS_SUCCESS);
  CHECK(cusparseCreateDnVec(&x, 2, a, CUDA_R_32F) == CUSPARSE_STATUS_SUCCESS);
  CHECK(cusparseCreateDnVec(&y, 2, c, CUDA_R_32F) == CUSPARSE_STATUS_SUCCESS);
  CHECK(cusparseSpMV(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x, &zero, y, CUDA_R_32F,
                     CUSPARSE_SPMV_ALG_DEFAULT, workspace) == CUSPARSE_STATUS_SUCCESS);
  CHECK(host(c, 2) == (std::vector<float>{6, 4}));

  cudnnHandle_t dnn;
  cudnnTensorDescriptor_t tensor;
  cudnnActivationDescriptor_t relu;
  CHECK(cudnnCreate(&dnn) == CUDNN_STATUS_SUCCESS && cudnnCreateTensorDescriptor(&tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 1, 1) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnCreateActivationDescriptor(&relu) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0) == CUDNN_STATUS_SUCCESS);
  float* const mixed = device<float>({-1, 2, -3, 4});
  CHECK(cudnnActivationForward(dnn, relu, &one, tensor, mixed, &zero, tensor, mixed) == CUDNN_STATUS_SUCCESS);
  CHECK(host(mixed, 4) == (std::vector<float>{0, 2, 0, 4}));
  return 0;
}
