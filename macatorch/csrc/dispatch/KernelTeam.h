#pragma once

namespace macatorch {

/// Lets compiled kernels (Triton's, cucc's) run on the threads that OpenMP keeps for the CPU's operators. Those spin
/// for some time after an operator: threads of the runtime's own would find the processors taken.
void register_kernel_team();

}  // namespace macatorch
