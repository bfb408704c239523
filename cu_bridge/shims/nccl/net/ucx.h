// UCX, which moves data between hosts. It is loaded when the first communicator needs it (`mxmaca[net]`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "report/result.h"

namespace nccl::net {

struct Library;

// A send, a receive or a flush that has begun.
class Transfer {
 public:
  Transfer(const Library* library, void* worker, void* request, size_t expected);
  Transfer(Transfer&& other) noexcept;
  Transfer& operator=(Transfer&&) = delete;
  ~Transfer();

  // Whether it is over; *result and *why say how it has failed, and stay as they are if it has not.
  bool over(Result* result, std::string* why);

 private:
  const Library* library_;
  void* worker_;
  void* request_;  // nullptr: over; an error is coded in the pointer
  size_t expected_;
};

// A rank's end of the connections to ranks on other hosts. One thread at a time: hold `mutex` for every call, and while
// transfers are asked or given up.
class Endpoint {
 public:
  // nullptr with *why if UCX is not there or cannot be used.
  static std::unique_ptr<Endpoint> create(std::string* why);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  std::mutex mutex;

  const std::string& address() const { return address_; }
  void setPeers(std::vector<std::string> addresses) { addresses_ = std::move(addresses); }

  Transfer send(int rank, const void* from, size_t bytes, uint64_t tag);
  Transfer receive(void* to, size_t bytes, uint64_t tag);
  Transfer flush(int rank);  // over when all that was sent to it has left this host
  void progress();

 private:
  Endpoint(const Library* library, void* worker, std::string address);
  void* peer(int rank, void** error);

  const Library* library_;
  void* worker_;
  std::string address_;
  std::vector<std::string> addresses_;  // by rank
  std::vector<void*> peers_;            // connected when they are first needed
};

}  // namespace nccl::net
