// Blocks, fibers, barriers, warps. The note in mc_kernel.h says how a block runs.

#include "block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>

#include "demangle.h"
#include "state.h"

// Of the sanitizers' runtime, there if the program was compiled with one.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fakeStack, const void* bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fakeStack, const void** bottom, size_t* size);
}

namespace mc {
namespace {

thread_local Worker* currentWorker = nullptr;

std::string triple(mcDim3 value) {
  char text[64];
  std::snprintf(text, sizeof text, "(%u, %u, %u)", value.x, value.y, value.z);
  return text;
}

mcDim3 blockIndex(uint64_t linear, mcDim3 grid) {
  const uint64_t rows = linear / grid.x;
  return {static_cast<unsigned>(linear % grid.x), static_cast<unsigned>(rows % grid.y),
          static_cast<unsigned>(rows / grid.y)};
}

// Whether the global index of a row's threads is below 2^31 for some and not for others (the note in execution.h).
bool passesIntMax(mcDim3 grid, mcDim3 block, unsigned index) {
  constexpr uint64_t kMost = uint64_t{1} << 31;
  if (uint64_t{grid.x} * block.x <= kMost) return false;
  const uint64_t base = (uint64_t{index} * block.x) & 0xffffffffU;
  return base < kMost && base + block.x > kMost;
}

// Whether something was said about the kernel of this name; from now on it was.
bool saidAlready(const char* name) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return !names->insert(name).second;
}

bool samePlace(const char* file, int line, const char* otherFile, int otherLine) {
  return line == otherLine && (file == otherFile || std::strcmp(file, otherFile) == 0);
}

uint64_t mix(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

// ---- Launch and grid barrier ------------------------------------------------------------------------------------------

void Launch::fail(mcError_t code, const std::string& text) {
  const std::lock_guard<std::mutex> lock(errorMutex);
  if (error.load() != 0) return;
  what = text;
  error.store(code);
  if (gridBarrier != nullptr) gridBarrier->abort();
}

bool GridBarrier::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (aborted_) return false;
  const unsigned long long mine = generation_;
  ++waiting_;
  releaseIfComplete();
  changed_.wait(lock, [&] { return generation_ != mine || aborted_; });
  return !aborted_;
}

void GridBarrier::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --live_;
  releaseIfComplete();
}

void GridBarrier::abort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

void GridBarrier::releaseIfComplete() {
  if (waiting_ == 0 || waiting_ < live_) return;
  waiting_ = 0;
  ++generation_;
  changed_.notify_all();
}

// ---- Worker: life -----------------------------------------------------------------------------------------------------

Worker& Worker::mine() {
  thread_local std::unique_ptr<Worker> worker;
  if (worker == nullptr) {
    worker = std::make_unique<Worker>();
    installFaultHandlers();
    prepareFaultStack();
  }
  return *worker;
}

Worker* Worker::current() { return currentWorker; }

Worker::Worker() { watch(this); }

