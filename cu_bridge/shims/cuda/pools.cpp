// Pitched, managed and pooled memory of the driver interface; see memory.cpp for the rest.

#include "launching/graph_memory.h"
#include "managed/advice.h"
#include "result.h"

namespace {

// Rows of elements, of which a pitch is counted in bytes; it must keep each of them whole.
template <class Value>
CUresult setRows(CUdeviceptr memory, size_t pitch, Value value, size_t width, size_t height, CUstream stream) {
  return result(mcMemset2DAsync(address(memory), pitch, value, sizeof(Value), width, height, own(stream)));
}

#if MXMACA_CUDA_MAJOR >= 13
using Place = CUmemLocation;
mcError_t checkPlace(const Place& place) { return checkLocation(place.type, place.id); }
int numberOf(const Place& place) { return placeOfLocation(place.type, place.id); }
#else
using Place = CUdevice;
mcError_t checkPlace(Place device) { return device == CU_DEVICE_CPU ? mcSuccess : checkDevice(device); }
int numberOf(Place device) { return device; }
#endif

// Managed memory lies where it lies: what is asked for is checked and kept, and there is nothing to move.
CUresult prefetch(CUdeviceptr memory, size_t bytes, const Place& place, CUstream stream) {
  RETURN_IF_WRONG(mcStreamCheck(own(stream)));
  RETURN_IF_WRONG(checkManagedRange(address(memory), bytes));
  RETURN_IF_WRONG(checkPlace(place));
  return result(recordPrefetch(address(memory), bytes, numberOf(place)));
}
CUresult advise(CUdeviceptr memory, size_t bytes, int advice, const Place& place) {
  RETURN_IF_WRONG(checkAdvice(advice));
  RETURN_IF_WRONG(checkManagedRange(address(memory), bytes));
  if (adviceNamesPlace(advice)) RETURN_IF_WRONG(checkPlace(place));
  return result(recordAdvice(address(memory), bytes, advice, numberOf(place)));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuMemAllocPitch(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned int elementBytes) {
  constexpr size_t kUnit = 512;
  NEEDS_CONTEXT();
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0 || width > SIZE_MAX - kUnit ||
      (elementBytes != 4 && elementBytes != 8 && elementBytes != 16)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const size_t row = (width + kUnit - 1) / kUnit * kUnit;
  size_t bytes = 0;
  void* memory = nullptr;
  if (__builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  RETURN_IF_WRONG(mcMalloc(&memory, bytes));
  *out = pointer(memory);
  *pitch = row;
  return CUDA_SUCCESS;
}

CUresult cuMemsetD2D8Async(CUdeviceptr memory, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
  return setRows(memory, pitch, value, width, height, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr memory, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) {
  return setRows(memory, pitch, value, width, height, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr memory, size_t pitch, unsigned int value, size_t width, size_t height,
                            CUstream stream) {
  return setRows(memory, pitch, value, width, height, stream);
}
CUresult cuMemsetD2D8(CUdeviceptr memory, size_t pitch, unsigned char value, size_t width, size_t height) {
  NEEDS_CONTEXT();
  return finished(setRows(memory, pitch, value, width, height, nullptr));
}
CUresult cuMemsetD2D16(CUdeviceptr memory, size_t pitch, unsigned short value, size_t width, size_t height) {
  NEEDS_CONTEXT();
  return finished(setRows(memory, pitch, value, width, height, nullptr));
}
CUresult cuMemsetD2D32(CUdeviceptr memory, size_t pitch, unsigned int value, size_t width, size_t height) {
  NEEDS_CONTEXT();
  return finished(setRows(memory, pitch, value, width, height, nullptr));
}
CUresult cuMemHostGetFlags(unsigned int* flags, void* memory) { return result(mcHostGetFlags(flags, memory)); }

#if MXMACA_CUDA_MAJOR >= 13
CUresult cuMemPrefetchAsync(CUdeviceptr memory, size_t bytes, CUmemLocation location, unsigned int flags,
                            CUstream stream) {
  RETURN_IF_WRONG(checkFlags(flags, 0));
  return prefetch(memory, bytes, location, stream);
}
CUresult cuMemAdvise(CUdeviceptr memory, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  return advise(memory, bytes, advice, location);
}
#else
CUresult cuMemPrefetchAsync(CUdeviceptr memory, size_t bytes, CUdevice device, CUstream stream) {
  return prefetch(memory, bytes, device, stream);
}
CUresult cuMemAdvise(CUdeviceptr memory, size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise(memory, bytes, advice, device);
}
#endif
CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr memory,
                                size_t bytes) {
  RETURN_IF_WRONG(rangeAttribute(data, dataSize, attribute, address(memory), bytes));
  return CUDA_SUCCESS;
}
CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t numAttributes, CUdeviceptr memory, size_t bytes) {
  RETURN_IF_WRONG(rangeAttributes(data, dataSizes, attributes, numAttributes, address(memory), bytes));
  return CUDA_SUCCESS;
}

// ---- Pools ----------------------------------------------------------------------------------------------------------

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return result(mcDeviceGetDefaultMemPool(own(pool), device));
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return result(mcDeviceGetMemPool(own(pool), device));
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return result(mcDeviceSetMemPool(device, own(pool)));
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  if (pool == nullptr || properties == nullptr || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return result(mcSetLastError(mcErrorNotSupported, "shareable memory pools"));
  }
  return result(mcMemPoolCreate(own(pool), properties->location.id));
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) { return result(mcMemPoolDestroy(own(pool))); }
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return result(mcMemPoolGetAttribute(own(pool), static_cast<mcPoolAttribute>(attribute), value));
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return result(mcMemPoolSetAttribute(own(pool), static_cast<mcPoolAttribute>(attribute), value));
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* all, size_t count) {
  return result(setPoolAccess(own(pool), all, count));
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return result(poolAccess(flags, own(pool), location));
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) { return result(mcMemPoolTrimTo(own(pool), keep)); }
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  void* memory = nullptr;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_WRONG(mcMallocFromPoolAsync(&memory, bytes, own(pool), own(stream)));
  *out = pointer(memory);
  return CUDA_SUCCESS;
}

// ---- Memory of graphs -----------------------------------------------------------------------------------------------

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return result(getGraphMemory(device, attribute, value));
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return result(setGraphMemory(device, attribute, value));
}
// What no graph needs any more is given back at once.
CUresult cuDeviceGraphMemTrim(CUdevice device) { return result(checkDevice(device)); }

}  // extern "C"
#pragma GCC visibility pop
