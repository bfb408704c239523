#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace macatorch {

// Note [Replayed allocations]
// Upstream's caching allocator takes as long for a block as the CPU takes for a whole small operator. But it is a
// function of its history alone: what a request gets, and how every statistic changes, follow from which blocks are in
// use and which segments there are. A program that computes the same thing again (a loop, a training step) takes it
// through the same states again. So each step (a request or a free, in a state) that upstream's allocator has done once
// is remembered with its outcome, and a step that is known is not done but replayed: the block of a known free stays
// with upstream's allocator as taken (a ghost), and a known request gets that ghost back.
//
// Before upstream's allocator does anything itself, the ghosts are freed there: it never decides or counts anything in
// a state other than the program's own. So every address is the one that it would have given, and statistics are exact:
// its own, plus for each replayed step the change that was measured when it did that step. Peaks need nothing, as each
// state that a replay passes through was there before; when they are reset, everything learned is forgotten. (Only the
// requested size that a snapshot shows of an inactive block may be that of another of its former uses.)
//
// A state is a 64-bit number: the exclusive or of one for each block in use (address, sizes, stream). Whatever is not a
// plain request or free (a new segment, a retry, emptying the cache) begins a new count of states.

/// The steps of one device. Not thread-safe: the caller holds a lock.
class AllocationReplay {
 public:
  using Native = c10::cuda::CUDACachingAllocator::CUDAAllocator;
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  /// A place in the table of known blocks.
  struct Block {
    void* data = nullptr;
    uint64_t identity = 0;
    AllocationReplay* owner = nullptr;
    bool held = false;    // upstream's allocator has given it out
    bool live = false;    // the program has it
    bool listed = false;  // is in ghosts_
    uint64_t count = 0;   // Blocks::count_ when it was placed
  };
  /// Known blocks of all devices, by address; as a set of few places, so that its size does not follow the program's.
  class Blocks {
   public:
    Blocks() : places_(kSets * kWays) {}
    /// The live block at `data`, or nullptr.
    Block* find(void* data) noexcept;
    /// A place for the block at `data`, or nullptr. A live block may lose its own and is unknown then; a ghost never.
    Block* place(void* data) noexcept;
    /// Makes every block unknown. There are no ghosts.
    void forget() noexcept { ++count_; }

   private:
    static constexpr size_t kSets = 4096;
    static constexpr size_t kWays = 4;
    Block* set(void* data) noexcept;
    std::vector<Block> places_;
    uint64_t count_ = 1;
  };

  AllocationReplay(Native& native, Blocks& blocks, c10::DeviceIndex device);

  /// A known request's block, or nullptr.
  void* request(size_t nbytes, c10::StreamId stream) noexcept {
    Step* step = find(static_cast<uint64_t>(nbytes) << 1 | 1, stream);
    if (step == nullptr) {
      return nullptr;
    }
    Block& block = *step->block;
    if (block.identity != step->identity || !block.held || block.live) {
      return nullptr;
    }
    block.live = true;
    state_ ^= block.identity;
    count(*step);
    return block.data;
  }
  /// True if the free is known and done; the block is a ghost then.
  bool release(Block& block) noexcept {
    Step* step = find(reinterpret_cast<uint64_t>(block.data), 0);
    if (step == nullptr || step->identity != block.identity || ghosts_.size() >= kGhosts) {
      return false;
    }
    block.live = false;
    state_ ^= block.identity;
    if (!block.listed) {
      block.listed = true;
      ghosts_.push_back(&block);
    }
    count(*step);
    return true;
  }

  /// Before and after upstream's allocator serves a request that is not known.
  void before_request() { settle(), measure(); }
  void after_request(void* data, size_t nbytes, c10::StreamId stream);
  /// Lets upstream's allocator free the block.
  void release_native(Block& block);

  /// Frees the ghosts: upstream's allocator is in the program's own state.
  void settle();
  /// Forgets every step; what is in use stays known.
  void forget() noexcept;

  /// What upstream's allocator would say if it had done every step.
  Stats stats();
  void reset_accumulated();
  void reset_peaks();

  /// How many steps were replayed, in all.
  uint64_t replays() noexcept { return fold(), replays_; }

 private:
  static constexpr size_t kFields = 7;
  static constexpr size_t kSteps = 8192;
  static constexpr size_t kStepWays = 2;
  static constexpr size_t kGhosts = 256;

  /// What a step adds to the statistics that plain steps change, in all and in its pool.
  struct Change {
    std::array<int64_t, kFields> allocated{};
    std::array<int64_t, kFields> freed{};
    uint8_t pool = 0;
  };
  struct Step {
    uint64_t from = 0;
    uint64_t operation = 0;  // 2 * bytes + 1 of a request, the address of a free; 0: no step
    c10::StreamId stream = 0;
    Block* block = nullptr;
    uint64_t identity = 0;
    int64_t replays = 0;  // not yet in total_
  };

  Step* set(uint64_t operation, c10::StreamId stream) noexcept {
    uint64_t key = (state_ ^ operation * 0x9e3779b97f4a7c15u) + static_cast<uint64_t>(stream);
    key *= 0xd6e8feb86659fd93u;
    return &steps_[(key >> 32 & (kSteps / kStepWays - 1)) * kStepWays];
  }
  Step* find(uint64_t operation, c10::StreamId stream) noexcept {
    Step* step = set(operation, stream);
    for (size_t way = 0; way < kStepWays; ++way, ++step) {
      if (step->from == state_ && step->operation == operation && step->stream == stream) {
        return step;
      }
    }
    return nullptr;
  }
  void count(Step& step) noexcept {
    if (step.replays++ == 0) {
      touched_.push_back(&step);  // has room for every step
    }
  }

  void measure();
  bool difference(const Stats& after, Change* change) const;
  void learn(uint64_t operation, c10::StreamId stream, Block& block, const Change& change);
  void fold() noexcept;

  Native& native_;
  Blocks& blocks_;
  c10::DeviceIndex device_;
  uint64_t state_ = 0;
  std::vector<Step> steps_;
  std::vector<Change> changes_;  // of steps_
  std::vector<Step*> touched_;   // steps with replays
  uint64_t replays_ = 0;         // but for those of touched_
  std::vector<Block*> ghosts_;   // some of them may be live again
  Stats last_;                   // upstream's own, after its last step
  bool measured_ = false;        // last_ holds
  Stats peaks_;                  // of the time before upstream's own were reset by us
  // Replayed steps less the frees of ghosts: what upstream's counters lack.
  std::array<std::array<int64_t, 3>, kFields> allocated_{};
  std::array<std::array<int64_t, 3>, kFields> freed_{};
};

}  // namespace macatorch
