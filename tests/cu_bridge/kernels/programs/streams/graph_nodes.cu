// Graphs that a program builds: nodes of each kind, their order, changes, graphs inside, conditions that kernels set.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace {

int failures = 0;

void check(bool holds, int line, const char* text) {
  if (holds) return;
  ++failures;
  std::printf("line %d: does not hold: %s\n", line, text);
}
#define CHECK(condition) check((condition), __LINE__, #condition)
#define OK(call) check((call) == cudaSuccess, __LINE__, #call)

__global__ void add(int* to, int value) { *to = *to * 10 + value; }
__global__ void countDown(int* to, cudaGraphConditionalHandle handle) { cudaGraphSetConditional(handle, --*to > 0); }
__global__ void choose(cudaGraphConditionalHandle handle, unsigned value) { cudaGraphSetConditional(handle, value); }

int* device = nullptr;

int read() {
  int value = -1;
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

void write(int value) { OK(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice)); }

// Arguments are read when the node is added.
cudaGraphNode_t addDigit(cudaGraph_t graph, int digit, const std::vector<cudaGraphNode_t>& after) {
  void* arguments[] = {&device, &digit};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &kernel));
  return node;
}

cudaGraph_t makeGraph() {
  cudaGraph_t graph = nullptr;
  OK(cudaGraphCreate(&graph, 0));
  return graph;
}

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

int launch(cudaGraphExec_t exec, int start) {
  write(start);
  OK(cudaGraphLaunch(exec, nullptr));
  return read();
}

cudaError_t addEdge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
#if CUDART_VERSION >= 13000
  return cudaGraphAddDependencies(graph, &from, &to, nullptr, 1);
#else
  return cudaGraphAddDependencies(graph, &from, &to, 1);
#endif
}

cudaError_t addNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                    cudaGraphNodeParams* parameters) {
#if CUDART_VERSION >= 13000
  return cudaGraphAddNode(node, graph, after, nullptr, count, parameters);
#else
  return cudaGraphAddNode(node, graph, after, count, parameters);
#endif
}

void hostDigit(void* to) { *static_cast<int*>(to) = *static_cast<int*>(to) * 10 + 7; }

void nodesRunInTheOrderOfTheirEdges() {
  cudaGraph_t graph = makeGraph();
  const cudaGraphNode_t last = addDigit(graph, 3, {});
  const cudaGraphNode_t first = addDigit(graph, 1, {});
  const cudaGraphNode_t middle = addDigit(graph, 2, {first});
  OK(addEdge(graph, middle, last));
  CHECK(addEdge(graph, middle, last) == cudaErrorInvalidValue);
  cudaGetLastError();
  size_t count = 9;
  cudaGraphNode_t roots[9];
  OK(cudaGraphGetRootNodes(graph, roots, &count));
  CHECK(count == 1 && roots[0] == first);
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  OK(cudaGraphNodeGetType(first, &type));
  CHECK(type == cudaGraphNodeTypeKernel);
  cudaGraphExec_t exec = instantiate(graph);
  CHECK(launch(exec, 0) == 123 && launch(exec, 5) == 5123);

  // A clone has nodes of its own, and what is changed there is changed nowhere else.
  cudaGraph_t clone = nullptr;
  OK(cudaGraphClone(&clone, graph));
  cudaGraphNode_t copy = nullptr;
  OK(cudaGraphNodeFindInClone(&copy, middle, clone));
  OK(cudaGraphDestroyNode(copy));
  CHECK(cudaGraphNodeFindInClone(&copy, middle, clone) == cudaErrorInvalidValue);
  cudaGetLastError();
  OK(addEdge(graph, last, first));  // a circle
  cudaGraphExec_t none = nullptr;
  CHECK(cudaGraphInstantiate(&none, graph, 0) == cudaErrorInvalidValue && none == nullptr);
  cudaGetLastError();
  cudaGraphExec_t cloned = instantiate(clone);
  const int both = launch(cloned, 0);
  CHECK(both == 31 || both == 13);
  OK(cudaGraphDestroy(graph));
  CHECK(launch(exec, 0) == 123);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphExecDestroy(cloned));
  OK(cudaGraphDestroy(clone));
}

