#include "devices/device.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "capture/capture.h"
#include "host/ledger.h"
#include "mc_device_limits.h"
#include "profile/profile.h"
#include "queue/queue.h"
#include "state/locked.h"
#include "state/state.h"
#include "uuid.h"

namespace mc {
namespace {

struct Profile {
  const char* profile;
  const char* name;
  unsigned long long memory;
  int major, minor, multiprocessors, clockKHz, memoryClockKHz, memoryBusBits, l2Bytes;
  mcDeviceSensors sensors;
};

constexpr Profile kProfiles[] = {
#include "profile_table.inc"
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> splitList(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c != ',') {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) part += c;
      continue;
    }
    parts.push_back(part);
    part.clear();
  }
  return parts;
}

const Profile* findProfile(const std::string& name) {
  for (const Profile& profile : kProfiles) {
    if (name == profile.profile) return &profile;
  }
  return nullptr;
}

// "16GiB", "512MiB", "16G" or plain bytes; 0 if it is none of these.
unsigned long long parseBytes(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return 0;
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  std::string unit = end;
  if (unit.size() == 3 && unit.compare(1, 2, "iB") == 0) unit.resize(1);
  int shift = 0;
  if (!unit.empty() && unit != "B") {
    const char* const found = unit.size() == 1 ? std::strchr("KMGT", std::toupper(unit[0])) : nullptr;
    if (found == nullptr) return 0;
    shift = 10 * static_cast<int>(found - "KMGT" + 1);
  }
  const bool overflow = errno != 0 || (number << shift) >> shift != number;
  return overflow ? 0 : number << shift;
}

uint64_t hash(const std::string& text) {  // FNV-1a
  uint64_t value = 14695981039346656037ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return value;
}

Device makeDevice(int index, const Profile& profile, unsigned long long memory) {
  Device device{};
  mcDeviceProperties& p = device.properties;
  std::snprintf(p.name, sizeof p.name, "%s", profile.name);
  p.memory = memory;
  p.major = profile.major;
  p.minor = profile.minor;
  p.multiprocessors = profile.multiprocessors;
  p.clockKHz = profile.clockKHz;
  p.memoryClockKHz = profile.memoryClockKHz;
  p.memoryBusBits = profile.memoryBusBits;
  p.l2Bytes = profile.l2Bytes;
  p.warpSize = limits::kWarpSize;
  p.maxThreadsPerBlock = limits::kThreadsPerBlock;
  p.maxThreadsPerMultiprocessor = limits::kThreadsPerMultiprocessor;
  p.maxBlocksPerMultiprocessor = limits::kBlocksPerMultiprocessor;
  p.registersPerBlock = p.registersPerMultiprocessor = limits::kRegistersPerMultiprocessor;
  p.sharedPerBlock = limits::kSharedPerBlock;
  p.sharedPerBlockOptin = limits::kSharedPerBlockOptin;
  p.sharedPerMultiprocessor = limits::kSharedPerMultiprocessor;
  p.sharedReserved = limits::kSharedReserved;
  p.pciDomain = 0;
  p.pciBus = index + 1;
  p.pciDevice = 0;
  p.physicalIndex = index;
  device.sensors = profile.sensors;
  const std::string identity =
      std::string(profile.profile) + "/" + std::to_string(memory) + "/" + std::to_string(index);
  device.accountKey = hash(identity) | 1;
  const uint64_t low = hash(identity + "/uuid");
  std::memcpy(p.uuid, "MXMACA", 6);
  p.uuid[6] = 0x40;  // so that it reads as a version 4, variant 1 UUID
  p.uuid[7] = static_cast<uint8_t>(index);
  std::memcpy(p.uuid + 8, &low, 8);
  p.uuid[8] = static_cast<uint8_t>((p.uuid[8] & 0x3f) | 0x80);
  return device;
}

// Index of the one device that an entry of CUDA_VISIBLE_DEVICES names; -1 if there is none.
int resolveVisible(const std::string& entry, const std::vector<Device>& devices) {
  if (entry.empty()) return -1;
  if (std::all_of(entry.begin(), entry.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    const unsigned long index = std::strtoul(entry.c_str(), nullptr, 10);
    return index < devices.size() ? static_cast<int>(index) : -1;
  }
  int match = -1;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (uuidText(devices[i].properties.uuid).compare(0, entry.size(), entry) != 0) continue;
    if (match >= 0) return -1;  // ambiguous
    match = static_cast<int>(i);
  }
  return match;
}

