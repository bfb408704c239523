// Attributes of a graph's kernel nodes, by both interfaces: kept, copied with the graph, and a grid whose blocks meet.
#include <cooperative_groups.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "../../driver_entry.h"

// Each block adds what the other ones have stored before they met.
__global__ void meet(int* values, int* sums) {
  values[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
  cooperative_groups::this_grid().sync();
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += values[i];
  sums[blockIdx.x] = sum;
}

static void values_are_kept(cudaGraph_t graph, cudaGraphNode_t node, cudaGraphNode_t other) {
  cudaKernelNodeAttrValue value = {};
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributePriority, &value) == cudaSuccess);
  CHECK(value.priority == 0);
  value.priority = -3;
  CHECK(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributePriority, &value) == cudaSuccess);
  CUkernelNodeAttrValue seen = {};
  CHECK(DRIVER(cuGraphKernelNodeGetAttribute)(node, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &seen) == CUDA_SUCCESS);
  CHECK(seen.priority == -3);
  seen.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  CHECK(DRIVER(cuGraphKernelNodeSetAttribute)(node, CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN, &seen) == CUDA_SUCCESS);

  cudaGraph_t clone;
  cudaGraphNode_t copy;
  CHECK(cudaGraphClone(&clone, graph) == cudaSuccess);
  CHECK(cudaGraphNodeFindInClone(&copy, node, clone) == cudaSuccess);
  CHECK(cudaGraphKernelNodeGetAttribute(copy, cudaKernelNodeAttributeMemSyncDomain, &value) == cudaSuccess);
  CHECK(value.memSyncDomain == cudaLaunchMemSyncDomainRemote);
  CHECK(cudaGraphDestroy(clone) == cudaSuccess);

  CHECK(cudaGraphKernelNodeCopyAttributes(other, node) == cudaSuccess);
  CHECK(cudaGraphKernelNodeGetAttribute(other, cudaKernelNodeAttributePriority, &value) == cudaSuccess);
  CHECK(value.priority == -3);
}

static void what_is_wrong_is_refused(cudaGraphNode_t node) {
  cudaKernelNodeAttrValue value = {};
  value.clusterDim = {2, 1, 1};
  CHECK(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeClusterDimension, &value) ==
        cudaErrorNotSupported);
  value.clusterDim = {3, 1, 1};
  CHECK(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeClusterDimension, &value) ==
        cudaErrorInvalidClusterSize);
  value.cooperative = 2;
  CHECK(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeCooperative, &value) == cudaErrorInvalidValue);
  // Of streams only.
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeSynchronizationPolicy, &value) ==
        cudaErrorInvalidValue);
  CHECK(cudaGraphKernelNodeSetAttribute(nullptr, cudaKernelNodeAttributePriority, &value) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

// The graph as a drawing in text.
static std::string drawn(cudaGraph_t graph, unsigned flags) {
  char path[] = "/tmp/node_attributes_XXXXXX";
  const int file = mkstemp(path);
  CHECK(file >= 0 && cudaGraphDebugDotPrint(graph, path, flags) == cudaSuccess);
  std::string text(1 << 16, ' ');
  text.resize(read(file, &text[0], text.size()));
  close(file);
  remove(path);
  return text;
}

static void blocks_meet(cudaGraph_t graph, cudaGraphNode_t node, cudaGraphNode_t other, const int* sums) {
  cudaKernelNodeAttrValue value = {};
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributeCooperative, &value) == cudaSuccess);
  CHECK(value.cooperative == 0);
  value.cooperative = 1;
  CHECK(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributeCooperative, &value) == cudaSuccess);
  value.cooperative = 0;
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributeCooperative, &value) == cudaSuccess);
  CHECK(value.cooperative == 1);
  // It stays cooperative, and a copy that would change it changes nothing.
  value.priority = -2;
  CHECK(cudaGraphKernelNodeSetAttribute(other, cudaKernelNodeAttributePriority, &value) == cudaSuccess);
  CHECK(cudaGraphKernelNodeCopyAttributes(node, other) == cudaErrorNotSupported);
  (void)cudaGetLastError();
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributePriority, &value) == cudaSuccess);
  CHECK(value.priority == -3);
  const std::string plain = drawn(graph, 0), detailed = drawn(graph, cudaGraphDebugDotFlagsVerbose);
  CHECK(plain.find("meet") != std::string::npos && plain.find("grid") == std::string::npos);
  CHECK(detailed.find("meet") != std::string::npos && detailed.find("grid 4 x 1 x 1") != std::string::npos);
  CHECK(detailed.find("cooperative") != std::string::npos);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, nullptr) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 4; ++i) CHECK(sums[i] == 10);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

static void streams() {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  CUstreamAttrValue value = {};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  CHECK(DRIVER(cuStreamSetAttribute)(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value) == CUDA_SUCCESS);
  cudaStreamAttrValue seen = {};
  CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &seen) == cudaSuccess);
  CHECK(seen.syncPolicy == cudaSyncPolicyYield);
  unsigned long long id = 0, same = 1;
  CHECK(DRIVER(cuStreamGetId)(stream, &id) == CUDA_SUCCESS && cudaStreamGetId(stream, &same) == cudaSuccess &&
        id == same);
  CUdevice device = -1;
  CHECK(DRIVER(cuStreamGetDevice)(stream, &device) == CUDA_SUCCESS && device == 0);
  CUcontext context = nullptr, current = nullptr;
  CUgreenCtx green = nullptr;
  CHECK(DRIVER(cuStreamGetCtx_v2)(stream, &context, &green) == CUDA_SUCCESS &&
        DRIVER(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(context == current && green == nullptr);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

int main() {
  int *values = nullptr, *sums = nullptr;
  CHECK(cudaMallocManaged(&values, 4 * sizeof(int)) == cudaSuccess);
  CHECK(cudaMallocManaged(&sums, 4 * sizeof(int)) == cudaSuccess);
  void* arguments[] = {&values, &sums};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(meet);
  parameters.gridDim = dim3(4);
  parameters.blockDim = dim3(1);
  parameters.kernelParams = arguments;
  cudaGraph_t graph, others;
  cudaGraphNode_t node, other;
  CHECK(cudaGraphCreate(&graph, 0) == cudaSuccess && cudaGraphCreate(&others, 0) == cudaSuccess);
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters) == cudaSuccess);
  CHECK(cudaGraphAddKernelNode(&other, others, nullptr, 0, &parameters) == cudaSuccess);
  values_are_kept(graph, node, other);
  what_is_wrong_is_refused(node);
  blocks_meet(graph, node, other, sums);
  streams();
  CHECK(cudaGraphDestroy(graph) == cudaSuccess && cudaGraphDestroy(others) == cudaSuccess);
  CHECK(cudaFree(values) == cudaSuccess && cudaFree(sums) == cudaSuccess);
  return summary();
}
