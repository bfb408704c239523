// NVML on top of the simulated devices: what they are, what they hold, who uses them. What a simulated device does not
// have is "not supported", which management tools know how to show; sensors.cpp has what is simulated.

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mc_runtime.h"
#include "nvml.h"
#include "refuse.h"
#include "status.h"
#include "uuid.h"

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

namespace mxmaca {

// The caller's status says it; management tools ask for everything, so a line for each would be noise.
long refuse(const char*, const char*, int status, const char*) { return status; }

}  // namespace mxmaca

using namespace mxmaca::nvml;

namespace {

constexpr mxmaca::StatusName kStatuses[] = {
    MXMACA_STATUS(kSuccess, "The operation was successful"),
    MXMACA_STATUS(kUninitialized, "Uninitialized"),
    MXMACA_STATUS(kInvalidArgument, "Invalid Argument"),
    MXMACA_STATUS(kNotSupported, "Not Supported"),
    MXMACA_STATUS(kNotFound, "Not Found"),
    MXMACA_STATUS(kInsufficientSize, "Insufficient Size"),
    MXMACA_STATUS(kArgumentVersionMismatch, "Argument version mismatch"),
};

int copyText(char* target, unsigned int length, const std::string& text) {
  if (target == nullptr) return kInvalidArgument;
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(target, text.c_str(), text.size() + 1);
  return kSuccess;
}

struct Memory {
  unsigned long long total, free, used;
};
struct Memory2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned int gpu, memory;
};
struct Process1 {
  unsigned int pid;
  unsigned long long bytes;
};
struct Process2 {
  unsigned int pid;
  unsigned long long bytes;
  unsigned int gpuInstance, computeInstance;
};
struct PciInfo {
  char busIdLegacy[16];
  unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

template <class Process>
int runningProcesses(Device device, unsigned int* count, Process* processes) {
  mcDeviceProperties p;
  NEEDS_INITIALIZATION();
  if (count == nullptr || !properties(device, &p)) return kInvalidArgument;
  const std::vector<mcProcessUse> found = users(indexOf(device));
  const unsigned int room = *count;
  *count = static_cast<unsigned int>(found.size());
  if (found.empty()) return kSuccess;
  if (processes == nullptr || room < found.size()) return kInsufficientSize;
  for (size_t i = 0; i < found.size(); ++i) {
    std::memset(&processes[i], 0, sizeof(Process));
    processes[i].pid = static_cast<unsigned int>(found[i].pid);
    processes[i].bytes = found[i].bytes;
    if constexpr (sizeof(Process) == sizeof(Process2)) {
      processes[i].gpuInstance = processes[i].computeInstance = UINT32_MAX;  // no partitions
    }
  }
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInitWithFlags(unsigned int flags) {
  constexpr unsigned int kKnownFlags = 3;  // without devices, without attaching to them
  if ((flags & ~kKnownFlags) != 0) return kInvalidArgument;
  ++initialized;
  return kSuccess;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlInit(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) {
  for (int count = initialized.load(); count > 0;) {
    if (initialized.compare_exchange_weak(count, count - 1)) return kSuccess;
  }
  return kUninitialized;
}

const char* nvmlErrorString(int status) {
  return mxmaca::statusText(kStatuses, status, &mxmaca::StatusName::text, "Unknown Error");
}

int nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  NEEDS_INITIALIZATION();
  return copyText(version, length, MXMACA_VERSION);
}
int nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  return copyText(version, length, std::to_string(CUDA_VERSION / 1000) + "." + MXMACA_VERSION);
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = CUDA_VERSION;
  return kSuccess;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return nvmlSystemGetCudaDriverVersion(version); }

int nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  char path[4096];
  const ssize_t size = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof path);
  NEEDS_INITIALIZATION();
  if (name == nullptr || length == 0) return kInvalidArgument;
  if (size <= 0) return kNotFound;
  std::snprintf(name, length, "%.*s", static_cast<int>(size), path);
  return kSuccess;
}

