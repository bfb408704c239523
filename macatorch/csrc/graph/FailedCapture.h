#pragma once

namespace macatorch {

/// Finds the CUDAGraph of a capture that goes on, on the current stream: later releases tell of it at no other time.
void note_graph_of_capture(unsigned long long id);

/// A noted capture has given its graph.
void forget_graph_of_capture(unsigned long long id);

/// What upstream's CUDAGraph::capture_end leaves undone where the capture has failed: the allocator stops serving the
/// graph's pool, and gives it up; the generators leave the capture. Without it the process cannot empty its cache,
/// capture again or draw a random number.
void tidy_failed_capture(unsigned long long id) noexcept;

}  // namespace macatorch
