#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "arguments/Release.h"

namespace macatorch {

/// How upstream checks the devices of an operator's tensors (native_functions.yaml, `device_check`).
enum class DeviceCheck : uint8_t {
  None,            // the kernel itself decides
  ExactSame,       // every tensor on one device, no exception
  TensorIterator,  // one device, but CPU tensors of no dimension count as scalars
  Composite,       // no CPU kernel of its own: tensors of several devices go to the operators that it is made of
  StructuredOut,   // TensorIterator's, after a structured operator has looked at what it writes to
};

/// Two arguments, by number, whose devices upstream's kernel compares itself.
struct DeviceRule {
  static constexpr int8_t kNotOnCpu = -1;
  int8_t argument;
  int8_t other;         // kNotOnCpu: `argument` alone is looked at
  const char* message;  // {0} and {1} stand for the devices
};

/// What use_deterministic_algorithms complains of, and when.
struct Alert {
  enum class When : uint8_t { Always, Given, Equals, Floating };
  const char* name;
  When when;
  int8_t argument;  // that `when` is about
  int64_t number;   // which it equals
};

/// What upstream says of one operator's CUDA kernel, and what ours adds; one row of the generated table.
struct OperatorSpec {
  static constexpr int8_t kFloatResult = -1;
  static constexpr int8_t kNoArgument = -1;

  const char* name;          // "add.Tensor", as registered under aten::
  const char* method;        // upstream's wrapper name, which its device error carries
  c10::DispatchKey cpu_key;  // whose kernel computes it: CPU, SparseCPU, SparseCsrCPU, NestedTensorCPU
  DeviceCheck check;
  uint64_t written;              // bits of the arguments that it writes to
  uint64_t generators;           // bits of the arguments that are generators
  int8_t dtype = kNoArgument;    // the argument that names the dtype of the result
  bool synchronises = false;     // upstream's kernel waits for the device, so sync debug mode speaks
  bool widens = false;           // low-precision floating dtypes are always computed in float
  bool dense_inputs = false;     // the CPU kernel takes no expanded input, the CUDA one does
  bool counts_versions = false;  // upstream's kernel itself tells autograd what it wrote
  uint64_t cpu_lacks = 0;        // bits of the low-precision dtypes that upstream's CPU kernel lacks
  uint64_t lacks = 0;            // bits of the dtypes that CUDA's kernel does not take
  const char* kernel = nullptr;  // the name by which it says so
  const Alert* alert = nullptr;
  c10::ArrayRef<DeviceRule> rules = {};
  // The argument whose dtype each low-precision result has, or kFloatResult; empty: the input's.
  c10::ArrayRef<int8_t> results = {};

  bool writes(size_t argument) const { return (written >> argument & 1) != 0; }
};

/// The specification of an operator that no table knows of: what its schema says.
OperatorSpec spec_of(const char* name, const c10::FunctionSchema& schema, c10::DispatchKey cpu_key);

constexpr uint64_t dtype_bit(at::ScalarType dtype) { return uint64_t(1) << static_cast<unsigned>(dtype); }
constexpr uint64_t kLowPrecision = dtype_bit(at::kHalf) | dtype_bit(at::kBFloat16) | dtype_bit(at::kComplexHalf);

/// True if `message` is a CPU kernel's complaint that it lacks one of `dtypes`; says which in `dtype`.
bool lacks_dtype(const char* message, uint64_t dtypes, at::ScalarType* dtype = nullptr);

/// Raises what an upstream kernel of the name `kernel` raises for a dtype that it lacks.
[[noreturn]] void refuse_dtype(const char* kernel, at::ScalarType dtype);

/// The whole contract of a device operator, for any schema: device check, aliases, generator, widening, results.
void call_boxed(const OperatorSpec& spec, const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// call_boxed as a kernel to register.
torch::CppFunction boxed_kernel(const OperatorSpec& spec);

#if !MACATORCH_TORCH_AT_LEAST(2, 4)
/// Which integers of an operator may be symbolic differs between releases. A function that takes such ones is called by
/// way of the stack, where they are plain numbers.
template <auto* function>
void call_with_symbols(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  using Pointer = c10::CompileTimeFunctionPointer<std::remove_pointer_t<decltype(function)>, function>;
  using Functor = typename c10::impl::WrapFunctionIntoFunctor<Pointer>::type;
  Functor functor;
  c10::impl::make_boxed_from_unboxed_functor<Functor, false>::call(&functor, op, keys, stack);
}

template <class T>
constexpr bool kHasSymbols = std::is_same_v<T, c10::SymInt> || std::is_same_v<T, c10::SymIntArrayRef> ||
                             std::is_same_v<T, at::OptionalSymIntArrayRef>;
template <class... T>
constexpr bool kHasSymbols<std::tuple<T...>> = (kHasSymbols<T> || ...);
template <class Result, class... T>
constexpr bool kHasSymbols<Result(T...)> = kHasSymbols<Result> || (kHasSymbols<std::decay_t<T>> || ...);
#endif

/// A function of ours as a kernel to register, boxed or with the types of its schema. `origin` is what a dump of the
/// dispatcher shows of it.
template <auto* function>
torch::CppFunction kernel_of(const char* origin) {
  using Type = std::remove_pointer_t<decltype(function)>;
  if constexpr (std::is_same_v<Type, void(const c10::OperatorHandle&, torch::jit::Stack*)>) {
    return torch::CppFunction::makeFromBoxedFunction<function>().debug(origin);
#if !MACATORCH_TORCH_AT_LEAST(2, 4)
  } else if constexpr (kHasSymbols<Type>) {
    return torch::CppFunction::makeFromBoxedFunction<&call_with_symbols<function>>().debug(origin);
#endif
  } else {
    return torch::CppFunction(c10::CompileTimeFunctionPointer<Type, function>()).debug(origin);
  }
}

/// Registers kernels of aten's operators at `key`. They live as long as the process, as upstream's own do.
torch::Library& operators_at(c10::DispatchKey key);

/// The generated registrations: what operators.toml says.
void register_operators();

}  // namespace macatorch
