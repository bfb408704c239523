#include "arguments/Device.h"
#include "dispatch/Operators.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/SmallVector.h>
#include <torch/version.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "alias/CompositeTensors.h"
#include "arguments/Walker.h"
#include "dispatch/Widened.h"
#include "graph/GraphCapture.h"
#include "profile/ListKernels.h"
#include "random/Random.h"

namespace macatorch {
namespace {

using c10::IValue;
using torch::jit::Stack;

void check_same_device(const OperatorSpec& spec, const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  std::optional<c10::Device> common;
  for (size_t i = 0; i < arguments.size(); ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      c10::impl::check_and_update_common_device(common, tensor, spec.method, schema.arguments()[i].name().c_str());
    });
  }
}

/// Indices may be on the CPU or with the indexed tensor.
void check_index_devices(const at::Tensor& self, const IValue& indices) {
  for_each_tensor(indices, [&](const at::Tensor& index) {
    TORCH_CHECK(index.is_cpu() || index.device() == self.device(), "indices should be either on ", c10::kCPU,
                " or on the same device as the indexed tensor (", self.device(), ")");
  });
}

/// Whether an operator that may wait for the device does: not if it was told how large its result is
/// (repeat_interleave), nor for indices that are there already, on the device and not as a mask, nor for a number put
/// where a mask says.
bool waits(const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  if (const auto size = schema.argumentIndexWithName("output_size")) {
    return arguments[*size].isNone();
  }
  const auto indices = schema.argumentIndexWithName("indices");
  if (!indices || !arguments[*indices].isList()) {
    return true;
  }
  const auto values = schema.argumentIndexWithName("values");
  if (values && arguments[*values].isTensor()) {
    const at::Tensor& value = arguments[*values].toTensor();
    bool masks = value.is_cpu() && value.numel() == 1;
    for_each_tensor(arguments[*indices],
                    [&](const at::Tensor& index) { masks &= !index.is_cpu() && index.scalar_type() == at::kBool; });
    if (masks) {
      return false;
    }
  }
  // A mask on the CPU becomes indices there, which later releases copy without waiting.
  constexpr bool kCpuMasksWait = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 12;
  bool found = false;
  for_each_tensor(arguments[*indices], [&](const at::Tensor& index) {
    const bool mask = index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
    found |= mask ? kCpuMasksWait || !index.is_cpu() : index.is_cpu();
  });
  return found;
}

/// The check that TensorIterator makes: the device is that of the first tensor which is not on the CPU, outputs first;
/// CPU inputs of no dimension are scalars.
void check_iterator_devices(const OperatorSpec& spec, const c10::FunctionSchema& schema,
                            at::ArrayRef<IValue> arguments) {
  std::vector<std::pair<at::Tensor, bool>> operands;  // with: is it written
  for (const bool written : {true, false}) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const IValue& value = arguments[i];
      if (value.isList() && !value.isTensorList() && arguments[0].isTensor()) {
        check_index_devices(arguments[0].toTensor(), value);
      } else if (spec.writes(i) == written) {
        for_each_tensor(value, [&](const at::Tensor& tensor) { operands.emplace_back(tensor, written); });
      }
    }
  }
  c10::Device common(c10::kCPU);
  for (const auto& [tensor, written] : operands) {
    if (!tensor.is_cpu()) {
      common = tensor.device();
      break;
    }
  }
  int scalars = 0;
  for (const auto& [tensor, written] : operands) {
    const bool scalar = !written && tensor.is_cpu() && tensor.dim() == 0;
    scalars += scalar && !common.is_cpu() ? 1 : 0;
    // where() takes its scalars to the device itself.
    TORCH_CHECK(scalars <= 1 || schema.name() == "aten::where",
                "Trying to pass too many CPU scalars to non-CPU kernel!");
    TORCH_CHECK(scalar || common == tensor.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", common, " and ",
                tensor.device(), "!");
  }
}

