#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include "alias/DeviceCall.h"
#include "dispatch/Precision.h"
#include "random/Random.h"

namespace macatorch {

// Note [Attention]
// scaled_dot_product_attention picks a form by direct calls, so each of upstream's CUDA forms (flash, memory-efficient,
// cuDNN) needs an operator here. All of them are one computation: upstream's CPU flash kernel where it can do it, else
// the formula with its scores in memory (dropout, a bias that wants a gradient, an attention mask by position).
// Low precision is widened and rounded once: Note [Precision].
// Shapes: query (B, H, L, E), key (B, Hk, S, E), value (B, Hv, S, Ev), where Hv is Hk but for cuDNN; logsumexp
// (B, H, L) in float.

struct AttentionProblem {
  at::Tensor query, key, value, bias;  // CPU aliases, or widened copies of them; bias may be undefined
  double dropout;
  bool causal;
  double scale;
  int64_t key_groups;    // query heads per key head
  int64_t value_groups;  // query heads per value head
  at::Tensor banned;     // attention mask (L, S), true where a query may not see a key; may be undefined
};

struct AttentionGradients {
  at::Tensor query, key, value, bias;
};

/// Raises what upstream's kernels raise for a dtype that they lack: all but halves, and all but halves and float.
void check_flash_dtypes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);
void check_efficient_dtypes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// Whether key and value have as many heads as each other.
enum class Heads { kOfOneNumber, kOfTwoNumbers };

/// Checks and widens CPU tensors; heads of key and value are repeated for their groups. `scale` None: 1 / sqrt(E).
AttentionProblem attention_problem(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                   const at::Tensor& bias, double dropout, bool causal, std::optional<double> scale,
                                   Heads heads = Heads::kOfOneNumber);

/// (output, logsumexp). `random` is what dropout draws from: None where there is none.
std::tuple<at::Tensor, at::Tensor> attention_forward(const AttentionProblem& problem,
                                                     const std::optional<at::Generator>& random);

/// `random` has to be in the state that the forward pass was given.
AttentionGradients attention_backward(const AttentionProblem& problem, const at::Tensor& grad, const at::Tensor& output,
                                      const at::Tensor& logsumexp, const std::optional<at::Generator>& random,
                                      bool wants_bias);

/// A row that sees no key has an infinite logsumexp in upstream's flash and memory-efficient kernels.
at::Tensor with_empty_rows(const at::Tensor& logsumexp);

inline constexpr char kFlashAttention[] = "Flash Attention";
inline constexpr char kEfficientAttention[] = "Memory Efficient attention";
inline constexpr char kCudnnAttention[] = "cuDNN Attention";

/// Upstream's backward kernels add in any order where use_deterministic_algorithms only warns. Here there is one order.
template <const char* kernel>
void warn_of_order() {
  if (at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicAlgorithmsWarnOnly()) {
    TORCH_WARN_ONCE(kernel,
                    " defaults to a non-deterministic algorithm. To explicitly enable determinism call "
                    "torch.use_deterministic_algorithms(True, warn_only=False).");
  }
}

/// The gradient of a bias as upstream's memory-efficient kernel lays it out: each row begins at a multiple of 16
/// elements.
at::Tensor with_aligned_rows(const at::Tensor& gradient, at::ScalarType dtype);

/// The attention matrix (B, H, L, S) as flash attention gives it for debugging: a minus sign where dropout dropped.
/// `random` as in the backward pass.
at::Tensor signed_probabilities(const AttentionProblem& problem, const at::Tensor& logsumexp,
                                const std::optional<at::Generator>& random);

/// A length rounded up to the blocks of flash attention's debug mask.
constexpr int64_t in_blocks(int64_t length) { return (length + 127) / 128 * 128; }

/// Takes the place of a call in the random stream; (0, 0) without dropout.
PhiloxPosition attention_position(DeviceCall& call, double dropout);
std::optional<at::Generator> attention_random(PhiloxPosition position, double dropout);

/// The place as upstream's tensors, and back. `packed`: one tensor of two numbers and an unused one (torch 2.7 and
/// later, flash form), else two scalars.
std::pair<at::Tensor, at::Tensor> position_tensors(DeviceCall& call, PhiloxPosition position, bool packed);
PhiloxPosition position_of(DeviceCall& call, const at::Tensor& first, const at::Tensor& second, double dropout);

}  // namespace macatorch
