#include "dispatch/Foreign.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <mc_runtime.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <unordered_map>

#include "arguments/Device.h"
#include "arguments/Walker.h"
#include "dispatch/LayoutRule.h"
#include "dispatch/Operators.h"
#include "graph/GraphCapture.h"

namespace macatorch {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using torch::jit::Stack;

// Note [Libraries of others]
// A library that is loaded later (torchvision, say) brings operators whose CUDA kernels launch device code that is not
// there, beside CPU kernels that can run. Others bring CUDA kernels that do run: host code, or device code compiled for
// this device. Which it is shows at the first launch. So each operator of a foreign library gets a guard at
// BackendSelect, the last dispatch key above the backends: it tries the CUDA kernel while the runtime notes launches of
// missing code without making them the device's lasting error, and, once there was one, sends this operator to its CPU
// kernel for good. An operator without a CPU kernel fails as always.

/// A row of the operator table for an operator that no table knew of. It lives as long as the process, as the others
/// do.
struct ForeignSpec {
  std::string name;
  OperatorSpec spec;

  ForeignSpec(std::string given, const c10::FunctionSchema& schema, DispatchKey cpu_key)
      : name(std::move(given)), spec(spec_of(name.c_str(), schema, cpu_key)) {}
};

/// The operators that were found to launch missing device code.
class Rerouted {
 public:
  const OperatorSpec* find(const c10::OperatorName& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second->spec;
  }
  const OperatorSpec& add(const c10::OperatorHandle& op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& entry = by_name_[op.operator_name()];
    if (entry == nullptr) {
      entry = std::make_unique<ForeignSpec>(c10::toString(op.operator_name()), op.schema(), kHostKey);
    }
    return entry->spec;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<c10::OperatorName, std::unique_ptr<ForeignSpec>> by_name_;
};

Rerouted& rerouted() {
  static Rerouted operators;
  return operators;
}

/// True if every tensor among the arguments is on a CUDA device.
bool all_on_device(const c10::IValue& value) {
  if (value.isTensor()) {
    return !value.toTensor().defined() || is_on_device(value.toTensor());
  }
  if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (!all_on_device(element)) {
        return false;
      }
    }
  }
  return true;
}

/// Puts `arguments` in the place of what is on the stack from `first` on.
void put_back(Stack* stack, size_t first, const Stack& arguments) {
  stack->resize(first);
  stack->insert(stack->end(), arguments.begin(), arguments.end());
}

// Note [Libraries and the layout rule]
// Code that was written for upstream's layout may read an image by data_ptr() in upstream's order, without a look at
// its strides: where the layout rule made the image channels-last, it computes something else, and nobody notices. So
// an image comes to such code in upstream's order: reordered in place where nobody can tell, else as a copy where the
// code only reads it, else as it is, with a warning. Operators pass Foreign.cpp's guard; functions that pybind11 binds
// pass the conversion of their arguments, which is compiled into the library: a patch of torch/csrc/utils/pybind.h
// calls macatorch::extension_argument there. Kernels in Triton pass their launcher
// (cu_bridge/triton/upstream_order.py), which asks is_contiguous_upstream and reorder_in_place.

/// `tensor` for code of others; `may_copy`: which only reads it.
at::Tensor for_foreign_code(const at::Tensor& tensor, bool may_copy) {
  if (!is_on_device(tensor) || !is_contiguous_upstream(tensor) || reorder_in_place(tensor)) {
    return tensor;
  }
  if (may_copy) {
    return tensor.contiguous();
  }
  TORCH_WARN_ONCE("an extension is given a tensor of shape ", tensor.sizes(), " with the channels-last strides ",
                  tensor.strides(),
                  ", in which images arrive on this device when they are moved there from the CPU. Somebody else holds "
                  "its memory, so it cannot be reordered: code that reads it in the order of a contiguous tensor, "
                  "without regard to strides, computes wrong values. Pass .contiguous(), or set "
                  "PYTORCH_DEFAULT_NCHW=1 to keep upstream's layout.");
  return tensor;
}

void extension_argument(const at::Tensor& tensor) { for_foreign_code(tensor, false); }

void put_in_upstream_layout(const c10::OperatorHandle& op, Stack* stack) {
  const auto& formal = op.schema().arguments();
  const size_t first = stack->size() - formal.size();
  for (size_t i = 0; i < formal.size(); ++i) {
    // What is written, or what a result may be a view of, stays what it is.
    const bool may_copy = formal[i].alias_info() == nullptr;
    c10::IValue& value = (*stack)[first + i];
    if (value.isTensor() || value.isList()) {
      value = map_tensors(value, [&](const at::Tensor& tensor) { return for_foreign_code(tensor, may_copy); });
    }
  }
}