std::vector<int> visibleDevices(const std::vector<Device>& devices) {
  std::vector<int> visible;
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (size_t i = 0; i < devices.size(); ++i) visible.push_back(static_cast<int>(i));
    return visible;
  }
  // The list ends at its first entry that names no device; one named twice hides all.
  for (const std::string& entry : splitList(list)) {
    const int index = resolveVisible(entry, devices);
    if (index < 0) break;
    if (std::find(visible.begin(), visible.end(), index) != visible.end()) return {};
    visible.push_back(index);
  }
  return visible;
}

std::string buildDevices(System& result) {
  const std::string countText = environment("MACA_DEVICE_COUNT");
  long count = 1;
  if (!countText.empty()) {
    char* end = nullptr;
    count = std::strtol(countText.c_str(), &end, 10);
    if (*end != '\0' || count < 0 || count > limits::kDevices) {
      return "MACA_DEVICE_COUNT must be a number from 0 to " + std::to_string(limits::kDevices) + ", not '" +
             countText + "'";
    }
  }
  const std::string profileText = environment("MACA_DEVICE_PROFILE");
  const std::string memoryText = environment("MACA_DEVICE_MEMORY");
  const std::vector<std::string> profileNames = splitList(profileText.empty() ? kProfiles[0].profile : profileText);
  const std::vector<std::string> memories = splitList(memoryText);
  for (long i = 0; i < count; ++i) {
    // A list that is too short goes on with its last entry.
    const auto& name = profileNames[std::min<size_t>(i, profileNames.size() - 1)];
    const Profile* const profile = findProfile(name);
    if (profile == nullptr) {
      std::string known;
      for (const Profile& p : kProfiles) known += std::string(known.empty() ? "" : ", ") + p.profile;
      return "MACA_DEVICE_PROFILE names the unknown profile '" + name + "'; known: " + known;
    }
    unsigned long long memory = profile->memory;
    if (!memoryText.empty()) {
      const std::string& text = memories[std::min<size_t>(i, memories.size() - 1)];
      memory = parseBytes(text);
      if (memory == 0) return "MACA_DEVICE_MEMORY must be a size such as 16GiB or 512MiB, not '" + text + "'";
    }
    result.physical.push_back(makeDevice(static_cast<int>(i), *profile, memory));
  }
  if (count > 0 && !ledger().problem().empty()) return ledger().problem();
  result.visible = visibleDevices(result.physical);
  return "";
}

// nullptr if there is none.
const Device* physicalDevice(int index) {
  const auto& all = system().physical;
  return index < 0 || static_cast<size_t>(index) >= all.size() ? nullptr : &all[index];
}

mcError_t noDevice() {
  const System& all = system();
  if (all.problem.empty()) return fail(mcErrorNoDevice);
  return failWith(mcErrorInitializationError, all.problem.c_str());
}

}  // namespace

namespace {
std::atomic<bool> started{false};
}  // namespace

const System& system() {
  static const System* const instance = [] {
    auto* built = new System;
    built->problem = buildDevices(*built);
    if (!built->problem.empty()) {
      built->physical.clear();
      std::fprintf(stderr, "mxmaca: %s\n", built->problem.c_str());
    }
    started.store(true);
    return built;
  }();
  return *instance;
}

const Device* visibleDevice(int device) {
  const System& all = system();
  if (device < 0 || static_cast<size_t>(device) >= all.visible.size()) return nullptr;
  return &all.physical[all.visible[device]];
}

}  // namespace mc

using namespace mc;

mcError_t mcGetDeviceCount(int* count) {
  if (count == nullptr) return fail(mcErrorInvalidValue);
  MC_RETURN_IF_STICKY();
  *count = static_cast<int>(system().visible.size());
  return *count == 0 ? noDevice() : mcSuccess;
}

mcError_t mcGetDevice(int* device) {
  if (device == nullptr) return fail(mcErrorInvalidValue);
  if (system().visible.empty()) return noDevice();
  *device = threadState.device;
  return mcSuccess;
}

mcError_t mcSetDevice(int device) {
  if (visibleDevice(device) == nullptr) return system().visible.empty() ? noDevice() : fail(mcErrorInvalidDevice);
  threadState.device = device;
  threadState.noContext = false;
  useDevice(device);
  return mcSuccess;
}

