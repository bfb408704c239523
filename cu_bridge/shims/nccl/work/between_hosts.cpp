#include "work/between_hosts.h"

#include <algorithm>
#include <cstring>

#include "work/message.h"

namespace nccl {
namespace {

constexpr size_t kVerdictBytes = 4096;
constexpr size_t kAreaBytes = size_t{4} << 20;
static_assert(kVerdictBytes + 3 * kAreaBytes <= kStagingBytes, "three areas");
constexpr size_t kAim = size_t{1} << 20;  // bytes of an exchange
constexpr size_t kPiece = size_t{16} << 10;

enum AreaName { kGiven, kReceived, kResults };

// What the first rank of a host says of an exchange to the others.
struct Verdict {
  Result result;
  char text[2000];
};
static_assert(sizeof(Verdict) <= kVerdictBytes, "a page");

enum Purpose : uint64_t { kCalls = 1, kData, kSums, kMessage };
uint64_t tagOf(uint64_t purpose, int sender, uint64_t number) {
  return purpose << 61 | static_cast<uint64_t>(sender) << 50 | (number & ((uint64_t{1} << 50) - 1));
}

// Buffers that nothing is in may be null, or the same.
void copyBytes(char* to, const char* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

std::unique_ptr<Task> newTask(const std::shared_ptr<Communicator>& communicator, const Operation& operation) {
  const bool message = operation.kind == Kind::Send || operation.kind == Kind::Receive;
  const bool here = communicator->hosts == nullptr || (message && communicator->here(operation.peer));
  if (message && here) return std::make_unique<Message>(communicator, operation);
  if (message) return std::make_unique<HostsMessage>(communicator, operation);
  if (here) return std::make_unique<Collective>(communicator, operation);
  return std::make_unique<HostsCollective>(communicator, operation);
}

// ---- HostsCollective ------------------------------------------------------------------------------------------------

HostsCollective::HostsCollective(std::shared_ptr<Communicator> communicator, const Operation& operation)
    : comm_(std::move(communicator)),
      operation_(operation),
      element_(findElement(operation.type)),
      number_(comm_->collectives++),
      exchange_(comm_.get()) {
  ++comm_->unfinished;
}

char* HostsCollective::area(int which) const {
  return comm_->block.staging(turn_) + kVerdictBytes + static_cast<size_t>(which) * kAreaBytes;
}

size_t HostsCollective::firstOf(size_t host) const {
  size_t before = 0;
  for (size_t i = 0; i < host; ++i) before += ranksOf(i);
  return before;
}

// Of another host among the others.
size_t HostsCollective::among(size_t host) const { return host < own() ? host : host - 1; }

size_t HostsCollective::position(int rank) const {
  const auto index = static_cast<size_t>(rank);
  return firstOf(comm_->hosts->hostOf[index]) + comm_->hosts->placeOf[index];
}

// Elements times this are what the largest area of an exchange holds, on any host.
size_t HostsCollective::slots() const {
  const auto size = static_cast<size_t>(comm_->size);
  size_t most = 0;
  for (size_t host = 0; host < hosts(); ++host) most = std::max(most, ranksOf(host));
  switch (operation_.kind) {
    case Kind::AllReduce: return 2;  // the shares of the hosts are not quite equal
    case Kind::Reduce: return hosts();
    case Kind::Broadcast: return 1;
    case Kind::ReduceScatter: return std::max(size, most * hosts());
    case Kind::AllToAll: return size * most;
    default: return size;
  }
}

void HostsCollective::call() {
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
    call.factor = operation_.scaled.factor;
    if (operation_.scaled.deviceFactor != nullptr) {
      std::memcpy(&call.factor, operation_.scaled.deviceFactor, element_->bytes);
    }
  }
  mine_ = call;
  comm_->arrive();
}

std::string HostsCollective::mismatch() const {
  const int first = comm_->hosts->leader(own());
  for (const int rank : comm_->hosts->mine()) {
    if (differ(callOf(first), callOf(rank))) return differing(first, callOf(first), rank, callOf(rank));
  }
  return {};
}

std::string HostsCollective::foreignMismatch() const {
  for (size_t host = 0; host < hosts(); ++host) {
    if (host == own() || !differ(mine_, calls_[host])) continue;
    const int other = comm_->hosts->leader(host);
    return other < comm_->rank ? differing(other, calls_[host], comm_->rank, mine_)
                               : differing(comm_->rank, mine_, other, calls_[host]);
  }
  return {};
}

std::string HostsCollective::differing(int a, const Call& callOfA, int b, const Call& callOfB) const {
  return "the ranks' collectives differ: as no. " + std::to_string(number_ + 1) + " of the communicator rank " +
         std::to_string(a) + " calls " + describe(callOfA) + ", rank " + std::to_string(b) + " " + describe(callOfB);
}

// The next exchange.
void HostsCollective::begin() {
  turn_ = comm_->hosts->turns++;
  step_ = 0;
  const size_t most = std::max<size_t>(1, kAim / (slots() * width()));
  elements_ = std::min(most, operation_.count - done_);
}

// Reduces elements of this host's ranks, in their order, in the type of the accumulator.
Result HostsCollective::reduceHere(size_t from, size_t count, char* to) const {
  const size_t bytes = element_->bytes;
  std::vector<char> scratch(std::min(count, kPiece) * bytes);
  for (size_t done = 0; done < count; done += kPiece) {
    if (comm_->aborted) return kInternalError;
    const size_t elements = std::min(kPiece, count - done);
    const auto& ranks = comm_->hosts->mine();
    for (const int rank : ranks) {
      const Call call = callOf(rank);
      const void* const input = comm_->view(rank, call.send + (from + done) * bytes, elements * bytes, scratch.data());
      if (input == nullptr) return kRemoteError;
      const auto function = rank == ranks[0] ? element_->load : element_->combine;
      function(to + done * width(), input, elements, operation_.reduction, &call.factor);
    }
  }
  return kSuccess;
}

// Puts this rank's part of what its host gives into the area.
Result HostsCollective::fill() {
  const size_t slot = elements_ * width();
  const size_t place = comm_->hosts->placeOf[static_cast<size_t>(comm_->rank)];
  const size_t ranks = ranksOf(own());
  char* const given = area(kGiven);
  const auto* const from = static_cast<const char*>(operation_.send);
  const size_t bytes = element_->bytes;
  const bool root = operation_.peer == comm_->rank;
  switch (operation_.kind) {
    case Kind::AllReduce:
    case Kind::Reduce: {
      const size_t begin = share(ranks, place);
      return reduceHere(done_ + begin, share(ranks, place + 1) - begin, given + begin * width());
    }
    case Kind::ReduceScatter:
      for (int rank = 0; rank < comm_->size; ++rank) {
        if (static_cast<size_t>(rank) % ranks != place) continue;
        const Result result =
            reduceHere(static_cast<size_t>(rank) * operation_.count + done_, elements_, given + position(rank) * slot);
        if (result != kSuccess) return result;
      }
      return kSuccess;
    case Kind::AllGather:
    case Kind::Gather:
    case Kind::Split: copyBytes(given + place * slot, from + done_ * bytes, slot); return kSuccess;
    case Kind::Broadcast:
      if (root) copyBytes(given, from + done_ * bytes, slot);
      return kSuccess;
    case Kind::Scatter:
      for (int rank = 0; root && rank < comm_->size; ++rank) {
        copyBytes(given + position(rank) * slot, from + (static_cast<size_t>(rank) * operation_.count + done_) * bytes,
                  slot);
      }
      return kSuccess;
    case Kind::AllToAll:
      for (size_t host = 0; host < hosts(); ++host) {
        for (size_t to = 0; to < ranksOf(host); ++to) {
          const auto rank = static_cast<size_t>(comm_->hosts->members[host][to]);
          copyBytes(given + (firstOf(host) * ranks + place * ranksOf(host) + to) * slot,
                    from + (rank * operation_.count + done_) * bytes, slot);
        }
      }
      return kSuccess;
    default: return nccl::fail(kInternalError, "no such collective");
  }
}

void HostsCollective::exchangeCalls() {
  calls_.resize(hosts());
  for (size_t host = 0; host < hosts(); ++host) {
    if (host == own()) continue;
    const int other = comm_->hosts->leader(host);
    exchange_.receive(other, &calls_[host], sizeof(Call), tagOf(kCalls, other, number_));
    exchange_.send(other, &mine_, sizeof(Call), tagOf(kCalls, comm_->rank, number_));
  }
}

void HostsCollective::exchangeData() {
  const size_t slot = elements_ * width();
  const size_t here = ranksOf(own());
  const bool atRoot = rootHost() == own();
  for (size_t host = 0; host < hosts(); ++host) {
    if (host == own()) continue;
    const size_t there = ranksOf(host);
    const bool toRoot = host == rootHost();
    // Offsets and lengths in slots; a length of 0: nothing.
    size_t sendAt = 0;
    size_t sends = 0;
    size_t receiveAt = 0;
    size_t receives = 0;
    switch (operation_.kind) {
      case Kind::AllReduce: {
        const size_t begin = share(hosts(), host);
        sendBytes(host, area(kGiven) + begin * width(), (share(hosts(), host + 1) - begin) * width(), kData);
        const size_t mine = (share(hosts(), own() + 1) - share(hosts(), own())) * width();
        receiveBytes(host, area(kReceived) + among(host) * mine, mine, kData);
        break;
      }
      case Kind::Reduce:
        sends = toRoot ? 1 : 0;
        receiveAt = among(host);
        receives = atRoot ? 1 : 0;
        break;
      case Kind::ReduceScatter:
        sendAt = firstOf(host);
        sends = there;
        receiveAt = among(host) * here;
        receives = here;
        break;
      case Kind::Gather:
        sends = toRoot ? here : 0;
        receiveAt = firstOf(host);
        receives = atRoot ? there : 0;
        break;
      case Kind::Broadcast:
        sends = atRoot ? 1 : 0;
        receives = toRoot ? 1 : 0;
        break;
      case Kind::Scatter:
        sendAt = firstOf(host);
        sends = atRoot ? there : 0;
        receives = toRoot ? here : 0;
        break;
      case Kind::AllToAll:
        sendAt = firstOf(host) * here;
        sends = receives = here * there;
        receiveAt = firstOf(host) * here;
        break;
      default:  // AllGather, Split
        sends = here;
        receiveAt = firstOf(host);
        receives = there;
        break;
    }
    sendBytes(host, area(kGiven) + sendAt * slot, sends * slot, kData);
    receiveBytes(host, area(kReceived) + receiveAt * slot, receives * slot, kData);
  }
}

void HostsCollective::sendBytes(size_t host, const char* from, size_t bytes, uint64_t purpose) {
  if (bytes == 0) return;
  const int other = comm_->hosts->leader(host);
  exchange_.send(other, from, bytes, tagOf(purpose, comm_->rank, turn_));
  exchange_.flush(other);
}
void HostsCollective::receiveBytes(size_t host, char* to, size_t bytes, uint64_t purpose) {
  const int other = comm_->hosts->leader(host);
  if (bytes > 0) exchange_.receive(other, to, bytes, tagOf(purpose, other, turn_));
}

// Reduces the sums of all hosts in their order, and rounds.
void HostsCollective::combine(char* to, const char* given, const char* received, size_t stride, size_t count) const {
  std::vector<char> sum(count * width());
  const Element* const wide = element_->accumulatorBytes == element_->bytes ? element_ : findElement(kFloat32);
  const int kind = operation_.reduction == kScaledSum ? static_cast<int>(kSum) : operation_.reduction;
  for (size_t host = 0; host < hosts(); ++host) {
    const char* const from = host == own() ? given : received + among(host) * stride;
    if (host == 0) {
      copyBytes(sum.data(), from, sum.size());
    } else {
      wide->combine(sum.data(), from, count, kind, nullptr);
    }
  }
  element_->store(to, sum.data(), count, operation_.reduction, comm_->size);
}

void HostsCollective::exchangeSums() {
  const size_t begin = share(hosts(), own());
  const size_t count = share(hosts(), own() + 1) - begin;
  char* const results = area(kResults);
  const size_t bytes = element_->bytes;
  if (operation_.kind == Kind::Reduce) {
    if (rootHost() != own()) return;
    return combine(results, area(kGiven), area(kReceived), elements_ * width(), elements_);
  }
  if (count > 0) {
    combine(results + begin * bytes, area(kGiven) + begin * width(), area(kReceived), count * width(), count);
  }
  for (size_t host = 0; host < hosts(); ++host) {
    if (host == own()) continue;
    const size_t from = share(hosts(), host);
    sendBytes(host, results + begin * bytes, count * bytes, kSums);
    receiveBytes(host, results + from * bytes, (share(hosts(), host + 1) - from) * bytes, kSums);
  }
}

// One exchange with the other hosts, step by step. True when it is over.
bool HostsCollective::exchange(Result* result, std::string* text) {
  const bool sums = operation_.kind == Kind::AllReduce || operation_.kind == Kind::Reduce;
  for (;; ++step_) {
    if (step_ > 0 && !exchange_.over(result, text)) return false;
    if (*result != kSuccess) return true;
    if (step_ == 0 && done_ == 0) exchangeCalls();
    if (step_ == 1) {
      if (done_ == 0) *text = foreignMismatch();
      if (!text->empty()) {
        *result = nccl::fail(kInvalidUsage, *text);
        return true;
      }
      exchangeData();
    }
    if (step_ == 2 && sums) exchangeSums();
    if (step_ == 3) return true;
  }
}

// Copies this rank's result out of the areas.
void HostsCollective::take() {
  const size_t slot = elements_ * width();
  const size_t bytes = element_->bytes;
  const size_t place = comm_->hosts->placeOf[static_cast<size_t>(comm_->rank)];
  const size_t here = ranksOf(own());
  const char* const given = area(kGiven);
  const char* const received = area(kReceived);
  auto* const to = static_cast<char*>(operation_.receive);
  const bool root = operation_.peer == comm_->rank;
  const bool atRoot = rootHost() == own();
  switch (operation_.kind) {
    case Kind::Reduce:
      if (!root) return;
      [[fallthrough]];
    case Kind::AllReduce: return copyBytes(to + done_ * bytes, area(kResults), elements_ * bytes);
    case Kind::ReduceScatter:
      if (elements_ == 0) return;
      return combine(to + done_ * bytes, given + position(comm_->rank) * slot, received + place * slot, here * slot,
                     elements_);
    case Kind::Broadcast: return copyBytes(to + done_ * bytes, atRoot ? given : received, slot);
    case Kind::Scatter:
      return copyBytes(to + done_ * bytes, atRoot ? given + position(comm_->rank) * slot : received + place * slot,
                       slot);
    case Kind::Gather:
      if (!root) return;
      [[fallthrough]];
    default: break;
  }
  for (size_t host = 0; host < hosts(); ++host) {
    for (size_t at = 0; at < ranksOf(host); ++at) {
      const auto rank = static_cast<size_t>(comm_->hosts->members[host][at]);
      const char* from = nullptr;
      if (operation_.kind == Kind::AllToAll) {
        from = (host == own() ? given : received) + (firstOf(host) * here + at * here + place) * slot;
      } else {
        from = host == own() ? given + at * slot : received + (firstOf(host) + at) * slot;
      }
      copyBytes(to + (rank * operation_.count + done_) * bytes, from, slot);
    }
  }
}

Step HostsCollective::blocked(Bell** bell, uint32_t* seen, uint32_t word) const {
  *bell = &comm_->block.header().round;
  *seen = word;
  return Step::Blocked;
}

Step HostsCollective::over(Result result, const std::string& text) {
  if (result != kSuccess) comm_->noteFailure(result, text);
  --comm_->unfinished;
  comm_->turn.ring();
  return end(result, text);
}

// The ranks of this host learn of it by their block, those of others by the root.
Step HostsCollective::failed(Result result, const std::string& text) {
  comm_->noteFailure(result, text);
  comm_->leave(Presence::Aborted);
  return over(result, text);
}

void HostsCollective::look() {
  if (stage_ == Stage::Queued || stage_ == Stage::Exchanged || comm_->passed()) return;
  const uint64_t wanted = comm_->barriers;
  lost_ = comm_->lostRank([&](int rank) { return comm_->block.rank(rank).barriers.load() < wanted; });
}

void HostsCollective::drop() {
  exchange_.drop();
  over(kCudaError, name() + " was not done: the device has failed");
}

Step HostsCollective::advance(Bell** bell, uint32_t* seen) {
  if (comm_->aborted) {
    exchange_.drop();
    return over(kInternalError, name() + " was aborted");
  }
  if (stage_ == Stage::Queued) {
    const uint32_t turn = comm_->turn.word.load();
    if (turn != number_) {
      *bell = &comm_->turn;
      *seen = turn;
      return Step::Blocked;
    }
    std::string text;
    const Result failure = comm_->failure(&text);
    if (failure != kSuccess) return over(failure, text);
    if (slots() * width() > kAreaBytes) {
      const std::string refused = name() + " of so many ranks between hosts is not implemented";
      return failed(nccl::fail(kInvalidUsage, refused), refused);
    }
    call();
    stage_ = Stage::Called;
    return Step::Moved;
  }
  const uint32_t word = comm_->block.header().round.word.load();
  auto* const verdict = reinterpret_cast<Verdict*>(comm_->block.staging(turn_));
  if (stage_ == Stage::Exchanged) {
    Result result = kSuccess;
    std::string text;
    if (!exchange(&result, &text)) return blocked(bell, seen, word);
    if (result != kSuccess && result != kInvalidUsage) text = name() + " cannot end: " + text;
    verdict->result = result;
    std::strncpy(verdict->text, text.c_str(), sizeof verdict->text - 1);
    comm_->arrive();
    stage_ = Stage::Taken;
    return Step::Moved;
  }
  if (!comm_->passed()) {
    if (!lost_.empty()) return failed(kRemoteError, name() + " cannot end: " + lost_);
    return blocked(bell, seen, word);
  }
  if (stage_ == Stage::Taken) {
    if (verdict->result != kSuccess) {
      const std::string text(verdict->text, strnlen(verdict->text, sizeof verdict->text));
      return failed(nccl::fail(verdict->result, text), text);
    }
    take();
    done_ += elements_;
    if (done_ == operation_.count) return over(kSuccess, {});
  }
  if (stage_ == Stage::Called) {
    const std::string different = mismatch();
    if (!different.empty()) return failed(nccl::fail(kInvalidUsage, different), different);
  }
  if (stage_ == Stage::Filled) {
    stage_ = leads() ? Stage::Exchanged : Stage::Taken;
    if (!leads()) comm_->arrive();
    return Step::Moved;
  }
  begin();
  const Result result = fill();
  if (result != kSuccess) return failed(result, name() + " failed: " + lastError());
  comm_->arrive();
  stage_ = Stage::Filled;
  return Step::Moved;
}

// ---- HostsMessage ---------------------------------------------------------------------------------------------------

HostsMessage::HostsMessage(std::shared_ptr<Communicator> communicator, const Operation& operation)
    : comm_(std::move(communicator)), operation_(operation), exchange_(comm_.get()) {
  const auto peer = static_cast<size_t>(operation.peer);
  number_ = operation.kind == Kind::Send ? comm_->sent[peer]++ : comm_->received[peer]++;
  ++comm_->unfinished;
}

std::string HostsMessage::name() const {
  return std::string(kindName(operation_.kind)) + (operation_.kind == Kind::Send ? " to rank " : " from rank ") +
         std::to_string(operation_.peer);
}

Step HostsMessage::over(Result result, const std::string& text) {
  if (result != kSuccess) comm_->noteFailure(result, text);
  --comm_->unfinished;
  return end(result, text);
}

void HostsMessage::drop() {
  exchange_.drop();
  over(kCudaError, name() + " was not done: the device has failed");
}

Step HostsMessage::advance(Bell** bell, uint32_t* seen) {
  if (comm_->aborted) {
    exchange_.drop();
    return over(kInternalError, name() + " was aborted");
  }
  const size_t bytes = operation_.count * findElement(operation_.type)->bytes;
  if (!begun_) {
    begun_ = true;
    if (operation_.kind == Kind::Send) {
      exchange_.send(operation_.peer, operation_.send, bytes, tagOf(kMessage, comm_->rank, number_));
      exchange_.flush(operation_.peer);
    } else {
      exchange_.receive(operation_.peer, operation_.receive, bytes, tagOf(kMessage, operation_.peer, number_));
    }
    return Step::Moved;
  }
  Result result = kSuccess;
  std::string text;
  if (exchange_.over(&result, &text)) {
    if (result != kSuccess) text = name() + " cannot end: " + text;
    return result == kSuccess ? over(result, {}) : over(nccl::fail(result, text), text);
  }
  *bell = &comm_->turn;
  *seen = comm_->turn.word.load();
  return Step::Blocked;
}

}  // namespace nccl
