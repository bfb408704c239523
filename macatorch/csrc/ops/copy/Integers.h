#pragma once

#include <ATen/core/Tensor.h>

namespace macatorch {

// Note [Floating point to integers]
// What an integer type does not hold is undefined in C++: an x86 processor gives the least integer, CUDA's `cvt` the
// nearest one. NaN becomes 0 there, and the bits 1000… where the number or the integer has 64 bits. Types of 8 and 16
// bits get the low bits of a conversion to 32, uint8 those of one to int64 (c10/util/TypeCast.h). Upstream computes in
// this way where both sides are on a device; between host and device it converts on the host.

/// Whether elements of one dtype become integers of the other.
bool becomes_integers(at::ScalarType from, at::ScalarType to);

/// Behind the host's `to.copy_(from)` of such dtypes: writes anew the elements of which C++ leaves open what they
/// become. Both are host tensors.
void correct_integers(const at::Tensor& to, const at::Tensor& from);

}  // namespace macatorch
