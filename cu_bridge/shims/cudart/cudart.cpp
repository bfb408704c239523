// The CUDA runtime on top of the simulated device: names, types and versions, no behaviour of its own.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "checks.h"
#include "device_facts.h"
#include "mc_kernel.h"
#include "mc_runtime.h"
#include "refuse.h"

#pragma GCC visibility push(default)
#include "cuda_runtime_api.h"

namespace {

cudaError_t result(mcError_t error) { return static_cast<cudaError_t>(error); }
mcStream_t own(cudaStream_t stream) { return reinterpret_cast<mcStream_t>(stream); }
mcEvent_t own(cudaEvent_t event) { return reinterpret_cast<mcEvent_t>(event); }
mcMemoryPool_t own(cudaMemPool_t pool) { return reinterpret_cast<mcMemoryPool_t>(pool); }
mcMemcpyKind own(cudaMemcpyKind kind) { return static_cast<mcMemcpyKind>(kind); }
mcDim3 own(dim3 size) { return {size.x, size.y, size.z}; }

cudaError_t fail(mcError_t error) { return result(mcSetLastError(error, nullptr)); }

// Leaves the function with what a check of mxmaca has found.
#define RETURN_IF_WRONG(check)                    \
  do {                                            \
    const mcError_t wrong_ = (check);             \
    if (wrong_ != mcSuccess) return fail(wrong_); \
  } while (0)

// The function exists, the feature does not: the error's text says so.
cudaError_t unsupported(const char* function) { return result(mcSetLastError(mcErrorNotSupported, function)); }

}  // namespace

namespace mxmaca {

long refuse(const char* library, const char* function, int status, const char* statusName) {
  mcReportRefusal(library, function, statusName);
  return mcSetLastError(static_cast<mcError_t>(status), function);
}

}  // namespace mxmaca

extern "C" {

// ---- Errors ---------------------------------------------------------------------------------------------------------

cudaError_t cudaGetLastError(void) { return result(mcGetLastError()); }
cudaError_t cudaPeekAtLastError(void) { return result(mcPeekAtLastError()); }
const char* cudaGetErrorString(cudaError_t error) { return mcGetErrorString(static_cast<mcError_t>(error)); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
#define MXMACA_ERROR(code, name) \
  case code: return "cudaError" name;
#include "error_names.inc"
#undef MXMACA_ERROR
    default: return "unrecognized error code";
  }
}

