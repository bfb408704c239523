// A launch in progress: what its blocks share.
//
// Note: a grid in which blocks wait
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// On hardware some hundreds of blocks run at once, and programs count on it: a barrier of the whole grid by a counter,
// a work list, a row of a triangular system that waits for another one. A pool of few threads would wait for ever, each
// of them in a block that waits for one which has not begun. So a block whose threads have waited for a while in loops
// (cucc's waits.py) gives back the blocks that its thread was to run after it, and as long as there are blocks that
// nobody runs, one more thread is made for them every millisecond. Kernels that do not wait never come here.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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

struct Launch;

// Threads for blocks that others wait for: the note above.
class Helpers {
 public:
  // Blocks that somebody else may run.
  void giveBack(uint64_t first, uint64_t count);
  // Takes some of those; false: there are none.
  bool take(uint64_t* first, uint64_t* count);
  bool any();
  // Makes a thread that runs blocks of the launch, unless one was made just now or the system has none to give.
  void call(Launch& launch, void (*run)(Launch& launch));
  // Waits for all threads that were made, and for those that they have made.
  void join();

 private:
  struct Range {
    uint64_t first, count;
  };
  std::mutex mutex_;
  std::vector<Range> ranges_;
  std::vector<std::thread> threads_;
  std::chrono::steady_clock::time_point last_{};
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
  unsigned part = 0, multiprocessors = 1;  // of the device: see Note [Parts]
  std::atomic<int> error{0};               // the first failure's code
  std::mutex errorMutex;
  std::string what;
  ChildLaunches children;
  Helpers helpers;
  void (*runHere)(Launch& launch) = nullptr;  // runs blocks on the calling thread until none is left

  // The next blocks to run; false: all are taken.
  bool take(uint64_t* first, uint64_t* count);
  bool untaken() { return next.load(std::memory_order_relaxed) < blocks || helpers.any(); }
  void fail(mcError_t code, const std::string& text);
};

// Reads MACA_SCHEDULE; false with the reason if it makes no sense.
bool readSchedule(Schedule* schedule, std::string* problem);

}  // namespace mc