int nvmlUnitGetCount(unsigned int* count) {
  NEEDS_INITIALIZATION();
  if (count == nullptr) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned int* count) {
  NEEDS_INITIALIZATION();
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned int>(mcPhysicalDeviceCount());
  return kSuccess;
}
int nvmlDeviceGetCount(unsigned int* count) { return nvmlDeviceGetCount_v2(count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device* device) {
  NEEDS_INITIALIZATION();
  if (device == nullptr || index >= static_cast<unsigned int>(mcPhysicalDeviceCount())) return kInvalidArgument;
  *device = handleOf(static_cast<int>(index));
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex(unsigned int index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

int nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (uuid == nullptr || device == nullptr) return kInvalidArgument;
  for (int i = 0; i < mcPhysicalDeviceCount(); ++i) {
    if (!properties(handleOf(i), &p) || mc::uuidText(p.uuid) != uuid) continue;
    *device = handleOf(i);
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* device) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  unsigned int domain = 0;
  unsigned int bus = 0;
  unsigned int slot = 0;
  if (id == nullptr || device == nullptr || std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    return kInvalidArgument;
  }
  for (int i = 0; i < mcPhysicalDeviceCount(); ++i) {
    if (!properties(handleOf(i), &p)) continue;
    if (static_cast<unsigned>(p.pciDomain) != domain || static_cast<unsigned>(p.pciBus) != bus) continue;
    *device = handleOf(i);
    return kSuccess;
  }
  return kNotFound;
}
int nvmlDeviceGetHandleByPciBusId(const char* id, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

int nvmlDeviceGetIndex(Device device, unsigned int* index) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (index == nullptr || !properties(device, &p)) return kInvalidArgument;
  *index = static_cast<unsigned int>(indexOf(device));
  return kSuccess;
}
int nvmlDeviceGetMinorNumber(Device device, unsigned int* minor) { return nvmlDeviceGetIndex(device, minor); }

int nvmlDeviceGetName(Device device, char* name, unsigned int length) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  return properties(device, &p) ? copyText(name, length, p.name) : kInvalidArgument;
}

int nvmlDeviceGetUUID(Device device, char* uuid, unsigned int length) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  return properties(device, &p) ? copyText(uuid, length, mc::uuidText(p.uuid)) : kInvalidArgument;
}

int nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (info == nullptr || !properties(device, &p)) return kInvalidArgument;
  std::memset(info, 0, sizeof *info);
  info->domain = static_cast<unsigned int>(p.pciDomain);
  info->bus = static_cast<unsigned int>(p.pciBus);
  info->device = static_cast<unsigned int>(p.pciDevice);
  std::snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", info->domain & 0xffffU,
                info->bus & 0xffU, info->device & 0xffU);
  std::snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.0", info->domain, info->bus, info->device);
  return kSuccess;
}
int nvmlDeviceGetPciInfo_v2(Device device, PciInfo* info) { return nvmlDeviceGetPciInfo_v3(device, info); }

int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (major == nullptr || minor == nullptr || !properties(device, &p)) return kInvalidArgument;
  *major = p.major;
  *minor = p.minor;
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  NEEDS_INITIALIZATION();
  size_t free = 0;
  size_t total = 0;
  if (memory == nullptr || mcDeviceMemoryInfo(indexOf(device), &free, &total) != mcSuccess) return kInvalidArgument;
  *memory = {total, free, total - free};
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo_v2(Device device, Memory2* memory) {
  NEEDS_INITIALIZATION();
  Memory plain;
  if (memory == nullptr) return kInvalidArgument;
  constexpr unsigned int kVersion = sizeof(Memory2) | 2U << 24;
  if (memory->version != kVersion) return kArgumentVersionMismatch;
  const int status = nvmlDeviceGetMemoryInfo(device, &plain);
  if (status == kSuccess) *memory = {memory->version, plain.total, 0, plain.free, plain.used};
  return status;
}

int nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
  NEEDS_INITIALIZATION();
  Memory memory;
  if (utilization == nullptr) return kInvalidArgument;
  const int status = nvmlDeviceGetMemoryInfo(device, &memory);
  if (status != kSuccess) return status;
  utilization->gpu = static_cast<unsigned int>(std::lround(busyShare(indexOf(device)) * 100));
  // Time in which memory was read or written: a simulated device's memory is busy when the device is.
  utilization->memory = memory.used == 0 ? 0 : utilization->gpu;
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses(Device device, unsigned int* count, Process1* processes) {
  return runningProcesses(device, count, processes);
}
int nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned int* count, Process2* processes) {
  return runningProcesses(device, count, processes);
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int* count, Process2* processes) {
  return runningProcesses(device, count, processes);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned int* count, Process2*) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (count == nullptr || !properties(device, &p)) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, unsigned int* count, Process2* processes) {
  return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, processes);
}

int nvmlDeviceGetMemoryBusWidth(Device device, unsigned int* width) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (width == nullptr || !properties(device, &p)) return kInvalidArgument;
  *width = static_cast<unsigned int>(p.memoryBusBits);
  return kSuccess;
}

// Every device reaches every other.
int nvmlDeviceGetP2PStatus(Device first, Device second, int capability, int* status) {
  NEEDS_INITIALIZATION();
  constexpr int kLastCapability = 5;
  mcDeviceProperties p;
  if (status == nullptr || capability < 0 || capability > kLastCapability || !properties(first, &p) ||
      !properties(second, &p))
    return kInvalidArgument;
  *status = 0;
  return kSuccess;
}

int nvmlDeviceGetPersistenceMode(Device device, int* mode) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (mode == nullptr || !properties(device, &p)) return kInvalidArgument;
  *mode = 1;
  return kSuccess;
}

int nvmlDeviceGetComputeMode(Device device, int* mode) {
  NEEDS_INITIALIZATION();
  mcDeviceProperties p;
  if (mode == nullptr || !properties(device, &p)) return kInvalidArgument;
  *mode = 0;
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
