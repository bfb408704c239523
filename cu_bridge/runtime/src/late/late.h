// MACA_ASYNC=late: what the host may observe of copies happens as late as CUDA allows. See Note [Late copies].
//
// Note [Late copies]
// ~~~~~~~~~~~~~~~~~~
// Work runs in the thread that launches it, so a program that forgets to wait for it gets the right values, and wrong
// ones on hardware. In late mode a copy into pinned memory leaves a pattern there, and what it has copied arrives when
// the host waits for something that comes after the copy. A copy out of pinned memory reads it when the next work on
// its stream begins, or when the host waits; and until the host has waited, the memory is compared with what was read.
// What comes after what is kept as it is for vector clocks: each stream counts its late copies and knows how many of
// each other stream's come before its next work; events carry that knowledge from stream to stream, waits carry it to
// the host, and whatever is launched later comes after what the host knows.
#pragma once

#include <cstddef>

#include "mc_runtime.h"

namespace mc {

// From the environment, once. While it holds, activity.tasks is never 0, so that no work takes the fast path.
extern const bool lateMode;

namespace late {

// A copy between a device and pinned memory, which is the target (toHost) or the source. Its arguments have been
// checked, and no task is pending on the stream.
void takeCopy(void* to, const void* from, size_t bytes, bool toHost, mcStream_t stream);

// Other work on the stream begins, in the calling thread.
void workBegins(mcStream_t stream);

void eventRecorded(mcEvent_t event, mcStream_t stream);
void streamWaits(mcStream_t stream, mcEvent_t event);
void eventGone(mcEvent_t event);

// The host knows that the work on the stream, before the event, or on the device is done.
void hostWaitedFor(mcStream_t stream);
void hostWaitedForEvent(mcEvent_t event);
void hostWaitedForDevice(int device);

}  // namespace late
}  // namespace mc
