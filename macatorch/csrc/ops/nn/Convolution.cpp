
#include <ATen/ATen.h>
#include <ATen/TracerMode.h>
#include <ATen/Version.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/_conv_depthwise2d_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <c10/util/Metaprogramming.h>

#include <algorithm>
#include <vector>

#include "alias/DeviceCall.h"
#include "arguments/Device.h"
#include "arguments/Release.h"
#include "dispatch/Precision.h"
#include "fast/LayoutCopy.h"
#include "fast/Lines.h"
#include "fast/Processor.h"
#include "ops/Strides.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

// `convolution` is composite and would choose cuDNN by the tensor's device; here the device's convolution is the CPU's
// choice (oneDNN, mostly). Halves are widened (Note [Precision]), but for bfloat16 where the processor multiplies it
// and the choice is oneDNN, whose accumulate dtype is float.

using Ints = c10::SymIntArrayRef;
constexpr c10::DispatchKeySet kCpu(kHostKey);

// Strides, dilations and groups as the release's functions take them.
#if MACATORCH_TORCH_AT_LEAST(2, 4)
Ints steps(Ints numbers) { return numbers; }
const c10::SymInt& count(const c10::SymInt& number) { return number; }
#else
at::IntArrayRef steps(Ints numbers) { return C10_AS_INTARRAYREF_SLOW(numbers); }
int64_t count(const c10::SymInt& number) { return number.guard_int(__FILE__, __LINE__); }
#endif

at::Tensor widen_half(const at::Tensor& tensor) { return is_half(tensor.scalar_type()) ? widen(tensor) : tensor; }
at::Tensor rounded(const at::Tensor& result, const at::Tensor& input) {
  return result.defined() ? result.to(input.scalar_type()) : result;
}
at::Tensor in_double(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat ? tensor.to(at::kDouble) : tensor;
}

/// Upstream's message for a model and an input on different devices, or of different dtypes.
void check_same_type(const at::Tensor& input, const at::Tensor& other, const char* what) {
  TORCH_CHECK(!other.defined() || input.options().type_equal(other.options()), "Input type (", input.toString(),
              ") and ", what, " type (", other.toString(), ") should be the same");
}

bool is_double(const at::Tensor& input, const at::Tensor& weight) {
  return input.scalar_type() == at::kDouble || weight.scalar_type() == at::kDouble;
}

/// cuDNN's rule: channels-last where input or weight is, and never in double precision (nor in the complex numbers that
/// are computed with it). A batch of one has strides that fit both, and the CPU's choice may then be the other.
at::MemoryFormat output_format(const at::Tensor& input, const at::Tensor& weight) {
  if (is_double(input, weight)) {
    return at::MemoryFormat::Contiguous;
  }
  const at::MemoryFormat format = input.suggest_memory_format();
  return format != at::MemoryFormat::Contiguous ? format : weight.suggest_memory_format();
}

/// One number may stand for all dimensions. Lists of another length are refused by the CPU's function.
int64_t of_dimension(Ints numbers, int64_t dim) {
  if (numbers.empty()) {
    return 1;
  }
  return numbers[std::min<size_t>(dim, numbers.size() - 1)].guard_int(__FILE__, __LINE__);
}

/// Whether some results see nothing but padding, as a padded kernel of one pixel does. oneDNN ends the process for some
/// of these, so they are computed in double precision, which it does not have.
bool sees_padding_alone(const at::Tensor& weight, Ints padding, Ints dilation) {
  for (int64_t dim = 0; dim < weight.dim() - 2; ++dim) {
    if (of_dimension(padding, dim) > of_dimension(dilation, dim) * (weight.size(dim + 2) - 1)) {
      return true;
    }
  }
  return false;
}

/// Whether oneDNN's bfloat16 can be trusted with these sizes. On processors with AMX it leaves results unwritten, or
/// ends the process, where a side is one pixel wide and the kernel steps or is padded, and it writes no gradient of the
/// weight for dilated kernels of one channel; by 2.15 a transposed convolution leaves pixels that no kernel reaches
/// without their bias. So a side that is one pixel wide, a kernel that is larger than the image, any dilation and steps
/// over pixels are computed in float, where a random search found nothing but what sees_padding_alone names.
bool has_plain_sizes(const at::Tensor& input, const at::Tensor& weight, Ints stride, Ints padding, Ints dilation,
                     bool transposed) {
  if (input.dim() != weight.dim()) {
    return false;  // refused by the CPU's function
  }
  for (int64_t dim = 0; dim < input.dim() - 2; ++dim) {
    const int64_t size = input.size(dim + 2), kernel = weight.size(dim + 2), step = of_dimension(stride, dim);
    const int64_t pads = 2 * of_dimension(padding, dim);
    if (step < 1) {
      return false;
    }
    const int64_t result = transposed ? (size - 1) * step - pads + kernel : (size + pads - kernel) / step + 1;
    if ((transposed && step > kernel) || of_dimension(dilation, dim) != 1 || pads >= 2 * kernel ||
        std::min(size, result) < 2 || std::max(size, result) < kernel) {
      return false;
    }
  }
  return true;
}

