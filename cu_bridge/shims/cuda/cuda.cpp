// The CUDA driver interface on top of the simulated device.

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "checks.h"
#include "device_facts.h"
#include "mc_runtime.h"
#include "refuse.h"
#include "result.h"

// A context is a device's primary one; there are no others.
struct CUctx_st {
  std::atomic<unsigned int> flags{0};
  std::atomic<int> retained{0};
};

namespace {

CUresult result(mcError_t error) { return mxmaca::driverResult(error); }
mcStream_t own(CUstream stream) { return reinterpret_cast<mcStream_t>(stream); }
mcEvent_t own(CUevent event) { return reinterpret_cast<mcEvent_t>(event); }
mcPhysicalMemory_t own(CUmemGenericAllocationHandle handle) {
  return reinterpret_cast<mcPhysicalMemory_t>(static_cast<uintptr_t>(handle));
}
void* address(CUdeviceptr pointer) { return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)); }
CUdeviceptr pointer(void* address) { return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(address)); }

constexpr int kMaxDevices = 64;

CUctx_st contexts[kMaxDevices];

CUcontext primaryContext(int device) { return &contexts[device]; }

// The device of a context; -1 for any other address.
int deviceOf(CUcontext context) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(context) - reinterpret_cast<uintptr_t>(contexts);
  if (offset >= sizeof contexts || offset % sizeof *contexts != 0) return -1;
  int count = 0;
  const auto device = static_cast<int>(offset / sizeof *contexts);
  return mcGetDeviceCount(&count) == mcSuccess && device < count ? device : -1;
}

// Note [Context stack]
// ~~~~~~~~~~~~~~~~~~~~
// A thread's stack begins with the context of its device, as after a first call of the runtime interface. The top of the
// stack is the current device's context, so that cudaSetDevice and cuCtxSetCurrent see each other; the others are here.
// Without any, the thread has no context, and what needs one fails, until the runtime interface or a push brings one.
thread_local std::vector<CUcontext> contextsBelow;

CUresult makeCurrent(int device) {
  const mcError_t error = mcSetDevice(device);
  if (error == mcSuccess) mcContextSet(1);
  return result(error);
}

// Takes the top of the stack away, of which there is one.
CUresult popContext() {
  if (contextsBelow.empty()) {
    mcContextSet(0);
    return CUDA_SUCCESS;
  }
  const CUcontext before = contextsBelow.back();
  contextsBelow.pop_back();
  return makeCurrent(deviceOf(before));
}

CUresult checkDevice(CUdevice device) {
  mcDeviceProperties properties;
  return result(mcGetDeviceProperties(&properties, device));
}

template <class Allocate>
CUresult allocate(CUdeviceptr* out, size_t bytes, Allocate&& call) {
  void* memory = nullptr;
  NEEDS_CONTEXT();
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = call(&memory);
  if (error == mcSuccess) *out = pointer(memory);
  return result(error);
}

template <class Value>
CUresult writeValue(CUstream stream, CUdeviceptr target, Value value, unsigned int flags) {
  constexpr unsigned int kNoMemoryBarrier = 1;
  mcPointerAttributes attributes;
  RETURN_IF_WRONG(mcStreamCheck(own(stream)));
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, kNoMemoryBarrier));
  RETURN_IF_WRONG(mcPointerGetAttributes(&attributes, address(target)));
  const size_t offset = reinterpret_cast<uintptr_t>(address(target)) - reinterpret_cast<uintptr_t>(attributes.base);
  if (attributes.kind == mcMemoryUnregistered || target % sizeof(Value) != 0 ||
      attributes.size - offset < sizeof(Value)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  __atomic_store_n(static_cast<Value*>(address(target)), value, __ATOMIC_RELEASE);
  return CUDA_SUCCESS;
}

}  // namespace

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

