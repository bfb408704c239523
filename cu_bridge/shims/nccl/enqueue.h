// Where collectives meet streams.
#pragma once

#include <vector>

#include "mc_runtime.h"
#include "work/collective.h"

namespace nccl {

struct Submitted {
  std::shared_ptr<Communicator> comm;
  Operation operation;
  mcStream_t stream;
};

// Puts the work of one group on its streams, and returns. What a stream is given runs when its earlier work is over, in
// a thread of its own; later work of the stream waits for it. In a capture it becomes a node, which runs at each
// launch.
//
// Work that fails is noted with its communicator. Its stream stays as it is, since what follows would read values that
// are not there, until the communicator is aborted or destroyed.
Result enqueue(const std::vector<Submitted>& work);

}  // namespace nccl
