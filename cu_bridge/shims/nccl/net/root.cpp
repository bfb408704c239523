#include "net/root.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "net/wire.h"

namespace nccl::net {
namespace {

struct Connection {
  explicit Connection(int file) : wire(file) {}
  Wire wire;
  int rank = -1;
  bool left = false;
};

class Root {
 public:
  Root(uint64_t number, uint64_t host, int listener, int wake, void* header)
      : number_(number), host_(host), listener_(listener), wake_(wake), header_(header) {}
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  ~Root() {
    if (listener_ >= 0) close(listener_);
    close(wake_);
    munmap(header_, sizeof(Header));
  }

  void retire() {
    retired_ = true;
    const uint64_t one = 1;
    if (write(wake_, &one, sizeof one) < 0) return;  // it looks every half second anyway
  }

  void serve() {
    Clock::time_point beat = Clock::now();
    while (!retired_ || !connections_.empty()) {
      wait();
      for (auto at = connections_.begin(); at != connections_.end();) {
        const bool open = at->wire.fill();
        Frame frame{};
        while (at->wire.next(&frame)) handle(*at, frame);
        const bool silent = at->wire.silent();
        if (open && !silent) {
          ++at;
          continue;
        }
        const int rank = at->left ? -1 : at->rank;
        at = connections_.erase(at);
        if (rank >= 0) {
          tell({rank, Presence::Aborted, kRemoteError},
               silent ? " has not been heard of for 5 seconds: its host or the network is down" : " has ended");
        }
      }
      if (Clock::now() - beat < kBeat) continue;
      beat = Clock::now();
      for (Connection& each : connections_) each.wire.write(FrameKind::Beat);
    }
  }

 private:
  void wait() {
    if (retired_ && listener_ >= 0) {
      close(listener_);
      listener_ = -1;
    }
    std::vector<pollfd> wanted = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};  // a file of -1 is passed over
    for (const Connection& each : connections_) wanted.push_back({each.wire.file(), POLLIN, 0});
    // Without ranks of other hosts there is nothing to send.
    poll(wanted.data(), wanted.size(), connections_.empty() ? -1 : static_cast<int>(kBeat.count() / 2));
    uint64_t count = 0;
    if ((wanted[0].revents & POLLIN) != 0 && read(wake_, &count, sizeof count) < 0) return;
    if ((wanted[1].revents & POLLIN) == 0) return;
    const int file = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (file >= 0) connections_.emplace_back(file);
  }

  void handle(Connection& from, const Frame& frame) {
    if (frame.kind == FrameKind::Ask) return answer(from, frame);
    if (from.rank < 0) return;
    if (frame.kind == FrameKind::Hello) {
      hellos_[from.rank] = frame.bytes;
      if (hellos_.size() == static_cast<size_t>(ranks_)) sendTable();
    } else if (frame.kind == FrameKind::Left) {
      Leaving leaving;
      if (!frame.get(&leaving)) return;
      from.left = true;
      leaving.rank = from.rank;
      tell(leaving, frame.bytes.substr(sizeof leaving));
    }
  }

  void answer(Connection& from, const Frame& frame) {
    Asking asking;
    if (!frame.get(&asking) || asking.number != number_) return;
    if (asking.rank < 0 || asking.rank >= asking.ranks) return;
    auto& header = *static_cast<Header*>(header_);
    uint32_t others = 0;
    const auto mine = static_cast<uint32_t>(asking.ranks);
    if (!header.ranks.compare_exchange_strong(others, mine) && others != mine) {
      return refuse(from, {asking.rank, Presence::Aborted, kInvalidArgument},
                    " says that there are " + std::to_string(mine) + " ranks, another one " + std::to_string(others));
    }
    for (const Connection& each : connections_) {
      if (each.rank == asking.rank) {
        return refuse(from, {asking.rank, Presence::Aborted, kInvalidUsage},
                      " is taken: two ranks have the same number, or the unique id was used before");
      }
    }
    ranks_ = asking.ranks;
    from.rank = asking.rank;
    if (asking.host != host_) {
      // The ranks of this host, which wait within its block, join here as well.
      header.hosts.store(1);
      header.door.wake();
    }
    from.wire.write(FrameKind::Home, bytesOf(homes_.emplace(asking.host, asking.block).first->second));
    for (const std::string& news : news_) from.wire.write(FrameKind::Left, news);
  }

  static void refuse(Connection& from, const Leaving& why, const std::string& text) {
    from.wire.write(FrameKind::Left, bytesOf(why) + text);
  }

  void sendTable() {
    std::string table;
    for (const auto& [rank, hello] : hellos_) {
      const auto address = static_cast<uint32_t>(hello.size() - sizeof(RankFacts));
      table += hello.substr(0, sizeof(RankFacts)) + bytesOf(address) + hello.substr(sizeof(RankFacts));
    }
    for (Connection& each : connections_) each.wire.write(FrameKind::Table, table);
  }

  void tell(const Leaving& leaving, const std::string& text) {
    news_.push_back(bytesOf(leaving) + text);
    for (Connection& each : connections_) {
      if (each.rank != leaving.rank) each.wire.write(FrameKind::Left, news_.back());
    }
  }

  const uint64_t number_, host_;
  int listener_;
  const int wake_;
  void* const header_;
  std::atomic<bool> retired_{false};
  int ranks_ = 0;
  std::list<Connection> connections_;
  std::map<uint64_t, UniqueId> homes_;  // by host
  std::map<int, std::string> hellos_;   // by rank
  std::vector<std::string> news_;       // who has left
};

struct Roots {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Root>> open;  // that ranks may still join, by number
};
Roots& roots() {
  static auto* const all = new Roots;  // never destroyed: threads may go on while the process exits
  return *all;
}

// Behind what the block itself writes into an id.
constexpr size_t kAddressAt = sizeof(UniqueId) - sizeof(Address);

}  // namespace

void makeReachable(UniqueId* id) {
  const BlockName block = nameOf(*id);
  std::string name;
  Address address{};
  if (!chooseInterface(&name, &address)) return;
  const int file = fileOfBlock(block.number);
  void* const header =
      file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (header == MAP_FAILED) return;
  const int listener = listenOn(&address);
  const int wake = eventfd(0, EFD_CLOEXEC);
  const auto root = std::make_shared<Root>(block.number, block.host, listener, wake, header);
  if (listener < 0 || wake < 0) return;
  try {
    std::thread([root] { root->serve(); }).detach();
  } catch (const std::system_error&) {
    return;
  }
  std::memcpy(id->data + kAddressAt, &address, sizeof address);
  Roots& all = roots();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.open[block.number] = root;
}

void retireRoot(uint64_t number) {
  Roots& all = roots();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.open.find(number);
  if (found == all.open.end()) return;
  found->second->retire();
  all.open.erase(found);
}

bool rootOf(const UniqueId& id, Address* address) {
  std::memcpy(address, id.data + kAddressAt, sizeof *address);
  return address->family != 0;
}

}  // namespace nccl::net