/// What a structured operator asks of the tensors that it is given to write to: the device of its input.
void check_structured_out(const OperatorSpec& spec, at::ArrayRef<IValue> arguments) {
  const c10::Device device = arguments[0].toTensor().device();
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (spec.writes(i) && arguments[i].isTensor()) {
      const c10::Device given = arguments[i].toTensor().device();
      TORCH_CHECK(given == device, "Expected out tensor to have device ", device, ", but got ", given, " instead");
    }
  }
}

/// Upstream's own words for arguments on a wrong device.
void check_rule(const DeviceRule& rule, at::ArrayRef<IValue> arguments) {
  const auto device_of = [&](int8_t argument) {
    const bool is_tensor = argument >= 0 && arguments[static_cast<size_t>(argument)].isTensor();
    return is_tensor ? arguments[static_cast<size_t>(argument)].toTensor().device().str() : std::string();
  };
  const std::array<std::string, 2> devices{device_of(rule.argument), device_of(rule.other)};
  if (rule.other == DeviceRule::kNotOnCpu ? devices[0] != "cpu" : devices[0] == devices[1]) {
    return;
  }
  std::string text(rule.message);
  for (const std::string mark : {"{0}", "{1}"}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.replace(at, mark.size(), devices[mark[1] - '0']);
    }
  }
  TORCH_CHECK(false, text);
}

/// Raises what upstream's kernel raises for a dtype that it lacks. One that has nothing to do is not asked.
void check_dtype(const OperatorSpec& spec, const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  const bool empty = arguments[0].isTensor() && arguments[0].toTensor().numel() == 0;
  const at::ScalarType dtype = kernel_dtype(spec, schema, arguments);
  if (!empty && (spec.lacks & dtype_bit(dtype)) != 0) {
    refuse_dtype(spec.kernel, dtype);
  }
}

/// What use_deterministic_algorithms says to an operator whose CUDA kernel adds in any order.
void alert_if_nondeterministic(const Alert& alert, at::ArrayRef<IValue> arguments) {
  if (C10_LIKELY(!at::globalContext().deterministicAlgorithms())) {
    return;
  }
  const IValue value = alert.when == Alert::When::Always ? IValue() : arguments[static_cast<size_t>(alert.argument)];
  bool holds = true;
  switch (alert.when) {
    case Alert::When::Always: break;
    case Alert::When::Given: holds = !value.isNone(); break;
    case Alert::When::Equals:
      holds = value.isInt() ? value.toInt() == alert.number : value.isBool() && value.toBool();
      break;
    case Alert::When::Floating: holds = value.isTensor() && value.toTensor().is_floating_point(); break;
  }
  if (holds) {
    at::globalContext().alertNotDeterministic(alert.name);
  }
}

/// One boxed call of a device operator, stage by stage: survey, check, enter, bind, call, take results.
class BoxedCall {
 public:
  BoxedCall(const OperatorSpec& spec, const c10::OperatorHandle& op, Stack* stack)
      : spec_(spec), op_(op), stack_(stack), count_(op.schema().arguments().size()), first_(stack->size() - count_) {}

  /// Looks at the arguments: their devices and dtypes.
  void survey() {
    const at::ArrayRef<IValue> given = arguments();
    for (size_t i = 0; i < count_; ++i) {
      for_each_tensor(given[i], [&](const at::Tensor& tensor) {
        any_tensor_ = true;
        if (!is_on_device(tensor)) {
          mixed_ = true;
        } else if (!device_) {
          device_ = tensor.device();
        } else {
          mixed_ |= *device_ != tensor.device();
        }
        dtypes_ |= dtype_bit(tensor.scalar_type());
        if (C10_UNLIKELY(spec_.counts_versions) && spec_.writes(i)) {
          counted_.push_back(tensor.unsafeGetTensorImpl());
        }
      });
      if (!device_ && given[i].isDevice() && is_on_device(given[i].toDevice())) {
        device_ = given[i].toDevice();
      }
    }
    if (spec_.dtype != OperatorSpec::kNoArgument) {
      const IValue& dtype = given[static_cast<size_t>(spec_.dtype)];
      dtypes_ |= dtype.isInt() && dtype.toInt() < 64 ? uint64_t(1) << dtype.toInt() : 0;
    }
  }

