// Collectives and messages of a communicator over several hosts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "work/collective.h"
#include "work/communicator.h"
#include "work/exchange.h"
#include "work/task.h"

namespace nccl {

// The task for an operation: of this host or between hosts. It takes its number of the communicator, whose mutex the
// caller holds.
std::unique_ptr<Task> newTask(const std::shared_ptr<Communicator>& communicator, const Operation& operation);

// Note [Between hosts]
// ~~~~~~~~~~~~~~~~~~~~
// A collective goes in exchanges of about a MiB a host. The ranks of a host put what they give, or what they have
// reduced together, into the staging area of their block; behind a barrier the first rank of each host exchanges with
// those of the other hosts; behind a second one each rank takes its result. There are two areas, used in turn, so a
// third barrier is not needed: no rank fills an area again before all have passed the barriers of the other one.
//
// Sums travel in the type in which they are accumulated, and are rounded once. Each element is reduced in the order of
// the ranks of each host and then in the order of the hosts, by one host, which sends the result to the others: all
// ranks have the same bits.
//
// The first exchange begins with the calls: a host whose ranks call something else is found before any data moves.
class HostsCollective : public Task {
 public:
  HostsCollective(std::shared_ptr<Communicator> communicator, const Operation& operation);

  Step advance(Bell** bell, uint32_t* seen) override;
  void look() override;
  void drop() override;
  bool maySpin() const override { return comm_->size <= processors(); }
  bool polls() const override { return stage_ == Stage::Exchanged; }

 private:
  enum class Stage { Queued, Called, Filled, Exchanged, Taken };

  size_t hosts() const { return comm_->hosts->count(); }
  size_t ranksOf(size_t host) const { return comm_->hosts->members[host].size(); }
  size_t own() const { return comm_->hosts->own; }
  size_t rootHost() const { return comm_->hosts->hostOf[static_cast<size_t>(operation_.peer)]; }
  bool leads() const { return comm_->hosts->leader(own()) == comm_->rank; }
  Call callOf(int rank) const { return comm_->block.rank(rank).calls[number_ % 2]; }
  std::string name() const { return kindName(operation_.kind); }
  char* area(int which) const;
  size_t width() const { return reduces(operation_.kind) ? element_->accumulatorBytes : element_->bytes; }
  size_t slots() const;
  size_t firstOf(size_t host) const;  // ranks of the hosts before
  size_t among(size_t host) const;
  size_t position(int rank) const;  // among the ranks of all hosts, host after host
  size_t share(size_t parts, size_t part) const { return elements_ * part / parts; }

  void call();
  std::string mismatch() const;
  std::string differing(int a, const Call& callOfA, int b, const Call& callOfB) const;
  void begin();
  Result fill();
  Result reduceHere(size_t from, size_t count, char* to) const;
  bool exchange(Result* result, std::string* text);
  void exchangeCalls();
  std::string foreignMismatch() const;
  void exchangeData();
  void exchangeSums();
  void sendBytes(size_t host, const char* from, size_t bytes, uint64_t purpose);
  void receiveBytes(size_t host, char* to, size_t bytes, uint64_t purpose);
  void combine(char* to, const char* given, const char* received, size_t stride, size_t count) const;
  void take();
  Step over(Result result, const std::string& text);
  Step blocked(Bell** bell, uint32_t* seen, uint32_t word) const;
  Step failed(Result result, const std::string& text);

  std::shared_ptr<Communicator> comm_;
  Operation operation_;
  const Element* element_;
  uint32_t number_;
  Stage stage_ = Stage::Queued;
  int step_ = 0;         // of an exchange
  size_t done_ = 0;      // elements of earlier exchanges
  size_t elements_ = 0;  // of this one
  uint64_t turn_ = 0;
  Call mine_{};
  std::vector<Call> calls_;  // by host
  std::string lost_;
  Exchange exchange_;  // the last: what is under way ends before what it goes to
};

// A message to or from a rank of another host.
class HostsMessage : public Task {
 public:
  HostsMessage(std::shared_ptr<Communicator> communicator, const Operation& operation);

  Step advance(Bell** bell, uint32_t* seen) override;
  void look() override {}
  void drop() override;
  bool maySpin() const override { return comm_->size <= processors(); }
  bool polls() const override { return true; }

 private:
  std::string name() const;
  Step over(Result result, const std::string& text);

  std::shared_ptr<Communicator> comm_;
  Operation operation_;
  uint64_t number_;
  bool begun_ = false;
  Exchange exchange_;
};

}  // namespace nccl
