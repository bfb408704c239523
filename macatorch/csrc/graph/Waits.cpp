#include "graph/Waits.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "arguments/Release.h"
#include "arguments/Walker.h"
#include "graph/CompositeMembers.h"

namespace macatorch {
namespace {

using c10::IValue;
using Arguments = at::ArrayRef<IValue>;

bool is_compressed(const at::Tensor& tensor) {
  const c10::Layout layout = tensor.layout();
  return layout != at::kStrided && layout != at::kSparse && is_composite(tensor);
}

at::Tensor tensor_at(Arguments arguments, size_t index) {
  return index < arguments.size() && arguments[index].isTensor() ? arguments[index].toTensor() : at::Tensor();
}

bool always(Arguments) { return true; }

bool has_composite(Arguments arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const IValue& value) {
    bool found = false;
    for_each_tensor(value, [&](const at::Tensor& tensor) { found |= is_composite(tensor); });
    return found;
  });
}

/// Less than two elements are coalesced as they are.
template <size_t kTensor>
bool has_duplicates(Arguments arguments) {
  const at::Tensor tensor = tensor_at(arguments, kTensor);
  return tensor.defined() && tensor.layout() == at::kSparse && !tensor.is_coalesced() && tensor._nnz() > 1;
}

bool is_from_dense(Arguments arguments) {
  const at::Tensor self = tensor_at(arguments, 0);
  return self.defined() && self.layout() == at::kStrided;
}

bool changes_layout(Arguments arguments) {
  const at::Tensor self = tensor_at(arguments, 0);
  return self.defined() && self.layout() != at::kSparseBsr && self.layout() != at::kSparseBsc;
}

bool first_is_coordinates(Arguments arguments) {
  const at::Tensor self = tensor_at(arguments, 0);
  return self.defined() && self.layout() == at::kSparse;
}

/// The operator goes along a dimension that the coordinates tell of; its arguments `kTensor` and `kDimension` say so.
template <size_t kTensor, size_t kDimension>
bool goes_along_coordinates(Arguments arguments) {
  const at::Tensor self = tensor_at(arguments, kTensor);
  if (!self.defined() || self.layout() != at::kSparse || !arguments[kDimension].isInt()) {
    return false;
  }
  const int64_t dimension = arguments[kDimension].toInt();
  return (dimension < 0 ? dimension + self.dim() : dimension) < self.sparse_dim();
}

/// A gradient in coordinates, spread over some of those that were summed.
bool spreads_coordinates(Arguments arguments) {
  const at::Tensor gradient = tensor_at(arguments, 0), self = tensor_at(arguments, 1);
  if (!gradient.defined() || gradient.layout() != at::kSparse || !self.defined() || !arguments[2].isIntList()) {
    return false;
  }
  const auto dimensions = arguments[2].toIntVector();
  return std::any_of(dimensions.begin(), dimensions.end(), [&](int64_t dimension) {
    return (dimension < 0 ? dimension + self.dim() : dimension) < self.sparse_dim();
  });
}

/// Two compressed matrices: how many elements their sum or product has follows from their indices.
template <size_t kFirst>
bool are_compressed(Arguments arguments) {
  const at::Tensor one = tensor_at(arguments, kFirst), other = tensor_at(arguments, kFirst + 1);
  return one.defined() && other.defined() && is_compressed(one) && is_compressed(other);
}

/// A product whose first factor is argument `kFirst`.
template <size_t kFirst>
bool is_counted_product(Arguments arguments) {
  return has_duplicates<kFirst>(arguments) || are_compressed<kFirst>(arguments);
}

/// A nested and a dense tensor: the offsets of the parts go to the device from memory that is not pinned.
bool is_nested_with_dense(Arguments arguments) {
  const at::Tensor self = tensor_at(arguments, 0), other = tensor_at(arguments, 1);
  return self.defined() && other.defined() && self.is_nested() != other.is_nested() && other.dim() > 0 &&
         self.dim() > 0 && (self.is_nested() ? other : self).numel() > 1;
}

bool is_sum_with_sizes(Arguments arguments) { return are_compressed<0>(arguments) || is_nested_with_dense(arguments); }

/// CUDA's kernel, to which sizes and offsets go as well; other tensors are padded part by part.
bool is_padded_at_once(Arguments arguments) {
  const at::Tensor self = tensor_at(arguments, 0);
  if (!self.defined() || !self.is_nested()) {
    return false;
  }
  const at::ScalarType dtype = self.scalar_type();
  return self.dim() >= 2 && self.dim() <= 4 && (dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf);
}

using Condition = bool (*)(Arguments);

