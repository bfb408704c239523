#include "dispatch/Widened.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/TypeProperties.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arguments/Walker.h"
#include "dispatch/Precision.h"

namespace macatorch {
namespace {

using c10::IValue;
using torch::jit::Stack;

// Note [What is computed wider]
// Upstream's CPU kernels lack low-precision dtypes here and there. Which ones is known when the wheel is built
// (OperatorSpec::cpu_lacks); nothing is learned from a call, so that no call changes what a later one gives. A kernel
// that raises for a dtype which the table does not have is called again for this one call, wider.
// The dtype of a result does not depend on what was computed wider: an iterator's follows from the promoted dtype of
// its operands, which is low or nothing is widened.

constexpr uint64_t kFloatingOrComplex = kLowPrecision | dtype_bit(at::kFloat) | dtype_bit(at::kDouble) |
                                        dtype_bit(at::kComplexFloat) | dtype_bit(at::kComplexDouble);

/// The dtype of a result of `dtype` that was computed wider than `narrow`; half-precision numbers may be real or
/// complex.
at::ScalarType narrowed(at::ScalarType dtype, at::ScalarType narrow) {
  if (dtype == at::kFloat && narrow != at::kComplexHalf) {
    return narrow;
  }
  if (dtype == at::kFloat || dtype == at::kComplexFloat) {
    return narrow == at::kBFloat16 ? dtype : dtype == at::kFloat ? at::kHalf : at::kComplexHalf;
  }
  return dtype;
}

/// The dtypes that OperatorSpec::results names; none for a result of an argument that was not given.
std::vector<std::optional<at::ScalarType>> result_dtypes(const OperatorSpec& spec, const IValue* arguments) {
  std::vector<std::optional<at::ScalarType>> dtypes;
  for (const int8_t argument : spec.results) {
    std::optional<at::ScalarType>& dtype = dtypes.emplace_back();
    if (argument == OperatorSpec::kFloatResult) {
      dtype = at::kFloat;
    } else if (arguments[argument].isTensor() && arguments[argument].toTensor().defined()) {
      dtype = arguments[argument].toTensor().scalar_type();
    }
  }
  return dtypes;
}

bool iterates(const OperatorSpec& spec) {
  return spec.check == DeviceCheck::TensorIterator || spec.check == DeviceCheck::StructuredOut;
}

bool is_dtype_argument(const c10::Argument& argument) { return argument.name() == "dtype"; }

/// The wide copies of one call's low-precision tensors. They alias as the tensors do: one tensor has one copy, and
/// tensors that share a storage which is written have views of one copy of it. So a kernel's own checks of memory and
/// shape (overlap, `out` that is an input) have the same outcome as without copies.
class WideCopies {
 public:
  WideCopies(uint64_t dtypes, const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) : dtypes_(dtypes) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool written = is_written(schema, i);
      for_each_tensor(arguments[i], [&](const at::Tensor& tensor) { survey(tensor, written); });
    }
  }

  at::Tensor of(const at::Tensor& tensor) {
    const at::ScalarType dtype = tensor.scalar_type();
    if ((dtypes_ & dtype_bit(dtype)) == 0) {
      return tensor;
    }
    at::Tensor& copy = copies_[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) {
      copy = make(tensor);
    }
    return copy;
  }

 private:
  /// What the tensors over one storage have in common.
  struct Region {
    at::ScalarType dtype;
    const c10::TensorImpl* only;  // the one tensor; nullptr: there are several
    bool written = false;
    bool uniform = true;  // one dtype
    int64_t begin = 0;    // in elements, from the start of the storage
    int64_t end = 0;
    at::Tensor copy;  // flat, from `begin` on
  };

  static bool is_strided(const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && tensor.has_storage() && tensor.numel() != 0;
  }

