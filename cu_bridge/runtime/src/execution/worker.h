// One operating system thread that runs blocks: its fibers, barriers and warps. The note in mc_kernel.h says how a
// block runs. worker.cpp runs blocks and switches between their threads; worker_barrier.cpp and worker_warp.cpp say
// when a thread that waits may go on; worker_failure.cpp ends a launch, and warns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "execution/fiber.h"
#include "execution/grid.h"
#include "mc_device_limits.h"
#include "mc_kernel.h"

namespace mc {

// Memory of one worker that grows on demand and ends at a page that nobody can touch.
class GuardedMemory {
 public:
  GuardedMemory() = default;
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // At least this many bytes from now on; what was in it is lost when it grows. False: the host has no memory.
  bool reserve(size_t bytes);
  // Where the last `bytes` bytes begin.
  char* last(size_t bytes) const { return memory_ + capacity_ - bytes; }

 private:
  char* memory_ = nullptr;
  size_t capacity_ = 0;
};

using limits::kWarpSize;
constexpr unsigned kMaxThreads = limits::kThreadsPerBlock;

class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The one whose kernel the calling thread runs, or nullptr.
  static Worker* current();

  // Runs blocks of the launch until none is left.
  void run(Launch& launch);
  // Runs one block, the calling thread being its own.
  void runCooperative(Launch& launch, uint64_t block);

  // From inside a kernel:
  mcKernelContext* context() { return &context_; }
  Launch& launch() { return *launch_; }
  void park(unsigned thread);
  unsigned barrier(int kind, int predicate, const char* file, int line);
  unsigned namedBarrier(unsigned number, unsigned threads, bool arrive, int predicate, const char* file, int line);
  unsigned long long exchange(mcWarpOperation operation, unsigned mask, unsigned long long value, unsigned lane,
                              const char* file, int line);
  unsigned activeLanes(const char* file, int line);
  // After how many rounds of its loop the thread should yield again.
  unsigned yield();
  void letWarpCatchUp();
  void* scratch(size_t bytes);
  mcAddressSpace addressSpace(const void* address);
  [[noreturn]] void failHere(mcError_t error, const std::string& what);

  // From the signal handler: whether a kernel is running here, and where to go on after it failed.
  bool inKernel() const { return running_; }
  void* abandon(mcError_t error, const char* what);

  // For the watchdog, from its thread: a number for the launch that runs here, or 0; and that it is to end.
  uint64_t runningLaunch() const { return launchNumber_.load(std::memory_order_relaxed); }
  void end(uint64_t launch, const char* reason) {
    endReason_.store(reason, std::memory_order_relaxed);
    ending_.store(launch, std::memory_order_release);
  }
  // From its signal.
  bool toBeEnded() const {
    const uint64_t launch = ending_.load(std::memory_order_acquire);
    return launch != 0 && launch == launchNumber_.load(std::memory_order_relaxed);
  }
  const char* endReason() const { return endReason_.load(std::memory_order_relaxed); }
  uintptr_t kernelAddress() const { return reinterpret_cast<uintptr_t>(launch_->function); }

 private:
  enum class State : uint8_t { kIdle, kLoop, kReady, kBarrier, kNamedBarrier, kWarp, kActive, kYielded };

  struct alignas(64) Fiber {
    void* stackPointer;
    Fiber* next;
    unsigned thread;  // linear number, valid when parked
    State state;
    bool parked;
    uint8_t operation;
    unsigned mask, lane;
    unsigned long long value;  // in: what the thread brings; out: what it gets
    const char* file;
    int line;
    unsigned index;

    bool samePlace(const Fiber* other) const {
      return line == other->line && (file == other->file || std::strcmp(file, other->file) == 0);
    }
  };

  struct Queue {
    Fiber* head = nullptr;
    Fiber* tail = nullptr;
    bool empty() const { return head == nullptr; }
    void push(Fiber* fiber) {
      fiber->next = nullptr;
      if (tail == nullptr) {
        head = fiber;
      } else {
        tail->next = fiber;
      }
      tail = fiber;
    }
    Fiber* pop() {
      Fiber* const first = head;
      head = first->next;
      if (head == nullptr) tail = nullptr;
      return first;
    }
    void append(Queue& other) {
      if (other.head == nullptr) return;
      if (tail == nullptr) {
        head = other.head;
      } else {
        tail->next = other.head;
      }
      tail = other.tail;
      other.head = other.tail = nullptr;
    }
    void clear() { head = tail = nullptr; }
  };

  struct NamedBarrier {
    Queue waiting;
    unsigned expected = 0;  // threads; 0: all that have not ended
    unsigned arrived = 0, trueCount = 0;
    uint32_t lanes[kMaxThreads / kWarpSize] = {};  // that have arrived
  };

