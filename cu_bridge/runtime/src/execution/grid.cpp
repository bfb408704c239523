#include "execution/grid.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace mc {
namespace {

constexpr int64_t kBetween = 1'000'000;  // nanoseconds
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
  given_.emplace(first, count);
  ranges_.store(given_.size(), std::memory_order_relaxed);
}

bool Helpers::take(uint64_t* first, uint64_t* count) {
  if (!any()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (given_.empty()) return false;
  const auto lowest = given_.begin();
  *first = lowest->first;
  *count = lowest->second;
  given_.erase(lowest);
  ranges_.store(given_.size(), std::memory_order_relaxed);
  return true;
}

void Helpers::call(Launch& launch, void (*run)(Launch& launch), uint64_t ended) {
  // Hundreds of threads may wait, so most calls end without the lock.
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (ended_.exchange(ended, std::memory_order_relaxed) != ended) last_.store(now, std::memory_order_relaxed);
  if (now - last_.load(std::memory_order_relaxed) < kBetween) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (now - last_.load(std::memory_order_relaxed) < kBetween || threads_.size() >= kMostThreads) return;
  last_.store(now, std::memory_order_relaxed);
  try {
    threads_.emplace_back([&launch, run] { run(launch); });
    made_.fetch_add(1, std::memory_order_relaxed);
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