// What a program asks a kernel's node for it may change in place and give back, as often as it likes.
void parametersOfKernels() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  add<<<1, 1, 0, stream>>>(device, 4);
  OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t node = nullptr;
  size_t count = 1;
  OK(cudaGraphGetNodes(graph, &node, &count));
  cudaKernelNodeParams kernel{};
  OK(cudaGraphKernelNodeGetParams(node, &kernel));
  CHECK(kernel.func == reinterpret_cast<void*>(add) && kernel.extra == nullptr && kernel.sharedMemBytes == 0);
  CHECK(kernel.gridDim.x == 1 && kernel.blockDim.x == 1 && kernel.blockDim.z == 1);
  CHECK(*static_cast<int**>(kernel.kernelParams[0]) == device && *static_cast<int*>(kernel.kernelParams[1]) == 4);

  cudaGraphExec_t exec = instantiate(graph);
  cudaGraphExecUpdateResultInfo info{};
  for (const int digit : {6, 7}) {
    const int before = launch(exec, 0);
    *static_cast<int*>(kernel.kernelParams[1]) = digit;
    cudaGraphExec_t early = instantiate(graph);
    CHECK(launch(exec, 0) == before && launch(early, 0) == before);
    OK(cudaGraphKernelNodeSetParams(node, &kernel));
    CHECK(launch(exec, 0) == before && launch(early, 0) == before);
    OK(cudaGraphExecUpdate(exec, graph, &info));
    CHECK(launch(exec, 0) == digit && launch(early, 0) == before);
    OK(cudaGraphExecDestroy(early));
  }
  // Another array of arguments: the node's own memory has its values then.
  int nine = 9;
  void* arguments[] = {&device, &nine};
  cudaKernelNodeParams other = kernel;
  other.kernelParams = arguments;
  OK(cudaGraphKernelNodeSetParams(node, &other));
  CHECK(*static_cast<int*>(kernel.kernelParams[1]) == 9);
  nine = 1;
  cudaGraph_t clone = nullptr;
  OK(cudaGraphClone(&clone, graph));
  cudaGraphNode_t copy = nullptr;
  OK(cudaGraphNodeFindInClone(&copy, node, clone));
  cudaKernelNodeParams cloned{};
  OK(cudaGraphKernelNodeGetParams(copy, &cloned));
  CHECK(*static_cast<int*>(cloned.kernelParams[1]) == 9 && cloned.kernelParams[1] != kernel.kernelParams[1]);
  *static_cast<int*>(cloned.kernelParams[1]) = 2;
  OK(cudaGraphKernelNodeSetParams(copy, &cloned));
  cudaGraphExec_t both[] = {instantiate(graph), instantiate(clone)};
  CHECK(launch(both[0], 0) == 9 && launch(both[1], 0) == 2);

  // Another kernel, whose arguments are others.
  cudaGraphConditionalHandle handle{};
  OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  void* others[] = {&device, &handle};
  other.func = reinterpret_cast<void*>(countDown);
  other.kernelParams = others;
  OK(cudaGraphKernelNodeSetParams(node, &other));
  OK(cudaGraphKernelNodeGetParams(node, &kernel));
  CHECK(kernel.func == other.func && *static_cast<int**>(kernel.kernelParams[0]) == device);
  cudaGraphExec_t counting = instantiate(graph);
  CHECK(launch(counting, 5) == 4);
  other.func = nullptr;
  CHECK(cudaGraphKernelNodeSetParams(node, &other) != cudaSuccess);
  cudaGetLastError();
  CHECK(launch(counting, 5) == 4);

  // Parameters do not say that all blocks run at once, so a node that launches so keeps its own.
  cudaGraph_t together = nullptr;
  int three = 3;
  void* own[] = {&device, &three};
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  OK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(add), dim3(1), dim3(1), own, 0, stream));
  OK(cudaStreamEndCapture(stream, &together));
  count = 1;
  OK(cudaGraphGetNodes(together, &node, &count));
  OK(cudaGraphKernelNodeGetParams(node, &kernel));
  *static_cast<int*>(kernel.kernelParams[1]) = 8;
  CHECK(cudaGraphKernelNodeSetParams(node, &kernel) == cudaErrorNotSupported);
  cudaGetLastError();
  cudaGraphExec_t unchanged = instantiate(together);
  CHECK(launch(unchanged, 0) == 3);
  OK(cudaGraphDestroy(together));
  for (cudaGraphExec_t one : {exec, both[0], both[1], counting, unchanged}) OK(cudaGraphExecDestroy(one));
  OK(cudaGraphDestroy(clone));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

