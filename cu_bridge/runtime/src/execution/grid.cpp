#include "execution/grid.h"

#include <cstdlib>
#include <cstring>

namespace mc {

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
