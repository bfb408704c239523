#include "NeuralNet.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "DeviceCall.h"
#include "Random.h"

namespace macatorch {
namespace {

// Note [Attention]
// scaled_dot_product_attention picks a form by direct calls, so each of upstream's CUDA forms (flash, memory-efficient,
// cuDNN) needs an operator here. All of them are one computation: upstream's CPU flash kernel where it can do it, else
// the formula with its scores in memory (dropout, a bias that wants a gradient, fewer key than query heads).
// Low-precision floating dtypes are computed in float and rounded once, as the GPU kernels accumulate.
// Shapes: query (B, H, L, E), key (B, Hk, S, E), value (B, Hk, S, Ev); logsumexp (B, H, L) in float.

struct Problem {
  at::Tensor query, key, value, bias;  // CPU headers, or float copies of them; bias may be undefined
  double dropout;
  bool causal;
  double scale;
  int64_t groups;  // query heads per key head
};

at::Tensor in_float(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
}

Problem make_problem(DeviceCall& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& bias, double dropout, bool causal, std::optional<double> scale) {
  TORCH_CHECK(query.device() == key.device() && query.device() == value.device(),
              "Expected query, key, and value to have the same device type, but got query.device: ", query.device(),
              " key.device: ", key.device(), " and value.device: ", value.device(), " instead.");
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
              "fused attention takes query, key and value of 4 dimensions, got ", query.dim(), ", ", key.dim(), " and ",
              value.dim());
  TORCH_CHECK(key.size(1) == value.size(1) && key.size(1) != 0 && query.size(1) % key.size(1) == 0,
              "fused attention: the number of query heads (", query.size(1),
              ") must be a multiple of the number of key and value heads (", key.size(1), ", ", value.size(1), ")");
  Problem problem{in_float(call(query)),
                  in_float(call(key)),
                  in_float(call(value)),
                  bias && bias->defined() ? call(*bias) : at::Tensor(),
                  dropout,
                  causal,
                  scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(3)))),
                  query.size(1) / key.size(1)};
  if (problem.bias.defined() && problem.bias.scalar_type() != at::kBool) {
    problem.bias = problem.bias.to(problem.query.scalar_type());
  }
  if (problem.groups != 1) {
    problem.key = problem.key.repeat_interleave(problem.groups, 1);
    problem.value = problem.value.repeat_interleave(problem.groups, 1);
  }
  return problem;
}

bool flash_kernel_takes(const Problem& problem) {
  return problem.dropout == 0 && problem.query.size(3) == problem.value.size(3) && problem.query.numel() != 0 &&
         problem.key.numel() != 0;
}

/// Gradient of repeated heads, or of a broadcast bias: the sum over what was repeated.
at::Tensor per_key_head(const at::Tensor& grad, int64_t groups) {
  return groups == 1 ? grad : grad.unflatten(1, {grad.size(1) / groups, groups}).sum(2);
}

