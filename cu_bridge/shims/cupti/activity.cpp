// Activity records: what the runtime tells its listener (Note [Profiling] in the runtime), in the buffers of the
// program.

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "mc_runtime.h"
#include "records.h"

#pragma GCC visibility push(default)
#include "mxmaca_cuda_version.h"

using namespace mxmaca::cupti;

namespace {

using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* mostRecords);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t used);
using Timestamp = uint64_t (*)();

constexpr int kLastAttribute = 15, kLastCorrelationKind = 15;

uint64_t wallClock() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

std::atomic<uint64_t> enabled{0};  // a bit for each kind
std::atomic<Timestamp> timestamp{&wallClock};

// Functions of the two interfaces whose calls are wanted, beside those of a kind that is enabled.
constexpr uint32_t kFunctions = 1024;
std::atomic<bool> wanted[2][kFunctions];
std::atomic<int> wantedFunctions{0};

bool isOn(int kind) { return (enabled.load(std::memory_order_relaxed) >> kind & 1) != 0; }

// Ids that the profiler pushes around a call, by kind.
std::map<int, std::vector<uint64_t>>& correlationIds() {
  static thread_local std::map<int, std::vector<uint64_t>> stacks;
  return stacks;
}

// The buffer that is filled. What is full or flushed goes back to the program, which may ask for the number of dropped
// records meanwhile.
class Buffers {
 public:
  void setCallbacks(RequestBuffer request, CompleteBuffer complete) {
    const std::lock_guard<std::mutex> lock(mutex_);
    request_ = request;
    complete_ = complete;
  }

  template <class Record>
  void add(const Record& record) {
    static_assert(sizeof(Record) % 8 == 0 && sizeof(Record) <= kLargest, "records follow each other");
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!prepare(sizeof record)) {
      ++dropped_;
      return;
    }
    std::memcpy(buffer_ + used_, &record, sizeof record);
    used_ += sizeof record;
    ++records_;
  }

  void flush() {
    const std::lock_guard<std::mutex> lock(mutex_);
    handOver();
  }

  size_t takeDropped() { return dropped_.exchange(0); }

 private:
  static constexpr size_t kLargest = 256;

  // With the lock: whether there is room.
  bool prepare(size_t bytes) {
    if (buffer_ != nullptr && (used_ + bytes > size_ || (most_ != 0 && records_ == most_))) handOver();
    if (buffer_ == nullptr && request_ != nullptr) {
      size_ = most_ = 0;
      request_(&buffer_, &size_, &most_);
      used_ = records_ = 0;
    }
    return buffer_ != nullptr && used_ + bytes <= size_;
  }
  void handOver() {
    if (buffer_ == nullptr || complete_ == nullptr) return;
    uint8_t* const full = buffer_;
    buffer_ = nullptr;
    complete_(nullptr, 0, full, size_, used_);
  }

  std::mutex mutex_;
  RequestBuffer request_ = nullptr;
  CompleteBuffer complete_ = nullptr;
  uint8_t* buffer_ = nullptr;
  size_t size_ = 0, most_ = 0, used_ = 0, records_ = 0;
  std::atomic<size_t> dropped_{0};
};

// Never destroyed: work may end while the process does.
Buffers& buffers() {
  static auto* const all = new Buffers;
  return *all;
}

uint32_t waitType(mcCall call) {
  switch (call) {
    case mcCallEventSynchronize: return 1;
    case mcCallStreamWaitEvent: return 2;
    case mcCallStreamSynchronize: return 3;
    case mcCallDeviceSynchronize: return 4;
    default: return 0;
  }
}

uint8_t memoryKind(mcMemoryKind kind) {
  constexpr uint8_t kPageable = 1, kPinned = 2, kDevice = 3, kManaged = 5;
  switch (kind) {
    case mcMemoryUnregistered: return kPageable;
    case mcMemoryHost: return kPinned;
    case mcMemoryDevice: return kDevice;
    case mcMemoryManaged: return kManaged;
  }
  return 0;
}

uint8_t copyKind(mcMemoryKind source, mcMemoryKind target) {
  constexpr uint8_t kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8, kHostToHost = 9;
  const auto onDevice = [](mcMemoryKind kind) { return kind == mcMemoryDevice || kind == mcMemoryManaged; };
  if (onDevice(source)) return onDevice(target) ? kDeviceToDevice : kDeviceToHost;
  return onDevice(target) ? kHostToDevice : kHostToHost;
}

