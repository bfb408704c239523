
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/ops/batch_norm_update_stats_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_group_norm_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "alias/DeviceCall.h"
#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "arguments/Release.h"
#include "dispatch/Precision.h"
#include "ops/Forms.h"
#include "ops/Strides.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

constexpr c10::DispatchKeySet kCpu(kHostKey);

// Note [Statistics of many pixels]
// Over a channels-last image upstream's CPU kernel adds up a channel's numbers one after the other, in single
// precision: with 400,000 of them (32 images of 112 x 112) a mean is off by 1e-5 of its size, and results by more where
// numbers vary less than they are large. Over a contiguous image it is right to 1e-7, as CUDA's kernel is over both. So
// the kernel takes the statistics of a few thousand pixels at a time, and those are combined in double precision.

/// Pixels that the kernel takes together: few for exactness, more where a pixel has few channels, for speed.
int64_t pixels_together(int64_t channels) { return std::clamp<int64_t>((int64_t{1} << 17) / channels, 2048, 8192); }

bool has_many_pixels(const at::Tensor& input) {
  const bool image =
      input.is_contiguous(at::MemoryFormat::ChannelsLast) || input.is_contiguous(at::MemoryFormat::ChannelsLast3d);
  return image && !input.is_contiguous() && input.scalar_type() == at::kFloat &&
         input.numel() / input.size(1) > pixels_together(input.size(1));
}

/// Mean and biased variance of each channel of a channels-last image.
std::tuple<at::Tensor, at::Tensor> statistics(const at::Tensor& input) {
  const int64_t channels = input.size(1), pixels = input.numel() / channels, together = pixels_together(channels);
  std::vector<at::Tensor> means, variances;
  std::vector<double> counts;
  for (int64_t first = 0; first < pixels; first += together) {
    const int64_t count = std::min(together, pixels - first);
    const at::Tensor piece = input.as_strided({1, channels, count, 1}, {count * channels, 1, channels, channels},
                                              input.storage_offset() + first * channels);
    auto [mean, variance] = at::_ops::batch_norm_update_stats::redispatch(kCpu, piece, {}, {}, 0);
    means.push_back(std::move(mean));
    variances.push_back(std::move(variance));
    counts.push_back(static_cast<double>(count) / static_cast<double>(pixels));
  }
  const at::Tensor share = at::tensor(counts, at::kDouble).unsqueeze(1);
  const at::Tensor each = at::stack(means).to(at::kDouble);
  const at::Tensor mean = (each * share).sum(0);
  const at::Tensor variance = ((at::stack(variances).to(at::kDouble) + (each - mean).square()) * share).sum(0);
  return {mean.to(at::kFloat), variance.to(at::kFloat)};
}

/// native_batch_norm in training, on CPU aliases.
std::tuple<at::Tensor, at::Tensor, at::Tensor> train_many_pixels(const at::Tensor& input, const at::Tensor& weight,
                                                                 const std::optional<at::Tensor>& bias,
                                                                 const std::optional<at::Tensor>& running_mean,
                                                                 const std::optional<at::Tensor>& running_var,
                                                                 double momentum, double eps) {
  const auto [mean, variance] = statistics(input);
  if (running_mean && running_mean->defined()) {
    running_mean->mul_(1 - momentum).add_(mean, momentum);
  }
  if (running_var && running_var->defined()) {
    const auto pixels = static_cast<double>(input.numel() / input.size(1));
    running_var->mul_(1 - momentum).add_(variance, momentum * pixels / (pixels - 1));
  }
  auto [output, no_mean, no_invstd] =
      at::_ops::native_batch_norm::redispatch(kCpu, input, weight, bias, mean, variance, false, momentum, eps);
  return {output, mean, variance.add(eps).rsqrt_()};
}

/// Whether upstream's CPU kernel lacks the input's dtype: up to 2.1 it takes no Half.
bool is_computed_wider(const at::Tensor& input) {
  return !MACATORCH_TORCH_AT_LEAST(2, 4) && input.scalar_type() == at::kHalf;
}

