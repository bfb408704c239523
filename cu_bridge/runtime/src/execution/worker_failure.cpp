// How a launch fails, and what is said about it.

#include <cstdio>
#include <mutex>
#include <set>

#include "execution/worker.h"
#include "host/demangle.h"

namespace mc {
namespace {

std::string triple(mcDim3 value) {
  char text[64];
  std::snprintf(text, sizeof text, "(%u, %u, %u)", value.x, value.y, value.z);
  return text;
}

// Whether something was said about the kernel of this name; from now on it was.
bool saidAlready(const char* name) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return !names->insert(name).second;
}

}  // namespace

std::string Worker::place(const Fiber* fiber, const char* does) const {
  return "thread " + triple(threadIndex(fiber->thread)) + does + " at " + fiber->file + ":" +
         std::to_string(fiber->line);
}

void Worker::reportStuck() {
  std::string text = "threads of the block wait for each other for ever: ";
  const Fiber* const atBarrier = barrier_.head;
  const Fiber* atWarp = nullptr;
  const Fiber* atNamed = nullptr;
  for (unsigned thread = 0; thread < threads_; ++thread) {
    const Fiber* const fiber = byThread_[thread];
    if (fiber == nullptr) continue;
    if (atWarp == nullptr && fiber->state == State::kWarp) atWarp = fiber;
    if (atNamed == nullptr && fiber->state == State::kNamedBarrier) atNamed = fiber;
  }
  if (atBarrier != nullptr) text += place(atBarrier) + " (__syncthreads())";
  if (atNamed != nullptr) {
    const NamedBarrier& barrier = named_[atNamed->value];
    const unsigned expected = barrier.expected != 0 ? barrier.expected : live_;
    text += (atBarrier != nullptr ? ", " : "") + place(atNamed) + " (barrier " + std::to_string(atNamed->value) +
            ", to which " + std::to_string(barrier.arrived) + " of " + std::to_string(expected) + " threads have come)";
  }
  if (atWarp != nullptr) {
    char mask[64];
    std::snprintf(mask, sizeof mask, " (warp operation with mask 0x%08x)", atWarp->mask);
    text += (atBarrier != nullptr || atNamed != nullptr ? ", " : "") + place(atWarp) + mask;
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

void Worker::warn(const std::string& what) const {
  if (saidAlready(launch_->name)) return;
  std::fprintf(stderr, "mxmaca: warning: kernel %s, block %s: %s (said once for each kernel)\n",
               demangled(launch_->name).c_str(), triple(context_.block).c_str(), what.c_str());
}

}  // namespace mc
