#pragma once

#include "dispatch/Operators.h"

namespace macatorch {

/// The dtype by which a kernel is chosen: that of the first tensor, or of an iterator's inputs together. Names of
/// tensors to write to (`out`) do not count; a tensor that is changed in place does.
at::ScalarType kernel_dtype(const OperatorSpec& spec, const c10::FunctionSchema& schema,
                            at::ArrayRef<c10::IValue> arguments);

/// Runs the CPU kernel on the aliases in `stack`. Low-precision dtypes that it lacks are computed in the next wider one
/// and rounded once. `dtypes` has the bits of the dtypes that take part.
void call_cpu(const OperatorSpec& spec, const c10::OperatorHandle& op, torch::jit::Stack* stack, uint64_t dtypes);

}  // namespace macatorch
