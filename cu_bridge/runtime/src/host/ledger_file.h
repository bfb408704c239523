// The file of the ledger: where it lies, how it is opened, locked, read and written.
//
// Note: what the file may suffer The file lies where others can reach it: its folder fills up, it is cut short,
// replaced or deleted, a process is stopped or killed at any instruction. Nothing of that may end a process or lose
// what one holds. Therefore
// - it is opened anew for each use and never mapped: a mapped page that the folder has no room for is a SIGBUS, and a
//   descriptor that is kept is shared with forked children and may have been closed by the program;
// - what a process holds is known to itself, and the file only publishes it: a record that is missing is written again;
// - a process writes to its own records, and to others' only under the lock and when they belong to nobody;
// - without the lock (its holder is stopped) new records go to the end of the file, which the kernel makes exclusive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "files.h"

namespace mc {

// What one process holds of one account. Records never cross a page, so that none is written in halves.
struct Record {
  int64_t pid;  // 0: nobody's
  uint64_t start;
  uint64_t key;
  uint64_t bytes;
  int64_t rangesFile;  // residency.h
  uint64_t rangesInode;
  uint64_t reserved[2];
};
static_assert(sizeof(Record) == 64);

class LedgerFile {
 public:
  // Decides where the file lies: in the folder that MACA_STATE_DIR names, else in /dev/shm or /tmp.
  LedgerFile();

  // Why MACA_STATE_DIR cannot be followed; empty if it can. Without a file each process counts for itself.
  const std::string& problem() const { return problem_; }

  // One use of the file: opened, locked and read. The end of it closes the file, which drops the lock.
  class Session {
   public:
    explicit Session(LedgerFile& owner);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    bool usable() const { return file_ >= 0; }
    bool locked() const { return locked_; }
    // As they were read; the first one is the file's header and reads as nobody's.
    const std::vector<Record>& records() const { return owner_.records_; }
    bool read();  // again
    bool write(size_t place, const Record& record);
    // Adds a record at the end, where no other process can be writing. Returns its place, or kNowhere.
    size_t append(const Record& record);

   private:
    LedgerFile& owner_;
    int file_ = -1;
    bool locked_ = false;
  };

  static constexpr size_t kNowhere = SIZE_MAX;

 private:
  int open(const std::string& path, bool* locked, std::string* reason);
  std::string readRecords(int file, size_t bytes);
  std::string checkAndRead(int file, const FileFacts& facts);
  bool lock(int file, std::string* reason);
  bool inUse(const std::string& path);
  void warn(const std::string& text);

  std::string path_;  // empty: there is no file
  std::string problem_;
  std::vector<Record> records_;
  std::vector<std::string> warnings_;  // said already
  std::chrono::milliseconds patience_;
};

}  // namespace mc
