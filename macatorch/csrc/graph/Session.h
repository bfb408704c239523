#pragma once

#include <ATen/core/Tensor.h>

#include <mc_runtime.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

namespace macatorch {

/// One capture: what it wrote to memory that was there before, and which memory is its own.
class Session {
 public:
  explicit Session(const void* thread) : begun_by(thread), newest_(mcLatestAllocation()) {}
  const void* const begun_by;
  std::atomic<bool> is_noted{false};  // note_graph_of_capture has been called

  /// Keeps what a plain tensor holds, to put it back.
  void save(const at::Tensor& tensor);

  /// Keeps what memory holds that the allocator gives to a captured operator, if it is older than the capture. A
  /// program may give up an input once what reads it is captured (operators, or kernels of Triton's). Captured
  /// operators run here, and write into that memory, which the first launch reads.
  void save_given(void* data, size_t bytes);

  /// The program has got memory, which no captured operator has written.
  void note_unwritten(void* data, size_t bytes);

  /// Fills such memory of a plain tensor with zeros, and of floating-point numbers with ones, for the operator that
  /// reads it. Captured kernels will have written there when the graph is launched; now they have not, and what lies
  /// there by chance may be no valid index and no probability.
  void fill(const at::Tensor& tensor);

  /// The memory of a tensor, or of its members, was made by the capture.
  void owns(const at::Tensor& tensor);

  /// Puts back what `save` kept.
  void restore();

 private:
  struct Saved {
    at::Tensor owner;         // or, undefined,
    uint64_t allocation = 0;  // the device's memory that `place` lies in
    char* place;
    std::vector<char> bytes;
  };
  /// Keeps what lies there, unless the memory is the capture's or was kept before.
  void save_range(char* begin, char* end);
  void forget_unwritten(const char* begin, const char* end);
  void save_bytes(char* begin, char* end, uint64_t allocation);

  std::mutex mutex_;  // backward runs in threads of its own
  std::vector<Saved> saved_;
  std::set<std::pair<char*, size_t>> seen_;
  std::unordered_set<const void*> own_;
  std::map<char*, char*> given_;  // begin and end of what `save_given` has seen
  std::map<char*, char*> unwritten_;
  const uint64_t newest_;  // the allocation that was the latest when the capture began
};

}  // namespace macatorch
