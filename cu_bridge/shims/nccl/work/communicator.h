// A communicator, as the rank of one device sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "handle.h"
#include "host/peer_process.h"
#include "host/shared_block.h"
#include "net/hosts.h"
#include "report/result.h"
#include "work/elements.h"

namespace nccl {

// A reduction that the program has made: PreMulSum with the factor of this rank.
struct ScaledSum {
  int type;
  uint64_t factor;           // bits of one element
  const void* deviceFactor;  // or where it lies, read when the collective runs
};

class Communicator {
 public:
  int rank = 0;
  int size = 0;
  int device = 0;  // visible index
  int physicalDevice = 0;
  int process = 0;  // that made it: after a fork it is of no use in the child
  bool blocking = true;
  uint64_t number = 0;  // of its block
  Block block;
  std::vector<std::shared_ptr<PeerProcess>> peers;  // by rank; nullptr: of this process, or of another host
  std::unique_ptr<net::Hosts> hosts;                // nullptr: all ranks are of this host

  // How its work is ordered. Collectives take numbers as they are submitted and run one after the other; the messages
  // to and from each rank have numbers of their own.
  std::mutex mutex;
  uint32_t collectives = 0;
  uint32_t shrinks = 0;
  std::vector<uint64_t> sent, received;
  std::map<int, ScaledSum> scaledSums;
  int lastReduction = kAverage;
  std::multiset<const void*> registered;

  Bell turn{};            // its word: the number of the collective whose turn it is
  uint64_t barriers = 0;  // that this rank has come to; of the collective whose turn it is
  std::atomic<int> unfinished{0};
  std::atomic<bool> ready{false};
  std::atomic<bool> finalized{false};
  std::atomic<bool> aborted{false};

  // The first failure, which stays.
  void noteFailure(Result result, const std::string& text);
  Result failure(std::string* text = nullptr) const;

  // The ranks of this host.
  bool here(int other) const { return hosts == nullptr || hosts->here(other); }
  int ranksHere() const { return hosts == nullptr ? size : static_cast<int>(hosts->mine().size()); }

  // Comes to the next barrier of all ranks of this host; `passed` tells whether all have come to that one.
  void arrive();
  bool passed() const;

  // Gives up what is under way; wakes all who wait for this rank.
  void abort();
  void leave(Presence presence);

  // Says which of the ranks of this host that `waitedFor` accepts will never come; empty if there is hope.
  template <class WaitedFor>
  std::string lostRank(const WaitedFor& waitedFor) const {
    for (int other = 0; other < size; ++other) {
      if (other == rank || !here(other) || !waitedFor(other)) continue;
      const std::string why = whyLost(other);
      // The rank may have done its part just before it ended.
      if (!why.empty() && waitedFor(other)) return why;
    }
    return {};
  }
  std::string whyLost(int other) const;

  // Copies from and to memory of another rank; on a failure says why.
  Result read(void* to, int other, uint64_t from, size_t bytes) const;
  Result write(int other, uint64_t to, const void* from, size_t bytes) const;
  // The bytes where they lie if they are of this process, else a copy in `scratch`; nullptr after a failure.
  const void* view(int other, uint64_t from, size_t bytes, void* scratch) const;

 private:
  void awaitWriters() const;

  mutable std::mutex failureMutex_;
  Result failure_ = kSuccess;
  std::string failureText_;
};

}  // namespace nccl

struct ncclComm {
  std::shared_ptr<nccl::Communicator> inner;
};

MXMACA_OBJECT(ncclComm, NcclCommunicator);
