#include "dispatch/Operators.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstring>
#include <map>
#include <sstream>

#include "alias/CompositeTensors.h"
#include "arguments/BoxedValues.h"
#include "dispatch/Widened.h"
#include "graph/GraphCapture.h"
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

/// Whether an operator that may wait for the device does: not if it was told how large its result is (repeat_interleave),
/// nor for indices that are there already, on the device and not as a mask, nor for a number put where a mask says.
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
  bool found = false;
  for_each_tensor(arguments[*indices], [&](const at::Tensor& index) {
    found |= index.is_cpu() || index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
  });
  return found;
}

/// The check that TensorIterator makes: the device is that of the first tensor which is not on the CPU, outputs first;
/// CPU inputs of no dimension are scalars.
void check_iterator_devices(const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  std::vector<std::pair<at::Tensor, bool>> operands;  // with: is it written
  for (const bool written : {true, false}) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const IValue& value = arguments[i];
      if (value.isList() && !value.isTensorList() && arguments[0].isTensor()) {
        check_index_devices(arguments[0].toTensor(), value);
      } else if (is_written(schema, i) == written) {
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
void check_structured_out(const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  const c10::Device device = arguments[0].toTensor().device();
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (is_written(schema, i) && arguments[i].isTensor()) {
      const c10::Device given = arguments[i].toTensor().device();
      TORCH_CHECK(given == device, "Expected out tensor to have device ", device, ", but got ", given, " instead");
    }
  }
}

/// One of the rules that OperatorSpec::pair holds.
void check_rule(const std::string& rule, const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  std::istringstream words(rule);
  std::array<std::string, 2> names;
  words >> names[0] >> names[1] >> std::ws;
  std::string text;
  std::getline(words, text);
  std::array<std::string, 2> devices;
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (size_t side = 0; side < 2; ++side) {
      if (schema.arguments()[i].name() == names[side] && arguments[i].isTensor()) {
        devices[side] = arguments[i].toTensor().device().str();
      }
    }
  }
  if (names[1] == "cpu" ? devices[0] != "cpu" : devices[0] == devices[1]) {
    return;
  }
  for (size_t side = 0; side < 2; ++side) {
    const std::string mark = "{" + names[side] + "}";
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.replace(at, mark.size(), devices[side]);
    }
  }
  TORCH_CHECK(false, text);
}

/// Upstream's own words for arguments on a wrong device; see OperatorSpec::pair.
void check_pair(const char* pair, const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  std::istringstream rules(pair);
  for (std::string rule; std::getline(rules, rule);) {
    check_rule(rule, schema, arguments);
  }
}

/// Raises what upstream's kernel raises for a dtype that it lacks. One that has nothing to do is not asked.
void check_dtype(const OperatorSpec& spec, const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments) {
  const bool empty = arguments[0].isTensor() && arguments[0].toTensor().numel() == 0;
  const at::ScalarType dtype = kernel_dtype(spec, schema, arguments);
  if (!empty && (spec.lacks & dtype_bit(dtype)) != 0) {
    refuse_dtype(spec.kernel, dtype);
  }
}

