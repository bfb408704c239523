// Streams and events.
#include <cuda_runtime_api.h>

#include <unistd.h>

#include "check.h"

int main() {
  int least = 9;
  int greatest = 9;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess && least == 0 && greatest < 0);
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100) == cudaSuccess);
  int priority = 0;
  unsigned int flags = 0;
  CHECK(cudaStreamGetPriority(stream, &priority) == cudaSuccess && priority == greatest);
  CHECK(cudaStreamGetFlags(stream, &flags) == cudaSuccess && flags == cudaStreamNonBlocking);
  CHECK(cudaStreamQuery(stream) == cudaSuccess && cudaStreamSynchronize(nullptr) == cudaSuccess);

  // Host functions run in order, when they are waited for at the latest.
  static int order = 0;
  const auto append = [](void* digit) { order = order * 10 + *static_cast<int*>(digit); };
  int one = 1;
  int two = 2;
  CHECK(cudaLaunchHostFunc(stream, append, &one) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(stream, append, &two) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && order == 12);

  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  cudaEvent_t untimed = nullptr;
  float ms = -1;
  CHECK(cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorInvalidResourceHandle);  // never recorded
  CHECK(cudaEventRecord(start, stream) == cudaSuccess);
  usleep(20000);
  CHECK(cudaEventRecord(end, stream) == cudaSuccess && cudaEventQuery(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaSuccess && ms >= 20 && ms < 20000);
  for (int i = 0; i < 10000; ++i) {
    CHECK(cudaEventRecord(start, stream) == cudaSuccess && cudaEventRecord(end, stream) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&ms, start, end) == cudaSuccess && ms >= 0);
  }
  CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming) == cudaSuccess);
  CHECK(cudaEventRecord(untimed, stream) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, untimed) == cudaErrorInvalidResourceHandle);
  // Each device has a clock of its own.
  cudaEvent_t elsewhere = nullptr;
  CHECK(cudaSetDevice(1) == cudaSuccess && cudaEventCreate(&elsewhere) == cudaSuccess);
  CHECK(cudaEventRecord(elsewhere, nullptr) == cudaSuccess && cudaEventSynchronize(elsewhere) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, elsewhere) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(elsewhere) == cudaSuccess && cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(nullptr, end, 0) == cudaSuccess);
  cudaGetLastError();

  // An event belongs to the device that it was made on.
  CHECK(cudaSetDevice(1) == cudaSuccess);
  cudaStream_t other = nullptr;
  CHECK(cudaStreamCreate(&other) == cudaSuccess);
  CHECK(cudaEventRecord(start, other) == cudaErrorInvalidResourceHandle);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  int can = 0;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess && can == 1);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
  cudaGetLastError();

  CHECK(cudaEventDestroy(start) == cudaSuccess && cudaEventDestroy(end) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaStreamDestroy(nullptr) == cudaErrorInvalidResourceHandle);
}
