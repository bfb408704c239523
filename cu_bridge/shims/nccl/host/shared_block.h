// The memory that the ranks of a communicator on one host share: who takes part, what each calls, how far each is.
//
// It is a memfd of the process that made the unique id, which the others open through /proc. So nothing has a name that
// could be left behind, however the ranks end, and only processes of the same user get in. It holds no tensors: ranks
// read those where they lie (peer_process.h). Small messages travel within it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "report/result.h"

namespace nccl {

constexpr int kMostRanks = 1024;
constexpr size_t kPayloadBytes = size_t{16}
                                 << 10;  // what a rank of a collective gives, at most, to go within the block

constexpr size_t kStagingBytes = size_t{13} << 20;

// NCCL's unique id: where the block is.
struct UniqueId {
  char data[128];
};

// A word that ranks sleep on until another rank changes it.
struct Bell {
  std::atomic<uint32_t> word;
  std::atomic<uint32_t> sleepers;

  void ring();                                  // changes the word and wakes all
  void wake();                                  // wakes all who sleep
  void sleep(uint32_t seen, int microseconds);  // until the word is no longer `seen`; may return early
};

// What a rank asks for. Addresses are those of its process.
struct Call {
  uint32_t kind;
  int32_t type, reduction, root;
  uint64_t count;
  uint64_t send, receive;
  uint64_t factor;  // bits of one element, the rank's factor of a scaled sum
};

enum class Presence : uint32_t { Absent = 0, Joining = 1, Present = 2, Finished = 3, Aborted = 4 };

struct alignas(64) Rank {
  std::atomic<Presence> presence;
  int32_t process;
  uint64_t started;  // when the process was started, in clock ticks
  int32_t device;    // physical index
  uint64_t probe;    // address of the block's number in the rank's own memory
  Call calls[2];     // of the collectives with even and odd numbers
  // Of the latest subgroup that this rank has founded (ncclCommShrink).
  std::atomic<uint32_t> shrinks;
  uint64_t shrinkMembers;
  UniqueId shrinkId;
  alignas(64) std::atomic<uint64_t> barriers;  // that the rank has come to
  std::atomic<uint32_t> writesTo;              // the rank, plus one, whose memory this one may be writing
  alignas(64) Bell bell;                       // of its sends and receives
};

// The mailbox of one rank's sends to another: one message at a time. A sender fills it when `taken` has come to the
// message's number, a receiver empties it when `posted` has passed that.
struct alignas(4096) Mailbox {
  static constexpr size_t kBytes = 4096 - 192;
  alignas(64) std::atomic<uint64_t> posted;
  uint64_t address;   // 0: the message lies in `bytes`
  uint64_t length;    // bytes
  uint64_t expected;  // bytes, where the receiver refused the message
  alignas(64) std::atomic<uint64_t> taken;
  std::atomic<uint64_t> refused;  // the number, plus one, of the latest message of another size than was expected
  alignas(64) char bytes[kBytes];
};
static_assert(sizeof(Mailbox) == 4096, "one page");

struct Header {
  char magic[8];
  uint64_t number;  // random: tells this block from all others
  std::atomic<uint32_t> ranks;
  std::atomic<uint32_t> hosts;                 // not 0: there are ranks on other hosts
  alignas(64) std::atomic<uint64_t> arrivals;  // ranks that came to barriers, all barriers together
  alignas(64) Bell round;                      // its word: the barriers that are behind all ranks
  alignas(64) Bell door;                       // its word: the ranks that have joined
};

// What an id says of its block.
struct BlockName {
  bool valid;  // whether it is an id at all
  uint64_t number;
  uint64_t host;
};
BlockName nameOf(const UniqueId& id);
// This host: the running kernel and the PID namespace, within which a process has a number.
uint64_t thisHost();
// The file of a block that this process keeps open, or -1.
int fileOfBlock(uint64_t number);

// A new block, kept open by this process until `retire`. False: no memory, with errno.
bool createBlock(UniqueId* id);
// No more ranks will join through this process.
void retireBlock(uint64_t number);

struct Founder {
  int32_t process;
  uint64_t started;
};

// The calling rank's view of a block.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  // Maps the block that an id names, for that many ranks.
  Result open(const UniqueId& id, int ranks, Founder* founder);

  int ranks() const { return ranks_; }
  Header& header() const { return *static_cast<Header*>(memory_); }
  Rank& rank(int index) const;
  char* payload(int rank, unsigned int number) const;  // of its collectives with even or odd number
  Mailbox& mailbox(int from, int to) const;
  // Two areas, used in turn, for what this host exchanges with others. They take no memory before.
  char* staging(uint64_t turn) const;

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  int ranks_ = 0;
};

// Of a process, from /proc; 0 if there is none.
uint64_t startOfProcess(int process);

}  // namespace nccl
