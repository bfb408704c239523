// Barriers of blocks, by number too, and of grids.

#include "execution/worker.h"

namespace mc {

// Note: barriers of different places
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// `__syncthreads()` is PTX's barrier 0, which counts the warps that have come, from wherever. Programs make use of it:
// warps that do a part of their own have as many barriers in it as the others in theirs. CUDA asks all threads of a
// block for the same call, so a line says where they part. Lanes of one warp that wait in two places are an error: no
// program can mean it, and whether hardware goes on depends on its age.
void Worker::meetElsewhere(const Fiber* self, const Fiber* first, int kind) {
  bool parted = kind == mcBarrierGrid || barrierKind_ == mcBarrierGrid;
  const unsigned warp = self->thread / kWarpSize;
  for (uint32_t rest = liveLanes(warp); rest != 0; rest &= rest - 1) {
    const Fiber* const lane = byThread_[warp * kWarpSize + static_cast<unsigned>(__builtin_ctz(rest))];
    if (lane == nullptr || lane->state != State::kBarrier || self->samePlace(lane)) continue;
    first = lane;
    parted = true;
  }
  if (parted) {
    failHere(mcErrorLaunchFailure, "__syncthreads() in divergent code: " + place(first, " waits") + ", " + place(self));
  }
  if (!severalPlaces_ && !self->samePlace(first)) {
    warn("warps of one block meet in barriers of different places: " + place(first) + " and " + place(self) +
         "; CUDA asks all threads of the block for the same one");
    severalPlaces_ = true;
  }
}

void Worker::releaseBarrierIfComplete() {
  if (namedUsed_) {
    for (NamedBarrier& barrier : named_) releaseIfComplete(barrier);
  }
  if (arrived_ == 0 || arrived_ < live_) return;
  if (barrierKind_ == mcBarrierGrid && !launch_->gridBarrier->wait()) {
    failed_ = true;
    leaveForScheduler();
  }
  for (Fiber* fiber = barrier_.head; fiber != nullptr; fiber = fiber->next) {
    fiber->value = trueCount_;
    fiber->state = State::kReady;
  }
  arrived_ = trueCount_ = 0;
  release(barrier_);
}

unsigned Worker::barrier(int kind, int predicate, const char* file, int line) {
  Fiber* const self = currentFiber_;
  const Fiber* const first = barrier_.head;
  self->file = file;
  self->line = line;
  if (first == nullptr) {
    barrierKind_ = kind;
    severalPlaces_ = false;
    if (kind == mcBarrierGrid && launch_->gridBarrier == nullptr) {
      failHere(mcErrorLaunchFailure, "a grid barrier in a kernel that was not launched cooperatively");
    }
  } else if (__builtin_expect(severalPlaces_ || !self->samePlace(first), 0)) {
    meetElsewhere(self, first, kind);
  }
  self->state = State::kBarrier;
  ++arrived_;
  trueCount_ += predicate != 0;
  barrier_.push(self);
  if (arrived_ >= live_) releaseBarrierIfComplete();
  return static_cast<unsigned>(waitForOthers(self));
}

// Note: named barriers
// ~~~~~~~~~~~~~~~~~~~~
// PTX gives a block sixteen barriers, 0 being that of `__syncthreads()`. At each of them a number of threads meets that
// the program says, so groups of warps wait for each other, and a producer arrives where consumers wait. A barrier
// counts whole warps: lanes that a warp has not, or has no more, are there as soon as all that it has are.
void Worker::forgetNamedBarriers() {
  if (!namedUsed_) return;
  // What has arrived when a block ends, and nobody has waited for, is no error.
  for (NamedBarrier& barrier : named_) barrier = {};
  namedUsed_ = false;
}

bool Worker::isComplete(const NamedBarrier& barrier) const {
  if (barrier.arrived == 0) return false;
  if (barrier.expected == 0) return barrier.arrived >= live_;
  unsigned warps = 0;
  for (unsigned warp = 0; warp * kWarpSize < threads_; ++warp) {
    warps += barrier.lanes[warp] != 0 && (liveLanes(warp) & ~barrier.lanes[warp]) == 0;
  }
  return warps * kWarpSize >= barrier.expected;
}

void Worker::releaseIfComplete(NamedBarrier& barrier) {
  if (!isComplete(barrier)) return;
  for (Fiber* fiber = barrier.waiting.head; fiber != nullptr; fiber = fiber->next) {
    fiber->value = barrier.trueCount;
    fiber->state = State::kReady;
  }
  release(barrier.waiting);
  barrier = {};
}

unsigned Worker::namedBarrier(unsigned number, unsigned threads, bool arrive, int predicate, const char* file,
                              int line) {
  Fiber* const self = currentFiber_;
  const unsigned warp = self->thread / kWarpSize;
  const uint32_t lane = 1U << (self->thread % kWarpSize);
  self->file = file;
  self->line = line;
  const auto refuse = [&](const std::string& why) {
    failHere(mcErrorLaunchFailure, place(self, " comes") + " to barrier " + std::to_string(number) + " for " +
                                       std::to_string(threads) + " threads" + why);
  };
  if (number >= limits::kNamedBarriers) refuse(": a block has barriers 0 to 15");
  if (threads % kWarpSize != 0) refuse(": whole warps meet there, so it must be a multiple of 32");
  const bool whole = threads == 0 || threads >= (threads_ + kWarpSize - 1) / kWarpSize * kWarpSize;
  if (number == 0 && whole && !arrive) return barrier(mcBarrierPlain, predicate, file, line);
  if (arrive && threads == 0) refuse(" and does not wait, which needs a number");
  if (arrive && number == 0) refuse(" and does not wait: on this device barriers from 1 on can do that");
  NamedBarrier& meeting = named_[number];
  if (meeting.arrived != 0 && meeting.expected != threads) {
    refuse(", where others have come for " + std::to_string(meeting.expected));
  }
  if ((meeting.lanes[warp] & lane) != 0) refuse(" again, before these have met there");
  namedUsed_ = true;
  meeting.expected = threads;
  meeting.lanes[warp] |= lane;
  ++meeting.arrived;
  meeting.trueCount += predicate != 0;
  const bool warpIsThere = threads == 0 || (liveLanes(warp) & ~meeting.lanes[warp]) == 0;
  if (arrive) {
    if (warpIsThere) releaseIfComplete(meeting);
    return 0;
  }
  self->state = State::kNamedBarrier;
  self->value = number;
  meeting.waiting.push(self);
  if (warpIsThere) releaseIfComplete(meeting);
  return static_cast<unsigned>(waitForOthers(self));
}

}  // namespace mc
