// What a thread has asked for since its outermost ncclGroupStart.
#pragma once

#include <memory>
#include <vector>

#include "mc_runtime.h"
#include "work/collective.h"
#include "work/communicator.h"
#include "work/task.h"

namespace nccl {

void groupStart();
// Runs what was asked for, when the outermost group ends.
Result groupEnd();

// Checks an operation, and runs it or adds it to the group.
Result submit(ncclComm* comm, const Operation& operation, mcStream_t stream);

// A communicator that is to be made.
struct Creation {
  ncclComm** target;  // gets nullptr if that fails; may be nullptr
  std::shared_ptr<Communicator> made;
  std::unique_ptr<Task> task;
};
// Hands out the communicator, and makes it: now, at the end of the group, or in a thread of its own if it does not
// block.
Result create(Creation creation);

// Whether the communicator can be used by this thread now; else says why not.
Result usable(const ncclComm* comm);

}  // namespace nccl
