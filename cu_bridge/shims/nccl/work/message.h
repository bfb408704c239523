// One side of a message between two ranks: a send or a receive.
#pragma once

#include <memory>
#include <string>

#include "work/collective.h"
#include "work/communicator.h"
#include "work/task.h"

namespace nccl {

// A short message is put into the mailbox, and the send is over. A longer one is announced there; the receiver copies
// it from the sender's memory.
class Message : public Task {
 public:
  // Takes its number of the communicator, as Collective.
  Message(std::shared_ptr<Communicator> communicator, const Operation& operation);

  Step advance(Bell** bell, uint32_t* seen) override;
  void look() override;
  void drop() override;
  bool maySpin() const override { return comm_->size <= processors(); }

 private:
  bool sends() const { return operation_.kind == Kind::Send; }
  bool waits() const;  // for the other side
  std::string name() const;
  Step post();
  Step take();
  Step over(Result result, const std::string& text);

  std::shared_ptr<Communicator> comm_;
  Operation operation_;
  size_t bytes_;
  uint64_t number_;
  Mailbox* mailbox_;
  bool posted_ = false;
  std::string lost_;
};

}  // namespace nccl