Worker::~Worker() {
  unwatch(this);
  for (size_t i = 0; i < stacks_.size(); i += 64) freeStacks(&stacks_[i], 64);
  if (shared_ != nullptr) munmap(shared_, sharedCapacity_ + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

bool Worker::reserveShared(size_t bytes) {
  if (bytes <= sharedCapacity_) return true;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t capacity = (bytes + page - 1) / page * page;
  void* const memory = mmap(nullptr, capacity + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  mprotect(static_cast<char*>(memory) + capacity, page, PROT_NONE);
  if (shared_ != nullptr) munmap(shared_, sharedCapacity_ + page);
  shared_ = static_cast<char*>(memory);
  sharedCapacity_ = capacity;
  return true;
}

uint64_t Worker::random() { return randomState_ = mix(randomState_); }

void Worker::begin(Launch& launch) {
  launch_ = &launch;
  context_.arguments = launch.arguments;
  context_.gridDim = launch.grid;
  context_.blockDim = launch.block;
  threads_ = launch.block.x * launch.block.y * launch.block.z;
  context_.dynamicSharedBytes = static_cast<unsigned>(launch.sharedBytes);
  // It ends where the guard page begins, as closely as the alignment allows.
  context_.dynamicShared = nullptr;
  if (!reserveShared(launch.sharedBytes)) {
    launch.fail(mcErrorMemoryAllocation, "no memory for the shared memory of a block");
  } else if (launch.sharedBytes != 0) {
    context_.dynamicShared = shared_ + sharedCapacity_ - (launch.sharedBytes + 127) / 128 * 128;
  }
  failed_ = false;
}

void Worker::run(Launch& launch) {
  Worker* const outer = currentWorker;
  begin(launch);
  currentWorker = this;
  launchNumber_.store(++launches_, std::memory_order_relaxed);
  while (launch.error.load(std::memory_order_relaxed) == 0) {
    const uint64_t first = launch.next.fetch_add(launch.chunk, std::memory_order_relaxed);
    if (first >= launch.blocks) break;
    runBlocks(first, std::min(launch.chunk, launch.blocks - first));
  }
  launchNumber_.store(0, std::memory_order_relaxed);
  currentWorker = outer;
}

void Worker::runCooperative(Launch& launch, uint64_t block) {
  Worker* const outer = currentWorker;
  begin(launch);
  currentWorker = this;
  launchNumber_.store(++launches_, std::memory_order_relaxed);
  if (launch.error.load() == 0) runBlocks(block, 1);
  launchNumber_.store(0, std::memory_order_relaxed);
  launch.gridBarrier->leave();
  currentWorker = outer;
}

// ---- Worker: blocks and loops -----------------------------------------------------------------------------------------

void Worker::setBlock(uint64_t linear) {
  const uint64_t total = launch_->blocks;
  switch (launch_->schedule.order) {
    case Schedule::kForward: break;
    case Schedule::kReverse: linear = total - 1 - linear; break;
    case Schedule::kRandom: {
      // A step that has no divisor in common with the number of blocks visits each once.
      uint64_t step = (mix(launch_->schedule.seed) % total) | 1;
      while (std::gcd(step, total) != 1) step += 2;
      linear = static_cast<uint64_t>((static_cast<unsigned __int128>(linear) * step + launch_->schedule.seed) % total);
      randomState_ = mix(launch_->schedule.seed ^ linear);
      break;
    }
  }
  context_.block = blockIndex(linear, launch_->grid);
}

mcDim3 Worker::threadIndex(unsigned linear) const {
  const mcDim3 size = context_.blockDim;
  return {linear % size.x, linear / size.x % size.y, linear / size.x / size.y};
}

// The loop goes on with the thread at this place of the schedule: in forward order with all that follow it.
void Worker::enterRange(unsigned position) {
  rangeStart_ = position;
  if (order_.empty()) {
    context_.firstThread = threadIndex(position);
    context_.endThread = context_.blockDim;
    context_.wholeBlocks = position == 0;
    started_ = threads_;
  } else {
    const mcDim3 thread = threadIndex(order_[position]);
    context_.firstThread = thread;
    context_.endThread = {thread.x + 1, thread.y + 1, thread.z + 1};
    context_.wholeBlocks = 0;
    started_ = position + 1;
  }
}

void Worker::runBlocks(uint64_t first, uint64_t count) {
  while (count != 0 && !failed_) {
    setBlock(first);
    live_ = threads_;
    split_ = false;
    blocksLeft_ = 0;
    const bool forward = launch_->schedule.order == Schedule::kForward;
    if (forward && !passesIntMax(launch_->grid, launch_->block, context_.block.x)) {
      order_.clear();
      // A grid in which some block must be run by single threads is run block by block.
      context_.blocks = uint64_t{launch_->grid.x} * launch_->block.x > 0x80000000U ? 1 : count;
      blocksLeft_ = count - context_.blocks;
    } else {
      order_.resize(threads_);
      std::iota(order_.begin(), order_.end(), 0U);
      if (launch_->schedule.order == Schedule::kReverse) {
        std::reverse(order_.begin(), order_.end());
      } else if (!forward) {
        for (unsigned i = threads_; i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
      }
      // A block whose threads run one by one counts as split from the start.
      context_.blocks = 1;
      split_ = true;
      std::memset(ended_, 0, sizeof ended_);
      std::memset(met_, 0, sizeof met_);
      blocksLeft_ = count - 1;
    }
    enterRange(0);
    Fiber* const fiber = takeFiber();
    if (fiber == nullptr) {
      launch_->fail(mcErrorMemoryAllocation, "no memory for the stacks of a block's threads");
      return;
    }
    fiber->state = State::kLoop;
    currentFiber_ = fiber;
    running_ = true;
    void* fake = nullptr;
    if (__sanitizer_start_switch_fiber != nullptr) {
      const Stack& stack = stacks_[fiber->index];
      __sanitizer_start_switch_fiber(&fake, stack.bottom, static_cast<size_t>(stack.top - stack.bottom));
    }
    mcFiberSwitch(&scheduler_, fiber->stackPointer);
    if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
    running_ = false;
    if (failed_) {
      reset();
      return;
    }
    // A chunk without parked threads has been run to its end.
    const uint64_t done = count - blocksLeft_;
    first += done;
    count -= done;
  }
}

// After a failure: no fiber is of use any more.
void Worker::reset() {
  ready_.clear();
  barrier_.clear();
  arrived_ = trueCount_ = activeWaiting_ = 0;
  std::memset(inWarp_, 0, sizeof inWarp_);
  idle_.clear();
  for (Fiber& fiber : fibers_) {
    fiber.state = State::kIdle;
    idle_.push_back(&fiber);
  }
}

Worker::Fiber* Worker::takeFiber() {
  if (idle_.empty()) {
    if (fibers_.capacity() == 0) {
      fibers_.reserve(kMaxThreads + 64);
      stacks_.reserve(kMaxThreads + 64);
      idle_.reserve(kMaxThreads + 64);
    }
    Stack fresh[64];
    if (fibers_.size() + 64 > fibers_.capacity() || !makeStacks(fresh, 64)) return nullptr;
    for (const Stack& stack : fresh) {
      stacks_.push_back(stack);
      fibers_.emplace_back();
      fibers_.back().index = static_cast<unsigned>(fibers_.size() - 1);
    }
    for (size_t i = 0; i < 64; ++i) idle_.push_back(&fibers_[fibers_.size() - 1 - i]);
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  fiber->parked = false;
  fiber->stackPointer = prepareStack(stacks_[fiber->index], &Worker::fiberMain, fiber->index);
  return fiber;
}

void Worker::giveFiber(Fiber* fiber) {
  fiber->state = State::kIdle;
  idle_.push_back(fiber);
}

void Worker::fiberMain() {
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
  currentWorker->loop();
  __builtin_unreachable();
}

void Worker::loop() {
  for (;;) {
    launch_->function();
    Fiber* const fiber = currentFiber_;
    loopEnded(fiber);
    if (!split_ || live_ == 0) {
      giveFiber(fiber);
      leaveForScheduler();
    }
    if (ready_.empty() && started_ < threads_) {
      // The same stack serves the next loop.
      fiber->parked = false;
      fiber->state = State::kLoop;
      context_.blocks = 1;
      enterRange(started_);
      continue;
    }
    Fiber* const next = pickNext();
    if (next == nullptr) {
      reportStuck();
      leaveForScheduler();
    }
    giveFiber(fiber);
    void* unused = nullptr;
    currentFiber_ = next;
    if (__sanitizer_start_switch_fiber != nullptr) {
      const Stack& stack = stacks_[next->index];
      __sanitizer_start_switch_fiber(nullptr, stack.bottom, static_cast<size_t>(stack.top - stack.bottom));
    }
    mcFiberSwitch(&unused, next->stackPointer);
  }
}

void Worker::leaveForScheduler() {
  void* unused = nullptr;
  if (__sanitizer_start_switch_fiber != nullptr) __sanitizer_start_switch_fiber(nullptr, nullptr, 0);
  mcFiberSwitch(&unused, scheduler_);
  __builtin_unreachable();
}

void Worker::loopEnded(Fiber* fiber) {
  if (!split_) return;  // it has run all threads of all its blocks
  if (fiber->parked) {
    threadEnded(fiber->thread);
  } else if (order_.empty()) {
    threadsEnded(rangeStart_, threads_ - rangeStart_);
  } else {
    threadEnded(order_[rangeStart_]);
  }
}

void Worker::threadEnded(unsigned thread) {
  --live_;
  ended_[thread / kWarpSize] |= 1U << (thread % kWarpSize);
  byThread_[thread] = nullptr;
  warpLostThreads(thread / kWarpSize);
  releaseBarrierIfComplete();
}

void Worker::threadsEnded(unsigned first, unsigned count) {
  for (unsigned thread = first; thread < first + count; ++thread) {
    ended_[thread / kWarpSize] |= 1U << (thread % kWarpSize);
    byThread_[thread] = nullptr;
  }
  live_ -= count;
  if (count == 0) return;
  for (unsigned warp = first / kWarpSize; warp <= (first + count - 1) / kWarpSize; ++warp) warpLostThreads(warp);
  releaseBarrierIfComplete();
}

Worker::Fiber* Worker::pickNext() {
  if (!ready_.empty()) {
    Fiber* const first = ready_.pop();
    // The stacks of a block do not fit into the nearest cache: fetch what the one after this needs.
    if (const Fiber* const second = ready_.head; second != nullptr) {
      const char* const stack = static_cast<const char*>(second->stackPointer);
      __builtin_prefetch(stack);
      __builtin_prefetch(stack + 64);
      __builtin_prefetch(stack + 128);
      __builtin_prefetch(stack + 192);
      __builtin_prefetch(second->next);
    }
    return first;
  }
  if (started_ >= threads_) return nullptr;
  Fiber* const fiber = takeFiber();
  if (fiber == nullptr) failHere(mcErrorMemoryAllocation, "no memory for the stacks of a block's threads");
  fiber->state = State::kLoop;
  context_.blocks = 1;
  enterRange(started_);
  return fiber;
}

// The calling fiber has noted why it waits.
void Worker::switchTo(Fiber* next) {
  Fiber* const self = currentFiber_;
  if (next == self) return;
  currentFiber_ = next;
  if (__builtin_expect(__sanitizer_start_switch_fiber != nullptr, 0)) {
    void* fake = nullptr;
    const Stack& stack = stacks_[next->index];
    __sanitizer_start_switch_fiber(&fake, stack.bottom, static_cast<size_t>(stack.top - stack.bottom));
    mcFiberSwitch(&self->stackPointer, next->stackPointer);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
    return;
  }
  mcFiberSwitch(&self->stackPointer, next->stackPointer);
}

// ---- Worker: waiting --------------------------------------------------------------------------------------------------

void Worker::park(unsigned thread) {
  Fiber* const fiber = currentFiber_;
  if (fiber->parked) return;
  if (context_.wholeBlocks == mcBlocksInPhases) {
    failHere(mcErrorLaunchFailure, "cucc took a function for one that does not wait; compile with -G and report this");
  }
  fiber->parked = true;
  fiber->thread = thread;
  if (!split_) {
    split_ = true;
    blocksLeft_ += context_.blocks - 1;
    std::memset(ended_, 0, sizeof ended_);
    std::memset(met_, 0, sizeof met_);
    live_ = threads_;
    rangeStart_ = 0;
  }
  byThread_[thread] = fiber;
  if (order_.empty()) {
    // Those before it in its loop have ended; those behind it are not started.
    started_ = thread + 1;
    if (thread > rangeStart_) threadsEnded(rangeStart_, thread - rangeStart_);
  }
}

void Worker::release(Queue& waiting) {
  if (launch_->schedule.order == Schedule::kForward) {
    ready_.append(waiting);
    return;
  }
  std::vector<Fiber*> all;
  while (!waiting.empty()) all.push_back(waiting.pop());
  if (launch_->schedule.order == Schedule::kReverse) {
    std::reverse(all.begin(), all.end());
  } else {
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  }
  for (Fiber* fiber : all) ready_.push(fiber);
}

void Worker::releaseBarrierIfComplete() {
  if (arrived_ == 0 || arrived_ < live_) return;
  if (barrierKind_ == mcBarrierGrid && !launch_->gridBarrier->wait()) {
    failed_ = true;
    leaveForScheduler();
  }
  barrierResult_ = trueCount_;
  arrived_ = trueCount_ = 0;
  barrierFile_ = nullptr;
  for (Fiber* fiber = barrier_.head; fiber != nullptr; fiber = fiber->next) {
    fiber->value = barrierResult_;
    fiber->state = State::kReady;
  }
  release(barrier_);
}

unsigned Worker::barrier(int kind, int predicate, const char* file, int line) {
  Fiber* const self = currentFiber_;
  if (arrived_ == 0) {
    barrierKind_ = kind;
    barrierFile_ = file;
    barrierLine_ = line;
    barrierThread_ = self->thread;
    if (kind == mcBarrierGrid && launch_->gridBarrier == nullptr) {
      failHere(mcErrorLaunchFailure, "a grid barrier in a kernel that was not launched cooperatively");
    }
  } else if (!samePlace(file, line, barrierFile_, barrierLine_)) {
    failHere(mcErrorLaunchFailure, "__syncthreads() in divergent code: thread " + triple(threadIndex(barrierThread_)) +
                                       " waits at " + barrierFile_ + ":" + std::to_string(barrierLine_) + ", thread " +
                                       triple(threadIndex(self->thread)) + " at " + file + ":" + std::to_string(line));
  }
  self->state = State::kBarrier;
  self->file = file;
  self->line = line;
  ++arrived_;
  trueCount_ += predicate != 0;
  barrier_.push(self);
  if (arrived_ >= live_) releaseBarrierIfComplete();
  if (__builtin_expect(activeWaiting_ != 0, 0)) resolveActive(self->thread / kWarpSize);
  Fiber* const next = pickNext();
  if (__builtin_expect(next == nullptr, 0)) {
    reportStuck();
    leaveForScheduler();
  }
  switchTo(next);
  return static_cast<unsigned>(self->value);
}

unsigned Worker::liveLanes(unsigned warp) const {
  const unsigned first = warp * kWarpSize;
  const unsigned lanes = std::min(kWarpSize, threads_ - first);
  const uint32_t there = lanes == kWarpSize ? 0xffffffffU : (1U << lanes) - 1;
  return there & ~ended_[warp];
}

// Note: lanes that take no part
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// CUDA asks all lanes that a mask names, and that have not ended, to call the same operation with the same mask. It leaves
// undefined what a shuffle takes from a lane that does not take part. A kernel that breaks this gets the values of the
// lanes' registers on a GPU, and here whatever this runtime makes of it, so it must not go unsaid:
// - Lanes that never come are waited for, and the launch fails when nothing else can go on (reportStuck).
// - A lane that has ended is not waited for. What is taken from it has all bits set, a NaN in floating point, and a warning
//   names kernel and line. That is no error, as many right kernels take such values and do not use them.
// - Lanes that left a loop or took the other branch may meet the others in an operation of another line, or be gone when
//   these go on. PTX allows the first, and CUDA the second to lanes that have ended; both are warned about, since lanes
//   of a GPU may meet in another way.
// A kernel is warned about once in a process.
void Worker::warn(const std::string& what) const {
  if (saidAlready(launch_->name)) return;
  std::fprintf(stderr, "mxmaca: warning: kernel %s, block %s: %s (said once for each kernel)\n",
               demangled(launch_->name).c_str(), triple(context_.block).c_str(), what.c_str());
}

void Worker::warnAbsentLane(const Fiber* reader) {
  const unsigned warp = reader->thread / kWarpSize, lane = reader->lane;
  std::string why = "the mask leaves it out";
  if (lane >= kWarpSize) {
    why = "a warp has 32";
  } else if (warp * kWarpSize + lane >= threads_) {
    why = "the block ends before it";
  } else if ((reader->mask >> lane & 1) != 0) {
    why = "it has ended";
  }
  warn(place(reader) + " takes a value from lane " + std::to_string(lane) + " of its warp, which takes no part (" +
       why + "): CUDA leaves the value undefined, here all its bits are 1");
}

// `there` exchange values now, `elsewhere` (or nobody) at another place than `leader`.
void Worker::checkPartners(unsigned warp, const Fiber* leader, const Fiber* elsewhere, uint32_t there) {
  const uint32_t gone = leader->mask & ended_[warp] & met_[warp];
  met_[warp] |= there;
  if (__builtin_expect(gone != 0, 0)) {
    warn(place(leader) + " calls a warp operation for lane " + std::to_string(__builtin_ctz(gone)) +
         " too, which took part in earlier ones and has ended: on a GPU it may still be on its way, and the result is "
         "undefined");
  }
  if (__builtin_expect(elsewhere != nullptr, 0)) {
    warn("lanes of one warp meet in warp operations of different places: " + place(leader) + " and " +
         place(elsewhere) + "; CUDA asks all lanes of the mask to call the same one");
  }
}

// Whether all live lanes of `mask` wait with this mask; if so, what each brought is turned into what each gets.
void Worker::completeWarp(unsigned warp, unsigned mask) {
  const uint32_t wanted = mask & liveLanes(warp);
  Fiber** const lanes = byThread_ + warp * kWarpSize;
  Fiber* leader = nullptr;
  const Fiber* elsewhere = nullptr;
  for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
    Fiber* const fiber = lanes[__builtin_ctz(rest)];
    if (fiber == nullptr || fiber->state != State::kWarp || fiber->mask != mask) return;
    if (leader == nullptr) leader = fiber;
    if (fiber->operation != leader->operation) {
      failHere(mcErrorLaunchFailure,
               "different warp operations with the same mask: " + place(leader) + " and " + place(fiber));
    }
    if (!samePlace(fiber->file, fiber->line, leader->file, leader->line)) elsewhere = fiber;
  }
  if (leader == nullptr) return;
  if (leader->operation != mcWarpSync) checkPartners(warp, leader, elsewhere, wanted);
  unsigned long long results[kWarpSize] = {};
  switch (leader->operation) {
    case mcWarpSync: break;
    case mcWarpShuffle:
    case mcWarpShuffleUp:
    case mcWarpShuffleDown:
    case mcWarpShuffleXor:
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const unsigned from = lanes[lane]->lane;
        if (__builtin_expect(from < kWarpSize && (wanted >> from & 1) != 0, 1)) {
          results[lane] = lanes[from]->value;
        } else {
          results[lane] = ~0ULL;
          warnAbsentLane(lanes[lane]);
        }
      }
      break;
    case mcWarpMatch:
    case mcWarpMatchAll:
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        for (uint32_t other = wanted; other != 0; other &= other - 1) {
          const int peer = __builtin_ctz(other);
          if (lanes[peer]->value == lanes[lane]->value) results[lane] |= 1ULL << peer;
        }
      }
      break;
    case mcWarpBallot:
    case mcWarpAny:
    case mcWarpAll:
    case mcWarpUniform: {
      unsigned long long voted = 0;
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        voted |= lanes[lane]->value != 0 ? 1ULL << lane : 0;
      }
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) results[__builtin_ctz(rest)] = voted;
      break;
    }
    default: {
      unsigned long long all = leader->value;
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const unsigned long long value = lanes[lane]->value;
        const auto narrow = static_cast<uint32_t>(value);
        const auto sofar = static_cast<uint32_t>(all);
        if (lanes[lane] == leader) continue;
        switch (leader->operation) {
          case mcWarpAdd: all = sofar + narrow; break;
          case mcWarpMinSigned:
            all = static_cast<uint32_t>(std::min(static_cast<int32_t>(sofar), static_cast<int32_t>(narrow)));
            break;
          case mcWarpMaxSigned:
            all = static_cast<uint32_t>(std::max(static_cast<int32_t>(sofar), static_cast<int32_t>(narrow)));
            break;
          case mcWarpMinUnsigned: all = std::min(sofar, narrow); break;
          case mcWarpMaxUnsigned: all = std::max(sofar, narrow); break;
          case mcWarpAnd: all = sofar & narrow; break;
          case mcWarpOr: all = sofar | narrow; break;
          case mcWarpXor: all = sofar ^ narrow; break;
          default: break;
        }
      }
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        results[__builtin_ctz(rest)] = static_cast<uint32_t>(all);
      }
      break;
    }
  }
  Queue woken;
  for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
    Fiber* const fiber = lanes[__builtin_ctz(rest)];
    fiber->value = results[__builtin_ctz(rest)];
    fiber->state = State::kReady;
    woken.push(fiber);
  }
  inWarp_[warp] &= ~wanted;
  release(woken);
}

