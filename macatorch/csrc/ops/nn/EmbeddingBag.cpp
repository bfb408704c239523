#include <ATen/ATen.h>

#include "arguments/Arguments.h"
#include "dispatch/Precision.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

constexpr int64_t kMax = 2;  // the mode that keeps which element was the largest

/// _embedding_bag. The CPU's kernel leaves out what its own backward does not need; CUDA's always gives each index's
/// bag and each bag's size (padding not counted), and the largest elements' indices in one mode only. They are of the
/// common dtype of indices and offsets. CUDA's first bag begins at the first index whatever its offset says, where the
/// CPU's kernel refuses another offset than 0; no kernel of the device reads it.
template <const OperatorSpec& spec>
void embedding_bag(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Arguments given(op, stack);
  const at::Tensor indices = given.tensor("indices");
  at::Tensor offsets = given.tensor("offsets");
  if (offsets.dim() == 1 && offsets.size(0) != 0) {
    offsets = at::cat({at::zeros({1}, offsets.options()), offsets.slice(0, 1)});
    given.replace("offsets", offsets);
  }
  const at::TensorOptions places_type =
      indices.options().dtype(at::promoteTypes(indices.scalar_type(), offsets.scalar_type()));
  const bool open = given.flag("include_last_offset");
  const int64_t mode = *given.integer("mode");
  const int64_t padding = *given.integer("padding_idx");
  call_boxed(spec, op, stack);
  const at::Tensor starts = open ? offsets.slice(0, 0, -1) : offsets;
  const at::Tensor places = at::arange(indices.size(0), offsets.options());
  const at::Tensor bags = at::searchsorted(starts.contiguous(), places, /*out_int32=*/false, /*right=*/true).sub(1);
  at::Tensor sizes = at::zeros(offsets.sizes(), places_type);
  if (starts.size(0) != 0) {
    sizes.index_add_(0, bags, indices.ne(padding).to(sizes.scalar_type()));
  }
  *(stack->end() - 3) = bags.to(sizes.scalar_type());
  *(stack->end() - 2) = sizes;
  if (mode != kMax) {
    *(stack->end() - 1) = at::empty({0}, places_type);
  }
}

/// _embedding_bag_backward and _embedding_bag_dense_backward. CUDA's kernel for the largest elements has no bfloat16.
template <const OperatorSpec& spec>
void embedding_bag_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Arguments given(op, stack);
  if (*given.integer("mode") == kMax && !given.flag("sparse") && given.tensor("grad").scalar_type() == at::kBFloat16) {
    refuse_dtype("embedding_bag_backward_cuda_max", at::kBFloat16);
  }
  call_boxed(spec, op, stack);
}

/// CUDA's kernel rounds the product of each element of a gradient and a row to their dtype, adds the products in float,
/// and rounds the sum; the CPU's rounds no product.
template <const OperatorSpec& spec>
void gradient_of_sample_weights(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr int64_t kSum = 0;
  Arguments given(op, stack);
  const at::Tensor grad = given.tensor("grad"), weight = given.tensor("weight"), indices = given.tensor("indices");
  const at::Tensor bags = given.tensor("offset2bag");
  // What does not fit is for the kernel to refuse.
  const bool fits = *given.integer("mode") == kSum && grad.dim() == 2 && weight.dim() == 2 &&
                    grad.scalar_type() == weight.scalar_type() && grad.size(1) == weight.size(1) &&
                    bags.sizes() == indices.sizes() && grad.device() == weight.device() &&
                    grad.device() == indices.device();
  if (!fits || !is_half(grad.scalar_type())) {
    call_boxed(spec, op, stack);
    return;
  }
  const at::Tensor products = grad.index_select(0, bags).mul_(weight.index_select(0, indices));
  at::Tensor result = products.sum(1, /*keepdim=*/false, at::kFloat).to(grad.scalar_type());
  const int64_t padding = *given.integer("padding_idx");
  if (padding >= 0) {
    result.masked_fill_(indices.eq(padding), 0);
  }
  given.give(result);
}

}  // namespace
}  // namespace macatorch

#include "registered/nn/EmbeddingBag.h"
