// A collective of all ranks of a communicator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "work/communicator.h"
#include "work/task.h"

namespace nccl {

enum class Kind : uint32_t {
  AllReduce,
  Reduce,
  Broadcast,
  AllGather,
  ReduceScatter,
  AllToAll,
  Gather,
  Scatter,
  Split,  // gathers what the ranks say of ncclCommSplit, from and to host memory
  Send,
  Receive,
};
const char* kindName(Kind kind);
// In words, for a rank whose call differs from another's.
std::string describe(const Call& call);
bool differ(const Call& a, const Call& b);
bool reduces(Kind kind);

// What a rank asks for with a collective or one side of a message.
struct Operation {
  Kind kind;
  const void* send;
  void* receive;
  size_t count;
  int type;
  int reduction;  // of ReduceKind
  int peer;       // root, or the other side
  ScaledSum scaled;
};

// Note [How a collective runs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Each rank writes into the block what it calls, and comes to a barrier. Behind it each rank compares the calls of all:
// that is how a mismatch is found, by all ranks alike. Where every rank gives at most kPayloadBytes, they lie in the
// block by then, each rank computes its own result from them, and that one barrier is all. Two places a rank, used in
// turn, are enough, as no rank comes to the next barrier before it has read.
//
// Larger messages are read from the other ranks' memory. Each rank reduces its part of the elements over all ranks, in
// their order and in pieces that fit the cache, and writes each piece to all ranks that get it while it lies there: no
// other rank reads or writes this part, in no buffer, so results may go where elements have come from. A second barrier
// keeps every rank until nobody uses its memory any more. Results are computed once and copied, so they are the same
// bits on all ranks, and parts only depend on the sizes, so they are the same bits in every run.
class Collective : public Task {
 public:
  // Takes its number of the communicator, whose mutex the caller holds or which nobody else uses yet.
  Collective(std::shared_ptr<Communicator> communicator, const Operation& operation);

  Step advance(Bell** bell, uint32_t* seen) override;
  void look() override;
  void drop() override;
  bool maySpin() const override { return comm_->size <= processors(); }

 private:
  enum class Stage { Queued, Called, Worked };
  // Where results go: an address of that rank's process.
  struct Target {
    int rank;
    uint64_t address;
  };

  Call callOf(int rank) const { return comm_->block.rank(rank).calls[number_ % 2]; }
  std::string name() const { return kindName(operation_.kind); }
  size_t given(int rank) const;  // bytes that a rank gives
  bool within() const;           // whether it goes within the block
  void call();
  std::string mismatch() const;
  Result reduce(size_t from, size_t count, const std::vector<Target>& targets) const;
  Result copy(void* to, int rank, uint64_t offset, size_t bytes) const;
  Result work();
  Step blocked(Bell** bell, uint32_t* seen, uint32_t word) const;
  Step over(Result result, const std::string& text);

  std::shared_ptr<Communicator> comm_;
  Operation operation_;
  const Element* element_;
  uint32_t number_;
  Stage stage_ = Stage::Queued;
  std::string lost_;  // why a rank that is waited for will not come
};

}  // namespace nccl
