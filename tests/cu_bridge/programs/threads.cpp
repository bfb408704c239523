// Many threads allocate, copy, look up and free at once; each finds its own memory and its own last error.
#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

int main() {
  std::atomic<int> failures{0};
  const auto work = [&failures](int id) {
    cudaSetDevice(id % 2);
    cudaStream_t stream = nullptr;
    failures += cudaStreamCreate(&stream) != cudaSuccess;
    for (int round = 0; round < 300; ++round) {
      const size_t count = 1 + static_cast<size_t>(id * 7919 + round * 104729) % 50000;
      std::vector<int> host(count, id * 1000 + round);
      int* device = nullptr;
      cudaPointerAttributes attributes;
      int current = -1;
      const bool pooled = round % 2 == 1;
      failures += (pooled ? cudaMallocAsync(reinterpret_cast<void**>(&device), count * 4, stream)
                          : cudaMalloc(reinterpret_cast<void**>(&device), count * 4)) != cudaSuccess;
      failures += cudaMemcpyAsync(device, host.data(), count * 4, cudaMemcpyHostToDevice, stream) != cudaSuccess;
      failures += cudaPointerGetAttributes(&attributes, device + count / 2) != cudaSuccess;
      failures += attributes.type != cudaMemoryTypeDevice || attributes.device != id % 2;
      failures += cudaGetDevice(&current) != cudaSuccess || current != id % 2;
      std::vector<int> back(count);
      failures += cudaMemcpyAsync(back.data(), device, count * 4, cudaMemcpyDeviceToHost, stream) != cudaSuccess;
      failures += back != host;
      if (id == 0) failures += cudaSetDevice(99) != cudaErrorInvalidDevice;
      failures += cudaGetLastError() != (id == 0 ? cudaErrorInvalidDevice : cudaSuccess);
      failures += (pooled ? cudaFreeAsync(device, stream) : cudaFree(device)) != cudaSuccess;
    }
    failures += cudaStreamDestroy(stream) != cudaSuccess;
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < 8; ++id) threads.emplace_back(work, id);
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}
