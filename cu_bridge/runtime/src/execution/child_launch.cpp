#include "execution/child_launch.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mc {

void ChildLaunches::add(ChildLaunch child) {
  const std::lock_guard<std::mutex> lock(mutex_);
  launches_.push_back(std::move(child));
}

std::vector<ChildLaunch> ChildLaunches::take() {
  std::vector<ChildLaunch> taken;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken.swap(launches_);
  }
  // One thread runs a block, so that its launches are in order already.
  std::stable_sort(taken.begin(), taken.end(), [](const ChildLaunch& left, const ChildLaunch& right) {
    return std::make_pair(left.tail, left.parentBlock) < std::make_pair(right.tail, right.parentBlock);
  });
  return taken;
}

std::vector<ChildLaunch> ChildLaunches::takeOf(uint64_t parentBlock) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto taken = std::stable_partition(launches_.begin(), launches_.end(), [parentBlock](const ChildLaunch& child) {
    return child.tail || child.parentBlock != parentBlock;
  });
  std::vector<ChildLaunch> children(std::make_move_iterator(taken), std::make_move_iterator(launches_.end()));
  launches_.erase(taken, launches_.end());
  return children;
}

}  // namespace mc