// Ended lanes are not waited for: the rest of a group may be complete now.
void Worker::warpLostThreads(unsigned warp) {
  Fiber** const lanes = byThread_ + warp * kWarpSize;
  for (uint32_t rest = inWarp_[warp]; rest != 0; rest &= rest - 1) {
    const Fiber* const fiber = lanes[__builtin_ctz(rest)];
    const uint32_t wanted = fiber->mask & liveLanes(warp);
    if ((wanted & ~inWarp_[warp]) == 0) completeWarp(warp, fiber->mask);
    rest &= inWarp_[warp];
    if (rest == 0) break;
  }
  if (activeWaiting_ != 0) resolveActive(warp);
}

unsigned long long Worker::exchange(mcWarpOperation operation, unsigned mask, unsigned long long value, unsigned lane,
                                    const char* file, int line) {
  Fiber* const self = currentFiber_;
  self->file = file;
  self->line = line;
  const unsigned warp = self->thread / kWarpSize;
  const uint32_t own = 1U << (self->thread % kWarpSize);
  if (__builtin_expect((mask & own) == 0, 0)) {
    char text[96];
    std::snprintf(text, sizeof text, "the mask 0x%08x of a warp operation leaves out its caller: ", mask);
    failHere(mcErrorLaunchFailure, text + place(self));
  }
  self->state = State::kWarp;
  self->operation = static_cast<uint8_t>(operation);
  self->mask = mask;
  self->value = value;
  self->lane = lane;
  inWarp_[warp] |= own;
  // Only the last one to come finds the group complete.
  if ((mask & liveLanes(warp) & ~inWarp_[warp]) == 0) completeWarp(warp, mask);
  if (__builtin_expect(activeWaiting_ != 0, 0)) resolveActive(warp);
  Fiber* const next = pickNext();
  if (__builtin_expect(next == nullptr, 0)) {
    reportStuck();
    leaveForScheduler();
  }
  switchTo(next);
  return self->value;
}

