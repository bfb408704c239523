// Streams with work that is held back: what waits for it, what does not, and what the runtime says about it.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

namespace {

// A host function that holds its stream back until the program lets it go.
struct Gate {
  std::atomic<bool> entered{false}, open{false};

  void hold(cudaStream_t stream) {
    CHECK(cudaLaunchHostFunc(
              stream,
              [](void* data) {
                auto& gate = *static_cast<Gate*>(data);
                gate.entered = true;
                while (!gate.open) std::this_thread::yield();
              },
              this) == cudaSuccess);
  }
};

void add(void* data) { ++*static_cast<std::atomic<int>*>(data); }

constexpr size_t kBytes = 1 << 20;

struct Memory {
  char *device = nullptr, *pinned = nullptr;
  Memory() {
    CHECK(cudaMalloc(reinterpret_cast<void**>(&device), kBytes) == cudaSuccess);
    CHECK(cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes) == cudaSuccess);
  }
  ~Memory() { CHECK(cudaFree(device) == cudaSuccess && cudaFreeHost(pinned) == cudaSuccess); }
};

cudaStream_t makeStream(unsigned int flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}
cudaEvent_t makeEvent(unsigned int flags = 0) {
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, flags) == cudaSuccess);
  return event;
}
bool busy(cudaError_t answer) {
  cudaGetLastError();
  return answer == cudaErrorNotReady;
}

void work_behind_is_late_and_the_rest_is_not() {
  Memory memory;
  Gate gate;
  const cudaStream_t held = makeStream(), other = makeStream();
  const cudaEvent_t before = makeEvent(), after = makeEvent();
  CHECK(cudaMemset(memory.device, 1, kBytes) == cudaSuccess);
  CHECK(cudaEventRecord(before, held) == cudaSuccess);
  gate.hold(held);
  CHECK(cudaMemsetAsync(memory.device, 2, kBytes, held) == cudaSuccess);
  CHECK(cudaMemcpyAsync(memory.pinned, memory.device, kBytes, cudaMemcpyDeviceToHost, held) == cudaSuccess);
  CHECK(cudaEventRecord(after, held) == cudaSuccess);
  CHECK(busy(cudaStreamQuery(held)) && busy(cudaEventQuery(after)) && cudaEventQuery(before) == cudaSuccess);
  float ms = -1;
  CHECK(busy(cudaEventElapsedTime(&ms, before, after)));

  char seen = 0;
  CHECK(cudaMemcpyAsync(&seen, memory.device, 1, cudaMemcpyDeviceToHost, other) == cudaSuccess && seen == 1);
  CHECK(cudaStreamQuery(other) == cudaSuccess && cudaStreamSynchronize(other) == cudaSuccess);

  std::thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open = true;
  }).detach();
  CHECK(cudaEventSynchronize(after) == cudaSuccess && cudaEventQuery(after) == cudaSuccess);
  CHECK(memory.pinned[0] == 2 && memory.pinned[kBytes - 1] == 2 && cudaStreamQuery(held) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, before, after) == cudaSuccess && ms >= 20 && ms < 20000);
}

void memory_of_the_caller_is_not_used_after_the_call() {
  Memory memory;
  Gate gate;
  const cudaStream_t held = makeStream();
  gate.hold(held);
  std::vector<char> small(1000, 3), large(kBytes, 4);
  CHECK(cudaMemcpyAsync(memory.device, small.data(), small.size(), cudaMemcpyHostToDevice, held) == cudaSuccess);
  std::memset(small.data(), 9, small.size());
  std::memset(memory.pinned, 5, kBytes);
  CHECK(cudaMemcpyAsync(memory.device + 1000, memory.pinned, 1000, cudaMemcpyHostToDevice, held) == cudaSuccess);
  CHECK(busy(cudaStreamQuery(held)));  // neither has waited
  std::thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    gate.open = true;
  }).detach();
  // These do.
  CHECK(cudaMemcpyAsync(memory.device + 2000, large.data(), 200000, cudaMemcpyHostToDevice, held) == cudaSuccess);
  std::vector<char> back(3000);
  CHECK(cudaMemcpyAsync(back.data(), memory.device, back.size(), cudaMemcpyDeviceToHost, held) == cudaSuccess);
  CHECK(back[0] == 3 && back[999] == 3 && back[1000] == 5 && back[2000] == 4);
}

