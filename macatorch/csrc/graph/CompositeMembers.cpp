#include "graph/CompositeMembers.h"

#include <ATen/ATen.h>
#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>

#include "arguments/Device.h"

namespace macatorch {
namespace {

bool is_compressed(c10::Layout layout) {
  return layout == at::kSparseCsr || layout == at::kSparseCsc || layout == at::kSparseBsr || layout == at::kSparseBsc;
}

bool is_nested(const at::Tensor& tensor) { return tensor.is_nested() && tensor.layout() == at::kStrided; }

at::SparseTensorImpl& coordinates(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl& compressed(const at::Tensor& tensor) {
  return *static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::native::NestedTensorImpl& nested(const at::Tensor& tensor) {
  return *static_cast<at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::QTensorImpl& quantized(const at::Tensor& tensor) {
  return *static_cast<at::QTensorImpl*>(tensor.unsafeGetTensorImpl());
}

bool is_per_channel(const at::Quantizer& quantizer) {
  return quantizer.qscheme() == at::kPerChannelAffine || quantizer.qscheme() == at::kPerChannelAffineFloatQParams;
}

at::PerChannelAffineQuantizer& channels(const at::QuantizerPtr& quantizer) {
  return static_cast<at::PerChannelAffineQuantizer&>(*quantizer);
}

/// The whole storage as bytes: some quantised dtypes have several elements in one of them.
at::Tensor bytes_of(const at::Tensor& tensor) {
  c10::Storage storage = tensor.storage();
  const auto size = static_cast<int64_t>(storage.nbytes());
  const c10::DispatchKey key = is_on_device(tensor) ? kDeviceKey : kHostKey;
  at::Tensor bytes = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key),
                                                              caffe2::TypeMeta::Make<uint8_t>());
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous({size});
  return bytes;
}

at::QuantizerPtr with_channels(const at::QuantizerPtr& quantizer, const at::Tensor& scales, const at::Tensor& zeros) {
  const int64_t axis = channels(quantizer).axis();
  if (quantizer->qscheme() == at::kPerChannelAffineFloatQParams) {
    return c10::make_intrusive<at::PerChannelAffineFloatQParamsQuantizer>(quantizer->scalar_type(), scales, zeros,
                                                                          axis);
  }
  return c10::make_intrusive<at::PerChannelAffineQuantizer>(quantizer->scalar_type(), scales, zeros, axis);
}

at::Tensor shallow_copy(const at::Tensor& tensor) {
  const c10::impl::ExcludeDispatchKeyGuard no_mode(c10::DispatchKey::Python);
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

bool have_same_bytes(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes() && one.is_contiguous() && other.is_contiguous() &&
         (one.numel() == 0 || std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.nbytes()) == 0);
}

}  // namespace

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_nested() && !tensor.is_quantized() && tensor.has_storage();
}

bool is_composite(const at::Tensor& tensor) {
  return tensor.layout() == at::kSparse || is_compressed(tensor.layout()) || is_nested(tensor) ||
         (tensor.is_quantized() && tensor.has_storage());
}

std::vector<at::Tensor> members_of(const at::Tensor& tensor) {
  if (tensor.layout() == at::kSparse) {
    return {coordinates(tensor).indices(), coordinates(tensor).values()};
  }
  if (is_compressed(tensor.layout())) {
    const auto& impl = compressed(tensor);
    return {impl.compressed_indices(), impl.plain_indices(), impl.values()};
  }
  if (is_nested(tensor)) {
    const auto& impl = nested(tensor);
    return {impl.get_unsafe_storage_as_tensor(), impl.get_nested_sizes(), impl.get_nested_strides(),
            impl.get_storage_offsets()};
  }
  if (tensor.is_quantized()) {
    const at::QuantizerPtr quantizer = quantized(tensor).quantizer();
    if (is_per_channel(*quantizer)) {
      return {bytes_of(tensor), channels(quantizer).scales(), channels(quantizer).zero_points()};
    }
    return {bytes_of(tensor)};
  }
  return {tensor};
}

at::Tensor with_members(const at::Tensor& tensor, const std::vector<at::Tensor>& members) {
  if (tensor.layout() == at::kSparse) {
    at::Tensor copy = shallow_copy(tensor);
    coordinates(copy).set_indices_and_values_unsafe(members[0], members[1]);
    coordinates(copy).set_coalesced(coordinates(tensor).coalesced());
    return copy;
  }
  if (is_compressed(tensor.layout())) {
    at::Tensor copy = shallow_copy(tensor);
    compressed(copy).set_member_tensors(members[0], members[1], members[2], tensor.sizes());
    return copy;
  }
  if (is_nested(tensor)) {
    return at::detail::make_tensor<at::native::NestedTensorImpl>(c10::TensorImpl::VIEW, members[0], members[1],
                                                                 members[2], members[3]);
  }
  const at::QuantizerPtr quantizer = quantized(tensor).quantizer();
  const c10::DispatchKey key = is_on_device(tensor) ? kQuantizedDeviceKey : kQuantizedHostKey;
  at::Tensor copy = at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(members[0].storage()), c10::DispatchKeySet(key), tensor.dtype(),
      is_per_channel(*quantizer) ? with_channels(quantizer, members[1], members[2]) : quantizer);
  copy.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return copy;
}

bool is_described_alike(const at::Tensor& one, const at::Tensor& other) {
  if (one.layout() != other.layout() || one.is_nested() != other.is_nested() ||
      one.is_quantized() != other.is_quantized() || one.scalar_type() != other.scalar_type()) {
    return false;
  }
  if (is_nested(one)) {
    const auto &first = nested(one), &second = nested(other);
    return have_same_bytes(first.get_nested_sizes(), second.get_nested_sizes()) &&
           have_same_bytes(first.get_nested_strides(), second.get_nested_strides()) &&
           have_same_bytes(first.get_storage_offsets(), second.get_storage_offsets());
  }
  if (one.sizes() != other.sizes()) {
    return false;
  }
  if (one.layout() == at::kSparse) {
    return coordinates(one).coalesced() == coordinates(other).coalesced() &&
           coordinates(one).sparse_dim() == coordinates(other).sparse_dim();
  }
  if (!one.is_quantized()) {
    return true;
  }
  const at::QuantizerPtr first = quantized(one).quantizer(), second = quantized(other).quantizer();
  if (one.strides() != other.strides() || one.storage_offset() != other.storage_offset() ||
      first->qscheme() != second->qscheme()) {
    return false;
  }
  return is_per_channel(*first) ? channels(first).axis() == channels(second).axis() : first->equalTo(second);
}

}  // namespace macatorch
