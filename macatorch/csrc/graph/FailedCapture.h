#pragma once

namespace macatorch {

/// What upstream's CUDAGraph::capture_end leaves undone where the capture has failed: the allocator stops serving the
/// graph's pool, and gives it up; the generators leave the capture. Without it the process cannot empty its cache,
/// capture again or draw a random number.
void tidy_failed_capture(unsigned long long id) noexcept;

}  // namespace macatorch
