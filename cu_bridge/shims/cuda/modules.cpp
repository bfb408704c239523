// Modules: shared objects of the host, made by cucc or NVRTC, and object files, made by Triton, loaded from memory. See
// Note [Modules].
//
// Note [Modules]
// ~~~~~~~~~~~~~~
// cucc's code registers its kernels with the runtime while the shared object loads, under the address of their host
// functions, and these carry the kernels' mangled names. So a function of a module is a symbol of the shared object
// that the runtime knows as a kernel, and its handle is that address. An object file has a table of its kernels; the
// runtime places it in memory itself, as there may be no linker, and finds the kernels by the names of the table. What
// NVIDIA's compilers make (cubin, PTX, fat binary) cannot run here and is refused as what it is.

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mc_kernel.h"
#include "mc_runtime.h"
#include "module_image.h"
#include "result.h"

// Either a shared object, with the handle and the file that it was opened by, or an object file.
struct CUmod_st {
  void* handle = nullptr;
  int file = -1;
  mcModule_t object = nullptr;
};

namespace {

CUresult fail(mcError_t error, const char* detail) { return result(mcSetLastError(error, detail)); }

struct Modules {
  std::mutex mutex;
  std::map<CUmodule, std::unique_ptr<CUmod_st>> live;
  std::map<CUfunction, CUmodule> owners;
};

Modules& modules() {
  static auto* const instance = new Modules;
  return *instance;
}

// What the module is; neither form where it is none.
CUmod_st partsOf(CUmodule module) {
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.live.find(module);
  return found == all.live.end() ? CUmod_st{} : *found->second;
}

bool isModule(CUmodule module) {
  const CUmod_st parts = partsOf(module);
  return parts.handle != nullptr || parts.object != nullptr;
}

CUresult keep(CUmodule* out, std::unique_ptr<CUmod_st> module) {
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  *out = module.get();
  all.live[module.get()] = std::move(module);
  return CUDA_SUCCESS;
}

// A library handle is a module's, a kernel's a function's.
CUmodule moduleOf(CUlibrary library) { return reinterpret_cast<CUmodule>(library); }

std::string folderEntry(int file) { return "/proc/self/fd/" + std::to_string(file); }

CUresult loadShared(CUmodule* out, const char* bytes, size_t size) {
  const int file = static_cast<int>(syscall(SYS_memfd_create, "mxmaca module", 1U /* close on exec */));
  if (file < 0) return fail(mcErrorOperatingSystem, std::strerror(errno));
  auto module = std::make_unique<CUmod_st>();
  for (size_t done = 0; done < size;) {
    const ssize_t wrote = write(file, bytes + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      close(file);
      return fail(mcErrorMemoryAllocation, "room for a module");
    }
    done += static_cast<size_t>(wrote);
  }
  module->handle = dlopen(folderEntry(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module->handle == nullptr) {
    const char* problem = dlerror();
    const CUresult error = fail(mcErrorInvalidKernelImage, problem != nullptr ? problem : "module");
    close(file);
    return error;
  }
  module->file = file;
  return keep(out, std::move(module));
}

CUresult loadObject(CUmodule* out, const void* bytes, size_t size) {
  auto module = std::make_unique<CUmod_st>();
  const mcError_t error = mcModuleLoadObject(&module->object, bytes, size);
  return error != mcSuccess ? result(error) : keep(out, std::move(module));
}

CUresult load(CUmodule* out, const void* image) {
  int count = 0;
  NEEDS_CONTEXT();
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcGetDeviceCount(&count);
  if (error != mcSuccess) return result(error);
  if (mcStickyError() != mcSuccess) return result(mcStickyError());
  switch (imageKind(image)) {
    case ImageKind::kModule: return loadShared(out, static_cast<const char*>(image), moduleSize(image));
    case ImageKind::kObject: return loadObject(out, image, moduleSize(image));
    case ImageKind::kModuleText: {
      const std::string module = moduleFromText(static_cast<const char*>(image));
      if (module.empty()) return fail(mcErrorInvalidKernelImage, "text form of a module, damaged");
      return loadShared(out, module.data(), module.size());
    }
    case ImageKind::kPtx: return fail(mcErrorInvalidPtx, "PTX cannot run on this device: compile its source with cucc");
    case ImageKind::kFatbinary: return fail(mcErrorNoKernelImageForDevice, "fat binary of NVIDIA's nvcc");
    case ImageKind::kGpuCode: return fail(mcErrorNoKernelImageForDevice, "cubin of an NVIDIA GPU");
    case ImageKind::kUnknown: break;
  }
  return fail(mcErrorInvalidKernelImage, "neither a module of cucc or NVRTC nor a kernel of Triton");
}

CUresult findFunction(CUfunction* function, CUmodule module, const char* name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUmod_st parts = partsOf(module);
  if (parts.handle == nullptr && parts.object == nullptr) return fail(mcErrorInvalidResourceHandle, "module");
  const void* found = nullptr;
  if (parts.object != nullptr) {
    if (mcModuleGetKernel(&found, parts.object, name) != mcSuccess) return fail(mcErrorSymbolNotFound, name);
  } else {
    found = dlsym(parts.handle, name);
    // A symbol of a library that the module needs is none of the module's.
    if (found == nullptr || mcKernelCheck(found) != mcSuccess) return fail(mcErrorSymbolNotFound, name);
  }
  *function = static_cast<CUfunction>(const_cast<void*>(found));
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.owners[*function] = module;
  return CUDA_SUCCESS;
}

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

constexpr int kLastJitOption = 40, kLastLibraryOption = 1;

// Lists of options: ids from 0 on, and their values.
template <class Option>
mcError_t checkOptions(unsigned int count, const Option* options, void** values, int last) {
  if (count != 0 && (options == nullptr || values == nullptr)) return mcErrorInvalidValue;
  for (unsigned int i = 0; i < count; ++i) {
    const int option = options[i];
    if (option < 0 || option > last) return mcErrorInvalidValue;
  }
  return mcSuccess;
}

CUresult checkLibraryOptions(const CUjit_option* options, void** values, unsigned int count,
                             const CUlibraryOption* libraryOptions, void** libraryValues, unsigned int libraryCount) {
  RETURN_IF_WRONG(checkOptions(count, options, values, kLastJitOption));
  RETURN_IF_WRONG(checkOptions(libraryCount, libraryOptions, libraryValues, kLastLibraryOption));
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
  mcProfileDriverCall(1);
  const mcError_t error = launcher(function, grid, block, arguments, sharedBytes, own(stream));
  mcProfileDriverCall(-1);
  return whole && isFault(error) ? CUDA_SUCCESS : result(error);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image); }
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return load(module, image); }

