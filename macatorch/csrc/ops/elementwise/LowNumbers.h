#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>

#include <algorithm>
#include <cmath>

#include "alias/DeviceCall.h"
#include "dispatch/Precision.h"

namespace macatorch {

// Note [Numbers and low precision]
// CUDA's kernels keep a number that is on the CPU in the accumulate dtype. Upstream's CPU kernels of sums and of some
// quotients round it to the dtype of the elements first, which changes up to a fifth of the results. Where it cannot be
// held in that dtype, the operators here compute in float.

inline bool is_cpu_number(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.dim() == 0; }

/// Whether elements of `dtype` (low precision) hold `number`, to the precision of float.
inline bool is_held(const at::Scalar& number, at::ScalarType dtype) {
  const auto held = [dtype](double part) {
    const auto single = static_cast<float>(part);
    const float low = dtype == at::kBFloat16 ? static_cast<float>(static_cast<at::BFloat16>(single))
                                             : static_cast<float>(static_cast<at::Half>(single));
    return low == single || std::isnan(single);
  };
  if (number.isComplex()) {
    const c10::complex<double> value = number.toComplexDouble();
    return held(value.real()) && held(value.imag());
  }
  return held(number.toDouble());
}

/// Whether `number` is one on the CPU that low-precision `elements` do not hold.
inline bool is_not_held(const at::Tensor& number, const at::Tensor& elements) {
  return C10_UNLIKELY(is_cpu_number(number)) && is_low(elements.scalar_type()) &&
         !is_held(number.item(), elements.scalar_type());
}

/// Elements that a thread copies to float at a time: a copy of the whole would count as the device's memory. Fewer
/// would not be shared out to threads (at::internal::GRAIN_SIZE).
constexpr int64_t kWideBlock = at::internal::GRAIN_SIZE;

/// `function`, which computes elementwise, of `elements` on the device; in their accumulate dtype, rounded once.
template <class Function>
at::Tensor in_wide_blocks(const at::Tensor& elements, const Function& function) {
  at::Tensor result = at::empty_like(elements);
  if (!elements.is_non_overlapping_and_dense() || elements.strides() != result.strides()) {
    return result.copy_(function(widen(elements)));
  }
  DeviceCall call(elements);
  const int64_t count = elements.numel();
  const at::Tensor from = call(elements).as_strided({count}, {1});
  const at::Tensor to = call(result, /*write=*/true).as_strided({count}, {1});
  const int64_t block = kWideBlock * at::get_num_threads();
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t length = std::min(block, count - begin);
    to.narrow(0, begin, length).copy_(function(widen(from.narrow(0, begin, length))));
  }
  return result;
}

}  // namespace macatorch
