// Modules: shared objects of the host, made by cucc or NVRTC, loaded from memory. See Note [Modules].
//
// Note [Modules]
// ~~~~~~~~~~~~~~
// cucc's code registers its kernels with the runtime while the shared object loads, under the address of their host
// functions, and these carry the kernels' mangled names. So a function of a module is a symbol of the shared object that
// the runtime knows as a kernel, and its handle is that address. What NVIDIA's compilers make (cubin, PTX, fat binary)
// cannot run here and is refused as what it is.

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

#include "mc_runtime.h"
#include "module_image.h"
#include "refuse.h"

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

struct CUmod_st {
  void* handle = nullptr;
  int file = -1;
};

namespace {

using mxmaca::ImageKind;

CUresult result(mcError_t error) { return static_cast<CUresult>(error); }
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

void* handleOf(CUmodule module) {
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.live.find(module);
  return found == all.live.end() ? nullptr : found->second->handle;
}

// A library handle is a module's, a kernel's a function's.
CUmodule own(CUlibrary library) { return reinterpret_cast<CUmodule>(library); }

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
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  *out = module.get();
  all.live[module.get()] = std::move(module);
  return CUDA_SUCCESS;
}

CUresult load(CUmodule* out, const void* image) {
  int count = 0;
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcGetDeviceCount(&count);
  if (error != mcSuccess) return result(error);
  if (mcStickyError() != mcSuccess) return result(mcStickyError());
  switch (mxmaca::imageKind(image)) {
    case ImageKind::kModule: return loadShared(out, static_cast<const char*>(image), mxmaca::moduleSize(image));
    case ImageKind::kModuleText: {
      const std::string module = mxmaca::moduleFromText(static_cast<const char*>(image));
      if (module.empty()) return fail(mcErrorInvalidKernelImage, "text form of a module, damaged");
      return loadShared(out, module.data(), module.size());
    }
    case ImageKind::kPtx: return fail(mcErrorInvalidPtx, "PTX cannot run on this device: compile its source with cucc");
    case ImageKind::kFatbinary: return fail(mcErrorNoKernelImageForDevice, "fat binary of NVIDIA's nvcc");
    case ImageKind::kGpuCode: return fail(mcErrorNoKernelImageForDevice, "cubin of an NVIDIA GPU");
    case ImageKind::kUnknown: break;
  }
  return fail(mcErrorInvalidKernelImage, "neither a module of cucc nor one of NVRTC");
}

CUresult findFunction(CUfunction* function, CUmodule module, const char* name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  void* const handle = handleOf(module);
  if (handle == nullptr) return fail(mcErrorInvalidResourceHandle, "module");
  void* const found = dlsym(handle, name);
  // A symbol of a library that the module needs is none of the module's.
  if (found == nullptr || mcKernelCheck(found) != mcSuccess) return fail(mcErrorSymbolNotFound, name);
  *function = static_cast<CUfunction>(found);
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.owners[*function] = module;
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction function, mcDim3 grid, mcDim3 block, unsigned int sharedBytes, CUstream stream,
                void** arguments, void** extra) {
  if (arguments == nullptr && extra != nullptr) {
    return static_cast<CUresult>(
        mxmaca::refuse("libcuda", "cuLaunchKernel with packed arguments (extra)", 801, "CUDA_ERROR_NOT_SUPPORTED"));
  }
  return result(mcLaunchKernel(function, grid, block, arguments, sharedBytes, reinterpret_cast<mcStream_t>(stream)));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image); }
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return load(module, image); }

// The options speak of registers, caches and logs of an assembler; there is none.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                            void** values) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
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
  if (mxmaca::imageKind(image.data()) == ImageKind::kModule && mxmaca::moduleSize(image.data()) > bytes) {
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
  void* const handle = handleOf(module);
  if (handle == nullptr) return fail(mcErrorInvalidResourceHandle, "module");
  void* const found = dlsym(handle, name);
  if (found == nullptr) return fail(mcErrorSymbolNotFound, name);
  (void)pointer;
  (void)bytes;
  return result(mcVariableCheck(found));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned int, CUlibraryOption*,
                           void**, unsigned int) {
  return load(reinterpret_cast<CUmodule*>(library), image);
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned int,
                               CUlibraryOption*, void**, unsigned int) {
  return cuModuleLoad(reinterpret_cast<CUmodule*>(library), path);
}
CUresult cuLibraryUnload(CUlibrary library) { return cuModuleUnload(own(library)); }
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (handleOf(own(library)) == nullptr) return fail(mcErrorInvalidResourceHandle, "library");
  *module = own(library);
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return findFunction(reinterpret_cast<CUfunction*>(kernel), own(library), name);
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
  return launch(function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream, arguments, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                                   unsigned int blockX, unsigned int blockY, unsigned int blockZ,
                                   unsigned int sharedBytes, CUstream stream, void** arguments) {
  return launch(function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream, arguments, nullptr);
}

}  // extern "C"
#pragma GCC visibility pop
