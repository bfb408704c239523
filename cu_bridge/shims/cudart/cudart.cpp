// The CUDA runtime on top of the simulated device: names, types and versions, no behaviour of its own. Errors and
// devices.

#include <dlfcn.h>

#include <cstring>

#include "convert.h"
#include "device_facts.h"
#include "mc_preferences.h"
#include "refuse.h"

namespace mxmaca {

long refuse(const char* library, const char* function, int status, const char* statusName) {
  mcReportRefusal(library, function, statusName);
  return mcSetLastError(static_cast<mcError_t>(status), function);
}

}  // namespace mxmaca

namespace {
// Which attribute each field of the properties is.
template <class Number>
struct PropertyField {
  Number cudaDeviceProp::* field;
  int attribute;
};
constexpr PropertyField<int> kNumbers[] = {
    {&cudaDeviceProp::regsPerBlock, cudaDevAttrMaxRegistersPerBlock},
    {&cudaDeviceProp::warpSize, cudaDevAttrWarpSize},
    {&cudaDeviceProp::maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock},
    {&cudaDeviceProp::major, cudaDevAttrComputeCapabilityMajor},
    {&cudaDeviceProp::minor, cudaDevAttrComputeCapabilityMinor},
    {&cudaDeviceProp::multiProcessorCount, cudaDevAttrMultiProcessorCount},
    {&cudaDeviceProp::canMapHostMemory, cudaDevAttrCanMapHostMemory},
    {&cudaDeviceProp::concurrentKernels, cudaDevAttrConcurrentKernels},
    {&cudaDeviceProp::pciBusID, cudaDevAttrPciBusId},
    {&cudaDeviceProp::pciDeviceID, cudaDevAttrPciDeviceId},
    {&cudaDeviceProp::pciDomainID, cudaDevAttrPciDomainId},
    {&cudaDeviceProp::asyncEngineCount, cudaDevAttrAsyncEngineCount},
    {&cudaDeviceProp::unifiedAddressing, cudaDevAttrUnifiedAddressing},
    {&cudaDeviceProp::memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth},
    {&cudaDeviceProp::l2CacheSize, cudaDevAttrL2CacheSize},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor},
    {&cudaDeviceProp::streamPrioritiesSupported, cudaDevAttrStreamPrioritiesSupported},
    {&cudaDeviceProp::globalL1CacheSupported, cudaDevAttrGlobalL1CacheSupported},
    {&cudaDeviceProp::localL1CacheSupported, cudaDevAttrLocalL1CacheSupported},
    {&cudaDeviceProp::regsPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor},
    {&cudaDeviceProp::managedMemory, cudaDevAttrManagedMemory},
    {&cudaDeviceProp::hostNativeAtomicSupported, cudaDevAttrHostNativeAtomicSupported},
    {&cudaDeviceProp::concurrentManagedAccess, cudaDevAttrConcurrentManagedAccess},
    {&cudaDeviceProp::computePreemptionSupported, cudaDevAttrComputePreemptionSupported},
    {&cudaDeviceProp::canUseHostPointerForRegisteredMem, cudaDevAttrCanUseHostPointerForRegisteredMem},
    {&cudaDeviceProp::cooperativeLaunch, cudaDevAttrCooperativeLaunch},
    {&cudaDeviceProp::maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor},
    {&cudaDeviceProp::hostRegisterSupported, cudaDevAttrHostRegisterSupported},
    {&cudaDeviceProp::hostRegisterReadOnlySupported, cudaDevAttrHostRegisterReadOnlySupported},
    {&cudaDeviceProp::memoryPoolsSupported, cudaDevAttrMemoryPoolsSupported},
    {&cudaDeviceProp::ipcEventSupported, cudaDevAttrIpcEventSupport},
#if MXMACA_CUDA_MAJOR == 12
    {&cudaDeviceProp::clockRate, cudaDevAttrClockRate},
    {&cudaDeviceProp::memoryClockRate, cudaDevAttrMemoryClockRate},
    {&cudaDeviceProp::deviceOverlap, cudaDevAttrGpuOverlap},
    {&cudaDeviceProp::singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio},
#else
    {&cudaDeviceProp::deviceNumaId, cudaDevAttrNumaId},
    {&cudaDeviceProp::hostNumaId, cudaDevAttrHostNumaId},
#endif
};
constexpr PropertyField<size_t> kSizes[] = {
    {&cudaDeviceProp::sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock},
    {&cudaDeviceProp::memPitch, cudaDevAttrMaxPitch},
    {&cudaDeviceProp::totalConstMem, cudaDevAttrTotalConstantMemory},
    {&cudaDeviceProp::textureAlignment, cudaDevAttrTextureAlignment},
    {&cudaDeviceProp::texturePitchAlignment, cudaDevAttrTexturePitchAlignment},
    {&cudaDeviceProp::surfaceAlignment, cudaDevAttrSurfaceAlignment},
    {&cudaDeviceProp::sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor},
    {&cudaDeviceProp::sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin},
    {&cudaDeviceProp::reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock},
};
}  // namespace

