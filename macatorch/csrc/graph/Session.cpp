#include "graph/Session.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <iterator>

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

template <class T>
void fill_with_ones(char* begin, size_t bytes) {
  std::fill_n(reinterpret_cast<T*>(begin), bytes / sizeof(T), T(1));
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
  saved_.push_back(Saved{tensor, 0, place.first, std::vector<char>(place.first, place.first + place.second)});
}

void Session::forget_unwritten(const char* begin, const char* end) {
  auto next = unwritten_.lower_bound(const_cast<char*>(begin));
  if (next != unwritten_.begin() && std::prev(next)->second > begin) {
    --next;
  }
  while (next != unwritten_.end() && next->first < end) {
    next = unwritten_.erase(next);
  }
}

void Session::note_unwritten(void* data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  char* const begin = static_cast<char*>(data);
  forget_unwritten(begin, begin + bytes);
  unwritten_.emplace(begin, begin + bytes);
}

void Session::fill(const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!tensor.defined() || tensor.numel() == 0) {
    return;
  }
  // The constant pointer: the other one would copy a storage that is copied on write.
  const auto found = unwritten_.find(static_cast<char*>(const_cast<void*>(tensor.storage().data())));
  if (found != unwritten_.end()) {
    save_range(found->first, found->second);
    const auto bytes = static_cast<size_t>(found->second - found->first);
    std::memset(found->first, 0, bytes);
    // No operator of its own: that would be captured, or a dispatch mode would see it.
    switch (tensor.scalar_type()) {
      case at::kFloat: fill_with_ones<float>(found->first, bytes); break;
      case at::kDouble: fill_with_ones<double>(found->first, bytes); break;
      case at::kHalf: fill_with_ones<at::Half>(found->first, bytes); break;
      case at::kBFloat16: fill_with_ones<at::BFloat16>(found->first, bytes); break;
      default: break;
    }
    unwritten_.erase(found);
  }
}

void Session::save_given(void* data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  char* const begin = static_cast<char*>(data);
  forget_unwritten(begin, begin + bytes);
  save_range(begin, begin + bytes);
}

void Session::save_range(char* begin, char* end) {
  mcPointerAttributes memory{};
  if (begin == end || mcPointerGetAttributes(&memory, begin) != mcSuccess || memory.id == 0 || memory.id > newest_) {
    return;
  }
  auto seen = given_.upper_bound(begin);
  if (seen != given_.begin() && std::prev(seen)->second >= begin) {
    --seen;
  }
  // What lies between the places that were seen before is new; together they become one place.
  char *first = begin, *last = end;
  while (seen != given_.end() && seen->first <= end) {
    if (seen->first > begin) {
      save_bytes(begin, seen->first, memory.id);
    }
    begin = std::max(begin, seen->second);
    first = std::min(first, seen->first);
    last = std::max(last, seen->second);
    seen = given_.erase(seen);
  }
  if (begin < end) {
    save_bytes(begin, end, memory.id);
  }
  given_[first] = last;
}

void Session::save_bytes(char* begin, char* end, uint64_t allocation) {
  saved_.push_back(Saved{{}, allocation, begin, std::vector<char>(begin, end)});
}

void Session::owns(const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const at::Tensor& member : members_of(tensor)) {
    own_.insert(member.storage().data());
  }
}

void Session::restore() {
  for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved) {
    mcPointerAttributes memory{};
    const bool is_there = saved->owner.defined() || (mcPointerGetAttributes(&memory, saved->place) == mcSuccess &&
                                                     memory.id == saved->allocation);
    if (is_there) {
      std::memcpy(saved->place, saved->bytes.data(), saved->bytes.size());
    }
  }
  saved_.clear();
}

}  // namespace macatorch
