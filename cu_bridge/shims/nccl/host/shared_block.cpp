#include "host/shared_block.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#endif

namespace nccl {
namespace {

// fstat got a new name in glibc 2.33, which older systems lack.
int factsOf(int file, struct statx* facts) { return statx(file, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE, facts); }

constexpr char kMagic[8] = "mcnccl2";
constexpr size_t kPage = 4096;

// What a unique id holds.
struct Name {
  char magic[8];
  uint64_t number;
  uint64_t host;
  uint64_t started;
  uint64_t inode;
  int32_t process;
  int32_t file;
};
static_assert(sizeof(Name) <= sizeof(UniqueId) - 32, "fits NCCL's id, with an address behind it");

// Blocks that this process has made and whose ranks may still join.
struct Open {
  std::mutex mutex;
  std::map<uint64_t, int> files;
};
Open& openBlocks() {
  static auto* const open = new Open;  // never destroyed: threads may go on while the process exits
  return *open;
}

uint64_t mix(uint64_t hash, const char* text, size_t length) {
  for (size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3U;
  return hash;
}

size_t roundUp(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
size_t ranksAt() { return roundUp(sizeof(Header)); }
size_t payloadsAt(size_t ranks) { return ranksAt() + roundUp(ranks * sizeof(Rank)); }
size_t mailboxesAt(size_t ranks) { return payloadsAt(ranks) + ranks * 2 * kPayloadBytes; }
size_t stagingAt(size_t ranks) { return mailboxesAt(ranks) + ranks * ranks * sizeof(Mailbox); }
size_t blockBytes(size_t ranks) { return stagingAt(ranks) + 2 * kStagingBytes; }

}  // namespace

uint64_t thisHost() {
  char text[128] = "";
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : read(file, text, sizeof text);
  if (file >= 0) close(file);
  const uint64_t boot = mix(0xcbf29ce484222325U, text, got > 0 ? static_cast<size_t>(got) : 0);
  const ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text);
  return mix(boot, text, length > 0 ? static_cast<size_t>(length) : 0);
}

BlockName nameOf(const UniqueId& id) {
  Name name;
  std::memcpy(&name, &id, sizeof name);
  return {std::memcmp(name.magic, kMagic, sizeof kMagic) == 0, name.number, name.host};
}

int fileOfBlock(uint64_t number) {
  Open& all = openBlocks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.files.find(number);
  return found == all.files.end() ? -1 : found->second;
}

void Bell::wake() {
  if (sleepers.load() != 0) syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
void Bell::ring() {
  word.fetch_add(1);
  wake();
}
void Bell::sleep(uint32_t seen, int microseconds) {
  const timespec limit = {microseconds / 1000000, microseconds % 1000000 * 1000L};
  sleepers.fetch_add(1);
  if (word.load() == seen) syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
  sleepers.fetch_sub(1);
}

uint64_t startOfProcess(int process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  char text[1024];
  const size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = '\0';
  // The name of the program stands in parentheses and may hold anything; the start is the 20th field after it.
  const char* at = std::strrchr(text, ')');
  for (int field = 0; at != nullptr && field < 20; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

bool createBlock(UniqueId* id) {
  Name name{};
  std::memcpy(name.magic, kMagic, sizeof kMagic);
  if (getrandom(&name.number, sizeof name.number, 0) != sizeof name.number) return false;
  const int file = static_cast<int>(syscall(SYS_memfd_create, "mxmaca-nccl", MFD_CLOEXEC));
  struct statx facts{};
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.number = name.number;
  if (file < 0 || factsOf(file, &facts) != 0 || pwrite(file, &header, sizeof header, 0) != sizeof header) {
    const int error = errno;
    if (file >= 0) close(file);
    errno = error;
    return false;
  }
  name.host = thisHost();
  name.process = getpid();
  name.started = startOfProcess(name.process);
  name.inode = facts.stx_ino;
  name.file = file;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &name, sizeof name);
  Open& all = openBlocks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.files[name.number] = file;
  return true;
}

void retireBlock(uint64_t number) {
  Open& all = openBlocks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.files.find(number);
  if (found == all.files.end()) return;
  close(found->second);
  all.files.erase(found);
}

Block::~Block() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

Result Block::open(const UniqueId& id, int ranks, Founder* founder) {
  Name name;
  std::memcpy(&name, &id, sizeof name);
  if (std::memcmp(name.magic, kMagic, sizeof kMagic) != 0)
    return fail(kInvalidArgument, "this is no unique id of NCCL");
  *founder = {name.process, name.started};
  const std::string path = "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int openError = errno;
  struct statx facts{};
  Header header;
  const bool same = file >= 0 && factsOf(file, &facts) == 0 && facts.stx_ino == name.inode &&
                    pread(file, &header, sizeof header, 0) == sizeof header && header.number == name.number;
  if (!same) {
    if (file >= 0) close(file);
    const char* const why = file < 0 && openError == EACCES ? "may not be looked into by this one"
                                                            : "has ended, or all ranks have joined already";
    return fail(kRemoteError,
                "cannot join by this unique id: process " + std::to_string(name.process) + ", which made it, " + why);
  }
  bytes_ = blockBytes(static_cast<size_t>(ranks));
  // Every rank asks for the same size; should one ask for another, the first one's counts, which is checked below.
  const bool grown = static_cast<size_t>(facts.stx_size) >= bytes_ || ftruncate(file, static_cast<off_t>(bytes_)) == 0;
  void* const memory =
      grown ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return fail(kSystemError, "no memory for a communicator");
  memory_ = memory;
  ranks_ = ranks;
  uint32_t others = 0;
  if (!this->header().ranks.compare_exchange_strong(others, static_cast<uint32_t>(ranks)) &&
      others != static_cast<uint32_t>(ranks)) {
    return fail(kInvalidArgument, "this rank says that there are " + std::to_string(ranks) + " ranks, another one " +
                                      std::to_string(others));
  }
  return kSuccess;
}

Rank& Block::rank(int index) const { return reinterpret_cast<Rank*>(static_cast<char*>(memory_) + ranksAt())[index]; }
char* Block::payload(int rank, unsigned int number) const {
  return static_cast<char*>(memory_) + payloadsAt(static_cast<size_t>(ranks_)) +
         (static_cast<size_t>(rank) * 2 + number % 2) * kPayloadBytes;
}
Mailbox& Block::mailbox(int from, int to) const {
  auto* const all = reinterpret_cast<Mailbox*>(static_cast<char*>(memory_) + mailboxesAt(static_cast<size_t>(ranks_)));
  return all[static_cast<size_t>(from) * static_cast<size_t>(ranks_) + static_cast<size_t>(to)];
}
char* Block::staging(uint64_t turn) const {
  return static_cast<char*>(memory_) + stagingAt(static_cast<size_t>(ranks_)) + turn % 2 * kStagingBytes;
}

}  // namespace nccl
