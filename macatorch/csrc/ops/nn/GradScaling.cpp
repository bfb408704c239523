#include <ATen/ATen.h>

#include <cmath>

#include "alias/DeviceCall.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// What GradScaler calls. Later releases have CPU kernels for it.

void check_number(const at::Tensor& tensor, at::ScalarType dtype, const char* name) {
  TORCH_CHECK(is_on_device(tensor), name, " must be a CUDA tensor.");
  TORCH_CHECK(tensor.numel() == 1, name, " must be a 1-element tensor.");
  TORCH_CHECK(tensor.scalar_type() == dtype, name, " must be ", dtype == at::kInt ? "an int" : "a float", " tensor.");
}

void unscale(at::TensorList gradients, at::Tensor& found_inf, const at::Tensor& inv_scale) {
  if (gradients.empty()) {
    return;
  }
  check_number(inv_scale, at::kFloat, "inv_scale");
  check_number(found_inf, at::kFloat, "found_inf");
  DeviceCall call(found_inf);
  const double factor = call(inv_scale).item<float>();
  bool finite = true;
  for (const at::Tensor& gradient : gradients) {
    const at::Tensor values = call(gradient, true);
    finite &= at::isfinite(values).all().item<bool>();
    values.copy_(widen(values).mul(factor));
  }
  if (!finite) {
    call(found_inf, true).fill_(1);
  }
  call.write_back();
}

at::Tensor& update_scale(at::Tensor& scale, at::Tensor& growth_tracker, const at::Tensor& found_inf, double growth,
                         double backoff, int64_t interval) {
  check_number(growth_tracker, at::kInt, "growth_tracker");
  check_number(scale, at::kFloat, "current_scale");
  check_number(found_inf, at::kFloat, "found_inf");
  DeviceCall call(scale);
  const at::Tensor current = call(scale, true);
  const at::Tensor steps = call(growth_tracker, true);
  const float value = current.item<float>();
  if (call(found_inf).item<float>() != 0) {
    current.fill_(static_cast<float>(value * backoff));
    steps.fill_(0);
  } else if (const int successful = steps.item<int>() + 1; successful != interval) {
    steps.fill_(successful);
  } else {
    if (const auto grown = static_cast<float>(value * growth); std::isfinite(grown)) {
      current.fill_(grown);
    }
    steps.fill_(0);
  }
  call.write_back();
  return scale;
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/GradScaling.h"
