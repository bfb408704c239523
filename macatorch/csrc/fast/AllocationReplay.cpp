#include "fast/AllocationReplay.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>

namespace macatorch {
namespace {

using Stats = AllocationReplay::Stats;
using StatArray = decltype(Stats::allocation);
using Stat = StatArray::value_type;

// What plain requests and frees change.
constexpr StatArray Stats::* kPlain[] = {&Stats::allocation,      &Stats::active,       &Stats::inactive_split,
                                         &Stats::allocated_bytes, &Stats::active_bytes, &Stats::inactive_split_bytes,
                                         &Stats::requested_bytes};
constexpr StatArray Stats::* kSegments[] = {&Stats::segment, &Stats::reserved_bytes};
constexpr Stat Stats::* kOversize[] = {&Stats::oversize_allocations, &Stats::oversize_segments};
constexpr int64_t Stats::* kCounts[] = {&Stats::num_alloc_retries, &Stats::num_ooms, &Stats::num_sync_all_streams,
                                        &Stats::num_device_alloc, &Stats::num_device_free};

constexpr size_t kTypes = std::tuple_size_v<StatArray>;  // in all, small pool, large pool

bool same(const Stat& a, const Stat& b) { return a.allocated == b.allocated && a.freed == b.freed; }

void raise_peaks(Stats& stats, const Stats& least) {
  auto raise = [](Stat& stat, const Stat& other) { stat.peak = std::max(stat.peak, other.peak); };
  auto raise_all = [&](StatArray Stats::* field) {
    for (size_t type = 0; type < kTypes; ++type) {
      raise((stats.*field)[type], (least.*field)[type]);
    }
  };
  std::for_each(std::begin(kPlain), std::end(kPlain), raise_all);
  std::for_each(std::begin(kSegments), std::end(kSegments), raise_all);
  for (auto field : kOversize) {
    raise(stats.*field, least.*field);
  }
}

/// splitmix64's finalizer.
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/// A profiler that records memory is not told of frees that the program asked for before it began.
class Unrecorded {
 public:
  Unrecorded() {
    if (c10::memoryProfilingEnabled()) {
      guard_.emplace(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Nobody>());
    }
  }

 private:
  struct Nobody final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t, size_t, size_t, c10::Device) override {}
    bool memoryProfilingEnabled() const override { return false; }
  };
  std::optional<c10::DebugInfoGuard> guard_;
};

}  // namespace

AllocationReplay::Block* AllocationReplay::Blocks::set(void* data) noexcept {
  return &places_[(mix(reinterpret_cast<uint64_t>(data)) & (kSets - 1)) * kWays];
}

AllocationReplay::Block* AllocationReplay::Blocks::find(void* data) noexcept {
  Block* block = set(data);
  for (size_t way = 0; way < kWays; ++way, ++block) {
    if (block->data == data) {
      return block->live && block->count == count_ ? block : nullptr;
    }
  }
  return nullptr;
}

AllocationReplay::Block* AllocationReplay::Blocks::place(void* data) noexcept {
  Block* const first = set(data);
  Block* const end = first + kWays;
  Block* block = std::find_if(first, end, [&](const Block& b) { return b.data == data; });
  if (block == end) {
    block = std::find_if(first, end, [&](const Block& b) { return b.count != count_ || (!b.held && !b.listed); });
  }
  if (block == end) {
    block = std::find_if(first, end, [](const Block& b) { return !b.listed; });
  }
  if (block == end) {
    return nullptr;
  }
  block->count = count_;
  return block;
}

AllocationReplay::AllocationReplay(Native& native, Blocks& blocks, c10::DeviceIndex device)
    : native_(native), blocks_(blocks), device_(device), steps_(kSteps), changes_(kSteps) {
  touched_.reserve(kSteps);
  ghosts_.reserve(kGhosts);
  forget();
}

void AllocationReplay::forget() noexcept {
  static uint64_t counts = 0;
  state_ = mix(mix(++counts) ^ static_cast<uint64_t>(device_));
  measured_ = false;
}

void AllocationReplay::measure() {
  if (!measured_) {
    last_ = native_.getDeviceStats(device_);
    measured_ = true;
  }
}

/// What the step since last_ changed; false if it was not a plain one.
bool AllocationReplay::difference(const Stats& after, Change* change) const {
  const Stats& before = last_;
  for (auto field : kSegments) {
    if (!same((before.*field)[0], (after.*field)[0])) {
      return false;
    }
  }
  for (auto field : kOversize) {
    if (!same(before.*field, after.*field)) {
      return false;
    }
  }
  for (auto field : kCounts) {
    if (before.*field != after.*field) {
      return false;
    }
  }
  change->pool = same(before.active[1], after.active[1]) ? 2 : 1;
  for (size_t i = 0; i < kFields; ++i) {
    const StatArray& from = before.*kPlain[i];
    const StatArray& to = after.*kPlain[i];
    change->allocated[i] = to[0].allocated - from[0].allocated;
    change->freed[i] = to[0].freed - from[0].freed;
    const uint8_t pool = change->pool;
    if (to[pool].allocated - from[pool].allocated != change->allocated[i] ||
        to[pool].freed - from[pool].freed != change->freed[i]) {
      return false;
    }
  }
  // One block taken, or one given back: anything else (a block that waited for an event, say) is no plain step.
  return change->allocated[0] + change->freed[0] == 1 && change->allocated[1] == change->allocated[0] &&
         change->freed[1] == change->freed[0];
}

