// Stream-ordered allocations that a graph makes. See Note [Memory of graphs].
//
// Note [Memory of graphs]
// ~~~~~~~~~~~~~~~~~~~~~~~
// An allocation in a capture is a node, and its address is known at once and the same in every launch. So the memory is
// taken from the device at the capture, and is the graph's: it goes back when the graph, its copies for launches, and
// the program, if a launch has left it the memory, are done with it. A launch whose memory is still out is an error,
// unless its graph was instantiated to free it first.
#pragma once

#include <cstddef>
#include <functional>

#include "mc_runtime.h"

namespace mc {

// A node of the stream's capture that allocates.
mcError_t allocateInCapture(void** pointer, int device, size_t bytes, mcStream_t stream);
// A node that frees memory of such a one. False: the address is none of a graph's.
bool freeInCapture(void* pointer, mcStream_t stream, mcError_t* result);

// The program frees what a launch has left it. False: the address is none of a graph's. `giveBack` is empty if no
// launch has.
bool takeFromGraph(const void* pointer, std::function<void()>* giveBack);

}  // namespace mc