void addCall(const mcWorkRecord& work) {
  const auto start = static_cast<uint64_t>(work.start), end = static_cast<uint64_t>(work.end);
  const int kind = work.ofDriver != 0 ? kActivityDriver : kActivityRuntime;
  const uint32_t id = callbackId(work);
  const bool isWanted = isOn(kind) || wanted[kind == kActivityDriver ? 1 : 0][id];
  if (isWanted && id != 0) {
    // A profiler knows threads by the low half of their handle.
    const auto thread = static_cast<uint32_t>(pthread_self());
    buffers().add(CallRecord{static_cast<uint32_t>(kind), id, start, end, static_cast<uint32_t>(getpid()), thread,
                             work.correlation, static_cast<uint32_t>(work.result)});
  }
  const uint32_t type = waitType(work.call);
  if (isOn(kActivitySynchronization) && type != 0) {
    constexpr uint32_t kNone = 0xffffffff;
    const bool ofStream = work.call == mcCallStreamSynchronize || work.call == mcCallStreamWaitEvent;
    buffers().add(SynchronizationRecord{kActivitySynchronization,
                                        type,
                                        start,
                                        end,
                                        work.correlation,
                                        kContext,
                                        ofStream ? static_cast<uint32_t>(work.stream) : kNone,
                                        0,
                                        {}});
  }
}

void addKernel(const mcWorkRecord& work) {
  constexpr int32_t kMost = 0x7fffffff;
  const auto number = [](unsigned value) { return value > kMost ? kMost : static_cast<int32_t>(value); };
  KernelRecord record{};
  record.kind = isOn(kActivityConcurrentKernel) ? kActivityConcurrentKernel : kActivityKernel;
  record.registersPerThread = 32;  // as cudaFuncGetAttributes says
  record.start = static_cast<uint64_t>(work.start);
  record.end = record.completed = static_cast<uint64_t>(work.end);
  record.deviceId = static_cast<uint32_t>(work.device);
  record.contextId = kContext;
  record.streamId = static_cast<uint32_t>(work.stream);
  const mcDim3* const sizes[2] = {&work.grid, &work.block};
  int32_t* const targets[2] = {record.grid, record.block};
  for (int i = 0; i < 2; ++i) {
    targets[i][0] = number(sizes[i]->x);
    targets[i][1] = number(sizes[i]->y);
    targets[i][2] = number(sizes[i]->z);
  }
  record.staticSharedMemory = static_cast<int32_t>(work.staticSharedBytes);
  record.dynamicSharedMemory = static_cast<int32_t>(work.sharedBytes);
  record.correlationId = work.correlation;
  record.gridId = work.correlation;
  record.name = work.name;
  record.graphId = work.graph;
  record.graphNodeId = work.graphNode;
  buffers().add(record);
}

// A function has its record before that of its first kernel. All are of one module, as there is one context.
void addFunction(const mcWorkRecord& work) {
  constexpr uint32_t kModule = 1;
  static auto* const mutex = new std::mutex;
  // Never destroyed, and none is taken out: records point to the names.
  static auto* const known = new std::unordered_set<std::string>;
  if (work.name == nullptr) return;
  FunctionRecord record{kActivityFunction, 0, kContext, kModule, 0, 0, nullptr};
  {
    const std::lock_guard<std::mutex> lock(*mutex);
    const auto [name, isNew] = known->insert(work.name);
    if (!isNew) return;
    record.id = record.functionIndex = static_cast<uint32_t>(known->size());
    record.name = name->c_str();
  }
  buffers().add(record);
}

void addCopy(const mcWorkRecord& work) {
  MemcpyRecord record{};
  record.kind = kActivityMemcpy;
  record.copyKind = copyKind(work.source, work.target);
  record.sourceKind = memoryKind(work.source);
  record.targetKind = memoryKind(work.target);
  record.flags = work.call == mcCallMemcpy ? 0 : 1;  // asynchronous
  record.bytes = work.bytes;
  record.start = static_cast<uint64_t>(work.start);
  record.end = static_cast<uint64_t>(work.end);
  record.deviceId = static_cast<uint32_t>(work.device);
  record.contextId = kContext;
  record.streamId = static_cast<uint32_t>(work.stream);
  record.correlationId = work.correlation;
  record.graphId = work.graph;
  record.graphNodeId = work.graphNode;
  buffers().add(record);
}

void addFill(const mcWorkRecord& work) {
  MemsetRecord record{};
  record.kind = kActivityMemset;
  record.value = work.value;
  record.bytes = work.bytes;
  record.start = static_cast<uint64_t>(work.start);
  record.end = static_cast<uint64_t>(work.end);
  record.deviceId = static_cast<uint32_t>(work.device);
  record.contextId = kContext;
  record.streamId = static_cast<uint32_t>(work.stream);
  record.correlationId = work.correlation;
  record.memoryKind = memoryKind(mcMemoryDevice);
  record.graphId = work.graph;
  record.graphNodeId = work.graphNode;
  buffers().add(record);
}

