// Libraries, which are modules, and their kernels, which are functions: the interface that does without contexts. And
// what is asked about the functions of both.

#include <algorithm>

#include "contexts.h"
#include "mc_kernel.h"
#include "modules.h"

namespace {

constexpr int kLastLibraryOption = 1;

// A library handle is a module's, a kernel's a function's.
CUmodule moduleOf(CUlibrary library) { return reinterpret_cast<CUmodule>(library); }
CUfunction functionOf(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

CUresult checkLibraryOptions(const CUjit_option* options, void** values, unsigned int count,
                             const CUlibraryOption* libraryOptions, void** libraryValues, unsigned int libraryCount) {
  RETURN_IF_WRONG(checkOptions(count, options, values, kLastJitOption));
  RETURN_IF_WRONG(checkOptions(libraryCount, libraryOptions, libraryValues, kLastLibraryOption));
  return CUDA_SUCCESS;
}

CUresult countOf(unsigned int* count, CUmodule module, const char* what) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!isModule(module)) return fail(mcErrorInvalidResourceHandle, what);
  *count = static_cast<unsigned int>(functionsOf(module).size());
  return CUDA_SUCCESS;
}

CUresult enumerate(CUfunction* functions, unsigned int room, CUmodule module, const char* what) {
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!isModule(module)) return fail(mcErrorInvalidResourceHandle, what);
  const std::vector<CUfunction> all = functionsOf(module);
  std::copy_n(all.begin(), std::min<size_t>(room, all.size()), functions);
  return CUDA_SUCCESS;
}

CUresult nameOf(const char** name, const void* function) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mcKernelCheck(function));
  return result(mcKernelGetName(name, function));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values,
                           unsigned int count, CUlibraryOption* libraryOptions, void** libraryValues,
                           unsigned int libraryCount) {
  const CUresult error = checkLibraryOptions(options, values, count, libraryOptions, libraryValues, libraryCount);
  return error != CUDA_SUCCESS ? error : loadModule(reinterpret_cast<CUmodule*>(library), image);
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                               unsigned int count, CUlibraryOption* libraryOptions, void** libraryValues,
                               unsigned int libraryCount) {
  const CUresult error = checkLibraryOptions(options, values, count, libraryOptions, libraryValues, libraryCount);
  return error != CUDA_SUCCESS ? error : cuModuleLoad(reinterpret_cast<CUmodule*>(library), path);
}
CUresult cuLibraryUnload(CUlibrary library) { return cuModuleUnload(moduleOf(library)); }
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!isModule(moduleOf(library))) return fail(mcErrorInvalidResourceHandle, "library");
  *module = moduleOf(library);
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return findFunction(reinterpret_cast<CUfunction*>(kernel), moduleOf(library), name);
}
CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUlibrary library, const char* name) {
  return cuModuleGetGlobal(pointer, bytes, moduleOf(library), name);
}
// A managed variable is one of the device's, which the host reaches as everything.
CUresult cuLibraryGetManaged(CUdeviceptr* pointer, size_t* bytes, CUlibrary library, const char* name) {
  return cuModuleGetGlobal(pointer, bytes, moduleOf(library), name);
}
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  return countOf(count, moduleOf(library), "library");
}
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int room, CUlibrary library) {
  return enumerate(reinterpret_cast<CUfunction*>(kernels), room, moduleOf(library), "library");
}
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule module) { return countOf(count, module, "module"); }
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int room, CUmodule module) {
  return enumerate(functions, room, module, "module");
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcKernelCheck(kernel);
  if (error == mcSuccess) *function = reinterpret_cast<CUfunction>(kernel);
  return result(error);
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) { return nameOf(name, kernel); }
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmodule const module = ownerOf(functionOf(kernel));
  if (module == nullptr) return fail(mcErrorInvalidResourceHandle, "kernel");
  *library = reinterpret_cast<CUlibrary>(module);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  RETURN_IF_WRONG(checkDevice(device));
  return cuFuncGetAttribute(value, attribute, functionOf(kernel));
}
// A kernel has one limit for all devices.
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  RETURN_IF_WRONG(checkDevice(device));
  return cuFuncSetAttribute(functionOf(kernel), attribute, value);
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  RETURN_IF_WRONG(checkDevice(device));
  return cuFuncSetCacheConfig(functionOf(kernel), config);
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return result(kernelParameter(kernel, index, offset, size));
}

// ---- Functions ------------------------------------------------------------------------------------------------------

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmodule const owner = ownerOf(function);
  if (owner == nullptr) return fail(mcErrorInvalidResourceHandle, "function");
  *module = owner;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) { return nameOf(name, function); }
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return result(kernelParameter(function, index, offset, size));
}
// A kernel's symbol is a function's, from the start.
CUresult cuFuncLoad(CUfunction function) { return result(mcKernelCheck(function)); }
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mcKernelCheck(function));
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
