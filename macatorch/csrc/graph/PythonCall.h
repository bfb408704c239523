#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace macatorch {

// Note [Captures and Python kernels]
// Upstream's way to the Python kernels of dispatch modes and tensor subclasses (jagged nested tensors) masks every
// dispatch key above it, the capture's too: what such a kernel calls would run beside the capture. So a capture goes
// there by itself, and masks the other keys only.

/// Calls the Python kernel for `op`, with `visible` as the only key above Python's that its calls can reach. False,
/// without a call, if no mode is active and no argument has a Python kernel.
bool call_python(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DispatchKey visible);

}  // namespace macatorch
