// What all processes of this user hold: the account book that gives a device one capacity across processes.
//
// A small file, mapped shared. A process owns a slot, keyed by pid and start time, so that what a killed process held is
// free for the next one. flock orders the changes: the kernel drops it with its holder.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "mc_runtime.h"

namespace mc {

class Ledger {
 public:
  Ledger();

  // Charges `bytes` to account `key` unless the total would exceed `capacity`.
  bool charge(uint64_t key, size_t bytes, size_t capacity);
  void release(uint64_t key, size_t bytes);

  size_t used(uint64_t key);                      // by all living processes
  std::vector<mcProcessUse> users(uint64_t key);  // one entry a process
  size_t untouchedByOthers();                     // bytes that others hold but have not written yet
  size_t ownBytes();                              // bytes that this process holds, of all accounts

 private:
  static constexpr int kSlots = 512;
  static constexpr int kAccounts = 66;  // devices, and pinned host memory

  struct Account {
    uint64_t key;
    uint64_t bytes;
  };
  struct Slot {
    int64_t pid;  // 0: free
    uint64_t start;
    Account accounts[kAccounts];
  };
  struct Book {
    Slot slots[kSlots];
  };

  class Lock;

  Account* account(Slot& slot, uint64_t key);
  Slot* ownSlot();
  void freeDeadSlots();
  uint64_t sum(uint64_t key) const;

  std::mutex mutex_;
  int file_ = -1;
  Book* book_ = nullptr;
  Slot* own_ = nullptr;
  int64_t ownPid_ = 0;
};

Ledger& ledger();

constexpr uint64_t kPinnedAccount = 2;  // device keys are odd

}  // namespace mc
