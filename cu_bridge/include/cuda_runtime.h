// The CUDA runtime interface with its C++ conveniences.
#pragma once

#include "cuda_runtime_api.h"
#include "vector_functions.h"

#ifdef __cplusplus

template <class T>
inline cudaError_t cudaMalloc(T** pointer, size_t size) {
  return ::cudaMalloc(reinterpret_cast<void**>(pointer), size);
}

template <class T>
inline cudaError_t cudaMallocHost(T** pointer, size_t size, unsigned int flags = 0) {
  return ::cudaHostAlloc(reinterpret_cast<void**>(pointer), size, flags);
}

template <class T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t size, unsigned int flags) {
  return ::cudaHostAlloc(reinterpret_cast<void**>(pointer), size, flags);
}

template <class T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t size, unsigned int flags = cudaMemAttachGlobal) {
  return ::cudaMallocManaged(reinterpret_cast<void**>(pointer), size, flags);
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
  return ::cudaEventCreateWithFlags(event, flags);
}

template <class T>
inline cudaError_t cudaLaunchKernel(T* func, dim3 grid, dim3 block, void** args, size_t sharedMem = 0,
                                    cudaStream_t stream = 0) {
  return ::cudaLaunchKernel(reinterpret_cast<const void*>(func), grid, block, args, sharedMem, stream);
}

template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* func) {
  return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(func));
}

template <class T>
inline cudaError_t cudaFuncSetAttribute(T* func, cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(func), attribute, value);
}

template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T func, int blockSize,
                                                                 size_t dynamicSharedBytes) {
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(func), blockSize,
                                                         dynamicSharedBytes);
}

#endif
