// Many threads on the same streams of many devices: nothing is lost, and what one thread launches on a stream runs in
// its order.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int kThreads = 32, kStreams = 16;
constexpr size_t kBytes = 4096;  // of each thread, on each stream

struct Stream {
  cudaStream_t handle = nullptr;
  char *device = nullptr, *pinned = nullptr;
  std::atomic<long> ran[kThreads] = {};  // host functions of each thread
  std::atomic<bool> running{false};
};

struct Device {
  std::vector<std::unique_ptr<Stream>> streams;
};

struct Step {
  Stream* stream;
  int thread;
  long number;
};

void takeStep(void* data) {
  const std::unique_ptr<Step> step(static_cast<Step*>(data));
  CHECK(!step->stream->running.exchange(true));  // one at a time
  CHECK(step->stream->ran[step->thread].fetch_add(1) == step->number);
  step->stream->running = false;
}

void run(std::vector<Device>& devices, int thread, std::chrono::steady_clock::time_point end) {
  const size_t own = static_cast<size_t>(thread) * kBytes;
  std::mt19937 random(static_cast<unsigned>(thread));
  const auto pick = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  std::vector<std::vector<long>> submitted(devices.size(), std::vector<long>(kStreams));
  while (std::chrono::steady_clock::now() < end) {
    const size_t device = pick(devices.size());
    CHECK(cudaSetDevice(static_cast<int>(device)) == cudaSuccess);
    cudaEvent_t event = nullptr;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    for (int i = 0; i < 20; ++i) {
      const size_t number = pick(kStreams);
      Stream& stream = *devices[device].streams[number];
      Stream& other = *devices[device].streams[pick(kStreams)];
      switch (pick(6)) {
        case 0:
          CHECK(cudaLaunchHostFunc(stream.handle, takeStep, new Step{&stream, thread, submitted[device][number]++}) ==
                cudaSuccess);
          break;
        case 1: CHECK(cudaMemsetAsync(stream.device + own, 1, kBytes, stream.handle) == cudaSuccess); break;
        case 2:
          CHECK(cudaMemcpyAsync(stream.pinned + own, stream.device + own, kBytes, cudaMemcpyDeviceToHost,
                                stream.handle) == cudaSuccess);
          break;
        case 3:
          CHECK(cudaEventRecord(event, stream.handle) == cudaSuccess);
          CHECK(cudaStreamWaitEvent(other.handle, event, 0) == cudaSuccess);
          break;
        case 4: {
          const cudaError_t answer = cudaStreamQuery(stream.handle);
          CHECK(answer == cudaSuccess || answer == cudaErrorNotReady);
          break;
        }
        case 5: {
          void* block = nullptr;
          CHECK(cudaMallocAsync(&block, kBytes, stream.handle) == cudaSuccess);
          CHECK(cudaMemsetAsync(block, 2, kBytes, stream.handle) == cudaSuccess);
          CHECK(cudaFreeAsync(block, stream.handle) == cudaSuccess);
          break;
        }
      }
    }
    if (pick(10) == 0) CHECK(cudaEventSynchronize(event) == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
  }
  for (size_t device = 0; device < devices.size(); ++device) {
    CHECK(cudaSetDevice(static_cast<int>(device)) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
    for (size_t i = 0; i < kStreams; ++i) CHECK(devices[device].streams[i]->ran[thread] == submitted[device][i]);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 1;
  int number = 0;
  CHECK(cudaGetDeviceCount(&number) == cudaSuccess);
  std::vector<Device> devices(static_cast<size_t>(number));
  for (int device = 0; device < number; ++device) {
    CHECK(cudaSetDevice(device) == cudaSuccess);
    for (int i = 0; i < kStreams; ++i) {
      auto stream = std::make_unique<Stream>();
      const unsigned flags = i % 4 == 0 ? cudaStreamDefault : cudaStreamNonBlocking;
      CHECK(cudaStreamCreateWithPriority(&stream->handle, flags, -(i % 3)) == cudaSuccess);
      CHECK(cudaMalloc(reinterpret_cast<void**>(&stream->device), kThreads * kBytes) == cudaSuccess);
      CHECK(cudaMallocHost(reinterpret_cast<void**>(&stream->pinned), kThreads * kBytes) == cudaSuccess);
      devices[static_cast<size_t>(device)].streams.push_back(std::move(stream));
    }
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                          std::chrono::duration<double>(seconds));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back([&, thread] { run(devices, thread, end); });
  for (std::thread& thread : threads) thread.join();
  long steps = 0;
  for (Device& device : devices) {
    CHECK(cudaSetDevice(static_cast<int>(&device - devices.data())) == cudaSuccess);
    for (auto& stream : device.streams) {
      for (const auto& ran : stream->ran) steps += ran;
      CHECK(cudaStreamQuery(stream->handle) == cudaSuccess && cudaStreamDestroy(stream->handle) == cudaSuccess);
      CHECK(cudaFree(stream->device) == cudaSuccess && cudaFreeHost(stream->pinned) == cudaSuccess);
    }
  }
  std::printf("%ld host functions\n", steps);
  CHECK(steps > 0);
}
