#include "work/message.h"

#include <algorithm>
#include <cstring>

namespace nccl {

Message::Message(std::shared_ptr<Communicator> communicator, const Operation& operation)
    : comm_(std::move(communicator)),
      operation_(operation),
      bytes_(operation.count * findElement(operation.type)->bytes) {
  const auto peer = static_cast<size_t>(operation.peer);
  number_ = sends() ? comm_->sent[peer]++ : comm_->received[peer]++;
  mailbox_ =
      sends() ? &comm_->block.mailbox(comm_->rank, operation.peer) : &comm_->block.mailbox(operation.peer, comm_->rank);
  ++comm_->unfinished;
}

std::string Message::name() const {
  return std::string(kindName(operation_.kind)) + (sends() ? " to rank " : " from rank ") +
         std::to_string(operation_.peer);
}

bool Message::waits() const {
  if (!sends()) return mailbox_->posted.load() <= number_;
  return mailbox_->taken.load() < number_ + (posted_ ? 1 : 0);
}

void Message::look() {
  lost_ = comm_->lostRank([&](int rank) { return rank == operation_.peer && waits(); });
}

Step Message::over(Result result, const std::string& text) {
  if (result != kSuccess) comm_->noteFailure(result, text);
  --comm_->unfinished;
  return end(result, text);
}

Step Message::post() {
  const bool inside = bytes_ <= Mailbox::kBytes;
  mailbox_->length = bytes_;
  mailbox_->address = inside ? 0 : reinterpret_cast<uint64_t>(operation_.send);
  if (inside && bytes_ > 0) std::memcpy(mailbox_->bytes, operation_.send, bytes_);
  mailbox_->posted.store(number_ + 1);
  comm_->block.rank(operation_.peer).bell.ring();
  posted_ = true;
  return inside ? over(kSuccess, {}) : Step::Moved;
}

Step Message::take() {
  Result result = kSuccess;
  std::string text;
  if (mailbox_->length != bytes_) {
    result = kInvalidUsage;
    text = "rank " + std::to_string(comm_->rank) + " receives " + std::to_string(bytes_) + " bytes from rank " +
           std::to_string(operation_.peer) + ", which sends " + std::to_string(mailbox_->length);
    mailbox_->expected = bytes_;
    mailbox_->refused.store(number_ + 1);
  } else if (mailbox_->address == 0) {
    if (bytes_ > 0) std::memcpy(operation_.receive, mailbox_->bytes, bytes_);
  } else {
    constexpr size_t kStride = size_t{8} << 20;  // between two looks whether the communicator was aborted
    for (size_t done = 0; done < bytes_ && result == kSuccess; done += kStride) {
      if (comm_->aborted) return over(kInternalError, name() + " was aborted");
      result = comm_->read(static_cast<char*>(operation_.receive) + done, operation_.peer, mailbox_->address + done,
                           std::min(kStride, bytes_ - done));
    }
    if (result != kSuccess) return over(result, name() + " failed: " + lastError());
    // A sender that aborts uses its buffer again: what was read then may be anything.
    if (comm_->block.rank(operation_.peer).presence.load() == Presence::Aborted) {
      return over(kRemoteError,
                  name() + " failed: rank " + std::to_string(operation_.peer) + " has aborted its communicator");
    }
  }
  mailbox_->taken.store(number_ + 1);
  comm_->block.rank(operation_.peer).bell.ring();
  if (operation_.peer != comm_->rank) comm_->block.rank(comm_->rank).bell.ring();  // of this rank's next receive
  return over(result, text);
}

void Message::drop() { over(kCudaError, name() + " was not done: the device has failed"); }

Step Message::advance(Bell** bell, uint32_t* seen) {
  Bell& own = comm_->block.rank(comm_->rank).bell;
  const uint32_t word = own.word.load();
  if (waits()) {
    if (comm_->aborted) return over(kInternalError, name() + " was aborted");
    if (!lost_.empty()) return over(kRemoteError, name() + " cannot end: " + lost_);
    *bell = &own;
    *seen = word;
    return Step::Blocked;
  }
  if (!sends()) {
    // Messages are taken in their order: an earlier receive of the same stream of messages may still wait for its turn.
    if (mailbox_->taken.load() != number_) {
      if (comm_->aborted) return over(kInternalError, name() + " was aborted");
      *bell = &own;
      *seen = word;
      return Step::Blocked;
    }
    return take();
  }
  if (!posted_) {
    if (mailbox_->posted.load() != number_) {
      *bell = &own;
      *seen = word;
      return Step::Blocked;
    }
    return post();
  }
  if (mailbox_->refused.load() == number_ + 1) {
    return over(kInvalidUsage, "rank " + std::to_string(comm_->rank) + " sends " + std::to_string(bytes_) +
                                   " bytes to rank " + std::to_string(operation_.peer) + ", which receives " +
                                   std::to_string(mailbox_->expected));
  }
  return over(kSuccess, {});
}

}  // namespace nccl
