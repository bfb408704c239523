#pragma once

#include <ATen/DimVector.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace macatorch {

// Note [Layout on the way to the device]
// The device works best on channels-last tensors, so a strided, contiguous CPU tensor of 4 dimensions with more than
// one channel that moves to the device arrives as torch.channels_last, unless the caller names a memory format or
// PYTORCH_DEFAULT_NCHW is set. PYTORCH_DEFAULT_NDHWC and PYTORCH_DEFAULT_NLC turn the same on for 5 and 3 dimensions.
//
// The rule must not cost a program. What upstream's layout allows and channels-last strides do not (a view, say) works
// on a tensor whose storage was brought into upstream's order first: in place where nobody else holds the storage, so
// that the view shares its memory as upstream's does; else in a copy (Note [Views that are copies]). What a program
// made channels-last by itself cannot be told apart: there, too, such a view works, where upstream's raises an error.

/// Whether tensors of so many dimensions arrive channels-last.
bool arrives_channels_last(int64_t dims);

/// Why a tensor that looks contiguous is not, in words: the layout rule; "" if that is not the reason.
std::string layout_hint(const at::Tensor& tensor);

/// The strides that `tensor`, in channels-last order, would have had without the layout rule; none if it is not in that
/// order, or in both. A part of an image gets the strides of that part of a contiguous image; the image itself may then
/// be larger than `tensor`.
std::optional<at::DimVector> upstream_strides(const at::Tensor& tensor);

/// Whether `tensor` is contiguous without the layout rule, and is not with it.
bool is_contiguous_upstream(const at::Tensor& tensor);

/// Brings the storages of tensors on the device into upstream's order, in place, and gives the tensors the strides of
/// it. False, and nothing done, where one is not a whole channels-last tensor, or somebody could tell: another tensor,
/// process or library has the storage, a graph has its address, or a functorch level has its strides.
bool reorder_in_place(at::TensorList tensors);

}  // namespace macatorch
