// Capture of streams and launches of graphs: order, dependencies, and what a capture forbids.
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <thread>

#include "check.h"

namespace {

cudaStream_t makeStream(unsigned int flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}

cudaStreamCaptureStatus statusOf(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  return status;
}

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  CHECK(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}

// Ends a capture that must have failed, and forgets the error.
void expectEnd(cudaStream_t stream, cudaError_t error) {
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == error && graph == nullptr);
  CHECK(cudaGetLastError() == error && statusOf(stream) == cudaStreamCaptureStatusNone);
}

int order = 0;
void append(void* digit) { order = order * 10 + *static_cast<int*>(digit); }

void launchesRepeatWhatWasCaptured() {
  int* device = nullptr;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&device), 16) == cudaSuccess);
  CHECK(cudaMemset(device, 0, 16) == cudaSuccess);
  int input = 7;
  int output = -1;
  int one = 1;
  cudaStream_t stream = makeStream();
  begin(stream);
  unsigned long long id = 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, &id) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive && id != 0);
  CHECK(cudaMemcpyAsync(device, &input, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  CHECK(cudaMemsetAsync(device + 1, 1, 4, stream) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(stream, append, &one) == cudaSuccess);
  CHECK(cudaMemcpyAsync(&output, device, 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph != nullptr);
  CHECK(order == 0 && output == -1);  // nothing has happened yet

  size_t count = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess && count == 4);
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);  // the executable graph lives on
  for (int i = 0; i < 3; ++i) {
    input = 100 + i;
    CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && output == 100 + i);
  }
  CHECK(order == 111);
  int bytes[2] = {};
  CHECK(cudaMemcpy(bytes, device, 8, cudaMemcpyDeviceToHost) == cudaSuccess && bytes[1] == 0x01010101);

  // A graph that is launched into a capture becomes a part of the other graph.
  begin(stream);
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess && order == 111);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t outer = nullptr;
  CHECK(cudaGraphInstantiateWithFlags(&outer, graph, 0) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphLaunch(outer, nullptr) == cudaSuccess);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess && order == 1111);
  CHECK(cudaGraphExecDestroy(outer) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaGraphLaunch(nullptr, stream) == cudaErrorInvalidValue);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaFree(device) == cudaSuccess);
  cudaGetLastError();
}

void eventsBringOtherStreamsIn(const char* dot) {
  order = 0;
  int one = 1, two = 2, three = 3;
  cudaStream_t stream = makeStream();
  cudaStream_t other = makeStream();
  cudaEvent_t fork = nullptr, join = nullptr;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming) == cudaSuccess);
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming) == cudaSuccess);
  begin(stream);
  CHECK(cudaLaunchHostFunc(stream, append, &one) == cudaSuccess);
  CHECK(cudaEventRecord(fork, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(other, fork, 0) == cudaSuccess);
  CHECK(statusOf(other) == cudaStreamCaptureStatusActive);
  CHECK(cudaLaunchHostFunc(other, append, &two) == cudaSuccess);
  CHECK(cudaEventRecord(join, other) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, join, 0) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(stream, append, &three) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && order == 0);
  CHECK(statusOf(other) == cudaStreamCaptureStatusNone);
  CHECK(cudaEventQuery(fork) == cudaErrorCapturedEvent && cudaEventSynchronize(join) == cudaErrorCapturedEvent);
  CHECK(cudaEventRecord(fork, stream) == cudaSuccess && cudaEventQuery(fork) == cudaSuccess);
  CHECK(cudaGraphDebugDotPrint(graph, dot, 0) == cudaSuccess);
  CHECK(cudaGraphDebugDotPrint(graph, "/nowhere/graph.dot", 0) == cudaErrorOperatingSystem);
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && order == 123);

  // Work that the origin has not waited for.
  begin(stream);
  CHECK(cudaEventRecord(fork, stream) == cudaSuccess && cudaStreamWaitEvent(other, fork, 0) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(other, append, &two) == cudaSuccess);
  cudaGetLastError();
  expectEnd(stream, cudaErrorStreamCaptureUnjoined);
  // An event of outside, and one of another capture.
  CHECK(cudaEventRecord(fork, other) == cudaSuccess);
  begin(stream);
  CHECK(cudaStreamWaitEvent(stream, fork, 0) == cudaErrorStreamCaptureIsolation);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);
  begin(stream);
  begin(other);
  CHECK(cudaEventRecord(fork, other) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, fork, 0) == cudaErrorStreamCaptureMerge);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);
  expectEnd(other, cudaErrorStreamCaptureInvalidated);
}

