// The driver interface's captures, pools and contexts, beside the runtime's.
#include "../../driver_entry.h"

__global__ void add(int* value, int by) { *value += by; }

// A capture is asked about, and goes on behind another node than its last one.
static void captures(cudaStream_t stream, int* value) {
  CUgraph graph = nullptr, seen = nullptr;
  CUgraphExec exec = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  unsigned long long id = 0;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = reinterpret_cast<const CUgraphEdgeData*>(stream);
  size_t count = 7;
  CHECK(DRIVER(cuStreamGetCaptureInfo_v2)(stream, &status, nullptr, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);

  CHECK(DRIVER(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuStreamBeginCaptureToGraph)(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED) ==
        CUDA_SUCCESS);
  add<<<1, 1, 0, stream>>>(value, 1);
  CHECK(DRIVER(cuStreamGetCaptureInfo_v3)(stream, &status, &id, &seen, &nodes, &edges, &count) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0 && seen == graph && edges == nullptr && count == 1);
  CUgraphNode first = count == 1 ? nodes[0] : nullptr;
  add<<<1, 1, 0, stream>>>(value, 10);
  CHECK(DRIVER(cuStreamUpdateCaptureDependencies_v2)(stream, &first, nullptr, 1, 1) == CUDA_SUCCESS);
  CHECK(DRIVER(cuStreamUpdateCaptureDependencies_v2)(stream, &first, nullptr, 1, 2) == CUDA_ERROR_INVALID_VALUE);
  add<<<1, 1, 0, stream>>>(value, 100);
  CHECK(DRIVER(cuStreamEndCapture)(stream, &seen) == CUDA_SUCCESS && seen == graph);
  size_t roots = 0, all = 0;
  CHECK(DRIVER(cuGraphGetRootNodes)(graph, nullptr, &roots) == CUDA_SUCCESS && roots == 1);
  CHECK(DRIVER(cuGraphGetNodes)(graph, nullptr, &all) == CUDA_SUCCESS && all == 3);
  // Both of the others come behind the first.
  count = 0;
  CHECK(cudaGraphNodeGetDependentNodes(first, nullptr,
#if CUDART_VERSION >= 13000
                                       nullptr,
#endif
                                       &count) == cudaSuccess &&
        count == 2);
  *value = 0;
  CHECK(DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(DRIVER(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS && cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(*value == 111);
  CHECK(DRIVER(cuGraphExecDestroy)(exec) == CUDA_SUCCESS && DRIVER(cuGraphDestroy)(graph) == CUDA_SUCCESS);
}

static void pools() {
  CUmemoryPool pool = nullptr;
  CHECK(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0) == CUDA_SUCCESS);
  CUmemLocation here = {};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  CHECK(DRIVER(cuMemPoolGetAccess)(&flags, pool, &here) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAccessDesc wanted = {};
  wanted.location = here;
  wanted.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(DRIVER(cuMemPoolSetAccess)(pool, &wanted, 1) == CUDA_SUCCESS);
  wanted.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  CHECK(DRIVER(cuMemPoolSetAccess)(pool, &wanted, 1) == CUDA_ERROR_NOT_SUPPORTED);
  wanted.location.id = 99;
  CHECK(DRIVER(cuMemPoolSetAccess)(pool, &wanted, 1) == CUDA_ERROR_INVALID_DEVICE);
  // Of a device to itself nothing is asked.
  int value = 0;
  CHECK(DRIVER(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0) ==
        CUDA_ERROR_INVALID_DEVICE);
}

static void contexts() {
  CUcontext current = nullptr;
  unsigned long long id = 0, same = 0;
  CHECK(DRIVER(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(DRIVER(cuCtxGetId)(nullptr, &id) == CUDA_SUCCESS && DRIVER(cuCtxGetId)(current, &same) == CUDA_SUCCESS);
  CHECK(id == same && id != 0);
  CHECK(DRIVER(cuCtxGetId)(reinterpret_cast<CUcontext>(&id), &same) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(DRIVER(cuCtxResetPersistingL2Cache)() == CUDA_SUCCESS);
}

int main() {
  int* value = nullptr;
  cudaStream_t stream;
  CHECK(cudaMallocManaged(&value, sizeof(int)) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
  captures(stream, value);
  pools();
  contexts();
  CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaFree(value) == cudaSuccess);
  return summary();
}
