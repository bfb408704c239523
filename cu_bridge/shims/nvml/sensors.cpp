// NVML's sensors. A simulated device has none: its profile says what they show when it is idle and when all of the
// host's processors compute for it, and a reading lies between the two as the measured utilization does.

#include <cmath>
#include <cstring>

#include "nvml.h"

#pragma GCC visibility push(default)

using namespace mxmaca::nvml;

namespace {

enum Clock { kGraphicsClock, kMultiprocessorClock, kMemoryClock, kVideoClock, kClocks };
enum ClockId { kCurrentClock, kApplicationsClock, kDefaultApplicationsClock, kLargestClock, kClockIds };
enum PerformanceState { kFullPerformance = 0, kIdlePerformance = 8, kUnknownPerformance = 32 };
constexpr int kPerformanceStates = 16;
constexpr unsigned long long kReasonIdle = 1;

struct Profile {
  int clockKHz, memoryClockKHz;
  mcDeviceSensors sensors;
};
bool read(Device device, Profile* profile) {
  mcDeviceProperties p;
  if (!properties(device, &p)) return false;
  profile->clockKHz = p.clockKHz;
  profile->memoryClockKHz = p.memoryClockKHz;
  return mcGetPhysicalDeviceSensors(&profile->sensors, indexOf(device)) == mcSuccess;
}

bool isIdle(Device device) { return users(indexOf(device)).empty(); }

unsigned int between(int idle, int full, double share) {
  return static_cast<unsigned int>(std::lround(idle + (full - idle) * share));
}

unsigned int megahertz(int kilohertz) { return static_cast<unsigned int>(kilohertz / 1000); }

// A video engine has no clock, since there is none.
int largestClock(const Profile& p, int type, unsigned int* clock) {
  if (type == kVideoClock) return kNotSupported;
  *clock = megahertz(type == kMemoryClock ? p.memoryClockKHz : p.clockKHz);
  return kSuccess;
}

int idleClock(const Profile& p, int type, unsigned int* clock) {
  const int status = largestClock(p, type, clock);
  if (status == kSuccess && type != kMemoryClock) *clock = megahertz(p.sensors.idleClockKHz);
  return status;
}

// Statuses of a question about one device, whose answer goes to `target`.
#define ASKS(device, target, wrong) \
  Profile p;                        \
  NEEDS_INITIALIZATION();           \
  if ((target) == nullptr || (wrong) || !read(device, &p)) return kInvalidArgument;

constexpr unsigned int versionOf(size_t size, unsigned int version) {
  return static_cast<unsigned int>(size) | version << 24U;
}

struct TemperatureV {
  unsigned int version;
  int sensor, celsius;
};
struct MarginTemperature {
  unsigned int version;
  int celsius;
};
struct FabricInfo {
  unsigned char cluster[16];
  int status;
  unsigned int clique;
  unsigned char state;
};
struct FabricInfoV {
  unsigned int version;
  unsigned char cluster[16];
  int status;
  unsigned int clique;
  unsigned char state;
  unsigned int healthMask;
  unsigned char healthSummary;  // from version 3 on
};
constexpr size_t kFabricInfo2 = offsetof(FabricInfoV, healthSummary);
static_assert(sizeof(FabricInfo) == 28 && kFabricInfo2 == 36 && sizeof(FabricInfoV) == 40, "NVML's layouts");

}  // namespace