// Which lanes are active is known when no lane of the warp can come any more: those that then ask at the same place are.
unsigned Worker::activeLanes(const char* file, int line) {
  Fiber* const self = currentFiber_;
  self->state = State::kActive;
  self->file = file;
  self->line = line;
  ++activeWaiting_;
  resolveActive(self->thread / kWarpSize);
  Fiber* const next = pickNext();
  if (next == nullptr) {
    reportStuck();
    leaveForScheduler();
  }
  switchTo(next);
  return static_cast<unsigned>(self->value);
}

void Worker::resolveActive(unsigned warp) {
  Fiber** const lanes = byThread_ + warp * kWarpSize;
  const Fiber* first = nullptr;
  for (uint32_t rest = liveLanes(warp); rest != 0; rest &= rest - 1) {
    const Fiber* const fiber = lanes[__builtin_ctz(rest)];
    if (fiber == nullptr) return;
    if (fiber->state == State::kActive) {
      if (first == nullptr) first = fiber;
    } else if (fiber->state != State::kWarp && fiber->state != State::kBarrier) {
      return;
    }
  }
  if (first == nullptr) return;
  uint32_t group = 0;
  Queue woken;
  for (uint32_t rest = liveLanes(warp); rest != 0; rest &= rest - 1) {
    Fiber* const fiber = lanes[__builtin_ctz(rest)];
    if (fiber->state != State::kActive || fiber->line != first->line || std::strcmp(fiber->file, first->file) != 0)
      continue;
    group |= 1U << __builtin_ctz(rest);
    woken.push(fiber);
  }
  for (Fiber* fiber = woken.head; fiber != nullptr; fiber = fiber->next) {
    fiber->state = State::kReady;
    fiber->value = group;
    --activeWaiting_;
  }
  release(woken);
}