/// native_batch_norm on CPU aliases, of which cuDNN's statistics are float.
std::tuple<at::Tensor, at::Tensor, at::Tensor> host_batch_norm(const at::Tensor& input, const at::Tensor& weight,
                                                               const std::optional<at::Tensor>& bias,
                                                               const std::optional<at::Tensor>& running_mean,
                                                               const std::optional<at::Tensor>& running_var,
                                                               bool training, double momentum, double eps) {
  if (!is_computed_wider(input)) {
    return at::_ops::native_batch_norm::redispatch(kCpu, input, weight, bias, running_mean, running_var, training,
                                                   momentum, eps);
  }
  auto [output, mean, invstd] = at::_ops::native_batch_norm::redispatch(
      kCpu, widen(input), widen(weight), widen(bias), running_mean, running_var, training, momentum, eps);
  return {round_to(output, at::kHalf), mean, invstd};
}

// The CPU kernel's saved statistics are those of cuDNN: the batch's mean and 1/sqrt(var + eps).

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> cudnn_batch_norm(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var, bool training,
    double exponential_average_factor, double epsilon) {
  std::optional<c10::Device> common;
  const char* const method = "wrapper_CUDA__cudnn_batch_norm";
  c10::impl::check_and_update_common_device(common, input, method, "input");
  c10::impl::check_and_update_common_device(common, weight, method, "weight");
  c10::impl::check_and_update_common_device(common, bias, method, "bias");
  c10::impl::check_and_update_common_device(common, running_mean, method, "running_mean");
  c10::impl::check_and_update_common_device(common, running_var, method, "running_var");
  DeviceCall call(input);
  if (training && has_many_pixels(input)) {
    auto [output, mean, invstd] = train_many_pixels(call(input), call(weight), call(bias), call(running_mean, true),
                                                    call(running_var, true), exponential_average_factor, epsilon);
    return call.results(output, mean, invstd, at::empty({0}, call(input).options().dtype(at::kByte)));
  }
  auto [output, mean, invstd] = host_batch_norm(call(input), call(weight), call(bias), call(running_mean, true),
                                                call(running_var, true), training, exponential_average_factor, epsilon);
  at::Tensor reserve = at::empty({0}, call(input).options().dtype(at::kByte));
  return call.results(output, mean, invstd, reserve);
}

/// cudnn_batch_norm into given tensors (torch 2.8 and later).
void cudnn_batch_norm_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const auto optional = [&](const char* name) {
    const at::Tensor tensor = given.tensor(name);
    return tensor.defined() ? std::make_optional(tensor) : std::nullopt;
  };
  auto [output, mean, invstd, reserve] =
      macatorch::cudnn_batch_norm(given.tensor("input"), given.tensor("weight"), optional("bias"),
                                  optional("running_mean"), optional("running_var"), given.flag("training"),
                                  *given.number("exponential_average_factor"), *given.number("epsilon"));
  given.give(write_out(given.tensor("out0"), output), write_out(given.tensor("out1"), mean),
             write_out(given.tensor("out2"), invstd), write_out(given.tensor("out3"), reserve));
}

/// Tensors as upstream's CPU kernel for the backward can take them. It does not keep the copy that it makes of strided
/// numbers of channels, and reads freed memory.
at::Tensor readable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.dim() == 1 ? tensor.contiguous()
                                                                                  : plain_strides(tensor);
}

/// Refuses weights and statistics of another dtype where CUDA does: in its one kernel for the whole backward of
/// contiguous images. The kernel reads them as one dtype: the input's, or its accumulation's where the first that is
/// given has another dtype than the input.
void check_backward_dtypes(const Arguments& given) {
  const at::Tensor input = given.tensor("input");
  const auto mask = given["output_mask"].toBoolList();
  const bool reduces = given.flag("train") || given.flag("update") || mask[1] || mask[2];
  const bool rows = input.is_contiguous() && input.stride(1) == 1;
  if (!mask[0] || !reduces || rows || input.is_contiguous(at::MemoryFormat::ChannelsLast) ||
      input.is_contiguous(at::MemoryFormat::ChannelsLast3d)) {
    return;
  }
  std::optional<at::ScalarType> expected;
  for (const char* name : {"weight", "running_mean", "running_var"}) {
    const at::Tensor parameter = given.tensor(name);
    if (parameter.defined()) {
      if (!expected) {
        const bool mixed = parameter.scalar_type() != input.scalar_type();
        expected = mixed ? accumulate_dtype(input.scalar_type()) : input.scalar_type();
      }
      TORCH_CHECK(parameter.scalar_type() == *expected, "Expected ", name, " to have type ", *expected, " but got ",
                  parameter.scalar_type());
    }
  }
}

