// Work that is pending on streams, and the threads that run it. See Note [Streams that wait].
//
// Note [Streams that wait]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// Work on a stream that nothing holds back runs in the thread that launches it, and is complete when the launch
// returns. Nothing of it is remembered: there is no queue for it, and its cost is one look at a counter (activity.h).
// Some work may have to wait for something outside of its stream: host functions, kernels that only let time pass,
// collectives. Such work is a task, and what is launched on its stream behind it becomes a task too. A task knows how
// many unfinished tasks it comes after, and which come after it; the last of those that it waits for makes it ready,
// and a progress thread runs it. Every ready task gets a thread, an idle one or a new one, so a task that waits holds
// up nothing but what comes after it.
//
// What runs inside a task is a part of it: launches made there run at once, and nothing there waits for a stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "mc_runtime.h"
#include "state/activity.h"

namespace mc {

struct Task;
using TaskRef = std::shared_ptr<Task>;

// One stream's order: its last task, while that is unfinished.
struct Timeline;
std::shared_ptr<Timeline> makeTimeline(int device, bool blocking, int priority);

// Whether the calling thread runs a task.
bool inTask();

// The last task that work launched on the stream now would come after, or null.
bool isPending(mcStream_t stream);

enum : unsigned {
  kTaskWaits = mcTaskWaits,
  kTaskAlways = mcTaskAlways,
};

// Puts `work` behind everything that the stream's next work comes after. Never runs it in the calling thread.
// MemoryAllocation: the system gives no thread.
mcError_t enqueue(mcStream_t stream, unsigned flags, std::function<mcError_t()> work);

// As `enqueue`; the task is finished by mcTaskEnd, not by the return of `begin`. `release` is called when it is over.
mcError_t enqueueOpen(mcStream_t stream, std::function<void(mcTask_t)> begin, std::function<void()> release);

// A task without work: it is finished when everything is that the stream's next work comes after. Null if nothing is.
TaskRef orderPoint(mcStream_t stream);
// The stream's later work comes after `task` too.
void orderAfter(mcStream_t stream, const TaskRef& task);

bool isFinished(const TaskRef& task);
int64_t finishedAt(const TaskRef& task);  // nanoseconds of the monotonic clock
void waitFor(const TaskRef& task);

// Returns when work launched on the stream before would not hold back the calling thread's.
void waitTurn(mcStream_t stream);
// All streams of a device.
void waitDevice(int device);

int64_t monotonicNow();

}  // namespace mc
