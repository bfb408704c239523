// Marks and ranges that a program puts on its time line (NVTX), for the listener and for a library's hook.

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace mc {
namespace {

std::atomic<mcMarkHook> markHook{nullptr};
std::atomic<unsigned long long> lastRange{0};

// The ranges that threads have pushed and not popped, by thread and domain. Not thread-local: the static TLS block is
// small.
struct Pushed {
  std::mutex mutex;
  std::map<std::pair<std::thread::id, std::string>, std::vector<unsigned long long>> ranges;
};
Pushed& pushed() {
  static auto* const all = new Pushed;  // programs mark until their end
  return *all;
}

// How many the thread had pushed before.
int64_t push(const char* domain, unsigned long long range) {
  Pushed& all = pushed();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<unsigned long long>& ranges = all.ranges[{std::this_thread::get_id(), domain == nullptr ? "" : domain}];
  ranges.push_back(range);
  return static_cast<int64_t>(ranges.size()) - 1;
}

// How many are left; -1: there was none.
int64_t pop(const char* domain, unsigned long long* range) {
  Pushed& all = pushed();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.ranges.find({std::this_thread::get_id(), domain == nullptr ? "" : domain});
  if (found == all.ranges.end()) return -1;
  *range = found->second.back();
  found->second.pop_back();
  const auto left = static_cast<int64_t>(found->second.size());
  if (left == 0) all.ranges.erase(found);
  return left;
}

void tellOfMark(mcMarkKind kind, const char* domain, const char* name, unsigned long long range) {
  mcWorkRecord record{};
  record.kind = mcWorkMark;
  record.mark = kind;
  record.domain = domain == nullptr ? nullptr : interned(domain);
  record.name = name == nullptr ? nullptr : interned(name);
  record.range = range;
  record.start = record.end = profileClock();
  tell(record);
}

}  // namespace
}  // namespace mc

using namespace mc;

int64_t mcProfileMark(mcMarkKind kind, const char* domain, const char* name, unsigned long long range) {
  int64_t number = 0;
  const bool isEnd = kind == mcMarkPop || kind == mcMarkEnd;
  if (name == nullptr && !isEnd) name = "";
  switch (kind) {
    case mcMarkInstant: range = lastRange.fetch_add(1, std::memory_order_relaxed) + 1; break;
    case mcMarkStart:
      range = lastRange.fetch_add(1, std::memory_order_relaxed) + 1;
      number = static_cast<int64_t>(range);
      break;
    case mcMarkEnd: break;
    case mcMarkPush:
      range = lastRange.fetch_add(1, std::memory_order_relaxed) + 1;
      number = push(domain, range);
      break;
    case mcMarkPop:
      number = pop(domain, &range);
      if (number < 0) return -1;
      break;
  }
  if (profiling()) tellOfMark(kind, domain, name, range);
  if (const mcMarkHook hook = markHook.load(std::memory_order_acquire)) hook(kind, name, range);
  return number;
}

void mcProfileSetMarkHook(mcMarkHook hook) { markHook.store(hook, std::memory_order_release); }
