// How busy a simulated device is: what its processes use of the host's processors, where it computes.

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "nvml.h"

namespace mxmaca::nvml {

std::atomic<int> initialized{0};

std::vector<mcProcessUse> users(int index) {
  std::vector<mcProcessUse> found(64);
  for (;;) {
    auto count = static_cast<unsigned int>(found.size());
    const mcError_t error = mcDeviceProcesses(index, found.data(), &count);
    if (error == mcErrorMemoryValueTooLarge) {
      found.resize(count * 2);
      continue;
    }
    found.resize(error == mcSuccess ? count : 0);
    return found;
  }
}

namespace {

// CPU time of a process so far, in seconds; 0 if it has gone.
double cpuSeconds(int pid) {
  std::FILE* const file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re");
  if (file == nullptr) return 0;
  char text[1024] = "";
  const size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = '\0';
  const char* const rest = std::strrchr(text, ')');
  unsigned long long user = 0;
  unsigned long long kernel = 0;
  const char* const format = ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu";
  if (rest == nullptr || std::sscanf(rest, format, &user, &kernel) != 2) return 0;
  return static_cast<double>(user + kernel) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// What is known of one device since it was first asked for.
struct Meter {
  double time = 0;                // of the last sample; 0 before the first
  std::map<int, double> seconds;  // of each process then
  double share = 0;               // between the last two samples
  Used used{0, 0};
};

constexpr double kShortest = 0.05;  // seconds; the system counts a process's time in steps of 0.01
constexpr double kLongest = 5;      // what is older says nothing about now

void sample(int index, Meter* meter) {
  const double time = now();
  std::map<int, double> seconds;
  for (const mcProcessUse& user : users(index)) seconds[user.pid] = cpuSeconds(user.pid);
  const double passed = time - meter->time;
  if (meter->time > 0 && passed > 0) {
    double busy = 0;
    for (const auto& [pid, until] : seconds) {
      const auto before = meter->seconds.find(pid);
      if (before != meter->seconds.end()) busy += std::max(0.0, until - before->second);
    }
    meter->share = std::min(1.0, busy / (passed * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN))));
    meter->used.seconds += passed;
    meter->used.busySeconds += meter->share * passed;
  }
  meter->time = time;
  meter->seconds = std::move(seconds);
}

std::mutex& meterMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
// With its lock.
Meter& meterOf(int index) {
  static auto* const meters = new std::map<int, Meter>;
  return (*meters)[index];
}

}  // namespace

// Several readings that are asked for one after the other are of one sample: they agree, and only the first waits.
double busyShare(int index) {
  const std::lock_guard<std::mutex> lock(meterMutex());
  Meter& meter = meterOf(index);
  const double age = now() - meter.time;
  if (age > kLongest) {
    sample(index, &meter);
    usleep(static_cast<useconds_t>(kShortest * 1e6));
    sample(index, &meter);
  } else if (age >= kShortest) {
    sample(index, &meter);
  }
  return meter.share;
}

Used usedSinceFirst(int index) {
  const std::lock_guard<std::mutex> lock(meterMutex());
  Meter& meter = meterOf(index);
  if (meter.time == 0 || now() - meter.time >= kShortest) sample(index, &meter);
  return meter.used;
}

}  // namespace mxmaca::nvml