// Nodes of a graph change for what is instantiated afterwards.
void parametersOfOtherNodes() {
  cudaGraph_t graph = makeGraph();
  cudaGraphNode_t fill = nullptr, copy = nullptr, host = nullptr, recorded = nullptr;
  cudaMemsetParams value{device, 4, 1, 4, 1, 1};
  OK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &value));
  int out = 0, other = 0;
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, &out, device, 4, cudaMemcpyDeviceToHost));
  cudaHostNodeParams call{hostDigit, &out};
  OK(cudaGraphAddHostNode(&host, graph, &copy, 1, &call));
  cudaEvent_t events[2];
  for (cudaEvent_t& event : events) OK(cudaEventCreate(&event));
  OK(cudaGraphAddEventRecordNode(&recorded, graph, &host, 1, events[0]));
  cudaGraphExec_t before = instantiate(graph);
  value.value = 3;
  call.userData = &other;
  OK(cudaGraphMemsetNodeSetParams(fill, &value));
  OK(cudaGraphMemcpyNodeSetParams1D(copy, &other, device, 4, cudaMemcpyDeviceToHost));
  OK(cudaGraphHostNodeSetParams(host, &call));
  OK(cudaGraphEventRecordNodeSetEvent(recorded, events[1]));
  cudaGraphExec_t after = instantiate(graph);
  launch(before, 0);
  CHECK(out == 17 && other == 0);
  launch(after, 0);
  CHECK(out == 17 && other == 37);
  float time = -1;
  OK(cudaEventElapsedTime(&time, events[0], events[1]));
  CHECK(time >= 0);
  cudaKernelNodeParams kernel{};
  CHECK(cudaGraphKernelNodeGetParams(fill, &kernel) == cudaErrorInvalidValue);
  CHECK(cudaGraphMemsetNodeSetParams(copy, &value) == cudaErrorInvalidValue);
  CHECK(cudaGraphHostNodeSetParams(host, nullptr) == cudaErrorInvalidValue);
  cudaGetLastError();
  launch(after, 0);
  CHECK(other == 37);
  for (cudaGraphExec_t exec : {before, after}) OK(cudaGraphExecDestroy(exec));
  for (cudaEvent_t event : events) OK(cudaEventDestroy(event));
  OK(cudaGraphDestroy(graph));
}

void nodesOfEachKind() {
  cudaGraph_t graph = makeGraph();
  cudaGraphNode_t fill = nullptr, copy = nullptr, host = nullptr, empty = nullptr, recorded = nullptr;
  cudaMemsetParams zero{device, 4, 0, 4, 1, 1};
  OK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &zero));
  const cudaGraphNode_t digit = addDigit(graph, 4, {fill});
  OK(cudaGraphAddEmptyNode(&empty, graph, &digit, 1));
  int out = 0, other = 0;
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &empty, 1, &out, device, 4, cudaMemcpyDeviceToHost));
  cudaHostNodeParams call{hostDigit, &out};
  OK(cudaGraphAddHostNode(&host, graph, &copy, 1, &call));
  cudaEvent_t event = nullptr;
  OK(cudaEventCreate(&event));
  OK(cudaGraphAddEventRecordNode(&recorded, graph, &host, 1, event));
  cudaGraphExec_t exec = instantiate(graph);
  launch(exec, 99);
  CHECK(out == 47 && cudaEventQuery(event) == cudaSuccess);

  // Changes of what is launched.
  cudaMemsetParams ones{device, 4, 0x01010101, 4, 1, 1};
  OK(cudaGraphExecMemsetNodeSetParams(exec, fill, &ones));
  OK(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, &other, device, 4, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphExecHostNodeSetParams(exec, copy, &call) == cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaGraphNodeSetEnabled(exec, digit, 0));
  launch(exec, 99);
  CHECK(other == 0x01010101);
  int five = 5;
  void* arguments[] = {&device, &five};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  OK(cudaGraphNodeSetEnabled(exec, digit, 1));
  OK(cudaGraphExecMemsetNodeSetParams(exec, fill, &zero));
  OK(cudaGraphExecKernelNodeSetParams(exec, digit, &kernel));
  launch(exec, 99);
  CHECK(other == 5);

  // A graph of the same shape takes the place of what is launched; another one does not.
  cudaGraph_t same = nullptr;
  OK(cudaGraphClone(&same, graph));
  cudaGraphExecUpdateResultInfo info{};
  OK(cudaGraphExecUpdate(exec, same, &info));
  CHECK(info.result == cudaGraphExecUpdateSuccess);
  out = other = 0;
  launch(exec, 99);
  CHECK(out == 47 && other == 0);
  addDigit(same, 6, {});
  CHECK(cudaGraphExecUpdate(exec, same, &info) == cudaErrorGraphExecUpdateFailure);
  CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(same));
  OK(cudaGraphDestroy(graph));
  OK(cudaEventDestroy(event));
}

