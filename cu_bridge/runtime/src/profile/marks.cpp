// Marks and ranges that a program puts on its time line (NVTX), for the listener and for a library's hook.

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace mc {
namespace {

std::atomic<mcMarkHook> markHook{nullptr};
std::atomic<unsigned long long> lastRange{0};

// The ranges that the thread has pushed and not popped, by domain.
std::vector<unsigned long long>& pushedRanges(const char* domain) {
  static thread_local std::map<std::string, std::vector<unsigned long long>, std::less<>> ranges;
  const std::string_view name = domain == nullptr ? std::string_view() : domain;
  const auto found = ranges.find(name);
  return found != ranges.end() ? found->second : ranges[std::string(name)];
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
    case mcMarkPush: {
      std::vector<unsigned long long>& ranges = pushedRanges(domain);
      number = static_cast<int64_t>(ranges.size());
      range = lastRange.fetch_add(1, std::memory_order_relaxed) + 1;
      ranges.push_back(range);
      break;
    }
    case mcMarkPop: {
      std::vector<unsigned long long>& ranges = pushedRanges(domain);
      if (ranges.empty()) return -1;
      range = ranges.back();
      ranges.pop_back();
      number = static_cast<int64_t>(ranges.size());
      break;
    }
  }
  if (profiling()) tellOfMark(kind, domain, name, range);
  if (const mcMarkHook hook = markHook.load(std::memory_order_acquire)) hook(kind, name, range);
  return number;
}

void mcProfileSetMarkHook(mcMarkHook hook) { markHook.store(hook, std::memory_order_release); }
