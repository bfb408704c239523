#pragma once

namespace macatorch {

// Note [Device-side asserts]
// CUDA's kernels find out while they run that an index is out of range, when nothing can be raised any more: an assert
// ends the launch, its error stays, and every later call of the process raises it. The CPU's kernels raise an error
// that says which index it was, and the program goes on. That is what users get unless they set MACA_DEVICE_ASSERT=1.

/// If MACA_DEVICE_ASSERT asks for it, makes the errors of kernels that assert on CUDA the device's lasting error.
void register_device_asserts();

}  // namespace macatorch
