#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>

#include <functional>
#include <optional>
#include <vector>

#if __has_include(<ATen/cuda/tunable/Tunable.h>)
#include <ATen/cuda/tunable/Tunable.h>
#define MACATORCH_TUNABLE 1
#else
#define MACATORCH_TUNABLE 0
#endif

namespace macatorch {

// Note [Tunable products]
// With torch.cuda.tunable upstream tries the kernels that it has for a product and remembers the fastest for each
// layout, shape and dtype, in a table that programs read and files keep. Its own CUDA build knows one kernel. Here
// there are upstream's kernel for the CPU, oneDNN's and ours in panels, and "Default": the rule that chooses among them
// otherwise. Table and settings are upstream's, and so are the names of operators and the signatures of shapes.
// Products that write into a tensor of the program (out=, in place) are not tuned: trying them would write it more than
// once.

/// A way to compute a product; nothing where it does not apply to the operands.
struct ProductKernel {
  const char* name;
  std::function<std::optional<at::Tensor>()> compute;
};

#if MACATORCH_TUNABLE
inline bool products_are_tunable() { return at::cuda::tunable::getTuningContext()->IsTunableOpEnabled(); }
#else
inline bool products_are_tunable() { return false; }
#endif

/// The product of `left` and `right` (both of 2 or both of 3 dimensions, with terms) by the kernel that the table of
/// results names, or by the fastest where there is no result yet and tuning is on. `kernels` begins with "Default".
at::Tensor tuned_product(const at::Tensor& left, const at::Tensor& right, bool with_bias,
                         const std::vector<ProductKernel>& kernels);

}  // namespace macatorch
