#pragma once

#include <mc_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace macatorch {

/// The signal pads of a group that shares symmetric memory, as one rank sees them. A pad has a word for each rank on
/// each channel. A rank puts a signal into its word of a peer's pad (0 becomes 1), and takes one out of its own pad (1
/// becomes 0). Whatever waits here must run as work that waits.
class SignalPads {
 public:
  /// `name` is the operator's, for who reads an error. A timeout of 0 milliseconds is none.
  SignalPads(const char* name, std::vector<uint32_t*> pads, int rank, size_t timeout_ms = 0);

  /// False, and the calling thread's error says which signal of whom: the time was up.
  bool put(int peer, int channel) const;
  bool wait(int peer, int channel) const;
  /// Returns when every rank has come here: each of them puts a signal to all others and waits for theirs.
  bool barrier(int channel) const;

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(pads_.size()); }

 private:
  /// Puts a signal into this rank's word of `peer`, or takes that of `peer` out of this rank's pad.
  bool pass(int peer, int channel, bool puts) const;

  const char* name_;
  std::vector<uint32_t*> pads_;
  int rank_;
  size_t timeout_ms_;
};

/// Returns when the word is not 0 any more.
void wait_for_word(const uint32_t* word);

/// The kernels behind SymmetricMemory's barrier, put_signal and wait_signal.
void register_signals();

}  // namespace macatorch
