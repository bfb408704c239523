// cuLink: what a program assembles into a module; see linked_module.h.

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "modules.h"
#include "modules/linked_module.h"

struct CUlinkState_st : mxmaca::LinkedModule {
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

CUresult add(CUlinkState_st* state, const char* data, size_t size) {
  const char* detail = nullptr;
  const mcError_t error = state->add(data, size, &detail);
  return error == mcSuccess ? CUDA_SUCCESS : state->fail(error, detail);
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
  std::string bytes;
  if (!readWhole(path, &bytes)) return found->fail(mcErrorFileNotFound, path);
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
