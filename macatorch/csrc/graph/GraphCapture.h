#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <atomic>
#include <functional>

#include "graph/Work.h"

namespace macatorch {

// Note [Graph capture]
// While a stream is captured, the operators of the threads that take part pass through a fallback at a dispatch key of
// its own, below autograd. An operator that computes on the stream runs there once on real memory, since its results'
// shapes are needed, and becomes a node: the operator with its arguments' addresses. A launch calls it again and leaves
// the results at the addresses of the capture. What the capture wrote to memory that was there before is put back when
// it ends, so that, as on hardware, captured work has not happened. Operators that would wait for the device are
// refused. Arguments are borrowed, not kept alive: as on hardware, who owns them has to keep them.

/// Captures under way in the process; what the hot path looks at.
extern std::atomic<int> captures_under_way;

/// Whether the process has captured anything: from then on graphs may hold addresses with the strides of the capture.
extern std::atomic<bool> graphs_were_captured;

/// Calls `add`, which makes a node of an operator, and tells whoever listens of it. Set once, before anything is
/// captured; null: nobody is told.
using CaptureWatcher = void (*)(const char* operator_name, c10::DeviceIndex device, const std::function<void()>& add);
extern CaptureWatcher capture_watcher;

/// Sets the fallback up, and asks the runtime to tell of captures.
void register_graph_capture();

/// Where an operator waits for the device: waits for what is pending on the current stream, or raises what upstream
/// raises if a stream is being captured.
void refuse_wait_in_capture();

/// The same for an operator that upstream lets wait: what listens to waits (torch.cuda.set_sync_debug_mode, the
/// sanitizer's callbacks) is told of it as well.
void wait_as_upstream();

/// Raises an error if the current stream is captured and this thread does not take part in it.
void refuse_foreign_thread();

/// Runs `call` as a whole operator of the current capture, if there is one.
void capture_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::function<void()>& call);

}  // namespace macatorch
