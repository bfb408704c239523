// What makes calls leave their fast path: captures under way, work that is pending on streams, and a profiler.
#pragma once

#include <atomic>

namespace mc {

// Side by side, so that a launch looks at one cache line.
struct alignas(16) Activity {
  std::atomic<int> captures{0};
  std::atomic<int> tasks{0};  // that are not finished
  std::atomic<int> listeners{0};
};
inline Activity activity;

inline bool capturing() { return __builtin_expect(activity.captures.load(std::memory_order_relaxed) != 0, 0); }

// Acquire: who sees that nothing is pending sees what finished tasks have written.
inline bool anythingPending() { return __builtin_expect(activity.tasks.load(std::memory_order_acquire) != 0, 0); }

inline bool undisturbed() {
  const int others =
      activity.captures.load(std::memory_order_relaxed) | activity.listeners.load(std::memory_order_relaxed);
  return __builtin_expect((others | activity.tasks.load(std::memory_order_acquire)) == 0, 1);
}

}  // namespace mc
