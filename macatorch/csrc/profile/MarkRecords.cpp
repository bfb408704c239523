#include "profile/MarkRecords.h"

#include <ATen/record_function.h>
#include <mc_runtime.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace macatorch {
namespace {

using Record = std::unique_ptr<at::RecordFunction>;

/// nullptr where no trace is made. A profiler that turns operators into NVTX ranges (emit_nvtx) makes none: its own
/// ranges come here as well.
Record begun(const char* name) {
  using torch::profiler::impl::ActiveProfilerType;
  if (torch::profiler::impl::profilerType() != ActiveProfilerType::KINETO) {
    return nullptr;
  }
  auto record = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  if (!record->isActive()) {
    return nullptr;
  }
  record->before(std::string(name));
  return record;
}

/// What the thread has pushed and not popped, traced or not.
thread_local std::vector<std::pair<unsigned long long, Record>> pushed;

/// Ranges of the whole process.
struct Started {
  std::mutex mutex;
  std::unordered_map<unsigned long long, Record> records;
};
Started& started() {
  static auto* const all = new Started;
  return *all;
}

void marked(mcMarkKind kind, const char* name, unsigned long long range) {
  switch (kind) {
    case mcMarkInstant: begun(name); break;
    case mcMarkPush: pushed.emplace_back(range, begun(name)); break;
    case mcMarkPop:
      // Domains have their own order, so it need not be the last one.
      for (auto entry = pushed.rbegin(); entry != pushed.rend(); ++entry) {
        if (entry->first == range) {
          const Record ended = std::move(entry->second);
          pushed.erase(std::next(entry).base());
          break;
        }
      }
      break;
    case mcMarkStart: {
      Record record = begun(name);
      if (record == nullptr) {
        break;
      }
      record->_setAsync();  // it may end in another thread, and between the begin and the end of others
      const std::lock_guard<std::mutex> lock(started().mutex);
      started().records.emplace(range, std::move(record));
      break;
    }
    case mcMarkEnd: {
      Record ended;
      const std::lock_guard<std::mutex> lock(started().mutex);
      const auto found = started().records.find(range);
      if (found != started().records.end()) {
        ended = std::move(found->second);
        started().records.erase(found);
      }
      break;
    }
  }
}

}  // namespace

void register_mark_records() { mcProfileSetMarkHook(&marked); }

}  // namespace macatorch