extern "C" {

// ---- Temperature ----------------------------------------------------------------------------------------------------

// Sensor 0 is the only one that NVML knows.
int nvmlDeviceGetTemperature(Device device, int sensor, unsigned int* celsius) {
  ASKS(device, celsius, sensor != 0)
  *celsius = between(p.sensors.idleCelsius, p.sensors.fullCelsius, busyShare(indexOf(device)));
  return kSuccess;
}

int nvmlDeviceGetTemperatureV(Device device, TemperatureV* reading) {
  ASKS(device, reading, false)
  if (reading->version != versionOf(sizeof *reading, 1)) return kArgumentVersionMismatch;
  unsigned int celsius = 0;
  const int status = nvmlDeviceGetTemperature(device, reading->sensor, &celsius);
  if (status == kSuccess) reading->celsius = static_cast<int>(celsius);
  return status;
}

int nvmlDeviceGetTemperatureThreshold(Device device, int type, unsigned int* celsius) {
  enum { kShutdown, kSlowdown, kLargestOfMemory, kLargest, kTypes = 8 };
  ASKS(device, celsius, type < 0 || type >= kTypes)
  switch (type) {
    case kShutdown: *celsius = static_cast<unsigned int>(p.sensors.shutdownCelsius); return kSuccess;
    case kSlowdown: *celsius = static_cast<unsigned int>(p.sensors.slowdownCelsius); return kSuccess;
    case kLargest: *celsius = static_cast<unsigned int>(p.sensors.fullCelsius); return kSuccess;
    default: return kNotSupported;  // memory has no sensor, and nothing makes a noise
  }
}

int nvmlDeviceGetMarginTemperature(Device device, MarginTemperature* margin) {
  ASKS(device, margin, false)
  if (margin->version != versionOf(sizeof *margin, 1)) return kArgumentVersionMismatch;
  unsigned int celsius = 0;
  const int status = nvmlDeviceGetTemperature(device, 0, &celsius);
  if (status == kSuccess) margin->celsius = p.sensors.slowdownCelsius - static_cast<int>(celsius);
  return status;
}

// The profiles' devices are cooled by their chassis.
int nvmlDeviceGetNumFans(Device device, unsigned int* count) {
  ASKS(device, count, false)
  *count = 0;
  return kSuccess;
}

// ---- Power ----------------------------------------------------------------------------------------------------------

int nvmlDeviceGetPowerUsage(Device device, unsigned int* milliwatts) {
  ASKS(device, milliwatts, false)
  *milliwatts = between(p.sensors.idleMilliwatts, p.sensors.limitMilliwatts, busyShare(indexOf(device)));
  return kSuccess;
}

// Counts from this process's first question on: nothing outlives the processes that could count for all of them.
int nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  ASKS(device, millijoules, false)
  const Used used = usedSinceFirst(indexOf(device));
  const double more = static_cast<double>(p.sensors.limitMilliwatts) - p.sensors.idleMilliwatts;
  *millijoules = static_cast<unsigned long long>(p.sensors.idleMilliwatts * used.seconds + more * used.busySeconds);
  return kSuccess;
}

int nvmlDeviceGetPowerManagementMode(Device device, int* mode) {
  ASKS(device, mode, false)
  *mode = 1;
  return kSuccess;
}
int nvmlDeviceGetPowerManagementLimit(Device device, unsigned int* milliwatts) {
  ASKS(device, milliwatts, false)
  *milliwatts = static_cast<unsigned int>(p.sensors.limitMilliwatts);
  return kSuccess;
}
int nvmlDeviceGetPowerManagementDefaultLimit(Device device, unsigned int* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned int* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}
// The limit cannot be set.
int nvmlDeviceGetPowerManagementLimitConstraints(Device device, unsigned int* least, unsigned int* most) {
  ASKS(device, least, most == nullptr)
  *least = *most = static_cast<unsigned int>(p.sensors.limitMilliwatts);
  return kSuccess;
}

// ---- Performance states ---------------------------------------------------------------------------------------------

int nvmlDeviceGetPerformanceState(Device device, int* state) {
  ASKS(device, state, false)
  *state = isIdle(device) ? kIdlePerformance : kFullPerformance;
  return kSuccess;
}
int nvmlDeviceGetPowerState(Device device, int* state) { return nvmlDeviceGetPerformanceState(device, state); }

// The rest of the caller's list says that there are no more.
int nvmlDeviceGetSupportedPerformanceStates(Device device, int* states, unsigned int bytes) {
  ASKS(device, states, false)
  const size_t room = bytes / sizeof *states;
  if (room < 2) return kInsufficientSize;
  for (size_t i = 0; i < room; ++i) states[i] = kUnknownPerformance;
  states[0] = kFullPerformance;
  states[1] = kIdlePerformance;
  return kSuccess;
}