// ---- Devices --------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) { return result(mcGetDeviceCount(count)); }
cudaError_t cudaGetDevice(int* device) { return result(mcGetDevice(device)); }
cudaError_t cudaSetDevice(int device) { return result(mcSetDevice(device)); }
cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
  constexpr unsigned int kDeviceFlagsAreValid = 1;
  RETURN_IF_WRONG(mxmaca::checkDevice(device));
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, kDeviceFlagsAreValid));
  if ((flags & kDeviceFlagsAreValid) != 0) RETURN_IF_WRONG(mxmaca::checkDeviceFlags(deviceFlags));
  return cudaSuccess;
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  if (device == nullptr || wanted == nullptr) return fail(mcErrorInvalidValue);
  *device = 0;
  int count = 0;
  return result(mcGetDeviceCount(&count));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  mcDeviceProperties p;
  if (prop == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcGetDeviceProperties(&p, device);
  if (error != mcSuccess) return result(error);
  std::memset(prop, 0, sizeof *prop);
  const auto attribute = [&p](int number) {
    int value = 0;
    mxmaca::deviceAttribute(p, number, &value);
    return value;
  };
  std::memcpy(prop->name, p.name, sizeof prop->name);
  std::memcpy(prop->uuid.bytes, p.uuid, sizeof prop->uuid.bytes);
  prop->totalGlobalMem = p.memory;
  prop->sharedMemPerBlock = static_cast<size_t>(p.sharedPerBlock);
  prop->regsPerBlock = p.registersPerBlock;
  prop->warpSize = p.warpSize;
  prop->memPitch = static_cast<size_t>(attribute(cudaDevAttrMaxPitch));
  prop->maxThreadsPerBlock = p.maxThreadsPerBlock;
  for (int i = 0; i < 3; ++i) {
    prop->maxThreadsDim[i] = attribute(cudaDevAttrMaxBlockDimX + i);
    prop->maxGridSize[i] = attribute(cudaDevAttrMaxGridDimX + i);
  }
  prop->totalConstMem = static_cast<size_t>(attribute(cudaDevAttrTotalConstantMemory));
  prop->major = p.major;
  prop->minor = p.minor;
  prop->textureAlignment = static_cast<size_t>(attribute(cudaDevAttrTextureAlignment));
  prop->texturePitchAlignment = static_cast<size_t>(attribute(cudaDevAttrTexturePitchAlignment));
  prop->surfaceAlignment = static_cast<size_t>(attribute(cudaDevAttrSurfaceAlignment));
  prop->multiProcessorCount = p.multiprocessors;
  prop->canMapHostMemory = 1;
  prop->concurrentKernels = 1;
  prop->pciBusID = p.pciBus;
  prop->pciDeviceID = p.pciDevice;
  prop->pciDomainID = p.pciDomain;
  prop->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  prop->unifiedAddressing = 1;
  prop->memoryBusWidth = p.memoryBusBits;
  prop->l2CacheSize = p.l2Bytes;
  prop->maxThreadsPerMultiProcessor = p.maxThreadsPerMultiprocessor;
  prop->streamPrioritiesSupported = 1;
  prop->globalL1CacheSupported = 1;
  prop->localL1CacheSupported = 1;
  prop->sharedMemPerMultiprocessor = static_cast<size_t>(p.sharedPerMultiprocessor);
  prop->regsPerMultiprocessor = p.registersPerMultiprocessor;
  prop->managedMemory = 1;
  prop->hostNativeAtomicSupported = 1;
  prop->concurrentManagedAccess = 1;
  prop->computePreemptionSupported = 1;
  prop->canUseHostPointerForRegisteredMem = 1;
  prop->cooperativeLaunch = 1;
  prop->sharedMemPerBlockOptin = static_cast<size_t>(p.sharedPerBlockOptin);
  prop->maxBlocksPerMultiProcessor = p.maxBlocksPerMultiprocessor;
  prop->reservedSharedMemPerBlock = static_cast<size_t>(p.sharedReserved);
  prop->hostRegisterSupported = 1;
  prop->hostRegisterReadOnlySupported = 1;
  prop->memoryPoolsSupported = 1;
  prop->ipcEventSupported = 1;
#if MXMACA_CUDA_MAJOR == 12
  prop->clockRate = p.clockKHz;
  prop->memoryClockRate = p.memoryClockKHz;
  prop->deviceOverlap = 1;
  prop->singleToDoublePrecisionPerfRatio = 2;
#else
  prop->deviceNumaId = -1;
  prop->hostNumaId = -1;
#endif
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  mcDeviceProperties p;
  if (value == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcGetDeviceProperties(&p, device);
  if (error != mcSuccess) return result(error);
  return mxmaca::deviceAttribute(p, attr, value) ? cudaSuccess : fail(mcErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  mcDeviceProperties p;
  if (id == nullptr || length < 13) return fail(mcErrorInvalidValue);
  const mcError_t error = mcGetDeviceProperties(&p, device);
  if (error == mcSuccess) mxmaca::pciBusId(p, id, static_cast<size_t>(length));
  return result(error);
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  if (device == nullptr || id == nullptr) return fail(mcErrorInvalidValue);
  *device = mxmaca::deviceByPciBusId(id);
  return *device < 0 ? fail(mcErrorInvalidDevice) : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  mcContextSet(1);
  return result(mcDeviceSynchronize());
}
cudaError_t cudaDeviceReset(void) { return result(mcDeviceReset()); }

// Limits and preferences of kernels: what is set is read again, and nothing depends on it.
namespace {
size_t limits[7] = {1024, 1048576, 8388608, 2, 2048, 128, 0};
cudaFuncCache cacheConfig = cudaFuncCachePreferNone;
unsigned int deviceFlags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
}  // namespace

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (value == nullptr) return fail(mcErrorInvalidValue);
  if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return fail(mcErrorUnsupportedLimit);
  *value = limits[limit];
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return fail(mcErrorUnsupportedLimit);
  limits[limit] = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  if (config == nullptr) return fail(mcErrorInvalidValue);
  *config = cacheConfig;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  RETURN_IF_WRONG(mxmaca::checkCacheConfig(config));
  cacheConfig = config;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  RETURN_IF_WRONG(mxmaca::checkDeviceFlags(flags));
  deviceFlags = flags | cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  if (flags == nullptr) return fail(mcErrorInvalidValue);
  *flags = deviceFlags;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  mcStreamPriorityRange(least, greatest);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return result(mcDeviceCanAccessPeer(can, device, peer));
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return result(mcDeviceEnablePeerAccess(peer, flags));
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) { return result(mcDeviceDisablePeerAccess(peer)); }

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return fail(mcErrorInvalidValue);
  *version = CUDA_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return fail(mcErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// No external profiler can be attached; as on a real device, that is no error.
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  using GetProcAddress = int (*)(const char*, void**, int, unsigned long long, int*);
  static const auto getProcAddress = [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<GetProcAddress>(driver == nullptr ? nullptr : dlsym(driver, "cuGetProcAddress_v2"));
  }();
  if (symbol == nullptr || function == nullptr || flags > cudaEnablePerThreadDefaultStream) {
    return fail(mcErrorInvalidValue);
  }
  if (getProcAddress == nullptr) {
    return result(mcSetLastError(mcErrorInsufficientDriver, "libcuda.so.1 of the mxmaca package was not found"));
  }
  int found = cudaDriverEntryPointSymbolNotFound;
  getProcAddress(symbol, function, static_cast<int>(version), flags, &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  if (found == cudaDriverEntryPointSuccess || status != nullptr) return cudaSuccess;
  return fail(mcErrorSymbolNotFound);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDA_VERSION, flags, status);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

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
  RETURN_IF_WRONG(mxmaca::checkFlags(
      flags, cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly));
  RETURN_IF_WRONG(mxmaca::checkHostRange(pointer, size));
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
  return result(mcMemcpy2DAsync(dst, dpitch, src, spitch, width, height, own(kind), nullptr));
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
  return cudaMemcpyPeerAsync(dst, dstDevice, src, srcDevice, count, nullptr);
}

cudaError_t cudaMemset(void* pointer, int value, size_t count) { return result(mcMemset(pointer, value, count)); }
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  return result(mcMemsetAsync(pointer, value, count, own(stream)));
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height, nullptr);
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return result(mcMemset2DAsync(pointer, pitch, static_cast<unsigned char>(value), 1, width, height, own(stream)));
}

