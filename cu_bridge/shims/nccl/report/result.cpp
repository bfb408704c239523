#include "report/result.h"

#include <mutex>

#include "report/debug.h"

namespace nccl {
namespace {

// Of the process, as in NCCL: a watchdog asks from another thread than the one that failed.
std::mutex mutex;
std::string* latest = nullptr;  // never destroyed: threads may fail while the process exits

}  // namespace

Result fail(Result result, const std::string& text) {
  debugLine(DebugLevel::Warn, text);
  const std::lock_guard<std::mutex> lock(mutex);
  if (latest == nullptr) latest = new std::string;
  *latest = text;
  return result;
}

const char* lastError() {
  static thread_local std::string* copy = nullptr;
  if (copy == nullptr) copy = new std::string;
  const std::lock_guard<std::mutex> lock(mutex);
  if (latest != nullptr) *copy = *latest;
  return copy->c_str();
}

}  // namespace nccl
