#include "alias/ViewCopies.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace macatorch {

std::atomic<int> view_copies{0};

namespace {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

struct Pair {
  WeakStorage viewed, copy;

  bool ended() const noexcept { return viewed.expired() || copy.expired(); }
  bool holds(const c10::StorageImpl* storage) const noexcept {
    return viewed._unsafe_get_target() == storage || copy._unsafe_get_target() == storage;
  }
};

std::mutex mutex;

std::vector<Pair>& pairs() {
  static auto* const all = new std::vector<Pair>;  // storages may end after everything else
  return *all;
}

void forget_ended() {
  std::vector<Pair>& all = pairs();
  all.erase(std::remove_if(all.begin(), all.end(), [](const Pair& pair) { return pair.ended(); }), all.end());
  view_copies.store(static_cast<int>(all.size()), std::memory_order_relaxed);
}

}  // namespace

void remember_view_copy(const c10::Storage& viewed, const c10::Storage& copy) {
  const std::lock_guard<std::mutex> lock(mutex);
  forget_ended();
  pairs().push_back(Pair{viewed.getWeakStorageImpl(), copy.getWeakStorageImpl()});
  view_copies.store(static_cast<int>(pairs().size()), std::memory_order_relaxed);
}

bool has_view_copy(const c10::StorageImpl* storage) {
  if (view_copies.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  forget_ended();
  return std::any_of(pairs().begin(), pairs().end(), [&](const Pair& pair) { return pair.holds(storage); });
}

void refuse_write_to_view_copy(const c10::StorageImpl* written) {
  TORCH_CHECK(!has_view_copy(written),
              "a write to a tensor and to its view cannot be seen in both: the tensor has the channels-last strides in "
              "which images arrive on this device when they are moved there from the CPU, somebody else holds its "
              "memory (autograd, for the backward pass, say), so the view had to be a copy. Use .reshape(...) or "
              ".clone() where the view is made, or set PYTORCH_DEFAULT_NCHW=1 to keep upstream's layout.");
}

}  // namespace macatorch