void AllocationReplay::learn(uint64_t operation, c10::StreamId stream, Block& block, const Change& change) {
  Step* step = find(operation, stream);
  if (step == nullptr) {
    step = set(operation, stream);
    step += step[0].operation != 0 && (step[1].operation == 0 || (state_ & 1) != 0);  // any of the two
  }
  if (step->replays != 0) {
    fold();
  }
  *step = Step{state_, operation, stream, &block, block.identity, 0};
  changes_[static_cast<size_t>(step - steps_.data())] = change;
}

void AllocationReplay::after_request(void* data, size_t nbytes, c10::StreamId stream) {
  const Stats after = native_.getDeviceStats(device_);
  Change change;
  const bool plain = difference(after, &change);
  const int64_t size = after.allocated_bytes[0].allocated - last_.allocated_bytes[0].allocated;
  last_ = after;
  Block* const place = data == nullptr ? nullptr : blocks_.place(data);
  if (place == nullptr) {
    return forget();
  }
  Block& block = *place;
  const uint64_t identity = mix(mix(mix(mix(reinterpret_cast<uint64_t>(data)) ^ nbytes) ^ static_cast<uint64_t>(size)) ^
                                static_cast<uint64_t>(stream));
  block = Block{data, identity, this, true, true, false, block.count};
  if (plain) {
    learn(static_cast<uint64_t>(nbytes) << 1 | 1, stream, block, change);
    state_ ^= identity;
  } else {
    forget();
  }
}

void AllocationReplay::release_native(Block& block) {
  settle();
  measure();
  block.live = block.held = false;
  native_.raw_delete(block.data);
  const Stats after = native_.getDeviceStats(device_);
  Change change;
  const bool plain = difference(after, &change);
  last_ = after;
  if (plain) {
    learn(reinterpret_cast<uint64_t>(block.data), 0, block, change);
    state_ ^= block.identity;
  } else {
    forget();
  }
}

void AllocationReplay::settle() {
  const bool any = std::any_of(ghosts_.begin(), ghosts_.end(), [](const Block* block) { return !block->live; });
  if (any) {
    measure();
    const Stats before = last_;
    Unrecorded guard;
    for (Block* block : ghosts_) {
      if (!block->live) {
        block->held = false;
        native_.raw_delete(block->data);
      }
    }
    const Stats after = native_.getDeviceStats(device_);
    bool new_peak = false;
    for (size_t i = 0; i < kFields; ++i) {
      const StatArray& from = before.*kPlain[i];
      const StatArray& to = after.*kPlain[i];
      for (size_t type = 0; type < kTypes; ++type) {
        allocated_[i][type] -= to[type].allocated - from[type].allocated;
        freed_[i][type] -= to[type].freed - from[type].freed;
        new_peak |= to[type].peak != from[type].peak;
      }
    }
    last_ = after;
    if (new_peak) {
      // The ghosts went in an order that the program never had, and left more split blocks between them for a moment.
      raise_peaks(peaks_, before);
      native_.resetPeakStats(device_);
      measured_ = false;
    }
  }
  for (Block* block : ghosts_) {
    block->listed = false;
  }
  ghosts_.clear();
}

void AllocationReplay::fold() noexcept {
  for (Step* step : touched_) {
    const Change& change = changes_[static_cast<size_t>(step - steps_.data())];
    for (size_t i = 0; i < kFields; ++i) {
      for (const size_t type : {size_t(0), size_t(change.pool)}) {
        allocated_[i][type] += step->replays * change.allocated[i];
        freed_[i][type] += step->replays * change.freed[i];
      }
    }
    replays_ += static_cast<uint64_t>(step->replays);
    step->replays = 0;
  }
  touched_.clear();
}

Stats AllocationReplay::stats() {
  settle();
  fold();
  Stats stats = native_.getDeviceStats(device_);
  for (size_t i = 0; i < kFields; ++i) {
    for (size_t type = 0; type < kTypes; ++type) {
      Stat& stat = (stats.*kPlain[i])[type];
      stat.allocated += allocated_[i][type];
      stat.freed += freed_[i][type];
    }
  }
  raise_peaks(stats, peaks_);
  return stats;
}

void AllocationReplay::reset_accumulated() {
  settle();
  fold();
  allocated_ = {};
  freed_ = {};
  native_.resetAccumulatedStats(device_);
  measured_ = false;
}

void AllocationReplay::reset_peaks() {
  settle();
  native_.resetPeakStats(device_);
  peaks_ = Stats();
  forget();
}

}  // namespace macatorch
