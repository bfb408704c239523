// A launch in progress: what its blocks share.
//
// Note: a grid in which blocks wait
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// On hardware some hundreds of blocks run at once, and programs count on it: a barrier of the whole grid by a counter,
// a work list, a row of a triangular system that waits for another one. A pool of few threads would wait for ever, each
// of them in a block that waits for one which has not begun. So a block whose threads have waited for a while in loops
// (cucc's waits.py) gives back the blocks that its thread was to run after it, and as long as there are blocks that
// nobody runs, one more thread is made for them in every millisecond in which no block has ended: who waits for a block
// that runs needs no other. The lowest blocks begin first, since programs wait for lower ones. Kernels that do not wait
// never come here.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
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
  bool any() const { return ranges_.load(std::memory_order_relaxed) != 0; }
  // Makes a thread that runs blocks of the launch, unless one was made or a block has ended just now, or the system has
  // none to give. `ended`: how many blocks have.
  void call(Launch& launch, void (*run)(Launch& launch), uint64_t ended);
  size_t made() const { return made_.load(std::memory_order_relaxed); }
  // Waits for all threads that were made, and for those that they have made.
  void join();

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> given_;  // first block to number of blocks
  std::atomic<size_t> ranges_{0};       // how many those are
  std::vector<std::thread> threads_;
  std::atomic<size_t> made_{0};     // threads, in all
  std::atomic<int64_t> last_{0};    // when a thread was made or a block was seen to have ended, nanoseconds
  std::atomic<uint64_t> ended_{0};  // blocks, by then
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
  std::atomic<uint64_t> ended{0};  // blocks, as far as their threads have told
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
