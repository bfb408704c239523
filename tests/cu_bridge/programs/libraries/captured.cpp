// Calls of CUDA's libraries on streams that are captured, and on streams that wait for something.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <cufft.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "../check.h"

namespace {

template <class T>
T* device(const std::vector<T>& values) {
  T* pointer = nullptr;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&pointer), values.size() * sizeof(T)) == cudaSuccess);
  CHECK(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  return pointer;
}
template <class T>
std::vector<T> host(const T* pointer, size_t count) {
  std::vector<T> values(count);
  CHECK(cudaMemcpy(values.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
  return values;
}
template <class T>
void set(T* pointer, const std::vector<T>& values) {
  CHECK(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
}

cudaStream_t stream = nullptr;

void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  CHECK(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}
cudaGraphExec_t end(size_t nodes) {
  cudaGraph_t graph = nullptr;
  size_t count = 0;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess && count == nodes);
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  return exec;
}
void launch(cudaGraphExec_t exec) {
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess);
}
// The call has ended the capture, and nothing of it lasts.
void expectEnded() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && graph == nullptr);
  cudaGetLastError();
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

cublasHandle_t makeBlas() {
  cublasHandle_t blas = nullptr;
  CHECK(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS && cublasSetStream(blas, stream) == CUBLAS_STATUS_SUCCESS);
  return blas;
}

void aGraphKeepsScalarsAndHandleOfTheCall() {
  float* const a = device<float>({1, 2, 3, 4});
  float* const b = device<float>({5, 6, 7, 8});
  float* const c = device<float>({0, 0, 0, 0});
  cublasHandle_t blas = makeBlas();
  float alpha = 2, beta = 1;
  begin();
  CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &alpha, a, 2, b, 2, &beta, c, 2) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, -1, 2, 2, &alpha, a, 2, b, 2, &beta, c, 2) ==
        CUBLAS_STATUS_INVALID_VALUE);
  const cudaGraphExec_t exec = end(1);
  CHECK(host(c, 4) == (std::vector<float>{0, 0, 0, 0}));  // captured work has not happened
  alpha = beta = NAN;
  CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
  launch(exec);
  launch(exec);
  CHECK(host(c, 4) == (std::vector<float>{92, 136, 124, 184}));
  set(a, {1, 0, 0, 1});
  set(c, {0, 0, 0, 0});
  launch(exec);
  CHECK(host(c, 4) == (std::vector<float>{10, 12, 14, 16}));
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

