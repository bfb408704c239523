// nvJitLink: one module of NVRTC's or cucc's is linked as it is; see linked_module.h.

#include <cstring>
#include <string>

#include "handle_table.h"
#include "modules/linked_module.h"

#pragma GCC visibility push(default)
#include "cuda_runtime_api.h"
#include "nvJitLink.h"
#pragma GCC visibility pop

struct nvJitLink {
  mxmaca::LinkedModule module{};
  std::string text{};  // of the module, for what asks for PTX
  std::string errors{};
};

namespace {

mc::HandleTable<nvJitLink> links;

// What the options that are known begin with; of the assembler, whose work there is none of here.
constexpr const char* kOptions[] = {"-arch=",
                                    "-maxrregcount=",
                                    "-time",
                                    "-verbose",
                                    "-lto",
                                    "-ptx",
                                    "-O",
                                    "-g",
                                    "-lineinfo",
                                    "-ftz=",
                                    "-prec-div=",
                                    "-prec-sqrt=",
                                    "-fma=",
                                    "-kernels-used=",
                                    "-variables-used=",
                                    "-optimize-unused-variables",
                                    "-Xptxas=",
                                    "-Xnvvm=",
                                    "-split-compile",
                                    "-jump-table-density=",
                                    "-no-cache",
                                    "-device-stack-protector"};
bool isOption(const char* option) {
  for (const char* const known : kOptions) {
    if (std::strncmp(option, known, std::strlen(known)) == 0) return true;
  }
  return false;
}

nvJitLinkResult add(nvJitLink* link, const char* data, size_t size) {
  const char* detail = "";
  const mcError_t error = link->module.add(data, size, &detail);
  if (error == mcSuccess) return NVJITLINK_SUCCESS;
  link->errors += std::string("error: ") + detail + "\n";
  if (error == mcErrorInvalidPtx) return NVJITLINK_ERROR_PTX_COMPILE;
  return error == mcErrorNotSupported ? NVJITLINK_ERROR_INTERNAL : NVJITLINK_ERROR_UNRECOGNIZED_INPUT;
}

bool takesInput(const nvJitLink* link, nvJitLinkInputType type) {
  const bool known = (type >= NVJITLINK_INPUT_CUBIN && type <= NVJITLINK_INPUT_INDEX) || type == NVJITLINK_INPUT_ANY;
  return links.contains(link) && known && !link->module.completed;
}

// A text and its end.
nvJitLinkResult lengthOf(const std::string& text, size_t* size) {
  if (size == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  *size = text.size() + 1;
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult copyOf(const std::string& text, char* to) {
  if (to == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVJITLINK_SUCCESS;
}

bool isComplete(const nvJitLink* link) { return links.contains(link) && link->module.completed; }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

nvJitLinkResult nvJitLinkVersion(unsigned int* major, unsigned int* minor) {
  if (major == nullptr || minor == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle* handle, uint32_t count, const char** options) {
  if (handle == nullptr || (options == nullptr && count != 0)) return NVJITLINK_ERROR_INVALID_INPUT;
  bool architecture = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (options[i] == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
    if (!isOption(options[i])) return NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
    architecture = architecture || std::strncmp(options[i], "-arch=", 6) == 0;
  }
  if (!architecture) return NVJITLINK_ERROR_MISSING_ARCH;
  *handle = links.create();
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle* handle) {
  if (handle == nullptr || !links.destroy(*handle)) return NVJITLINK_ERROR_INVALID_INPUT;
  *handle = nullptr;
  return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle handle, nvJitLinkInputType type, const void* data, size_t size,
                                 const char*) {
  if (!takesInput(handle, type) || data == nullptr || size == 0) return NVJITLINK_ERROR_INVALID_INPUT;
  return add(handle, static_cast<const char*>(data), size);
}
nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle handle, nvJitLinkInputType type, const char* path) {
  std::string bytes;
  if (!takesInput(handle, type) || path == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  if (!mxmaca::readWhole(path, &bytes)) {
    handle->errors += std::string("error: ") + path + " cannot be read\n";
    return NVJITLINK_ERROR_INVALID_INPUT;
  }
  return add(handle, bytes.data(), bytes.size());
}

nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle handle) {
  if (!links.contains(handle)) return NVJITLINK_ERROR_INVALID_INPUT;
  mxmaca::LinkedModule& module = handle->module;
  if (module.image.empty()) {
    handle->errors += "error: nothing was added\n";
    return NVJITLINK_ERROR_FINALIZE;
  }
  const bool isText = mxmaca::imageKind(module.image.data()) == mxmaca::ImageKind::kModuleText;
  handle->text =
      isText ? std::string(module.image.c_str()) : mxmaca::moduleToText(module.image.substr(0, module.bytes));
  if (isText) {
    module.image = mxmaca::moduleFromText(module.image.c_str());
    module.bytes = module.image.size();
    if (module.image.empty()) {
      handle->errors += "error: the text of a module is damaged\n";
      return NVJITLINK_ERROR_FINALIZE;
    }
  }
  module.completed = true;
  return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t* size) {
  if (!isComplete(handle) || size == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  *size = handle->module.bytes;
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void* cubin) {
  if (!isComplete(handle) || cubin == nullptr) return NVJITLINK_ERROR_INVALID_INPUT;
  std::memcpy(cubin, handle->module.image.data(), handle->module.bytes);
  return NVJITLINK_SUCCESS;
}
nvJitLinkResult nvJitLinkGetLinkedPtxSize(nvJitLinkHandle handle, size_t* size) {
  return isComplete(handle) ? lengthOf(handle->text, size) : NVJITLINK_ERROR_INVALID_INPUT;
}
nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle handle, char* ptx) {
  return isComplete(handle) ? copyOf(handle->text, ptx) : NVJITLINK_ERROR_INVALID_INPUT;
}

nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t* size) {
  return links.contains(handle) ? lengthOf(handle->errors, size) : NVJITLINK_ERROR_INVALID_INPUT;
}
nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle handle, char* log) {
  return links.contains(handle) ? copyOf(handle->errors, log) : NVJITLINK_ERROR_INVALID_INPUT;
}
// Nothing is said but errors.
nvJitLinkResult nvJitLinkGetInfoLogSize(nvJitLinkHandle handle, size_t* size) {
  return links.contains(handle) ? lengthOf("", size) : NVJITLINK_ERROR_INVALID_INPUT;
}
nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle handle, char* log) {
  return links.contains(handle) ? copyOf("", log) : NVJITLINK_ERROR_INVALID_INPUT;
}

}  // extern "C"
#pragma GCC visibility pop
