// Operations of warps: lanes that meet exchange values.

#include <algorithm>
#include <cstdio>

#include "execution/worker.h"

namespace mc {

unsigned Worker::liveLanes(unsigned warp) const {
  const unsigned first = warp * kWarpSize;
  const unsigned lanes = std::min(kWarpSize, threads_ - first);
  const uint32_t there = lanes == kWarpSize ? 0xffffffffU : (1U << lanes) - 1;
  return there & ~ended_[warp];
}

// Note: lanes that take no part
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// CUDA asks all lanes that a mask names, and that have not ended, to call the same operation with the same mask. It
// leaves undefined what a shuffle takes from a lane that does not take part. A kernel that breaks this gets the values
// of the lanes' registers on a GPU, and here whatever this runtime makes of it, so it must not go unsaid:
// - Lanes that never come are waited for, and the launch fails when nothing else can go on (reportStuck).
// - A lane that has ended is not waited for. What is taken from it has all bits set, a NaN in floating point, and a
//   warning names kernel and line. That is no error, as many right kernels take such values and do not use them.
// - Lanes that left a loop or took the other branch may meet the others in an operation of another line, or be gone
//   when these go on. PTX allows the first, and CUDA the second to lanes that have ended; both are warned about, since
//   lanes of a GPU may meet in another way. A kernel is warned about once in a process.
void Worker::warnAbsentLane(const Fiber* reader) {
  const unsigned warp = reader->thread / kWarpSize, lane = reader->lane;
  std::string why = "the mask leaves it out";
  if (lane >= kWarpSize) {
    why = "a warp has 32";
  } else if (warp * kWarpSize + lane >= threads_) {
    why = "the block ends before it";
  } else if ((reader->mask >> lane & 1) != 0) {
    why = "it has ended";
  }
  warn(place(reader) + " takes a value from lane " + std::to_string(lane) + " of its warp, which takes no part (" +
       why + "): CUDA leaves the value undefined, here all its bits are 1");
}

// `there` exchange values now, `elsewhere` (or nobody) at another place than `leader`.
void Worker::checkPartners(unsigned warp, const Fiber* leader, const Fiber* elsewhere, uint32_t there) {
  const uint32_t gone = leader->mask & ended_[warp] & met_[warp];
  met_[warp] |= there;
  if (__builtin_expect(gone != 0, 0)) {
    warn(place(leader) + " calls a warp operation for lane " + std::to_string(__builtin_ctz(gone)) +
         " too, which took part in earlier ones and has ended: on a GPU it may still be on its way, and the result is "
         "undefined");
  }
  if (__builtin_expect(elsewhere != nullptr, 0)) {
    warn("lanes of one warp meet in warp operations of different places: " + place(leader) + " and " +
         place(elsewhere) + "; CUDA asks all lanes of the mask to call the same one");
  }
}

// Whether all live lanes of `mask` wait with this mask; if so, what each brought is turned into what each gets.
void Worker::completeWarp(unsigned warp, unsigned mask) {
  const uint32_t wanted = mask & liveLanes(warp);
  Fiber** const lanes = byThread_ + warp * kWarpSize;
  Fiber* leader = nullptr;
  const Fiber* elsewhere = nullptr;
  for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
    Fiber* const fiber = lanes[__builtin_ctz(rest)];
    if (fiber == nullptr || fiber->state != State::kWarp || fiber->mask != mask) return;
    if (leader == nullptr) leader = fiber;
    if (fiber->operation != leader->operation) {
      failHere(mcErrorLaunchFailure,
               "different warp operations with the same mask: " + place(leader) + " and " + place(fiber));
    }
    if (!fiber->samePlace(leader)) elsewhere = fiber;
  }
  if (leader == nullptr) return;
  if (leader->operation != mcWarpSync) checkPartners(warp, leader, elsewhere, wanted);
  unsigned long long results[kWarpSize] = {};
  switch (leader->operation) {
    case mcWarpSync: break;
    case mcWarpShuffle:
    case mcWarpShuffleUp:
    case mcWarpShuffleDown:
    case mcWarpShuffleXor:
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const unsigned from = lanes[lane]->lane;
        if (__builtin_expect(from < kWarpSize && (wanted >> from & 1) != 0, 1)) {
          results[lane] = lanes[from]->value;
        } else {
          results[lane] = ~0ULL;
          warnAbsentLane(lanes[lane]);
        }
      }
      break;
    case mcWarpMatch:
    case mcWarpMatchAll:
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        for (uint32_t other = wanted; other != 0; other &= other - 1) {
          const int peer = __builtin_ctz(other);
          if (lanes[peer]->value == lanes[lane]->value) results[lane] |= 1ULL << peer;
        }
      }
      break;
    case mcWarpBallot:
    case mcWarpAny:
    case mcWarpAll:
    case mcWarpUniform: {
      unsigned long long voted = 0;
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        voted |= lanes[lane]->value != 0 ? 1ULL << lane : 0;
      }
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) results[__builtin_ctz(rest)] = voted;
      break;
    }
    default: {
      unsigned long long all = leader->value;
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const unsigned long long value = lanes[lane]->value;
        const auto narrow = static_cast<uint32_t>(value);
        const auto sofar = static_cast<uint32_t>(all);
        if (lanes[lane] == leader) continue;
        switch (leader->operation) {
          case mcWarpAdd: all = sofar + narrow; break;
          case mcWarpMinSigned:
            all = static_cast<uint32_t>(std::min(static_cast<int32_t>(sofar), static_cast<int32_t>(narrow)));
            break;
          case mcWarpMaxSigned:
            all = static_cast<uint32_t>(std::max(static_cast<int32_t>(sofar), static_cast<int32_t>(narrow)));
            break;
          case mcWarpMinUnsigned: all = std::min(sofar, narrow); break;
          case mcWarpMaxUnsigned: all = std::max(sofar, narrow); break;
          case mcWarpAnd: all = sofar & narrow; break;
          case mcWarpOr: all = sofar | narrow; break;
          case mcWarpXor: all = sofar ^ narrow; break;
          default: break;
        }
      }
      for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
        results[__builtin_ctz(rest)] = static_cast<uint32_t>(all);
      }
      break;
    }
  }
  Queue woken;
  for (uint32_t rest = wanted; rest != 0; rest &= rest - 1) {
    Fiber* const fiber = lanes[__builtin_ctz(rest)];
    fiber->value = results[__builtin_ctz(rest)];
    fiber->state = State::kReady;
    woken.push(fiber);
  }
  inWarp_[warp] &= ~wanted;
  release(woken);
}