// Managed memory is everywhere at once: a hint where to keep it has nothing to do once it is known to be a right one.
#if MXMACA_CUDA_MAJOR >= 13
using Place = cudaMemLocation;
#else
using Place = int;
#endif

namespace {
#if MXMACA_CUDA_MAJOR >= 13
mcError_t checkPlace(const cudaMemLocation& place) { return mxmaca::checkLocation(place.type, place.id); }
#else
constexpr int kHost = -1;
mcError_t checkPlace(int device) { return device == kHost ? mcSuccess : mxmaca::checkDevice(device); }
#endif

cudaError_t prefetch(const void* pointer, size_t count, const Place& place, unsigned int flags, cudaStream_t stream) {
  RETURN_IF_WRONG(mcStreamCheck(own(stream)));
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, 0));
  RETURN_IF_WRONG(mxmaca::checkManagedRange(pointer, count));
  RETURN_IF_WRONG(checkPlace(place));
  return cudaSuccess;
}
}  // namespace

cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, Place place) {
  RETURN_IF_WRONG(mxmaca::checkAdvice(advice));
  RETURN_IF_WRONG(mxmaca::checkManagedRange(pointer, count));
  if (mxmaca::adviceNamesPlace(advice)) RETURN_IF_WRONG(checkPlace(place));
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
  RETURN_IF_WRONG(mxmaca::checkAttachment(own(stream), pointer, length, flags));
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
  return cudaMemcpyToSymbolAsync(symbol, src, count, offset, kind, nullptr);
}
cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(dst, symbol, count, offset, kind, nullptr);
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
  return result(mcDeviceGetDefaultMemPool(reinterpret_cast<mcMemoryPool_t*>(pool), device));
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return result(mcDeviceGetMemPool(reinterpret_cast<mcMemoryPool_t*>(pool), device));
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
  return result(mcMemPoolCreate(reinterpret_cast<mcMemoryPool_t*>(pool), props->location.id));
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return result(mcMemPoolDestroy(own(pool))); }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return result(mcMemPoolGetAttribute(own(pool), static_cast<mcPoolAttribute>(attr), value));
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return result(mcMemPoolSetAttribute(own(pool), static_cast<mcPoolAttribute>(attr), value));
}
// Every device reaches every pool, so access can be given, and not taken away from another device.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descs, size_t count) {
  int owner = 0;
  RETURN_IF_WRONG(mcMemPoolGetDevice(own(pool), &owner));
  if (descs == nullptr && count != 0) return fail(mcErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    if (descs[i].location.type != cudaMemLocationTypeDevice) return fail(mcErrorInvalidValue);
    RETURN_IF_WRONG(mxmaca::checkDevice(descs[i].location.id));
    RETURN_IF_WRONG(mxmaca::checkFlags(static_cast<unsigned int>(descs[i].flags), cudaMemAccessFlagsProtReadWrite));
  }
  for (size_t i = 0; i < count; ++i) {
    if (descs[i].flags != cudaMemAccessFlagsProtReadWrite) return unsupported("pools with restricted access");
  }
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  int owner = 0;
  RETURN_IF_WRONG(mcMemPoolGetDevice(own(pool), &owner));
  if (flags == nullptr || location == nullptr || location->type != cudaMemLocationTypeDevice) {
    return fail(mcErrorInvalidValue);
  }
  RETURN_IF_WRONG(mxmaca::checkDevice(location->id));
  *flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) { return result(mcMemPoolTrimTo(own(pool), keep)); }