const std::unordered_map<std::string, Condition>& operators() {
  static const auto* const table = new std::unordered_map<std::string, Condition>{
      {"aten::_coalesce", &has_duplicates<0>},
      {"aten::_to_sparse", &is_from_dense},
      {"aten::_to_sparse_csr", &is_from_dense},
      {"aten::_to_sparse_csc", &is_from_dense},
      {"aten::_to_sparse_bsr", &changes_layout},
      {"aten::_to_sparse_bsc", &changes_layout},
      {"aten::_sparse_sparse_matmul", &always},
      {"aten::hspmm", &always},
      {"aten::bmm", &first_is_coordinates},
      {"aten::index_select", &goes_along_coordinates<0, 1>},
      {"aten::_sparse_softmax", &goes_along_coordinates<0, 1>},
      {"aten::_sparse_log_softmax", &goes_along_coordinates<0, 1>},
      {"aten::_sparse_softmax_backward_data", &goes_along_coordinates<0, 2>},
      {"aten::_sparse_log_softmax_backward_data", &goes_along_coordinates<0, 2>},
      {"aten::_sparse_sum_backward", &spreads_coordinates},
      {"aten::add", &is_sum_with_sizes},
      {"aten::add_", &is_sum_with_sizes},
      {"aten::mul", &is_nested_with_dense},
      {"aten::mul_", &is_nested_with_dense},
      {"aten::mm", &is_counted_product<0>},
      {"aten::addmm", &is_counted_product<1>},
      {"aten::addmm_", &is_counted_product<1>},
      {"aten::equal", &has_composite},
      {"aten::to_padded_tensor", &is_padded_at_once},
      {"aten::_nested_from_padded", &always},
      {"aten::_nested_from_padded_and_nested_example", &always},
      {"aten::_nested_tensor_from_mask", &always},
      {"aten::_nested_tensor_from_mask_left_aligned", &always},
      {"aten::quantize_per_tensor_dynamic", &always},
  };
  return *table;
}

/// Of quantize_per_tensor the overloads that take scales as tensors: upstream reads them.
bool reads_scales(const c10::OperatorHandle& op) {
  const std::string& overload = op.operator_name().overload_name;
  return op.schema().name() == "aten::quantize_per_tensor" && (overload == "tensor_qparams" || overload == "tensors");
}

/// What asks how many elements there are, whatever its arguments.
bool counts(const std::string& name) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::nonzero",    "aten::masked_select",          "aten::_unique", "aten::_unique2", "aten::unique_consecutive",
      "aten::unique_dim", "aten::unique_dim_consecutive",
  };
  return names->count(name) != 0;
}

Arguments arguments_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  return Arguments(stack.data() + (stack.size() - count), count);
}

}  // namespace

bool waits_for_composite(const c10::OperatorHandle& op, const torch::jit::Stack& stack, bool within) {
  const std::string& name = op.schema().name();
  const auto found = operators().find(name);
  return (found != operators().end() && found->second(arguments_of(op, stack))) || reads_scales(op) ||
         (within && counts(name));
}

void check_host_memory([[maybe_unused]] const c10::OperatorHandle& op,
                       [[maybe_unused]] const torch::jit::Stack& stack) {
#if MACATORCH_TORCH_AT_LEAST(2, 12)
  const std::string& name = op.schema().name();
  if (name != "aten::copy_" && name != "aten::_copy_from" && name != "aten::_to_copy") {
    return;
  }
  const Arguments arguments = arguments_of(op, stack);
  at::Tensor host = tensor_at(arguments, 0);
  bool pinned = false;
  if (name == "aten::_to_copy") {
    const auto device = arguments[3].toOptional<at::Device>();
    if (!device || device->is_cpu() == host.is_cpu()) {
      return;
    }
    // What is made on the host is pinned if the caller asks for it, or need not wait for the copy.
    pinned = host.is_cpu() ? host.is_pinned() : arguments[4].toOptional<bool>().value_or(arguments[5].toBool());
  } else {
    const at::Tensor other = tensor_at(arguments, 1);
    if (!host.defined() || !other.defined() || host.is_cpu() == other.is_cpu()) {
      return;
    }
    host = host.is_cpu() ? host : other;
    pinned = host.is_pinned();
  }
  const bool has_memory = host.layout() == at::kStrided && host.numel() != 0;
  TORCH_CHECK(!has_memory || pinned,
              "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
              "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True.");
#endif
}

bool adds_to_dense(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string& name = op.schema().name();
  if (name != "aten::add" && name != "aten::add_") {
    return false;
  }
  const at::Tensor self = tensor_at(arguments_of(op, stack), 0), other = tensor_at(arguments_of(op, stack), 1);
  return self.defined() && other.defined() && is_plain(self) && other.layout() == at::kSparse;
}

}  // namespace macatorch