/// Whether oneDNN would read the wrong pixels: of one channel in channels-last, for a result that is one pixel wide, by
/// kernels that take steps to the right and none down. It does so on the CPU as well. Seen with AVX-512 in float.
bool misses_pixels(const at::Tensor& input, const at::Tensor& weight, Ints stride, Ints padding, Ints dilation,
                   const c10::SymInt& groups) {
  const int64_t dims = weight.dim() - 2;
  if (C10_LIKELY(dims < 2 || weight.size(1) != 1 || groups != 1 || of_dimension(stride, dims - 1) == 1)) {
    return false;
  }
  const int64_t right = dims - 1, kernel = of_dimension(dilation, right) * (weight.size(-1) - 1) + 1;
  const int64_t pads = padding.empty() ? 0 : of_dimension(padding, right);
  return input.size(-1) + 2 * pads - kernel < of_dimension(stride, right);
}

/// Whether a convolution of CPU aliases is computed in bfloat16, by oneDNN.
bool stays_bfloat16(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                    Ints stride, Ints padding, Ints dilation, bool transposed, Ints output_padding,
                    const c10::SymInt& groups, at::OptionalSymIntArrayRef bias_sizes) {
  using at::native::ConvBackend;
  static const bool multiplies = has_bfloat16_products();
  if (!multiplies || input.scalar_type() != at::kBFloat16 || weight.scalar_type() != at::kBFloat16 ||
      !has_plain_sizes(input, weight, stride, padding, dilation, transposed)) {
    return false;
  }
  const ConvBackend backend =
      at::native::select_conv_backend(input, weight, bias, steps(stride), padding, steps(dilation), transposed,
                                      output_padding, count(groups), bias_sizes);
  return backend == ConvBackend::Mkldnn || backend == ConvBackend::MkldnnTranspose;
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       Ints stride, Ints padding, Ints dilation, bool transposed, Ints output_padding,
                       c10::SymInt groups) {
  check_same_type(input, weight, "weight");
  if (bias) {
    check_same_type(input, *bias, "bias");
  }
  TORCH_CHECK(input.device() == weight.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ", input.device(),
              " and ", weight.device(), "!");
  if (at::isIntegralType(input.scalar_type(), /*includeBool=*/true)) {
    const bool volumes = weight.dim() == 5;
    refuse_dtype(transposed ? (volumes ? "slow_conv_transpose3d_out_cuda" : "slow_conv_transpose2d_out_cuda")
                            : (volumes ? "slow_conv_dilated<>" : "slow_conv2d_cuda"),
                 input.scalar_type());
  }
  if (C10_UNLIKELY(at::tracer::impl::is_dispatch_enabled())) {
    // The tracer records no `convolution` but what upstream's is made of.
    at::Context& context = at::globalContext();
    return at::_convolution_symint(input, weight, bias, steps(stride), padding, steps(dilation), transposed,
                                   output_padding, count(groups), context.benchmarkCuDNN(),
                                   context.deterministicCuDNN(), context.userEnabledCuDNN(), context.allowTF32CuDNN());
  }
  DeviceCall call(input);
  at::Tensor source = plain_strides(call(input)), kernel = plain_strides(call(weight));
  std::optional<at::Tensor> added = call(bias);
  if (!stays_bfloat16(source, kernel, added, stride, padding, dilation, transposed, output_padding, groups,
                      std::nullopt)) {
    source = widen_half(source);
    kernel = widen_half(kernel);
    added = added ? std::make_optional(widen_half(*added)) : std::nullopt;
  }
  if (C10_UNLIKELY(sees_padding_alone(kernel, padding, dilation))) {
    source = in_double(source);
    kernel = in_double(kernel);
    added = added ? std::make_optional(in_double(*added)) : std::nullopt;
  }
  if (C10_UNLIKELY(!transposed && misses_pixels(source, kernel, stride, padding, dilation, groups))) {
    source = in_rows(source);
    kernel = in_rows(kernel);
  }
  std::optional<at::Tensor> result =
      plane_convolution(source, kernel, added, stride, padding, dilation, transposed, groups);
  if (!result) {
    result = at::_ops::convolution::redispatch(kCpu, source, kernel, added, steps(stride), padding, steps(dilation),
                                               transposed, output_padding, count(groups));
  }
  return call.result(in_format(rounded(*result, input), output_format(input, weight)));
}

