#include "net/link.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

namespace nccl::net {
namespace {

constexpr auto kConnect = std::chrono::milliseconds(8000);

// Tries again as long as a network that comes up just now might be the reason.
int connectPatiently(const Address& root) {
  const Clock::time_point until = Clock::now() + kConnect;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    const int file = connectTo(root, static_cast<int>(std::max<int64_t>(left, 0)));
    const bool passing = errno == EHOSTUNREACH || errno == ENETUNREACH || errno == ECONNREFUSED;
    if (file >= 0 || !passing || Clock::now() >= until) return file;
    usleep(200000);
  }
}

// What the thread and the rank share; it is there until both have let go.
struct Shared {
  Address root;
  Asking asking;
  std::mutex mutex;
  std::unique_ptr<Wire> wire;  // when it is connected
  bool homed = false, complete = false, broken = false, told = false;
  UniqueId home{};
  std::vector<Member> members;
  std::map<int, Link::Loss> losses;  // by rank
  Link::Loss first;                  // of those that are no orderly ones
  std::weak_ptr<Endpoint> endpoint;
  std::atomic<bool> closed{false};

  void lose(int rank, const Link::Loss& loss) {
    losses.emplace(rank, loss);
    if (!loss.orderly && first.result == kSuccess) first = loss;
  }
  void breakOff(const std::string& why) {
    const std::lock_guard<std::mutex> lock(mutex);
    broken = true;
    // A root that ends when ranks have begun to leave is no failure: the endpoints tell of those that follow.
    if (first.result == kSuccess && losses.empty()) first = {kRemoteError, false, why};
  }
};

void take(Shared& shared, const Frame& frame) {
  const std::lock_guard<std::mutex> lock(shared.mutex);
  Leaving leaving;
  if (frame.kind == FrameKind::Home) {
    shared.homed = frame.get(&shared.home);
  } else if (frame.kind == FrameKind::Table) {
    size_t at = 0;
    uint32_t length = 0;
    while (at + sizeof(RankFacts) + sizeof length <= frame.bytes.size()) {
      Member member;
      std::memcpy(&member.facts, frame.bytes.data() + at, sizeof(RankFacts));
      at += sizeof(RankFacts);
      std::memcpy(&length, frame.bytes.data() + at, sizeof length);
      at += sizeof length;
      member.endpoint = frame.bytes.substr(at, length);
      at += length;
      shared.members.push_back(std::move(member));
    }
    shared.complete = true;
  } else if (frame.kind == FrameKind::Left && frame.get(&leaving)) {
    const std::string text = frame.bytes.substr(sizeof leaving);
    const std::string name = "rank " + std::to_string(leaving.rank) + " (on another host)";
    // A root's text goes on where the name ends, a rank's stands by itself.
    const bool goesOn = !text.empty() && text[0] == ' ';
    if (leaving.presence == Presence::Finished) {
      shared.lose(leaving.rank, {kRemoteError, true, name + " has destroyed its communicator"});
    } else if (text.empty()) {
      shared.lose(leaving.rank, {kRemoteError, false, name + " has aborted its communicator"});
    } else {
      const Result result = leaving.result == kSuccess ? kRemoteError : static_cast<Result>(leaving.result);
      shared.lose(leaving.rank, {result, false, name + (goesOn ? "" : ": ") + text});
    }
  }
}

void carryOn(Shared& shared) {
  std::shared_ptr<Endpoint> endpoint;
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    endpoint = shared.endpoint.lock();
  }
  if (endpoint == nullptr) return;
  const std::unique_lock<std::mutex> lock(endpoint->mutex, std::try_to_lock);
  if (lock.owns_lock()) endpoint->progress();
}

void run(const std::shared_ptr<Shared>& shared) {
  const std::string where = "the process that made the unique id (" + textOf(shared->root) + ")";
  const int file = connectPatiently(shared->root);
  if (file < 0) return shared->breakOff("no connection to " + where + ": " + std::strerror(errno));
  Wire* wire = nullptr;
  {
    const std::lock_guard<std::mutex> lock(shared->mutex);
    shared->wire = std::make_unique<Wire>(file);
    wire = shared->wire.get();
    wire->write(FrameKind::Ask, bytesOf(shared->asking));
  }
  Clock::time_point beat = Clock::now();
  while (!shared->closed) {
    pollfd wanted = {file, POLLIN, 0};
    poll(&wanted, 1, 20);
    carryOn(*shared);
    const bool open = wire->fill();
    Frame frame{};
    while (wire->next(&frame)) take(*shared, frame);
    if (!open) return shared->breakOff(where + " has ended");
    if (wire->silent()) {
      return shared->breakOff(where + " has not been heard of for 5 seconds: its host or the network is down");
    }
    if (Clock::now() - beat < kBeat) continue;
    beat = Clock::now();
    const std::lock_guard<std::mutex> lock(shared->mutex);
    wire->write(FrameKind::Beat);
  }
}

class Connected : public Link {
 public:
  explicit Connected(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;
  ~Connected() override { shared_->closed = true; }

  bool home(UniqueId* block) override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    *block = shared_->home;
    return shared_->homed;
  }
  bool table(std::vector<Member>* members) override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (shared_->complete) *members = shared_->members;
    return shared_->complete;
  }
  void hello(const RankFacts& facts, const std::string& endpoint) override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->wire->write(FrameKind::Hello, bytesOf(facts) + endpoint);
  }
  void serve(const std::shared_ptr<Endpoint>& endpoint) override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->endpoint = endpoint;
  }
  bool lost(int rank, Loss* loss) override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    const auto found = shared_->losses.find(rank);
    if (found != shared_->losses.end()) {
      *loss = found->second;
      return true;
    }
    *loss = shared_->first;
    return shared_->broken && loss->result != kSuccess;
  }
  bool failed(Loss* loss) override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    *loss = shared_->first;
    return shared_->first.result != kSuccess;
  }
  void leave(Presence presence, Result result, const std::string& text) override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (shared_->told || shared_->wire == nullptr) return;
    shared_->told = true;
    shared_->wire->write(FrameKind::Left, bytesOf(Leaving{shared_->asking.rank, presence, result}) + text);
  }
  bool allLeft() override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    return shared_->broken || shared_->losses.size() + 1 >= static_cast<size_t>(shared_->asking.ranks);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::shared_ptr<Link> Link::open(const Address& root, const Asking& asking) {
  auto shared = std::make_shared<Shared>();
  shared->root = root;
  shared->asking = asking;
  try {
    std::thread([shared] { run(shared); }).detach();
  } catch (const std::system_error&) {
    return nullptr;
  }
  return std::make_shared<Connected>(shared);
}

}  // namespace nccl::net
