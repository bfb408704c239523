#include "execution/worker.h"

#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "kernels/kernel_registry.h"

// Of the sanitizers' runtime, there if the program was compiled with one.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fakeStack, const void* bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fakeStack, const void** bottom, size_t* size);
}

namespace mc {
namespace {

thread_local Worker* currentWorker = nullptr;

// A block that waits is looked at, and gives up the processor, no more often than this.
constexpr std::chrono::microseconds kBetweenLooks{5};
// The rounds of its loop after which a thread gives way again. Fewer once several of the block have: each of them keeps
// the others from seeing what they wait for. Before that they may as well be busy with a table that many change.
constexpr unsigned kPatient = 1024, kImpatient = 64;

// A thread that has done something else for this long begins to wait anew; one that has waited for long sleeps.
constexpr std::chrono::microseconds kWork{100}, kLong{1000}, kLongestSleep{500};

size_t processors() {
  static const size_t found = std::max(1U, std::thread::hardware_concurrency());
  return found;
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

uint64_t mix(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

Worker* Worker::current() { return currentWorker; }

Worker::~Worker() {
  for (size_t i = 0; i < stacks_.size(); i += 64) freeStacks(&stacks_[i], 64);
}

GuardedMemory::~GuardedMemory() {
  if (memory_ != nullptr) munmap(memory_, capacity_ + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

bool GuardedMemory::reserve(size_t bytes) {
  if (bytes <= capacity_) return true;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t capacity = (bytes + page - 1) / page * page;
  void* const memory = mmap(nullptr, capacity + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  mprotect(static_cast<char*>(memory) + capacity, page, PROT_NONE);
  if (memory_ != nullptr) munmap(memory_, capacity_ + page);
  memory_ = static_cast<char*>(memory);
  capacity_ = capacity;
  return true;
}

void* Worker::scratch(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (!scratch_.reserve(bytes)) failHere(mcErrorMemoryAllocation, "no memory for the tiles of a program");
  return scratch_.last((bytes + page - 1) / page * page);
}

// The __shared__ variables of a kernel are thread-local ones of its library (cucc's shared_memory.py).
bool Worker::inStaticShared(uintptr_t address) {
  if (staticSharedOf_ != kernelAddress()) {
    struct Search {
      uintptr_t code, begin;
      size_t bytes;
    } search{kernelAddress(), 0, 0};
    dl_iterate_phdr(
        [](dl_phdr_info* library, size_t, void* data) {
          auto* const wanted = static_cast<Search*>(data);
          bool holdsCode = false;
          size_t bytes = 0;
          for (unsigned i = 0; i < library->dlpi_phnum; ++i) {
            const auto& part = library->dlpi_phdr[i];
            if (part.p_type == PT_LOAD && wanted->code - (library->dlpi_addr + part.p_vaddr) < part.p_memsz) {
              holdsCode = true;
            }
            if (part.p_type == PT_TLS) bytes = part.p_memsz;
          }
          if (!holdsCode) return 0;
          wanted->begin = reinterpret_cast<uintptr_t>(library->dlpi_tls_data);
          wanted->bytes = bytes;
          return 1;
        },
        &search);
    // A thread has no variables of a library before it comes to one of them, and no address there either.
    if (search.begin == 0) return false;
    staticShared_ = search.begin;
    staticSharedBytes_ = search.bytes;
    staticSharedOf_ = search.code;
  }
  return address - staticShared_ < staticSharedBytes_;
}

mcAddressSpace Worker::addressSpace(const void* address) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  if (number - reinterpret_cast<uintptr_t>(context_.dynamicShared) < context_.dynamicSharedBytes)
    return mcAddressShared;
  for (const Stack& stack : stacks_) {
    if (address >= stack.bottom && address < stack.top) return mcAddressLocal;
  }
  if (inStaticShared(number)) return mcAddressShared;
  return insideConstant(address) ? mcAddressConstant : mcAddressGlobal;
}

uint64_t Worker::random() { return randomState_ = mix(randomState_); }

void Worker::begin(Launch& launch) {
  launch_ = &launch;
  staticSharedOf_ = 0;
  context_.arguments = launch.arguments;
  context_.gridDim = launch.grid;
  context_.blockDim = launch.block;
  threads_ = launch.block.x * launch.block.y * launch.block.z;
  context_.dynamicSharedBytes = static_cast<unsigned>(launch.sharedBytes);
  // It ends where the guard page begins, as closely as the alignment allows.
  context_.dynamicShared = nullptr;
  if (!shared_.reserve(launch.sharedBytes)) {
    launch.fail(mcErrorMemoryAllocation, "no memory for the shared memory of a block");
  } else if (launch.sharedBytes != 0) {
    context_.dynamicShared = shared_.last((launch.sharedBytes + 127) / 128 * 128);
  }
  failed_ = false;
}

void Worker::run(Launch& launch) {
  Worker* const outer = currentWorker;
  begin(launch);
  currentWorker = this;
  launchNumber_.store(++launches_, std::memory_order_relaxed);
  while (launch.error.load(std::memory_order_relaxed) == 0) {
    uint64_t first, count;
    if (!launch.take(&first, &count)) break;
    runBlocks(first, count);
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

// ---- Worker: blocks and loops ---------------------------------------------------------------------------------------

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

template <class Element>
void Worker::reorder(std::vector<Element>& elements) {
  if (launch_->schedule.order == Schedule::kReverse) {
    std::reverse(elements.begin(), elements.end());
  } else if (launch_->schedule.order == Schedule::kRandom) {
    for (size_t i = elements.size(); i > 1; --i) std::swap(elements[i - 1], elements[random() % i]);
  }
}

void Worker::release(Queue& waiting) {
  if (launch_->schedule.order == Schedule::kForward) {
    ready_.append(waiting);
    return;
  }
  std::vector<Fiber*> all;
  while (!waiting.empty()) all.push_back(waiting.pop());
  reorder(all);
  for (Fiber* fiber : all) ready_.push(fiber);
}

void Worker::runBlocks(uint64_t first, uint64_t count) {
  chunkFirst_ = first;
  chunkCount_ = count;
  while (chunkCount_ != 0 && !failed_) {
    setBlock(chunkFirst_);
    live_ = threads_;
    split_ = false;
    blocksLeft_ = 0;
    yields_ = 0;
    forgetNamedBarriers();
    const bool forward = launch_->schedule.order == Schedule::kForward;
    if (forward && !passesIntMax(launch_->grid, launch_->block, context_.block.x)) {
      order_.clear();
      // A grid in which some block must be run by single threads is run block by block.
      context_.blocks = uint64_t{launch_->grid.x} * launch_->block.x > 0x80000000U ? 1 : chunkCount_;
      blocksLeft_ = chunkCount_ - context_.blocks;
    } else {
      order_.resize(threads_);
      std::iota(order_.begin(), order_.end(), 0U);
      reorder(order_);
      // A block whose threads run one by one counts as split from the start.
      context_.blocks = 1;
      split_ = true;
      std::memset(ended_, 0, sizeof ended_);
      std::memset(met_, 0, sizeof met_);
      blocksLeft_ = chunkCount_ - 1;
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
    if (!failed_ && stacksOverran()) abandon(mcErrorIllegalAddress, "a thread's stack has run over");
    if (failed_) {
      reset();
      return;
    }
    // A chunk without parked threads has been run to its end.
    const uint64_t done = chunkCount_ - blocksLeft_;
    launch_->ended.fetch_add(done, std::memory_order_relaxed);
    chunkFirst_ += done;
    chunkCount_ -= done;
  }
}

// Stacks without guard pages are looked at when a block has ended (the note in fiber.h).
bool Worker::stacksOverran() const {
  bool found = false;
  for (size_t i = 0; i < stacks_.size(); i += 64) found = overran(&stacks_[i], 64) || found;
  return found;
}

// After a failure: no fiber is of use any more.
void Worker::reset() {
  ready_.clear();
  barrier_.clear();
  arrived_ = trueCount_ = activeWaiting_ = 0;
  forgetNamedBarriers();
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

unsigned Worker::yield() {
  // Rounds of the program's loops take very different times, so the clock decides.
  if ((++yields_ & 7U) == 0) letOthersBegin();
  const unsigned patience = yields_ > 1 ? kImpatient : kPatient;
  if (context_.wholeBlocks == mcBlocksInPhases) return patience;
  letOthersRun();
  return patience;
}

void Worker::letWarpCatchUp() {
  const bool alone = ready_.empty() && started_ == threads_;
  if (split_ && context_.wholeBlocks != mcBlocksInPhases && !alone) letOthersRun();
}

// The calling fiber goes to the end of the queue.
void Worker::letOthersRun() {
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

// The note in grid.h.
void Worker::letOthersBegin() {
  if (launch_->error.load(std::memory_order_relaxed) != 0) failHere(mcErrorLaunchFailure, "another block has failed");
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kBetweenLooks) return;
  looked_ = now;
  if (launch_->gridBarrier != nullptr) return;
  const bool phases = context_.wholeBlocks == mcBlocksInPhases;
  const uint64_t rest = blocksLeft_ + (phases ? context_.blocks - 1 : 0);
  if (rest != 0) {
    chunkCount_ -= rest;
    launch_->helpers.giveBack(chunkFirst_ + chunkCount_, rest);
    blocksLeft_ = 0;
    if (phases) context_.blocks = 1;
  }
  if (launch_->untaken()) {
    launch_->helpers.call(*launch_, launch_->runHere, launch_->ended.load(std::memory_order_relaxed));
  }
  giveProcessorAway(now);
}

// The block that this one waits for may want the processor. A thread that yields gives up a whole slice of its share,
// to other programs as well, so that on a loaded machine one that yields all the time would hardly run: it goes on for
// as long as it was away, divided by the launch's threads, which is next to nothing where only those take turns.
// Where the launch has more threads than there are processors, those that have waited for long sleep meanwhile: many of
// them that only take turns at looking leave the one that works a small share of its processor.
void Worker::giveProcessorAway(std::chrono::steady_clock::time_point now) {
  if (now < staysUntil_) return;
  if (now - staysUntil_ > kWork) waitsSince_ = now;
  const auto waited = now - waitsSince_;
  if (waited > kLong && launch_->helpers.made() >= processors()) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 8, kLongestSleep));
  } else {
    sched_yield();
  }
  const auto after = std::chrono::steady_clock::now();
  staysUntil_ = after + (after - now) / static_cast<int64_t>(launch_->helpers.made() + 1);
}

}  // namespace mc
