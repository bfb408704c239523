// Memory, virtual memory, and memory of other processes.

#include <cstdint>
#include <cstring>

#include "contexts.h"
#include "profiling/told.h"

namespace {

mcPhysicalMemory_t own(CUmemGenericAllocationHandle handle) {
  return reinterpret_cast<mcPhysicalMemory_t>(static_cast<uintptr_t>(handle));
}
CUmemGenericAllocationHandle handleOf(mcPhysicalMemory_t memory) { return reinterpret_cast<uintptr_t>(memory); }
template <class Allocate>
CUresult allocate(CUdeviceptr* out, size_t bytes, Allocate&& call) {
  void* memory = nullptr;
  NEEDS_CONTEXT();
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const mcError_t error = call(&memory);
  if (error == mcSuccess) *out = pointer(memory);
  return result(error);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  NEEDS_CONTEXT();
  return result(mcMemGetInfo(free, total));
}
CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) {
  const auto work = [&] { return allocate(out, bytes, [=](void** memory) { return mcMalloc(memory, bytes); }); };
  return toldOfDriver(243, mcCallMalloc, work, out, bytes);
}
CUresult cuMemFree(CUdeviceptr memory) {
  const auto work = [&] { return result(mcFree(address(memory))); };
  return toldOfDriver(245, mcCallFree, work, memory);
}
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  return allocate(out, bytes, [=](void** memory) { return mcMallocManaged(memory, bytes, flags); });
}
CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  const auto work = [&] {
    return allocate(out, bytes, [=](void** memory) { return mcMallocAsync(memory, bytes, own(stream)); });
  };
  return toldOfDriver(598, mcCallMallocAsync, work, out, bytes, stream);
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  const auto work = [&] { return result(mcFreeAsync(address(memory), own(stream))); };
  return toldOfDriver(600, mcCallFreeAsync, work, memory, stream);
}
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    RETURN_IF_WRONG(valueError(bytes != 0));
    return result(mcHostAlloc(out, bytes, flags));
  };
  return toldOfDriver(39, mcCallHostAlloc, work, out, bytes, flags);
}
CUresult cuMemAllocHost(void** out, size_t bytes) {
  const auto work = [&] { return cuMemHostAlloc(out, bytes, 0); };
  return toldOfDriver(294, mcCallHostAlloc, work, out, bytes);
}
CUresult cuMemFreeHost(void* memory) {
  const auto work = [&] { return result(mcFreeHost(memory)); };
  return toldOfDriver(38, mcCallFreeHost, work, memory);
}
CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned int flags) {
  constexpr unsigned int kKnownFlags = 15;  // portable, mapped, of a device's registers, read-only
  NEEDS_CONTEXT();
  RETURN_IF_WRONG(checkFlags(flags, kKnownFlags));
  RETURN_IF_WRONG(checkHostRange(memory, bytes));
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
  const auto work = [&] {
    return result(mcMemcpyAsync(address(dst), address(src), bytes, mcMemcpyDefault, own(stream)));
  };
  return toldOfDriver(306, mcCallMemcpyAsync, work, dst, src, bytes, stream);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  const auto work = [&] { return result(mcMemcpyAsync(address(dst), src, bytes, mcMemcpyHostToDevice, own(stream))); };
  return toldOfDriver(277, mcCallMemcpyAsync, work, dst, src, bytes, stream);
}
CUresult cuMemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  const auto work = [&] { return result(mcMemcpyAsync(dst, address(src), bytes, mcMemcpyDeviceToHost, own(stream))); };
  return toldOfDriver(279, mcCallMemcpyAsync, work, dst, src, bytes, stream);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  const auto work = [&] {
    return result(mcMemcpyAsync(address(dst), address(src), bytes, mcMemcpyDeviceToDevice, own(stream)));
  };
  return toldOfDriver(281, mcCallMemcpyAsync, work, dst, src, bytes, stream);
}
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return finished(cuMemcpyAsync(dst, src, bytes, nullptr));
  };
  return toldOfDriver(305, mcCallMemcpy, work, dst, src, bytes);
}
CUresult cuMemcpyHtoD(CUdeviceptr dst, const void* src, size_t bytes) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return finished(cuMemcpyHtoDAsync(dst, src, bytes, nullptr));
  };
  return toldOfDriver(276, mcCallMemcpy, work, dst, src, bytes);
}
CUresult cuMemcpyDtoH(void* dst, CUdeviceptr src, size_t bytes) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return finished(cuMemcpyDtoHAsync(dst, src, bytes, nullptr));
  };
  return toldOfDriver(278, mcCallMemcpy, work, dst, src, bytes);
}
CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return finished(cuMemcpyDtoDAsync(dst, src, bytes, nullptr));
  };
  return toldOfDriver(280, mcCallMemcpy, work, dst, src, bytes);
}

CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t count, CUstream stream) {
  const auto work = [&] { return result(mcMemset2DAsync(address(memory), 0, value, 1, count, 1, own(stream))); };
  return toldOfDriver(216, mcCallMemsetAsync, work, memory, value, count, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr memory, unsigned short value, size_t count, CUstream stream) {
  const auto work = [&] { return result(mcMemset2DAsync(address(memory), 0, value, 2, count, 1, own(stream))); };
  return toldOfDriver(218, mcCallMemsetAsync, work, memory, value, count, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr memory, unsigned int value, size_t count, CUstream stream) {
  const auto work = [&] { return result(mcMemset2DAsync(address(memory), 0, value, 4, count, 1, own(stream))); };
  return toldOfDriver(220, mcCallMemsetAsync, work, memory, value, count, stream);
}
CUresult cuMemsetD8(CUdeviceptr memory, unsigned char value, size_t count) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return finished(cuMemsetD8Async(memory, value, count, nullptr));
  };
  return toldOfDriver(249, mcCallMemset, work, memory, value, count);
}
CUresult cuMemsetD16(CUdeviceptr memory, unsigned short value, size_t count) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return finished(cuMemsetD16Async(memory, value, count, nullptr));
  };
  return toldOfDriver(250, mcCallMemset, work, memory, value, count);
}
CUresult cuMemsetD32(CUdeviceptr memory, unsigned int value, size_t count) {
  const auto work = [&]() -> CUresult {
    NEEDS_CONTEXT();
    return finished(cuMemsetD32Async(memory, value, count, nullptr));
  };
  return toldOfDriver(251, mcCallMemset, work, memory, value, count);
}

// ---- Virtual memory -------------------------------------------------------------------------------------------------

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
  void* memory = nullptr;
  RETURN_IF_NULL(out);
  RETURN_IF_WRONG(checkFlags(flags, 0));
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
  if (error == mcSuccess) *handle = handleOf(memory);
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
    RETURN_IF_WRONG(checkLocation(desc[i].location.type, desc[i].location.id));
    widest = flags > widest ? flags : widest;
  }
  return result(mcSetAccess(address(memory), size, widest & 1, widest >> 1));
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr memory) {
  int readable = 0, writable = 0;
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(checkLocation(location->type, location->id));
  RETURN_IF_WRONG(mcGetAccess(address(memory), &readable, &writable));
  *flags = writable != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : readable != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  if (granularity == nullptr || prop == nullptr || (option != 0 && option != 1)) return CUDA_ERROR_INVALID_VALUE;
  if (!isDeviceMemory(*prop)) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(checkDevice(prop->location.id));
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
  if (error == mcSuccess) *handle = handleOf(memory);
  return result(error);
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  RETURN_IF_WRONG(checkFlags(flags, 0));
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return result(mcPhysicalExport(own(handle), static_cast<int*>(shareable)));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  RETURN_IF_NULL(handle);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  mcPhysicalMemory_t memory = nullptr;
  const mcError_t error = mcPhysicalImport(&memory, static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
  if (error == mcSuccess) *handle = handleOf(memory);
  return result(error);
}

// ---- Other processes ------------------------------------------------------------------------------------------------

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory) {
  return result(mcIpcGetMemHandle(ownIpc(handle), address(memory)));
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaIpcMemLazyEnablePeerAccess));
  return allocate(out, 1, [&](void** memory) { return mcIpcOpenMemHandle(memory, ownIpc(&handle)); });
}
CUresult cuIpcCloseMemHandle(CUdeviceptr memory) { return result(mcIpcCloseMemHandle(address(memory))); }
CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return result(mcIpcGetEventHandle(ownIpc(handle), own(event)));
}
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return result(mcIpcOpenEventHandle(own(event), ownIpc(&handle)));
}

}  // extern "C"
#pragma GCC visibility pop
