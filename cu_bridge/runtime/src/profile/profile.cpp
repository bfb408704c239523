#include "profile/profile.h"

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "state/locked.h"
#include "state/state.h"
#include "state/stream_table.h"

namespace mc {
namespace {

std::atomic<mcWorkListener> listener{nullptr};
std::atomic<mcProfileClock> clockOfListener{nullptr};
std::atomic<void (*)(int)> hook{nullptr};
std::atomic<unsigned> lastCorrelation{0};

thread_local unsigned currentCorrelation = 0;  // of the call that the thread is in
thread_local int silence = 0;

unsigned nextCorrelation() { return lastCorrelation.fetch_add(1, std::memory_order_relaxed) + 1; }

// Names given out live as long as the process.
struct Names {
  std::set<std::string, std::less<>> all;
};

unsigned long long numberOf(mcStream_t stream) {
  return isDefaultStream(stream) ? reinterpret_cast<uintptr_t>(stream) : stream->id;
}

}  // namespace

void silenceProfile(int change) { silence += change; }
bool isProfileSilent() { return silence != 0; }

int64_t profileClock() {
  const mcProfileClock clock = clockOfListener.load(std::memory_order_relaxed);
  return clock == nullptr ? 0 : static_cast<int64_t>(clock());
}

void tell(const mcWorkRecord& record) {
  const mcWorkListener to = listener.load(std::memory_order_acquire);
  if (to != nullptr) to(&record);
}

const char* interned(std::string_view name) {
  const Writing<Names> names;
  const auto found = names->all.find(name);
  return (found != names->all.end() ? found : names->all.emplace(name).first)->c_str();
}

namespace {

// The stream that a call waits for.
mcStream_t waitedFor(mcCall call, const void* const* arguments) {
  const bool waits = call == mcCallStreamSynchronize || call == mcCallStreamWaitEvent;
  return waits ? *static_cast<const mcStream_t*>(arguments[0]) : nullptr;
}

}  // namespace

void ProfiledCall::begin(mcCall call, const char* kernel, bool known) {
  if (currentCorrelation != 0 || isProfileSilent()) return;
  call_ = call;
  kernel_ = kernel;
  known_ = known;
  started_ = true;
  // So that the error that is there at the end is the call's own.
  errorBefore_ = std::exchange(threadState.lastError, mcSuccess);
  outer_ = currentCorrelation;
  currentCorrelation = correlation_ = nextCorrelation();
  mcWorkRecord record{};
  record.kind = mcWorkBegin;
  record.call = call_;
  record.name = kernel_;
  record.arguments = known_ ? arguments_ : nullptr;
  record.correlation = correlation_;
  record.device = threadState.device;
  tell(record);
  start_ = profileClock();
}

void ProfiledCall::end() {
  currentCorrelation = outer_;
  mcWorkRecord record{};
  record.kind = mcWorkCall;
  record.call = call_;
  record.start = start_;
  record.end = profileClock();
  record.correlation = correlation_;
  record.device = threadState.device;
  record.name = kernel_;
  record.arguments = known_ ? arguments_ : nullptr;
  const mcStream_t stream = waitedFor(call_, arguments_);
  record.stream = isStream(stream) ? numberOf(stream) : 0;
  record.result = threadState.lastError;
  if (record.result == mcSuccess) threadState.lastError = errorBefore_;
  tell(record);
}

std::function<mcError_t()> timed(mcStream_t stream, ProfiledWork what, std::function<mcError_t()> work) {
  what.record.device = streamDevice(stream);
  what.record.stream = numberOf(stream);
  what.record.correlation = currentCorrelation;
  what.record.name = what.name.empty() ? nullptr : interned(what.name);
  return [record = what.record, work = std::move(work)]() mutable {
    // Calls inside of it are a part of it.
    const unsigned outer = std::exchange(currentCorrelation, record.correlation);
    record.start = profileClock();
    const mcError_t error = work();
    record.end = profileClock();
    record.result = error;
    currentCorrelation = outer;
    tell(record);
    return error;
  };
}

}  // namespace mc

using namespace mc;

void mcProfileListen(mcWorkListener to, mcProfileClock clock) {
  const bool was = listener.load() != nullptr;
  clockOfListener.store(clock);
  listener.store(to, std::memory_order_release);
  const bool is = to != nullptr;
  if (is == was) return;
  activity.listeners.fetch_add(is ? 1 : -1);
  if (const auto changed = hook.load()) changed(is ? 1 : 0);
}

void mcProfileSetHook(void (*changed)(int)) {
  hook.store(changed);
  if (changed != nullptr && listener.load() != nullptr) changed(1);
}

int64_t mcProfileNow(void) { return profileClock(); }

namespace {

// An operator as the launch of a kernel that no address stands for: the arguments of mcLaunchKernel.
struct OperatorLaunch {
  explicit OperatorLaunch(mcStream_t on) : stream(on) {}
  const void* function = nullptr;
  mcDim3 size{1, 1, 1};
  void** parameters = nullptr;
  size_t sharedBytes = 0;
  mcStream_t stream;
  const void* arguments[6] = {&function, &size, &size, &parameters, &sharedBytes, &stream};
};

}  // namespace

int mcProfileListens(void) { return profiling() ? 1 : 0; }

unsigned int mcProfileBegin(const char* name, mcStream_t stream) {
  const OperatorLaunch launch(stream);
  mcWorkRecord record{};
  record.kind = mcWorkBegin;
  record.call = mcCallLaunchKernel;
  record.correlation = nextCorrelation();
  record.name = name == nullptr ? nullptr : interned(name);
  record.arguments = launch.arguments;
  tell(record);
  return record.correlation;
}

void mcProfileOperator(unsigned int correlation, const char* name, mcStream_t stream, int64_t start, int64_t end,
                       int captured) {
  if (!profiling() || name == nullptr || !isStream(stream)) return;
  const OperatorLaunch launch(stream);
  mcWorkRecord record{};
  record.kind = mcWorkCall;
  record.call = mcCallLaunchKernel;
  record.name = interned(name);
  record.arguments = launch.arguments;
  record.start = start;
  record.end = end;
  record.device = streamDevice(stream);
  record.stream = numberOf(stream);
  record.correlation = correlation;
  tell(record);
  if (captured != 0) return;
  record.kind = mcWorkKernel;
  record.arguments = nullptr;
  record.grid = record.block = {1, 1, 1};
  tell(record);
}

namespace {

mcWorkRecord recordOf(const mcFunctionCall& call, mcWorkKind kind) {
  mcWorkRecord record{};
  record.kind = kind;
  record.call = call.call;
  record.ofDriver = call.ofDriver;
  record.function = call.function;
  record.name = call.kernel;
  record.arguments = call.arguments;
  record.correlation = call.correlation;
  record.device = threadState.device;
  return record;
}

}  // namespace

int mcProfileFunctionBegin(mcFunctionCall* call) {
  if (!profiling() || currentCorrelation != 0 || isProfileSilent()) return 0;
  currentCorrelation = call->correlation = nextCorrelation();
  tell(recordOf(*call, mcWorkBegin));
  call->start = profileClock();
  return 1;
}

void mcProfileFunctionEnd(const mcFunctionCall* call, mcError_t result) {
  currentCorrelation = 0;
  mcWorkRecord record = recordOf(*call, mcWorkCall);
  record.start = call->start;
  record.end = profileClock();
  const mcStream_t stream = waitedFor(call->call, call->arguments);
  record.stream = isStream(stream) ? numberOf(stream) : 0;
  record.result = result;
  tell(record);
}