void Worker::yield() {
  Fiber* const self = currentFiber_;
  self->state = State::kYielded;
  Fiber* next = nullptr;
  if (started_ < threads_) {
    Queue kept = ready_;
    ready_.clear();
    next = pickNext();
    ready_ = kept;
    ready_.push(self);
  } else {
    ready_.push(self);
    next = ready_.pop();
  }
  switchTo(next);
}

// ---- Worker: failures -------------------------------------------------------------------------------------------------

std::string Worker::place(const Fiber* fiber) const {
  return "thread " + triple(threadIndex(fiber->thread)) + " at " + fiber->file + ":" + std::to_string(fiber->line);
}

void Worker::reportStuck() {
  std::string text = "threads of the block wait for each other for ever: ";
  const Fiber* const atBarrier = barrier_.head;
  const Fiber* atWarp = nullptr;
  for (unsigned thread = 0; thread < threads_ && atWarp == nullptr; ++thread) {
    const Fiber* const fiber = byThread_[thread];
    if (fiber != nullptr && fiber->state == State::kWarp) atWarp = fiber;
  }
  if (atBarrier != nullptr) text += place(atBarrier) + " (__syncthreads())";
  if (atWarp != nullptr) {
    char mask[64];
    std::snprintf(mask, sizeof mask, " (warp operation with mask 0x%08x)", atWarp->mask);
    text += (atBarrier != nullptr ? ", " : "") + place(atWarp) + mask;
    const unsigned warp = atWarp->thread / kWarpSize;
    for (uint32_t rest = atWarp->mask & liveLanes(warp); rest != 0; rest &= rest - 1) {
      const Fiber* const other = byThread_[warp * kWarpSize + static_cast<unsigned>(__builtin_ctz(rest))];
      if (other == nullptr || (other->state == State::kWarp && other->mask == atWarp->mask)) continue;
      text += ", which names " + place(other);
      break;
    }
  }
  abandon(mcErrorLaunchFailure, text.c_str());
}