  static void fiberMain();
  void loop();  // of fiberMain
  void begin(Launch& launch);
  void runBlocks(uint64_t first, uint64_t count);
  void letOthersBegin();
  void giveProcessorAway(std::chrono::steady_clock::time_point now);
  void letOthersRun();
  void setBlock(uint64_t linear);
  mcDim3 threadIndex(unsigned linear) const;
  void enterRange(unsigned position);
  void loopEnded(Fiber* fiber);
  void threadsEnded(unsigned first, unsigned count);
  void threadEnded(unsigned thread);
  Fiber* takeFiber();
  void giveFiber(Fiber* fiber);
  Fiber* pickNext();
  [[noreturn]] void leaveForScheduler();
  // The calling thread has noted what it waits for, and goes on when that has come. Returns what it gets.
  unsigned long long waitForOthers(Fiber* self) {
    if (__builtin_expect(activeWaiting_ != 0, 0)) resolveActive(self->thread / kWarpSize);
    Fiber* const next = pickNext();
    if (__builtin_expect(next == nullptr, 0)) {
      reportStuck();
      leaveForScheduler();
    }
    switchTo(next);
    return self->value;
  }
  void switchTo(Fiber* next);
  template <class Element>
  void reorder(std::vector<Element>& elements);  // as the schedule says
  void release(Queue& waiting);
  void releaseBarrierIfComplete();
  void releaseIfComplete(NamedBarrier& barrier);
  void forgetNamedBarriers();
  bool isComplete(const NamedBarrier& barrier) const;
  void meetElsewhere(const Fiber* self, const Fiber* first, int kind);
  void completeWarp(unsigned warp, unsigned mask);
  void checkPartners(unsigned warp, const Fiber* leader, const Fiber* elsewhere, uint32_t there);
  void warnAbsentLane(const Fiber* reader);
  void warn(const std::string& what) const;
  void warpLostThreads(unsigned warp);
  void resolveActive(unsigned warp);
  void reportStuck();
  bool stacksOverran() const;
  bool inStaticShared(uintptr_t address);
  void reset();
  unsigned liveLanes(unsigned warp) const;
  std::string place(const Fiber* fiber, const char* does = "") const;
  uint64_t random();

  mcKernelContext context_{};
  Launch* launch_ = nullptr;
  bool running_ = false;
  bool failed_ = false;
  void* scheduler_ = nullptr;  // the thread's own stack, while fibers run
  Fiber* currentFiber_ = nullptr;

  // The block that has parked threads.
  bool split_ = false;       // some thread has waited: the block is no single loop any more
  unsigned threads_ = 0;     // in a block
  unsigned started_ = 0;     // threads that some loop has taken on, in schedule order
  unsigned rangeStart_ = 0;  // where the running loop began
  unsigned live_ = 0;        // threads that have not ended
  uint64_t blocksLeft_ = 0;  // of the chunk, behind the block that was split
  uint64_t chunkFirst_ = 0, chunkCount_ = 0;
  unsigned yields_ = 0;  // of the block
  std::chrono::steady_clock::time_point looked_{}, staysUntil_{}, waitsSince_{};
  std::vector<unsigned> order_;  // thread numbers in schedule order, unless forward
  uint32_t ended_[kMaxThreads / kWarpSize] = {};
  uint32_t inWarp_[kMaxThreads / kWarpSize] = {};  // lanes that wait for a warp operation
  uint32_t met_[kMaxThreads / kWarpSize] = {};     // lanes that have taken part in one that exchanges values
  Fiber* byThread_[kMaxThreads] = {};
  unsigned activeWaiting_ = 0;  // threads that ask which lanes are active
  Queue ready_;
  Queue barrier_;
  unsigned arrived_ = 0, trueCount_ = 0;
  int barrierKind_ = mcBarrierPlain;
  bool severalPlaces_ = false;  // the threads that wait at the barrier do so in more than one
  NamedBarrier named_[limits::kNamedBarriers];
  bool namedUsed_ = false;  // by the block

  std::vector<Fiber> fibers_;
  std::vector<Stack> stacks_;
  std::vector<Fiber*> idle_;
  GuardedMemory shared_, scratch_;
  // Variables of the worker's own in the library of a kernel, and the code of the kernel that asked for them.
  uintptr_t staticShared_ = 0, staticSharedOf_ = 0;
  size_t staticSharedBytes_ = 0;
  uint64_t randomState_ = 0;

  std::atomic<uint64_t> launchNumber_{0}, ending_{0};
  std::atomic<const char*> endReason_{nullptr};
  uint64_t launches_ = 0;
};

}  // namespace mc