/// batch_norm's backward as the CPU computes it from plain strides.
template <const OperatorSpec& spec>
void batch_norm_backward_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  check_backward_dtypes(Arguments(op, stack));
  for (auto value = stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size()); value != stack->end();
       ++value) {
    if (value->isTensor()) {
      *value = readable(value->toTensor());
    }
  }
  call_boxed(spec, op, stack);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> cudnn_batch_norm_backward(
    const at::Tensor& input, const at::Tensor& grad_output, const at::Tensor& weight,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var,
    const std::optional<at::Tensor>& save_mean, const std::optional<at::Tensor>& save_invstd, double epsilon,
    const at::Tensor& /*reserve*/) {
  DeviceCall call(input);
  const bool wider = is_computed_wider(input);
  const auto taken = [&](const at::Tensor& tensor) { return wider ? widen(call(tensor)) : call(tensor); };
  const auto kept = [&](const std::optional<at::Tensor>& statistics) -> std::optional<at::Tensor> {
    const std::optional<at::Tensor> given = call(statistics);
    return given ? std::make_optional(readable(*given)) : std::nullopt;
  };
  auto [grad_input, grad_weight, grad_bias] = at::_ops::native_batch_norm_backward::redispatch(
      kCpu, readable(taken(grad_output)), readable(taken(input)), readable(taken(weight)), kept(running_mean),
      kept(running_var), kept(save_mean), kept(save_invstd),
      /*train=*/true, epsilon, {true, true, true});
  if (wider) {
    grad_input = round_to(grad_input, input.scalar_type());
    grad_weight = round_to(grad_weight, weight.scalar_type());
    grad_bias = round_to(grad_bias, weight.scalar_type());
  }
  return call.results(grad_input, grad_weight, grad_bias);
}

/// CUDA's kernels read weight and bias as the input's dtype and refuse another; the CPU's have a form for both.
/// `mixed`: they may be float where the input is of low precision.
void check_parameter(const at::Tensor& input, const at::Tensor& parameter, bool mixed) {
  if (!parameter.defined() || C10_LIKELY(parameter.scalar_type() == input.scalar_type()) || input.numel() == 0) {
    return;
  }
  TORCH_CHECK(mixed && parameter.scalar_type() == accumulate_dtype(input.scalar_type()), "expected scalar type ",
              input.scalar_type(), " but found ", parameter.scalar_type());
}

void check_parameters(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias) {
  check_parameter(input, weight.value_or(at::Tensor()), /*mixed=*/false);
  check_parameter(input, bias.value_or(at::Tensor()), /*mixed=*/false);
}

/// batch_norm as the CPU computes it. In evaluation CUDA returns the statistics that it used, the CPU's kernel nothing.
template <const OperatorSpec& spec>
void batch_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor mean = given.tensor("running_mean"), var = given.tensor("running_var");
  const bool training = given.flag("training");
  const double eps = *given.number("eps");
  const at::Tensor input = given.tensor("input"), weight = given.tensor("weight"), bias = given.tensor("bias");
  const at::ScalarType dtype = accumulate_dtype(input.scalar_type());
  // Before the call: what is refused must not have moved the running statistics.
  check_parameter(input, weight, /*mixed=*/true);
  check_parameter(input, bias, /*mixed=*/true);
  if (training && has_many_pixels(input) && !given.tensor("out").defined()) {
    DeviceCall call(input);
    auto [output, batch_mean, invstd] = train_many_pixels(call(input), call(weight), call(bias), call(mean, true),
                                                          call(var, true), *given.number("momentum"), eps);
    given.give(call.result(output), call.result(batch_mean), call.result(invstd));
    return;
  }
  // Old releases' kernel hands on tensors of its own in their place.
  const at::Tensor save_mean = given.tensor("save_mean"), save_invstd = given.tensor("save_invstd");
  call_boxed(spec, op, stack);
  if (training || !mean.defined() || !var.defined()) {
    return;
  }
  const auto save = [&](size_t place, const at::Tensor& out, const at::Tensor& value) {
    (*stack)[stack->size() - 3 + place] = write_out(out, value);
  };
  save(1, save_mean, mean.to(dtype, /*non_blocking=*/false, /*copy=*/true));
  save(2, save_invstd, var.to(dtype).add(eps).rsqrt_());
}