void graphsInside() {
  cudaGraph_t child = makeGraph();
  addDigit(child, 2, {addDigit(child, 1, {})});
  cudaGraph_t graph = makeGraph();
  const cudaGraphNode_t before = addDigit(graph, 8, {});
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddChildGraphNode(&node, graph, &before, 1, child));
  addDigit(child, 3, {});  // the node has a copy
  cudaGraph_t inside = nullptr;
  OK(cudaGraphChildGraphNodeGetGraph(node, &inside));
  CHECK(inside != child && cudaGraphDestroy(inside) == cudaErrorInvalidValue);
  cudaGetLastError();
  addDigit(graph, 9, {node});
  cudaGraphExec_t exec = instantiate(graph);
  CHECK(launch(exec, 0) == 8129);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphDestroy(child));
}

// A conditional node after `before`; its first body.
cudaGraph_t addConditional(cudaGraph_t graph, cudaGraphNode_t before, cudaGraphConditionalHandle handle,
                           cudaGraphConditionalNodeType type, unsigned bodies, cudaGraph_t* all = nullptr) {
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = bodies;
  cudaGraphNode_t node = nullptr;
  OK(addNode(&node, graph, before == nullptr ? nullptr : &before, before == nullptr ? 0 : 1, &parameters));
  for (unsigned i = 0; all != nullptr && i < bodies; ++i) all[i] = parameters.conditional.phGraph_out[i];
  return parameters.conditional.phGraph_out[0];
}

void kernelsDecideWhatRuns() {
  // While: runs as long as its own kernel says so; the value starts anew with each launch.
  cudaGraph_t graph = makeGraph();
  cudaGraphConditionalHandle handle = 0;
  OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraph_t body = addConditional(graph, nullptr, handle, cudaGraphCondTypeWhile, 1);
  cudaStream_t stream = nullptr;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  countDown<<<1, 1, 0, stream>>>(device, handle);
  cudaGraph_t captured = nullptr;
  OK(cudaStreamEndCapture(stream, &captured));
  CHECK(captured == body);
  cudaGraphExec_t exec = instantiate(graph);
  CHECK(launch(exec, 5) == 0 && launch(exec, 3) == 0 && launch(exec, -3) == -4);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));

  // Switch: the body of that number, or none.
  for (unsigned value = 0; value < 4; ++value) {
    graph = makeGraph();
    OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    void* arguments[] = {&handle, &value};
    cudaKernelNodeParams kernel{};
    kernel.func = reinterpret_cast<void*>(choose);
    kernel.gridDim = kernel.blockDim = dim3(1);
    kernel.kernelParams = arguments;
    cudaGraphNode_t chooser = nullptr;
    OK(cudaGraphAddKernelNode(&chooser, graph, nullptr, 0, &kernel));
    cudaGraph_t bodies[3];
    addConditional(graph, chooser, handle, cudaGraphCondTypeSwitch, 3, bodies);
    for (int i = 0; i < 3; ++i) addDigit(bodies[i], i + 1, {});
    exec = instantiate(graph);
    CHECK(launch(exec, 0) == (value < 3 ? static_cast<int>(value) + 1 : 0));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  }
  // A handle of another graph.
  graph = makeGraph();
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  CHECK(addNode(&node, graph, nullptr, 0, &parameters) == cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

// A captured stream goes on behind a node that the program adds to its graph.
void capturesTakeNodesIn() {
  cudaStream_t stream = nullptr;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, stream>>>(device, 1);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
#if CUDART_VERSION >= 13000
  OK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, nullptr, &count));
