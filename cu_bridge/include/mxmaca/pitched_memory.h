// Device memory of three dimensions, in rows of one pitch.
#pragma once

#include "textures.h"

/// Rows of `extent.width` bytes, `extent.height` of them in each of `extent.depth` slices, which follow each other.
static inline cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  void* pointer = nullptr;
  size_t pitch = 0, rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorMemoryAllocation;
  const cudaError_t error = ::cudaMallocPitch(&pointer, &pitch, extent.width, rows);
  if (error == cudaSuccess) *memory = make_cudaPitchedPtr(pointer, pitch, extent.width, extent.height);
  return error;
}

/// Sets the bytes of a box of `extent` at the memory's beginning; a slice has `memory.ysize` rows.
static inline cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent,
                                            cudaStream_t stream = 0) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  const bool inside = extent.width <= memory.pitch && (extent.depth == 1 || extent.height <= memory.ysize);
  if (memory.ptr == nullptr || !inside) return cudaErrorInvalidValue;
  for (size_t z = 0; z < extent.depth; ++z) {
    char* const slice = static_cast<char*>(memory.ptr) + z * memory.ysize * memory.pitch;
    const cudaError_t error = ::cudaMemset2DAsync(slice, memory.pitch, value, extent.width, extent.height, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
static inline cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  const cudaError_t error = cudaMemset3DAsync(memory, value, extent);
  return error != cudaSuccess ? error : ::cudaStreamSynchronize(0);
}
