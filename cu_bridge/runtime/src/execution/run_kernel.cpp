// Launches: blocks spread over the threads of a team or a pool; cooperative launches give every block a thread of its
// own.

#include "execution/run_kernel.h"

#include <sched.h>
#include <stdio_ext.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "check/check.h"
#include "devices/device.h"
#include "execution/faults.h"
#include "execution/watchdog.h"
#include "host/demangle.h"
#include "state/parts.h"
#include "state/state.h"

namespace mc {
namespace {

// Below this many threads in the grid, waking others costs more than it gains.
constexpr uint64_t kWorthSharing = 4096;
constexpr uint64_t kMostChunkThreads = 1 << 16;

unsigned processors() {
  cpu_set_t set;
  unsigned count = std::thread::hardware_concurrency();
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = static_cast<unsigned>(CPU_COUNT(&set));
  // Who limits the threads of the CPU's operators means these as well.
  for (const char* name : {"MACA_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* const text = std::getenv(name);
    const long wanted = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    if (wanted > 0) return static_cast<unsigned>(std::min(wanted, 1024L));
  }
  return std::max(count, 1U);
}

// The calling thread's worker, made at its first kernel.
Worker& ownWorker() {
  struct Watched {
    Watched() {
      watch(&worker);
      installFaultHandlers();
      prepareFaultStack();
    }
    ~Watched() { unwatch(&worker); }
    Worker worker;
  };
  thread_local std::unique_ptr<Watched> own;
  if (own == nullptr) own = std::make_unique<Watched>();
  return own->worker;
}

void runHere(Launch& launch) {
  threadState.device = launch.device;
  ownWorker().run(launch);
}

void runAlone(Launch& launch) {
  launch.chunk = launch.blocks;
  ownWorker().run(launch);
}

// How many of so many threads run the launch, each with some chunks of blocks.
unsigned share(Launch& launch, unsigned threads) {
  if (launch.part != 0) {
    const uint64_t own = multiprocessorsOf(launch.part, launch.multiprocessors);
    threads = static_cast<unsigned>(threads * own / launch.multiprocessors);
  }
  if (threads <= 1) return 1;
  launch.chunk = std::clamp<uint64_t>(launch.blocks / (uint64_t{threads} * 8), 1,
                                      std::max<uint64_t>(1, kMostChunkThreads / launch.work));
  return static_cast<unsigned>(std::min<uint64_t>(threads, (launch.blocks - 1) / launch.chunk + 1));
}

std::atomic<const mcTeam*> givenTeam{nullptr};

// The program's team, if the calling thread's launches go there.
const mcTeam* teamHere() {
  static const bool own = std::getenv("MACA_NUM_THREADS") != nullptr;
  return own || threadState.ofRuntime ? nullptr : givenTeam.load(std::memory_order_acquire);
}

void runOnTeam(Launch& launch, const mcTeam& team) {
  const unsigned threads = share(launch, team.size());
  if (threads == 1) {
    runAlone(launch);
    return;
  }
  const auto body = [](void* data) {
    const int before = threadState.device;
    runHere(*static_cast<Launch*>(data));
    threadState.device = before;
  };
  team.run(threads, body, &launch);
}

class Pool {
 public:
  // Runs the launch on the calling thread and on idle ones. Two launches at once: the second keeps to its own thread.
  void run(Launch& launch) {
    if (!busy_.try_lock()) {
      runAlone(launch);
      return;
    }
    const std::lock_guard<std::mutex> held(busy_, std::adopt_lock);
    start();
    const unsigned threads = share(launch, others_ + 1);
    if (threads == 1) {
      runAlone(launch);
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job_ = &launch;
      wanted_ = threads - 1;
    }
    wake_.notify_all();
    ownWorker().run(launch);
    std::unique_lock<std::mutex> lock(mutex_);
    wanted_ = 0;  // who has not begun need not
    done_.wait(lock, [this] { return running_ == 0; });
    job_ = nullptr;
  }

 private:
  void start() {
    if (started_) return;
    started_ = true;
    others_ = processors() - 1;
    for (unsigned i = 0; i < others_; ++i) {
      std::thread([this] { serve(); }).detach();
    }
  }

  void serve() {
    prctl(PR_SET_NAME, "mc-blocks");
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return wanted_ != 0; });
      --wanted_;
      ++running_;
      Launch* const job = job_;
      lock.unlock();
      runHere(*job);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex busy_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool started_ = false;
  unsigned others_ = 0;
  unsigned wanted_ = 0, running_ = 0;
  Launch* job_ = nullptr;
};

// Never destroyed: its threads run until the process ends.
Pool& pool() {
  static auto* const instance = new Pool;
  return *instance;
}

void spread(Launch& launch) {
  if (launch.blocks == 1 || launch.blocks * launch.work < kWorthSharing) {
    runAlone(launch);
  } else if (const mcTeam* const team = teamHere()) {
    runOnTeam(launch, *team);
  } else {
    pool().run(launch);
  }
}

void runCooperative(Launch& launch) {
  GridBarrier barrier(static_cast<unsigned>(launch.blocks));
  launch.gridBarrier = &barrier;
  std::vector<std::thread> threads;
  threads.reserve(launch.blocks - 1);
  try {
    for (uint64_t block = 1; block < launch.blocks; ++block) {
      threads.emplace_back([&launch, block] {
        threadState.device = launch.device;
        ownWorker().runCooperative(launch, block);
      });
    }
  } catch (const std::system_error&) {
    launch.fail(mcErrorCooperativeLaunchTooLarge, "the system gives no thread for each block");
  }
  ownWorker().runCooperative(launch, 0);
  for (std::thread& thread : threads) thread.join();
}

// Runs one grid; what it has launched is in `children` behind it, in the order in which it runs.
mcError_t runGrid(const mcKernelEntry& kernel, const LaunchArguments& arguments, std::vector<ChildLaunch>* children) {
  Launch launch;
  std::string problem;
  if (!readSchedule(&launch.schedule, &problem)) return failWith(mcErrorInvalidValue, problem.c_str());
  launch.name = kernel.name;
  launch.function = kernel.deviceFunction;
  launch.grid = arguments.grid;
  launch.block = arguments.block;
  launch.arguments = arguments.arguments;
  launch.sharedBytes = arguments.sharedBytes;
  launch.device = threadState.device;
  launch.part = arguments.part;
  if (launch.part != 0) {
    launch.multiprocessors = static_cast<unsigned>(visibleDevice(launch.device)->properties.multiprocessors);
  }
  launch.blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const uint64_t perThread = std::max(kernel.facts[1] & ~mcKernelMayWait, 1U);
  launch.work = uint64_t{launch.block.x} * launch.block.y * launch.block.z * perThread;
  const size_t printed = __fpending(stdout);
  if (checkMode) check::enter();
  if (arguments.cooperative) {
    runCooperative(launch);
  } else {
    launch.runHere = &runHere;
    spread(launch);
    launch.helpers.join();
  }
  if (checkMode) {
    const bool clean = check::leave(("kernel " + demangled(kernel.name)).c_str());
    if (launch.error.load() == mcErrorIllegalAddress) check::report(launch.what);
    if (!clean && launch.error.load() == 0) return checkSticky();
  }
  // What kernels print is seen when the launch is over, whoever else buffers the program's own output.
  if (__fpending(stdout) != printed) std::fflush(stdout);
  const int error = launch.error.load();
  if (error == 0) {
    *children = launch.children.take();
    return mcSuccess;
  }
  setSticky(static_cast<mcError_t>(error), launch.what.c_str());
  return static_cast<mcError_t>(error);
}

}  // namespace

mcError_t runKernel(const mcKernelEntry& kernel, const LaunchArguments& arguments) {
  markInitialized();  // a forked child has no pool
  useDevice(threadState.device);
  // Device code has a last error of its own, and a block may run in the caller's thread.
  const mcError_t before = threadState.lastError;
  std::vector<ChildLaunch> children;
  mcError_t error = runGrid(kernel, arguments, &children);
  if (error == mcSuccess && !children.empty()) error = runChildren(std::move(children), arguments.part);
  if (error == mcSuccess) threadState.lastError = before;
  return error;
}

mcError_t runChildren(std::vector<ChildLaunch> children, unsigned part) {
  // No recursion: a chain of tail launches is a loop that may be long.
  std::deque<ChildLaunch> waiting(std::make_move_iterator(children.begin()), std::make_move_iterator(children.end()));
  while (!waiting.empty()) {
    const ChildLaunch child = std::move(waiting.front());
    waiting.pop_front();
    std::vector<ChildLaunch> next;
    const LaunchArguments launch{child.grid, child.block, child.arguments->pointers(), child.sharedBytes, nullptr,
                                 false,      part};
    const mcError_t error = runGrid(child.kernel, launch, &next);
    if (error != mcSuccess) return error;
    waiting.insert(waiting.begin(), std::make_move_iterator(next.begin()), std::make_move_iterator(next.end()));
  }
  return mcSuccess;
}

}  // namespace mc

void mcKernelTeam(const mcTeam* team) { mc::givenTeam.store(team, std::memory_order_release); }