// ---- Other processes ------------------------------------------------------------------------------------------------

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(mcIpcHandle) && sizeof(cudaIpcEventHandle_t) == sizeof(mcIpcHandle));

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return result(mcIpcGetMemHandle(reinterpret_cast<mcIpcHandle*>(handle), pointer));
}
cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, cudaIpcMemLazyEnablePeerAccess));
  return result(mcIpcOpenMemHandle(pointer, reinterpret_cast<const mcIpcHandle*>(&handle)));
}
cudaError_t cudaIpcCloseMemHandle(void* pointer) { return result(mcIpcCloseMemHandle(pointer)); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return result(mcIpcGetEventHandle(reinterpret_cast<mcIpcHandle*>(handle), own(event)));
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return result(mcIpcOpenEventHandle(reinterpret_cast<mcEvent_t*>(event), reinterpret_cast<mcIpcHandle*>(&handle)));
}

// ---- Streams --------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  mcContextSet(1);
  return result(mcStreamCreateWithPriority(reinterpret_cast<mcStream_t*>(stream), flags, priority));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return result(mcStreamDestroy(own(stream))); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return result(mcStreamCheck(own(stream))); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return result(mcStreamCheck(own(stream))); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, cudaEventWaitExternal));
  return result((flags & cudaEventWaitExternal) != 0 ? mcStreamWaitEventExternal(own(stream), own(event))
                                                     : mcStreamWaitEvent(own(stream), own(event)));
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return result(mcStreamGetPriority(own(stream), priority));
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return result(mcStreamGetFlags(own(stream), flags));
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return result(mcStreamGetId(own(stream), id));
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return result(mcStreamGetDevice(own(stream), device));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData) {
  return result(mcLaunchHostFunction(own(stream), function, userData));
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags) {
  if (callback == nullptr || flags != 0) return fail(mcErrorInvalidValue);
  const mcError_t error = mcStreamCheck(own(stream));
  if (error == mcSuccess) callback(stream, cudaSuccess, userData);
  return result(error);
}