CUresult cuGetProcAddress(const char* symbol, void** function, int, uint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  constexpr uint64_t kMostFlags = 2;  // the default, legacy streams or streams of each thread
  if (symbol == nullptr || function == nullptr || flags > kMostFlags) return CUDA_ERROR_INVALID_VALUE;
  static void* const self = [] {
    Dl_info info;
    const bool found = dladdr(reinterpret_cast<void*>(&cuInit), &info) != 0;
    return found ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  }();
  // A name stands for the newest form of the function.
  *function = nullptr;
  for (const char* suffix : {"_v2", ""}) {
    if (self != nullptr && *function == nullptr) *function = dlsym(self, (std::string(symbol) + suffix).c_str());
  }
  if (status != nullptr) {
    *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// ---- Devices and contexts -------------------------------------------------------------------------------------------

CUresult cuDeviceGetCount(int* count) {
  const mcError_t error = mcGetDeviceCount(count);
  return error == mcErrorNoDevice ? CUDA_SUCCESS : result(error);
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  RETURN_IF_NULL(device);
  const CUresult error = checkDevice(ordinal);
  if (error == CUDA_SUCCESS) *device = ordinal;
  return error;
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
  return mxmaca::deviceAttribute(properties, attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  constexpr int kShortest = 13;
  if (id == nullptr || length < kShortest) return CUDA_ERROR_INVALID_VALUE;
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) mxmaca::pciBusId(properties, id, static_cast<size_t>(length));
  return result(error);
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int found = mxmaca::deviceByPciBusId(id);
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

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  RETURN_IF_NULL(context);
  const CUresult error = checkDevice(device);
  if (error != CUDA_SUCCESS) return error;
  *context = primaryContext(device);
  ++(*context)->retained;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const CUresult error = checkDevice(device);
  if (error != CUDA_SUCCESS) return error;
  std::atomic<int>& retained = primaryContext(device)->retained;
  for (int count = retained.load(); count > 0;) {
    if (retained.compare_exchange_weak(count, count - 1)) return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  const CUresult error = checkDevice(device);
  return error != CUDA_SUCCESS ? error : result(mcDeviceReset());
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  const CUresult error = checkDevice(device);
  if (error != CUDA_SUCCESS) return error;
  RETURN_IF_WRONG(mxmaca::checkDeviceFlags(flags));
  primaryContext(device)->flags = flags;
  return CUDA_SUCCESS;
}

// Always active: backward passes of some releases ask, and skip devices that are not.
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  const CUresult error = checkDevice(device);
  if (error != CUDA_SUCCESS) return error;
  if (flags != nullptr) *flags = primaryContext(device)->flags;
  if (active != nullptr) *active = 1;
  return CUDA_SUCCESS;
}

// See Note [Context stack].
CUresult cuCtxGetCurrent(CUcontext* context) {
  int device = 0;
  RETURN_IF_NULL(context);
  const mcError_t error = mcGetDevice(&device);
  *context = error == mcSuccess && mcContextIsSet() != 0 ? primaryContext(device) : nullptr;
  return result(error);
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (context == nullptr) return mcContextIsSet() != 0 ? popContext() : CUDA_SUCCESS;
  const int device = deviceOf(context);
  return device < 0 ? CUDA_ERROR_INVALID_CONTEXT : makeCurrent(device);
}

CUresult cuCtxPushCurrent(CUcontext context) {
  CUcontext before = nullptr;
  const int device = deviceOf(context);
  if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult error = cuCtxGetCurrent(&before);
  if (error != CUDA_SUCCESS) return error;
  if (before != nullptr) contextsBelow.push_back(before);
  return makeCurrent(device);
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  CUcontext current = nullptr;
  NEEDS_CONTEXT();
  const CUresult error = cuCtxGetCurrent(&current);
  if (error != CUDA_SUCCESS) return error;
  if (context != nullptr) *context = current;
  return popContext();
}

CUresult cuCtxGetDevice(CUdevice* device) {
  NEEDS_CONTEXT();
  return result(mcGetDevice(device));
}
CUresult cuCtxSynchronize(void) {
  NEEDS_CONTEXT();
  return result(mcDeviceSynchronize());
}
CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  RETURN_IF_NULL(version);
  if (context == nullptr) NEEDS_CONTEXT();
  if (context != nullptr && deviceOf(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *version = CUDA_VERSION;
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

// ---- Memory ---------------------------------------------------------------------------------------------------------

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  NEEDS_CONTEXT();
  return result(mcMemGetInfo(free, total));
}
CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) {
  return allocate(out, bytes, [=](void** memory) { return mcMalloc(memory, bytes); });
}
CUresult cuMemFree(CUdeviceptr memory) { return result(mcFree(address(memory))); }
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  return allocate(out, bytes, [=](void** memory) { return mcMallocManaged(memory, bytes, flags); });
}
CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  return allocate(out, bytes, [=](void** memory) { return mcMallocAsync(memory, bytes, own(stream)); });
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  return result(mcFreeAsync(address(memory), own(stream)));
}
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) {
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(mxmaca::valueError(bytes != 0));
  return result(mcHostAlloc(out, bytes, flags));
}
CUresult cuMemAllocHost(void** out, size_t bytes) { return cuMemHostAlloc(out, bytes, 0); }
CUresult cuMemFreeHost(void* memory) { return result(mcFreeHost(memory)); }
CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned int flags) {
  constexpr unsigned int kKnownFlags = 15;  // portable, mapped, of a device's registers, read-only
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, kKnownFlags));
  RETURN_IF_WRONG(mxmaca::checkHostRange(memory, bytes));
  return result(mcHostRegister(memory, bytes, flags));
}
CUresult cuMemHostUnregister(void* memory) { return result(mcHostUnregister(memory)); }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned int flags) {
  void* memory = nullptr;
  RETURN_IF_NULL(device);
  const mcError_t error = mcHostGetDevicePointer(&memory, host, flags);
  if (error == mcSuccess) *device = pointer(memory);
  return result(error);
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr inside) {
  mcPointerAttributes attributes;
  const mcError_t error = mcPointerGetAttributes(&attributes, address(inside));
  if (error != mcSuccess) return result(error);
  if (attributes.kind == mcMemoryUnregistered) return result(mcSetLastError(mcErrorSymbolNotFound, nullptr));
  if (base != nullptr) *base = pointer(attributes.base);
  if (size != nullptr) *size = attributes.size;
  return CUDA_SUCCESS;
}