void what_is_wrong_is_said_at_the_call() {
  Memory memory;
  Gate gate;
  const cudaStream_t held = makeStream();
  gate.hold(held);
  CHECK(cudaMemcpyAsync(memory.pinned, memory.device, 2 * kBytes, cudaMemcpyDeviceToHost, held) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(memory.device, 0, 2 * kBytes, held) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(memory.pinned, memory.device, 1, static_cast<cudaMemcpyKind>(7), held) ==
        cudaErrorInvalidMemcpyDirection);
  cudaGetLastError();
  gate.open = true;
  CHECK(cudaStreamSynchronize(held) == cudaSuccess);
}

void streams_wait_for_events() {
  Memory memory;
  Gate gate;
  const cudaStream_t held = makeStream(), second = makeStream(), third = makeStream();
  const cudaEvent_t event = makeEvent(cudaEventDisableTiming), last = makeEvent(cudaEventDisableTiming);
  std::atomic<int> count{0};
  gate.hold(held);
  CHECK(cudaEventRecord(event, held) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(second, add, &count) == cudaSuccess);
  CHECK(cudaEventRecord(last, second) == cudaSuccess && cudaStreamWaitEvent(third, last, 0) == cudaSuccess);
  CHECK(busy(cudaStreamQuery(second)) && busy(cudaStreamQuery(third)) && count == 0);
  // A record replaces the one before; who has waited for that waits for it still.
  CHECK(cudaEventRecord(event, makeStream()) == cudaSuccess && cudaEventQuery(event) == cudaSuccess);
  CHECK(busy(cudaStreamQuery(second)));
  // Both may go while somebody waits for them.
  CHECK(cudaEventDestroy(last) == cudaSuccess && cudaStreamDestroy(second) == cudaSuccess);
  gate.open = true;
  CHECK(cudaStreamSynchronize(third) == cudaSuccess && count == 1);
}

void the_legacy_stream_is_ordered_with_blocking_streams() {
  Memory memory;
  const cudaStream_t blocking = makeStream(cudaStreamDefault), free = makeStream();
  {
    Gate gate;
    gate.hold(blocking);
    CHECK(cudaMemsetAsync(memory.device, 1, kBytes, nullptr) == cudaSuccess);
    CHECK(busy(cudaStreamQuery(nullptr)) && busy(cudaStreamQuery(cudaStreamPerThread)));
    CHECK(cudaStreamQuery(free) == cudaSuccess);
    gate.open = true;
    CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess && cudaStreamQuery(blocking) == cudaSuccess);
  }
  {
    Gate gate;
    gate.hold(nullptr);
    CHECK(busy(cudaStreamQuery(blocking)) && busy(cudaStreamQuery(cudaStreamLegacy)));
    CHECK(cudaStreamQuery(free) == cudaSuccess);
    std::thread([] { CHECK(busy(cudaStreamQuery(cudaStreamPerThread))); }).join();
    gate.open = true;
    CHECK(cudaDeviceSynchronize() == cudaSuccess && cudaStreamQuery(blocking) == cudaSuccess);
  }
  {
    Gate gate;
    gate.hold(free);
    CHECK(cudaStreamQuery(nullptr) == cudaSuccess && cudaMemset(memory.device, 7, 1) == cudaSuccess);
    CHECK(!gate.open && busy(cudaStreamQuery(free)));
    gate.open = true;
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
}

