// How communicators come to be: by a unique id, from a communicator's ranks of one color, or from those that are left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/interfaces.h"
#include "work/communicator.h"
#include "work/task.h"

namespace nccl {

// Joins the block of a unique id, waits for all other ranks, and makes sure that it can read their memory.
//
// A rank of another host than the id's joins a block of its own host, which the root of the id names (net/root.h). The
// ranks of each host wait within their block until the root has told them who takes part.
class Join : public Task {
 public:
  // `communicator` has its rank, size and device.
  Join(std::shared_ptr<Communicator> communicator, const UniqueId& id);

  Step advance(Bell** bell, uint32_t* seen) override;
  void look() override;
  bool maySpin() const override { return comm_->size <= processors(); }
  bool polls() const override { return stage_ == Stage::Home || stage_ == Stage::Table; }

 private:
  enum class Stage { Open, Home, Door, Table, Probed };

  Result begin();
  Result enter(const UniqueId& block);
  Result openLink(const net::Address& root);
  Result greet();
  Result meet();
  bool arrived();  // what the stage waits for
  Step over(Result result, const std::string& text);

  std::shared_ptr<Communicator> comm_;
  UniqueId id_;
  Founder founder_{};
  UniqueId made_{};                    // the block that this rank offers to its host, if the id is of another one
  std::unique_ptr<net::Hosts> hosts_;  // from the moment that there are ranks of other hosts
  Stage stage_ = Stage::Open;
  std::string lost_;
};

class Split : public Task {
 public:
  // `child` is nullptr for a rank without a color.
  Split(const std::shared_ptr<Communicator>& parent, std::shared_ptr<Communicator> child, int color, int key);

  void start() override;  // takes two numbers of the parent's collectives
  Step advance(Bell** bell, uint32_t* seen) override;
  void look() override { current().look(); }
  bool maySpin() const override { return parent_->size <= processors(); }
  bool polls() const override { return current().polls(); }

 private:
  struct Choice {
    int color, key;
  };
  Task& current() const { return join_ != nullptr ? static_cast<Task&>(*join_) : chosen_ ? *ids_ : *choices_; }
  Result choose();
  Step over(Result result, const std::string& text);

  std::shared_ptr<Communicator> parent_, child_;
  Choice choice_;
  UniqueId id_{};  // of the block that this rank makes, if it is the first of its color
  std::vector<Choice> allChoices_;
  std::vector<UniqueId> allIds_;
  std::unique_ptr<Task> choices_, ids_;
  std::unique_ptr<Join> join_;
  int first_ = 0;  // rank of the parent
  bool chosen_ = false;
};

// A communicator of the parent's ranks without some, which take no part and may have died.
class Shrink : public Task {
 public:
  Shrink(const std::shared_ptr<Communicator>& parent, std::shared_ptr<Communicator> child, std::vector<int> members);

  Step advance(Bell** bell, uint32_t* seen) override;
  void look() override;
  bool maySpin() const override { return child_->size <= processors(); }

 private:
  Step over(Result result, const std::string& text);

  std::shared_ptr<Communicator> parent_, child_;
  std::vector<int> members_;
  uint64_t hash_;
  uint32_t number_;
  std::unique_ptr<Join> join_;
  std::string lost_;
};

}  // namespace nccl
