#include "ledger_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "files.h"
#include "process.h"

namespace mc {
namespace {

struct Header {
  char magic[16];
  uint32_t version;
  uint32_t recordBytes;
  uint64_t reserved[5];
};
static_assert(sizeof(Header) == sizeof(Record), "the header takes a record's place, so that records stay aligned");

constexpr Header kHeader = {"mxmaca ledger", 2, sizeof(Record), {}};

// The file begins with this much, so that a folder that fills up later does not matter to the first 127 accounts.
constexpr size_t kFirstBytes = 8192;
constexpr size_t kGrowth = 4096;
constexpr size_t kMostBytes = size_t{64} << 20;  // what is larger was not written by us

// The lock is held for microseconds. After this time its holder must have been stopped.
constexpr std::chrono::milliseconds kPatience{1000};

std::string systemError() { return std::strerror(errno); }

// One file a user and PID namespace: pids mean nothing across namespaces.
std::string fileName() {
  const int space = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
  const std::string name = "/mxmaca-2-" + std::to_string(geteuid()) + "-" + std::to_string(fileFacts(space).inode);
  if (space >= 0) close(space);
  return name;
}

// Writes a record or the header, which lie in one page.
bool writeWhole(int file, const void* data, size_t bytes, size_t offset) {
  ssize_t done;
  do {
    done = pwrite(file, data, bytes, static_cast<off_t>(offset));
  } while (done < 0 && errno == EINTR);
  return done == static_cast<ssize_t>(bytes);
}

// Appends `bytes`, or as many of them as there is room for but at least `least`, and returns where they begin; else -1.
off_t appendBlock(int file, const std::string& bytes, size_t least) {
  const int flags = fcntl(file, F_GETFL);
  if (flags < 0 || fcntl(file, F_SETFL, flags | O_APPEND) != 0) return -1;
  ssize_t done;
  do {
    done = ::write(file, bytes.data(), bytes.size());
  } while (done < 0 && errno == EINTR);
  const off_t end = done > 0 ? lseek(file, 0, SEEK_CUR) : -1;
  const int error = done < 0 ? errno : ENOSPC;
  fcntl(file, F_SETFL, flags);
  if (end > 0 && done >= static_cast<ssize_t>(least)) return end - done;
  errno = error;
  return -1;
}

// Unlocks before it closes: a process that is just being spawned may hold a copy of the descriptor.
void release(int file) {
  flock(file, LOCK_UN);
  close(file);
}

// Whether the first record is a part of the header, perhaps none of it, and zeros behind: the file is new, or it was
// cut short at any moment, also while this process was reading it or completing it.
bool beginsHeader(const Record& first) {
  const auto* const begin = reinterpret_cast<const char*>(&first);
  const auto* const wanted = reinterpret_cast<const char*>(&kHeader);
  const char* const differs = std::mismatch(begin, begin + sizeof first, wanted).first;
  return std::all_of(differs, begin + sizeof first, [](char each) { return each == 0; });
}

size_t missingToRecord(size_t bytes) { return (sizeof(Record) - bytes % sizeof(Record)) % sizeof(Record); }

}  // namespace

LedgerFile::LedgerFile() : patience_(kPatience) {
  const std::string name = fileName();
  const char* const chosen = std::getenv("MACA_STATE_DIR");
  const bool named = chosen != nullptr && *chosen != '\0';
  const std::vector<std::string> folders =
      named ? std::vector<std::string>{chosen} : std::vector<std::string>{"/dev/shm", "/tmp"};
  std::string reasons;
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    char resolved[PATH_MAX];  // absolute: the program may change its folder
    if (realpath(folder.c_str(), resolved) == nullptr) {
      reasons += (reasons.empty() ? "" : "; ") + folder + ": " + systemError();
    } else {
      paths.push_back(resolved + name);
    }
  }
  // Processes that count already come first: /dev/shm may have been full when they began.
  const auto used = std::find_if(paths.begin(), paths.end(), [this](const std::string& path) { return inUse(path); });
  if (used != paths.end()) std::rotate(paths.begin(), used, used + 1);
  for (const std::string& path : paths) {
    std::string reason;
    bool locked = false;
    const int file = open(path, &locked, &reason);
    if (file >= 0) {
      release(file);
      path_ = path;
      return;
    }
    reasons += (reasons.empty() ? "" : "; ") + path + ": " + reason;
  }
  if (named) {
    problem_ = "MACA_STATE_DIR: no account of device memory can be kept there (" + reasons +
               "); name a folder that exists, is writable and has room, or unset it";
    return;
  }
  warn("no account of device memory can be kept (" + reasons +
       "), so this process does not see what others hold; name a writable folder in MACA_STATE_DIR");
}

// Whether a living process has a record in the file.
bool LedgerFile::inUse(const std::string& path) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  const FileFacts facts = fileFacts(file);
  if (file >= 0) close(file);
  if (!facts.regular || facts.owner != geteuid() || facts.bytes > kMostBytes || !readFile(path, &text)) return false;
  if (text.size() < sizeof kHeader || std::memcmp(text.data(), &kHeader, sizeof kHeader) != 0) return false;
  for (size_t offset = sizeof kHeader; offset + sizeof(Record) <= text.size(); offset += sizeof(Record)) {
    Record record;
    std::memcpy(&record, text.data() + offset, sizeof record);
    if (isLiving(record.pid, record.start)) return true;
  }
  return false;
}

void LedgerFile::warn(const std::string& text) {
  if (std::find(warnings_.begin(), warnings_.end(), text) != warnings_.end()) return;
  warnings_.push_back(text);
  std::fprintf(stderr, "mxmaca: %s\n", text.c_str());
}