// The options speak of registers, caches and logs of an assembler; there is none.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                            void** values) {
  RETURN_IF_WRONG(checkOptions(count, options, values, kLastJitOption));
  const CUresult error = load(module, image);
  char* log = nullptr;
  size_t room = 0;
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) room = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (log != nullptr && room != 0) {
    std::snprintf(log, room, "%s", error == CUDA_SUCCESS ? "" : mcGetErrorString(static_cast<mcError_t>(error)));
  }
  return error;
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "rbe"), std::fclose);
  if (file == nullptr) return fail(mcErrorFileNotFound, path);
  // Zeros at the end: a text ends there, and a header can be read from the shortest file.
  std::string image;
  char buffer[1 << 16];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file.get())) != 0;) image.append(buffer, got);
  const size_t bytes = image.size();
  image.append(64, '\0');
  const ImageKind kind = imageKind(image.data());
  if ((kind == ImageKind::kModule || kind == ImageKind::kObject) && moduleSize(image.data()) > bytes) {
    return fail(mcErrorInvalidKernelImage, (std::string(path) + ", cut short").c_str());
  }
  return load(module, image.data());
}

CUresult cuModuleUnload(CUmodule module) {
  Modules& all = modules();
  std::unique_ptr<CUmod_st> gone;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.live.find(module);
    if (found == all.live.end()) return fail(mcErrorInvalidResourceHandle, "module");
    gone = std::move(found->second);
    all.live.erase(found);
    for (auto it = all.owners.begin(); it != all.owners.end();) {
      it = it->second == module ? all.owners.erase(it) : std::next(it);
    }
  }
  if (gone->object != nullptr) {
    mcModuleUnregister(gone->object);
    return CUDA_SUCCESS;
  }
  dlclose(gone->handle);
  // The loader knows a library by the name it was opened with. As long as this one stays (it may not be unloadable),
  // its descriptor, which is its name, must not come to stand for another.
  void* const stays = dlopen(folderEntry(gone->file).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (stays == nullptr) {
    close(gone->file);
  } else {
    dlclose(stays);
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return findFunction(function, module, name);
}

CUresult cuModuleGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUmodule module, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUmod_st parts = partsOf(module);
  if (parts.handle == nullptr && parts.object == nullptr) return fail(mcErrorInvalidResourceHandle, "module");
  void* address = nullptr;
  size_t size = 0;
  if (parts.object != nullptr) {
    if (mcModuleGetVariable(&address, &size, parts.object, name) != mcSuccess) return fail(mcErrorSymbolNotFound, name);
  } else {
    void* const found = dlsym(parts.handle, name);
    if (found == nullptr) return fail(mcErrorSymbolNotFound, name);
    if (mcVariableGet(&address, &size, found) != mcSuccess) return fail(mcErrorSymbolNotFound, name);
  }
  if (pointer != nullptr) *pointer = ::pointer(address);
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values,
                           unsigned int count, CUlibraryOption* libraryOptions, void** libraryValues,
                           unsigned int libraryCount) {
  const CUresult error = checkLibraryOptions(options, values, count, libraryOptions, libraryValues, libraryCount);
  return error != CUDA_SUCCESS ? error : load(reinterpret_cast<CUmodule*>(library), image);
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
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcKernelCheck(kernel);
  if (error == mcSuccess) *function = reinterpret_cast<CUfunction>(kernel);
  return result(error);
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.owners.find(function);
  if (found == all.owners.end()) return fail(mcErrorInvalidResourceHandle, "function");
  *module = found->second;
  return CUDA_SUCCESS;
}

// A kernel's symbol is a function's, from the start.
CUresult cuFuncLoad(CUfunction function) { return result(mcKernelCheck(function)); }

CUresult cuLaunchKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                        unsigned int blockX, unsigned int blockY, unsigned int blockZ, unsigned int sharedBytes,
                        CUstream stream, void** arguments, void** extra) {
  return launch(&mcLaunchKernel, function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream,
                arguments, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                                   unsigned int blockX, unsigned int blockY, unsigned int blockZ,
                                   unsigned int sharedBytes, CUstream stream, void** arguments) {
  return launch(&mcLaunchCooperative, function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream,
                arguments, nullptr);
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
CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction function,
                                          CUoccupancyB2DSize dynamicSharedBytesOf, size_t dynamicSharedBytes,
                                          int blockSizeLimit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, function, dynamicSharedBytesOf,
                                                   dynamicSharedBytes, blockSizeLimit, 0);
}

}  // extern "C"
#pragma GCC visibility pop