  /// Raises what upstream raises before its kernel runs. False if the call is not the device's.
  bool check() {
    const auto& schema = op_.schema();
    const at::ArrayRef<IValue> given = arguments();
    if (C10_UNLIKELY(mixed_)) {
      for (const DeviceRule& rule : spec_.rules) {
        check_rule(rule, given);
      }
      if (spec_.check == DeviceCheck::Composite) {
        return false;
      }
      check_devices(schema, given);
    }
    if (C10_UNLIKELY(!device_ && any_tensor_)) {
      return false;  // only a generator brought a CPU operator here, which the CPU kernel refuses
    }
    if (!device_ || !device_->has_index()) {
      device_ = c10::Device(kDevice, c10::cuda::current_device());
    }
    if (C10_UNLIKELY((dtypes_ & spec_.lacks) != 0)) {
      check_dtype(spec_, schema, given);
    }
    if (C10_UNLIKELY(spec_.alert != nullptr)) {
      alert_if_nondeterministic(*spec_.alert, given);
    }
    if (spec_.synchronises && waits(schema, given)) {
      wait_as_upstream();
    }
    return true;
  }

  c10::Device device() const { return *device_; }

  /// Puts CPU tensors, the CPU and a CPU generator in the place of the device's.
  void bind(AnyAliases& aliases) {
    for (size_t i = 0; i < count_; ++i) {
      IValue& value = (*stack_)[first_ + i];
      const bool write = spec_.writes(i);
      if (value.isTensor() || value.isList()) {
        value = map_tensors(value, [&](const at::Tensor& tensor) {
          at::Tensor alias = aliases.bind(tensor, write);
          return spec_.dense_inputs && !write && !tensor.is_non_overlapping_and_dense() ? alias.contiguous() : alias;
        });
      } else if (value.isDevice() && is_on_device(value.toDevice())) {
        value = c10::Device(c10::kCPU);
      } else if (C10_UNLIKELY((spec_.generators >> i & 1) != 0)) {
        value =
            cpu_generator(value.isNone() ? std::nullopt : std::make_optional(value.toGenerator()), device_->index());
      }
    }
  }

  /// Runs the CPU kernel, and carries what it wrote back, also where it raises: it has often given `out` its size by
  /// then, and written the first tensors of a list.
  void call(AnyAliases& aliases) {
    try {
      call_cpu(spec_, op_, stack_, dtypes_);
    } catch (...) {
      carry_back(aliases);
      throw;
    }
    carry_back(aliases);
  }

  void take_results(const AnyAliases& aliases) {
    for (size_t i = stack_->size() - op_.schema().returns().size(); i < stack_->size(); ++i) {
      IValue& value = (*stack_)[i];
      value = map_tensors(value, [&](const at::Tensor& tensor) { return aliases.to_device(tensor, *device_); });
    }
  }

 private:
  at::ArrayRef<IValue> arguments() const { return at::ArrayRef<IValue>(stack_->data() + first_, count_); }

  void check_devices(const c10::FunctionSchema& schema, at::ArrayRef<IValue> given) const {
    if (spec_.check == DeviceCheck::ExactSame) {
      check_same_device(spec_, schema, given);
    } else if (spec_.check == DeviceCheck::None && spec_.cpu_key != kHostKey) {
      check_iterator_devices(spec_, schema, given);  // upstream's kernels for other layouts look at what they read
    } else if (spec_.check == DeviceCheck::TensorIterator || spec_.check == DeviceCheck::StructuredOut) {
      if (spec_.check == DeviceCheck::StructuredOut) {
        check_structured_out(spec_, given);
      }
      check_iterator_devices(spec_, schema, given);
    }
  }

