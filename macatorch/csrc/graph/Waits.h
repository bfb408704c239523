#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace macatorch {

// Note [Composite tensors and waiting]
// Upstream's CUDA kernels for sparse, nested and quantised tensors wait for the device where the host has to know how
// many elements a result has, or what a scale is; a capture ends there. The CPU kernels that compute here never wait.
// So a table says which operators do, and on what. Within a captured operator its CPU kernel is followed: both kinds of
// kernels ask for coalesced tensors and for the places of non-zeros in the same operators.

/// Whether upstream's kernel waits for the device in a call of `op`; the arguments are the last on the stack. `within`:
/// the call is part of an operator on composite tensors.
bool waits_for_composite(const c10::OperatorHandle& op, const torch::jit::Stack& stack, bool within);

/// Copies between the device and host memory that is not pinned: later releases refuse them in a capture, as a launch
/// may find other memory there. Raises upstream's error.
void check_host_memory(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

/// Whether the call adds a coordinate list to a dense tensor, which the CPU kernel coalesces now and then and CUDA's
/// never does: what is within is not followed.
bool adds_to_dense(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

}  // namespace macatorch