// The begin of a range has its name; begin and end have the same id.
void addMark(const mcWorkRecord& work) {
  constexpr uint32_t kInstant = 1 << 0, kStart = 1 << 1, kEnd = 1 << 2;
  constexpr uint32_t kThread = 2;  // the kind of object that has made it
  MarkerRecord record{};
  record.kind = kActivityMarker;
  switch (work.mark) {
    case mcMarkInstant: record.flags = kInstant; break;
    case mcMarkPush:
    case mcMarkStart: record.flags = kStart; break;
    case mcMarkPop:
    case mcMarkEnd: record.flags = kEnd; break;
  }
  record.timestamp = static_cast<uint64_t>(work.start);
  record.id = static_cast<uint32_t>(work.range);
  record.objectKind = kThread;
  record.object[0] = static_cast<uint32_t>(getpid());
  record.object[1] = static_cast<uint32_t>(pthread_self());
  record.name = work.name;
  record.domain = work.domain;
  buffers().add(record);
}

// A profiler reads which of its ids a call belongs to before it reads of the work.
void addCorrelations(const mcWorkRecord& work) {
  if (!isOn(kActivityExternalCorrelation)) return;
  for (const auto& [kind, ids] : correlationIds()) {
    if (ids.empty()) continue;
    buffers().add(
        CorrelationRecord{kActivityExternalCorrelation, static_cast<uint32_t>(kind), ids.back(), work.correlation, 0});
  }
}

void listen(const mcWorkRecord* work) {
  switch (work->kind) {
    case mcWorkBegin:
      addCorrelations(*work);
      callBack(*work, true);
      break;
    case mcWorkCall:
      callBack(*work, false);
      addCall(*work);
      break;
    case mcWorkKernel:
      if (isOn(kActivityFunction)) addFunction(*work);
      if (isOn(kActivityConcurrentKernel) || isOn(kActivityKernel)) addKernel(*work);
      break;
    case mcWorkCopy:
      if (isOn(kActivityMemcpy)) addCopy(*work);
      break;
    case mcWorkFill:
      if (isOn(kActivityMemset)) addFill(*work);
      break;
    case mcWorkMark:
      callBackOfMark(*work);
      if (isOn(kActivityMarker)) addMark(*work);
      break;
    case mcWorkHost: break;  // CUPTI has no record of it
  }
}

uint64_t now() { return timestamp.load(std::memory_order_relaxed)(); }

constexpr uint64_t bit(int kind) { return uint64_t{1} << kind; }
constexpr uint64_t kRecorded = bit(kActivityMemcpy) | bit(kActivityMemset) | bit(kActivityKernel) |
                               bit(kActivityDriver) | bit(kActivityRuntime) | bit(kActivityConcurrentKernel) |
                               bit(kActivityMarker) | bit(kActivityOverhead) | bit(kActivityFunction) |
                               bit(kActivitySynchronization) | bit(kActivityExternalCorrelation);

std::mutex& changes() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
// With the lock of changes.
void listenIfWanted() {
  const bool any = enabled.load() != 0 || wantedFunctions.load() != 0 || anyCallback();
  mcProfileListen(any ? &listen : nullptr, &now);
  mcResourceListen(anyResource() ? &callBackOfResource : nullptr);
}

int change(int kind, bool on) {
  if (!isBetween(1, kind, kLastActivityKind)) return kInvalidKind;
  if ((kRecorded & bit(kind)) == 0) return on ? kNotSupported : kSuccess;
  const std::lock_guard<std::mutex> lock(changes());
  if (on) {
    enabled.fetch_or(bit(kind));
  } else {
    enabled.fetch_and(~bit(kind));
  }
  listenIfWanted();
  return kSuccess;
}

int changeFunction(int interface, uint32_t id, bool on) {
  if (id == 0 || id >= kFunctions) return kInvalidParameter;
  const std::lock_guard<std::mutex> lock(changes());
  if (wanted[interface][id].exchange(on) != on) wantedFunctions += on ? 1 : -1;
  listenIfWanted();
  return kSuccess;
}

size_t sizeOf(uint32_t kind) {
  switch (kind) {
    case kActivityMemcpy: return sizeof(MemcpyRecord);
    case kActivityMemset: return sizeof(MemsetRecord);
    case kActivityKernel:
    case kActivityConcurrentKernel: return sizeof(KernelRecord);
    case kActivityDriver:
    case kActivityRuntime: return sizeof(CallRecord);
    case kActivityFunction: return sizeof(FunctionRecord);
    case kActivityMarker: return sizeof(MarkerRecord);
    case kActivityOverhead: return sizeof(OverheadRecord);
    case kActivitySynchronization: return sizeof(SynchronizationRecord);
    case kActivityExternalCorrelation: return sizeof(CorrelationRecord);
    default: return 0;
  }
}

}  // namespace

