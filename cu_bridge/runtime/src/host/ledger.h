// What all processes of this user hold: the account book that gives a device one capacity across processes.
//
// A process is known by pid and start time, so what a killed process held is free for the next one. The lock makes a
// request one step; without it a request is refused at worst: it is published before the sum is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "ledger_file.h"
#include "mc_runtime.h"

namespace mc {

// What one living process holds, of all accounts, and where it says which ranges of addresses that is.
struct Holder {
  int64_t pid;
  size_t bytes;
  int64_t rangesFile;
  uint64_t rangesInode;
};

class Ledger {
 public:
  Ledger();

  // Why the environment's choice of a folder cannot be followed; empty if it can.
  const std::string& problem() const { return file_.problem(); }

  // Charges `bytes` to account `key` unless the total would exceed `capacity`.
  bool charge(uint64_t key, size_t bytes, size_t capacity);
  void release(uint64_t key, size_t bytes);

  size_t used(uint64_t key);                      // by all living processes
  std::vector<mcProcessUse> users(uint64_t key);  // one entry a process
  size_t heldByAll();                             // of all accounts; processes that have ended may be counted
  std::vector<Holder> holders();                  // this process among them

 private:
  struct Own {
    uint64_t key;
    uint64_t bytes;
    size_t place;
  };
  class Use;

  Own& own(uint64_t key);
  uint64_t ownBytes(uint64_t key) const;
  Record recordOf(const Own& entry) const;
  void publish(LedgerFile::Session& session, Own& entry);
  uint64_t sum(LedgerFile::Session& session, uint64_t key, bool onlyLiving);

  std::mutex mutex_;
  LedgerFile file_;
  std::vector<Own> own_;  // what this process holds; the file only repeats it
  int64_t pid_ = 0;
  uint64_t start_ = 0;
};

Ledger& ledger();

constexpr uint64_t kPinnedAccount = 2;  // device keys are odd

}  // namespace mc
