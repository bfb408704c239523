// A launch in progress: what its blocks share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "execution/child_launch.h"
#include "mc_kernel.h"

namespace mc {

// In which order threads and blocks run: MACA_SCHEDULE.
struct Schedule {
  enum Order { kForward, kReverse, kRandom } order = kForward;
  uint64_t seed = 0;
};

// All blocks of a cooperative launch wait here for each other.
class GridBarrier {
 public:
  explicit GridBarrier(unsigned blocks) : live_(blocks) {}
  bool wait();   // false: another block has failed
  void leave();  // the calling block has ended
  void abort();

 private:
  void releaseIfComplete();
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned live_, waiting_ = 0;
  unsigned long long generation_ = 0;
  bool aborted_ = false;
};

// A launch in progress, shared by the workers that run its blocks.
struct Launch {
  const char* name;  // of the kernel, mangled
  mcDeviceFunction function;
  mcDim3 grid, block;
  void** arguments;
  size_t sharedBytes;
  int device;
  uint64_t blocks;
  uint64_t work;  // of a block, in threads
  Schedule schedule;
  GridBarrier* gridBarrier = nullptr;
  std::atomic<uint64_t> next{0};
  uint64_t chunk = 1;
  std::atomic<int> error{0};  // the first failure's code
  std::mutex errorMutex;
  std::string what;
  ChildLaunches children;

  void fail(mcError_t code, const std::string& text);
};

// Reads MACA_SCHEDULE; false with the reason if it makes no sense.
bool readSchedule(Schedule* schedule, std::string* problem);

}  // namespace mc
