// Events that a graph records, or waits for, by nodes of their own (cudaEventRecordExternal, cudaEventWaitExternal).
//
// A launch counts as the record: an event that a pending launch will record is pending from then on, so what comes
// after it waits. And a launch waits for the records that there are when it is made. So the whole graph comes after
// them, and for others the event is reached at the latest when the whole graph is over.
#pragma once

#include "mc_runtime.h"

namespace mc {

// What such nodes do.
struct ExternalRecord {
  mcEvent_t event;
  mcStream_t stream;
  mcError_t operator()() const;
};
struct ExternalWait {
  mcEvent_t event;
  mcError_t operator()() const;
};

// The calling thread runs a launch that comes after all that its nodes wait for.
inline thread_local bool launchIsOrdered = false;

// Before the launch is submitted: it comes after the event's last record.
mcError_t orderLaunch(const ExternalWait& node, mcStream_t stream);
// After it: the event is pending if the launch is.
void recordLaunch(const ExternalRecord& node, mcStream_t stream);

}  // namespace mc
