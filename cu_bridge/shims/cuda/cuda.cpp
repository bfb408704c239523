// The CUDA driver interface on top of the simulated device: errors, devices and contexts.

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "contexts.h"
#include "device_facts.h"
#include "handle_table.h"
#include "mc_device_limits.h"
#include "profiling/told.h"

namespace {

CUctx_st contexts[mc::limits::kDevices];
mc::HandleTable<CUctx_st> created;

// The device of a context; -1 for any other address.
int deviceOf(CUcontext context) {
  if (created.contains(context)) return context->device;
  const uintptr_t offset = reinterpret_cast<uintptr_t>(context) - reinterpret_cast<uintptr_t>(contexts);
  if (offset >= sizeof contexts || offset % sizeof *contexts != 0) return -1;
  int count = 0;
  const auto device = static_cast<int>(offset / sizeof *contexts);
  return mcGetDeviceCount(&count) == mcSuccess && device < count ? device : -1;
}

// Note [Context stack]
// ~~~~~~~~~~~~~~~~~~~~
// A thread's stack begins with the context of its device, as after a first call of the runtime interface. The top of
// the stack is the current device's context, so that cudaSetDevice and cuCtxSetCurrent see each other: the primary one,
// unless one that was created is on top and still its device's. The others are here. Without any, the thread has no
// context, and what needs one fails, until the runtime interface or a push brings one.
thread_local std::vector<CUcontext> contextsBelow;
thread_local CUcontext createdOnTop = nullptr;

CUresult makeCurrent(CUcontext context) {
  const int device = deviceOf(context);
  if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  const mcError_t error = mcSetDevice(device);
  if (error != mcSuccess) return result(error);
  mcContextSet(1);
  mcPartSet(context->part);
  createdOnTop = context == primaryContext(device) ? nullptr : context;
  return CUDA_SUCCESS;
}

// Takes the top of the stack away, of which there is one.
CUresult popContext() {
  while (!contextsBelow.empty()) {
    const CUcontext before = contextsBelow.back();
    contextsBelow.pop_back();
    // One that was destroyed meanwhile, perhaps by another thread, is nobody's.
    if (deviceOf(before) >= 0) return makeCurrent(before);
  }
  createdOnTop = nullptr;
  mcPartSet(0);
  mcContextSet(0);
  return CUDA_SUCCESS;
}

// A new context of a device, on top of the thread's stack.
CUresult createContext(CUcontext* context, unsigned int flags, CUdevice device) {
  RETURN_IF_NULL(context);
  RETURN_IF_WRONG(checkDevice(device));
  RETURN_IF_WRONG(checkDeviceFlags(flags));
  CUcontext made = nullptr;
  try {
    made = created.create();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->flags = flags;
  made->device = device;
  const CUresult error = cuCtxPushCurrent(made);
  if (error != CUDA_SUCCESS) {
    created.destroy(made);
    return error;
  }
  *context = made;
  return CUDA_SUCCESS;
}

}  // namespace

CUcontext primaryContext(int device) { return &contexts[device]; }

CUresult createPart(CUcontext* context, int device, unsigned int part) {
  try {
    *context = created.create();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  (*context)->device = device;
  (*context)->part = part;
  return CUDA_SUCCESS;
}

CUresult destroyPart(CUcontext context) {
  const bool onTop = createdOnTop == context && mcContextIsSet() != 0;
  if (!created.destroy(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return onTop ? popContext() : CUDA_SUCCESS;
}

bool isContext(CUcontext context, int* device, unsigned int* part) {
  *device = deviceOf(context);
  if (*device >= 0) *part = context->part;
  return *device >= 0;
}

#pragma GCC visibility push(default)
extern "C" {

CUresult cuInit(unsigned int flags) {
  int count = 0;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return result(mcGetDeviceCount(&count));
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  RETURN_IF_NULL(text);
  const bool known = mcGetErrorName(static_cast<mcError_t>(error)) != nullptr;
  *text = known ? mcGetErrorString(static_cast<mcError_t>(error)) : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  RETURN_IF_NULL(text);
  switch (static_cast<int>(error)) {
    case 0: *text = "CUDA_SUCCESS"; return CUDA_SUCCESS;
#define MXMACA_ERROR(code, name) \
  case code: *text = "CUDA_ERROR_" name; return CUDA_SUCCESS;
#include "driver_error_names.inc"
#undef MXMACA_ERROR
    default: *text = nullptr; return CUDA_ERROR_INVALID_VALUE;
  }
}

namespace {
// Functions whose second form takes other arguments, by the release that has it. Of all others the first form is the
// same as the second, or none that could be asked for.
struct {
  const char* name;
  int release;
} constexpr kSecondForms[] = {
    {"cuGraphGetEdges", 12030},        {"cuGraphNodeGetDependencies", 12030}, {"cuGraphNodeGetDependentNodes", 12030},
    {"cuGraphAddDependencies", 12030}, {"cuGraphRemoveDependencies", 12030},  {"cuGraphAddNode", 12030},
};
bool hasSecondForm(const char* name, int release) {
  return std::none_of(std::begin(kSecondForms), std::end(kSecondForms),
                      [&](const auto& known) { return std::strcmp(known.name, name) == 0 && release < known.release; });
}
}  // namespace
CUresult cuGetProcAddress(const char* symbol, void** function, int release, uint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  constexpr uint64_t kMostFlags = 2;  // the default, legacy streams or streams of each thread
  if (symbol == nullptr || function == nullptr || flags > kMostFlags) return CUDA_ERROR_INVALID_VALUE;
  static void* const self = [] {
    Dl_info info;
    const bool found = dladdr(reinterpret_cast<void*>(&cuInit), &info) != 0;
    return found ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  }();
  // A name stands for the newest form of the function that the release has.
  *function = nullptr;
  for (const char* suffix : {"_v2", ""}) {
    if (*suffix != 0 && !hasSecondForm(symbol, release)) continue;
    if (self != nullptr && *function == nullptr) *function = dlsym(self, (std::string(symbol) + suffix).c_str());
  }
  if (status != nullptr) {
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// ---- Devices and contexts -------------------------------------------------------------------------------------------

// Programs ask so whether an import has touched the driver: an error until cuInit, or a call of the runtime interface.
CUresult cuDeviceGetCount(int* count) {
  if (mcIsStarted() == 0) return CUDA_ERROR_NOT_INITIALIZED;
  const mcError_t error = mcGetDeviceCount(count);
  return error == mcErrorNoDevice ? CUDA_SUCCESS : result(error);
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (mcIsStarted() == 0) return CUDA_ERROR_NOT_INITIALIZED;
  RETURN_IF_NULL(device);
  RETURN_IF_WRONG(checkDevice(ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) std::snprintf(name, static_cast<size_t>(length), "%s", properties.name);
  return result(error);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  RETURN_IF_NULL(uuid);
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) std::memcpy(uuid->bytes, properties.uuid, sizeof uuid->bytes);
  return result(error);
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  RETURN_IF_NULL(bytes);
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) *bytes = properties.memory;
  return result(error);
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  RETURN_IF_NULL(value);
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error != mcSuccess) return result(error);
  return deviceAttribute(properties, attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  constexpr int kShortest = 13;
  if (id == nullptr || length < kShortest) return CUDA_ERROR_INVALID_VALUE;
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) pciBusId(properties, id, static_cast<size_t>(length));
  return result(error);
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int found = deviceByPciBusId(id);
  if (found < 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = found;
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  mcDeviceProperties properties;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error != mcSuccess) return result(error);
  *major = properties.major;
  *minor = properties.minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return result(mcDeviceCanAccessPeer(can, device, peer));
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
  return result(peerAttribute(value, attribute, from, to));
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  RETURN_IF_NULL(context);
  RETURN_IF_WRONG(checkDevice(device));
  *context = primaryContext(device);
  ++(*context)->retained;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  RETURN_IF_WRONG(checkDevice(device));
  std::atomic<int>& retained = primaryContext(device)->retained;
  for (int count = retained.load(); count > 0;) {
    if (retained.compare_exchange_weak(count, count - 1)) return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  RETURN_IF_WRONG(checkDevice(device));
  return result(mcDeviceReset());
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  RETURN_IF_WRONG(checkDevice(device));
  RETURN_IF_WRONG(checkDeviceFlags(flags));
  primaryContext(device)->flags = flags;
  return CUDA_SUCCESS;
}

// A context is there from the first use of its device on: programs ask whether one of theirs has been used by mistake.
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  RETURN_IF_WRONG(checkDevice(device));
  if (flags != nullptr) *flags = primaryContext(device)->flags;
  if (active != nullptr) *active = mcDeviceIsUsed(device) != 0 || primaryContext(device)->retained > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

// See Note [Context stack].
CUresult cuCtxGetCurrent(CUcontext* context) {
  int device = 0;
  RETURN_IF_NULL(context);
  const mcError_t error = mcGetDevice(&device);
  *context = nullptr;
  if (error == mcSuccess && mcContextIsSet() != 0) {
    const bool mine = createdOnTop != nullptr && created.contains(createdOnTop) && createdOnTop->device == device;
    *context = mine ? createdOnTop : primaryContext(device);
  }
  return result(error);
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (context == nullptr) return mcContextIsSet() != 0 ? popContext() : CUDA_SUCCESS;
  return makeCurrent(context);
}

CUresult cuCtxPushCurrent(CUcontext context) {
  CUcontext before = nullptr;
  if (deviceOf(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult error = cuCtxGetCurrent(&before);
  if (error != CUDA_SUCCESS) return error;
  if (before != nullptr) contextsBelow.push_back(before);
  return makeCurrent(context);
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  CUcontext current = nullptr;
  NEEDS_CONTEXT();
  const CUresult error = cuCtxGetCurrent(&current);
  if (error != CUDA_SUCCESS) return error;
  if (context != nullptr) *context = current;
  return popContext();
}

// Programs of CUDA 12 create contexts by the second form, those of CUDA 13 by the fourth.
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return createContext(context, flags, device);
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int affinities, unsigned int flags, CUdevice device) {
  // A part of the multiprocessors, which needs MPS.
  if (affinities != 0) return affinities < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return createContext(context, flags, device);
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  if (parameters != nullptr) {
    const bool affinity = parameters->execAffinityParams != nullptr, graphics = parameters->cigParams != nullptr;
    if (affinity && graphics) return CUDA_ERROR_INVALID_VALUE;
    if (graphics) return CUDA_ERROR_NOT_SUPPORTED;
    // NVIDIA's own programs hand over a structure of zeros for a context like any other.
    return cuCtxCreate_v3(context, parameters->execAffinityParams, parameters->numExecAffinityParams, flags, device);
  }
  return createContext(context, flags, device);
}
CUresult cuCtxDestroy(CUcontext context) {
  // That of a green context ends with the green one.
  if (!created.contains(context) || context->part != 0) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext current = nullptr;
  const CUresult error = cuCtxGetCurrent(&current);
  if (error != CUDA_SUCCESS) return error;
  const bool onTop = current == context;
  if (!created.destroy(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return onTop ? popContext() : CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  NEEDS_CONTEXT();
  return result(mcGetDevice(device));
}
CUresult cuCtxSynchronize(void) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return result(mcDeviceSynchronize());
  };
  return toldOfDriver(17, mcCallDeviceSynchronize, work);
}
CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  RETURN_IF_NULL(version);
  if (context == nullptr) NEEDS_CONTEXT();
  if (context != nullptr && deviceOf(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  RETURN_IF_NULL(id);
  if (context == nullptr) {
    NEEDS_CONTEXT();
    const CUresult error = cuCtxGetCurrent(&context);
    if (error != CUDA_SUCCESS) return error;
  }
  if (deviceOf(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetFlags(unsigned int* flags) {
  CUcontext current = nullptr;
  NEEDS_CONTEXT();
  RETURN_IF_NULL(flags);
  const CUresult error = cuCtxGetCurrent(&current);
  if (error == CUDA_SUCCESS) *flags = current->flags;
  return error;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  NEEDS_CONTEXT();
  mcStreamPriorityRange(least, greatest);
  return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  NEEDS_CONTEXT();
  const int device = deviceOf(peer);
  return device < 0 ? CUDA_ERROR_INVALID_CONTEXT : result(mcDeviceEnablePeerAccess(device, flags));
}
CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  NEEDS_CONTEXT();
  const int device = deviceOf(peer);
  return device < 0 ? CUDA_ERROR_INVALID_CONTEXT : result(mcDeviceDisablePeerAccess(device));
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext, size_t bytes,
                           CUstream stream) {
  NEEDS_CONTEXT();
  if (deviceOf(toContext) < 0 || deviceOf(fromContext) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return cuMemcpyDtoDAsync(to, from, bytes, stream);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext, size_t bytes) {
  const CUresult error = cuMemcpyPeerAsync(to, toContext, from, fromContext, bytes, nullptr);
  return error == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : error;
}

// Names of the first form, for callers that look symbols up by name; the form itself is the same.
#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
FIRST_FORM(cuCtxCreate, (CUcontext*, unsigned int, CUdevice))
FIRST_FORM(cuCtxDestroy, (CUcontext))
FIRST_FORM(cuCtxPushCurrent, (CUcontext))
FIRST_FORM(cuCtxPopCurrent, (CUcontext*))
FIRST_FORM(cuDevicePrimaryCtxRelease, (CUdevice))
FIRST_FORM(cuDevicePrimaryCtxReset, (CUdevice))
FIRST_FORM(cuDevicePrimaryCtxSetFlags, (CUdevice, unsigned int))

}  // extern "C"
#pragma GCC visibility pop
