// Device-wide algorithms: each one task in the order of its stream. The first call, without temporary storage, says how
// much of it is wanted (one byte: the tasks keep their own).
#pragma once

#include "device/movement.cuh"
#include "device/select.cuh"
#include "device/sort.cuh"
#include "device/sums.cuh"
#include "device/transform.cuh"

#undef MXMACA_TASK
#undef MXMACA_STREAM
#undef MXMACA_STORAGE

CUB_NAMESPACE_BEGIN

// Allocation behind cub's interface; the device's own allocator is quick enough to need no cache.
struct CachingDeviceAllocator {
  template <class... Options>
  explicit CachingDeviceAllocator(Options...) {}
  cudaError_t DeviceAllocate(void** pointer, std::size_t bytes, cudaStream_t = 0) {
    return ::cudaMalloc(pointer, bytes);
  }
  cudaError_t DeviceAllocate(int device, void** pointer, std::size_t bytes, cudaStream_t = 0) {
    int before = 0;
    cudaError_t error = ::cudaGetDevice(&before);
    if (error == cudaSuccess) error = ::cudaSetDevice(device);
    if (error != cudaSuccess) return error;
    error = ::cudaMalloc(pointer, bytes);
    const cudaError_t back = ::cudaSetDevice(before);
    return error != cudaSuccess ? error : back;
  }
  cudaError_t DeviceFree(void* pointer) { return ::cudaFree(pointer); }
  cudaError_t DeviceFree(int, void* pointer) { return ::cudaFree(pointer); }
  cudaError_t SetMaxCachedBytes(std::size_t) { return cudaSuccess; }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

CUB_NAMESPACE_END
