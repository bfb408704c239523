#include "host/shared_event.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "host/files.h"
#include "host/process.h"

namespace mc {
namespace {

constexpr int kSlots = 1024;

// One event. All of zeros is a slot that was never used.
struct alignas(64) Slot {
  std::atomic<uint64_t> generation;  // odd while the event lives
  std::atomic<uint64_t> recorded;
  std::atomic<uint64_t> reached;
  std::atomic<int64_t> pid;     // who made the last record
  std::atomic<uint64_t> start;  // when that process began
  std::atomic<uint32_t> changes;
  std::atomic<uint32_t> waiting;  // at least as many as wait; who is killed stays counted
};
static_assert(sizeof(Slot) == 64 && std::atomic<uint64_t>::is_always_lock_free);

// A memfd with slots, so that a process with many such events does not run out of files. Nothing of it is left behind
// when its maker and those who have opened it are gone.
struct Arena {
  int file = -1;  // of its maker alone
  uint64_t inode = 0;
  Slot* slots = nullptr;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (slots != nullptr) munmap(slots, kSlots * sizeof(Slot));
    if (file >= 0) close(file);
  }
  bool map(int from) {
    void* const memory = mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, from, 0);
    if (memory == MAP_FAILED) return false;
    slots = static_cast<Slot*>(memory);
    inode = fileFacts(from).inode;
    return true;
  }
};

struct Free {
  std::shared_ptr<Arena> arena;
  int slot;
};

// Which slots of this process's arenas are free, the next one at the end.
struct Pool {
  std::mutex mutex;
  std::vector<Free> free;
};
Pool& pool() {
  static auto* const made = new Pool;  // events may outlive static objects
  return *made;
}

void wake(Slot& slot) {
  slot.changes.fetch_add(1);
  if (slot.waiting.load() != 0) syscall(SYS_futex, &slot.changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint64_t ownStart() {
  static const uint64_t start = startTime(getpid());
  return start;
}

class Shared final : public SharedEvent {
 public:
  Shared(std::shared_ptr<Arena> arena, int slot, bool own)
      : arena_(std::move(arena)), slot_(arena_->slots[slot]), number_(slot), own_(own) {
    if (own) {
      slot_.recorded.store(0, std::memory_order_relaxed);
      slot_.reached.store(0, std::memory_order_relaxed);
      slot_.generation.fetch_add(1, std::memory_order_release);
    }
    generation_ = slot_.generation.load(std::memory_order_acquire);
  }
  ~Shared() override {
    if (!own_) return;
    slot_.generation.fetch_add(1, std::memory_order_release);
    wake(slot_);
    Pool& all = pool();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.free.insert(all.free.begin(), {arena_, number_});
  }

  SharedEventHandle handle() const override { return {getpid(), arena_->inode, generation_, arena_->file, number_}; }

  uint64_t record() override {
    // Of two processes that record at once either may be taken for the last.
    slot_.pid.store(getpid(), std::memory_order_relaxed);
    slot_.start.store(ownStart(), std::memory_order_relaxed);
    return slot_.recorded.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  void reach(uint64_t record) override {
    uint64_t before = slot_.reached.load(std::memory_order_relaxed);
    while (before < record && !slot_.reached.compare_exchange_weak(before, record, std::memory_order_acq_rel)) {
    }
    wake(slot_);
  }
  uint64_t last() const override { return slot_.recorded.load(std::memory_order_acquire); }
  bool isReached(uint64_t record) const override {
    if (slot_.reached.load(std::memory_order_acquire) >= record) return true;
    if (slot_.generation.load(std::memory_order_acquire) != generation_) return true;
    const int64_t pid = slot_.pid.load(std::memory_order_relaxed);
    return pid != getpid() && !isLiving(pid, slot_.start.load(std::memory_order_relaxed));
  }
  void waitFor(uint64_t record) const override {
    slot_.waiting.fetch_add(1);
    while (true) {
      const uint32_t seen = slot_.changes.load();
      if (isReached(record)) break;
      // Who is killed wakes nobody: it is missed after this time.
      timespec limit{0, 50'000'000};
      syscall(SYS_futex, &slot_.changes, FUTEX_WAIT, seen, &limit, nullptr, 0);
    }
    slot_.waiting.fetch_sub(1);
  }

 private:
  std::shared_ptr<Arena> arena_;
  Slot& slot_;
  uint64_t generation_ = 0;
  int number_;
  bool own_;
};

}  // namespace

std::shared_ptr<SharedEvent> makeSharedEvent() {
  Pool& all = pool();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.free.empty()) {
    auto arena = std::make_shared<Arena>();
    arena->file = memfd_create("mxmaca-events", MFD_CLOEXEC);
    if (arena->file < 0 || ftruncate(arena->file, kSlots * sizeof(Slot)) != 0 || !arena->map(arena->file)) {
      return nullptr;
    }
    for (int slot = kSlots - 1; slot >= 0; --slot) all.free.push_back({arena, slot});
  }
  const Free next = all.free.back();
  all.free.pop_back();
  return std::make_shared<Shared>(next.arena, next.slot, true);
}

std::shared_ptr<SharedEvent> openSharedEvent(const SharedEventHandle& handle) {
  if (handle.pid <= 0 || handle.file < 0 || handle.slot < 0 || handle.slot >= kSlots) return nullptr;
  const std::string path = "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  auto arena = std::make_shared<Arena>();
  const FileFacts facts = fileFacts(file);
  const bool same = facts.inode == handle.inode && facts.bytes == kSlots * sizeof(Slot) && arena->map(file);
  close(file);
  if (!same) return nullptr;
  if (arena->slots[handle.slot].generation.load(std::memory_order_acquire) != handle.generation) return nullptr;
  return std::make_shared<Shared>(std::move(arena), handle.slot, false);
}

}  // namespace mc