#pragma GCC visibility push(default)
extern "C" {

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
  RETURN_IF_WRONG(checkDevice(device));
  RETURN_IF_WRONG(checkFlags(flags, kDeviceFlagsAreValid));
  if ((flags & kDeviceFlagsAreValid) != 0) RETURN_IF_WRONG(checkDeviceFlags(deviceFlags));
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
    deviceAttribute(p, number, &value);
    return value;
  };
  std::memcpy(prop->name, p.name, sizeof prop->name);
  std::memcpy(prop->uuid.bytes, p.uuid, sizeof prop->uuid.bytes);
  prop->totalGlobalMem = p.memory;
  for (int i = 0; i < 3; ++i) {
    prop->maxThreadsDim[i] = attribute(cudaDevAttrMaxBlockDimX + i);
    prop->maxGridSize[i] = attribute(cudaDevAttrMaxGridDimX + i);
  }
  for (const auto& [field, number] : kNumbers) prop->*field = attribute(number);
  for (const auto& [field, number] : kSizes) prop->*field = static_cast<size_t>(attribute(number));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  mcDeviceProperties p;
  if (value == nullptr) return fail(mcErrorInvalidValue);
  const mcError_t error = mcGetDeviceProperties(&p, device);
  if (error != mcSuccess) return result(error);
  return deviceAttribute(p, attr, value) ? cudaSuccess : fail(mcErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  mcDeviceProperties p;
  if (id == nullptr || length < 13) return fail(mcErrorInvalidValue);
  const mcError_t error = mcGetDeviceProperties(&p, device);
  if (error == mcSuccess) pciBusId(p, id, static_cast<size_t>(length));
  return result(error);
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  if (device == nullptr || id == nullptr) return fail(mcErrorInvalidValue);
  *device = deviceByPciBusId(id);
  return *device < 0 ? fail(mcErrorInvalidDevice) : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  mcContextSet(1);
  return result(mcDeviceSynchronize());
}
cudaError_t cudaDeviceReset(void) { return result(mcDeviceReset()); }

// Preferences: what is set is read again, and nothing depends on it.
namespace {
unsigned int deviceFlags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
}  // namespace

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) { return result(mcLimitGet(value, limit)); }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) { return result(mcLimitSet(limit, value)); }

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  if (config == nullptr) return fail(mcErrorInvalidValue);
  *config = static_cast<cudaFuncCache>(mcCacheConfigGet());
  return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) { return result(mcCacheConfigSet(config)); }

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  RETURN_IF_WRONG(checkDeviceFlags(flags));
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
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to) {
  return recorded(peerAttribute(value, attribute, from, to));
}

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

}  // extern "C"
#pragma GCC visibility pop
