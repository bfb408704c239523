// How many blocks of a kernel a device holds at once, and which block size fills it best.
#pragma once

#include "cuda_runtime_api.h"

template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, T func, int blockSize,
                                                                          size_t dynamicSharedBytes,
                                                                          unsigned int flags) {
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, reinterpret_cast<const void*>(func),
                                                                  blockSize, dynamicSharedBytes, flags);
}

template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T func, int blockSize,
                                                                 size_t dynamicSharedBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, blockSize, dynamicSharedBytes,
                                                                cudaOccupancyDefault);
}

/// The block size, in whole warps and at most `blockSizeLimit` (0: what the kernel allows), with which most threads run
/// on a multiprocessor, and the blocks of it that fill the device. `dynamicSharedBytes` maps a block size to the bytes
/// of shared memory that a launch of it asks for.
template <class T, class SharedBytes>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int* minGridSize, int* blockSize, T func,
                                                                           SharedBytes dynamicSharedBytes,
                                                                           int blockSizeLimit = 0,
                                                                           unsigned int flags = 0) {
  if (minGridSize == nullptr || blockSize == nullptr) return cudaErrorInvalidValue;
  int device = 0, warp = 0, multiprocessors = 0;
  cudaFuncAttributes kernel;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = ::cudaFuncGetAttributes(&kernel, reinterpret_cast<const void*>(func));
  if (error != cudaSuccess) return error;
  int most = kernel.maxThreadsPerBlock;
  if (blockSizeLimit > 0 && blockSizeLimit < most) most = blockSizeLimit;
  int bestSize = 0, bestBlocks = 0;
  for (int warps = (most + warp - 1) / warp; warps > 0; --warps) {
    const int size = warps * warp < most ? warps * warp : most;
    int blocks = 0;
    error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, func, size, dynamicSharedBytes(size), flags);
    if (error != cudaSuccess) return error;
    if (blocks * size > bestBlocks * bestSize) {
      bestSize = size;
      bestBlocks = blocks;
    }
  }
  *minGridSize = bestBlocks * multiprocessors;
  *blockSize = bestSize;
  return cudaSuccess;
}

template <class T, class SharedBytes>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* minGridSize, int* blockSize, T func,
                                                                  SharedBytes dynamicSharedBytes,
                                                                  int blockSizeLimit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(minGridSize, blockSize, func, dynamicSharedBytes,
                                                                 blockSizeLimit);
}

template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, T func,
                                                               size_t dynamicSharedBytes = 0, int blockSizeLimit = 0,
                                                               unsigned int flags = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
      minGridSize, blockSize, func, [=](int) { return dynamicSharedBytes; }, blockSizeLimit, flags);
}

template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, T func,
                                                      size_t dynamicSharedBytes = 0, int blockSizeLimit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, dynamicSharedBytes, blockSizeLimit);
}

/// The dynamic shared memory that each of `blocks` blocks of a kernel on one multiprocessor can have, in bytes.
template <class T>
inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, T func, int blocks, int blockSize) {
  if (bytes == nullptr || blocks <= 0 || blockSize <= 0) return cudaErrorInvalidValue;
  int device = 0, all = 0, reserved = 0, most = 0;
  cudaFuncAttributes kernel;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess) error = ::cudaFuncGetAttributes(&kernel, reinterpret_cast<const void*>(func));
  if (error != cudaSuccess) return error;
  // Shared memory is given out in units of 128 bytes.
  const long long each = (all / blocks) / 128 * 128 - reserved;
  const long long whole = each < most ? each : most;
  const long long own = static_cast<long long>(kernel.sharedSizeBytes);
  *bytes = static_cast<size_t>(whole > own ? whole - own : 0);
  return cudaSuccess;
}
