#include "work/creation.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "net/root.h"
#include "report/debug.h"
#include "work/between_hosts.h"

namespace nccl {

Join::Join(std::shared_ptr<Communicator> communicator, const UniqueId& id) : comm_(std::move(communicator)), id_(id) {}

Step Join::over(Result result, const std::string& text) {
  if (result != kSuccess) {
    comm_->noteFailure(result, text);
    if (comm_->block.ranks() > 0 && stage_ > Stage::Open) comm_->leave(Presence::Aborted);
    if (hosts_ != nullptr && hosts_->link != nullptr) hosts_->link->leave(Presence::Aborted, result, text);
  }
  return end(result, text);
}

// Joins the block of the id, or asks for that of this host.
Result Join::begin() {
  const BlockName name = nameOf(id_);
  if (!name.valid || name.host == thisHost()) {
    const Result result = enter(id_);
    if (result == kSuccess) stage_ = Stage::Door;
    return result;
  }
  net::Address root;
  if (!net::rootOf(id_, &root)) {
    return fail(kInvalidUsage,
                "the unique id was made on another host, or in another PID namespace, by a process that found no "
                "network interface to be reached by; NCCL_SOCKET_IFNAME chooses one");
  }
  if (!createBlock(&made_)) return fail(kSystemError, "no memory for a communicator");
  return openLink(root);
}

Result Join::openLink(const net::Address& root) {
  hosts_ = std::make_unique<net::Hosts>();
  const net::Asking asking{nameOf(id_).number, comm_->size, comm_->rank, thisHost(), made_};
  hosts_->link = net::Link::open(root, asking);
  stage_ = Stage::Home;
  return hosts_->link == nullptr ? fail(kSystemError, "no thread to make a communicator in") : kSuccess;
}

// Takes the rank's place in a block.
Result Join::enter(const UniqueId& id) {
  const Result result = comm_->block.open(id, comm_->size, &founder_);
  if (result != kSuccess) return result;
  Rank& place = comm_->block.rank(comm_->rank);
  Presence empty = Presence::Absent;
  if (!place.presence.compare_exchange_strong(empty, Presence::Joining)) {
    return fail(kInvalidUsage, "rank " + std::to_string(comm_->rank) +
                                   " is taken: two ranks have the same number, or the unique id was used before");
  }
  allowPeers();
  comm_->number = comm_->block.header().number;
  place.process = comm_->process;
  place.started = startOfProcess(comm_->process);
  place.device = comm_->physicalDevice;
  place.probe = reinterpret_cast<uint64_t>(&comm_->number);
  place.presence.store(Presence::Present);
  comm_->block.header().door.ring();
  return kSuccess;
}

// The root has named the block of this host: joins it, and tells the root that this rank is there.
Result Join::greet() {
  if (comm_->block.ranks() == 0) {
    UniqueId home;
    hosts_->link->home(&home);
    if (nameOf(home).number != nameOf(made_).number) retireBlock(nameOf(made_).number);
    const Result result = enter(home);
    if (result != kSuccess) return result;
  }
  std::string why;
  hosts_->endpoint = net::Endpoint::create(&why);
  if (hosts_->endpoint == nullptr) return fail(kSystemError, why);
  hosts_->link->hello({thisHost(), comm_->rank, comm_->process}, hosts_->endpoint->address());
  stage_ = Stage::Table;
  return kSuccess;
}

// Gets to know the other ranks.
Result Join::meet() {
  const Block& block = comm_->block;
  comm_->peers.resize(static_cast<size_t>(comm_->size));
  if (hosts_ != nullptr) {
    std::vector<net::Member> members;
    hosts_->link->table(&members);
    hosts_->arrange(members, comm_->rank);
    hosts_->link->serve(hosts_->endpoint);
    comm_->hosts = std::move(hosts_);
  }
  for (int rank = 0; rank < comm_->size; ++rank) {
    if (!comm_->here(rank)) continue;
    const Rank& other = block.rank(rank);
    for (int before = 0; before < rank; ++before) {
      if (!comm_->here(before) || block.rank(before).device != other.device) continue;
      return fail(kInvalidUsage, "Duplicate GPU detected: ranks " + std::to_string(before) + " and " +
                                     std::to_string(rank) + " both use device " + std::to_string(other.device) +
                                     ". A rank needs a device of its own; MACA_DEVICE_COUNT says how many there are");
    }
    if (other.process == comm_->process) continue;
    comm_->peers[static_cast<size_t>(rank)] = PeerProcess::find(other.process, other.started);
    uint64_t number = 0;
    const bool readable = comm_->peers[static_cast<size_t>(rank)]->read(&number, other.probe, sizeof number);
    const int error = errno;
    if (readable && number == comm_->number) continue;
    if (readable || error == ESRCH || error == EFAULT) {
      return fail(kRemoteError, "rank " + std::to_string(rank) + " (process " + std::to_string(other.process) +
                                    ") has ended while the communicator was made");
    }
    return fail(kSystemError, "cannot read the memory of rank " + std::to_string(rank) + " (process " +
                                  std::to_string(other.process) + "), process_vm_readv: " + std::strerror(error) +
                                  ". Ranks need this right; kernel.yama.ptrace_scope above 1, or a container's seccomp "
                                  "profile, takes it away");
  }
  return kSuccess;
}

void Join::look() {
  net::Link::Loss loss;
  if (hosts_ != nullptr && hosts_->link->failed(&loss)) lost_ = loss.why;
  if (stage_ == Stage::Door) {
    for (int rank = 0; rank < comm_->size; ++rank) {
      const Rank& other = comm_->block.rank(rank);
      const Presence presence = other.presence.load();
      const bool ended = presence == Presence::Aborted ||
                         (presence == Presence::Present && startOfProcess(other.process) != other.started);
      if (ended) lost_ = "rank " + std::to_string(rank) + " has ended";
    }
    if (startOfProcess(founder_.process) != founder_.started) {
      lost_ = "process " + std::to_string(founder_.process) + ", which made the unique id, has ended";
    }
  }
  if (stage_ != Stage::Probed) return;
  const uint64_t wanted = comm_->barriers;
  const std::string why = comm_->lostRank([&](int rank) { return comm_->block.rank(rank).barriers.load() < wanted; });
  if (!why.empty()) lost_ = why;
}

bool Join::arrived() {
  UniqueId home;
  std::vector<net::Member> members;
  switch (stage_) {
    case Stage::Home: return hosts_->link->home(&home);
    case Stage::Door:
      return comm_->block.header().door.word.load() == static_cast<uint32_t>(comm_->size) ||
             comm_->block.header().hosts.load() != 0;
    case Stage::Table: return hosts_->link->table(&members);
    case Stage::Probed: return comm_->passed();
    default: return true;
  }
}

Step Join::advance(Bell** bell, uint32_t* seen) {
  if (comm_->aborted) return over(kInternalError, "the communicator was aborted while it was made");
  Bell& where = stage_ == Stage::Door     ? comm_->block.header().door
                : stage_ == Stage::Probed ? comm_->block.header().round
                                          : comm_->turn;
  const uint32_t word = where.word.load();
  if (!arrived()) {
    if (!lost_.empty()) return over(kRemoteError, "the communicator cannot be made: " + lost_);
    *bell = &where;
    *seen = word;
    return Step::Blocked;
  }
  Result result = kSuccess;
  net::Address root;
  switch (stage_) {
    case Stage::Open: result = begin(); break;
    case Stage::Home: result = greet(); break;
    case Stage::Door:
      if (comm_->block.header().hosts.load() != 0 && net::rootOf(id_, &root)) {
        result = openLink(root);
        break;
      }
      [[fallthrough]];
    case Stage::Table:
      result = meet();
      if (result != kSuccess) break;
      comm_->arrive();
      stage_ = Stage::Probed;
      break;
    case Stage::Probed:
      retireBlock(comm_->number);
      net::retireRoot(comm_->number);
      comm_->sent.assign(static_cast<size_t>(comm_->size), 0);
      comm_->received.assign(static_cast<size_t>(comm_->size), 0);
      comm_->ready = true;
      debugLine(
          DebugLevel::Info,
          "communicator " + std::to_string(comm_->number) + ": rank " + std::to_string(comm_->rank) + " of " +
              std::to_string(comm_->size) +
              (comm_->hosts == nullptr ? std::string() : " on " + std::to_string(comm_->hosts->count()) + " hosts") +
              ", device " + std::to_string(comm_->device) + ", complete");
      return over(kSuccess, {});
  }
  return result == kSuccess ? Step::Moved : over(result, lastError());
}

// ---- Split ----------------------------------------------------------------------------------------------------------

Split::Split(const std::shared_ptr<Communicator>& parent, std::shared_ptr<Communicator> child, int color, int key)
    : parent_(parent),
      child_(std::move(child)),
      choice_{color, key},
      allChoices_(static_cast<size_t>(parent->size)),
      allIds_(static_cast<size_t>(parent->size)) {}

void Split::start() {
  const std::lock_guard<std::mutex> lock(parent_->mutex);
  choices_ = newTask(parent_, Operation{Kind::Split, &choice_, allChoices_.data(), sizeof choice_, kUint8, 0, 0, {}});
  ids_ = newTask(parent_, Operation{Kind::Split, &id_, allIds_.data(), sizeof id_, kUint8, 0, 0, {}});
}

Step Split::over(Result result, const std::string& text) {
  if (result != kSuccess && child_ != nullptr) child_->noteFailure(result, text);
  return end(result, text);
}

// The ranks of this rank's color, in the order of their keys; the first one makes the block.
Result Split::choose() {
  chosen_ = true;
  if (child_ == nullptr) return kSuccess;
  std::vector<int> members;
  for (int rank = 0; rank < parent_->size; ++rank) {
    if (allChoices_[static_cast<size_t>(rank)].color == choice_.color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return allChoices_[static_cast<size_t>(a)].key < allChoices_[static_cast<size_t>(b)].key;
  });
  first_ = members[0];
  child_->size = static_cast<int>(members.size());
  child_->rank = static_cast<int>(std::find(members.begin(), members.end(), parent_->rank) - members.begin());
  if (first_ != parent_->rank) return kSuccess;
  if (!createBlock(&id_)) return fail(kSystemError, "no memory for a communicator");
  if (parent_->hosts != nullptr) net::makeReachable(&id_);
  return kSuccess;
}

Step Split::advance(Bell** bell, uint32_t* seen) {
  Task& task = current();
  const Step step = task.advance(bell, seen);
  if (step != Step::Done) return step;
  if (task.result() != kSuccess) return over(task.result(), task.text());
  if (!chosen_) {
    // A block that could not be made is an empty id, which the other ranks of the color cannot join.
    if (choose() != kSuccess) id_ = {};
    return Step::Moved;
  }
  if (join_ != nullptr || child_ == nullptr) return over(kSuccess, {});
  join_ = std::make_unique<Join>(child_, allIds_[static_cast<size_t>(first_)]);
  return Step::Moved;
}

// ---- Shrink ---------------------------------------------------------------------------------------------------------

Shrink::Shrink(const std::shared_ptr<Communicator>& parent, std::shared_ptr<Communicator> child,
               std::vector<int> members)
    : parent_(parent), child_(std::move(child)), members_(std::move(members)), number_(++parent->shrinks) {
  hash_ = 0xcbf29ce484222325U;
  for (const int member : members_) hash_ = (hash_ ^ static_cast<uint64_t>(member)) * 0x100000001b3U;
}

Step Shrink::over(Result result, const std::string& text) {
  if (result != kSuccess) child_->noteFailure(result, text);
  return end(result, text);
}

void Shrink::look() {
  if (join_ != nullptr) return join_->look();
  const int first = members_[0];
  lost_ =
      parent_->lostRank([&](int rank) { return rank == first && parent_->block.rank(first).shrinks.load() < number_; });
}

Step Shrink::advance(Bell** bell, uint32_t* seen) {
  if (join_ != nullptr) {
    const Step step = join_->advance(bell, seen);
    return step == Step::Done ? over(join_->result(), join_->text()) : step;
  }
  Rank& founder = parent_->block.rank(members_[0]);
  Bell& door = parent_->block.header().door;
  if (members_[0] == parent_->rank) {
    UniqueId id;
    if (!createBlock(&id)) return over(kSystemError, "no memory for a communicator");
    founder.shrinkId = id;
    founder.shrinkMembers = hash_;
    founder.shrinks.store(number_);
    door.ring();
  }
  const uint32_t word = door.word.load();
  if (founder.shrinks.load() < number_) {
    if (!lost_.empty()) return over(kRemoteError, "the communicator cannot be shrunk: " + lost_);
    *bell = &door;
    *seen = word;
    return Step::Blocked;
  }
  if (founder.shrinkMembers != hash_) {
    return over(kInvalidArgument, "the ranks leave out different ranks");
  }
  join_ = std::make_unique<Join>(child_, founder.shrinkId);
  return Step::Moved;
}

}  // namespace nccl