// ---- Capture and graphs ---------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return result(mcStreamBeginCapture(own(stream), static_cast<mcCaptureMode>(mode)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return result(mcStreamEndCapture(own(stream), reinterpret_cast<mcGraph_t*>(graph)));
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                          size_t, cudaStreamCaptureMode) {
  return unsupported("cudaStreamBeginCaptureToGraph");
}

namespace {
cudaError_t captureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                        cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
  return result(mcStreamCaptureInfo(own(stream), reinterpret_cast<mcCaptureStatus*>(status), id,
                                    reinterpret_cast<mcGraph_t*>(graph),
                                    reinterpret_cast<mcGraphNode_t const**>(dependencies), count));
}
}  // namespace

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return captureInfo(stream, status, nullptr, nullptr, nullptr, nullptr);
}

#if MXMACA_CUDA_MAJOR >= 13
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // no edge carries data
  return captureInfo(stream, status, id, graph, dependencies, count);
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
  return captureInfo(stream, status, id, graph, dependencies, count);
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return result(mcThreadExchangeCaptureMode(reinterpret_cast<mcCaptureMode*>(mode)));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
                                                cudaGraphInstantiateFlagDeviceLaunch |
                                                cudaGraphInstantiateFlagUseNodePriority));
  if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0) return unsupported("graphs that device code launches");
  return result(mcGraphInstantiate(reinterpret_cast<mcGraphExec_t*>(exec), reinterpret_cast<mcGraph_t>(graph)));
}
#if MXMACA_CUDA_MAJOR >= 13
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                         size_t* count) {
  const size_t room = count == nullptr ? 0 : *count;
  const mcError_t error = mcGraphNodeDependencies(reinterpret_cast<mcGraphNode_t>(node),
                                                  reinterpret_cast<mcGraphNode_t*>(dependencies), count);
  if (error == mcSuccess && edges != nullptr) std::memset(edges, 0, (*count < room ? *count : room) * sizeof *edges);
  return result(error);
}
#else
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count) {
  return result(mcGraphNodeDependencies(reinterpret_cast<mcGraphNode_t>(node),
                                        reinterpret_cast<mcGraphNode_t*>(dependencies), count));
}
#endif
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return result(mcGraphLaunch(reinterpret_cast<mcGraphExec_t>(exec), own(stream)));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return result(mcGraphDestroy(reinterpret_cast<mcGraph_t>(graph))); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return result(mcGraphExecDestroy(reinterpret_cast<mcGraphExec_t>(exec)));
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return result(mcGraphGetNodes(reinterpret_cast<mcGraph_t>(graph), reinterpret_cast<mcGraphNode_t*>(nodes), count));
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  constexpr unsigned int kKnownFlags = 0x1ffff;  // all of them: the file has one amount of detail
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, kKnownFlags));
  return result(mcGraphDebugDotPrint(reinterpret_cast<mcGraph_t>(graph), path));
}

// ---- Events ---------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  mcContextSet(1);
  return result(mcEventCreate(reinterpret_cast<mcEvent_t*>(event), flags));
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return result(mcEventDestroy(own(event))); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return result(mcEventRecord(own(event), own(stream)));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, cudaEventRecordExternal));
  return result((flags & cudaEventRecordExternal) != 0 ? mcEventRecordExternal(own(event), own(stream))
                                                       : mcEventRecord(own(event), own(stream)));
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return result(mcEventCheck(own(event))); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return result(mcEventCheck(own(event))); }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return result(mcEventElapsedTime(ms, own(start), own(end)));
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

