#include "ops/attention/Attention.h"
#include "ops/random/Draws.h"
#include "registered/Specs.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments/Arguments.h"
#include "arguments/Release.h"

namespace macatorch {
namespace {

// Upstream's CPU kernel for what has no dropout.
#if MACATORCH_TORCH_AT_LEAST(2, 4)
constexpr bool kKernelTakesBias = true;

std::tuple<at::Tensor, at::Tensor> flash_kernel(const AttentionProblem& problem) {
  return at::_scaled_dot_product_flash_attention_for_cpu(
      problem.query, problem.key, problem.value, 0.0, problem.causal,
      problem.bias.defined() ? std::make_optional(problem.bias) : std::nullopt, problem.scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_kernel_backward(const AttentionProblem& problem,
                                                                     const at::Tensor& grad, const at::Tensor& output,
                                                                     const at::Tensor& logsumexp) {
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad, problem.query, problem.key, problem.value, output, logsumexp, 0.0, problem.causal,
      problem.bias.defined() ? std::make_optional(problem.bias) : std::nullopt, problem.scale);
}
#else
constexpr bool kKernelTakesBias = false;

std::tuple<at::Tensor, at::Tensor> flash_kernel(const AttentionProblem& problem) {
  const auto results = at::_scaled_dot_product_flash_attention(problem.query, problem.key, problem.value, 0.0,
                                                               problem.causal, false, problem.scale);
  return {std::get<0>(results), std::get<1>(results)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_kernel_backward(const AttentionProblem& problem,
                                                                     const at::Tensor& grad, const at::Tensor& output,
                                                                     const at::Tensor& logsumexp) {
  return at::_scaled_dot_product_flash_attention_backward(grad, problem.query, problem.key, problem.value, output,
                                                          logsumexp, {}, {}, 0, 0, 0.0, problem.causal, {}, {},
                                                          problem.scale);
}
#endif

bool flash_kernel_takes(const AttentionProblem& problem) {
  return problem.dropout == 0 && (kKernelTakesBias || !problem.bias.defined()) && !problem.banned.defined() &&
         problem.query.size(3) == problem.value.size(3) && problem.query.numel() != 0 && problem.key.numel() != 0;
}

/// Gradient of repeated heads, or of a broadcast bias: the sum over what was repeated.
at::Tensor per_head(const at::Tensor& grad, int64_t groups) {
  return groups == 1 ? grad : grad.unflatten(1, {grad.size(1) / groups, groups}).sum(2);
}

at::Tensor scores(const AttentionProblem& problem) {
  at::Tensor s = at::matmul(problem.query, problem.key.transpose(-2, -1)).mul_(problem.scale);
  const double low = -std::numeric_limits<double>::infinity();
  if (problem.causal) {
    const at::Tensor allowed = at::ones({s.size(-2), s.size(-1)}, s.options().dtype(at::kBool)).tril_();
    s.masked_fill_(allowed.logical_not_(), low);
  }
  if (problem.banned.defined()) {
    s.masked_fill_(problem.banned, low);
  }
  if (problem.bias.defined()) {
    if (problem.bias.scalar_type() == at::kBool) {
      s.masked_fill_(problem.bias.logical_not(), low);
    } else {
      s.add_(problem.bias);
    }
  }
  return s;
}

at::Tensor probabilities(const at::Tensor& scores, const at::Tensor& logsumexp) {
  // A row with nothing allowed has logsumexp -inf, and attends to nothing.
  const at::Tensor row = logsumexp.unsqueeze(-1);
  return (scores - row.masked_fill(row.isneginf(), 0)).exp_();
}

at::Tensor keep_mask(const AttentionProblem& problem, const at::Tensor& like,
                     const std::optional<at::Generator>& random) {
  // _fill_mem_eff_dropout_mask_ promises these very numbers.
  const DrawsInside draws;
  const at::Tensor numbers = at::empty(like.sizes(), like.options().dtype(at::kFloat)).uniform_(0, 1, random);
  return numbers.gt(problem.dropout).to(like.scalar_type()).div_(1 - problem.dropout);
}

/// Upstream's CPU flash kernel reads rows as if their elements were neighbours; a tensor that arrived in channels_last
/// has others.
at::Tensor with_dense_rows(const at::Tensor& tensor) {
  return !tensor.defined() || tensor.stride(-1) == 1 || tensor.size(-1) == 1 ? tensor : tensor.contiguous();
}

/// Upstream's CPU kernel lays its output out as the query is, which must not repeat memory then (a sliding window).
at::Tensor with_own_memory(const at::Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1) {
      dims.emplace_back(tensor.stride(d), tensor.size(d));
    }
  }
  std::sort(dims.begin(), dims.end());
  int64_t extent = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < extent) {
      return tensor.contiguous();
    }
    extent = stride * (size - 1) + extent;
  }
  return tensor;
}

}  // namespace

