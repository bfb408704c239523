// Marks and ranges that a program puts on its time line (NVTX), for the listener and for a library's hook.

#include <pthread.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace mc {
namespace {

std::atomic<mcMarkHook> markHook{nullptr};
std::atomic<unsigned long long> lastRange{0};

// The ranges that a thread has pushed and not popped, by domain. Kept by a key, which takes nothing of the static TLS
// block, and gone with the thread: another one may get its number.
using Pushed = std::map<std::string, std::vector<unsigned long long>, std::less<>>;

Pushed* pushed() {
  static const std::optional<pthread_key_t> key = [] {
    pthread_key_t made = 0;
    const int error = pthread_key_create(&made, [](void* ranges) { delete static_cast<Pushed*>(ranges); });
    return error == 0 ? std::make_optional(made) : std::nullopt;
  }();
  if (!key) return nullptr;  // the process has no key left
  auto* ranges = static_cast<Pushed*>(pthread_getspecific(*key));
  if (ranges == nullptr) {
    auto made = std::make_unique<Pushed>();
    if (pthread_setspecific(*key, made.get()) != 0) return nullptr;
    ranges = made.release();
  }
  return ranges;
}

std::vector<unsigned long long>* pushedRanges(const char* domain) {
  Pushed* const all = pushed();
  if (all == nullptr) return nullptr;
  const std::string_view name = domain == nullptr ? std::string_view() : domain;
  const auto found = all->find(name);
  return found != all->end() ? &found->second : &(*all)[std::string(name)];
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
      std::vector<unsigned long long>* const ranges = pushedRanges(domain);
      if (ranges == nullptr) return -1;
      number = static_cast<int64_t>(ranges->size());
      range = lastRange.fetch_add(1, std::memory_order_relaxed) + 1;
      ranges->push_back(range);
      break;
    }
    case mcMarkPop: {
      std::vector<unsigned long long>* const ranges = pushedRanges(domain);
      if (ranges == nullptr || ranges->empty()) return -1;
      range = ranges->back();
      ranges->pop_back();
      number = static_cast<int64_t>(ranges->size());
      break;
    }
  }
  if (profiling()) tellOfMark(kind, domain, name, range);
  if (const mcMarkHook hook = markHook.load(std::memory_order_acquire)) hook(kind, name, range);
  return number;
}

void mcProfileSetMarkHook(mcMarkHook hook) { markHook.store(hook, std::memory_order_release); }
