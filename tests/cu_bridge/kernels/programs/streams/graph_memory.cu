// Memory that a captured graph takes and gives back: its address, its life, launches that find it taken.
#include <cuda_runtime.h>

#include <cstdio>

namespace {

int failures = 0;

void check(bool holds, int line, const char* text) {
  if (holds) return;
  ++failures;
  std::printf("line %d: does not hold: %s\n", line, text);
}
#define CHECK(condition) check((condition), __LINE__, #condition)
#define OK(call) check((call) == cudaSuccess, __LINE__, #call)

__global__ void fill(int* to, int value) { *to = value; }
__global__ void carry(int* to, const int* from) { *to = *from + 1; }

// A graph that takes memory, uses it for `result`, and gives it back if `frees`.
cudaGraph_t capture(cudaStream_t stream, int* result, bool frees, int** taken) {
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync(reinterpret_cast<void**>(taken), 1 << 20, stream));
  fill<<<1, 1, 0, stream>>>(*taken, 41);
  carry<<<1, 1, 0, stream>>>(result, *taken);
  if (frees) OK(cudaFreeAsync(*taken, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

int valueOf(const int* from) {
  int value = -1;
  OK(cudaMemcpy(&value, from, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

void freesItself(cudaStream_t stream, int* result) {
  int* taken = nullptr;
  cudaGraph_t graph = capture(stream, result, true, &taken);
  CHECK(taken != nullptr);
  size_t count = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 4);
  cudaGraphNode_t nodes[4];
  OK(cudaGraphGetNodes(graph, nodes, &count));
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  OK(cudaGraphNodeGetType(nodes[0], &type));
  CHECK(type == cudaGraphNodeTypeMemAlloc);
  OK(cudaGraphNodeGetType(nodes[3], &type));
  CHECK(type == cudaGraphNodeTypeMemFree);
  cudaGraph_t clone = nullptr;
  CHECK(cudaGraphClone(&clone, graph) == cudaErrorNotSupported);
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  for (int launch = 0; launch < 3; ++launch) {
    OK(cudaMemset(result, 0, sizeof(int)));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(valueOf(result) == 42);
  }
  CHECK(cudaFree(taken) == cudaErrorInvalidValue);  // the graph's, and free
  OK(cudaGraphExecDestroy(exec));
  cudaPointerAttributes attributes{};
  OK(cudaPointerGetAttributes(&attributes, taken));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);  // gone with the last that could launch it
}

void leavesIt(cudaStream_t stream, int* result) {
  int* taken = nullptr;
  cudaGraph_t graph = capture(stream, result, false, &taken);
  cudaGraphExec_t exec = nullptr, again = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphInstantiate(&again, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  OK(cudaGraphLaunch(exec, stream));
  CHECK(valueOf(taken) == 41);
  CHECK(cudaGraphLaunch(exec, stream) == cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaFreeAsync(taken, stream));
  CHECK(cudaFreeAsync(taken, stream) == cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaGraphLaunch(again, stream));
  OK(cudaGraphLaunch(again, stream));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphExecDestroy(again));
  OK(cudaGraphDestroy(graph));
  CHECK(valueOf(taken) == 41);  // the program's until it frees it
  OK(cudaFree(taken));
  CHECK(cudaFree(taken) == cudaErrorInvalidValue);
  cudaGetLastError();
}

// The same graph, built node by node.
void isBuilt(cudaStream_t stream, int* result) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t takes = nullptr, fills = nullptr, carries = nullptr, frees = nullptr;
  OK(cudaGraphCreate(&graph, 0));
  cudaMemAccessDesc reader = {};
  reader.location.type = cudaMemLocationTypeDevice;
  reader.flags = cudaMemAccessFlagsProtReadWrite;
  cudaMemAllocNodeParams wanted = {};
  wanted.poolProps.allocType = cudaMemAllocationTypePinned;
  wanted.poolProps.location.type = cudaMemLocationTypeDevice;
  wanted.accessDescs = &reader;
  wanted.accessDescCount = 1;
  CHECK(cudaGraphAddMemAllocNode(&takes, graph, nullptr, 0, &wanted) == cudaErrorInvalidValue);  // no bytes
  wanted.bytesize = 1 << 20;
  wanted.poolProps.location.id = 99;
  CHECK(cudaGraphAddMemAllocNode(&takes, graph, nullptr, 0, &wanted) == cudaErrorInvalidDevice);
  cudaGetLastError();
  wanted.poolProps.location.id = 0;
  OK(cudaGraphAddMemAllocNode(&takes, graph, nullptr, 0, &wanted));
  CHECK(wanted.dptr != nullptr);
  int *taken = static_cast<int*>(wanted.dptr), value = 40;
  void* arguments[][2] = {{&taken, &value}, {&result, &taken}};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(fill);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments[0];
  OK(cudaGraphAddKernelNode(&fills, graph, &takes, 1, &kernel));
  kernel.func = reinterpret_cast<void*>(carry);
  kernel.kernelParams = arguments[1];
  OK(cudaGraphAddKernelNode(&carries, graph, &fills, 1, &kernel));
  OK(cudaGraphAddMemFreeNode(&frees, graph, &carries, 1, taken));

  cudaMemAllocNodeParams found = {};
  void* freed = nullptr;
  OK(cudaGraphMemAllocNodeGetParams(takes, &found));
  OK(cudaGraphMemFreeNodeGetParams(frees, &freed));
  CHECK(found.dptr == taken && found.bytesize == 1 << 20 && freed == taken);
  CHECK(cudaGraphMemAllocNodeGetParams(frees, &found) == cudaErrorInvalidValue);
  cudaGetLastError();
  cudaGraphNodeType type = cudaGraphNodeTypeKernel;
  OK(cudaGraphNodeGetType(takes, &type));
  CHECK(type == cudaGraphNodeTypeMemAlloc);

  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    OK(cudaMemset(result, 0, sizeof *result));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(valueOf(result) == 41);
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaDeviceGraphMemTrim(0));
  CHECK(cudaDeviceGraphMemTrim(99) == cudaErrorInvalidDevice);
  cudaGetLastError();
}

// A capture that is given up leaves nothing behind: all of them together would be more than the device has.
void givesUp(cudaStream_t stream) {
  for (int round = 0; round < 300; ++round) {
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    void* taken = nullptr;
    OK(cudaMallocAsync(&taken, 256 << 20, stream));
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    cudaGetLastError();
  }
}

unsigned long long amount(cudaGraphMemAttributeType attribute) {
  unsigned long long value = 99;
  OK(cudaDeviceGetGraphMemAttribute(0, attribute, &value));
  return value;
}

// How much memory graphs have taken, and the most that it was.
void isCounted(cudaStream_t stream) {
  constexpr size_t bytes = 1 << 20;
  CHECK(amount(cudaGraphMemAttrUsedMemCurrent) == 0 && amount(cudaGraphMemAttrReservedMemCurrent) == 0);
  unsigned long long zero = 0, one = 1;
  OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
  CHECK(amount(cudaGraphMemAttrUsedMemHigh) == 0 && amount(cudaGraphMemAttrReservedMemHigh) == 0);
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  void *first = nullptr, *second = nullptr;
  OK(cudaMallocAsync(&first, bytes, stream));
  OK(cudaMallocAsync(&second, 2 * bytes, stream));
  OK(cudaFreeAsync(second, stream));
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture(stream, &graph));
  CHECK(amount(cudaGraphMemAttrUsedMemCurrent) == 0 && amount(cudaGraphMemAttrReservedMemCurrent) == 3 * bytes);
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(amount(cudaGraphMemAttrUsedMemCurrent) == bytes && amount(cudaGraphMemAttrUsedMemHigh) == 3 * bytes);
  OK(cudaFree(first));
  CHECK(amount(cudaGraphMemAttrUsedMemCurrent) == 0);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaDeviceGraphMemTrim(0));
  CHECK(amount(cudaGraphMemAttrReservedMemCurrent) == 0 && amount(cudaGraphMemAttrReservedMemHigh) == 3 * bytes);
  OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
  CHECK(amount(cudaGraphMemAttrReservedMemHigh) == 0);
  CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &one) == cudaErrorInvalidValue);
  CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero) == cudaErrorInvalidValue);
  CHECK(cudaDeviceGetGraphMemAttribute(99, cudaGraphMemAttrUsedMemHigh, &zero) == cudaErrorInvalidDevice);
  cudaGetLastError();
}

// A graph frees what a graph allocates. Other memory stays, and the capture goes on.
void leavesOtherMemory(cudaStream_t stream, int* other) {
  OK(cudaMemset(other, 1, sizeof(int)));
  cudaGraph_t built = nullptr;
  OK(cudaGraphCreate(&built, 0));
  cudaGraphNode_t node = nullptr;
  CHECK(cudaGraphAddMemFreeNode(&node, built, nullptr, 0, other) == cudaErrorInvalidValue);
  OK(cudaGraphDestroy(built));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaFreeAsync(other, stream) == cudaErrorInvalidValue);
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphDestroy(graph));
  int value = 0;
  OK(cudaMemcpy(&value, other, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(value == 0x01010101);
  cudaGetLastError();
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr;
  OK(cudaStreamCreate(&stream));
  int* result = nullptr;
  OK(cudaMalloc(&result, sizeof(int)));
  freesItself(stream, result);
  leavesIt(stream, result);
  isBuilt(stream, result);
  givesUp(stream);
  isCounted(stream);
  leavesOtherMemory(stream, result);
  std::puts(failures == 0 ? "ok" : "failed");
  return failures;
}
