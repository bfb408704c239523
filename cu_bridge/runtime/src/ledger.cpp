#include "ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "files.h"

namespace mc {
namespace {

// Reads a small file of /proc whole; empty if it cannot be read.
std::string readSmallFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char text[4096];
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  return length > 0 ? std::string(text, static_cast<size_t>(length)) : "";
}

// Start time of a process in clock ticks since boot; 0 if there is no such process.
uint64_t startTime(int64_t pid) {
  const std::string text = readSmallFile("/proc/" + std::to_string(pid) + "/stat");
  size_t position = text.rfind(')');  // the command name may hold spaces
  if (position == std::string::npos) return 0;
  if (text.compare(position, 4, ") Z ") == 0 || text.compare(position, 4, ") X ") == 0) return 0;
  for (int field = 2; field < 22; ++field) {
    position = text.find(' ', position);
    if (position == std::string::npos) return 0;
    ++position;
  }
  return std::strtoull(text.c_str() + position, nullptr, 10);
}

size_t residentBytes(int64_t pid) {
  const std::string text = readSmallFile("/proc/" + std::to_string(pid) + "/statm");
  unsigned long long total = 0;
  unsigned long long resident = 0;
  if (std::sscanf(text.c_str(), "%llu %llu", &total, &resident) != 2) return 0;
  return static_cast<size_t>(resident) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// One book a user and PID namespace: pids mean nothing across namespaces.
int openBook(size_t bytes) {
  const int space = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
  const std::string name = "/mxmaca-1-" + std::to_string(geteuid()) + "-" + std::to_string(fileFacts(space).inode);
  if (space >= 0) close(space);
  const char* const chosen = std::getenv("MACA_STATE_DIR");
  for (const char* folder : {chosen, "/dev/shm", "/tmp"}) {
    if (folder == nullptr) continue;
    const int file = open((folder + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) continue;
    const FileFacts facts = fileFacts(file);
    const bool ours = facts.exists && facts.regular && facts.owner == geteuid();
    if (ours && (facts.bytes == bytes || ftruncate(file, static_cast<off_t>(bytes)) == 0)) {
      return file;
    }
    close(file);
  }
  return -1;
}

}  // namespace

class Ledger::Lock {
 public:
  explicit Lock(Ledger& ledger) : ledger_(ledger), guard_(ledger.mutex_) {
    while (ledger_.file_ >= 0 && flock(ledger_.file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() {
    if (ledger_.file_ >= 0) flock(ledger_.file_, LOCK_UN);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Ledger& ledger_;
  std::lock_guard<std::mutex> guard_;
};

Ledger::Ledger() {
  file_ = openBook(sizeof(Book));
  // Without a place for the file each process counts for itself.
  void* const memory = file_ >= 0
                           ? mmap(nullptr, sizeof(Book), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0)
                           : mmap(nullptr, sizeof(Book), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  book_ = memory == MAP_FAILED ? nullptr : static_cast<Book*>(memory);
}

Ledger::Account* Ledger::account(Slot& slot, uint64_t key) {
  for (Account& entry : slot.accounts) {
    if (entry.key == key) return &entry;
    if (entry.key == 0) {
      entry.key = key;
      return &entry;
    }
  }
  return nullptr;
}

Ledger::Slot* Ledger::ownSlot() {
  const int64_t pid = getpid();
  if (own_ != nullptr && ownPid_ == pid) return own_;
  if (book_ == nullptr) return nullptr;
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (Slot& slot : book_->slots) {
      if (slot.pid != 0 && slot.pid != pid) continue;  // the same pid: an earlier program of this or a dead process
      std::memset(slot.accounts, 0, sizeof slot.accounts);
      slot.start = startTime(pid);
      slot.pid = pid;
      own_ = &slot;
      ownPid_ = pid;
      return own_;
    }
    freeDeadSlots();
  }
  return nullptr;
}

void Ledger::freeDeadSlots() {
  if (book_ == nullptr) return;
  for (Slot& slot : book_->slots) {
    if (slot.pid == 0 || slot.pid == getpid()) continue;
    if (startTime(slot.pid) == slot.start) continue;
    std::memset(slot.accounts, 0, sizeof slot.accounts);
    slot.pid = 0;
  }
}

uint64_t Ledger::sum(uint64_t key) const {
  uint64_t total = 0;
  for (const Slot& slot : book_->slots) {
    if (slot.pid == 0) continue;
    for (const Account& entry : slot.accounts) {
      if (entry.key == 0) break;
      if (entry.key == key) total += entry.bytes;
    }
  }
  return total;
}

bool Ledger::charge(uint64_t key, size_t bytes, size_t capacity) {
  const Lock lock(*this);
  Slot* const slot = ownSlot();
  Account* const entry = slot == nullptr ? nullptr : account(*slot, key);
  if (entry == nullptr) return false;
  if (bytes > capacity) return false;
  if (sum(key) + bytes > capacity) {
    freeDeadSlots();
    if (sum(key) + bytes > capacity) return false;
  }
  entry->bytes += bytes;
  return true;
}

void Ledger::release(uint64_t key, size_t bytes) {
  const Lock lock(*this);
  Slot* const slot = ownSlot();
  Account* const entry = slot == nullptr ? nullptr : account(*slot, key);
  if (entry != nullptr) entry->bytes -= bytes < entry->bytes ? bytes : entry->bytes;
}

size_t Ledger::used(uint64_t key) {
  if (book_ == nullptr) return 0;
  const Lock lock(*this);
  freeDeadSlots();
  return sum(key);
}

std::vector<mcProcessUse> Ledger::users(uint64_t key) {
  std::vector<mcProcessUse> result;
  if (book_ == nullptr) return result;
  const Lock lock(*this);
  freeDeadSlots();
  for (const Slot& slot : book_->slots) {
    if (slot.pid == 0) continue;
    for (const Account& entry : slot.accounts) {
      if (entry.key == key && entry.bytes != 0) result.push_back({static_cast<int>(slot.pid), entry.bytes});
    }
  }
  return result;
}

size_t Ledger::untouchedByOthers() {
  size_t total = 0;
  if (book_ == nullptr) return total;
  const Lock lock(*this);
  freeDeadSlots();
  for (const Slot& slot : book_->slots) {
    if (slot.pid == 0 || slot.pid == getpid()) continue;
    size_t held = 0;
    for (const Account& entry : slot.accounts) held += entry.bytes;
    if (held == 0) continue;
    const size_t resident = residentBytes(slot.pid);
    total += held > resident ? held - resident : 0;
  }
  return total;
}

size_t Ledger::ownBytes() {
  if (book_ == nullptr) return 0;
  const Lock lock(*this);
  size_t held = 0;
  const Slot* const slot = ownSlot();
  if (slot == nullptr) return 0;
  for (const Account& entry : slot->accounts) held += entry.bytes;
  return held;
}

Ledger& ledger() {
  static auto* const instance = new Ledger;
  return *instance;
}

}  // namespace mc
