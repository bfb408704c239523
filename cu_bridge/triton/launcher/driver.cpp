#include "driver.h"

#include <dlfcn.h>

#include <type_traits>

#include "python_abi.h"

namespace launcher {
namespace {

const char kLibrary[] = "libcuda.so.1";

bool findAll(Driver* functions) {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) {
    PyErr_Format(PyExc_RuntimeError, "Failed to open %s: %s", kLibrary, dlerror());
    return false;
  }
  const auto find = [library](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(library, name));
    if (*function != nullptr) return true;
    PyErr_Format(PyExc_RuntimeError, "Failed to retrieve %s from %s", name, kLibrary);
    return false;
  };
  return find(&functions->getErrorString, "cuGetErrorString") && find(&functions->ctxGetCurrent, "cuCtxGetCurrent") &&
         find(&functions->ctxSetCurrent, "cuCtxSetCurrent") && find(&functions->ctxSynchronize, "cuCtxSynchronize") &&
         find(&functions->devicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain") &&
         find(&functions->deviceGetAttribute, "cuDeviceGetAttribute") &&
         find(&functions->moduleLoadData, "cuModuleLoadData") && find(&functions->moduleUnload, "cuModuleUnload") &&
         find(&functions->moduleGetFunction, "cuModuleGetFunction") &&
         find(&functions->funcGetAttribute, "cuFuncGetAttribute") &&
         find(&functions->funcSetAttribute, "cuFuncSetAttribute") &&
         find(&functions->pointerGetAttribute, "cuPointerGetAttribute") &&
         find(&functions->launchKernel, "cuLaunchKernel") &&
         find(&functions->launchCooperativeKernel, "cuLaunchCooperativeKernel") &&
         find(&functions->threadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
}

}  // namespace

const Driver* driver() {
  // Python's lock is held, so that no two threads are here at once.
  static Driver functions;
  static bool found = false;
  if (!found) found = findAll(&functions);
  return found ? &functions : nullptr;
}

bool succeeded(CUresult code) {
  if (code == CUDA_SUCCESS) return true;
  const char* text = nullptr;
  driver()->getErrorString(code, &text);
  PyErr_Format(PyExc_RuntimeError, "Triton Error [CUDA]: %s", text != nullptr ? text : "unknown error");
  return false;
}

}  // namespace launcher
