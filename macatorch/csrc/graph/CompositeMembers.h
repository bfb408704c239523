#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace macatorch {

// Note [Members of composite tensors]
// A sparse tensor is a few plain ones, indices and values; a nested one a buffer, with sizes, strides and offsets on
// the host; a quantised one bytes, and scales and zero points where each channel has its own. A graph deals with the
// memory of these members. What else a composite tensor is (its shape, whether it is coalesced, one scale for all)
// stands on the host: as on hardware it is what it was at the capture, whatever a launch computes.

/// Strided, with a storage, and none of the below.
bool is_plain(const at::Tensor& tensor);

/// Made of plain members: COO, compressed sparse, nested (strided) or quantised.
bool is_composite(const at::Tensor& tensor);

/// The members of a composite tensor, always in the same order; a plain tensor is its own.
std::vector<at::Tensor> members_of(const at::Tensor& tensor);

/// The same composite tensor over other members. Nothing is dispatched.
at::Tensor with_members(const at::Tensor& tensor, const std::vector<at::Tensor>& members);

/// Whether two composite tensors are the same but for the content of their members on the device.
bool is_described_alike(const at::Tensor& one, const at::Tensor& other);

}  // namespace macatorch
