#include "alias/CompositeTensors.h"

#include <ATen/ATen.h>
#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

#include <array>
#include <utility>

#include "arguments/Device.h"

namespace macatorch {
namespace {

bool is_compressed(c10::Layout layout) {
  return layout == at::kSparseCsr || layout == at::kSparseCsc || layout == at::kSparseBsr || layout == at::kSparseBsc;
}

bool compresses_rows(c10::Layout layout) { return layout == at::kSparseCsr || layout == at::kSparseBsr; }

at::native::NestedTensorImpl& nested(const at::Tensor& tensor) {
  return *static_cast<at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
}

/// Indices and values of a compressed tensor, as stored.
std::array<at::Tensor, 3> members(const at::Tensor& tensor) {
  const bool rows = compresses_rows(tensor.layout());
  return {rows ? tensor.crow_indices() : tensor.ccol_indices(), rows ? tensor.col_indices() : tensor.row_indices(),
          tensor.values()};
}

/// The same tensor over other members, each of them changed by `change`.
template <class Change>
at::Tensor rebuild(const at::Tensor& tensor, const Change& change) {
  if (tensor.is_nested()) {
    const auto& impl = nested(tensor);
    return at::_nested_view_from_buffer(change(impl.get_unsafe_storage_as_tensor()), impl.get_nested_sizes(),
                                        impl.get_nested_strides(), impl.get_storage_offsets());
  }
  if (tensor.layout() == at::kSparse) {
    const at::Tensor values = change(tensor._values());
    return at::_sparse_coo_tensor_unsafe(change(tensor._indices()), values, tensor.sizes(),
                                         values.options().layout(at::kSparse), tensor.is_coalesced());
  }
  auto [compressed, plain, values] = members(tensor);
  const at::Tensor data = change(values);
  return at::_sparse_compressed_tensor_unsafe(change(compressed), change(plain), data, tensor.sizes(),
                                              data.options().layout(tensor.layout()));
}

at::QTensorImpl& quantized(const at::Tensor& tensor) {
  return *static_cast<at::QTensorImpl*>(tensor.unsafeGetTensorImpl());
}

/// The same quantiser with its scales and zero points, where it has a tensor of them, changed by `change`.
template <class Change>
at::QuantizerPtr requantized(const at::QuantizerPtr& quantizer, const Change& change) {
  const auto scheme = quantizer->qscheme();
  if (scheme != at::kPerChannelAffine && scheme != at::kPerChannelAffineFloatQParams) {
    return quantizer;
  }
  const auto& channels = static_cast<const at::PerChannelAffineQuantizer&>(*quantizer);
  return at::make_per_channel_affine_quantizer(change(channels.scales()), change(channels.zero_points()),
                                               channels.axis(), quantizer->scalar_type());
}

bool can_rebuild(const at::Tensor& tensor) {
  return (tensor.is_nested() && tensor.layout() == at::kStrided) || tensor.layout() == at::kSparse ||
         is_compressed(tensor.layout());
}

}  // namespace

at::Tensor AnyAliases::bind(const at::Tensor& tensor, bool write) {
  if (!tensor.defined() || !is_on_device(tensor)) {
    return tensor;
  }
  if (C10_LIKELY(is_plain_cuda(*tensor.unsafeGetTensorImpl()))) {
    kept_.push_back(tensor);
    return dense_.bind(tensor, write);
  }
  if (!can_rebuild(tensor) && !tensor.is_quantized()) {
    return tensor;
  }
  for (Composite& composite : composites_) {
    if (composite.device.is_same(tensor)) {
      if (write && !composite.write) {
        // Read before as another argument of the same call.
        composite.write = true;
        for (const at::Tensor& member : composite.members) {
          dense_.will_write(member);
        }
      }
      return composite.alias;
    }
  }
  if (tensor.is_quantized()) {
    composites_.push_back({quantized_alias(tensor, write), tensor, write, {}});
    return composites_.back().alias;
  }
  std::vector<at::Tensor> members;
  at::Tensor alias = rebuild(tensor, [&](const at::Tensor& member) {
    kept_.push_back(member);
    return members.emplace_back(dense_.bind(member, write));
  });
  composites_.push_back({alias, tensor, write, std::move(members)});
  return alias;
}

at::Tensor AnyAliases::quantized_alias(const at::Tensor& tensor, bool write) {
  kept_.push_back(tensor);
  // A plain alias lends its storage; the quantiser makes the difference.
  const at::Tensor plain = dense_.bind(tensor, write);
  const at::QuantizerPtr quantizer = requantized(quantized(tensor).quantizer(), [&](const at::Tensor& member) {
    kept_.push_back(member);
    return is_on_device(member) ? dense_.bind(member, false) : member;
  });
  at::Tensor alias = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(plain.storage()), c10::DispatchKeySet(kQuantizedHostKey), plain.dtype(), quantizer);
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return alias;
}

at::Tensor AnyAliases::quantized_result(const at::Tensor& result, c10::Device device) const {
  at::Tensor moved = dense_.to_device(result, device);
  quantized(moved).set_quantizer_(requantized(
      quantized(moved).quantizer(), [&](const at::Tensor& member) { return dense_.to_device(member, device); }));
  return moved;
}

void AnyAliases::write_back(c10::Device device) {
  dense_.write_back(device);
  for (const Composite& composite : composites_) {
    if (!composite.write) {
      continue;
    }
    if (composite.alias.is_quantized()) {
      auto& target = quantized(composite.device);
      const at::Tensor& alias = composite.alias;
      if (target.sizes() != alias.sizes() || target.strides() != alias.strides()) {
        target.set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
      }
      target.set_quantizer_(requantized(quantized(alias).quantizer(),
                                        [&](const at::Tensor& member) { return dense_.to_device(member, device); }));
    } else if (composite.alias.layout() == at::kSparse) {
      auto* target = static_cast<at::SparseTensorImpl*>(composite.device.unsafeGetTensorImpl());
      target->raw_resize_(composite.alias.sparse_dim(), composite.alias.dense_dim(), composite.alias.sizes());
      target->set_indices_and_values_unsafe(to_device(composite.alias._indices(), device),
                                            to_device(composite.alias._values(), device));
      target->set_coalesced(composite.alias.is_coalesced());
    } else if (is_compressed(composite.alias.layout())) {
      auto [compressed, plain, values] = members(composite.alias);
      at::sparse_csr::get_sparse_csr_impl(composite.device)
          ->set_member_tensors(to_device(compressed, device), to_device(plain, device), to_device(values, device),
                               composite.alias.sizes());
    }
  }
}

at::Tensor AnyAliases::to_device(const at::Tensor& result, c10::Device device) const {
  if (!result.defined() || !result.is_cpu()) {
    return result;
  }
  for (const Composite& composite : composites_) {
    if (composite.alias.is_same(result)) {
      return composite.device;
    }
  }
  if (C10_UNLIKELY(result.is_quantized())) {
    return quantized_result(result, device);
  }
  if (C10_UNLIKELY(can_rebuild(result))) {
    return rebuild(result, [&](const at::Tensor& member) { return dense_.to_device(member, device); });
  }
  return dense_.to_device(result, device);
}

}  // namespace macatorch