// SyncBatchNorm's parts. Channels are dimension 1; statistics are in float for low-precision inputs.

std::vector<int64_t> all_but_channel(const at::Tensor& tensor) {
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (dim != 1) {
      dims.push_back(dim);
    }
  }
  return dims;
}

/// A per-channel vector, shaped to broadcast against `like`.
at::Tensor per_channel(const at::Tensor& vector, const at::Tensor& like) {
  std::vector<int64_t> shape(like.dim(), 1);
  shape[1] = -1;
  return vector.to(accumulate_dtype(like.scalar_type())).view(shape);
}

std::tuple<at::Tensor, at::Tensor> batch_norm_stats(const at::Tensor& input, double eps) {
  DeviceCall call(input);
  const at::Tensor x = call(input);
  auto [var, mean] = at::var_mean(widen(x), all_but_channel(x), std::make_optional(at::Scalar(0)));
  return call.results(mean, var.add_(eps).rsqrt_());
}

at::Tensor batch_norm_elemt(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& mean, const at::Tensor& invstd,
                            double /*eps: in invstd already*/) {
  DeviceCall call(input);
  const at::Tensor x = call(input);
  at::Tensor y = (x - per_channel(call(mean), x)).mul_(per_channel(call(invstd), x));
  if (const auto w = call(weight)) {
    y.mul_(per_channel(*w, x));
  }
  if (const auto b = call(bias)) {
    y.add_(per_channel(*b, x));
  }
  return call.result(y.to(x.scalar_type()));
}

at::Tensor& batch_norm_elemt_out(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                 const std::optional<at::Tensor>& bias, const at::Tensor& mean,
                                 const at::Tensor& invstd, double eps, at::Tensor& out) {
  const at::Tensor result = macatorch::batch_norm_elemt(input, weight, bias, mean, invstd, eps);
  return out.resize_(result.sizes()).copy_(result);
}

/// Statistics of all processes from those of each: mean and invstd (W, C), counts (W).
std::tuple<at::Tensor, at::Tensor> batch_norm_gather_stats_with_counts(const at::Tensor& input, const at::Tensor& mean,
                                                                       const at::Tensor& invstd,
                                                                       const std::optional<at::Tensor>& running_mean,
                                                                       const std::optional<at::Tensor>& running_var,
                                                                       double momentum, double eps,
                                                                       const at::Tensor& counts) {
  DeviceCall call(input);
  const at::Tensor means = call(mean);
  const at::Tensor n = call(counts).to(means.scalar_type()).unsqueeze(1);
  const at::Tensor total = n.sum();
  at::Tensor all = (means * n).sum(0).div_(total);
  const at::Tensor variances = call(invstd).pow(-2).sub_(eps).add_((means - all).square());
  const at::Tensor var = (variances * n).sum(0).div_(total);
  if (const auto running = call(running_mean, true)) {
    running->mul_(1 - momentum).add_(all, momentum);
  }
  if (const auto running = call(running_var, true)) {
    running->mul_(1 - momentum).add_(var * (total / (total - 1)), momentum);
  }
  return call.results(all, (var + eps).rsqrt_());
}

std::tuple<at::Tensor, at::Tensor> batch_norm_gather_stats(const at::Tensor& input, const at::Tensor& mean,
                                                           const at::Tensor& invstd,
                                                           const std::optional<at::Tensor>& running_mean,
                                                           const std::optional<at::Tensor>& running_var,
                                                           double momentum, double eps, int64_t count) {
  return macatorch::batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps,
                                                        at::full({mean.size(0)}, count, mean.options()));
}

/// (sum dy, sum dy (x - mean), grad_weight, grad_bias), each per channel.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_backward_reduce(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const std::optional<at::Tensor>& weight, bool input_g, bool weight_g, bool bias_g) {
  DeviceCall call(input);
  const at::Tensor x = call(input);
  const at::Tensor dy = call(grad_out).to(accumulate_dtype(x.scalar_type()));
  const std::vector<int64_t> dims = all_but_channel(x);
  const at::Tensor sum_dy = dy.sum(dims);
  const at::Tensor sum_dy_xmu = (dy * (x - per_channel(call(mean), x))).sum(dims);
  const at::ScalarType dtype = weight && weight->defined() ? weight->scalar_type() : sum_dy.scalar_type();
  return call.results(input_g ? sum_dy.clone() : at::Tensor(), input_g ? sum_dy_xmu : at::Tensor(),
                      weight_g ? (sum_dy_xmu * call(invstd)).to(dtype) : at::Tensor(),
                      bias_g ? sum_dy.to(dtype) : at::Tensor());
}

