// Device, pinned and pooled memory, pointer attributes and copies through the runtime interface.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

namespace {

void attributesOfInteriorAddresses() {
  char* device = nullptr;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&device), 5 << 20) == cudaSuccess);
  CHECK(reinterpret_cast<uintptr_t>(device) % (2 << 20) == 0);
  cudaPointerAttributes attributes;
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{4} << 20, (size_t{5} << 20) - 1}) {
    CHECK(cudaPointerGetAttributes(&attributes, device + offset) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    CHECK(attributes.devicePointer == device + offset && attributes.hostPointer == nullptr);
  }
  CHECK(cudaPointerGetAttributes(&attributes, device + (5 << 20)) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(device + 1) == cudaErrorInvalidValue);
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(cudaPointerGetAttributes(&attributes, device) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(device) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
}

void attributesOfHostMemory() {
  cudaPointerAttributes attributes;
  void* pinned = nullptr;
  CHECK(cudaHostAlloc(&pinned, 1000, cudaHostAllocDefault) == cudaSuccess);
  CHECK(cudaPointerGetAttributes(&attributes, pinned) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost && attributes.devicePointer == pinned &&
        attributes.hostPointer == pinned);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  std::vector<char> plain(10000);
  CHECK(cudaPointerGetAttributes(&attributes, plain.data()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaHostRegister(plain.data(), plain.size(), cudaHostRegisterDefault) == cudaSuccess);
  CHECK(cudaHostRegister(plain.data() + 10, 5, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaPointerGetAttributes(&attributes, plain.data() + 9999) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  CHECK(cudaHostUnregister(plain.data()) == cudaSuccess);
  CHECK(cudaHostUnregister(plain.data()) == cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
}

void copiesCheckTheirDirection() {
  std::vector<int> host(1000, 7);
  int* device = nullptr;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&device), 4000) == cudaSuccess);
  CHECK(cudaMemcpy(device, host.data(), 4000, cudaMemcpyHostToDevice) == cudaSuccess);
  std::vector<int> back(1000);
  CHECK(cudaMemcpy(back.data(), device, 4000, cudaMemcpyDeviceToHost) == cudaSuccess && back == host);
  CHECK(cudaMemcpy(back.data(), device, 4000, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaMemcpy(device, host.data(), 4000, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(back.data(), host.data(), 4000, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device, host.data(), 5000, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device, host.data(), 4, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemset(device, 1, 4000) == cudaSuccess && cudaMemset(device, 1, 4001) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host.data(), 1, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(back.data(), device, 4000, cudaMemcpyDeviceToHost) == cudaSuccess && back[999] == 0x01010101);
  cudaGetLastError();
  CHECK(cudaFree(device) == cudaSuccess);
}

void rowsWithPitch() {
  char source[3][8] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  char target[3][8] = {};
  char* device = nullptr;
  size_t pitch = 0;
  CHECK(cudaMallocPitch(reinterpret_cast<void**>(&device), &pitch, 3, 3) == cudaSuccess && pitch >= 3);
  CHECK(cudaMemset2D(device, pitch, 0, 3, 3) == cudaSuccess);
  CHECK(cudaMemcpy2D(device, pitch, source, 8, 3, 3, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy2DAsync(target, 8, device, pitch, 3, 3, cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
  CHECK(std::memcmp(source, target, sizeof source) == 0);
  CHECK(cudaMemcpy2D(device, 2, source, 8, 3, 3, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
  cudaGetLastError();
  CHECK(cudaFree(device) == cudaSuccess);
}

void poolsKeepWhatTheirThresholdAllows() {
  cudaMemPool_t pool = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  uint64_t threshold = UINT64_MAX;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess);
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  void* first = nullptr;
  void* second = nullptr;
  CHECK(cudaMallocAsync(&first, 100000, stream) == cudaSuccess && cudaFreeAsync(first, stream) == cudaSuccess);
  CHECK(cudaMallocAsync(&second, 100000, stream) == cudaSuccess && second == first);
  uint64_t used = 0;
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess && used >= 100000);
  CHECK(cudaFree(second) == cudaSuccess);
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess && used == 0);
  CHECK(cudaMemPoolTrimTo(pool, 0) == cudaSuccess);
  uint64_t reserved = 1;
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) == cudaSuccess && reserved == 0);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

}  // namespace

int main() {
  attributesOfInteriorAddresses();
  attributesOfHostMemory();
  copiesCheckTheirDirection();
  rowsWithPitch();
  poolsKeepWhatTheirThresholdAllows();
  void* none = &none;
  CHECK(cudaMalloc(&none, 0) == cudaSuccess && none == nullptr && cudaFree(nullptr) == cudaSuccess);
}
