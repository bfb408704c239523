#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <cstdint>
#include <type_traits>

namespace macatorch {

/// How upstream checks the devices of an operator's tensors (native_functions.yaml, `device_check`).
enum class DeviceCheck : uint8_t {
  None,            // the kernel itself decides
  ExactSame,       // every tensor on one device, no exception
  TensorIterator,  // one device, but CPU tensors of no dimension count as scalars
  Composite,       // no CPU kernel of its own: tensors of several devices go to the operators that it is made of
  StructuredOut,   // TensorIterator's, after a structured operator has looked at what it writes to
};

/// What upstream says of one operator's CUDA kernel, and what ours adds; one row of the generated table.
struct OperatorSpec {
  const char* name;          // "add.Tensor", as registered under aten::
  const char* method;        // upstream's wrapper name, which its device error carries
  c10::DispatchKey cpu_key;  // whose kernel computes it: CPU, SparseCPU, SparseCsrCPU, NestedTensorCPU
  DeviceCheck check;
  bool synchronises;   // upstream's kernel waits for the device, so sync debug mode speaks
  bool widens;         // low-precision floating dtypes are always computed in float
  bool dense_inputs;   // the CPU kernel takes no expanded input, the CUDA one does
  uint64_t cpu_lacks;  // bits of the low-precision dtypes that upstream's CPU kernel lacks
  // Upstream's own messages, a line each: "a b text", where arguments a and b differ in device; "a cpu text", where a is on
  // the CPU. nullptr: none.
  const char* pair;
  const char*
      results;  // whose dtype each low-precision result has: an argument's name, or "float"; nullptr: the input's
  const char* nondeterministic;  // "name condition": what use_deterministic_algorithms complains of; nullptr: nothing
  uint64_t lacks;                // bits of the dtypes that CUDA's kernel does not take
  const char* kernel;            // the name by which it says so
  bool counts_versions;          // upstream's kernel itself tells autograd what it wrote
};

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

/// A function of ours as a kernel to register, boxed or with the types of its schema. `origin` is what a dump of the
/// dispatcher shows of it.
template <auto* function>
torch::CppFunction kernel_of(const char* origin) {
  using Type = std::remove_pointer_t<decltype(function)>;
  if constexpr (std::is_same_v<Type, void(const c10::OperatorHandle&, torch::jit::Stack*)>) {
    return torch::CppFunction::makeFromBoxedFunction<function>().debug(origin);
  } else {
    return torch::CppFunction(c10::CompileTimeFunctionPointer<Type, function>()).debug(origin);
  }
}

/// Registers kernels of aten's operators at `key`. They live as long as the process, as upstream's own do.
torch::Library& operators_at(c10::DispatchKey key);

/// The generated registrations: what operators.toml says.
void register_operators();

}  // namespace macatorch