#else
  OK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, &count));
#endif
  CHECK(count == 1 && cudaGraphDestroy(graph) == cudaErrorIllegalState);
  cudaGetLastError();
  cudaGraphNode_t node = addDigit(graph, 2, {last[0]});
#if CUDART_VERSION >= 13000
  OK(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
#else
  OK(cudaStreamUpdateCaptureDependencies(stream, &node, 1, cudaStreamSetCaptureDependencies));
#endif
  add<<<1, 1, 0, stream>>>(device, 3);
  OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = instantiate(graph);
  CHECK(launch(exec, 0) == 123);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

__device__ int variable[4];

// What nodes say of themselves is what they were given, in a clone and after a change too.
void nodesSayWhatTheyDo() {
  cudaGraph_t graph = makeGraph(), clone = nullptr;
  int host[2] = {7, 8};
  cudaGraphNode_t copy = nullptr, fill = nullptr, call = nullptr, record = nullptr, wait = nullptr;
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, device, host, sizeof(int), cudaMemcpyHostToDevice));
  cudaMemsetParams filling{};
  filling.dst = device;
  filling.elementSize = 4;
  filling.width = filling.height = 1;
  filling.value = 5;
  OK(cudaGraphAddMemsetNode(&fill, graph, &copy, 1, &filling));
  const cudaHostNodeParams calling{[](void* to) { ++*static_cast<int*>(to); }, host};
  OK(cudaGraphAddHostNode(&call, graph, &fill, 1, &calling));
  cudaEvent_t event = nullptr, other = nullptr, seen = nullptr;
  OK(cudaEventCreate(&event));
  OK(cudaEventCreate(&other));
  OK(cudaGraphAddEventRecordNode(&record, graph, &call, 1, event));
  OK(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, event));

  cudaMemcpy3DParms copied{};
  OK(cudaGraphMemcpyNodeGetParams(copy, &copied));
  CHECK(copied.dstPtr.ptr == device && copied.srcPtr.ptr == host && copied.kind == cudaMemcpyHostToDevice);
  CHECK(copied.extent.width == sizeof(int) && copied.extent.height == 1 && copied.extent.depth == 1);
  cudaMemsetParams filled{};
  OK(cudaGraphMemsetNodeGetParams(fill, &filled));
  CHECK(filled.dst == device && filled.value == 5 && filled.elementSize == 4 && filled.width == 1);
  cudaHostNodeParams called{};
  OK(cudaGraphHostNodeGetParams(call, &called));
  CHECK(called.fn == calling.fn && called.userData == host);
  OK(cudaGraphEventRecordNodeGetEvent(record, &seen));
  CHECK(seen == event);
  OK(cudaGraphEventWaitNodeGetEvent(wait, &seen));
  CHECK(seen == event);
  CHECK(cudaGraphMemsetNodeGetParams(copy, &filled) == cudaErrorInvalidValue);

  OK(cudaGraphClone(&clone, graph));
  cudaGraphNode_t cloned = nullptr;
  OK(cudaGraphNodeFindInClone(&cloned, fill, clone));
  cudaGraphNodeParams changed{};
  changed.type = cudaGraphNodeTypeMemset;
  changed.memset = filling;
  changed.memset.value = 6;
  OK(cudaGraphNodeSetParams(fill, &changed));
  OK(cudaGraphMemsetNodeGetParams(fill, &filled));
  CHECK(filled.value == 6);
  OK(cudaGraphMemsetNodeGetParams(cloned, &filled));
  CHECK(filled.value == 5);
  OK(cudaGraphEventRecordNodeSetEvent(record, other));
  OK(cudaGraphEventRecordNodeGetEvent(record, &seen));
  CHECK(seen == other);

  cudaGraphExec_t exec = instantiate(graph);
  CHECK(launch(exec, 0) == 6 && host[0] == 8);
  changed.memset.value = 9;
  OK(cudaGraphExecNodeSetParams(exec, fill, &changed));
  CHECK(launch(exec, 0) == 9 && host[0] == 9);
  unsigned enabled = 7;
  OK(cudaGraphNodeGetEnabled(exec, fill, &enabled));
  CHECK(enabled == 1);
  OK(cudaGraphNodeSetEnabled(exec, fill, 0));
  OK(cudaGraphNodeGetEnabled(exec, fill, &enabled));
  CHECK(enabled == 0 && launch(exec, 0) == 9);  // the copy of what the function on the host counts
  CHECK(cudaGraphNodeGetEnabled(exec, call, &enabled) == cudaErrorInvalidValue);
  changed.type = cudaGraphNodeTypeKernel;
  CHECK(cudaGraphExecNodeSetParams(exec, fill, &changed) != cudaSuccess);
  cudaGetLastError();
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(clone));
  OK(cudaGraphDestroy(graph));
  OK(cudaEventDestroy(event));
  OK(cudaEventDestroy(other));
}

