#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>
#include <ATen/cuda/PhiloxCudaState.h>
#include <c10/core/Device.h>

#include <atomic>
#include <functional>
#include <optional>

#include "Random.h"

namespace macatorch {

// Note [Graph capture]
// While a stream is captured, the operators of the threads that take part pass through a fallback at a dispatch key of
// its own, below autograd. An operator that computes on the stream runs there once on real memory, since its results'
// shapes are needed, and becomes a node: the operator with its arguments' addresses. A launch calls it again and leaves
// the results at the addresses of the capture. What the capture wrote to memory that was there before is put back when
// it ends, so that, as on hardware, captured work has not happened. Operators that would wait for the device are refused.
// Arguments are borrowed, not kept alive: as on hardware, who owns them has to keep them.

/// Captures under way in the process; what the hot path looks at.
extern std::atomic<int> captures_under_way;

/// Sets the fallback up, and asks the runtime to tell of captures.
void register_graph_capture();

/// Raises what upstream raises where an operator waits for the device, if one is being captured.
void refuse_wait_in_capture();

/// Raises an error if the current stream is captured and this thread does not take part in it.
void refuse_foreign_thread();

/// True while an operator runs for a capture.
bool in_captured_operator() noexcept;

/// True while an operator runs in a launch of a graph.
bool in_launched_operator() noexcept;

/// The place in the random stream for a captured operator: read now, and from the same addresses at each launch.
PhiloxPosition captured_position(const at::PhiloxCudaState& state);

/// In a launch: the next place that the operator had asked for when it was captured.
std::optional<PhiloxPosition> launched_position();

/// Runs `call` as a whole operator of the current capture, if there is one.
void capture_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::function<void()>& call);

}  // namespace macatorch
