// Memory: allocating, copying and filling it, pools, and memory of other processes.

#include <cstring>
#include <initializer_list>

#include "convert.h"
#include "managed/advice.h"

namespace {
// After work on the default stream, for a function that returns when it is done.
template <class Error>
cudaError_t finished(Error submitted) {
  const auto error = static_cast<mcError_t>(submitted);
  return result(error != mcSuccess || __atomic_load_n(mcPendingWork(), __ATOMIC_ACQUIRE) == 0
                    ? error
                    : mcStreamSynchronize(nullptr));
}
}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size) {
  mcContextSet(1);
  return result(mcMalloc(pointer, size));
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  constexpr size_t kUnit = 512;
  if (pointer == nullptr || pitch == nullptr || width > SIZE_MAX - kUnit) return fail(mcErrorInvalidValue);
  *pitch = (width + kUnit - 1) / kUnit * kUnit;
  size_t bytes = 0;
  if (__builtin_mul_overflow(*pitch, height, &bytes)) return fail(mcErrorMemoryAllocation);
  return result(mcMalloc(pointer, bytes));
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  return result(mcMallocManaged(pointer, size, flags));
}
cudaError_t cudaMallocHost(void** pointer, size_t size) { return result(mcHostAlloc(pointer, size, 0)); }
cudaError_t cudaFree(void* pointer) {
  mcContextSet(1);
  return result(mcFree(pointer));
}
cudaError_t cudaFreeHost(void* pointer) { return result(mcFreeHost(pointer)); }
cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  return result(mcHostAlloc(pointer, size, flags));
}
cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(
      flags, cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly));
  RETURN_IF_WRONG(checkHostRange(pointer, size));
  return result(mcHostRegister(pointer, size, flags));
}
cudaError_t cudaHostUnregister(void* pointer) { return result(mcHostUnregister(pointer)); }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return result(mcHostGetDevicePointer(device, host, flags));
}
cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) { return result(mcHostGetFlags(flags, host)); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return result(mcMemGetInfo(free, total)); }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  mcPointerAttributes own;
  if (attributes == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcPointerGetAttributes(&own, pointer);
  if (error != mcSuccess) return result(error);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->type = static_cast<cudaMemoryType>(own.kind);
  attributes->device = own.device;
  auto* const address = const_cast<void*>(pointer);
  attributes->devicePointer = own.kind == mcMemoryUnregistered ? nullptr : address;
  attributes->hostPointer = own.kind == mcMemoryDevice ? nullptr : address;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return result(mcMemcpy(dst, src, count, own(kind)));
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return result(mcMemcpyAsync(dst, src, count, own(kind), own(stream)));
}
cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return finished(mcMemcpy2DAsync(dst, dpitch, src, spitch, width, height, own(kind), nullptr));
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return result(mcMemcpy2DAsync(dst, dpitch, src, spitch, width, height, own(kind), own(stream)));
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  mcDeviceProperties properties;
  for (const int device : {dstDevice, srcDevice}) {
    const mcError_t error = mcGetDeviceProperties(&properties, device);
    if (error != mcSuccess) return result(error);
  }
  return result(mcMemcpyAsync(dst, src, count, mcMemcpyDeviceToDevice, own(stream)));
}

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  return finished(cudaMemcpyPeerAsync(dst, dstDevice, src, srcDevice, count, nullptr));
}

cudaError_t cudaMemset(void* pointer, int value, size_t count) { return result(mcMemset(pointer, value, count)); }
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  return result(mcMemsetAsync(pointer, value, count, own(stream)));
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return finished(cudaMemset2DAsync(pointer, pitch, value, width, height, nullptr));
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return result(mcMemset2DAsync(pointer, pitch, static_cast<unsigned char>(value), 1, width, height, own(stream)));
}

// Managed memory is everywhere at once: a hint where to keep it is checked, and kept for those who ask.
#if MXMACA_CUDA_MAJOR >= 13
using Place = cudaMemLocation;
#else
using Place = int;
#endif

namespace {
#if MXMACA_CUDA_MAJOR >= 13
mcError_t checkPlace(const cudaMemLocation& place) { return checkLocation(place.type, place.id); }
int numberOf(const cudaMemLocation& place) { return placeOfLocation(place.type, place.id); }
#else
constexpr int kHost = -1;
mcError_t checkPlace(int device) { return device == kHost ? mcSuccess : checkDevice(device); }
int numberOf(int device) { return device; }
#endif

cudaError_t prefetch(const void* pointer, size_t count, const Place& place, unsigned int flags, cudaStream_t stream) {
  RETURN_IF_WRONG(mcStreamCheck(own(stream)));
  RETURN_IF_WRONG(checkFlags(flags, 0));
  RETURN_IF_WRONG(checkManagedRange(pointer, count));
  RETURN_IF_WRONG(checkPlace(place));
  return result(recordPrefetch(pointer, count, numberOf(place)));
}
}  // namespace

cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, Place place) {
  RETURN_IF_WRONG(checkAdvice(advice));
  RETURN_IF_WRONG(checkManagedRange(pointer, count));
  if (adviceNamesPlace(advice)) RETURN_IF_WRONG(checkPlace(place));
  return result(recordAdvice(pointer, count, advice, numberOf(place)));
}
cudaError_t cudaMemRangeGetAttribute(void* data, size_t dataSize, cudaMemRangeAttribute attribute, const void* pointer,
                                     size_t count) {
  RETURN_IF_WRONG(rangeAttribute(data, dataSize, attribute, pointer, count));
  return cudaSuccess;
}
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* dataSizes, cudaMemRangeAttribute* attributes,
                                      size_t numAttributes, const void* pointer, size_t count) {
  RETURN_IF_WRONG(rangeAttributes(data, dataSizes, attributes, numAttributes, pointer, count));
  return cudaSuccess;
}
#if MXMACA_CUDA_MAJOR >= 13
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  return prefetch(pointer, count, location, flags, stream);
}
#else
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, int device, cudaStream_t stream) {
  return prefetch(pointer, count, device, 0, stream);
}
#endif

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length, unsigned int flags) {
  RETURN_IF_WRONG(checkAttachment(own(stream), pointer, length, flags));
  return cudaSuccess;
}

// Variables of device code.
cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr) return fail(mcErrorInvalidValue);
  return result(mcVariableGet(pointer, nullptr, symbol));
}
cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  if (size == nullptr) return fail(mcErrorInvalidValue);
  return result(mcVariableGet(nullptr, size, symbol));
}

namespace {
// The place of `count` bytes inside a variable; nullptr with an error if they do not lie within it.
char* insideSymbol(const void* symbol, size_t count, size_t offset, cudaError_t* error) {
  void* address = nullptr;
  size_t size = 0;
  *error = result(mcVariableGet(&address, &size, symbol));
  if (*error != cudaSuccess) return nullptr;
  if (offset > size || count > size - offset) {
    *error = fail(mcErrorInvalidValue);
    return nullptr;
  }
  return static_cast<char*>(address) + offset;
}
}  // namespace

// A symbol's memory is known to no allocator, so its side of the copy is not checked.
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  char* const place = insideSymbol(symbol, count, offset, &error);
  if (place == nullptr) return error;
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
    return fail(mcErrorInvalidMemcpyDirection);
  }
  return result(mcMemcpyAsync(place, src, count, mcMemcpyDefault, own(stream)));
}
cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  char* const place = insideSymbol(symbol, count, offset, &error);
  if (place == nullptr) return error;
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
    return fail(mcErrorInvalidMemcpyDirection);
  }
  return result(mcMemcpyAsync(dst, place, count, mcMemcpyDefault, own(stream)));
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset, cudaMemcpyKind kind) {
  return finished(cudaMemcpyToSymbolAsync(symbol, src, count, offset, kind, nullptr));
}
cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  return finished(cudaMemcpyFromSymbolAsync(dst, symbol, count, offset, kind, nullptr));
}

// ---- Stream-ordered memory ------------------------------------------------------------------------------------------

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return result(mcMallocAsync(pointer, size, own(stream)));
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return result(mcMallocFromPoolAsync(pointer, size, own(pool), own(stream)));
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) { return result(mcFreeAsync(pointer, own(stream))); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return result(mcDeviceGetDefaultMemPool(own(pool), device));
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return result(mcDeviceGetMemPool(own(pool), device));
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return result(mcDeviceSetMemPool(device, own(pool)));
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  if (pool == nullptr || props == nullptr || props->allocType != cudaMemAllocationTypePinned ||
      props->location.type != cudaMemLocationTypeDevice) {
    return fail(mcErrorInvalidValue);
  }
  if (props->handleTypes != cudaMemHandleTypeNone) return unsupported("shareable memory pools");
  return result(mcMemPoolCreate(own(pool), props->location.id));
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return result(mcMemPoolDestroy(own(pool))); }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return result(mcMemPoolGetAttribute(own(pool), static_cast<mcPoolAttribute>(attr), value));
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return result(mcMemPoolSetAttribute(own(pool), static_cast<mcPoolAttribute>(attr), value));
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descs, size_t count) {
  return recorded(setPoolAccess(own(pool), descs, count));
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return recorded(poolAccess(flags, own(pool), location));
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) { return result(mcMemPoolTrimTo(own(pool), keep)); }

// ---- Other processes ------------------------------------------------------------------------------------------------

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return result(mcIpcGetMemHandle(ownIpc(handle), pointer));
}
cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  RETURN_IF_WRONG(checkFlags(flags, cudaIpcMemLazyEnablePeerAccess));
  return result(mcIpcOpenMemHandle(pointer, ownIpc(&handle)));
}
cudaError_t cudaIpcCloseMemHandle(void* pointer) { return result(mcIpcCloseMemHandle(pointer)); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return result(mcIpcGetEventHandle(ownIpc(handle), own(event)));
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return result(mcIpcOpenEventHandle(own(event), ownIpc(&handle)));
}

}  // extern "C"
#pragma GCC visibility pop
