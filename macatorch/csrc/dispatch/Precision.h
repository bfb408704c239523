#pragma once

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include <limits>
#include <optional>

#include "dispatch/Operators.h"

namespace macatorch {

// Note [Precision]
// CUDA's kernels read low-precision numbers into an accumulate dtype, compute there, and round each result once. Many
// of upstream's CPU kernels round between their steps, or lack these dtypes. So operators here widen what they are
// given, compute, and round: for the generated kernels Widened.cpp does it, for those written by hand these functions.

/// half and bfloat16
constexpr bool is_half(at::ScalarType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16; }

/// half, bfloat16 and complex half
constexpr bool is_low(at::ScalarType dtype) { return (kLowPrecision & dtype_bit(dtype)) != 0; }

/// The dtype that numbers of `dtype` are computed in: (complex) float for low precision and float8, else `dtype`
/// itself.
inline at::ScalarType accumulate_dtype(at::ScalarType dtype) {
  return is_low(dtype) || at::isFloat8Type(dtype) ? at::toOpMathType(dtype) : dtype;
}

/// The tensor in its accumulate dtype; itself where it has that, or is undefined.
inline at::Tensor widen(const at::Tensor& tensor) {
  const at::ScalarType dtype = tensor.scalar_type();
  const at::ScalarType wide = accumulate_dtype(dtype);
  return wide == dtype ? tensor : tensor.to(wide);
}
inline std::optional<at::Tensor> widen(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::make_optional(widen(*tensor)) : std::nullopt;
}

/// Elements whose norm upstream's CPU kernel computes to a few units of single precision. See Note [Norms of many
/// elements].
constexpr int64_t kExactNorm = 65536;

/// `value` rounded once to `dtype`. Float8 and integers saturate, as the hardware's conversions do.
inline at::Tensor round_to(const at::Tensor& value, at::ScalarType dtype) {
  if (at::isIntegralType(dtype, /*includeBool=*/false)) {
    const double low = dtype == at::kChar ? -128 : std::numeric_limits<int32_t>::min();
    return value.round().clamp(low, -low - 1).to(dtype);
  }
  if (dtype == at::kFloat8_e4m3fn || dtype == at::kFloat8_e5m2) {
    const double largest = dtype == at::kFloat8_e4m3fn ? 448.0 : 57344.0;
    return value.clamp(-largest, largest).to(dtype);
  }
  return value.to(dtype);
}

}  // namespace macatorch