// Returns whether the lock is held; a reason, if it cannot be had at all.
bool LedgerFile::lock(int file, std::string* reason) {
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  for (int attempt = 0;; ++attempt) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
      patience_ = kPatience;
      return true;
    }
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      *reason = "cannot be locked: " + systemError();
      return false;
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    if (attempt < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(attempt, 1000)));
    }
  }
  // From now on without patience, until the lock has been had again.
  if (patience_ == kPatience) {
    const int64_t holder = lockHolder(fileFacts(file).inode);
    warn("the account of device memory is locked by " +
         (holder == 0 ? "another process" : "process " + std::to_string(holder)) +
         (holder != 0 && isStopped(holder) ? ", which is stopped" : "") +
         "; going on without the lock, so requests made at the same moment may be refused; let that process go on, or "
         "end it");
  }
  patience_ = std::chrono::milliseconds(0);
  return false;
}

std::string LedgerFile::readRecords(int file, size_t bytes) {
  records_.assign(bytes / sizeof(Record), Record{});
  auto* const to = reinterpret_cast<char*>(records_.data());
  const size_t wanted = records_.size() * sizeof(Record);
  for (size_t done = 0; done < wanted;) {
    const ssize_t length = pread(file, to + done, wanted - done, static_cast<off_t>(done));
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return systemError();
    if (length == 0) break;  // cut short meanwhile: the rest is nobody's
    done += static_cast<size_t>(length);
  }
  return "";
}

// Checks that the file is a ledger, makes a new one or one that was cut short into a whole one, and reads it.
std::string LedgerFile::checkAndRead(int file, const FileFacts& facts) {
  const char* const foreign = "is there, but not as an account of this user's device memory: remove it";
  if (!facts.regular || facts.owner != geteuid() || facts.bytes > kMostBytes) return foreign;
  if ((facts.permissions & 077) != 0) return "may be read or written by other users: remove it";
  const std::string problem = readRecords(file, std::max(facts.bytes, sizeof kHeader));
  if (!problem.empty()) return problem;
  if (std::memcmp(records_.data(), &kHeader, sizeof kHeader) != 0) {
    if (!beginsHeader(records_[0])) return foreign;
    if (!writeWhole(file, &kHeader, sizeof kHeader, 0)) return systemError();
  }
  records_[0] = Record{};
  const size_t bytes = facts.bytes < kFirstBytes ? fileFacts(file).bytes : facts.bytes;
  if (bytes >= kFirstBytes) return "";
  // By appending: without the lock another process may be adding records.
  const std::string zeros(kFirstBytes - bytes, '\0');
  if (appendBlock(file, zeros, zeros.size()) < 0) return systemError();
  records_.resize(kFirstBytes / sizeof(Record), Record{});
  return "";
}

int LedgerFile::open(const std::string& path, bool* locked, std::string* reason) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (file < 0) {
      *reason = systemError();
      return -1;
    }
    *locked = lock(file, reason);
    const FileFacts facts = fileFacts(file);
    const bool deleted = facts.exists && facts.links == 0;  // and perhaps made again, before the lock was there
    if (reason->empty() && !deleted) *reason = checkAndRead(file, facts);
    if (reason->empty() && !deleted) return file;
    release(file);
    if (!reason->empty()) return -1;
  }
  *reason = "is deleted again and again";
  return -1;
}

LedgerFile::Session::Session(LedgerFile& owner) : owner_(owner) {
  std::string reason;
  if (!owner_.path_.empty()) file_ = owner_.open(owner_.path_, &locked_, &reason);
  if (file_ >= 0) return;
  owner_.records_.clear();
  if (owner_.path_.empty()) return;
  owner_.warn("the account of device memory cannot be used (" + owner_.path_ + ": " + reason +
              "); until it can, this process does not see what others hold");
}

LedgerFile::Session::~Session() {
  if (file_ >= 0) release(file_);
}

bool LedgerFile::Session::read() {
  const std::string problem = owner_.readRecords(file_, std::min(fileFacts(file_).bytes, kMostBytes));
  if (!owner_.records_.empty()) owner_.records_[0] = Record{};
  if (problem.empty()) return true;
  owner_.warn("the account of device memory cannot be read (" + owner_.path_ + ": " + problem +
              "), so requests of device memory are refused");
  return false;
}

bool LedgerFile::Session::write(size_t place, const Record& record) {
  if (!writeWhole(file_, &record, sizeof record, place * sizeof(Record))) {
    owner_.warn("the account of device memory cannot be written (" + owner_.path_ + ": " + systemError() +
                "); other processes do not see what this one holds");
    return false;
  }
  owner_.records_[place] = record;
  return true;
}

size_t LedgerFile::Session::append(const Record& record) {
  const size_t padding = missingToRecord(fileFacts(file_).bytes);
  std::string block(padding + kGrowth, '\0');
  std::memcpy(&block[padding], &record, sizeof record);
  const off_t begin = appendBlock(file_, block, padding + sizeof record);
  if (begin < 0) {
    owner_.warn("the account of device memory cannot grow (" + owner_.path_ + ": " + systemError() +
                "), so other processes do not see what this one holds; make room there, or name another folder in "
                "MACA_STATE_DIR");
    return kNowhere;
  }
  const size_t at = static_cast<size_t>(begin) + padding;
  // Somebody else's append came between, in a file that was cut short: the next use tries again.
  if (at % sizeof(Record) != 0) return kNowhere;
  const size_t place = at / sizeof(Record);
  if (owner_.records_.size() <= place) owner_.records_.resize(place + 1, Record{});
  owner_.records_[place] = record;
  return place;
}

}  // namespace mc