namespace mxmaca::cupti {

void callbacksHaveChanged() {
  const std::lock_guard<std::mutex> lock(changes());
  listenIfWanted();
}

void endActivities() {
  const std::lock_guard<std::mutex> lock(changes());
  enabled.store(0);
  for (auto& interface : wanted) {
    for (std::atomic<bool>& function : interface) function.store(false);
  }
  wantedFunctions.store(0);
  listenIfWanted();
}

}  // namespace mxmaca::cupti

extern "C" {

int cuptiActivityRegisterCallbacks(RequestBuffer requestBuffer, CompleteBuffer completeBuffer) {
  if (requestBuffer == nullptr || completeBuffer == nullptr) return kInvalidParameter;
  buffers().setCallbacks(requestBuffer, completeBuffer);
  return kSuccess;
}
int cuptiActivityRegisterTimestampCallback(Timestamp callback) {
  if (callback == nullptr) return kInvalidParameter;
  timestamp.store(callback);
  return kSuccess;
}
// By the clock of the records: nanoseconds.
int cuptiGetTimestamp(uint64_t* time) {
  if (time == nullptr) return kInvalidParameter;
  *time = now();
  return kSuccess;
}
int cuptiActivityEnable(int kind) { return change(kind, true); }
int cuptiActivityDisable(int kind) { return change(kind, false); }
// The one context is that of all devices.
int cuptiActivityEnableContext(void* context, int kind) {
  return context == nullptr ? kInvalidParameter : change(kind, true);
}
int cuptiActivityDisableContext(void* context, int kind) {
  return context == nullptr ? kInvalidParameter : change(kind, false);
}
// Times that the device itself takes: there is nothing that would take them.
int cuptiActivityEnableHWTrace(uint8_t enable) { return enable != 0 ? kNotSupported : kSuccess; }

int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t enable) { return changeFunction(0, id, enable != 0); }
int cuptiActivityEnableDriverApi(uint32_t id, uint8_t enable) { return changeFunction(1, id, enable != 0); }
// Records of events and their times on a device are not made.
int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return kNotSupported; }

// Sizes of buffers on a device, of which there are none here.
int cuptiActivitySetAttribute(int attribute, size_t* size, void* value) {
  if (size == nullptr || value == nullptr || !isBetween(0, attribute, kLastAttribute)) return kInvalidParameter;
  return *size == 0 ? kParameterSizeNotSufficient : kSuccess;
}

int cuptiActivityFlushAll(uint32_t) {
  if (isOn(kActivityOverhead)) {
    constexpr uint32_t kBufferFlush = 1 << 16, kThread = 2;
    const uint64_t start = now();
    buffers().flush();
    const auto thread = static_cast<uint32_t>(pthread_self());
    buffers().add(OverheadRecord{kActivityOverhead,
                                 kBufferFlush,
                                 kThread,
                                 {static_cast<uint32_t>(getpid()), thread, 0},
                                 start,
                                 now(),
                                 0,
                                 0,
                                 {}});
  }
  buffers().flush();
  return kSuccess;
}

int cuptiActivityGetNextRecord(uint8_t* buffer, size_t used, void** record) {
  if (buffer == nullptr || record == nullptr) return kInvalidParameter;
  auto* next = buffer;
  if (*record != nullptr) {
    next = static_cast<uint8_t*>(*record);
    if (next < buffer || next >= buffer + used) return kInvalidParameter;
    uint32_t kind = 0;
    std::memcpy(&kind, next, sizeof kind);
    const size_t size = sizeOf(kind);
    if (size == 0) return kInvalidKind;
    next += size;
  }
  uint32_t kind = 0;
  if (next + sizeof kind <= buffer + used) std::memcpy(&kind, next, sizeof kind);
  if (sizeOf(kind) == 0) return kMaxLimitReached;
  *record = next;
  return kSuccess;
}

int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return kInvalidParameter;
  *dropped = buffers().takeDropped();
  return kSuccess;
}

int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  if (!isBetween(1, kind, kLastCorrelationKind)) return kInvalidParameter;
  correlationIds()[kind].push_back(id);
  return kSuccess;
}
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  if (!isBetween(1, kind, kLastCorrelationKind)) return kInvalidParameter;
  std::vector<uint64_t>& ids = correlationIds()[kind];
  if (ids.empty()) return kQueueEmpty;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