namespace {
constexpr int kLastPointerAttribute = 22;
}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr inside) {
  mcPointerAttributes own;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcPointerGetAttributes(&own, address(inside));
  if (error != mcSuccess) return result(error);
  if (own.kind == mcMemoryUnregistered) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<CUcontext*>(data) = primaryContext(own.device); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned int*>(data) = own.kind == mcMemoryHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *static_cast<CUdeviceptr*>(data) = inside; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (own.kind == mcMemoryDevice) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(data) = address(inside);
      break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *static_cast<unsigned int*>(data) = 1; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *static_cast<unsigned long long*>(data) = own.id; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned int*>(data) = own.kind == mcMemoryManaged ? 1 : 0;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data) = own.device; break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<unsigned int*>(data) = own.kind == mcMemoryDevice ? 1 : 0;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(data) = pointer(own.base); break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<size_t*>(data) = own.size; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<unsigned int*>(data) = 1; break;
    default:
      return attribute > 0 && attribute <= kLastPointerAttribute ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr inside) {
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned int i = 0; i < count; ++i) {
    if (data[i] == nullptr || attributes[i] <= 0 || attributes[i] > kLastPointerAttribute) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult error = cuPointerGetAttribute(data[i], attributes[i], inside);
    if (error != CUDA_SUCCESS && error != CUDA_ERROR_INVALID_VALUE) return error;
  }
  return CUDA_SUCCESS;
}

// Copies are synchronous whether or not they are asked to be.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr inside) {
  mcPointerAttributes own;
  RETURN_IF_NULL(value);
  RETURN_IF_WRONG(mcPointerGetAttributes(&own, address(inside)));
  if (own.kind == mcMemoryUnregistered) return CUDA_ERROR_INVALID_VALUE;
  return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return result(mcMemcpyAsync(address(dst), address(src), bytes, mcMemcpyDefault, own(stream)));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return result(mcMemcpyAsync(address(dst), src, bytes, mcMemcpyHostToDevice, own(stream)));
}
CUresult cuMemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return result(mcMemcpyAsync(dst, address(src), bytes, mcMemcpyDeviceToHost, own(stream)));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return result(mcMemcpyAsync(address(dst), address(src), bytes, mcMemcpyDeviceToDevice, own(stream)));
}
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  NEEDS_CONTEXT();
  return cuMemcpyAsync(dst, src, bytes, nullptr);
}
CUresult cuMemcpyHtoD(CUdeviceptr dst, const void* src, size_t bytes) {
  NEEDS_CONTEXT();
  return cuMemcpyHtoDAsync(dst, src, bytes, nullptr);
}
CUresult cuMemcpyDtoH(void* dst, CUdeviceptr src, size_t bytes) {
  NEEDS_CONTEXT();
  return cuMemcpyDtoHAsync(dst, src, bytes, nullptr);
}
CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  NEEDS_CONTEXT();
  return cuMemcpyDtoDAsync(dst, src, bytes, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t count, CUstream stream) {
  return result(mcMemset2DAsync(address(memory), 0, value, 1, count, 1, own(stream)));
}
CUresult cuMemsetD16Async(CUdeviceptr memory, unsigned short value, size_t count, CUstream stream) {
  return result(mcMemset2DAsync(address(memory), 0, value, 2, count, 1, own(stream)));
}
CUresult cuMemsetD32Async(CUdeviceptr memory, unsigned int value, size_t count, CUstream stream) {
  return result(mcMemset2DAsync(address(memory), 0, value, 4, count, 1, own(stream)));
}
CUresult cuMemsetD8(CUdeviceptr memory, unsigned char value, size_t count) {
  NEEDS_CONTEXT();
  return cuMemsetD8Async(memory, value, count, nullptr);
}
CUresult cuMemsetD16(CUdeviceptr memory, unsigned short value, size_t count) {
  NEEDS_CONTEXT();
  return cuMemsetD16Async(memory, value, count, nullptr);
}
CUresult cuMemsetD32(CUdeviceptr memory, unsigned int value, size_t count) {
  NEEDS_CONTEXT();
  return cuMemsetD32Async(memory, value, count, nullptr);
}