void check_flash_dtypes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::ScalarType dtype = query.scalar_type();
  TORCH_CHECK(dtype == at::kHalf || dtype == at::kBFloat16, "FlashAttention only support fp16 and bf16 data type");
  TORCH_CHECK(key.scalar_type() == dtype, "query and key must have the same dtype");
  TORCH_CHECK(value.scalar_type() == dtype, "query and value must have the same dtype");
}

void check_efficient_dtypes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  TORCH_CHECK(query.scalar_type() == key.scalar_type());
  TORCH_CHECK(query.scalar_type() == value.scalar_type());
  const at::ScalarType dtype = query.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16,
              "Only fp32, half & bf16 supported at the moment");
}

AttentionProblem attention_problem(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                   const at::Tensor& bias, double dropout, bool causal, std::optional<double> scale,
                                   Heads heads) {
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
              "fused attention takes query, key and value of 4 dimensions, got ", query.dim(), ", ", key.dim(), " and ",
              value.dim());
  const bool grouped =
      key.size(1) != 0 && query.size(1) % key.size(1) == 0 && value.size(1) != 0 && query.size(1) % value.size(1) == 0;
  TORCH_CHECK(grouped && (heads == Heads::kOfTwoNumbers || key.size(1) == value.size(1)),
              "fused attention: the number of query heads (", query.size(1),
              ") must be a multiple of the number of key and value heads (", key.size(1), ", ", value.size(1), ")");
  TORCH_CHECK(query.size(0) == key.size(0) && query.size(0) == value.size(0) && key.size(2) == value.size(2) &&
                  query.size(3) == key.size(3),
              "fused attention broadcasts nothing: query ", query.sizes(), ", key ", key.sizes(), " and value ",
              value.sizes(), " must have one batch size, query and key one head dimension, key and value one length");
  AttentionProblem problem{with_own_memory(with_dense_rows(widen(query))),
                           with_dense_rows(widen(key)),
                           with_dense_rows(widen(value)),
                           with_dense_rows(bias),
                           dropout,
                           causal,
                           scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(3)))),
                           query.size(1) / key.size(1),
                           query.size(1) / value.size(1),
                           {}};
  if (problem.bias.defined() && problem.bias.scalar_type() != at::kBool) {
    problem.bias = problem.bias.to(problem.query.scalar_type());
  }
  if (problem.key_groups != 1) {
    problem.key = problem.key.repeat_interleave(problem.key_groups, 1);
  }
  if (problem.value_groups != 1) {
    problem.value = problem.value.repeat_interleave(problem.value_groups, 1);
  }
  return problem;
}

std::tuple<at::Tensor, at::Tensor> attention_forward(const AttentionProblem& problem,
                                                     const std::optional<at::Generator>& random) {
  if (flash_kernel_takes(problem)) {
    return flash_kernel(problem);
  }
  const at::Tensor s = scores(problem);
  at::Tensor logsumexp = s.logsumexp(-1);
  at::Tensor p = probabilities(s, logsumexp);
  if (problem.dropout > 0) {
    p.mul_(keep_mask(problem, p, random));
  }
  // As the flash kernel lays it out: heads next to each other.
  at::Tensor output = at::matmul(p, problem.value).transpose(1, 2).contiguous().transpose(1, 2);
  return {output, logsumexp.to(at::kFloat)};
}

AttentionGradients attention_backward(const AttentionProblem& problem, const at::Tensor& grad, const at::Tensor& output,
                                      const at::Tensor& logsumexp, const std::optional<at::Generator>& random,
                                      bool wants_bias) {
  AttentionGradients result;
  if (flash_kernel_takes(problem) && !wants_bias) {
    std::tie(result.query, result.key, result.value) =
        flash_kernel_backward(problem, with_dense_rows(grad), with_dense_rows(output), logsumexp);
  } else {
    const at::Tensor p = probabilities(scores(problem), logsumexp.to(problem.query.scalar_type()));
    at::Tensor dropped = p;
    at::Tensor grad_p = at::matmul(grad, problem.value.transpose(-2, -1));
    if (problem.dropout > 0) {
      const at::Tensor mask = keep_mask(problem, p, random);
      dropped = p * mask;
      grad_p.mul_(mask);
    }
    result.value = at::matmul(dropped.transpose(-2, -1), grad);
    const at::Tensor grad_scores = p * (grad_p - (grad * output).sum(-1, true));
    result.query = at::matmul(grad_scores, problem.key).mul_(problem.scale);
    result.key = at::matmul(grad_scores.transpose(-2, -1), problem.query).mul_(problem.scale);
    if (wants_bias) {
      result.bias = at::sum_to(grad_scores, problem.bias.sizes());
    }
  }
  result.key = per_head(result.key, problem.key_groups);
  result.value = per_head(result.value, problem.value_groups);
  return result;
}

