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

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "deprecated/launches.h"
#include "mc_kernel.h"
#include "mc_runtime.h"
#include "modules.h"
#include "modules/module_image.h"

// Either a shared object, with the handle and the file that it was opened by, or an object file.
struct CUmod_st {
  void* handle = nullptr;
  int file = -1;
  mcModule_t object = nullptr;
};

namespace {

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

CUresult keep(CUmodule* out, std::unique_ptr<CUmod_st> module) {
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  *out = module.get();
  all.live[module.get()] = std::move(module);
  return CUDA_SUCCESS;
}

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

}  // namespace

namespace mxmaca {

bool isModule(CUmodule module) {
  const CUmod_st parts = partsOf(module);
  return parts.handle != nullptr || parts.object != nullptr;
}

CUresult loadModule(CUmodule* out, const void* image) {
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

std::vector<CUfunction> functionsOf(CUmodule module) {
  const CUmod_st parts = partsOf(module);
  size_t count = 0;
  mcModuleGetKernels(nullptr, &count, parts.object);
  std::vector<const void*> kernels(count);
  mcModuleGetKernels(kernels.data(), &count, parts.object);
  kernels.resize(std::min(count, kernels.size()));
  std::vector<CUfunction> functions;
  // Those of a shared object are in one list with all others of the process; the loader knows it by its descriptor.
  const std::string own = parts.object == nullptr ? folderEntry(parts.file) : "";
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const void* const kernel : kernels) {
    Dl_info info;
    if (!own.empty() && (dladdr(kernel, &info) == 0 || own != info.dli_fname)) continue;
    functions.push_back(static_cast<CUfunction>(const_cast<void*>(kernel)));
    all.owners[functions.back()] = module;
  }
  return functions;
}

CUmodule ownerOf(CUfunction function) {
  Modules& all = modules();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.owners.find(function);
  return found == all.owners.end() ? nullptr : found->second;
}

}  // namespace mxmaca

#pragma GCC visibility push(default)
extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return loadModule(module, image); }
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return loadModule(module, image); }

// The options speak of registers, caches and logs of an assembler; there is none.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                            void** values) {
  RETURN_IF_WRONG(checkOptions(count, options, values, kLastJitOption));
  const CUresult error = loadModule(module, image);
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
  return loadModule(module, image.data());
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
      if (it->second == module) {
        forgetLaunch(it->first);
        it = all.owners.erase(it);
      } else {
        ++it;
      }
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

}  // extern "C"
#pragma GCC visibility pop