// ---- Virtual memory -------------------------------------------------------------------------------------------------

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
  void* memory = nullptr;
  RETURN_IF_NULL(out);
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, 0));
  RETURN_IF_WRONG(mcAddressReserve(&memory, size, alignment, address(wish)));
  *out = pointer(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr memory, size_t size) { return result(mcAddressFree(address(memory), size)); }

namespace {
bool isDeviceMemory(const CUmemAllocationProp& prop) {
  return prop.type == CU_MEM_ALLOCATION_TYPE_PINNED && prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}
}  // namespace

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  if (handle == nullptr || prop == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!isDeviceMemory(*prop)) return CUDA_ERROR_INVALID_VALUE;
  constexpr int kKnownHandles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((prop->requestedHandleTypes & ~kKnownHandles) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  mcPhysicalMemory_t memory = nullptr;
  const mcError_t error = mcPhysicalCreate(&memory, size, prop->location.id);
  if (error == mcSuccess) *handle = static_cast<CUmemGenericAllocationHandle>(reinterpret_cast<uintptr_t>(memory));
  return result(error);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) { return result(mcPhysicalRelease(own(handle))); }
CUresult cuMemMap(CUdeviceptr memory, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : result(mcMap(address(memory), size, offset, own(handle)));
}
CUresult cuMemUnmap(CUdeviceptr memory, size_t size) { return result(mcUnmap(address(memory), size)); }

CUresult cuMemSetAccess(CUdeviceptr memory, size_t size, const CUmemAccessDesc* desc, size_t count) {
  // All devices share the host's memory, so the widest access that any of them asks for is everybody's.
  int widest = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const int flags = desc[i].flags;
    if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    RETURN_IF_WRONG(mxmaca::checkLocation(desc[i].location.type, desc[i].location.id));
    widest = flags > widest ? flags : widest;
  }
  return result(mcSetAccess(address(memory), size, widest & 1, widest >> 1));
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  if (granularity == nullptr || prop == nullptr || (option != 0 && option != 1)) return CUDA_ERROR_INVALID_VALUE;
  if (!isDeviceMemory(*prop)) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mxmaca::checkDevice(prop->location.id));
  *granularity = mcVirtualGranularity();
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  size_t bytes = 0;
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memset(prop, 0, sizeof *prop);
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return result(mcPhysicalInfo(own(handle), &prop->location.id, &bytes));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* mapped) {
  mcPhysicalMemory_t memory = nullptr;
  RETURN_IF_NULL(handle);
  const mcError_t error = mcPhysicalRetain(&memory, mapped);
  if (error == mcSuccess) *handle = static_cast<CUmemGenericAllocationHandle>(reinterpret_cast<uintptr_t>(memory));
  return result(error);
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, 0));
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return result(mcPhysicalExport(own(handle), static_cast<int*>(shareable)));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  RETURN_IF_NULL(handle);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  mcPhysicalMemory_t memory = nullptr;
  const mcError_t error = mcPhysicalImport(&memory, static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
  if (error == mcSuccess) *handle = static_cast<CUmemGenericAllocationHandle>(reinterpret_cast<uintptr_t>(memory));
  return result(error);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory) {
  return result(mcIpcGetMemHandle(reinterpret_cast<mcIpcHandle*>(handle), address(memory)));
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, cudaIpcMemLazyEnablePeerAccess));
  return allocate(
      out, 1, [&](void** memory) { return mcIpcOpenMemHandle(memory, reinterpret_cast<const mcIpcHandle*>(&handle)); });
}
CUresult cuIpcCloseMemHandle(CUdeviceptr memory) { return result(mcIpcCloseMemHandle(address(memory))); }
CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return result(mcIpcGetEventHandle(reinterpret_cast<mcIpcHandle*>(handle), own(event)));
}
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return result(mcIpcOpenEventHandle(reinterpret_cast<mcEvent_t*>(event), reinterpret_cast<mcIpcHandle*>(&handle)));
}