int nvmlDeviceGetMinMaxClockOfPState(Device device, int type, int state, unsigned int* least, unsigned int* most) {
  const bool wrong = most == nullptr || type < 0 || type >= kClocks || state < 0 || state >= kPerformanceStates;
  ASKS(device, least, wrong)
  if (state != kFullPerformance && state != kIdlePerformance) return kNotSupported;
  const int status = idleClock(p, type, least);
  return status != kSuccess || state == kFullPerformance ? largestClock(p, type, most) : idleClock(p, type, most);
}

// ---- Clocks ---------------------------------------------------------------------------------------------------------

// In MHz, of graphics (0), multiprocessors (1), memory (2).
int nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned int* clock) {
  ASKS(device, clock, type < 0 || type >= kClocks)
  return largestClock(p, type, clock);
}
// A device that no process uses rests at its idle clocks; any other runs at its full ones.
int nvmlDeviceGetClockInfo(Device device, int type, unsigned int* clock) {
  ASKS(device, clock, type < 0 || type >= kClocks)
  return isIdle(device) ? idleClock(p, type, clock) : largestClock(p, type, clock);
}
int nvmlDeviceGetApplicationsClock(Device device, int type, unsigned int* clock) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock);
}
int nvmlDeviceGetDefaultApplicationsClock(Device device, int type, unsigned int* clock) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock);
}
int nvmlDeviceGetMaxCustomerBoostClock(Device device, int type, unsigned int* clock) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock);
}
int nvmlDeviceGetClock(Device device, int type, int id, unsigned int* clock) {
  ASKS(device, clock, type < 0 || type >= kClocks || id < 0 || id >= kClockIds)
  return id == kCurrentClock ? nvmlDeviceGetClockInfo(device, type, clock) : largestClock(p, type, clock);
}

namespace {
// One clock as a list, as NVML gives lists: the number is said where there is no room.
int listOfOne(unsigned int clock, unsigned int* count, unsigned int* clocks) {
  const unsigned int room = *count;
  *count = 1;
  if (room == 0 || clocks == nullptr) return kInsufficientSize;
  clocks[0] = clock;
  return kSuccess;
}
}  // namespace

int nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned int* count, unsigned int* clocks) {
  ASKS(device, count, false)
  return listOfOne(megahertz(p.memoryClockKHz), count, clocks);
}
int nvmlDeviceGetSupportedGraphicsClocks(Device device, unsigned int memoryClock, unsigned int* count,
                                         unsigned int* clocks) {
  ASKS(device, count, false)
  if (memoryClock != megahertz(p.memoryClockKHz)) return kNotFound;
  return listOfOne(megahertz(p.clockKHz), count, clocks);
}

int nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* reasons) {
  ASKS(device, reasons, false)
  *reasons = isIdle(device) ? kReasonIdle : 0;
  return kSuccess;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
int nvmlDeviceGetSupportedClocksEventReasons(Device device, unsigned long long* reasons) {
  ASKS(device, reasons, false)
  *reasons = kReasonIdle;
  return kSuccess;
}
int nvmlDeviceGetSupportedClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

// ---- Fabric ---------------------------------------------------------------------------------------------------------

// That there is none is an answer (state 0), with which programs go on; they end at an error.
int nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* info) {
  ASKS(device, info, false)
  *info = {};
  return kSuccess;
}
int nvmlDeviceGetGpuFabricInfoV(Device device, FabricInfoV* info) {
  ASKS(device, info, false)
  const unsigned int version = info->version;
  const bool isThird = version == versionOf(sizeof *info, 3);
  if (!isThird && version != versionOf(kFabricInfo2, 2)) return kArgumentVersionMismatch;
  std::memset(info, 0, isThird ? sizeof *info : kFabricInfo2);
  info->version = version;
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