void memory_is_freed_in_order() {
  Gate gate;
  const cudaStream_t held = makeStream();
  void *block = nullptr, *again = nullptr, *device = nullptr;
  CHECK(cudaMallocAsync(&block, 4096, held) == cudaSuccess);
  gate.hold(held);
  CHECK(cudaMemsetAsync(block, 1, 4096, held) == cudaSuccess && cudaFreeAsync(block, held) == cudaSuccess);
  CHECK(cudaFreeAsync(block, held) == cudaErrorInvalidValue);  // freed already, for the program
  cudaGetLastError();
  CHECK(cudaMallocAsync(&again, 4096, makeStream()) == cudaSuccess && again != block);
  // cudaFree waits for what may use the memory.
  CHECK(cudaMalloc(&device, 4096) == cudaSuccess);
  CHECK(cudaMemsetAsync(device, 1, 4096, held) == cudaSuccess);
  std::thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    gate.open = true;
  }).detach();
  CHECK(cudaFree(device) == cudaSuccess && cudaStreamQuery(held) == cudaSuccess);
  CHECK(cudaFreeAsync(again, held) == cudaSuccess);
}

void callbacks_run_in_order_and_know_their_stream() {
  struct Seen {
    cudaStream_t stream;
    cudaError_t status;
    std::atomic<int>* count;
    int at;
  };
  Gate gate;
  std::atomic<int> count{0};
  const cudaStream_t held = makeStream();
  Seen seen{nullptr, cudaErrorUnknown, &count, -1};
  gate.hold(held);
  CHECK(cudaLaunchHostFunc(held, add, &count) == cudaSuccess);
  const auto callback = [](cudaStream_t stream, cudaError_t status, void* data) {
    Seen& into = *static_cast<Seen*>(data);
    into.stream = stream;
    into.status = status;
    into.at = into.count->load();
  };
  CHECK(cudaStreamAddCallback(held, callback, &seen, 0) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(held, add, &count) == cudaSuccess && seen.at == -1);
  gate.open = true;
  CHECK(cudaStreamSynchronize(held) == cudaSuccess);
  CHECK(seen.at == 1 && count == 2 && seen.stream == held && seen.status == cudaSuccess);
}

void graphs_wait_too() {
  Memory memory;
  Gate gate;
  std::atomic<int> count{0};
  const cudaStream_t stream = makeStream();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaMemsetAsync(memory.device, 6, kBytes, stream) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(stream, add, &count) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess && count == 0);
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess);
  gate.hold(stream);
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess && cudaGraphLaunch(exec, stream) == cudaSuccess);
  CHECK(busy(cudaStreamQuery(stream)) && count == 0);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  gate.open = true;
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && count == 2);
  char seen = 0;
  CHECK(cudaMemcpy(&seen, memory.device, 1, cudaMemcpyDeviceToHost) == cudaSuccess && seen == 6);
}

void many_streams_are_held_at_once() {
  constexpr int kStreams = 40;
  std::vector<Gate> gates(kStreams);
  std::vector<cudaStream_t> streams;
  std::atomic<int> count{0};
  for (Gate& gate : gates) {
    streams.push_back(makeStream());
    gate.hold(streams.back());
    for (int i = 0; i < 10; ++i) CHECK(cudaLaunchHostFunc(streams.back(), add, &count) == cudaSuccess);
  }
  // Each has its turn, whatever the others wait for: the last first.
  for (Gate& gate : gates) {
    while (!gate.entered) std::this_thread::yield();
  }
  for (int i = kStreams - 1; i >= 0; --i) {
    gates[static_cast<size_t>(i)].open = true;
    CHECK(cudaStreamSynchronize(streams[static_cast<size_t>(i)]) == cudaSuccess);
    CHECK(count == 10 * (kStreams - i));
  }
}

}  // namespace

int main() {
  work_behind_is_late_and_the_rest_is_not();
  memory_of_the_caller_is_not_used_after_the_call();
  what_is_wrong_is_said_at_the_call();
  streams_wait_for_events();
  the_legacy_stream_is_ordered_with_blocking_streams();
  memory_is_freed_in_order();
  callbacks_run_in_order_and_know_their_stream();
  graphs_wait_too();
  many_streams_are_held_at_once();

  // The process ends whatever is held.
  static Gate forever;
  forever.hold(makeStream());
  while (!forever.entered) std::this_thread::yield();
}