// ---- Streams and events ---------------------------------------------------------------------------------------------

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  NEEDS_CONTEXT();
  return result(mcStreamCreateWithPriority(reinterpret_cast<mcStream_t*>(stream), flags, priority));
}
CUresult cuStreamCreate(CUstream* stream, unsigned int flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
CUresult cuStreamDestroy(CUstream stream) { return result(mcStreamDestroy(own(stream))); }
CUresult cuStreamQuery(CUstream stream) { return result(mcStreamCheck(own(stream))); }
CUresult cuStreamSynchronize(CUstream stream) { return result(mcStreamCheck(own(stream))); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, cudaEventWaitExternal));
  return result((flags & cudaEventWaitExternal) != 0 ? mcStreamWaitEventExternal(own(stream), own(event))
                                                     : mcStreamWaitEvent(own(stream), own(event)));
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  int device = 0;
  RETURN_IF_NULL(context);
  const mcError_t error = mcStreamGetDevice(own(stream), &device);
  if (error == mcSuccess) *context = primaryContext(device);
  return result(error);
}
CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return result(mcStreamGetPriority(own(stream), priority));
}
CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) { return result(mcStreamGetFlags(own(stream), flags)); }
CUresult cuStreamIsCapturing(CUstream stream, cudaStreamCaptureStatus* status) {
  return result(
      mcStreamCaptureInfo(own(stream), reinterpret_cast<mcCaptureStatus*>(status), nullptr, nullptr, nullptr, nullptr));
}
CUresult cuThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return result(mcThreadExchangeCaptureMode(reinterpret_cast<mcCaptureMode*>(mode)));
}
CUresult cuStreamBeginCapture(CUstream stream, cudaStreamCaptureMode mode) {
  return result(mcStreamBeginCapture(own(stream), static_cast<mcCaptureMode>(mode)));
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return result(mcStreamEndCapture(own(stream), reinterpret_cast<mcGraph_t*>(graph)));
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, mxmaca::kInstantiateFlags));
  if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0) {
    return result(mcSetLastError(mcErrorNotSupported, "graphs that device code launches"));
  }
  return result(mcGraphInstantiate(reinterpret_cast<mcGraphExec_t*>(exec), reinterpret_cast<mcGraph_t>(graph)));
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return result(mcGraphLaunch(reinterpret_cast<mcGraphExec_t>(exec), own(stream)));
}
CUresult cuGraphDestroy(CUgraph graph) { return result(mcGraphDestroy(reinterpret_cast<mcGraph_t>(graph))); }
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return result(mcGraphExecDestroy(reinterpret_cast<mcGraphExec_t>(exec)));
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr target, uint32_t value, unsigned int flags) {
  return writeValue(stream, target, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr target, uint64_t value, unsigned int flags) {
  return writeValue(stream, target, value, flags);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* userData) {
  return result(mcLaunchHostFunction(own(stream), function, userData));
}
CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  NEEDS_CONTEXT();
  return result(mcEventCreate(reinterpret_cast<mcEvent_t*>(event), flags));
}
CUresult cuEventDestroy(CUevent event) { return result(mcEventDestroy(own(event))); }
CUresult cuEventRecord(CUevent event, CUstream stream) { return result(mcEventRecord(own(event), own(stream))); }
CUresult cuEventQuery(CUevent event) { return result(mcEventCheck(own(event))); }
CUresult cuEventSynchronize(CUevent event) { return result(mcEventCheck(own(event))); }
CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return result(mcEventElapsedTime(ms, own(start), own(end)));
}

// ---- Names of the first form, for callers that look symbols up by name; the form itself is the same -------------------

#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#define FIRST_FORM(name, parameters) CUresult name parameters __attribute__((alias(#name "_v2")));
FIRST_FORM(cuCtxPushCurrent, (CUcontext))
FIRST_FORM(cuCtxPopCurrent, (CUcontext*))
FIRST_FORM(cuDevicePrimaryCtxRelease, (CUdevice))
FIRST_FORM(cuDevicePrimaryCtxReset, (CUdevice))
FIRST_FORM(cuDevicePrimaryCtxSetFlags, (CUdevice, unsigned int))
FIRST_FORM(cuStreamDestroy, (CUstream))
FIRST_FORM(cuEventDestroy, (CUevent))
FIRST_FORM(cuStreamWriteValue32, (CUstream, CUdeviceptr, uint32_t, unsigned int))
FIRST_FORM(cuStreamWriteValue64, (CUstream, CUdeviceptr, uint64_t, unsigned int))

}  // extern "C"
#pragma GCC visibility pop