at::Tensor signed_probabilities(const AttentionProblem& problem, const at::Tensor& logsumexp,
                                const std::optional<at::Generator>& random) {
  const at::Tensor p = probabilities(scores(problem), logsumexp.to(problem.query.scalar_type()));
  return at::where(keep_mask(problem, p, random).eq(0), -p, p);
}

PhiloxPosition attention_position(DeviceCall& call, double dropout) {
  TORCH_CHECK(dropout >= 0 && dropout < 1, "dropout probability has to be in [0, 1), but got ", dropout);
  return dropout > 0 ? draw_position(std::nullopt, call.device().index()) : PhiloxPosition{};
}

std::optional<at::Generator> attention_random(PhiloxPosition position, double dropout) {
  return dropout > 0 ? std::make_optional(generator_at(position)) : std::nullopt;
}

std::pair<at::Tensor, at::Tensor> position_tensors(DeviceCall& call, PhiloxPosition position, bool packed) {
  const auto numbers = [&](std::initializer_list<uint64_t> values, at::IntArrayRef shape, at::ScalarType dtype) {
    at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(dtype));
    auto* data = static_cast<uint64_t*>(tensor.mutable_data_ptr());
    std::copy(values.begin(), values.end(), data);
    return call.result(tensor);
  };
  if (packed) {
    return {numbers({position.seed, position.offset}, {2}, kUInt64), numbers({0}, {}, kUInt64)};
  }
  return {numbers({position.seed}, {}, at::kLong), numbers({position.offset}, {}, at::kLong)};
}

PhiloxPosition position_of(DeviceCall& call, const at::Tensor& first, const at::Tensor& second, double dropout) {
  if (dropout == 0) {
    return {};
  }
  const auto* numbers = static_cast<const uint64_t*>(call(first).const_data_ptr());
  if (first.numel() == 2) {
    return {numbers[0], numbers[1]};
  }
  return {numbers[0], *static_cast<const uint64_t*>(call(second).const_data_ptr())};
}

at::Tensor with_empty_rows(const at::Tensor& logsumexp) {
  return logsumexp.masked_fill(logsumexp.isneginf(), std::numeric_limits<double>::infinity());
}

at::Tensor with_aligned_rows(const at::Tensor& gradient, at::ScalarType dtype) {
  std::vector<int64_t> shape = gradient.sizes().vec();
  shape.back() = (shape.back() + 15) / 16 * 16;
  return at::empty(shape, gradient.options().dtype(dtype)).narrow(-1, 0, gradient.size(-1)).copy_(gradient);
}

