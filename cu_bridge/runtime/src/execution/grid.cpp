#include "execution/grid.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace mc {
namespace {

constexpr std::chrono::milliseconds kBetween{1};
// Each has a stack of the system's, and stacks for its block's threads.
constexpr size_t kMostThreads = 2048;

}  // namespace

bool Launch::take(uint64_t* first, uint64_t* count) {
  *first = next.fetch_add(chunk, std::memory_order_relaxed);
  if (*first >= blocks) return helpers.take(first, count);
  *count = std::min(chunk, blocks - *first);
  return true;
}

void Launch::fail(mcError_t code, const std::string& text) {
  const std::lock_guard<std::mutex> lock(errorMutex);
  if (error.load() != 0) return;
  what = text;
  error.store(code);
  if (gridBarrier != nullptr) gridBarrier->abort();
}

void Helpers::giveBack(uint64_t first, uint64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ranges_.push_back({first, count});
}

bool Helpers::take(uint64_t* first, uint64_t* count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ranges_.empty()) return false;
  *first = ranges_.back().first;
  *count = ranges_.back().count;
  ranges_.pop_back();
  return true;
}

bool Helpers::any() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !ranges_.empty();
}

void Helpers::call(Launch& launch, void (*run)(Launch& launch)) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kBetween || threads_.size() >= kMostThreads) return;
  last_ = now;
  try {
    threads_.emplace_back([&launch, run] { run(launch); });
  } catch (const std::system_error&) {
    // Those that are there go on; perhaps one of them is what the block waits for.
  }
}

void Helpers::join() {
  for (;;) {
    std::vector<std::thread> threads;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      threads = std::exchange(threads_, {});
    }
    if (threads.empty()) return;
    for (std::thread& thread : threads) thread.join();
  }
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
