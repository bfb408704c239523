#include "work/collective.h"

#include <algorithm>
#include <cstring>

namespace nccl {
namespace {

constexpr const char* kNames[] = {"AllReduce", "Reduce",  "Broadcast", "AllGather", "ReduceScatter", "AllToAll",
                                  "Gather",    "Scatter", "CommSplit", "Send",      "Recv"};
constexpr size_t kPayloadsRead = size_t{256} << 10;
constexpr size_t kPiece =
    size_t{16} << 10;  // elements; with the accumulator and a copy of a peer's in the second cache

bool hasRoot(Kind kind) {
  return kind == Kind::Reduce || kind == Kind::Broadcast || kind == Kind::Gather || kind == Kind::Scatter;
}

// The elements of all that are `part`'s to reduce: whole cache lines but for the last part.
size_t partBegin(size_t count, int ranks, int part) {
  const size_t each = (count / static_cast<size_t>(ranks) + 63) / 64 * 64;
  return std::min(count, each * static_cast<size_t>(part));
}
size_t partEnd(size_t count, int ranks, int part) {
  return part + 1 == ranks ? count : partBegin(count, ranks, part + 1);
}

// As long as it lives, the rank says that it may be writing memory of another one, which waits for the end of it if it
// aborts (Communicator::abort). Said before the other's presence is looked at: one of the two sees the other.
class Writing {
 public:
  Writing(Rank& self, int toRank) : self_(self) { self_.writesTo.store(static_cast<uint32_t>(toRank) + 1); }
  ~Writing() { self_.writesTo.store(0); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  Rank& self_;
};

}  // namespace

const char* kindName(Kind kind) {
  return static_cast<size_t>(kind) < sizeof kNames / sizeof *kNames ? kNames[static_cast<size_t>(kind)] : "?";
}

bool reduces(Kind kind) { return kind == Kind::AllReduce || kind == Kind::Reduce || kind == Kind::ReduceScatter; }

std::string describe(const Call& call) {
  const auto kind = static_cast<Kind>(call.kind);
  const Element* const element = findElement(call.type);
  std::string text = std::string(kindName(kind)) + " of " + std::to_string(call.count) + " " +
                     (element == nullptr ? "unknown elements" : element->name);
  if (reduces(kind)) text += std::string(" (") + reductionName(call.reduction) + ")";
  if (hasRoot(kind)) text += ", root " + std::to_string(call.root);
  return text;
}

bool differ(const Call& a, const Call& b) {
  return a.kind != b.kind || a.count != b.count || a.type != b.type || a.reduction != b.reduction || a.root != b.root;
}

Collective::Collective(std::shared_ptr<Communicator> communicator, const Operation& operation)
    : comm_(std::move(communicator)),
      operation_(operation),
      element_(findElement(operation.type)),
      number_(comm_->collectives++) {
  ++comm_->unfinished;
}

size_t Collective::given(int rank) const {
  const size_t bytes = operation_.count * element_->bytes;
  const auto ranks = static_cast<size_t>(comm_->size);
  switch (operation_.kind) {
    case Kind::ReduceScatter:
    case Kind::AllToAll: return bytes * ranks;
    case Kind::Broadcast: return rank == operation_.peer ? bytes : 0;
    case Kind::Scatter: return rank == operation_.peer ? bytes * ranks : 0;
    default: return bytes;
  }
}

bool Collective::within() const {
  const int giver = hasRoot(operation_.kind) ? operation_.peer : 0;
  // Each rank reads what all give, so with many of them it has to be less.
  return given(giver) <= std::min(kPayloadBytes, kPayloadsRead / static_cast<size_t>(comm_->size));
}

void Collective::call() {
  Call& call = comm_->block.rank(comm_->rank).calls[number_ % 2];
  call = {static_cast<uint32_t>(operation_.kind),
          operation_.type,
          operation_.reduction,
          operation_.peer,
          operation_.count,
          reinterpret_cast<uint64_t>(operation_.send),
          reinterpret_cast<uint64_t>(operation_.receive),
          0};
  if (operation_.reduction == kScaledSum) {
    const ScaledSum& scaled = operation_.scaled;
    call.factor = scaled.factor;
    if (scaled.deviceFactor != nullptr) std::memcpy(&call.factor, scaled.deviceFactor, element_->bytes);
  }
  if (within()) {
    const size_t bytes = given(comm_->rank);
    if (bytes > 0) std::memcpy(comm_->block.payload(comm_->rank, number_), operation_.send, bytes);
  }
  comm_->arrive();
}

std::string Collective::mismatch() const {
  const Call first = callOf(0);
  for (int rank = 1; rank < comm_->size; ++rank) {
    const Call other = callOf(rank);
    if (differ(first, other)) {
      return "the ranks' collectives differ: as no. " + std::to_string(number_ + 1) +
             " of the communicator rank 0 calls " + describe(first) + ", rank " + std::to_string(rank) + " " +
             describe(other);
    }
  }
  return {};
}

// Reduces `count` elements from `from` on over all ranks, to an address of each target.
Result Collective::reduce(size_t from, size_t count, const std::vector<Target>& targets) const {
  const size_t bytes = element_->bytes;
  const bool inBlock = within();
  // Whether loading is copying: the bytes may then come into the accumulator at once.
  const bool plain = element_->accumulatorBytes == bytes && operation_.reduction != kScaledSum;
  const size_t piece = std::min(count, kPiece);
  std::vector<char> accumulator(piece * element_->accumulatorBytes);
  std::vector<char> scratch(piece * bytes);
  for (size_t done = 0; done < count; done += piece) {
    if (comm_->aborted) return kInternalError;
    const size_t elements = std::min(piece, count - done);
    const size_t offset = (from + done) * bytes;
    for (int rank = 0; rank < comm_->size; ++rank) {
      const Call call = callOf(rank);
      char* const copied = rank == 0 && plain ? accumulator.data() : scratch.data();
      const void* const input = inBlock ? comm_->block.payload(rank, number_) + offset
                                        : comm_->view(rank, call.send + offset, elements * bytes, copied);
      if (input == nullptr) return kRemoteError;
      if (input == accumulator.data()) continue;
      const auto function = rank == 0 ? element_->load : element_->combine;
      function(accumulator.data(), input, elements, operation_.reduction, &call.factor);
    }
    const void* result = nullptr;
    for (const Target& target : targets) {
      const bool direct = comm_->peers[static_cast<size_t>(target.rank)] == nullptr;
      const uint64_t to = target.address + done * bytes;
      const Writing writing(comm_->block.rank(comm_->rank), target.rank);
      // A rank that aborts uses its memory again.
      if (comm_->block.rank(target.rank).presence.load() == Presence::Aborted) {
        return fail(kRemoteError, "rank " + std::to_string(target.rank) + " has aborted its communicator");
      }
      const bool first = result == nullptr;
      if (first) {
        void* const output = direct ? reinterpret_cast<void*>(to) : scratch.data();
        element_->store(output, accumulator.data(), elements, operation_.reduction, comm_->size);
        result = output;
      }
      if (first && direct) continue;
      if (comm_->write(target.rank, to, result, elements * bytes) != kSuccess) return kRemoteError;
    }
  }
  return kSuccess;
}

// Copies bytes of what a rank gives.
Result Collective::copy(void* to, int rank, uint64_t offset, size_t bytes) const {
  if (bytes == 0) return kSuccess;
  if (within()) {
    std::memcpy(to, comm_->block.payload(rank, number_) + offset, bytes);
    return kSuccess;
  }
  const uint64_t from = callOf(rank).send + offset;
  if (rank == comm_->rank) {
    if (to != reinterpret_cast<void*>(from)) std::memmove(to, reinterpret_cast<void*>(from), bytes);
    return kSuccess;
  }
  constexpr size_t kStride = size_t{8} << 20;  // between two looks whether the communicator was aborted
  for (size_t done = 0; done < bytes; done += kStride) {
    if (comm_->aborted) return kInternalError;
    const Result result =
        comm_->read(static_cast<char*>(to) + done, rank, from + done, std::min(kStride, bytes - done));
    if (result != kSuccess) return result;
  }
  return kSuccess;
}

// What a rank does when all have called.
Result Collective::work() {
  const size_t bytes = operation_.count * element_->bytes;
  const int self = comm_->rank;
  const int root = operation_.peer;
  auto* const out = static_cast<char*>(operation_.receive);
  const auto at = reinterpret_cast<uint64_t>(operation_.receive);
  const size_t begin = partBegin(operation_.count, comm_->size, self);
  const size_t end = partEnd(operation_.count, comm_->size, self);
  std::vector<Target> targets;
  switch (operation_.kind) {
    case Kind::AllReduce:
      if (within()) return reduce(0, operation_.count, {{self, at}});
      for (int step = 0; step < comm_->size; ++step) {
        const int rank = (self + step) % comm_->size;
        targets.push_back({rank, callOf(rank).receive + begin * element_->bytes});
      }
      return reduce(begin, end - begin, targets);
    case Kind::Reduce:
      if (within()) return self == root ? reduce(0, operation_.count, {{self, at}}) : kSuccess;
      return reduce(begin, end - begin, {{root, callOf(root).receive + begin * element_->bytes}});
    case Kind::ReduceScatter:
      return reduce(static_cast<size_t>(self) * operation_.count, operation_.count, {{self, at}});
    case Kind::Broadcast: return copy(out, root, 0, bytes);
    case Kind::Scatter: return copy(out, root, static_cast<uint64_t>(self) * bytes, bytes);
    case Kind::Gather:
      if (self != root) return kSuccess;
      [[fallthrough]];
    case Kind::AllGather:
    case Kind::AllToAll:
    case Kind::Split:
      // Each rank begins with its own, so that not all read the same one at once.
      for (int step = 0; step < comm_->size; ++step) {
        const int rank = (self + step) % comm_->size;
        const uint64_t offset = operation_.kind == Kind::AllToAll ? static_cast<uint64_t>(self) * bytes : 0;
        const Result result = copy(out + static_cast<size_t>(rank) * bytes, rank, offset, bytes);
        if (result != kSuccess) return result;
      }
      return kSuccess;
    default: return fail(kInternalError, "no such collective");
  }
}

Step Collective::blocked(Bell** bell, uint32_t* seen, uint32_t word) const {
  *bell = &comm_->block.header().round;
  *seen = word;
  return Step::Blocked;
}

// The next collective's turn comes. After a loss no barrier of this communicator will be passed any more.
Step Collective::over(Result result, const std::string& text) {
  if (result != kSuccess) comm_->noteFailure(result, text);
  --comm_->unfinished;
  comm_->turn.ring();
  return end(result, text);
}

void Collective::look() {
  if (stage_ == Stage::Queued || comm_->passed()) return;
  const uint64_t wanted = comm_->barriers;
  lost_ = comm_->lostRank([&](int rank) { return comm_->block.rank(rank).barriers.load() < wanted; });
}

void Collective::drop() { over(kCudaError, name() + " was not done: the device has failed"); }

Step Collective::advance(Bell** bell, uint32_t* seen) {
  if (stage_ == Stage::Queued) {
    if (comm_->aborted) return over(kInternalError, name() + " was aborted");
    const uint32_t turn = comm_->turn.word.load();
    if (turn != number_) {
      *bell = &comm_->turn;
      *seen = turn;
      return Step::Blocked;
    }
    std::string text;
    const Result failure = comm_->failure(&text);
    if (failure != kSuccess) return over(failure, text);
    call();
    stage_ = Stage::Called;
    return Step::Moved;
  }
  const uint32_t word = comm_->block.header().round.word.load();
  if (!comm_->passed()) {
    if (comm_->aborted) return over(kInternalError, name() + " was aborted");
    if (!lost_.empty()) return over(kRemoteError, name() + " cannot end: " + lost_);
    return blocked(bell, seen, word);
  }
  if (stage_ == Stage::Worked) return over(kSuccess, {});
  const std::string different = mismatch();
  if (!different.empty()) return over(kInvalidUsage, different);
  const Result result = work();
  if (result == kSuccess && within()) return over(kSuccess, {});
  if (result != kSuccess) {
    // The other ranks learn of it: no barrier of theirs will be passed any more.
    comm_->leave(Presence::Aborted);
    return over(result, comm_->aborted ? name() + " was aborted" : name() + " failed: " + lastError());
  }
  comm_->arrive();
  stage_ = Stage::Worked;
  return Step::Moved;
}

}  // namespace nccl
