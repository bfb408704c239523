// Launches of the driver interface, and what is asked about kernels before them.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "launching/attributes.h"
#include "mc_kernel.h"
#include "profiling/told.h"
#include "result.h"

namespace {

// Where the parameters lie in a packed buffer: each at the next place of its alignment.
CUresult unpack(CUfunction function, void** extra, std::vector<void*>* arguments) {
  char* buffer = nullptr;
  size_t room = 0;
  for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
    if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<char*>(at[1]);
    } else if (at[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      room = *static_cast<size_t*>(at[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  size_t offset = 0, bytes = 0, alignment = 1;
  for (unsigned int i = 0; mcKernelGetParameter(function, i, &bytes, &alignment) == mcSuccess; ++i) {
    offset = (offset + alignment - 1) / alignment * alignment;
    if (buffer == nullptr || offset + bytes > room) return CUDA_ERROR_INVALID_VALUE;
    arguments->push_back(buffer + offset);
    offset += bytes;
  }
  mcGetLastError();  // the one that said that there is no further parameter
  return CUDA_SUCCESS;
}

using Launcher = mcError_t (*)(const void*, mcDim3, mcDim3, void**, size_t, mcStream_t);

// What a kernel does wrong while it runs. On hardware the launch has returned by then, and it is the next call that
// fails: the error is a lasting one here as well.
bool isFault(mcError_t error) {
  return error == mcErrorAssert || error == mcErrorIllegalAddress || error == mcErrorLaunchFailure ||
         error == mcErrorLaunchTimeout;
}

CUresult launch(Launcher launcher, CUfunction function, mcDim3 grid, mcDim3 block, unsigned int sharedBytes,
                CUstream stream, void** arguments, void** extra) {
  std::vector<void*> unpacked;
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(mcKernelKnown(function));
  if (extra != nullptr) {
    if (arguments != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult error = unpack(function, extra, &unpacked);
    if (error != CUDA_SUCCESS) return error;
    arguments = unpacked.data();
  }
  const bool whole = mcStickyError() == mcSuccess;
  const mcError_t error = launcher(function, grid, block, arguments, sharedBytes, own(stream));
  return whole && isFault(error) ? CUDA_SUCCESS : result(error);
}

// The attributes of both interfaces have one layout and one numbering, under names of their own.
static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute), "layout of a launch's attribute");
static_assert(offsetof(CUlaunchAttribute, value) == offsetof(cudaLaunchAttribute, val),
              "place of an attribute's value");

mcDim3 gridOf(const CUlaunchConfig& config) { return {config.gridDimX, config.gridDimY, config.gridDimZ}; }

mcError_t readConfig(const CUlaunchConfig& config, LaunchWishes* wishes) {
  const char* detail = nullptr;
  const auto* const attributes = reinterpret_cast<const cudaLaunchAttribute*>(config.attrs);
  const mcError_t error = readAttributes(gridOf(config), attributes, config.numAttrs, wishes, &detail);
  return error != mcSuccess ? mcSetLastError(error, detail) : mcSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                        unsigned int blockX, unsigned int blockY, unsigned int blockZ, unsigned int sharedBytes,
                        CUstream stream, void** arguments, void** extra) {
  const auto work = [&] {
    return launch(&mcLaunchKernel, function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream,
                  arguments, extra);
  };
  return told({307, mcCallLaunchKernel, true}, function, work, function, gridX, gridY, gridZ, blockX, blockY, blockZ,
              sharedBytes, stream, arguments, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                                   unsigned int blockX, unsigned int blockY, unsigned int blockZ,
                                   unsigned int sharedBytes, CUstream stream, void** arguments) {
  const auto work = [&] {
    return launch(&mcLaunchCooperative, function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream,
                  arguments, nullptr);
  };
  return told({477, mcCallLaunchCooperative, true}, function, work, function, gridX, gridY, gridZ, blockX, blockY,
              blockZ, sharedBytes, stream, arguments);
}
namespace {
CUresult launchWithAttributes(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  RETURN_IF_NULL(config);
  LaunchWishes wishes;
  const mcError_t wrong = readConfig(*config, &wishes);
  if (wrong != mcSuccess) return result(wrong);
  CUresult status = launch(wishes.cooperative ? &mcLaunchCooperative : &mcLaunchKernel, function, gridOf(*config),
                           {config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes,
                           config->hStream, arguments, extra);
  if (mcStickyError() != mcSuccess) return status;  // the next call says it
  for (int i = 0; i < wishes.events && status == CUDA_SUCCESS; ++i) {
    status = result(mcEventRecord(own(wishes.recorded[i]), own(config->hStream)));
  }
  return status;
}
}  // namespace
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  const auto work = [&] { return launchWithAttributes(config, function, arguments, extra); };
  return told({652, mcCallLaunchKernel, true}, function, work, config, function, arguments, extra);
}

// Clusters are of one block here: the largest that any kernel can have, and as many run at once as blocks do.
CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig* config) {
  if (size == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mcKernelCheck(function));
  *size = 1;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  LaunchWishes wishes;
  if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mcKernelCheck(function));
  const mcError_t wrong = readConfig(*config, &wishes);  // larger clusters are refused
  if (wrong != mcSuccess) return result(wrong);
  const unsigned long long threads = 1ULL * config->blockDimX * config->blockDimY * config->blockDimZ;
  int device = 0;
  mcDeviceProperties properties;
  RETURN_IF_WRONG(valueError(threads != 0 && threads <= kernelFacts(function).maxThreads));
  RETURN_IF_WRONG(mcGetDevice(&device));
  RETURN_IF_WRONG(mcGetDeviceProperties(&properties, device));
  *clusters =
      static_cast<int>(mcKernelBlocksPerMultiprocessor(static_cast<unsigned int>(threads), config->sharedMemBytes)) *
      properties.multiprocessors;
  return CUDA_SUCCESS;
}

namespace {
constexpr int kPtxVersion = 5, kBinaryVersion = 6, kLastFunctionAttribute = 15;
}  // namespace

// What holds for a kernel here; the rest of the attributes speaks of registers and caches, of which there are none.
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcKernelCheck(function);
  if (error != mcSuccess) return result(error);
  const mcKernelFacts facts = kernelFacts(function);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(facts.maxThreads); break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = static_cast<int>(facts.maxDynamicShared); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(facts.staticShared); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = mc::limits::kKernelRegisters; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
    default:
      if (attribute < 0 || attribute > kLastFunctionAttribute) return CUDA_ERROR_INVALID_VALUE;
      *value = attribute == kPtxVersion || attribute == kBinaryVersion ? mc::limits::kCapability : 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  RETURN_IF_WRONG(setFunctionAttribute(function, attribute, value));
  return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  RETURN_IF_WRONG(checkCacheConfig(config));
  return result(mcKernelCheck(function));
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int blockSize,
                                                     size_t dynamicSharedBytes) {
  if (blocks == nullptr || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcKernelCheck(function);
  if (error != mcSuccess) return result(error);
  *blocks = static_cast<int>(mcKernelBlocksPerMultiprocessor(static_cast<unsigned int>(blockSize), dynamicSharedBytes));
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int blockSize,
                                                              size_t dynamicSharedBytes, unsigned int flags) {
  constexpr unsigned int kDisableCachingOverride = 1;
  RETURN_IF_WRONG(checkFlags(flags, kDisableCachingOverride));
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, blockSize, dynamicSharedBytes);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction function,
                                                   CUoccupancyB2DSize dynamicSharedBytesOf, size_t dynamicSharedBytes,
                                                   int blockSizeLimit, unsigned int flags) {
  constexpr unsigned int kDisableCachingOverride = 1;
  RETURN_IF_WRONG(checkFlags(flags, kDisableCachingOverride));
  if (minGridSize == nullptr || blockSize == nullptr || blockSizeLimit < 0) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mcKernelCheck(function));
  int device = 0;
  mcDeviceProperties properties;
  mcError_t error = mcGetDevice(&device);
  if (error == mcSuccess) error = mcGetDeviceProperties(&properties, device);
  RETURN_IF_WRONG(error);
  constexpr int kWarp = 32;
  int most = static_cast<int>(kernelFacts(function).maxThreads);
  if (blockSizeLimit > 0 && blockSizeLimit < most) most = blockSizeLimit;
  int bestSize = 0, bestBlocks = 0;
  for (int warps = (most + kWarp - 1) / kWarp; warps > 0; --warps) {
    const int size = warps * kWarp < most ? warps * kWarp : most;
    const size_t bytes = dynamicSharedBytesOf != nullptr ? dynamicSharedBytesOf(size) : dynamicSharedBytes;
    const auto blocks = static_cast<int>(mcKernelBlocksPerMultiprocessor(static_cast<unsigned int>(size), bytes));
    if (blocks * size > bestBlocks * bestSize) {
      bestSize = size;
      bestBlocks = blocks;
    }
  }
  *minGridSize = bestBlocks * properties.multiprocessors;
  *blockSize = bestSize;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks, int blockSize) {
  if (bytes == nullptr || blocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mcKernelCheck(function));
  // As in cudaOccupancyAvailableDynamicSMemPerBlock: given out in units of 128 bytes.
  constexpr size_t kUnit = 128;
  const size_t each = mc::limits::kSharedPerMultiprocessor / static_cast<size_t>(blocks) / kUnit * kUnit;
  const size_t taken = mc::limits::kSharedReserved + kernelFacts(function).staticShared;
  const size_t most = mc::limits::kSharedPerBlockOptin - kernelFacts(function).staticShared;
  *bytes = each > taken ? std::min(each - taken, most) : 0;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction function,
                                          CUoccupancyB2DSize dynamicSharedBytesOf, size_t dynamicSharedBytes,
                                          int blockSizeLimit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, function, dynamicSharedBytesOf,
                                                   dynamicSharedBytes, blockSizeLimit, 0);
}

}  // extern "C"
#pragma GCC visibility pop
