#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace macatorch {

// Note [Kernels for lists]
// For a list of tensors that are alike CUDA has one kernel, multi_tensor_apply_kernel, which upstream calls the fast
// route; for others a kernel for each tensor. Who reads profiles looks for that name.

/// While it lives, what this thread begins has the name of such a kernel, if CUDA has one for this call. To be used
/// while `profiled` is not 0.
class ListKernel {
 public:
  ListKernel(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  ~ListKernel();
  ListKernel(const ListKernel&) = delete;
  ListKernel& operator=(const ListKernel&) = delete;

  bool is_one() const { return is_one_; }

 private:
  bool before_;
  bool is_one_;
};

/// Whether what this thread begins is such a kernel.
bool is_list_kernel();

}  // namespace macatorch
