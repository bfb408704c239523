// cuLink: what a program assembles into a module. Here that is one module of NVRTC's or cucc's, whole as it is. PTX
// and GPU code are refused as what they are, and several modules as well: a shared object is not linked again.

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "module_image.h"
#include "modules.h"

struct CUlinkState_st {
  std::string image;  // what was added, and zeros behind it
  size_t bytes = 0;
  bool completed = false;
  char* log = nullptr;
  size_t room = 0;

  CUresult fail(mcError_t error, const char* detail) const {
    if (log != nullptr && room != 0) std::snprintf(log, room, "%s", detail);
    return mxmaca::fail(error, detail);
  }
};

namespace {

struct States {
  std::mutex mutex;
  std::map<CUlinkState, std::unique_ptr<CUlinkState_st>> live;
};

States& states() {
  static auto* const instance = new States;
  return *instance;
}

// Null where it is none. A state belongs to the thread that works with it, as on CUDA.
CUlinkState_st* find(CUlinkState state) {
  States& all = states();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.live.find(state);
  return found == all.live.end() ? nullptr : found->second.get();
}

constexpr int kLastInput = 5;  // cubin, PTX, fat binary, object, library, NVVM
constexpr size_t kHeader = 64;

CUresult add(CUlinkState_st* state, const char* data, size_t size) {
  std::string image(data, size);
  image.append(kHeader, '\0');
  switch (imageKind(image.data())) {
    case ImageKind::kModule:
    case ImageKind::kObject:
      if (moduleSize(image.data()) > size) return state->fail(mcErrorInvalidKernelImage, "a module that is cut short");
      break;
    case ImageKind::kModuleText: break;
    case ImageKind::kPtx:
      return state->fail(mcErrorInvalidPtx, "PTX cannot run on this device: compile its source with cucc");
    case ImageKind::kFatbinary: return state->fail(mcErrorNoKernelImageForDevice, "fat binary of NVIDIA's nvcc");
    case ImageKind::kGpuCode: return state->fail(mcErrorNoKernelImageForDevice, "cubin of an NVIDIA GPU");
    case ImageKind::kUnknown: return state->fail(mcErrorInvalidKernelImage, "no module of cucc or NVRTC");
  }
  if (!state->image.empty()) return state->fail(mcErrorNotSupported, "modules that are linked with each other");
  state->image = std::move(image);
  state->bytes = size;
  return CUDA_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// The options speak of registers, optimization and logs of an assembler; the log of errors is written.
CUresult cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  RETURN_IF_NULL(out);
  RETURN_IF_WRONG(checkOptions(count, options, values, kLastJitOption));
  NEEDS_CONTEXT();
  auto state = std::make_unique<CUlinkState_st>();
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) state->log = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) state->room = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (state->log != nullptr && state->room != 0) *state->log = '\0';
  States& all = states();
  const std::lock_guard<std::mutex> lock(all.mutex);
  *out = state.get();
  all.live[state.get()] = std::move(state);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*, unsigned int count,
                       CUjit_option* options, void** values) {
  CUlinkState_st* const found = find(state);
  if (found == nullptr) return fail(mcErrorInvalidResourceHandle, "link state");
  RETURN_IF_WRONG(checkOptions(count, options, values, kLastJitOption));
  if (type < 0 || type > kLastInput || data == nullptr || size == 0 || found->completed) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return add(found, static_cast<const char*>(data), size);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int count,
                       CUjit_option* options, void** values) {
  CUlinkState_st* const found = find(state);
  if (found == nullptr) return fail(mcErrorInvalidResourceHandle, "link state");
  RETURN_IF_WRONG(checkOptions(count, options, values, kLastJitOption));
  if (type < 0 || type > kLastInput || path == nullptr || found->completed) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "rbe"), std::fclose);
  if (file == nullptr) return found->fail(mcErrorFileNotFound, path);
  std::string bytes;
  char buffer[1 << 16];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file.get())) != 0;) bytes.append(buffer, got);
  return add(found, bytes.data(), bytes.size());
}

CUresult cuLinkComplete(CUlinkState state, void** cubin, size_t* size) {
  CUlinkState_st* const found = find(state);
  if (found == nullptr) return fail(mcErrorInvalidResourceHandle, "link state");
  if (cubin == nullptr || found->image.empty()) return CUDA_ERROR_INVALID_VALUE;
  found->completed = true;
  *cubin = &found->image[0];
  if (size != nullptr) *size = found->bytes;
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  States& all = states();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.live.erase(state) != 0 ? CUDA_SUCCESS : fail(mcErrorInvalidResourceHandle, "link state");
}

#undef cuLinkCreate
#undef cuLinkAddData
#undef cuLinkAddFile
FIRST_FORM(cuLinkCreate, (unsigned int, CUjit_option*, void**, CUlinkState*))
FIRST_FORM(cuLinkAddData,
           (CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned int, CUjit_option*, void**))
FIRST_FORM(cuLinkAddFile, (CUlinkState, CUjitInputType, const char*, unsigned int, CUjit_option*, void**))

}  // extern "C"
#pragma GCC visibility pop