namespace {

// What scaled_dot_product_attention calls: dense heads-first tensors.

/// Which of upstream's kernels is asked for. They differ in what they take, and in their results' shapes and strides.
enum class Kernel { kFlash, kEfficient, kCudnn };

AttentionProblem make_problem(DeviceCall& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const std::optional<at::Tensor>& bias, double dropout, bool causal,
                              std::optional<double> scale, Kernel kernel) {
  TORCH_CHECK(query.device() == key.device() && query.device() == value.device(),
              "Expected query, key, and value to have the same device type, but got query.device: ", query.device(),
              " key.device: ", key.device(), " and value.device: ", value.device(), " instead.");
  AttentionProblem problem =
      attention_problem(call(query), call(key), call(value), bias ? call(*bias) : at::Tensor(), dropout, causal, scale,
                        kernel == Kernel::kCudnn ? Heads::kOfTwoNumbers : Heads::kOfOneNumber);
  const int64_t further = key.size(2) - query.size(2);
  // In flash attention the last query stands at the last key where lengths differ; else the first at the first.
  if (kernel == Kernel::kFlash && causal && further != 0) {
    problem.causal = false;
    problem.banned = at::ones({query.size(2), key.size(2)}, at::TensorOptions().dtype(at::kBool)).triu_(further + 1);
  }
  return problem;
}

/// Whether the release's flash form packs the random place into one tensor.
bool packs_position() {
  static const bool packed = [] {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_scaled_dot_product_flash_attention", "");
    return op.schema().returns()[6].name() == "rng_state";
  }();
  return packed;
}

/// Whether cuDNN's logsumexp is (B, H, L, 1) and not (B, H, L): since it has a form for packed sequences too.
bool cudnn_sums_are_columns() {
  static const bool columns =
      c10::Dispatcher::singleton().findSchema({"aten::_cudnn_attention_forward", ""}).has_value();
  return columns;
}

/// Whether flash attention's results have the strides of the query: up to 2.1 heads are next to each other there too.
constexpr bool kFlashKeepsOrder = MACATORCH_TORCH_AT_LEAST(2, 4);

/// An output or a gradient with the strides of upstream's kernels: those of the query (or of what the gradient is of)
/// for flash and cuDNN, heads next to each other otherwise.
at::Tensor laid_out(DeviceCall& call, const at::Tensor& output, const at::Tensor& like, bool like_given) {
  const at::Tensor given = call(like);
  const at::Tensor value = output.to(like.scalar_type());
  const bool dense = like_given && given.is_non_overlapping_and_dense() && given.sizes() == value.sizes();
  if (dense ? value.strides() == given.strides() : value.transpose(1, 2).is_contiguous()) {
    return call.result(value);
  }
  at::Tensor result =
      dense ? at::empty_strided(given.sizes(), given.strides(), value.options())
            : at::empty({value.size(0), value.size(2), value.size(1), value.size(3)}, value.options()).transpose(1, 2);
  return call.result(result.copy_(value));
}

using FlashResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                               at::Tensor, at::Tensor>;

/// signed_probabilities with lengths rounded up to flash attention's blocks.
at::Tensor debug_mask(DeviceCall& call, const AttentionProblem& problem, const at::Tensor& logsumexp,
                      PhiloxPosition position, const at::Tensor& query) {
  const at::Tensor p =
      signed_probabilities(problem, logsumexp, attention_random(position, problem.dropout)).to(query.scalar_type());
  return call.result(
      at::constant_pad_nd(p, {0, in_blocks(p.size(3)) - p.size(3), 0, in_blocks(p.size(2)) - p.size(2)}));
}

FlashResult flash_form(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const std::optional<at::Tensor>& bias, double dropout, bool causal, bool return_debug_mask,
                       std::optional<double> scale, Kernel kernel) {
  TORCH_CHECK(!return_debug_mask || dropout > 0, "return_softmax is only supported when p_dropout > 0.0");
  DeviceCall call(query);
  const AttentionProblem problem = make_problem(call, query, key, value, bias, dropout, causal, scale, kernel);
  const PhiloxPosition position = attention_position(call, dropout);
  auto [output, logsumexp] = attention_forward(problem, attention_random(position, dropout));
  const bool flash = kernel == Kernel::kFlash;
  if (flash && key.size(2) < query.size(2)) {
    logsumexp = with_empty_rows(logsumexp);
  }
  logsumexp = logsumexp.contiguous();
  if (!flash && cudnn_sums_are_columns()) {
    logsumexp = logsumexp.unsqueeze(-1);
  }
  auto [seed, offset] = position_tensors(call, position, flash && packs_position());
  at::Tensor mask =
      return_debug_mask ? debug_mask(call, problem, logsumexp, position, query) : at::empty({0}, query.options());
  return {laid_out(call, output, query, kFlashKeepsOrder),
          call.result(logsumexp),
          at::Tensor(),
          at::Tensor(),
          query.sym_size(2),
          key.sym_size(2),
          seed,
          offset,
          mask};
}

FlashResult flash_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout,
                            bool causal, bool return_debug_mask, std::optional<double> scale) {
  check_flash_dtypes(query, key, value);
  return flash_form(query, key, value, std::nullopt, dropout, causal, return_debug_mask, scale, Kernel::kFlash);
}

