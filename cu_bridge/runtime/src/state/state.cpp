#include "state/state.h"

#include <pthread.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "state/locked.h"

namespace mc {

thread_local ThreadState threadState = {0, mcSuccess, false, 0, false};
std::atomic<int> stickyError{0};

namespace {

struct ErrorEntry {
  int code;
  const char* name;
  const char* message;
};

constexpr ErrorEntry kErrors[] = {
    {0, "Success", "no error"},
#include "error_table.inc"
};

const ErrorEntry* findError(int code) {
  for (const ErrorEntry& entry : kErrors) {
    if (entry.code == code) return &entry;
  }
  return nullptr;
}

// Strings given out live as long as the process.
struct Messages {
  std::map<int, const char*> withDetail;
  std::set<std::string> interned;
  std::set<std::string> reported;
};

std::atomic<bool> initialized{false};

void afterForkInChild() {
  if (initialized.load(std::memory_order_relaxed)) {
    stickyError.store(mcErrorInitializationError, std::memory_order_relaxed);
  }
}

}  // namespace

mcError_t failWith(mcError_t error, const char* detail) {
  const ErrorEntry* entry = findError(error);
  if (detail != nullptr && entry != nullptr) {
    const Writing<Messages> all;
    const std::string text = std::string(entry->message) + " (" + detail + ")";
    all->withDetail[error] = all->interned.insert(text).first->c_str();
  }
  return fail(error);
}

void setSticky(mcError_t error, const char* detail) {
  failWith(error, detail);
  int none = 0;
  stickyError.compare_exchange_strong(none, error);
}

void markInitialized() {
  if (initialized.load(std::memory_order_relaxed)) return;
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, afterForkInChild);
    initialized.store(true);
  });
}

}  // namespace mc

using namespace mc;

mcError_t mcGetLastError(void) {
  const mcError_t sticky = checkSticky();
  if (sticky != mcSuccess) return sticky;
  const mcError_t error = threadState.lastError;
  threadState.lastError = mcSuccess;
  return error;
}

mcError_t mcPeekAtLastError(void) {
  const mcError_t sticky = checkSticky();
  return sticky != mcSuccess ? sticky : threadState.lastError;
}

mcError_t mcSetLastError(mcError_t error, const char* detail) {
  return detail == nullptr ? fail(error) : failWith(error, detail);
}

void mcDeviceFail(mcError_t error, const char* detail) { setSticky(error, detail); }

mcError_t mcStickyError(void) { return static_cast<mcError_t>(stickyError.load(std::memory_order_relaxed)); }

const char* mcGetErrorString(mcError_t error) {
  {
    const Writing<Messages> all;
    const auto found = all->withDetail.find(error);
    if (found != all->withDetail.end()) return found->second;
  }
  const ErrorEntry* entry = findError(error);
  return entry != nullptr ? entry->message : "unrecognized error code";
}

const char* mcGetErrorName(mcError_t error) {
  const ErrorEntry* entry = findError(error);
  return entry != nullptr ? entry->name : nullptr;
}

void mcReportRefusal(const char* library, const char* function, const char* status) {
  const Writing<Messages> all;
  if (!all->reported.insert(function).second) return;
  std::fprintf(stderr, "mxmaca: %s: %s is not implemented for the simulated device (%s)\n", library, function, status);
}