/// Whether the weight's gradient is computed in contiguous copies: without AVX-512 oneDNN takes 1.3 to 2.3 times as
/// long for it in channels-last (1.1 to 1.7 where it is transposed) where the kernel covers several pixels, and the
/// copies take a fraction of that. Small tensors and few input channels gain nothing. With AVX-512 channels-last is the
/// faster.
bool copies_for_weight_gradient(const at::Tensor& input, const at::Tensor& weight, const c10::SymInt& groups) {
  static const bool slow = at::get_cpu_capability() != "AVX512";
  return slow && input.dim() == 4 && groups == 1 && weight.size(1) >= 32 && weight.size(2) * weight.size(3) > 1 &&
         input.numel() >= int64_t{1} << 14 && output_format(input, weight) == at::MemoryFormat::ChannelsLast;
}

/// Whether oneDNN would write behind its workspace for the weight's gradient: kernels of one pixel that skip pixels,
/// of fewer than 16 channels in channels-last. It packs the pixels that count there, and takes their offset in blocks
/// of 16 channels. Seen with AVX-512 in float; other processors and layouts are spared the risk.
bool overruns_workspace(const at::Tensor& weight, Ints stride, Ints padding) {
  const auto is = [](Ints numbers, int64_t wanted) {
    return std::all_of(numbers.begin(), numbers.end(), [&](const c10::SymInt& each) { return each == wanted; });
  };
  const at::IntArrayRef sizes = weight.sizes();
  return sizes.size() > 2 && sizes[1] < 16 && !is(stride, 1) && is(padding, 0) &&
         std::all_of(sizes.begin() + 2, sizes.end(), [](int64_t size) { return size == 1; });
}

/// The pixels that kernels of one pixel meet: every `stride`-th of each dimension, as many as `other` has.
at::Tensor met_pixels(at::Tensor tensor, const at::Tensor& other, Ints stride) {
  const at::MemoryFormat format = tensor.suggest_memory_format();
  for (int64_t dim = 2; dim < tensor.dim(); ++dim) {
    const int64_t step = of_dimension(stride, dim - 2);
    tensor = tensor.slice(dim, 0, (other.size(dim) - 1) * step + 1, step);
  }
  return in_format(tensor, format);
}

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Gradients convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                               at::OptionalSymIntArrayRef bias_sizes, Ints stride, Ints padding, Ints dilation,
                               bool transposed, Ints output_padding, c10::SymInt groups,
                               std::array<bool, 3> output_mask) {
  DeviceCall call(grad_output);
  const bool widest = sees_padding_alone(weight, padding, dilation);
  const bool contiguous = widest || is_double(input, weight);  // see output_format
  const bool as_it_is = stays_bfloat16(call(input), call(weight), std::nullopt, stride, padding, dilation, transposed,
                                       output_padding, groups, bias_sizes);
  const auto given = [&](const at::Tensor& tensor) {
    const at::Tensor plain = plain_strides(call(tensor));
    const at::Tensor wide = as_it_is ? plain : widen_half(plain);
    return widest ? in_double(wide).contiguous() : contiguous ? wide.contiguous() : wide;
  };
  const at::Tensor grad = given(grad_output);
  const at::Tensor source = given(input);
  const at::Tensor kernel = given(weight);
  const auto gradients = [&](const at::Tensor& of, const at::Tensor& from, const at::Tensor& by,
                             std::array<bool, 3> wanted) {
    return at::_ops::convolution_backward::redispatch(kCpu, of, from, by, bias_sizes, steps(stride), padding,
                                                      steps(dilation), transposed, output_padding, count(groups),
                                                      wanted);
  };
  Gradients found;
  if (output_mask[1] && copies_for_weight_gradient(input, weight, groups)) {
    const auto plain = at::MemoryFormat::Contiguous;
    // Of the weight, its own gradient needs the size alone.
    const at::Tensor sized = at::empty_like(kernel, kernel.options(), plain);
    found = gradients(in_format(grad, plain), in_format(source, plain), sized, {false, true, output_mask[2]});
    std::get<1>(found) = in_format(std::get<1>(found), at::MemoryFormat::ChannelsLast);
    if (output_mask[0]) {
      std::get<0>(found) = std::get<0>(gradients(grad, source, kernel, {true, false, false}));
    }
  } else if (output_mask[1] && !contiguous && overruns_workspace(kernel, stride, padding)) {
    if (output_mask[0] || output_mask[2]) {
      found = gradients(grad, source, kernel, {output_mask[0], false, output_mask[2]});
    }
    const std::vector<c10::SymInt> ones(stride.size(), 1), none(stride.size(), 0);
    const at::Tensor of = transposed ? met_pixels(grad, source, stride) : grad;
    const at::Tensor from = transposed ? source : met_pixels(source, grad, stride);
    std::get<1>(found) = std::get<1>(
        at::_ops::convolution_backward::redispatch(kCpu, of, from, kernel, std::nullopt, steps(ones), none, steps(ones),
                                                   transposed, none, count(groups), {false, true, false}));
  } else {
    found = gradients(grad, source, kernel, output_mask);
  }
  const auto& [grad_input, grad_weight, grad_bias] = found;
  return call.results(rounded(grad_input, input), rounded(grad_weight, input), rounded(grad_bias, input));
}

