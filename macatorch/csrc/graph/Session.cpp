#include "graph/Session.h"

#include <cstring>

#include "graph/CompositeMembers.h"

namespace macatorch {
namespace {

/// Memory that a tensor covers: first byte and number of bytes.
std::pair<char*, size_t> extent(const at::Tensor& tensor) {
  size_t elements = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    elements += static_cast<size_t>(tensor.size(i) - 1) * static_cast<size_t>(tensor.stride(i));
  }
  return {static_cast<char*>(tensor.data_ptr()), elements * tensor.dtype().itemsize()};
}

}  // namespace

void Session::save(const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!tensor.defined() || tensor.numel() == 0 || own_.count(tensor.storage().data()) != 0) {
    return;
  }
  const auto place = extent(tensor);
  if (!seen_.insert(place).second) {
    return;
  }
  Saved& saved = saved_.emplace_back(Saved{tensor, place.first, std::vector<char>(place.second)});
  std::memcpy(saved.bytes.data(), place.first, place.second);
}

void Session::keep(const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (own_.count(tensor.storage().data()) == 0) {
    kept_.emplace(tensor.storage().unsafeGetStorageImpl(), tensor.storage());
  }
}

void Session::owns(const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const at::Tensor& member : members_of(tensor)) {
    own_.insert(member.storage().data());
  }
}

void Session::restore() {
  for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved) {
    std::memcpy(saved->place, saved->bytes.data(), saved->bytes.size());
  }
  saved_.clear();
}

}  // namespace macatorch
