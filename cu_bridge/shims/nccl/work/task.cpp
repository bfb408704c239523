#include "work/task.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(100);  // how often to look whether peers live
constexpr int kSpin = 30;                               // microseconds
constexpr int kSleep = 100000;                          // microseconds, if one bell wakes all tasks
constexpr int kShortSleep = 200;                        // if they wait for different ones, or for other hosts

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

int processors() {
  static const int number = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
  }();
  return number;
}

bool TaskRun::step() {
  bool any = false;
  spin_ = true;
  several_ = false;
  bell_ = nullptr;
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    Bell* bell = nullptr;
    uint32_t seen = 0;
    const Step step = (*task)->advance(&bell, &seen);
    if (step == Step::Done) {
      if (result_ == kSuccess) result_ = (*task)->result();
      task = tasks_.erase(task);
      any = true;
      continue;
    }
    any = any || step == Step::Moved;
    spin_ = spin_ && (*task)->maySpin();
    several_ = several_ || (bell_ != nullptr && bell_ != bell) || (*task)->polls();
    bell_ = bell;
    seen_ = seen;
    ++task;
  }
  return any;
}

bool TaskRun::tryFor(int microseconds) {
  Clock::time_point moved = Clock::now();
  while (!tasks_.empty()) {
    if (step()) {
      moved = Clock::now();
    } else if (!spin_ || Clock::now() - moved >= std::chrono::microseconds(microseconds)) {
      return false;
    } else {
      relax();
    }
  }
  return true;
}

bool TaskRun::finish() {
  Clock::time_point looked = Clock::now();
  while (!tryFor(kSpin)) {
    bell_->sleep(seen_, several_ ? kShortSleep : kSleep);
    if (Clock::now() - looked < kLook) continue;
    for (const auto& task : tasks_) task->look();
    looked = Clock::now();
  }
  return true;
}

void TaskRun::drop() {
  for (const auto& task : tasks_) task->drop();
  tasks_.clear();
}

Result runTasks(Tasks tasks) {
  TaskRun run(std::move(tasks));
  run.finish();
  return run.result();
}

}  // namespace nccl
