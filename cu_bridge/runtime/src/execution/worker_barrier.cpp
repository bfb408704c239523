// Barriers of blocks and grids.

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
  if (__builtin_expect(activeWaiting_ != 0, 0)) resolveActive(self->thread / kWarpSize);
  Fiber* const next = pickNext();
  if (__builtin_expect(next == nullptr, 0)) {
    reportStuck();
    leaveForScheduler();
  }
  switchTo(next);
  return static_cast<unsigned>(self->value);
}

}  // namespace mc
