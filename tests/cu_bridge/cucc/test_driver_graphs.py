"""Graphs that a program builds by the driver interface."""

import pathlib

from compiling import Cucc, run_program

MODULE = """
extern "C" __global__ void digit(int* to, int value) { *to = *to * 10 + value; }
extern "C" __global__ void countDown(int* to, cudaGraphConditionalHandle loop) {
  cudaGraphSetConditional(loop, --*to > 0);
}
"""
PROGRAM = r"""
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(condition) \
  do { if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); std::exit(1); } } while (0)
#define OK(call) CHECK((call) == CUDA_SUCCESS)

CUfunction digit;
CUdeviceptr memory;
CUcontext context;

int read() {
  int value = -1;
  OK(cuCtxSynchronize());
  OK(cuMemcpyDtoH(&value, memory, sizeof value));
  return value;
}
int launch(CUgraphExec exec, int start) {
  OK(cuMemcpyHtoD(memory, &start, sizeof start));
  OK(cuGraphLaunch(exec, nullptr));
  return read();
}
CUDA_KERNEL_NODE_PARAMS kernelOf(void** arguments) {
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = digit;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  return params;
}
CUgraphNode addDigit(CUgraph graph, int value, const std::vector<CUgraphNode>& after) {
  void* arguments[] = {&memory, &value};
  const CUDA_KERNEL_NODE_PARAMS params = kernelOf(arguments);
  CUgraphNode node = nullptr;
  OK(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  return node;
}
CUgraphNodeType typeOf(CUgraphNode node) {
  CUgraphNodeType type;
  OK(cuGraphNodeGetType(node, &type));
  return type;
}
size_t edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to) {
  size_t count = 8;
#if CUDA_VERSION >= 13000
  CUgraphEdgeData data[8];
  for (CUgraphEdgeData& one : data) one.from_port = 7;
  OK(cuGraphGetEdges(graph, from, to, data, &count));
  for (size_t i = 0; i < count; ++i) CHECK(data[i].from_port == 0);
#else
  OK(cuGraphGetEdges(graph, from, to, &count));
#endif
  return count;
}
void link(CUgraph graph, CUgraphNode from, CUgraphNode to, bool add) {
#if CUDA_VERSION >= 13000
  OK(add ? cuGraphAddDependencies(graph, &from, &to, nullptr, 1)
         : cuGraphRemoveDependencies(graph, &from, &to, nullptr, 1));
#else
  OK(add ? cuGraphAddDependencies(graph, &from, &to, 1) : cuGraphRemoveDependencies(graph, &from, &to, 1));
#endif
}

void kernels() {
  CUgraph graph, clone;
  CUgraphExec exec;
  OK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphCreate(&graph, 1) == CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode first = addDigit(graph, 1, {}), second = addDigit(graph, 2, {first});
  const CUgraphNode third = addDigit(graph, 3, {});
  link(graph, second, third, true);
  CUgraphNode from[8], to[8];
  CHECK(edges(graph, from, to) == 2);
  // Looked up by name: each release's form.
  CUresult (*first_form)(CUgraph, CUgraphNode*, CUgraphNode*, size_t*) = nullptr;
  CUresult (*second_form)(CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, size_t*) = nullptr;
  OK(cuGetProcAddress("cuGraphGetEdges", (void**)&first_form, 12000, 0, nullptr));
  OK(cuGetProcAddress("cuGraphGetEdges", (void**)&second_form, 12030, 0, nullptr));
  size_t known = 0;
  OK(first_form(graph, nullptr, nullptr, &known));
  CHECK(known == 2);
  OK(second_form(graph, nullptr, nullptr, nullptr, &known));
  CHECK(known == 2 && (void*)first_form != (void*)second_form);
  OK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(launch(exec, 0) == 123);
  // The other order, in a copy; the first is as it was.
  OK(cuGraphClone(&clone, graph));
  CUgraphNode copy[3];
  const CUgraphNode nodes[3] = {first, second, third};
  for (int i = 0; i < 3; ++i) OK(cuGraphNodeFindInClone(&copy[i], nodes[i], clone));
  link(clone, copy[0], copy[1], false);
  link(clone, copy[2], copy[0], true);
  CUgraphExec other;
  OK(cuGraphInstantiate(&other, clone, 0));
  CHECK(launch(other, 0) == 231 && launch(exec, 0) == 123);
  // Asked for, and changed: in the graph, in an executable one, by a whole other graph.
  CUDA_KERNEL_NODE_PARAMS params = {};
  OK(cuGraphKernelNodeGetParams(second, &params));
  CHECK(params.func == digit && params.gridDimX == 1 && *static_cast<int*>(params.kernelParams[1]) == 2);
  CHECK(*static_cast<CUdeviceptr*>(params.kernelParams[0]) == memory);
  int nine = 9;
  void* arguments[] = {&memory, &nine};
  params = kernelOf(arguments);
  OK(cuGraphKernelNodeSetParams(second, &params));
  CHECK(launch(exec, 0) == 123);
  OK(cuGraphExecKernelNodeSetParams(exec, third, &params));
  CHECK(launch(exec, 0) == 129);
  CUgraphExecUpdateResultInfo info = {};
  OK(cuGraphExecUpdate(exec, graph, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && launch(exec, 0) == 193);
  unsigned int enabled = 7;
  OK(cuGraphNodeSetEnabled(exec, second, 0));
  OK(cuGraphNodeGetEnabled(exec, second, &enabled));
  CHECK(enabled == 0 && launch(exec, 0) == 13);
  OK(cuGraphDestroyNode(copy[1]));
  CHECK(cuGraphExecUpdate(exec, clone, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  size_t count = 0;
  OK(cuGraphGetNodes(clone, nullptr, &count));
  CHECK(count == 2);
  count = 8;
  CUgraphNode roots[8];
  OK(cuGraphGetRootNodes(graph, roots, &count));
  CHECK(count == 1 && roots[0] == first);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphExecDestroy(other));
  OK(cuGraphDestroy(clone));
  OK(cuGraphDestroy(graph));
}

void otherKinds() {
  static int calls = 0;
  CUgraph graph, child;
  CUgraphExec exec;
  CUevent event;
  CUdeviceptr second;
  OK(cuMemAlloc(&second, 64));
  OK(cuEventCreate(&event, 0));
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill = {second, 0, 7, 4, 16, 1}, shownFill = {};
  CUgraphNode filled, copied, called, recorded, waited, inside, empty;
  OK(cuGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill, context));
  CUDA_MEMCPY3D copy = {}, shownCopy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = second;
  copy.dstDevice = memory;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  OK(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, context));
  OK(cuGraphAddEventRecordNode(&recorded, graph, &copied, 1, event));
  OK(cuGraphAddEventWaitNode(&waited, graph, &recorded, 1, event));
  CUDA_HOST_NODE_PARAMS host = {[](void* data) { ++*static_cast<int*>(data); }, &calls}, shownHost = {};
  OK(cuGraphAddHostNode(&called, graph, &waited, 1, &host));
  OK(cuGraphAddEmptyNode(&empty, graph, &called, 1));
  OK(cuGraphCreate(&child, 0));
  addDigit(child, 5, {});
  OK(cuGraphAddChildGraphNode(&inside, graph, &empty, 1, child));
  CUgraph within = nullptr;
  OK(cuGraphChildGraphNodeGetGraph(inside, &within));
  CHECK(within != child && within != nullptr);
  CHECK(typeOf(filled) == CU_GRAPH_NODE_TYPE_MEMSET && typeOf(copied) == CU_GRAPH_NODE_TYPE_MEMCPY);
  CHECK(typeOf(recorded) == CU_GRAPH_NODE_TYPE_EVENT_RECORD && typeOf(waited) == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  CHECK(typeOf(called) == CU_GRAPH_NODE_TYPE_HOST && typeOf(empty) == CU_GRAPH_NODE_TYPE_EMPTY);
  CHECK(typeOf(inside) == CU_GRAPH_NODE_TYPE_GRAPH);
  OK(cuGraphMemsetNodeGetParams(filled, &shownFill));
  OK(cuGraphMemcpyNodeGetParams(copied, &shownCopy));
  OK(cuGraphHostNodeGetParams(called, &shownHost));
  CHECK(shownFill.dst == second && shownFill.value == 7 && shownCopy.dstDevice == memory);
  CHECK(shownHost.userData == &calls && cuGraphHostNodeGetParams(filled, &shownHost) == CUDA_ERROR_INVALID_VALUE);
  CUevent shownEvent = nullptr;
  OK(cuGraphEventRecordNodeGetEvent(recorded, &shownEvent));
  CHECK(shownEvent == event);
  CUDA_GRAPH_INSTANTIATE_PARAMS how = {};
  how.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  OK(cuGraphInstantiateWithParams(&exec, graph, &how));
  unsigned long long flags = 0;
  OK(cuGraphExecGetFlags(exec, &flags));
  CHECK(how.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS && flags == CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
  CHECK(launch(exec, 0) == 75 && calls == 1 && cuEventQuery(event) == CUDA_SUCCESS);
  fill.value = 8;
  OK(cuGraphExecMemsetNodeSetParams(exec, filled, &fill, context));
  CHECK(launch(exec, 0) == 85 && calls == 2);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, copied, &fill, context) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill, (CUcontext)&fill) == CUDA_ERROR_INVALID_CONTEXT);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuGraphDestroy(child));
}

void memoryAndObjects() {
  static int ended = 0;
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode taken, filled, copied, freed;
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params = {}, shown = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = 256;
  OK(cuGraphAddMemAllocNode(&taken, graph, nullptr, 0, &params));
  OK(cuGraphMemAllocNodeGetParams(taken, &shown));
  CHECK(params.dptr != 0 && shown.dptr == params.dptr && shown.bytesize == 256);
  const CUDA_MEMSET_NODE_PARAMS fill = {params.dptr, 0, 42, 4, 1, 1};
  OK(cuGraphAddMemsetNode(&filled, graph, &taken, 1, &fill, context));
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = params.dptr;
  copy.dstDevice = memory;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  OK(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, context));
  OK(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, params.dptr));
  CUdeviceptr back = 0;
  OK(cuGraphMemFreeNodeGetParams(freed, &back));
  CHECK(back == params.dptr);
  CUuserObject object;
  OK(cuUserObjectCreate(&object, &ended, [](void* data) { ++*static_cast<int*>(data); }, 1,
                        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  OK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(launch(exec, 0) == 42 && launch(exec, 0) == 42);
  OK(cuGraphDestroy(graph));
  CHECK(ended == 0);
  OK(cuGraphExecDestroy(exec));
  OK(cuCtxSynchronize());
  CHECK(ended == 1);
  // What a launch has left is freed by the next one, where the program says so.
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemAllocNode(&taken, graph, nullptr, 0, &params));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, nullptr));
  CHECK(cuGraphLaunch(exec, nullptr) == CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphExecDestroy(exec));
  OK(cuMemFree(params.dptr));
  OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  OK(cuGraphLaunch(exec, nullptr));
  OK(cuGraphLaunch(exec, nullptr));
  OK(cuMemFree(params.dptr));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

CUgraphNode addAny(CUgraph graph, const std::vector<CUgraphNode>& after, CUgraphNodeParams* params) {
  CUgraphNode node = nullptr;
#if CUDA_VERSION >= 13000
  OK(cuGraphAddNode(&node, graph, after.data(), nullptr, after.size(), params));
#else
  OK(cuGraphAddNode(&node, graph, after.data(), after.size(), params));
#endif
  return node;
}

void nodesOfAnyType(CUfunction countDown) {
  CUgraph graph;
  CUgraphExec exec;
  CUgraphConditionalHandle loop;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphConditionalHandleCreate(&loop, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams fill = {}, repeat = {}, kernel = {}, last = {};
  fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
  fill.memset = {memory, 0, 5, 4, 1, 1, context};
  const CUgraphNode filled = addAny(graph, {}, &fill);
  repeat.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  repeat.conditional = {loop, CU_GRAPH_COND_TYPE_WHILE, 1, nullptr, context};
  const CUgraphNode repeated = addAny(graph, {filled}, &repeat);
  CHECK(typeOf(repeated) == CU_GRAPH_NODE_TYPE_CONDITIONAL && repeat.conditional.phGraph_out[0] != nullptr);
  void* counted[] = {&memory, &loop};
  kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
  kernel.kernel = kernelOf(counted);
  kernel.kernel.func = countDown;
  addAny(repeat.conditional.phGraph_out[0], {}, &kernel);
  int four = 4, six = 6;
  void* arguments[] = {&memory, &four};
  last.type = CU_GRAPH_NODE_TYPE_KERNEL;
  last.kernel = kernelOf(arguments);
  const CUgraphNode final = addAny(graph, {repeated}, &last);
  OK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(launch(exec, 99) == 4);  // counted from 5 to 0, then the digit
  arguments[1] = &six;
  OK(cuGraphExecNodeSetParams(exec, final, &last));
  CHECK(launch(exec, 99) == 6);
  fill.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CHECK(cuGraphNodeSetParams(filled, &fill) == CUDA_ERROR_NOT_SUPPORTED);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

int main(int, char** words) {
  CUmodule module;
  CUfunction countDown;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuModuleLoad(&module, words[1]));
  OK(cuModuleGetFunction(&digit, module, "digit"));
  OK(cuModuleGetFunction(&countDown, module, "countDown"));
  OK(cuMemAlloc(&memory, sizeof(int)));
  kernels();
  nodesOfAnyType(countDown);
  otherKinds();
  memoryAndObjects();
}
"""


def test_graphs_of_the_driver_interface(cucc: Cucc, tmp_path: pathlib.Path, major: int) -> None:
    (tmp_path / "module.cu").write_text(MODULE, encoding="utf-8")
    (tmp_path / "program.cu").write_text(PROGRAM, encoding="utf-8")
    environment = {"CUCC_CUDA_MAJOR": str(major)}
    cucc("-cubin", tmp_path / "module.cu", "-o", tmp_path / "module.cubin", **environment)
    cucc("-O1", tmp_path / "program.cu", "-o", tmp_path / "program", "-lcuda", **environment)
    done = run_program(tmp_path / "program", tmp_path / "module.cubin")
    assert done.returncode == 0, done.stdout + done.stderr