/// By name: 2.4 has no bias, and the backward's arguments in another order.
void cudnn_attention(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  FlashResult result = flash_form(given.tensor("query"), given.tensor("key"), given.tensor("value"),
                                  given.tensor("attn_bias"), *given.number("dropout_p"), given.flag("is_causal"),
                                  given.flag("return_debug_mask"), given.number("scale"), Kernel::kCudnn);
  std::apply([&](auto&... results) { given.give(std::move(results)...); }, result);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> any_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& bias, const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor& seed,
    const at::Tensor& offset, double dropout, bool causal, std::optional<double> scale, bool wants_bias,
    Kernel kernel) {
  DeviceCall call(query);
  const AttentionProblem problem = make_problem(call, query, key, value, bias, dropout, causal, scale, kernel);
  at::Tensor sums = call(logsumexp);
  if (kernel == Kernel::kCudnn && sums.dim() == 4) {
    sums = sums.squeeze(-1);
  }
  const AttentionGradients grads =
      attention_backward(problem, widen(call(grad_out)), widen(call(out)), sums.narrow(-1, 0, query.size(2)),
                         attention_random(position_of(call, seed, offset, dropout), dropout), wants_bias);
  const bool like_given = kernel == Kernel::kCudnn || (kernel == Kernel::kFlash && kFlashKeepsOrder);
  return {laid_out(call, grads.query, query, like_given), laid_out(call, grads.key, key, like_given),
          laid_out(call, grads.value, value, like_given),
          grads.bias.defined() ? call.result(with_aligned_rows(grads.bias, bias->scalar_type())) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt,
    double dropout, bool causal, const at::Tensor& seed, const at::Tensor& offset, std::optional<double> scale) {
  if (!grad_out.defined()) {
    return {};
  }
  warn_of_order<kFlashAttention>();
  check_flash_dtypes(query, key, value);
  auto [q, k, v, bias] = any_backward(grad_out, query, key, value, std::nullopt, out, logsumexp, seed, offset, dropout,
                                      causal, scale, false, Kernel::kFlash);
  return {q, k, v};
}

void cudnn_attention_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor grad_out = given.tensor("grad_out");
  if (!grad_out.defined()) {
    given.give(at::Tensor(), at::Tensor(), at::Tensor());
    return;
  }
  warn_of_order<kCudnnAttention>();
  auto [q, k, v, none] = any_backward(
      grad_out, given.tensor("query"), given.tensor("key"), given.tensor("value"), given.tensor("attn_bias"),
      given.tensor("out"), given.tensor("logsumexp"), given.tensor("philox_seed"), given.tensor("philox_offset"),
      *given.number("dropout_p"), given.flag("is_causal"), given.number("scale"), false, Kernel::kCudnn);
  given.give(q, k, v);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& bias,
    bool compute_log_sumexp, double dropout, bool causal, std::optional<double> scale) {
  check_efficient_dtypes(query, key, value);
#if MACATORCH_TORCH_AT_LEAST(2, 12) && !MACATORCH_TORCH_AT_LEAST(2, 15)
  constexpr int64_t kMostBlocks = 65535;
  TORCH_CHECK(dropout == 0 || query.size(0) <= kMostBlocks,
              "Efficient attention cannot produce valid seed and offset outputs when the batch size exceeds (",
              kMostBlocks, ").");
#endif
  DeviceCall call(query);
  const AttentionProblem problem =
      make_problem(call, query, key, value, bias, dropout, causal, scale, Kernel::kEfficient);
  const PhiloxPosition position = attention_position(call, dropout);
  auto [output, logsumexp] = attention_forward(problem, attention_random(position, dropout));
  auto [seed, offset] = position_tensors(call, position, false);
  // Upstream's kernel rounds the last dimension of its logsumexp up to 32, and has none where no gradient is wanted.
  const int64_t length = query.size(2);
  const int64_t kept = compute_log_sumexp ? (length + 31) / 32 * 32 : 0;
  at::Tensor padded =
      at::full({query.size(0), query.size(1), kept}, std::numeric_limits<float>::infinity(), logsumexp.options());
  if (compute_log_sumexp) {
    padded.narrow(-1, 0, length).copy_(logsumexp);
  }
  return {laid_out(call, output, query, false), call.result(padded), seed, offset};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& bias, const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor& seed,
    const at::Tensor& offset, double dropout, std::array<bool, 4> wanted, bool causal, std::optional<double> scale) {
  if (!grad_out.defined()) {
    return {};
  }
  warn_of_order<kEfficientAttention>();
  check_efficient_dtypes(query, key, value);
#if MACATORCH_TORCH_AT_LEAST(2, 12)
  TORCH_CHECK(!wanted[3] || bias.defined(), "bias_requires_grad is true but no bias was provided");
#endif
  return any_backward(grad_out, query, key, value, bias, out, logsumexp, seed, offset, dropout, causal, scale,
                      wanted[3] && bias.defined(), Kernel::kEfficient);
}

}  // namespace
}  // namespace macatorch

#include "registered/attention/Attention.h"