  void carry_back(AnyAliases& aliases) {
    aliases.write_back(*device_);
    for (c10::TensorImpl* tensor : counted_) {
      tensor->bump_version();
    }
  }

  const OperatorSpec& spec_;
  const c10::OperatorHandle& op_;
  Stack* stack_;
  size_t count_;
  size_t first_;
  std::optional<c10::Device> device_;
  c10::SmallVector<c10::TensorImpl*, 8> counted_;  // whose versions upstream's kernel counts
  uint64_t dtypes_ = 0;
  bool mixed_ = false;
  bool any_tensor_ = false;
};

class BoxedOperator final : public c10::OperatorKernel {
 public:
  explicit BoxedOperator(const OperatorSpec& spec) : spec_(spec) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) { call_boxed(spec_, op, stack); }

 private:
  const OperatorSpec& spec_;
};

}  // namespace

void refuse_dtype(const char* kernel, at::ScalarType dtype) {
  const std::string text = c10::str('"', kernel, "\" not implemented for '", c10::toString(dtype), "'");
#if __has_include(<torch/headeronly/core/Dispatch.h>)
  TORCH_CHECK_NOT_IMPLEMENTED(false, text);
#else
  TORCH_CHECK(false, text);  // older releases raise a plain RuntimeError
#endif
}

bool lacks_dtype(const char* message, uint64_t dtypes, at::ScalarType* dtype) {
  static constexpr std::pair<const char*, at::ScalarType> complaints[] = {
      {"not implemented for 'Half'", at::kHalf},
      {"not implemented for 'BFloat16'", at::kBFloat16},
      {"not implemented for 'ComplexHalf'", at::kComplexHalf},
      {"not implemented for 'ComplexHalf'", at::kHalf},  // with a complex number: the result's dtype
      {"FFT doesn't support tensors of type: Half", at::kHalf},
      {"FFT doesn't support tensors of type: Half", at::kComplexHalf},  // names the dtype of the parts
      {"FFT doesn't support tensors of type: ComplexHalf", at::kComplexHalf},
      {"Upsample backward only support BFloat16", at::kHalf},         // up to 2.1
      {"multinomial is not implemented for half on CPU", at::kHalf},  // up to 2.1
  };
  for (const auto& [text, type] : complaints) {
    if ((dtypes & dtype_bit(type)) != 0 && std::strstr(message, text) != nullptr) {
      if (dtype != nullptr) {
        *dtype = type;
      }
      return true;
    }
  }
  return false;
}

void call_boxed(const OperatorSpec& spec, const c10::OperatorHandle& op, Stack* stack) {
  BoxedCall call(spec, op, stack);
  call.survey();
  if (C10_UNLIKELY(!call.check())) {
    op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
    return;
  }
  std::optional<ListKernel> named;
  if (C10_UNLIKELY(profiled.load(std::memory_order_relaxed) != 0)) {
    named.emplace(op, *stack);
  }
  const DeviceScope entered(call.device().index());
  AnyAliases aliases;
  call.bind(aliases);
  call.call(aliases);
  call.take_results(aliases);
}

OperatorSpec spec_of(const char* name, const c10::FunctionSchema& schema, c10::DispatchKey cpu_key) {
  OperatorSpec spec{name, name, cpu_key, DeviceCheck::None, 0, 0};
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    spec.written |= uint64_t(is_written(schema, i)) << i;
    spec.generators |= uint64_t(argument.type()->str().rfind("Generator", 0) == 0) << i;
    spec.dtype = argument.name() == "dtype" ? static_cast<int8_t>(i) : spec.dtype;
  }
  return spec;
}

torch::Library& operators_at(c10::DispatchKey key) {
  static std::map<c10::DispatchKey, torch::Library> libraries;
  return libraries.try_emplace(key, torch::Library::IMPL, "aten", key, "macatorch/operators.toml", 0).first->second;
}

torch::CppFunction boxed_kernel(const OperatorSpec& spec) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedOperator>(spec));
}

}  // namespace macatorch