/// The guard of Note [Libraries of others], for an operator with CUDA tensors.
void try_device(const c10::OperatorHandle& op, DispatchKeySet backends, Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const Stack arguments(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
  const bool ours = backends.highestPriorityTypeId() == kDeviceKey && op.hasKernelForDispatchKey(kHostKey) &&
                    op.hasKernelForDispatchKey(kDeviceKey) &&
                    std::all_of(arguments.begin(), arguments.end(), all_on_device);
  if (!ours) {
    op.redispatchBoxed(backends, stack);
    return;
  }
  if (const OperatorSpec* spec = rerouted().find(op.operator_name())) {
    capture_operator(op, stack, [&] { call_boxed(*spec, op, stack); });
    return;
  }
  std::exception_ptr problem;
  mcLaunchWatchBegin();
  try {
    op.redispatchBoxed(backends, stack);
  } catch (...) {
    problem = std::current_exception();
  }
  if (mcLaunchWatchEnd() == 0) {
    if (problem) {
      std::rethrow_exception(problem);
    }
    return;
  }
  static_cast<void>(cudaGetLastError());
  put_back(stack, first, arguments);
  const OperatorSpec& spec = rerouted().add(op);
  capture_operator(op, stack, [&] { call_boxed(spec, op, stack); });
}

void guard(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const DispatchKeySet backends = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect);
  if (!keys.has(kDeviceKey)) {  // only what is on a device has the device's kernels and layout
    op.redispatchBoxed(backends, stack);
    return;
  }
  put_in_upstream_layout(op, stack);
  try_device(op, backends, stack);
}

// A listener hears of a new operator while the dispatcher holds its lock, so the guard cannot be registered through the
// dispatcher. OperatorEntry::registerKernel asks for exactly that lock; the way to it is private. An explicit
// instantiation may name a private member.
template <auto member>
struct Entry {
  friend c10::impl::OperatorEntry& entry_of(const c10::OperatorHandle& op) { return (op.*member)->op; }
};
c10::impl::OperatorEntry& entry_of(const c10::OperatorHandle& op);
template struct Entry<&c10::OperatorHandle::operatorDef_>;

class GuardNewOperators final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    // Operators that Python defines have kernels in Python.
    if (!armed || op.debug().find(".py:") != std::string::npos || op.debug().find("/dev/null") != std::string::npos) {
      return;
    }
    entry_of(op).registerKernel(c10::Dispatcher::singleton(), DispatchKey::BackendSelect,
                                c10::KernelFunction::makeFromBoxedFunction<&guard>(), std::nullopt, nullptr,
                                "registered at macatorch/csrc/dispatch/Foreign.cpp");
  }
  void onOperatorDeregistered(const c10::OperatorHandle&) override {}

  bool armed = false;
};

/// Upstream's own operators outside of aten that have kernels for both.
void reroute_namespaces() {
  static std::deque<ForeignSpec> specs;
  static std::deque<torch::Library> libraries;
  for (const char* space : {"quantized", "quantization"}) {
    for (const auto& [device_key, cpu_key] :
         {std::pair{kDeviceKey, kHostKey}, std::pair{kQuantizedDeviceKey, kQuantizedHostKey}}) {
      torch::Library& library =
          libraries.emplace_back(torch::Library::IMPL, space, device_key, "macatorch/csrc/dispatch/Foreign.cpp", 0);
      for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
        const auto op = c10::Dispatcher::singleton().findSchema(name);
        if (!op || name.getNamespace() != space || !op->hasKernelForDispatchKey(device_key) ||
            !op->hasKernelForDispatchKey(cpu_key)) {
          continue;
        }
        const ForeignSpec& spec =
            specs.emplace_back(c10::toString(name).substr(std::strlen(space) + 2), op->schema(), cpu_key);
        library.impl(spec.spec.name, boxed_kernel(spec.spec));
      }
    }
  }
}

}  // namespace

void register_foreign() {
  static torch::Library own(torch::Library::DEF, "macatorch", std::nullopt, "macatorch/csrc/dispatch/Foreign.cpp", 0);
  own.def("extension_argument(Tensor tensor) -> ()", &extension_argument);
  own.def("is_contiguous_upstream(Tensor tensor) -> bool", &is_contiguous_upstream);
  own.def("reorder_in_place(Tensor[] tensors) -> bool", &reorder_in_place);
  reroute_namespaces();
  auto listener = std::make_unique<GuardNewOperators>();
  GuardNewOperators* guards = listener.get();
  static const c10::RegistrationHandleRAII handle =
      c10::Dispatcher::singleton().addRegistrationListener(std::move(listener));
  // It was told of everything that is there already; from now on it is others'.
  guards->armed = true;
}

}  // namespace macatorch
