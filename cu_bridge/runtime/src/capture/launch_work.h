// Work of a node that has a part in how its graph's launch is submitted.
//
// Events that a graph records, or waits for, by nodes of their own (cudaEventRecordExternal, cudaEventWaitExternal)
// have such work. A launch counts as the record: an event that a pending launch will record is pending from then on, so
// what comes after it waits. And a launch waits for the records that there are when it is made. So the whole graph
// comes after them, and for others the event is reached at the latest when the whole graph is over.
#pragma once

#include <functional>

#include "mc_runtime.h"

namespace mc {

struct LaunchWork {
  std::function<mcError_t()> inTurn;
  std::function<mcError_t(mcStream_t)> before{};  // the launch is submitted to the stream
  std::function<void(mcStream_t)> after{};
  mcError_t operator()() const { return inTurn(); }
};

// The calling thread runs a launch whose nodes were asked before it was submitted.
inline thread_local bool launchIsOrdered = false;

}  // namespace mc