int mcIsStarted(void) { return started.load() ? 1 : 0; }

int mcDeviceIsUsed(int device) {
  static_assert(limits::kDevices <= 64, "a bit of usedDevices for each");
  return device >= 0 && static_cast<unsigned>(device) < limits::kDevices &&
         (usedDevices.load() >> static_cast<unsigned>(device) & 1) != 0;
}

void mcContextSet(int set) { threadState.noContext = set == 0; }
int mcContextIsSet(void) { return threadState.noContext ? 0 : 1; }

mcError_t mcGetDeviceProperties(mcDeviceProperties* properties, int device) {
  if (properties == nullptr) return fail(mcErrorInvalidValue);
  const Device* const found = visibleDevice(device);
  if (found == nullptr) return system().visible.empty() ? noDevice() : fail(mcErrorInvalidDevice);
  *properties = found->properties;
  return mcSuccess;
}

int mcPhysicalDeviceCount(void) { return static_cast<int>(system().physical.size()); }

mcError_t mcGetPhysicalDeviceProperties(mcDeviceProperties* properties, int physicalIndex) {
  const Device* const device = physicalDevice(physicalIndex);
  if (properties == nullptr || device == nullptr) return mcErrorInvalidValue;
  *properties = device->properties;
  return mcSuccess;
}

mcError_t mcGetPhysicalDeviceSensors(mcDeviceSensors* sensors, int physicalIndex) {
  const Device* const device = physicalDevice(physicalIndex);
  if (sensors == nullptr || device == nullptr) return mcErrorInvalidValue;
  *sensors = device->sensors;
  return mcSuccess;
}

mcError_t mcDeviceSynchronize(void) {
  const ProfiledCall call(mcCallDeviceSynchronize);
  MC_RETURN_IF_STICKY();
  MC_RETURN_IF_CAPTURE_FORBIDS();
  if (system().visible.empty()) return noDevice();
  useDevice(threadState.device);
  if (!anythingPending()) return mcSuccess;
  waitDevice(threadState.device);
  if (lateMode) late::hostWaitedForDevice(threadState.device);
  return checkSticky();  // of what was waited for
}

mcError_t mcDeviceReset(void) {
  if (anythingPending() && !isForkedChild()) waitDevice(threadState.device);
  stickyError.store(0);
  threadState.lastError = mcSuccess;
  return mcSuccess;
}

namespace {
struct Peers {
  std::set<std::pair<int, int>> enabled;  // a device, and one whose memory it may use
};
}  // namespace

mcError_t mcDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return fail(mcErrorInvalidValue);
  if (visibleDevice(device) == nullptr || visibleDevice(peer) == nullptr) return fail(mcErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return mcSuccess;
}

mcError_t mcDeviceEnablePeerAccess(int peer, unsigned int flags) {
  if (flags != 0) return fail(mcErrorInvalidValue);
  if (visibleDevice(peer) == nullptr || peer == threadState.device) return fail(mcErrorInvalidDevice);
  return Writing<Peers>()->enabled.emplace(threadState.device, peer).second ? mcSuccess
                                                                            : fail(mcErrorPeerAccessAlreadyEnabled);
}

mcError_t mcDeviceDisablePeerAccess(int peer) {
  if (visibleDevice(peer) == nullptr) return fail(mcErrorInvalidDevice);
  return Writing<Peers>()->enabled.erase({threadState.device, peer}) == 1 ? mcSuccess
                                                                          : fail(mcErrorPeerAccessNotEnabled);
}

mcError_t mcDeviceMemoryInfo(int physicalIndex, size_t* free, size_t* total) {
  const Device* const device = physicalDevice(physicalIndex);
  if (device == nullptr) return mcErrorInvalidValue;
  const size_t used = ledger().used(device->accountKey);
  *total = device->properties.memory;
  *free = *total > used ? *total - used : 0;
  return mcSuccess;
}

mcError_t mcDeviceProcesses(int physicalIndex, mcProcessUse* processes, unsigned int* count) {
  const Device* const device = physicalDevice(physicalIndex);
  if (count == nullptr || device == nullptr) return mcErrorInvalidValue;
  const auto found = ledger().users(device->accountKey);
  const unsigned int room = *count;
  *count = static_cast<unsigned int>(found.size());
  if (found.size() > room) return mcErrorMemoryValueTooLarge;
  std::copy(found.begin(), found.end(), processes);
  return mcSuccess;
}
