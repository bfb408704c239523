// Barriers of blocks and grids.

#include "execution/worker.h"

namespace mc {

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
    if (kind == mcBarrierGrid && launch_->gridBarrier == nullptr) {
      failHere(mcErrorLaunchFailure, "a grid barrier in a kernel that was not launched cooperatively");
    }
  } else if (!self->samePlace(first)) {
    failHere(mcErrorLaunchFailure, "__syncthreads() in divergent code: " + place(first, " waits") + ", " + place(self));
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
