#pragma once

#include <ATen/core/Tensor.h>

namespace macatorch {

// Gain: 0.14 to 0.62 of TensorIterator's processor time where sizes are powers of two; measured in docs/performance.md.

#if MACATORCH_FAST_COPIES
/// Copies `from` to `to` if one of them is contiguous, the other channels-last (of any number of dimensions above two),
/// and dtype and sizes are the same: channels and pixels change places, tile by tile. TensorIterator goes through one
/// of the two in large steps, which is slow where they are a power of two. Both are host tensors. False, and nothing is
/// done, if it is another kind of copy or a matrix too narrow for tiles.
bool copy_transposed(const at::Tensor& to, const at::Tensor& from);

/// As `tensor.contiguous(format)`.
at::Tensor in_format(const at::Tensor& tensor, at::MemoryFormat format);
#else
inline bool copy_transposed(const at::Tensor&, const at::Tensor&) { return false; }
inline at::Tensor in_format(const at::Tensor& tensor, at::MemoryFormat format) { return tensor.contiguous(format); }
#endif

}  // namespace macatorch
