// Statuses of CUPTI and the layouts of its activity records, as far as one is made here. Later versions of a record add
// fields at its end, so a reader of any version finds what it knows; the records here are as long as the longest
// version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mc_runtime.h"

struct Subscriber;

namespace mxmaca::cupti {

// One for all devices.
constexpr uint32_t kContext = 1;

enum Status {
  kSuccess = 0,
  kInvalidParameter = 1,
  kParameterSizeNotSufficient = 10,
  kMaxLimitReached = 12,
  kQueueEmpty = 18,
  kInvalidKind = 21,
  kNotSupported = 27,
  kUnknown = 999
};

// CUPTI's number of the function that a program called, in the list of its interface; 0 for none.
uint32_t callbackId(const mcWorkRecord& record);
// Hands a call's begin or end to the subscribers that want it. Its begin is `entry`.
void callBack(const mcWorkRecord& record, bool entry);
// Hands a push or a pop of NVTX's to the subscribers that want it.
void callBackOfMark(const mcWorkRecord& record);
bool anyCallback();
// Callbacks by domain. Of resources: those that there are.
constexpr uint32_t kDriver = 1, kRuntime = 2, kResource = 3, kNvtx = 5;
constexpr uint32_t kStreamCreated = 3, kStreamDestroys = 4, kGraphCreated = 9, kGraphDestroys = 10, kGraphCloned = 11,
                   kNodeCreateStarts = 12, kNodeCreated = 13, kNodeDestroys = 14, kDependencyCreated = 15,
                   kDependencyDestroys = 16, kExecCreateStarts = 17, kExecCreated = 18, kExecDestroys = 19,
                   kNodeCloned = 20;
constexpr uint32_t kResources[] = {kStreamCreated,     kStreamDestroys,     kGraphCreated,     kGraphDestroys,
                                   kGraphCloned,       kNodeCreateStarts,   kNodeCreated,      kNodeDestroys,
                                   kDependencyCreated, kDependencyDestroys, kExecCreateStarts, kExecCreated,
                                   kExecDestroys,      kNodeCloned};
using Callback = void (*)(void* userData, uint32_t domain, uint32_t id, const void* data);
struct Wanted {
  Subscriber* subscriber;
  Callback callback;
  void* userData;
};
std::vector<Wanted> wantedBy(uint32_t domain, uint32_t id);
bool anyResource();
// Of resources.cpp: hands one to the subscribers that want it.
void callBackOfResource(const mcResource* resource);
// The calling thread's context by the driver interface; NULL without one.
void* currentContext();
// Ends all subscriptions.
void endCallbacks();
// Of activity.cpp: listens to the runtime as long as somebody wants to know something.
void callbacksHaveChanged();
void endActivities();

inline bool isBetween(int least, int number, int most) { return number >= least && number <= most; }

enum ActivityKind {
  kActivityMemcpy = 1,
  kActivityMemset = 2,
  kActivityKernel = 3,
  kActivityDriver = 4,
  kActivityRuntime = 5,
  kActivityConcurrentKernel = 10,
  kActivityMarker = 12,
  kActivityOverhead = 17,
  kActivityFunction = 26,
  kActivitySynchronization = 38,
  kActivityExternalCorrelation = 39
};
constexpr int kLastActivityKind = 63;  // that this release may know

struct alignas(8) KernelRecord {
  uint32_t kind;
  uint8_t cacheConfig, sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedCacheRequested, partitionedCacheExecuted;
  uint64_t start, end, completed;
  uint32_t deviceId, contextId, streamId;
  int32_t grid[3], block[3];
  int32_t staticSharedMemory, dynamicSharedMemory;
  uint32_t localMemoryPerThread, localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char* name;
  void* reserved;
  uint64_t queued, submitted;
  uint8_t launchType, carveoutIsRequested, carveoutRequested, padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t sharedMemoryLimit, graphId;
  uint8_t later[88];  // channel, cluster
};
static_assert(offsetof(KernelRecord, name) == 104 && offsetof(KernelRecord, correlationId) == 92, "CUPTI's layout");
static_assert(offsetof(KernelRecord, graphNodeId) == 144 && offsetof(KernelRecord, graphId) == 156, "CUPTI's layout");

struct alignas(8) FunctionRecord {
  uint32_t kind, id, contextId, moduleId, functionIndex, padding;
  const char* name;
};
static_assert(sizeof(FunctionRecord) == 32 && offsetof(FunctionRecord, name) == 24, "CUPTI's layout");

struct alignas(8) MemcpyRecord {
  uint32_t kind;
  uint8_t copyKind, sourceKind, targetKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId, runtimeCorrelationId, padding;
  void* reserved;
  uint64_t graphNodeId;
  uint32_t graphId;
  uint8_t later[28];
};
static_assert(offsetof(MemcpyRecord, correlationId) == 44, "CUPTI's layout");

struct alignas(8) MemsetRecord {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId;
  uint16_t flags, memoryKind;
  uint32_t padding;
  void* reserved;
  uint64_t graphNodeId;
  uint32_t graphId;
  uint8_t later[28];
};
static_assert(offsetof(MemsetRecord, correlationId) == 44, "CUPTI's layout");

struct alignas(8) CallRecord {
  uint32_t kind, callbackId;
  uint64_t start, end;
  uint32_t processId, threadId, correlationId, returnValue;
};
static_assert(sizeof(CallRecord) == 40, "CUPTI's layout");

struct alignas(8) CorrelationRecord {
  uint32_t kind, externalKind;
  uint64_t externalId;
  uint32_t correlationId, reserved;
};
static_assert(sizeof(CorrelationRecord) == 24, "CUPTI's layout");

struct alignas(8) MarkerRecord {
  uint32_t kind, flags;
  uint64_t timestamp;
  uint32_t id, objectKind, object[3], padding;
  const char* name;
  const char* domain;
};
static_assert(sizeof(MarkerRecord) == 56 && offsetof(MarkerRecord, name) == 40, "CUPTI's layout");

struct alignas(8) SynchronizationRecord {
  uint32_t kind, type;
  uint64_t start, end;
  uint32_t correlationId, contextId, streamId, eventId;
  uint8_t later[16];
};
static_assert(offsetof(SynchronizationRecord, streamId) == 32, "CUPTI's layout");

struct alignas(8) OverheadRecord {
  uint32_t kind, overheadKind, objectKind, object[3];
  uint64_t start, end;
  uint32_t correlationId, reserved;
  uint8_t later[16];
};
static_assert(offsetof(OverheadRecord, start) == 24, "CUPTI's layout");

}  // namespace mxmaca::cupti
