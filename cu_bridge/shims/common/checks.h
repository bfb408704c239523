// Checks of arguments that the runtime and the driver interface share. Each returns what is wrong, or mcSuccess; who
// calls records it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "mc_device_limits.h"
#include "mc_kernel.h"
#include "mc_runtime.h"

namespace mxmaca {

inline mcError_t valueError(bool good) { return good ? mcSuccess : mcErrorInvalidValue; }

// Whether no bit is set beyond those that are documented.
inline mcError_t checkFlags(unsigned long long flags, unsigned long long known) {
  return valueError((flags & ~known) == 0);
}

// Graphs: free what they allocate, upload, launches by device code, priorities of nodes.
constexpr unsigned long long kInstantiateFlags = 15;

// Flags of a device: at most one way to wait (spin, yield, block); mapped host memory, local memory, synchronous
// copies.
inline mcError_t checkDeviceFlags(unsigned int flags) {
  constexpr unsigned int kWaiting = 7, kKnown = 0x9f;
  const unsigned int waiting = flags & kWaiting;
  return valueError((flags & ~kKnown) == 0 && (waiting & (waiting - 1)) == 0);
}

inline mcError_t checkDevice(int device) {
  mcDeviceProperties properties;
  return mcGetDeviceProperties(&properties, device);
}

// Host memory that the process has: registering anything else would pin nothing.
inline mcError_t checkHostRange(const void* pointer, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(pointer);
  if (pointer == nullptr || bytes == 0 || start + bytes < start) return mcErrorInvalidValue;
  const uintptr_t first = start / page * page;
  // Without an effect on memory of any kind, and an error where a part of the range is not mapped.
  const int status = msync(reinterpret_cast<void*>(first), start + bytes - first, MS_ASYNC);
  return valueError(status == 0 || errno != ENOMEM);
}

// A range within one allocation of managed memory.
inline mcError_t checkManagedRange(const void* pointer, size_t bytes) {
  mcPointerAttributes attributes;
  const mcError_t error = mcPointerGetAttributes(&attributes, pointer);
  if (error != mcSuccess) return error;
  if (attributes.kind != mcMemoryManaged || bytes == 0) return mcErrorInvalidValue;
  const size_t offset = reinterpret_cast<uintptr_t>(pointer) - reinterpret_cast<uintptr_t>(attributes.base);
  return valueError(bytes <= attributes.size - offset);
}

// What is between two devices, by the numbers that both interfaces have: all share the host's memory, so that one
// reaches another's as its own.
inline mcError_t peerAttribute(int* value, int attribute, int from, int to) {
  constexpr int kPerformanceRank = 1, kAccess = 2, kNativeAtomics = 3, kArrays = 4, kPartialAtomics = 5;
  int reached = 0;
  if (value == nullptr) return mcErrorInvalidValue;
  const mcError_t error = mcDeviceCanAccessPeer(&reached, from, to);
  if (error != mcSuccess) return error;
  if (from == to) return mcErrorInvalidDevice;
  switch (attribute) {
    case kPerformanceRank: *value = 0; return mcSuccess;
    case kAccess:
    case kNativeAtomics:
    case kArrays: *value = reached; return mcSuccess;
    case kPartialAtomics:
      if (MXMACA_CUDA_MAJOR < 13) return mcErrorInvalidValue;
      *value = 0;
      return mcSuccess;
    default: return mcErrorInvalidValue;
  }
}

// Access of devices to a pool, as a list of either interface gives it. Every device reaches every pool, so access can
// be given, and not taken away.
template <class Description>
mcError_t setPoolAccess(mcMemoryPool_t pool, const Description* all, size_t count) {
  constexpr unsigned kReadAndWrite = 3;
  constexpr int kDevice = 1;
  int owner = 0;
  mcError_t error = mcMemPoolGetDevice(pool, &owner);
  if (error != mcSuccess) return error;
  if (all == nullptr && count != 0) return mcErrorInvalidValue;
  bool restricted = false;
  for (size_t i = 0; i < count; ++i) {
    const auto flags = static_cast<unsigned>(all[i].flags);
    if (static_cast<int>(all[i].location.type) != kDevice) return mcErrorInvalidValue;
    error = checkDevice(all[i].location.id);
    if (error == mcSuccess) error = checkFlags(flags, kReadAndWrite);
    if (error != mcSuccess) return error;
    restricted = restricted || flags != kReadAndWrite;
  }
  return restricted ? mcSetLastError(mcErrorNotSupported, "pools with restricted access") : mcSuccess;
}
template <class Flags, class Location>
mcError_t poolAccess(Flags* flags, mcMemoryPool_t pool, const Location* location) {
  int owner = 0;
  mcError_t error = mcMemPoolGetDevice(pool, &owner);
  if (error != mcSuccess) return error;
  if (flags == nullptr || location == nullptr || static_cast<int>(location->type) != 1) return mcErrorInvalidValue;
  error = checkDevice(location->id);
  if (error == mcSuccess) *flags = static_cast<Flags>(3);  // to read and to write
  return error;
}

// Where managed memory is wanted, and what pools are asked about.
enum LocationType { kLocationDevice = 1, kLocationHost = 2, kLocationHostNuma = 3, kLocationHostNumaCurrent = 4 };
inline mcError_t checkLocation(int type, int id) {
  if (type == kLocationDevice) return checkDevice(id);
  if (type == kLocationHostNuma) return valueError(id >= 0);
  return valueError(type == kLocationHost || type == kLocationHostNumaCurrent);
}

// Advice about managed memory: about its readers (1, 2), its place (3, 4), its users (5, 6).
inline bool adviceNamesPlace(int advice) { return advice == 3 || advice >= 5; }
inline mcError_t checkAdvice(int advice) { return valueError(advice >= 1 && advice <= 6); }

// Attachment of managed memory to all streams (1), the host (2) or one stream (4), which must not be a default one
// then.
inline mcError_t checkAttachment(mcStream_t stream, const void* pointer, size_t bytes, unsigned int flags) {
  mcPointerAttributes attributes;
  mcError_t error = mcStreamCheck(stream);
  if (error == mcSuccess) error = mcPointerGetAttributes(&attributes, pointer);
  if (error != mcSuccess) return error;
  const bool knownFlags = flags == 1 || flags == 2 || (flags == 4 && reinterpret_cast<uintptr_t>(stream) > 2);
  const bool whole = bytes == 0 || (pointer == attributes.base && bytes == attributes.size);
  return valueError(attributes.kind == mcMemoryManaged && whole && knownFlags);
}

// The limits of a kernel: its own, or the usual ones where a library has implemented it by hand.
inline mcKernelFacts kernelFacts(const void* function) {
  mcKernelFacts facts{mc::limits::kThreadsPerBlock, mc::limits::kSharedPerBlock, 0};
  if (mcKernelGetFacts(&facts, function) != mcSuccess) mcGetLastError();
  return facts;
}

// Where parameter `index` of a kernel lies among its arguments, and how large it is.
inline mcError_t kernelParameter(const void* function, size_t index, size_t* offset, size_t* size) {
  if (offset == nullptr) return mcSetLastError(mcErrorInvalidValue, nullptr);
  const mcError_t known = mcKernelCheck(function);
  if (known != mcSuccess) return known;
  size_t place = 0, bytes = 0, alignment = 1;
  for (size_t i = 0; i <= index; ++i) {
    place += bytes;
    const mcError_t error = mcKernelGetParameter(function, static_cast<unsigned int>(i), &bytes, &alignment);
    if (error != mcSuccess) return error;
    place = (place + alignment - 1) / alignment * alignment;
  }
  *offset = place;
  if (size != nullptr) *size = bytes;
  return mcSuccess;
}

// How shared memory and caches are divided: no preference, shared memory, the cache, equal.
inline mcError_t checkCacheConfig(int config) { return valueError(config >= 0 && config <= 3); }

// Sets an attribute of a kernel; the numbers are one in both interfaces. Those of its cluster can be set to what holds
// without clusters.
inline mcError_t setFunctionAttribute(const void* function, int attribute, int value) {
  const mcError_t error = mcKernelCheck(function);
  if (error != mcSuccess) return error;
  switch (attribute) {
    case 8:  // most dynamic shared memory
      return value < 0 ? mcErrorInvalidValue : mcKernelSetMaxDynamicShared(function, static_cast<unsigned int>(value));
    case 9:  // preferred share of shared memory, in percent
      return valueError(value >= -1 && value <= 100);
    case 11:
    case 12:
    case 13:  // width, height and depth of its clusters
      if (value > 1) return mcErrorNotSupported;
      return valueError(value >= 0);
    case 14:  // whether clusters may be larger than everywhere
      return valueError(value == 0 || value == 1);
    case 15:  // how clusters are scheduled
      return valueError(value >= 0 && value <= 2);
    default: return mcErrorInvalidValue;
  }
}

}  // namespace mxmaca
