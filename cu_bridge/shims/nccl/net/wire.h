// Frames between the ranks of a communicator over several hosts and the process that made its unique id. They carry no
// tensors: who takes part, signs of life, and who has left.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "host/shared_block.h"
#include "report/result.h"

namespace nccl::net {

using Clock = std::chrono::steady_clock;

constexpr auto kBeat = std::chrono::milliseconds(500);      // between two signs of life
constexpr auto kSilence = std::chrono::milliseconds(5000);  // after which the other side counts as lost

enum class FrameKind : uint32_t {
  Ask,    // a rank: which block is that of my host?            Asking
  Home,   // the answer                                         UniqueId
  Hello,  // a rank that has joined the block of its host       RankFacts, and its endpoint's address
  Table,  // all ranks: for each its facts, the length of its address (uint32_t), the address
  Beat,   // a sign of life
  Left,   // a rank has left, or is lost                        Leaving, and a text
};

struct Asking {
  uint64_t number;  // of the unique id
  int32_t ranks, rank;
  uint64_t host;
  UniqueId block;  // that the rank has made, if it should be the first of its host
};
struct RankFacts {
  uint64_t host;
  int32_t rank, process;
};
struct Leaving {
  int32_t rank;
  Presence presence;
  int32_t result;  // of the failure for which it left, or 0
};

struct Frame {
  FrameKind kind;
  std::string bytes;

  template <class Value>
  bool get(Value* value) const {
    if (bytes.size() < sizeof *value) return false;
    std::memcpy(value, bytes.data(), sizeof *value);
    return true;
  }
};
template <class Value>
std::string bytesOf(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// One connection. Writing and reading may be in two threads, but each in one.
class Wire {
 public:
  explicit Wire(int file);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  int file() const { return file_; }
  bool write(FrameKind kind, const std::string& bytes = {});
  bool fill();              // takes in what has come; false: the connection is over
  bool next(Frame* frame);  // false: no whole frame is there
  bool silent() const { return Clock::now() - heard_ > kSilence; }

 private:
  int file_;
  bool broken_ = false;
  std::string in_;
  Clock::time_point heard_ = Clock::now();
};

}  // namespace nccl::net