  static int64_t end_of(const at::Tensor& tensor) {
    int64_t last = tensor.storage_offset();
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      last += (tensor.size(d) - 1) * tensor.stride(d);
    }
    return last + 1;
  }

  void survey(const at::Tensor& tensor, bool written) {
    if (!is_strided(tensor)) {
      return;
    }
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const int64_t begin = tensor.storage_offset(), end = end_of(tensor);
    const auto [found, is_new] = regions_.try_emplace(impl->unsafe_storage().unsafeGetStorageImpl());
    Region& region = found->second;
    if (is_new) {
      region.dtype = tensor.scalar_type();
      region.only = impl;
      region.begin = begin;
      region.end = end;
    }
    region.uniform &= region.dtype == tensor.scalar_type();
    region.only = region.only == impl ? impl : nullptr;
    region.written |= written;
    region.begin = std::min(region.begin, begin);
    region.end = std::max(region.end, end);
  }

  at::Tensor make(const at::Tensor& tensor) {
    const at::ScalarType wide = accumulate_dtype(tensor.scalar_type());
    if (!is_strided(tensor)) {
      return tensor.to(wide);
    }
    Region& region = regions_.at(tensor.storage().unsafeGetStorageImpl());
    const bool alone = region.only != nullptr && tensor.is_non_overlapping_and_dense();
    if (!region.written || alone || !region.uniform) {
      return tensor.to(wide);
    }
    at::Tensor bytes = tensor.is_conj() ? at::_conj(tensor) : tensor;
    bytes = tensor.is_neg() ? at::_neg_view(bytes) : bytes;
    if (!region.copy.defined()) {
      region.copy = at::as_strided(bytes, {region.end - region.begin}, {1}, region.begin).to(wide);
    }
    const int64_t offset = tensor.storage_offset() - region.begin;
    at::Tensor copy = at::as_strided(region.copy, tensor.sizes(), tensor.strides(), offset);
    copy = tensor.is_neg() ? at::_neg_view(copy) : copy;
    return tensor.is_conj() ? at::_conj(copy) : copy;
  }

  uint64_t dtypes_;
  std::unordered_map<const c10::StorageImpl*, Region> regions_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> copies_;
};

/// Runs the CPU kernel with dtypes of `wide` in the next wider one, and rounds once. `narrow`: what results are rounded
/// to; none: the dtype of the last tensor that was widened.
void call_widened(const OperatorSpec& spec, const c10::OperatorHandle& op, Stack* stack, uint64_t wide,
                  std::optional<at::ScalarType> narrow) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const size_t first = stack->size() - count;
  const std::vector<std::optional<at::ScalarType>> exact = result_dtypes(spec, stack->data() + first);
  const bool promoted = narrow.has_value();
  WideCopies copies(wide, schema, at::ArrayRef<IValue>(stack->data() + first, count));
  std::vector<std::pair<at::Tensor, at::Tensor>> written;  // narrow, wide
  bool asked = false;                                      // the caller names the dtype of the result
  for (size_t i = 0; i < count; ++i) {
    IValue& value = (*stack)[first + i];
    const bool write = is_written(schema, i);
    value = map_tensors(value, [&](const at::Tensor& tensor) {
      at::Tensor other = copies.of(tensor);
      if (!other.is_same(tensor)) {
        narrow = promoted ? narrow : tensor.scalar_type();
        if (write) {
          written.emplace_back(tensor, other);
        }
      }
      return other;
    });
    if (value.isInt() && is_dtype_argument(schema.arguments()[i])) {
      const auto dtype = static_cast<at::ScalarType>(value.toInt());
      asked = (wide & dtype_bit(dtype)) == 0;
      if (!asked) {
        narrow = dtype;
        value = static_cast<int64_t>(accumulate_dtype(dtype));
      }
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
  for (auto& [target, value] : written) {
    // A tensor that could have been written, such as the statistics of an evaluation, may be an expanded one.
    if (target.layout() == at::kStrided && at::has_internal_overlap(target) == at::MemOverlap::Yes &&
        target.to(value.scalar_type()).equal(value)) {
      continue;
    }
    const bool compressed = at::sparse_csr::is_sparse_compressed(target);
    if (target.sizes() != value.sizes() || (compressed && target._nnz() != value._nnz())) {
      const bool sparse = compressed || target.layout() == at::kSparse;
      sparse ? target.resize_as_sparse_(value) : target.resize_(value.sizes());
    }
    target.copy_(value);
  }
  std::optional<at::ScalarType> own;
  auto round = [&](const at::Tensor& tensor) {
    for (auto& [target, value] : written) {
      if (value.is_same(tensor)) {
        return target;
      }
    }
    if (own) {
      return tensor.to(*own);
    }
    return narrow && !asked ? tensor.to(narrowed(tensor.scalar_type(), *narrow)) : tensor;
  };
  const size_t results = schema.returns().size();
  for (size_t i = 0; i < results; ++i) {
    IValue& value = (*stack)[stack->size() - results + i];
    own = i < exact.size() ? exact[i] : std::nullopt;
    value = map_tensors(value, round);
  }
}

/// The low-precision dtypes that the table says are computed wider.
uint64_t lacking(const OperatorSpec& spec, uint64_t dtypes) {
  const uint64_t low = dtypes & kLowPrecision;
  const auto several = [](uint64_t set) { return (set & (set - 1)) != 0; };
  // A product of two dtypes is refused by the kernel itself; made one dtype it would be computed.
  if (!iterates(spec) && spec.results.empty() && several(dtypes & kFloatingOrComplex)) {
    return 0;
  }
  const bool always = spec.widens && (!spec.results.empty() || !several(dtypes));
  return low & (always ? kLowPrecision : spec.cpu_lacks);
}

/// Where complex halves are computed wider, halves are: they would make the result a complex half again.
uint64_t with_parts(uint64_t wide, uint64_t low) {
  return (wide & dtype_bit(at::kComplexHalf)) != 0 ? wide | (low & dtype_bit(at::kHalf)) : wide;
}

}  // namespace