void capturesForbidWaiting() {
  cudaStream_t stream = makeStream();
  cudaStream_t blocking = makeStream(cudaStreamDefault);
  cudaGraph_t graph = nullptr;
  void* pointer = nullptr;
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState);

  begin(stream);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(statusOf(stream) == cudaStreamCaptureStatusInvalidated);
  CHECK(cudaMemsetAsync(pointer, 0, 0, stream) == cudaErrorStreamCaptureInvalidated);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);
  begin(stream);
  CHECK(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);
  begin(stream);
  CHECK(cudaMalloc(&pointer, 16) == cudaErrorStreamCaptureUnsupported);
  expectEnd(stream, cudaErrorStreamCaptureInvalidated);
  begin(stream);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess && mode == cudaStreamCaptureModeGlobal);
  CHECK(cudaMalloc(&pointer, 16) == cudaSuccess && cudaFree(pointer) == cudaSuccess);
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess && mode == cudaStreamCaptureModeRelaxed);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  begin(stream, cudaStreamCaptureModeRelaxed);
  CHECK(cudaMalloc(&pointer, 16) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);

  // The legacy stream waits for every stream that is not non-blocking.
  begin(stream);
  CHECK(cudaMemsetAsync(pointer, 0, 16, nullptr) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  // Who only asks it about a capture gets the error, and the capture goes on.
  begin(blocking);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamIsCapturing(nullptr, &status) == cudaErrorStreamCaptureImplicit);
  CHECK(cudaStreamIsCapturing(blocking, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive);
  CHECK(cudaMemsetAsync(pointer, 0, 16, blocking) == cudaSuccess);
  CHECK(cudaStreamEndCapture(blocking, &graph) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  begin(blocking);
  CHECK(cudaMemsetAsync(pointer, 0, 16, nullptr) == cudaErrorStreamCaptureImplicit);
  expectEnd(blocking, cudaErrorStreamCaptureInvalidated);

  // A stream that goes takes its capture with it.
  begin(blocking);
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
  CHECK(cudaMalloc(&pointer, 16) == cudaSuccess);
}

// The object's end comes with the last graph that has a reference, once.
void graphsKeepObjects() {
  int ends = 0;
  const cudaHostFn_t count = [](void* number) { ++*static_cast<int*>(number); };
  cudaUserObject_t object = nullptr;
  CHECK(cudaUserObjectCreate(&object, &ends, count, 1, 0) == cudaErrorInvalidValue);
  CHECK(cudaUserObjectCreate(&object, &ends, count, 1, cudaUserObjectNoDestructorSync) == cudaSuccess);
  cudaStream_t stream = makeStream();
  begin(stream);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr, captured = nullptr;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &captured) == cudaSuccess);
  CHECK(cudaGraphRetainUserObject(captured, object, 1, cudaGraphUserObjectMove) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph == captured);
  cudaGraph_t clone = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphClone(&clone, graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaGraphReleaseUserObject(clone, object, 2) == cudaErrorInvalidValue);
  CHECK(cudaGraphReleaseUserObject(clone, object, 1) == cudaSuccess && cudaGraphDestroy(clone) == cudaSuccess);
  CHECK(ends == 0 && cudaGraphExecDestroy(exec) == cudaSuccess && ends == 1);
  CHECK(cudaUserObjectRelease(object, 1) == cudaErrorInvalidValue);

  CHECK(cudaUserObjectCreate(&object, &ends, count, 2, cudaUserObjectNoDestructorSync) == cudaSuccess);
  CHECK(cudaUserObjectRelease(object, 3) == cudaErrorInvalidValue);
  CHECK(cudaUserObjectRetain(object, 1) == cudaSuccess && cudaUserObjectRelease(object, 2) == cudaSuccess);
  CHECK(ends == 1 && cudaUserObjectRelease(object, 1) == cudaSuccess && ends == 2);
}

// Nobody else could end its capture, which would forbid other threads to allocate. A relaxed one stays, for others.
void aThreadThatEndsTakesItsCapturesAlong() {
  cudaStream_t stream = makeStream(), relaxed = makeStream();
  std::thread([=] {
    begin(stream);
    begin(relaxed, cudaStreamCaptureModeRelaxed);
    CHECK(cudaMemsetAsync(nullptr, 0, 0, stream) == cudaSuccess);
  }).join();
  CHECK(statusOf(stream) == cudaStreamCaptureStatusNone && statusOf(relaxed) == cudaStreamCaptureStatusActive);
  void* device = nullptr;
  CHECK(cudaMalloc(&device, 16) == cudaSuccess && cudaFree(device) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState && cudaGetLastError() == cudaErrorIllegalState);
  CHECK(cudaStreamEndCapture(relaxed, &graph) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  begin(stream);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
}

}  // namespace

int main(int, char** arguments) {
  graphsKeepObjects();
  launchesRepeatWhatWasCaptured();
  eventsBringOtherStreamsIn(arguments[1]);
  capturesForbidWaiting();
  aThreadThatEndsTakesItsCapturesAlong();
}