// What traced programs hold; where it is computed has been chosen already.
at::Tensor underscore_convolution(const at::Tensor& input, const at::Tensor& weight,
                                  const std::optional<at::Tensor>& bias, Ints stride, Ints padding, Ints dilation,
                                  bool transposed, Ints output_padding, c10::SymInt groups, bool, bool, bool, bool) {
  return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, std::move(groups));
}

// cuDNN's own entry points, for programs that call them by name.

at::Tensor plain_convolution(const at::Tensor& self, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                             Ints stride, Ints padding, Ints dilation, c10::SymInt groups) {
  const std::vector<c10::SymInt> none(self.dim() - 2, 0);
  return convolution(self, weight, bias, stride, padding, dilation, false, none, std::move(groups));
}

at::Tensor cudnn_convolution(const at::Tensor& self, const at::Tensor& weight, Ints padding, Ints stride, Ints dilation,
                             c10::SymInt groups, bool, bool, bool) {
  return plain_convolution(self, weight, std::nullopt, stride, padding, dilation, std::move(groups));
}

at::Tensor& cudnn_convolution_out(const at::Tensor& self, const at::Tensor& weight, Ints padding, Ints stride,
                                  Ints dilation, c10::SymInt groups, bool, bool, bool, at::Tensor& out) {
  const at::Tensor result = plain_convolution(self, weight, std::nullopt, stride, padding, dilation, std::move(groups));
  out.resize_(result.sizes()).copy_(result);
  return out;
}

at::Tensor cudnn_convolution_transpose(const at::Tensor& self, const at::Tensor& weight, Ints padding,
                                       Ints output_padding, Ints stride, Ints dilation, c10::SymInt groups, bool, bool,
                                       bool) {
  return convolution(self, weight, std::nullopt, stride, padding, dilation, true, output_padding, std::move(groups));
}

at::Tensor cudnn_convolution_add_relu(const at::Tensor& self, const at::Tensor& weight, const at::Tensor& z,
                                      const std::optional<at::Scalar>& alpha, const std::optional<at::Tensor>& bias,
                                      Ints stride, Ints padding, Ints dilation, c10::SymInt groups) {
  at::Tensor result = plain_convolution(self, weight, bias, stride, padding, dilation, std::move(groups));
  return result.add_(z, alpha.value_or(1)).relu_();
}

at::Tensor cudnn_convolution_relu(const at::Tensor& self, const at::Tensor& weight,
                                  const std::optional<at::Tensor>& bias, Ints stride, Ints padding, Ints dilation,
                                  c10::SymInt groups) {
  return plain_convolution(self, weight, bias, stride, padding, dilation, std::move(groups)).relu_();
}

at::Tensor conv_depthwise(const at::Tensor& self, const at::Tensor& weight, Ints /*kernel_size: the weight's own*/,
                          const std::optional<at::Tensor>& bias, Ints stride, Ints padding, Ints dilation) {
  return plain_convolution(self, weight, bias, stride, padding, dilation, self.sym_size(1));
}

// A mutable tensor was declared `const Tensor&` here in older releases.
using DepthwiseOut = c10::guts::infer_function_traits_t<at::_ops::_conv_depthwise2d_out::schema>::return_type;

DepthwiseOut conv_depthwise2d_out(const at::Tensor& self, const at::Tensor& weight, Ints kernel_size,
                                  const std::optional<at::Tensor>& bias, Ints stride, Ints padding, Ints dilation,
                                  DepthwiseOut out) {
  const at::Tensor result = conv_depthwise(self, weight, kernel_size, bias, stride, padding, dilation);
  out.resize_(result.sizes()).copy_(result);
  return out;
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/Convolution.h"
