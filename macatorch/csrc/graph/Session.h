#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace macatorch {

/// One capture: what it wrote to memory that was there before, and which memory is its own.
class Session {
 public:
  explicit Session(const void* thread) : begun_by(thread) {}
  const void* const begun_by;
  std::atomic<bool> is_noted{false};  // note_graph_of_capture has been called

  /// Keeps what a plain tensor holds, to put it back.
  void save(const at::Tensor& tensor);

  /// Keeps the memory of a plain tensor from being freed before the capture ends, if it is older than the capture. A
  /// program may give up an input once its operators are captured; captured operators run here, and would write their
  /// results into that memory, which the first launch reads.
  void keep(const at::Tensor& tensor);

  /// The memory of a tensor, or of its members, was made by the capture.
  void owns(const at::Tensor& tensor);

  /// Puts back what `save` kept.
  void restore();

 private:
  struct Saved {
    at::Tensor owner;
    char* place;
    std::vector<char> bytes;
  };
  std::mutex mutex_;  // backward runs in threads of its own
  std::vector<Saved> saved_;
  std::set<std::pair<char*, size_t>> seen_;
  std::unordered_set<const void*> own_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> kept_;
};

}  // namespace macatorch
