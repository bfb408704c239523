#include "dispatch/Stubs.h"

#include <ATen/ATen.h>

#include "arguments/Device.h"
#include "random/Random.h"

namespace macatorch {
namespace {

at::ScalarType next_wider(at::ScalarType dtype) {
  return dtype == at::kComplexHalf                      ? at::kComplexFloat
         : dtype == at::kHalf || dtype == at::kBFloat16 ? at::kFloat
                                                        : dtype;
}

bool is_continuous(at::ScalarType dtype) { return at::isFloatingType(dtype) || at::isComplexType(dtype); }

/// The protected members of an iterator.
struct Iterator : at::TensorIteratorBase {
  static constexpr auto operands = &Iterator::operands_;
  static constexpr auto common_device = &Iterator::common_device_;
  static constexpr auto common_dtype = &Iterator::common_dtype_;
  static constexpr auto is_reduction = &Iterator::is_reduction_;
};

/// A CUDA iterator is ready for a loop over host memory: sizes, strides and addresses are the same. Only its tensors,
/// which kernels look at now and then, have to be aliases.
template <class Alias>
std::unique_ptr<at::TensorIterator> host_iterator(const at::TensorIteratorBase& given, const Alias& alias) {
  auto iterator = std::make_unique<at::TensorIterator>(given);
  for (at::OperandInfo& operand : (*iterator).*Iterator::operands) {
    if (operand.tensor_base().defined() && is_on_device(operand.tensor_base())) {
      operand.tensor(c10::MaybeOwned<at::TensorBase>::owned(alias(operand.tensor())));
      operand.device = c10::Device(c10::kCPU);
    }
  }
  (*iterator).*Iterator::common_device = c10::Device(c10::kCPU);
  return iterator;
}

}  // namespace

at::Tensor StubCall::alias(const at::Tensor& tensor, bool target) {
  if (!tensor.defined()) {
    return tensor;
  }
  // Results are passed as constant tensors, too.
  const at::Tensor alias = aliases_.bind(tensor, true);
  const at::ScalarType dtype = tensor.scalar_type();
  return (wide_ & dtype_bit(dtype)) == 0 ? alias : widened(alias, next_wider(dtype), target);
}

at::Tensor StubCall::widened(const at::Tensor& alias, at::ScalarType dtype, bool written) {
  const at::Tensor copy = alias.to(dtype);
  if (written || (alias.layout() == at::kStrided && alias.is_non_overlapping_and_dense())) {
    copies_.emplace_back(alias, copy);
  }
  return copy;
}

at::TensorIterator& StubCall::iterator(at::TensorIteratorBase& given) {
  // The dtype that a CUDA kernel computes in, casting as it reads and writes; undefined if every operand has its own.
  const at::ScalarType common = promotes_ ? given.*Iterator::common_dtype : at::ScalarType::Undefined;
  const bool reduction = given.*Iterator::is_reduction;
  std::vector<at::ScalarType> dtypes;
  bool uniform = true;
  for (int i = 0; i < given.ntensors(); ++i) {
    const at::ScalarType own = given.tensor(i).scalar_type();
    const bool output = i < given.noutputs();
    at::ScalarType dtype = own;
    if (reduction && !output && (kLowPrecision & dtype_bit(own)) != 0 &&
        given.tensor(0).scalar_type() == next_wider(own)) {
      dtype = next_wider(own);  // CUDA sums low precision into a wider result without a cast before
    } else if (common != at::ScalarType::Undefined &&
               (!output || (!reduction && is_continuous(own) && is_continuous(common)))) {
      dtype = common;
    }
    if ((wide_ & dtype_bit(dtype)) != 0) {
      dtype = next_wider(dtype);
    }
    uniform &= dtype == own;
    dtypes.push_back(dtype);
  }
  auto alias = [&](const at::Tensor& tensor) { return aliases_.bind(tensor, true); };
  if (uniform) {
    iterators_.push_back(host_iterator(given, alias));
    return *iterators_.back();
  }
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).resize_outputs(false).is_reduction(reduction);
  for (int i = 0; i < given.ntensors(); ++i) {
    const at::Tensor own = alias(given.tensor(i));
    const bool output = i < given.noutputs();
    if (own.scalar_type() == dtypes[i]) {
      output ? config.add_owned_output(own) : config.add_owned_input(own);
      continue;
    }
    const at::Tensor copy = own.to(dtypes[i]);
    if (output) {
      copies_.emplace_back(own, copy);
    }
    output ? config.add_owned_output(copy) : config.add_owned_input(copy);
  }
  iterators_.push_back(std::make_unique<at::TensorIterator>(config.build()));
  return *iterators_.back();
}

std::optional<at::Generator> StubCall::generator(const std::optional<at::Generator>& generator) const {
  return cpu_generator(generator, device_.index());
}

void StubCall::finish() {
  for (auto& [target, value] : copies_) {
    if (target.sizes() != value.sizes()) {
      target.resize_(value.sizes());
    }
    target.copy_(value);
  }
  aliases_.write_back(device_);
}

void stubs::refuse(const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "the simulated device does not compute this operator: upstream has no CPU function ",
                              name, " beside its CUDA kernel");
}

}  // namespace macatorch
