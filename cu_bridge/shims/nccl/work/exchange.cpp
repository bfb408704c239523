#include "work/exchange.h"

namespace nccl {
namespace {

constexpr auto kGrace = std::chrono::milliseconds(2000);

}  // namespace

void Exchange::send(int rank, const void* from, size_t bytes, uint64_t tag) {
  net::Endpoint& endpoint = *comm_->hosts->endpoint;
  const std::lock_guard<std::mutex> lock(endpoint.mutex);
  items_.push_back({endpoint.send(rank, from, bytes, tag), rank});
}
void Exchange::receive(int rank, void* to, size_t bytes, uint64_t tag) {
  net::Endpoint& endpoint = *comm_->hosts->endpoint;
  const std::lock_guard<std::mutex> lock(endpoint.mutex);
  items_.push_back({endpoint.receive(to, bytes, tag), rank});
}
void Exchange::flush(int rank) {
  net::Endpoint& endpoint = *comm_->hosts->endpoint;
  const std::lock_guard<std::mutex> lock(endpoint.mutex);
  items_.push_back({endpoint.flush(rank), rank});
}

void Exchange::drop() {
  if (items_.empty()) return;
  const std::lock_guard<std::mutex> lock(comm_->hosts->endpoint->mutex);
  items_.clear();
}

bool Exchange::over(Result* result, std::string* text) {
  net::Link& link = *comm_->hosts->link;
  bool lost = false;
  net::Link::Loss loss;
  {
    net::Endpoint& endpoint = *comm_->hosts->endpoint;
    const std::lock_guard<std::mutex> lock(endpoint.mutex);
    endpoint.progress();
    for (auto item = items_.begin(); item != items_.end();) {
      Result failure = kSuccess;
      std::string why;
      if (!item->transfer.over(&failure, &why)) {
        ++item;
        continue;
      }
      if (failure != kSuccess && failed_.empty()) {
        failure_ = failure;
        failed_ = "rank " + std::to_string(item->rank) + " (on another host): " + why;
      }
      item = items_.erase(item);
    }
  }
  if (items_.empty() && failed_.empty()) return true;
  for (const Item& item : items_) lost = lost || link.lost(item.rank, &loss);
  if (failure_ == kInvalidUsage) {
    drop();
    *result = failure_;
    *text = failed_;
    return true;
  }
  if (!lost && !failed_.empty()) lost = link.failed(&loss);
  if (!lost && failed_.empty()) return false;
  // What a rank had sent before it left may still come; and the root knows better why a connection has ended.
  if (!losing_) {
    losing_ = true;
    since_ = net::Clock::now();
  }
  if (net::Clock::now() - since_ < kGrace) return false;
  drop();
  *result = lost ? loss.result : failure_;
  *text = lost ? loss.why : failed_;
  return true;
}

}  // namespace nccl
