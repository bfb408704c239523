// The process of another rank: whether it lives, and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace nccl {

class PeerProcess {
 public:
  // One object for each process, however many communicators know it.
  static std::shared_ptr<PeerProcess> find(int process, uint64_t started);

  PeerProcess(int process, uint64_t started);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  int process() const { return process_; }
  bool lives() const;
  // Copies from and to an address of that process. False with errno: ESRCH (it has ended), EFAULT (no such memory
  // there), EPERM (the system does not allow it).
  bool read(void* to, uint64_t from, size_t bytes) const;
  bool write(uint64_t to, const void* from, size_t bytes) const;

 private:
  int process_;
  uint64_t started_;
  int file_;  // pidfd, or -1 on a kernel without
};

// Lets processes of this user read this one's memory, where the Yama module restricts that to parents.
void allowPeers();

}  // namespace nccl
