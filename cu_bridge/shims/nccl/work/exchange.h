// Sends and receives between hosts, until they are over or will never be.
#pragma once

#include <list>
#include <string>

#include "net/link.h"
#include "net/ucx.h"
#include "work/communicator.h"

namespace nccl {

// What comes from other hosts, on behalf of a task.
class Exchange {
 public:
  explicit Exchange(Communicator* communicator) : comm_(communicator) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() { drop(); }

  void send(int rank, const void* from, size_t bytes, uint64_t tag);
  void receive(int rank, void* to, size_t bytes, uint64_t tag);
  // What was sent to that rank: nobody would carry it on once the task is over.
  void flush(int rank);

  // Whether all of it is over. After a failure: which one it is, with *text.
  bool over(Result* result, std::string* text);
  void drop();

 private:
  struct Item {
    net::Transfer transfer;
    int rank;
  };
  Communicator* comm_;
  std::list<Item> items_;
  Result failure_ = kSuccess;  // what UCX says
  std::string failed_;
  net::Clock::time_point since_{};
  bool losing_ = false;
};

}  // namespace nccl