void copiesOfVariables() {
  cudaGraph_t graph = makeGraph();
  const int given[] = {1, 2, 3};
  int found[2] = {};
  cudaGraphNode_t in = nullptr, out = nullptr, no = nullptr;
  OK(cudaGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, variable, given, sizeof given, sizeof(int),
                                    cudaMemcpyHostToDevice));
  OK(cudaGraphAddMemcpyNodeFromSymbol(&out, graph, &in, 1, found, variable, sizeof found, 2 * sizeof(int),
                                      cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&no, graph, nullptr, 0, variable, given, sizeof given, 2 * sizeof(int),
                                       cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  cudaGetLastError();
  cudaGraphExec_t exec = instantiate(graph);
  launch(exec, 0);
  CHECK(found[0] == 2 && found[1] == 3);
  OK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, out, found, variable, sizeof found, sizeof(int),
                                                cudaMemcpyDeviceToHost));
  launch(exec, 0);
  CHECK(found[0] == 1 && found[1] == 2);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

// The child of a graph that can be launched does the work of another graph of its shape.
void childrenAreReplaced() {
  cudaGraph_t graph = makeGraph(), first = makeGraph(), second = makeGraph(), longer = makeGraph();
  addDigit(first, 1, {});
  addDigit(second, 2, {});
  addDigit(longer, 3, {addDigit(longer, 3, {})});
  cudaGraphNode_t child = nullptr;
  OK(cudaGraphAddChildGraphNode(&child, graph, nullptr, 0, first));
  addDigit(graph, 4, {child});
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiateParams how{};
  how.flags = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload;
  OK(cudaGraphInstantiateWithParams(&exec, graph, &how));
  CHECK(how.result_out == cudaGraphInstantiateSuccess && how.errNode_out == nullptr);
  unsigned long long flags = 0;
  OK(cudaGraphExecGetFlags(exec, &flags));
  CHECK(flags == how.flags);
  CHECK(launch(exec, 0) == 14);
  OK(cudaGraphExecChildGraphNodeSetParams(exec, child, second));
  OK(cudaGraphDestroy(second));
  CHECK(launch(exec, 0) == 24);
  CHECK(cudaGraphExecChildGraphNodeSetParams(exec, child, longer) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(launch(exec, 0) == 24);
  OK(cudaGraphExecDestroy(exec));
  for (cudaGraph_t each : {graph, first, longer}) OK(cudaGraphDestroy(each));
}

}  // namespace

int main() {
  OK(cudaMalloc(&device, sizeof *device));
  nodesRunInTheOrderOfTheirEdges();
  nodesOfEachKind();
  parametersOfKernels();
  parametersOfOtherNodes();
  graphsInside();
  kernelsDecideWhatRuns();
  capturesTakeNodesIn();
  nodesSayWhatTheyDo();
  copiesOfVariables();
  childrenAreReplaced();
  OK(cudaFree(device));
  OK(cudaGetLastError());
  return failures;
}