at::Tensor batch_norm_backward_elemt(const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean,
                                     const at::Tensor& invstd, const std::optional<at::Tensor>& weight,
                                     const at::Tensor& sum_dy, const at::Tensor& sum_dy_xmu, const at::Tensor& count) {
  DeviceCall call(input);
  const at::Tensor x = call(input);
  const at::Tensor total = call(count).sum();
  const at::Tensor inv = call(invstd);
  const at::Tensor slope = call(sum_dy_xmu) * inv * inv / total;
  at::Tensor grad = call(grad_out) - per_channel(call(sum_dy) / total, x);
  grad = grad - (x - per_channel(call(mean), x)) * per_channel(slope, x);
  grad = grad * per_channel(inv, x);
  if (const auto w = call(weight)) {
    grad = grad * per_channel(*w, x);
  }
  return call.result(grad.to(x.scalar_type()));
}

// Root-mean-square normalisation over the last dimensions (torch 2.9 and later have it fused).

std::vector<int64_t> last_dims(const at::Tensor& tensor, size_t count) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < count; ++i) {
    dims.push_back(tensor.dim() - static_cast<int64_t>(count - i));
  }
  return dims;
}

std::tuple<at::Tensor, at::Tensor> fused_rms_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                                                  const std::optional<at::Tensor>& weight, std::optional<double> eps) {
  DeviceCall call(input);
  const at::Tensor source = call(input);
  const at::Tensor x = widen(source);
  const double epsilon = eps.value_or(x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                                     : std::numeric_limits<float>::epsilon());
  at::Tensor rstd = x.square().mean(last_dims(x, normalized_shape.size()), true).add_(epsilon).rsqrt_();
  at::Tensor y = x * rstd;
  if (const auto w = call(weight)) {
    y.mul_(w->to(y.scalar_type()));
  }
  return call.results(y.to(source.scalar_type()), rstd);
}

std::tuple<at::Tensor, at::Tensor> fused_rms_norm_backward(const at::Tensor& grad_out, const at::Tensor& input,
                                                           at::IntArrayRef normalized_shape, const at::Tensor& rstd,
                                                           const std::optional<at::Tensor>& weight,
                                                           std::array<bool, 2> output_mask) {
  DeviceCall call(input);
  const at::Tensor source = call(input);
  const at::ScalarType dtype = accumulate_dtype(source.scalar_type());
  const at::Tensor grad = call(grad_out).to(dtype);
  const at::Tensor inv = call(rstd).to(dtype);
  const at::Tensor normalized = source.to(dtype) * inv;
  const auto w = call(weight);
  at::Tensor grad_input, grad_weight;
  if (output_mask[0]) {
    const at::Tensor scaled = w ? grad * w->to(dtype) : grad;
    const std::vector<int64_t> dims = last_dims(source, normalized_shape.size());
    grad_input = ((scaled - normalized * (scaled * normalized).mean(dims, true)) * inv).to(source.scalar_type());
  }
  if (output_mask[1] && w) {
    grad_weight = at::sum_to(grad * normalized, normalized_shape).to(w->scalar_type());
  }
  return call.results(grad_input, grad_weight);
}

/// layer_norm and group_norm as the CPU computes them. Its errors about shapes come before CUDA's about dtypes.
std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm(const at::Tensor& input, c10::SymIntArrayRef shape,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias, double eps) {
  auto results = Unboxed<at::_ops::native_layer_norm, spec_native_layer_norm>::call(input, shape, weight, bias, eps);
  check_parameters(input, weight, bias);
  return results;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> group_norm(const at::Tensor& input,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias, c10::SymInt samples,
                                                          c10::SymInt channels, c10::SymInt places, int64_t groups,
                                                          double eps) {
  auto results = Unboxed<at::_ops::native_group_norm, spec_native_group_norm>::call(input, weight, bias, samples,
                                                                                    channels, places, groups, eps);
  check_parameters(input, weight, bias);
  return results;
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/Normalization.h"