// Ended lanes are not waited for: the rest of a group may be complete now.
void Worker::warpLostThreads(unsigned warp) {
  Fiber** const lanes = byThread_ + warp * kWarpSize;
  for (uint32_t rest = inWarp_[warp]; rest != 0; rest &= rest - 1) {
    const Fiber* const fiber = lanes[__builtin_ctz(rest)];
    const uint32_t wanted = fiber->mask & liveLanes(warp);
    if ((wanted & ~inWarp_[warp]) == 0) completeWarp(warp, fiber->mask);
    rest &= inWarp_[warp];
    if (rest == 0) break;
  }
  if (activeWaiting_ != 0) resolveActive(warp);
}

unsigned long long Worker::exchange(mcWarpOperation operation, unsigned mask, unsigned long long value, unsigned lane,
                                    const char* file, int line) {
  Fiber* const self = currentFiber_;
  self->file = file;
  self->line = line;
  const unsigned warp = self->thread / kWarpSize;
  const uint32_t own = 1U << (self->thread % kWarpSize);
  if (__builtin_expect((mask & own) == 0, 0)) {
    char text[96];
    std::snprintf(text, sizeof text, "the mask 0x%08x of a warp operation leaves out its caller: ", mask);
    failHere(mcErrorLaunchFailure, text + place(self));
  }
  self->state = State::kWarp;
  self->operation = static_cast<uint8_t>(operation);
  self->mask = mask;
  self->value = value;
  self->lane = lane;
  inWarp_[warp] |= own;
  // Only the last one to come finds the group complete.
  if ((mask & liveLanes(warp) & ~inWarp_[warp]) == 0) completeWarp(warp, mask);
  return waitForOthers(self);
}

// Which lanes are active is known when no lane of the warp can come any more: those that then ask at the same place
// are.
unsigned Worker::activeLanes(const char* file, int line) {
  Fiber* const self = currentFiber_;
  self->state = State::kActive;
  self->file = file;
  self->line = line;
  ++activeWaiting_;
  resolveActive(self->thread / kWarpSize);
  Fiber* const next = pickNext();
  if (next == nullptr) {
    reportStuck();
    leaveForScheduler();
  }
  switchTo(next);
  return static_cast<unsigned>(self->value);
}

void Worker::resolveActive(unsigned warp) {
  Fiber** const lanes = byThread_ + warp * kWarpSize;
  const Fiber* first = nullptr;
  for (uint32_t rest = liveLanes(warp); rest != 0; rest &= rest - 1) {
    const Fiber* const fiber = lanes[__builtin_ctz(rest)];
    if (fiber == nullptr) return;
    if (fiber->state == State::kActive) {
      if (first == nullptr) first = fiber;
    } else if (fiber->state != State::kWarp && fiber->state != State::kBarrier &&
               fiber->state != State::kNamedBarrier) {
      return;
    }
  }
  if (first == nullptr) return;
  uint32_t group = 0;
  Queue woken;
  for (uint32_t rest = liveLanes(warp); rest != 0; rest &= rest - 1) {
    Fiber* const fiber = lanes[__builtin_ctz(rest)];
    if (fiber->state != State::kActive || !fiber->samePlace(first)) continue;
    group |= 1U << __builtin_ctz(rest);
    woken.push(fiber);
  }
  for (Fiber* fiber = woken.head; fiber != nullptr; fiber = fiber->next) {
    fiber->state = State::kReady;
    fiber->value = group;
    --activeWaiting_;
  }
  release(woken);
}

}  // namespace mc