void** __cudaRegisterFatBinary(void*) { return reinterpret_cast<void**>(mcModuleRegister()); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { mcModuleUnregister(reinterpret_cast<mcModule_t>(handle)); }
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* hostFunction, char*, const char* deviceName, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  mcKernelRegister(reinterpret_cast<mcModule_t>(handle), hostFunction, deviceName);
}
void __cudaRegisterVar(void** handle, char* hostVariable, char*, const char* deviceName, int, size_t size, int, int) {
  mcVariableRegister(reinterpret_cast<mcModule_t>(handle), hostVariable, deviceName, size);
}
void __cudaRegisterManagedVar(void** handle, void** hostVariable, char*, const char* deviceName, int, size_t size, int,
                              int) {
  mcVariableRegister(reinterpret_cast<mcModule_t>(handle), hostVariable, deviceName, size);
}

namespace {
struct Configuration {
  dim3 grid, block;
  size_t sharedBytes;
  cudaStream_t stream;
};
thread_local Configuration configuration;
thread_local bool configured = false;
}  // namespace

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream) {
  if (mcInKernel()) {
    mcKernelFail(mcErrorCdpNotSupported, "a launch from device code (dynamic parallelism) is not supported");
  }
  configuration = {grid, block, sharedBytes, stream};
  configured = true;
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream) {
  if (grid == nullptr || block == nullptr || sharedBytes == nullptr || stream == nullptr) {
    return fail(mcErrorInvalidValue);
  }
  if (!configured) return fail(mcErrorMissingConfiguration);
  *grid = configuration.grid;
  *block = configuration.block;
  *sharedBytes = configuration.sharedBytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  configured = false;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                             cudaStream_t stream) {
  return result(mcLaunchKernel(func, own(grid), own(block), args, sharedBytes, own(stream)));
}
cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                        cudaStream_t stream) {
  return result(mcLaunchCooperative(func, own(grid), own(block), args, sharedBytes, own(stream)));
}

// A kernel handle is the address of its host function. Code of the compiler's asks for the handle of each kernel that it
// launches, and hears from the launch if it is none.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* func) {
  if (kernel == nullptr) return fail(mcErrorInvalidValue);
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(func));
  return cudaSuccess;
}
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* func) {
  if (kernel == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcKernelKnown(func);
  return error == mcSuccess ? __cudaGetKernel(kernel, func) : result(error);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, args, sharedBytes, stream);
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (function == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcKernelKnown(symbol);
  if (error == mcSuccess) *function = static_cast<cudaFunction_t>(const_cast<void*>(symbol));
  return result(error);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* func) {
  if (attributes == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcKernelCheck(func);
  if (error != mcSuccess) return result(error);
  std::memset(attributes, 0, sizeof *attributes);
  mcKernelFacts facts{1024, 48 << 10, 0};
  if (mcKernelGetFacts(&facts, func) != mcSuccess) mcGetLastError();  // implemented by hand: the usual limits
  attributes->maxThreadsPerBlock = static_cast<int>(facts.maxThreads);
  attributes->sharedSizeBytes = facts.staticShared;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 80;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(facts.maxDynamicShared);
  attributes->preferredShmemCarveout = -1;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attribute, int value) {
  RETURN_IF_WRONG(mxmaca::setFunctionAttribute(func, attribute, value));
  return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void* func, cudaFuncCache config) {
  RETURN_IF_WRONG(mxmaca::checkCacheConfig(config));
  return result(mcKernelCheck(func));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* func, int blockSize,
                                                                   size_t dynamicSharedBytes, unsigned int flags) {
  constexpr unsigned int kDisableCachingOverride = 1;
  if (blocks == nullptr || blockSize <= 0) return fail(mcErrorInvalidValue);
  RETURN_IF_WRONG(mxmaca::checkFlags(flags, kDisableCachingOverride));
  const mcError_t error = mcKernelCheck(func);
  if (error != mcSuccess) return result(error);
  *blocks = static_cast<int>(mcKernelBlocksPerMultiprocessor(static_cast<unsigned int>(blockSize), dynamicSharedBytes));
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* func, int blockSize,
                                                          size_t dynamicSharedBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, blockSize, dynamicSharedBytes, 0);
}

}  // extern "C"

#pragma GCC visibility pop