at::ScalarType kernel_dtype(const OperatorSpec& spec, const c10::FunctionSchema& schema,
                            at::ArrayRef<IValue> arguments) {
  at::native::ResultTypeState state;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const IValue& value = arguments[i];
    const c10::Argument& argument = schema.arguments()[i];
    if (value.isTensor() && value.toTensor().defined() && !argument.is_out()) {
      if (!iterates(spec)) {
        return value.toTensor().scalar_type();
      }
      state = at::native::update_result_type_state(value.toTensor(), state);
    } else if (iterates(spec) && value.isScalar() && argument.type()->kind() == c10::TypeKind::NumberType) {
      state = at::native::update_result_type_state(value.toScalar(), state);
    }
  }
  return at::native::result_type(state);
}

void call_cpu(const OperatorSpec& spec, const c10::OperatorHandle& op, Stack* stack, uint64_t dtypes) {
  const uint64_t low = dtypes & kLowPrecision;
  const c10::DispatchKeySet cpu(spec.cpu_key);
  if (C10_LIKELY(low == 0)) {
    op.redispatchBoxed(cpu, stack);
    return;
  }
  const auto& schema = op.schema();
  const size_t first = stack->size() - schema.arguments().size();
  const Stack arguments(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
  // The promoted dtype of an iterator, where it is asked for: it alone decides, and it is what results are rounded to.
  std::optional<at::ScalarType> promoted;
  const auto promote = [&] {
    if (iterates(spec) && !promoted) {
      promoted = kernel_dtype(spec, schema, arguments);
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].isInt() && is_dtype_argument(schema.arguments()[i])) {
          promoted = static_cast<at::ScalarType>(arguments[i].toInt());
        }
      }
    }
    return !promoted || is_low(*promoted);
  };
  const auto attempt = [&](uint64_t wide) {
    // What a kernel had taken from the stack when it gave up differs from kernel to kernel.
    stack->resize(first);
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    wide == 0 ? op.redispatchBoxed(cpu, stack) : call_widened(spec, op, stack, wide, promoted);
  };
  uint64_t wide = lacking(spec, dtypes);
  if (wide != 0 && iterates(spec)) {
    wide = promote() && (spec.widens || (spec.cpu_lacks & dtype_bit(*promoted)) != 0) ? low : 0;
  }
  wide = with_parts(wide, low);
  if (wide != 0) {
    std::exception_ptr reason;
    try {
      attempt(wide);
      return;
    } catch (const c10::Error& error) {
      if (std::strstr(error.what_without_backtrace(), "Float") == nullptr) {
        throw;
      }
      reason = std::current_exception();
    }
    // Without widening the kernel's message names the dtypes that the caller gave.
    try {
      attempt(0);
      return;
    } catch (const c10::Error& error) {
      lacks_dtype(error.what_without_backtrace(), low) ? std::rethrow_exception(reason) : throw;
    }
  }
  std::exception_ptr complaint;
  for (;;) {
    try {
      attempt(wide);
      return;
    } catch (const c10::Error& error) {
      at::ScalarType dtype{};
      // If the wide dtype is refused too, the error is the one that names the dtype of the caller.
      const std::string message = error.what_without_backtrace();
      const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
      if (complaint && (says("not implemented for 'Float") || says("not implemented for 'ComplexFloat"))) {
        std::rethrow_exception(complaint);
      }
      complaint = complaint ? complaint : std::current_exception();
      if (!lacks_dtype(message.c_str(), low & ~wide, &dtype) || !promote()) {
        throw;
      }
      // A transform has real and complex operands, and names only one of them.
      wide = with_parts(wide | (promoted || says("FFT") ? low : dtype_bit(dtype)), low);
    }
  }
}

}  // namespace macatorch