void* Worker::abandon(mcError_t error, const char* what) {
  failed_ = true;
  launch_->fail(error, "kernel " + demangled(launch_->name) + ", block " + triple(context_.block) + ": " + what);
  return scheduler_;
}

void Worker::failHere(mcError_t error, const std::string& what) {
  abandon(error, what.c_str());
  leaveForScheduler();
}

// ---- Schedule ---------------------------------------------------------------------------------------------------------

bool readSchedule(Schedule* schedule, std::string* problem) {
  *schedule = Schedule{};
  const char* const text = std::getenv("MACA_SCHEDULE");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "forward") == 0) return true;
  if (std::strcmp(text, "reverse") == 0) {
    schedule->order = Schedule::kReverse;
    return true;
  }
  constexpr size_t kPrefix = 7;
  if (std::strncmp(text, "random:", kPrefix) == 0) {
    char* end = nullptr;
    schedule->seed = std::strtoull(text + kPrefix, &end, 10);
    schedule->order = Schedule::kRandom;
    if (end != text + kPrefix && *end == '\0') return true;
  }
  *problem = std::string("MACA_SCHEDULE is '") + text + "'; known are forward, reverse and random:<number>";
  return false;
}

}  // namespace mc

// ---- C interface ------------------------------------------------------------------------------------------------------

