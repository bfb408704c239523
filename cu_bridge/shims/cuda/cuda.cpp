// The CUDA driver interface on top of the simulated device.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device_facts.h"
#include "mc_runtime.h"
#include "refuse.h"

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

// A context is a device's primary one; there are no others.
struct CUctx_st {
  int device;
};

namespace {

CUresult result(mcError_t error) { return static_cast<CUresult>(error); }
mcStream_t own(CUstream stream) { return reinterpret_cast<mcStream_t>(stream); }
mcEvent_t own(CUevent event) { return reinterpret_cast<mcEvent_t>(event); }
mcPhysicalMemory_t own(CUmemGenericAllocationHandle handle) {
  return reinterpret_cast<mcPhysicalMemory_t>(static_cast<uintptr_t>(handle));
}
void* address(CUdeviceptr pointer) { return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)); }
CUdeviceptr pointer(void* address) { return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(address)); }

constexpr int kMaxDevices = 64;

CUcontext primaryContext(int device) {
  static CUctx_st contexts[kMaxDevices];
  contexts[device].device = device;
  return &contexts[device];
}

// What other threads and the runtime interface do counts too: the current context is the current device's.
thread_local std::vector<CUcontext>* contextStack = nullptr;

CUresult checkDevice(CUdevice device) {
  mcDeviceProperties properties;
  return result(mcGetDeviceProperties(&properties, device));
}

template <class Allocate>
CUresult allocate(CUdeviceptr* out, size_t bytes, Allocate&& call) {
  void* memory = nullptr;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = call(&memory);
  if (error == mcSuccess) *out = pointer(memory);
  return result(error);
}

template <class Value>
CUresult writeValue(CUstream stream, CUdeviceptr target, Value value) {
  const mcError_t error = mcStreamCheck(own(stream));
  if (error != mcSuccess) return result(error);
  if (target % sizeof(Value) != 0) return CUDA_ERROR_INVALID_VALUE;
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
  const bool known = mcGetErrorName(static_cast<mcError_t>(error)) != nullptr;
  *text = known ? mcGetErrorString(static_cast<mcError_t>(error)) : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  switch (static_cast<int>(error)) {
    case 0: *text = "CUDA_SUCCESS"; return CUDA_SUCCESS;
#define MXMACA_ERROR(code, name) \
  case code: *text = "CUDA_ERROR_" name; return CUDA_SUCCESS;
#include "driver_error_names.inc"
#undef MXMACA_ERROR
    default: *text = nullptr; return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuGetProcAddress(const char* symbol, void** function, int, uint64_t, CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
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
  const CUresult error = checkDevice(ordinal);
  if (error == CUDA_SUCCESS) *device = ordinal;
  return error;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) std::snprintf(name, static_cast<size_t>(length), "%s", properties.name);
  return result(error);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) std::memcpy(uuid->bytes, properties.uuid, sizeof uuid->bytes);
  return result(error);
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) *bytes = properties.memory;
  return result(error);
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error != mcSuccess) return result(error);
  return mxmaca::deviceAttribute(properties, attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  mcDeviceProperties properties;
  const mcError_t error = mcGetDeviceProperties(&properties, device);
  if (error == mcSuccess) mxmaca::pciBusId(properties, id, static_cast<size_t>(length));
  return result(error);
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  *device = mxmaca::deviceByPciBusId(id);
  return *device < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  mcDeviceProperties properties;
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
  const CUresult error = checkDevice(device);
  if (error == CUDA_SUCCESS) *context = primaryContext(device);
  return error;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return checkDevice(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  const CUresult error = checkDevice(device);
  return error != CUDA_SUCCESS ? error : result(mcDeviceReset());
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int) { return checkDevice(device); }

// Always active: backward passes of some releases ask, and skip devices that are not.
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  const CUresult error = checkDevice(device);
  if (error != CUDA_SUCCESS) return error;
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  int device = 0;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = mcGetDevice(&device);
  *context = error == mcSuccess ? primaryContext(device) : nullptr;
  return result(error);
}

CUresult cuCtxSetCurrent(CUcontext context) {
  // Without a context the thread keeps its device: the runtime interface would make the context current again.
  return context == nullptr ? CUDA_SUCCESS : result(mcSetDevice(context->device));
}

CUresult cuCtxPushCurrent(CUcontext context) {
  CUcontext before = nullptr;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult error = cuCtxGetCurrent(&before);
  if (error != CUDA_SUCCESS) return error;
  if (contextStack == nullptr) contextStack = new std::vector<CUcontext>;
  contextStack->push_back(before);
  return cuCtxSetCurrent(context);
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  CUcontext current = nullptr;
  const CUresult error = cuCtxGetCurrent(&current);
  if (error != CUDA_SUCCESS) return error;
  if (context != nullptr) *context = current;
  if (contextStack == nullptr || contextStack->empty()) return CUDA_SUCCESS;
  const CUcontext before = contextStack->back();
  contextStack->pop_back();
  return cuCtxSetCurrent(before);
}