/// What use_deterministic_algorithms says to an operator whose CUDA kernel adds in any order; see
/// OperatorSpec::nondeterministic. A condition is an argument that is given, `argument=number`, or `argument:floating`.
void alert_if_nondeterministic(const OperatorSpec& spec, const c10::FunctionSchema& schema,
                               at::ArrayRef<IValue> arguments) {
  if (C10_LIKELY(!at::globalContext().deterministicAlgorithms())) {
    return;
  }
  const std::string text(spec.nondeterministic);
  const size_t space = text.find('|');
  if (space != std::string::npos) {
    const std::string condition = text.substr(space + 1);
    const size_t mark = condition.find_first_of("=:");
    const auto index = schema.argumentIndexWithName(condition.substr(0, mark));
    if (!index) {
      return;
    }
    const IValue& value = arguments[*index];
    const bool holds =
        mark == std::string::npos ? !value.isNone()
        : condition[mark] == '='
            ? value.isInt() ? value.toInt() == std::stoll(condition.substr(mark + 1)) : value.isBool() && value.toBool()
            : value.isTensor() && value.toTensor().is_floating_point();
    if (!holds) {
      return;
    }
  }
  at::globalContext().alertNotDeterministic(text.substr(0, space));
}

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
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const size_t first = stack->size() - count;
  const at::ArrayRef<IValue> arguments(stack->data() + first, count);

  std::optional<c10::Device> device;
  c10::SmallVector<c10::TensorImpl*, 8> counted;
  uint64_t dtypes = 0;
  bool mixed = false;
  bool any_tensor = false;
  for (size_t i = 0; i < count; ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      any_tensor = true;
      if (!tensor.is_cuda()) {
        mixed = true;
      } else if (!device) {
        device = tensor.device();
      } else {
        mixed |= *device != tensor.device();
      }
      dtypes |= dtype_bit(tensor.scalar_type());
      if (C10_UNLIKELY(spec.counts_versions) && is_written(schema, i)) {
        counted.push_back(tensor.unsafeGetTensorImpl());
      }
    });
    if (!device && arguments[i].isDevice() && arguments[i].toDevice().is_cuda()) {
      device = arguments[i].toDevice();
    }
    if (arguments[i].isInt() && schema.arguments()[i].name() == "dtype" && arguments[i].toInt() < 64) {
      dtypes |= uint64_t(1) << arguments[i].toInt();
    }
  }
  if (C10_UNLIKELY(mixed)) {
    if (spec.pair != nullptr) {
      check_pair(spec.pair, schema, arguments);
    }
    if (spec.check == DeviceCheck::Composite) {
      op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
      return;
    }
    if (spec.check == DeviceCheck::ExactSame) {
      check_same_device(spec, schema, arguments);
    } else if (spec.check == DeviceCheck::None && spec.cpu_key != c10::DispatchKey::CPU) {
      check_iterator_devices(schema, arguments);  // upstream's kernels for other layouts look at what they read
    } else if (spec.check == DeviceCheck::TensorIterator || spec.check == DeviceCheck::StructuredOut) {
      if (spec.check == DeviceCheck::StructuredOut) {
        check_structured_out(schema, arguments);
      }
      check_iterator_devices(schema, arguments);
    }
  }
  if (C10_UNLIKELY(!device && any_tensor)) {
    // Only a generator brought a CPU operator here; the CPU kernel says what it thinks of that.
    op.redispatchBoxed(c10::DispatchKeySet(spec.cpu_key), stack);
    return;
  }
  if (!device || !device->has_index()) {
    device = c10::Device(c10::kCUDA, c10::cuda::current_device());
  }
  if (C10_UNLIKELY((dtypes & spec.lacks) != 0)) {
    check_dtype(spec, schema, arguments);
  }
  if (C10_UNLIKELY(spec.nondeterministic != nullptr)) {
    alert_if_nondeterministic(spec, schema, arguments);
  }
  if (spec.synchronises && waits(schema, arguments)) {
    refuse_wait_in_capture();
    if (c10::cuda::warning_state().get_sync_debug_mode() != c10::cuda::SyncDebugMode::L_DISABLED) {
      c10::cuda::warn_or_error_on_sync();
    }
  }

  DeviceScope scope(device->index());
  AnyAliases aliases;
  for (size_t i = 0; i < count; ++i) {
    IValue& value = (*stack)[first + i];
    const c10::Argument& argument = schema.arguments()[i];
    const bool write = is_written(schema, i);
    if (value.isTensor() || value.isList()) {
      value = map_tensors(value, [&](const at::Tensor& tensor) {
        at::Tensor alias = aliases.bind(tensor, write);
        return spec.dense_inputs && !write && !tensor.is_non_overlapping_and_dense() ? alias.contiguous() : alias;
      });
    } else if (value.isDevice() && value.toDevice().is_cuda()) {
      value = c10::Device(c10::kCPU);
    } else if (C10_UNLIKELY(argument.type()->str().rfind("Generator", 0) == 0)) {
      value = cpu_generator(value.isNone() ? std::nullopt : std::make_optional(value.toGenerator()), device->index());
    }
  }
  const auto carry_back = [&] {
    aliases.write_back(*device);
    if (C10_UNLIKELY(spec.counts_versions)) {
      for (c10::TensorImpl* tensor : counted) {
        tensor->bump_version();
      }
    }
  };
  try {
    call_cpu(spec, op, stack, dtypes);
  } catch (...) {
    // A kernel that raises has often given `out` its size by then, and written the first tensors of a list.
    carry_back();
    throw;
  }
  carry_back();
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    IValue& value = (*stack)[i];
    value = map_tensors(value, [&](const at::Tensor& tensor) { return aliases.to_device(tensor, *device); });
  }
}

torch::Library& operators_at(c10::DispatchKey key) {
  static std::map<c10::DispatchKey, torch::Library> libraries;
  return libraries.try_emplace(key, torch::Library::IMPL, "aten", key, "macatorch/operators.toml", 0).first->second;
}

torch::CppFunction boxed_kernel(const OperatorSpec& spec) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<BoxedOperator>(spec));
}

}  // namespace macatorch