using namespace mc;

mcKernelContext* mcKernelEnter(void) { return Worker::current()->context(); }
void mcThreadPark(unsigned int thread) { Worker::current()->park(thread); }
unsigned int mcBlockBarrier(int kind, int predicate, const char* file, int line) {
  return Worker::current()->barrier(kind, predicate, file, line);
}
unsigned long long mcWarpExchange(mcWarpOperation operation, unsigned int mask, unsigned long long value,
                                  unsigned int lane, const char* file, int line) {
  return Worker::current()->exchange(operation, mask, value, lane, file, line);
}
unsigned int mcWarpActive(const char* file, int line) { return Worker::current()->activeLanes(file, line); }
void mcThreadYield(void) { Worker::current()->yield(); }

int mcInKernel(void) {
  const Worker* const worker = Worker::current();
  return worker != nullptr && worker->inKernel();
}

void mcKernelFail(mcError_t error, const char* what) {
  Worker* const worker = Worker::current();
  if (worker == nullptr || !worker->inKernel()) {
    std::fprintf(stderr, "mxmaca: %s outside a kernel\n", what);
    std::abort();
  }
  worker->failHere(error, what);
}

void mcKernelAssertFail(const char* expression, const char* file, unsigned int line, const char* function) {
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s` failed.\n", file, line, function, expression);
  mcKernelFail(mcErrorAssert,
               (std::string("assertion `") + expression + "` failed at " + file + ":" + std::to_string(line)).c_str());
}