CUresult cuCtxGetDevice(CUdevice* device) { return result(mcGetDevice(device)); }
CUresult cuCtxSynchronize(void) { return result(mcDeviceSynchronize()); }
CUresult cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetFlags(unsigned int* flags) {
  *flags = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  mcStreamPriorityRange(least, greatest);
  return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return peer == nullptr ? CUDA_ERROR_INVALID_CONTEXT : result(mcDeviceEnablePeerAccess(peer->device, flags));
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

CUresult cuMemGetInfo(size_t* free, size_t* total) { return result(mcMemGetInfo(free, total)); }
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
CUresult cuMemAllocHost(void** out, size_t bytes) { return result(mcHostAlloc(out, bytes, 0)); }
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) { return result(mcHostAlloc(out, bytes, flags)); }
CUresult cuMemFreeHost(void* memory) { return result(mcFreeHost(memory)); }
CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned int flags) {
  return result(mcHostRegister(memory, bytes, flags));
}
CUresult cuMemHostUnregister(void* memory) { return result(mcHostUnregister(memory)); }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned int flags) {
  void* memory = nullptr;
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
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data, CUdeviceptr inside) {
  for (unsigned int i = 0; i < count; ++i) {
    const CUresult error = cuPointerGetAttribute(data[i], attributes[i], inside);
    if (error != CUDA_SUCCESS && error != CUDA_ERROR_INVALID_VALUE) return error;
  }
  return CUDA_SUCCESS;
}

// Copies are synchronous whether or not they are asked to be.
CUresult cuPointerSetAttribute(const void*, CUpointer_attribute attribute, CUdeviceptr) {
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
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) { return cuMemcpyAsync(dst, src, bytes, nullptr); }
CUresult cuMemcpyHtoD(CUdeviceptr dst, const void* src, size_t bytes) {
  return cuMemcpyHtoDAsync(dst, src, bytes, nullptr);
}
CUresult cuMemcpyDtoH(void* dst, CUdeviceptr src, size_t bytes) { return cuMemcpyDtoHAsync(dst, src, bytes, nullptr); }
CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
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
  return cuMemsetD8Async(memory, value, count, nullptr);
}
CUresult cuMemsetD16(CUdeviceptr memory, unsigned short value, size_t count) {
  return cuMemsetD16Async(memory, value, count, nullptr);
}
CUresult cuMemsetD32(CUdeviceptr memory, unsigned int value, size_t count) {
  return cuMemsetD32Async(memory, value, count, nullptr);
}

// ---- Virtual memory -------------------------------------------------------------------------------------------------

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wish, unsigned long long) {
  return allocate(out, size, [=](void** memory) { return mcAddressReserve(memory, size, alignment, address(wish)); });
}
CUresult cuMemAddressFree(CUdeviceptr memory, size_t size) { return result(mcAddressFree(address(memory), size)); }

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  if (handle == nullptr || prop == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
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
  for (size_t i = 0; i < count; ++i) widest = desc[i].flags > widest ? desc[i].flags : widest;
  return result(mcSetAccess(address(memory), size, widest & 1, widest >> 1));
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags) {
  if (granularity == nullptr || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
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
  const mcError_t error = mcPhysicalRetain(&memory, mapped);
  if (error == mcSuccess) *handle = static_cast<CUmemGenericAllocationHandle>(reinterpret_cast<uintptr_t>(memory));
  return result(error);
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return result(mcPhysicalExport(own(handle), static_cast<int*>(shareable)));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  mcPhysicalMemory_t memory = nullptr;
  const mcError_t error = mcPhysicalImport(&memory, static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
  if (error == mcSuccess) *handle = static_cast<CUmemGenericAllocationHandle>(reinterpret_cast<uintptr_t>(memory));
  return result(error);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory) {
  return result(mcIpcGetMemHandle(reinterpret_cast<mcIpcHandle*>(handle), address(memory)));
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int) {
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
  return result(mcStreamCreateWithPriority(reinterpret_cast<mcStream_t*>(stream), flags, priority));
}
CUresult cuStreamCreate(CUstream* stream, unsigned int flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
CUresult cuStreamDestroy(CUstream stream) { return result(mcStreamDestroy(own(stream))); }
CUresult cuStreamQuery(CUstream stream) { return result(mcStreamCheck(own(stream))); }
CUresult cuStreamSynchronize(CUstream stream) { return result(mcStreamCheck(own(stream))); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  return result(mcStreamWaitEvent(own(stream), own(event)));
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  int device = 0;
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
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  return result(mcGraphInstantiate(reinterpret_cast<mcGraphExec_t*>(exec), reinterpret_cast<mcGraph_t>(graph)));
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return result(mcGraphLaunch(reinterpret_cast<mcGraphExec_t>(exec), own(stream)));
}
CUresult cuGraphDestroy(CUgraph graph) { return result(mcGraphDestroy(reinterpret_cast<mcGraph_t>(graph))); }
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return result(mcGraphExecDestroy(reinterpret_cast<mcGraphExec_t>(exec)));
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr target, uint32_t value, unsigned int) {
  return writeValue(stream, target, value);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr target, uint64_t value, unsigned int) {
  return writeValue(stream, target, value);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* userData) {
  return result(mcLaunchHostFunction(own(stream), function, userData));
}
CUresult cuEventCreate(CUevent* event, unsigned int flags) {
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