void scalarsOnTheDeviceAreReadAtEachLaunch() {
  float* const alpha = device<float>({0});
  float* const x = device<float>({1, 2, 3});
  float* const result = device<float>({-1});
  cublasHandle_t blas = makeBlas();
  CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
  begin();
  CHECK(cublasSscal(blas, 3, alpha, x, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSdot(blas, 3, x, 1, x, 1, result) == CUBLAS_STATUS_SUCCESS);
  const cudaGraphExec_t exec = end(2);
  CHECK(host(x, 3) == (std::vector<float>{1, 2, 3}) && host(result, 1)[0] == -1);
  set(alpha, {2});
  launch(exec);
  CHECK(host(x, 3) == (std::vector<float>{2, 4, 6}) && host(result, 1)[0] == 56);
  set(alpha, {0.5F});
  launch(exec);
  CHECK(host(x, 3) == (std::vector<float>{1, 2, 3}) && host(result, 1)[0] == 14);
  CHECK(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
}

void resultsForTheHostEndTheCapture() {
  float* const x = device<float>({1, 2, 3});
  float* pinned = nullptr;
  CHECK(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4) == cudaSuccess);
  cublasHandle_t blas = makeBlas();
  float result = -1;
  for (float* const place : {&result, pinned}) {
    *place = -1;
    begin();
    CHECK(cublasSnrm2(blas, 3, x, 1, place) == CUBLAS_STATUS_EXECUTION_FAILED && *place == -1);
    CHECK(cudaPeekAtLastError() == cudaErrorStreamCaptureUnsupported);
    expectEnded();
  }
  CHECK(cublasSnrm2(blas, 3, x, 1, &result) == CUBLAS_STATUS_SUCCESS && std::fabs(result - std::sqrt(14.F)) < 1e-6F);
  CHECK(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
}

void handlesCannotBeMadeInACaptureThatForbidsAllocations() {
  cublasHandle_t blas = nullptr;
  begin();
  CHECK(cublasCreate(&blas) == CUBLAS_STATUS_ALLOC_FAILED && blas == nullptr);
  expectEnded();
  cufftHandle plan = 0;
  begin();
  CHECK(cufftPlan1d(&plan, 8, CUFFT_C2C, 1) == CUFFT_ALLOC_FAILED);
  expectEnded();
  begin(cudaStreamCaptureModeRelaxed);
  CHECK(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS && cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaGraphExecDestroy(end(0)) == cudaSuccess);
}

// The addresses of a batch may be written by the same graph.
void addressesOfABatchAreReadAtTheLaunch() {
  float* const a = device<float>({3});
  float* const b = device<float>({5});
  float* const c = device<float>({0});
  std::vector<void*> addresses{a, b, c};
  void** const place = device<void*>({nullptr, nullptr, nullptr});
  cublasHandle_t blas = makeBlas();
  const float one = 1, zero = 0;
  begin();
  CHECK(cudaMemcpyAsync(place, addresses.data(), 24, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  CHECK(cublasSgemmBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, reinterpret_cast<float**>(place), 1,
                           reinterpret_cast<float**>(place + 1), 1, &zero, reinterpret_cast<float**>(place + 2), 1,
                           1) == CUBLAS_STATUS_SUCCESS);
  const cudaGraphExec_t exec = end(2);
  launch(exec);
  CHECK(host(c, 1)[0] == 15);
  // An array on the host is read at the call, and a launch could not.
  begin();
  CHECK(cublasSgemmBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, reinterpret_cast<float**>(addresses.data()),
                           1, reinterpret_cast<float**>(place + 1), 1, &zero, reinterpret_cast<float**>(place + 2), 1,
                           1) == CUBLAS_STATUS_EXECUTION_FAILED);
  expectEnded();
  CHECK(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
}

void descriptorsMayChangeAndGo() {
  float* const x = device<float>({-1, 2, -3, 4});
  float* const y = device<float>({0, 0, 0, 0});
  cudnnHandle_t dnn = nullptr;
  CHECK(cudnnCreate(&dnn) == CUDNN_STATUS_SUCCESS && cudnnSetStream(dnn, stream) == CUDNN_STATUS_SUCCESS);
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnActivationDescriptor_t relu = nullptr;
  CHECK(cudnnCreateTensorDescriptor(&tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnCreateActivationDescriptor(&relu) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0) == CUDNN_STATUS_SUCCESS);
  float one = 1, zero = 0;
  begin();
  CHECK(cudnnActivationForward(dnn, relu, &one, tensor, x, &zero, tensor, y) == CUDNN_STATUS_SUCCESS);
  const cudaGraphExec_t exec = end(1);
  one = zero = 7;
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnDestroyActivationDescriptor(relu) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnDestroyTensorDescriptor(tensor) == CUDNN_STATUS_SUCCESS && cudnnDestroy(dnn) == CUDNN_STATUS_SUCCESS);
  launch(exec);
  CHECK(host(y, 4) == (std::vector<float>{0, 2, 0, 4}));
}

void plansAndGeneratorsGoOnInALaunch() {
  float2* const signal = device<float2>({{1, 0}, {0, 0}, {0, 0}, {0, 0}});
  cufftHandle plan = 0;
  CHECK(cufftPlan1d(&plan, 4, CUFFT_C2C, 1) == CUFFT_SUCCESS && cufftSetStream(plan, stream) == CUFFT_SUCCESS);
  float* const numbers = device<float>(std::vector<float>(6, -1));
  curandGenerator_t direct = nullptr, captured = nullptr;
  for (curandGenerator_t* const each : {&direct, &captured}) {
    CHECK(curandCreateGenerator(each, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS);
    CHECK(curandSetPseudoRandomGeneratorSeed(*each, 5) == CURAND_STATUS_SUCCESS);
  }
  CHECK(curandGenerateUniform(direct, numbers, 6) == CURAND_STATUS_SUCCESS);
  const std::vector<float> first = host(numbers, 6);
  CHECK(curandGenerateUniform(direct, numbers, 6) == CURAND_STATUS_SUCCESS);
  const std::vector<float> second = host(numbers, 6);
  CHECK(curandSetStream(captured, stream) == CURAND_STATUS_SUCCESS);
  begin();
  CHECK(cufftExecC2C(plan, signal, signal, CUFFT_FORWARD) == CUFFT_SUCCESS);
  CHECK(curandGenerateUniform(captured, numbers, 6) == CURAND_STATUS_SUCCESS);
  const cudaGraphExec_t exec = end(2);
  CHECK(cufftDestroy(plan) == CUFFT_SUCCESS && curandDestroyGenerator(captured) == CURAND_STATUS_SUCCESS);
  CHECK(host(numbers, 6) == second && host(signal, 4)[1].x == 0);
  launch(exec);
  CHECK(host(numbers, 6) == first && host(signal, 4)[1].x == 1);
  launch(exec);
  CHECK(host(numbers, 6) == second && host(signal, 4)[0].x == 4);
  CHECK(curandDestroyGenerator(direct) == CURAND_STATUS_SUCCESS);
}

std::atomic<bool> open{false};
void waitForTheGate(void*) {
  while (!open) usleep(100);
}

// Where the stream waits, calls are queued: the program goes on, as it does with a device.
void callsBehindPendingWorkAreQueued() {
  float* const a = device<float>({4, 2, 2, 3});
  float* const work = device<float>({0});
  int* const info = device<int>({-1});
  float* const result = device<float>({-1});
  cusolverDnHandle_t solver = nullptr;
  CHECK(cusolverDnCreate(&solver) == CUSOLVER_STATUS_SUCCESS);
  CHECK(cusolverDnSetStream(solver, stream) == CUSOLVER_STATUS_SUCCESS);
  cublasHandle_t blas = makeBlas();
  CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaLaunchHostFunc(stream, waitForTheGate, nullptr) == cudaSuccess);
  CHECK(cusolverDnSpotrf(solver, CUBLAS_FILL_MODE_LOWER, 2, a, 2, work, 1, info) == CUSOLVER_STATUS_SUCCESS);
  CHECK(cublasSasum(blas, 2, a, 1, result) == CUBLAS_STATUS_SUCCESS);
  CHECK(cusolverDnDestroy(solver) == CUSOLVER_STATUS_SUCCESS && cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  open = true;
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(host(info, 1)[0] == 0 && host(a, 2) == (std::vector<float>{2, 1}) && host(result, 1)[0] == 3);
}

void whatOnlyTheDataTellIsAnErrorOfTheLaunch() {
  int* const rows = device<int>({0, 9});  // of a matrix of two rows
  int* const offsets = device<int>({0, 0, 0});
  cusparseHandle_t sparse = nullptr;
  CHECK(cusparseCreate(&sparse) == CUSPARSE_STATUS_SUCCESS);
  CHECK(cusparseSetStream(sparse, stream) == CUSPARSE_STATUS_SUCCESS);
  begin();
  CHECK(cusparseXcoo2csr(sparse, rows, 2, 2, offsets, CUSPARSE_INDEX_BASE_ZERO) == CUSPARSE_STATUS_SUCCESS);
  const cudaGraphExec_t exec = end(1);
  CHECK(cudaGraphLaunch(exec, stream) == cudaErrorLaunchFailure);
  cudaGetLastError();
  set(rows, {0, 1});
  launch(exec);
  CHECK(host(offsets, 3) == (std::vector<int>{0, 1, 2}));
  CHECK(cusparseDestroy(sparse) == CUSPARSE_STATUS_SUCCESS);
}

}  // namespace

int main() {
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  aGraphKeepsScalarsAndHandleOfTheCall();
  scalarsOnTheDeviceAreReadAtEachLaunch();
  resultsForTheHostEndTheCapture();
  handlesCannotBeMadeInACaptureThatForbidsAllocations();
  addressesOfABatchAreReadAtTheLaunch();
  descriptorsMayChangeAndGo();
  plansAndGeneratorsGoOnInALaunch();
  callsBehindPendingWorkAreQueued();
  whatOnlyTheDataTellIsAnErrorOfTheLaunch();
  return 0;
}
