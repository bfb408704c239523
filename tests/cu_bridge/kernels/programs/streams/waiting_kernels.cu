// Kernels that go round a loop until the host, or a kernel that is launched after them, has stored something. Their
// launch returns, the stream is pending, other streams go on.
#include <cuda_runtime.h>
#include <cuda/atomic>

#include "../../check.h"

#define OK(call) CHECK((call) == cudaSuccess)

__device__ void hold(volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void volatileFlag(int* flag, int* to) {
  hold(flag);
  to[threadIdx.x] = *flag + threadIdx.x;
}

__global__ void loadedFlag(int* flag, int* to) {
  int seen = 0;
  do {
    asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (seen == 0);
  to[threadIdx.x] = seen + threadIdx.x;
}

__global__ void atomicFlag(int* flag, int* to) {
  cuda::atomic_ref<int, cuda::thread_scope_system> shared(*flag);
  while (shared.load(cuda::memory_order_acquire) == 0) __nanosleep(100);
  to[threadIdx.x] = *flag + threadIdx.x;
}

__global__ void askedFlag(int* flag, int* to) {
  while (atomicAdd_system(flag, 0) == 0) {
  }
  to[threadIdx.x] = *flag + threadIdx.x;
}

__global__ void store(int* flag, int value) { atomicExch(flag, value); }
__global__ void doubled(int* values) { values[threadIdx.x] *= 2; }

using Kernel = void (*)(int*, int*);

struct Memory {
  int *flag = nullptr, *flagOfDevice = nullptr, *values = nullptr;
  Memory() {
    OK(cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer(&flagOfDevice, flag, 0));
    OK(cudaMallocManaged(&values, 64 * sizeof(int)));
    *flag = 0;
  }
  ~Memory() {
    OK(cudaFree(values));
    OK(cudaFreeHost(flag));
  }
  bool hold(int first, int factor) const {
    for (int i = 0; i < 64; ++i) {
      if (values[i] != (first + i) * factor) return false;
    }
    return true;
  }
};

void releasedByTheHost(Kernel kernel) {
  const Memory memory;
  cudaStream_t stream;
  cudaEvent_t before, behind;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaEventCreate(&before));
  OK(cudaEventCreate(&behind));
  for (int round = 0; round < 3; ++round) {
    *memory.flag = 0;
    OK(cudaEventRecord(before, stream));
    kernel<<<1, 64, 0, stream>>>(memory.flagOfDevice, memory.values);
    doubled<<<1, 64, 0, stream>>>(memory.values);
    OK(cudaEventRecord(behind, stream));
    OK(cudaGetLastError());
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    OK(cudaEventSynchronize(before));
    CHECK(cudaEventQuery(behind) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == cudaErrorNotReady);
    __atomic_store_n(memory.flag, 5 + round, __ATOMIC_RELEASE);
    OK(cudaStreamSynchronize(stream));
    OK(cudaEventQuery(behind));
    CHECK(memory.hold(5 + round, 2));
  }
  OK(cudaEventDestroy(before));
  OK(cudaEventDestroy(behind));
  OK(cudaStreamDestroy(stream));
}

void releasedByAnotherKernel(Kernel kernel) {
  const Memory memory;
  int* flag;
  OK(cudaMalloc(&flag, sizeof(int)));
  OK(cudaMemset(flag, 0, sizeof(int)));
  cudaStream_t first, second;
  OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  kernel<<<1, 64, 0, first>>>(flag, memory.values);
  store<<<1, 1, 0, second>>>(flag, 9);
  OK(cudaDeviceSynchronize());
  CHECK(memory.hold(9, 1));
  OK(cudaStreamDestroy(first));
  OK(cudaStreamDestroy(second));
  OK(cudaFree(flag));
}

void inAGraph(Kernel kernel) {
  const Memory memory;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t launched;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  kernel<<<1, 64, 0, stream>>>(memory.flagOfDevice, memory.values);
  doubled<<<1, 64, 0, stream>>>(memory.values);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&launched, graph, 0));
  for (int round = 0; round < 2; ++round) {
    *memory.flag = 0;
    OK(cudaGraphLaunch(launched, stream));
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == cudaErrorNotReady);
    __atomic_store_n(memory.flag, 3 + round, __ATOMIC_RELEASE);
    OK(cudaStreamSynchronize(stream));
    CHECK(memory.hold(3 + round, 2));
  }
  OK(cudaGraphExecDestroy(launched));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

// A launch counts as the record of the events that its graph records: what comes after them waits.
void eventsOfGraphs(Kernel kernel) {
  const Memory memory;
  cudaStream_t streams[2];
  cudaGraph_t graphs[2];
  cudaGraphExec_t launched[2];
  cudaEvent_t released, over;
  OK(cudaEventCreate(&released));
  OK(cudaEventCreate(&over));
  for (int i = 0; i < 2; ++i) {
    cudaStream_t& stream = streams[i];
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    if (i == 0) {
      kernel<<<1, 64, 0, stream>>>(memory.flagOfDevice, memory.values);
      OK(cudaEventRecordWithFlags(released, stream, cudaEventRecordExternal));
    } else {
      OK(cudaStreamWaitEvent(stream, released, cudaEventWaitExternal));
      doubled<<<1, 64, 0, stream>>>(memory.values);
      OK(cudaEventRecordWithFlags(over, stream, cudaEventRecordExternal));
    }
    OK(cudaStreamEndCapture(stream, &graphs[i]));
    OK(cudaGraphInstantiate(&launched[i], graphs[i], 0));
  }
  OK(cudaEventQuery(released));
  for (int round = 0; round < 3; ++round) {
    *memory.flag = 0;
    OK(cudaGraphLaunch(launched[0], streams[0]));
    CHECK(cudaEventQuery(released) == cudaErrorNotReady);
    OK(cudaGraphLaunch(launched[1], streams[1]));
    CHECK(cudaEventQuery(over) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == cudaErrorNotReady);
    __atomic_store_n(memory.flag, 7 + round, __ATOMIC_RELEASE);
    OK(cudaEventSynchronize(over));
    CHECK(memory.hold(7 + round, 2));
    OK(cudaEventQuery(released));
  }
  for (int i = 0; i < 2; ++i) {
    OK(cudaStreamSynchronize(streams[i]));
    OK(cudaGraphExecDestroy(launched[i]));
    OK(cudaGraphDestroy(graphs[i]));
    OK(cudaStreamDestroy(streams[i]));
  }
  OK(cudaEventDestroy(released));
  OK(cudaEventDestroy(over));
}

int main() {
  for (const Kernel kernel : {volatileFlag, loadedFlag, atomicFlag, askedFlag}) {
    releasedByTheHost(kernel);
    releasedByAnotherKernel(kernel);
    inAGraph(kernel);
    eventsOfGraphs(kernel);
  }
  return summary();
}