at::Tensor scores(const Problem& problem) {
  at::Tensor s = at::matmul(problem.query, problem.key.transpose(-2, -1)).mul_(problem.scale);
  const double low = -std::numeric_limits<double>::infinity();
  if (problem.causal) {
    const at::Tensor allowed = at::ones({s.size(-2), s.size(-1)}, s.options().dtype(at::kBool)).tril_();
    s.masked_fill_(allowed.logical_not_(), low);
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

at::Tensor keep_mask(const Problem& problem, const at::Tensor& like, PhiloxPosition position) {
  at::Tensor mask = at::empty_like(like);
  return mask.bernoulli_(1 - problem.dropout, generator_at(position)).div_(1 - problem.dropout);
}

std::tuple<at::Tensor, at::Tensor> forward(const Problem& problem, PhiloxPosition position) {
  if (flash_kernel_takes(problem)) {
    return at::_scaled_dot_product_flash_attention_for_cpu(
        problem.query, problem.key, problem.value, 0.0, problem.causal,
        problem.bias.defined() ? std::make_optional(problem.bias) : std::nullopt, problem.scale);
  }
  const at::Tensor s = scores(problem);
  at::Tensor logsumexp = s.logsumexp(-1);
  at::Tensor p = probabilities(s, logsumexp);
  if (problem.dropout > 0) {
    p.mul_(keep_mask(problem, p, position));
  }
  // As the flash kernel lays it out: heads next to each other.
  at::Tensor output = at::matmul(p, problem.value).transpose(1, 2).contiguous().transpose(1, 2);
  return {output, logsumexp.to(at::kFloat)};
}

struct Gradients {
  at::Tensor query, key, value, bias;
};

Gradients backward(const Problem& problem, const at::Tensor& grad, const at::Tensor& output,
                   const at::Tensor& logsumexp, PhiloxPosition position, bool wants_bias) {
  Gradients result;
  if (flash_kernel_takes(problem) && !wants_bias) {
    std::tie(result.query, result.key, result.value) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        grad, problem.query, problem.key, problem.value, output, logsumexp, 0.0, problem.causal,
        problem.bias.defined() ? std::make_optional(problem.bias) : std::nullopt, problem.scale);
  } else {
    const at::Tensor p = probabilities(scores(problem), logsumexp.to(problem.query.scalar_type()));
    at::Tensor dropped = p;
    at::Tensor grad_p = at::matmul(grad, problem.value.transpose(-2, -1));
    if (problem.dropout > 0) {
      const at::Tensor mask = keep_mask(problem, p, position);
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
  result.key = per_key_head(result.key, problem.groups);
  result.value = per_key_head(result.value, problem.groups);
  return result;
}

/// The place in the random stream as upstream's two tensors; it stays on the device with the saved tensors.
std::pair<at::Tensor, at::Tensor> position_tensors(DeviceCall& call, PhiloxPosition position) {
  auto scalar = [&](uint64_t value) {
    at::Tensor tensor = at::empty({}, at::TensorOptions().dtype(at::kLong));
    *tensor.mutable_data_ptr<int64_t>() = static_cast<int64_t>(value);
    return call.result(tensor);
  };
  return {scalar(position.seed), scalar(position.offset)};
}

PhiloxPosition position_of(DeviceCall& call, const at::Tensor& seed, const at::Tensor& offset, double dropout) {
  if (dropout == 0) {
    return {};
  }
  return {static_cast<uint64_t>(*call(seed).const_data_ptr<int64_t>()),
          static_cast<uint64_t>(*call(offset).const_data_ptr<int64_t>())};
}

PhiloxPosition draw(DeviceCall& call, double dropout) {
  TORCH_CHECK(dropout >= 0 && dropout < 1, "dropout probability has to be in [0, 1), but got ", dropout);
  return dropout > 0 ? draw_position(std::nullopt, call.device().index()) : PhiloxPosition{};
}

at::Tensor rounded(DeviceCall& call, const at::Tensor& value, const at::Tensor& like) {
  return call.result(value.to(like.scalar_type()));
}

using FlashResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                               at::Tensor, at::Tensor>;

FlashResult flash_form(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const std::optional<at::Tensor>& bias, double dropout, bool causal, bool return_debug_mask,
                       std::optional<double> scale) {
  TORCH_CHECK(
      !return_debug_mask,
      "return_debug_mask: the simulated device does not keep the attention matrix; call with return_debug_mask=False");
  DeviceCall call(query);
  const Problem problem = make_problem(call, query, key, value, bias, dropout, causal, scale);
  const PhiloxPosition position = draw(call, dropout);
  auto [output, logsumexp] = forward(problem, position);
  auto [seed, offset] = position_tensors(call, position);
  return {rounded(call, output, query),
          call.result(logsumexp.contiguous()),
          at::Tensor(),
          at::Tensor(),
          query.sym_size(2),
          key.sym_size(2),
          seed,
          offset,
          at::empty({0}, query.options())};
}

FlashResult flash_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout,
                            bool causal, bool return_debug_mask, std::optional<double> scale) {
  return flash_form(query, key, value, std::nullopt, dropout, causal, return_debug_mask, scale);
}

FlashResult cudnn_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const std::optional<at::Tensor>& bias, bool /*compute_log_sumexp*/, double dropout,
                            bool causal, bool return_debug_mask, std::optional<double> scale) {
  return flash_form(query, key, value, bias, dropout, causal, return_debug_mask, scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> any_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& bias, const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor& seed,
    const at::Tensor& offset, double dropout, bool causal, std::optional<double> scale, bool wants_bias) {
  DeviceCall call(query);
  const Problem problem = make_problem(call, query, key, value, bias, dropout, causal, scale);
  const Gradients grads =
      backward(problem, in_float(call(grad_out)), in_float(call(out)), call(logsumexp).narrow(-1, 0, query.size(2)),
               position_of(call, seed, offset, dropout), wants_bias);
  return {rounded(call, grads.query, query), rounded(call, grads.key, key), rounded(call, grads.value, value),
          grads.bias.defined() ? rounded(call, grads.bias, *bias) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt,
    double dropout, bool causal, const at::Tensor& seed, const at::Tensor& offset, std::optional<double> scale) {
  if (!grad_out.defined()) {
    return {};
  }
  auto [q, k, v, bias] = any_backward(grad_out, query, key, value, std::nullopt, out, logsumexp, seed, offset, dropout,
                                      causal, scale, false);
  return {q, k, v};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> cudnn_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor& seed, const at::Tensor& offset,
    const at::Tensor& bias, const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt, double dropout, bool causal,
    std::optional<double> scale) {
  if (!grad_out.defined()) {
    return {};
  }
  auto [q, k, v, none] =
      any_backward(grad_out, query, key, value, bias, out, logsumexp, seed, offset, dropout, causal, scale, false);
  return {q, k, v};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& bias,
    bool compute_log_sumexp, double dropout, bool causal, std::optional<double> scale) {
  DeviceCall call(query);
  const Problem problem = make_problem(call, query, key, value, bias, dropout, causal, scale);
  const PhiloxPosition position = draw(call, dropout);
  auto [output, logsumexp] = forward(problem, position);
  auto [seed, offset] = position_tensors(call, position);
  // Upstream's kernel rounds the last dimension of its logsumexp up to 32, and has none where no gradient is wanted.
  const int64_t length = query.size(2);
  const int64_t kept = compute_log_sumexp ? (length + 31) / 32 * 32 : 0;
  at::Tensor padded =
      at::full({query.size(0), query.size(1), kept}, std::numeric_limits<float>::infinity(), logsumexp.options());
  if (compute_log_sumexp) {
    padded.narrow(-1, 0, length).copy_(logsumexp);
  }
  return {rounded(call, output, query), call.result(padded), seed, offset};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& bias, const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor& seed,
    const at::Tensor& offset, double dropout, std::array<bool, 4> wanted, bool causal, std::optional<double> scale) {
  if (!grad_out.defined()) {
    return {};
  }
  return any_backward(grad_out, query, key, value, bias, out, logsumexp, seed, offset, dropout, causal, scale,
                      wanted[3] && bias.defined());
}

}  // namespace

void register_attention(torch::Library& cuda) {
  cuda.impl("_scaled_dot_product_flash_attention", TORCH_FN(flash_attention));
  cuda.impl("_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_attention_backward));
  cuda.impl("_scaled_dot_product_cudnn_attention", TORCH_FN(cudnn_attention));
  cuda.impl("_scaled_dot_product_cudnn_attention_backward", TORCH_FN(cudnn_attention_backward));
  cuda.impl("_scaled_dot_product_efficient_attention", TORCH_FN(efficient_attention));
  cuda.impl("_scaled_dot_product_efficient_attention_backward", TORCH_FN(efficient_attention_backward));
}

}  // namespace macatorch
