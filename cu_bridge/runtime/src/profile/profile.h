// What a profiler is told: calls of the program, and the work that they begin. See Note [Profiling].
//
// Note [Profiling]
// ~~~~~~~~~~~~~~~~
// One listener of the process (libcupti) gets a record of each call and of each piece of work when it is over, in the
// thread that made or ran it, with the times of the listener's own clock. A call has a number, and the work that it
// begins carries the same one, also when the work runs later and elsewhere. While nobody listens, a call costs one look
// at a counter that it looks at anyway (activity.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "mc_runtime.h"
#include "state/activity.h"

namespace mc {

inline bool profiling() { return __builtin_expect(activity.listeners.load(std::memory_order_relaxed) != 0, 0); }

// The span of one call of the program. A call inside of another is a part of that one.
class ProfiledCall {
 public:
  // With the call's arguments, where there is a listener for them. They outlive it.
  template <class... Arguments>
  explicit ProfiledCall(mcCall call, const Arguments&... arguments)
      : ProfiledCall(profiling(), nullptr, call, arguments...) {}
  // If it is wanted; with the kernel that it launches.
  template <class... Arguments>
  ProfiledCall(bool wanted, const char* kernel, mcCall call, const Arguments&... arguments)
      : arguments_{&arguments...} {
    static_assert(sizeof...(arguments) <= kMostArguments, "they have a place");
    if (wanted) begin(call, kernel, sizeof...(arguments) != 0);
  }
  ~ProfiledCall() {
    if (started_) end();
  }
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

 private:
  static constexpr size_t kMostArguments = 6;
  void begin(mcCall call, const char* kernel, bool known);
  void end();

  mcCall call_{};
  bool started_ = false, known_ = false;
  const char* kernel_ = nullptr;
  mcError_t errorBefore_ = mcSuccess;
  const void* arguments_[kMostArguments + 1];
  int64_t start_ = 0;
  unsigned correlation_ = 0, outer_ = 0;
};

// While a thread is silent nobody is told of its calls and of its work: those by which an operator or a library's call
// is tried for a capture, which is told of by itself.
void silenceProfile(int change);
bool isProfileSilent();

// What the listener is told by.
void tell(const mcWorkRecord& record);
int64_t profileClock();
// A copy of the name that lives as long as the process.
const char* interned(std::string_view name);

// A piece of work, to be told about when it has run. The rest of the record is filled in by timed().
struct ProfiledWork {
  mcWorkRecord record{};
  std::string name{};
};

// `work` that tells the listener of itself. Called inside the call that begins it.
std::function<mcError_t()> timed(mcStream_t stream, ProfiledWork what, std::function<mcError_t()> work);

}  // namespace mc
