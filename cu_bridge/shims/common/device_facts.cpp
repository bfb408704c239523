#include "device_facts.h"

#include "device_limits.h"

#pragma GCC visibility push(default)
#include "driver_types.h"
#pragma GCC visibility pop

namespace mxmaca {
namespace {

namespace limits = mc::limits;

struct Attribute {
  int number;
  int value;
};

// What is the same on every simulated device. Attributes that are in neither table are 0: textures, surfaces and whatever
// else the device does not have.
constexpr Attribute kFixed[] = {
    {cudaDevAttrMaxBlockDimX, limits::kBlockX},
    {cudaDevAttrMaxBlockDimY, limits::kBlockY},
    {cudaDevAttrMaxBlockDimZ, limits::kBlockZ},
    {cudaDevAttrMaxGridDimX, limits::kGridX},
    {cudaDevAttrMaxGridDimY, limits::kGridY},
    {cudaDevAttrMaxGridDimZ, limits::kGridZ},
    {cudaDevAttrTotalConstantMemory, limits::kConstantBytes},
    {cudaDevAttrMaxPitch, limits::kPitch},
    {cudaDevAttrTextureAlignment, limits::kTextureAlignment},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrSurfaceAlignment, limits::kTextureAlignment},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrTexturePitchAlignment, limits::kTexturePitchAlignment},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrHostNativeAtomicSupported, 1},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrHostRegisterSupported, 1},
    {102, 1},  // virtual memory management
    {103, 1},  // memory handles as file descriptors
    {cudaDevAttrHostRegisterReadOnlySupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrIpcEventSupport, 1},
    {cudaDevAttrMemSyncDomainCount, 1},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrHostNumaId, -1},
};
constexpr int kMostAttributes = 160;  // later releases add some

}  // namespace

bool deviceAttribute(const mcDeviceProperties& p, int attribute, int* value) {
  const Attribute own[] = {
      {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlock, p.sharedPerBlock},
      {cudaDevAttrWarpSize, p.warpSize},
      {cudaDevAttrMaxRegistersPerBlock, p.registersPerBlock},
      {cudaDevAttrClockRate, p.clockKHz},
      {cudaDevAttrMultiProcessorCount, p.multiprocessors},
      {cudaDevAttrPciBusId, p.pciBus},
      {cudaDevAttrPciDeviceId, p.pciDevice},
      {cudaDevAttrMemoryClockRate, p.memoryClockKHz},
      {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusBits},
      {cudaDevAttrL2CacheSize, p.l2Bytes},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiprocessor},
      {cudaDevAttrPciDomainId, p.pciDomain},
      {cudaDevAttrComputeCapabilityMajor, p.major},
      {cudaDevAttrComputeCapabilityMinor, p.minor},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, p.sharedPerMultiprocessor},
      {cudaDevAttrMaxRegistersPerMultiprocessor, p.registersPerMultiprocessor},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, p.sharedPerBlockOptin},
      {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiprocessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, p.sharedReserved},
  };
  *value = 0;
  for (const Attribute& entry : kFixed) {
    if (entry.number == attribute) *value = entry.value;
  }
  for (const Attribute& entry : own) {
    if (entry.number == attribute) *value = entry.value;
  }
  return attribute > 0 && attribute < kMostAttributes;
}

}  // namespace mxmaca
