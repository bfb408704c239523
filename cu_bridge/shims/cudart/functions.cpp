// Kernels: registration, handles, launches, attributes, occupancy.

#include <cstring>

#include "convert.h"
#include "mc_kernel.h"

#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void*) { return reinterpret_cast<void**>(mcModuleRegister()); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { mcModuleUnregister(reinterpret_cast<mcModule_t>(handle)); }
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* hostFunction, char*, const char* deviceName, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  mcKernelRegister(reinterpret_cast<mcModule_t>(handle), hostFunction, deviceName);
}
void __cudaRegisterVar(void** handle, char* hostVariable, char*, const char* deviceName, int, size_t size, int, int) {
  mcVariableRegister(reinterpret_cast<mcModule_t>(handle), hostVariable, deviceName, size);
}
void __cudaRegisterManagedVar(void** handle, void** hostVariable, char*, const char* deviceName, int, size_t size, int,
                              int) {
  mcVariableRegister(reinterpret_cast<mcModule_t>(handle), hostVariable, deviceName, size);
}

namespace {
struct Configuration {
  dim3 grid, block;
  size_t sharedBytes;
  cudaStream_t stream;
};
// One for both kinds: glibc keeps little room for variables of threads, and a kernel runs when its launch is taken.
thread_local Configuration configuration;
enum class Configured : unsigned char { kNothing, kLaunch, kChild };
thread_local Configured configured = Configured::kNothing;
}  // namespace

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream) {
  if (mcInKernel()) {
    mcKernelFail(mcErrorCdpNotSupported, "a launch from device code that was compiled without -rdc=true");
  }
  configuration = {grid, block, sharedBytes, stream};
  configured = Configured::kLaunch;
  return 0;
}

// The same in device code; see mxmaca/kernel_interface.h.
unsigned __cudaPushChildConfiguration(dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream) {
  configuration = {grid, block, sharedBytes, stream};
  configured = Configured::kChild;
  return 0;
}
int __cudaChildWanted(void) { return configured == Configured::kChild ? 1 : 0; }

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream) {
  if (grid == nullptr || block == nullptr || sharedBytes == nullptr || stream == nullptr) {
    return fail(mcErrorInvalidValue);
  }
  if (configured == Configured::kNothing) return fail(mcErrorMissingConfiguration);
  *grid = configuration.grid;
  *block = configuration.block;
  *sharedBytes = configuration.sharedBytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  configured = Configured::kNothing;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                             cudaStream_t stream) {
  return result(mcLaunchKernel(func, own(grid), own(block), args, sharedBytes, own(stream)));
}
cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                        cudaStream_t stream) {
  return result(mcLaunchCooperative(func, own(grid), own(block), args, sharedBytes, own(stream)));
}

// A kernel handle is the address of its host function. Code of the compiler's asks for the handle of each kernel that
// it launches, and hears from the launch if it is none.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* func) {
  if (kernel == nullptr) return fail(mcErrorInvalidValue);
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(func));
  return cudaSuccess;
}
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* func) {
  if (kernel == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcKernelKnown(func);
  return error == mcSuccess ? __cudaGetKernel(kernel, func) : result(error);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, args, sharedBytes, stream);
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (function == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcKernelKnown(symbol);
  if (error == mcSuccess) *function = static_cast<cudaFunction_t>(const_cast<void*>(symbol));
  return result(error);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* func) {
  if (attributes == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcKernelCheck(func);
  if (error != mcSuccess) return result(error);
  std::memset(attributes, 0, sizeof *attributes);
  const mcKernelFacts facts = kernelFacts(func);
  attributes->maxThreadsPerBlock = static_cast<int>(facts.maxThreads);
  attributes->sharedSizeBytes = facts.staticShared;
  attributes->numRegs = mc::limits::kKernelRegisters;
  attributes->ptxVersion = attributes->binaryVersion = mc::limits::kCapability;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(facts.maxDynamicShared);
  attributes->preferredShmemCarveout = -1;
  return cudaSuccess;
}
cudaError_t cudaFuncGetName(const char** name, const void* func) {
  if (name == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcKernelCheck(func);
  return result(error == mcSuccess ? mcKernelGetName(name, func) : error);
}
cudaError_t cudaFuncGetParamInfo(const void* func, size_t index, size_t* offset, size_t* size) {
  return result(kernelParameter(func, index, offset, size));
}
cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attribute, int value) {
  RETURN_IF_WRONG(setFunctionAttribute(func, attribute, value));
  return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void* func, cudaFuncCache config) {
  RETURN_IF_WRONG(checkCacheConfig(config));
  return result(mcKernelCheck(func));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* func, int blockSize,
                                                                   size_t dynamicSharedBytes, unsigned int flags) {
  constexpr unsigned int kDisableCachingOverride = 1;
  if (blocks == nullptr || blockSize <= 0) return fail(mcErrorInvalidValue);
  RETURN_IF_WRONG(checkFlags(flags, kDisableCachingOverride));
  const mcError_t error = mcKernelCheck(func);
  if (error != mcSuccess) return result(error);
  *blocks = static_cast<int>(mcKernelBlocksPerMultiprocessor(static_cast<unsigned int>(blockSize), dynamicSharedBytes));
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* func, int blockSize,
                                                          size_t dynamicSharedBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, blockSize, dynamicSharedBytes, 0);
}

}  // extern "C"
#pragma GCC visibility pop
