#include "dispatch/Foreign.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <unordered_map>

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
// this device. Which it is shows at the first launch. So each operator of a foreign library gets a guard at BackendSelect,
// the last dispatch key above the backends: it tries the CUDA kernel while the runtime notes launches of missing code
// without making them the device's lasting error, and, once there was one, sends this operator to its CPU kernel for good.
// An operator without a CPU kernel fails as always.

/// The runtime's watch over launches of missing device code on this thread.
struct LaunchWatch {
  using Begin = void (*)();
  using End = int (*)();
  Begin begin = nullptr;
  End end = nullptr;

  LaunchWatch() {
    void* runtime = dlopen("libmcruntime.so", RTLD_NOLOAD | RTLD_LAZY);
    if (runtime != nullptr) {
      begin = reinterpret_cast<Begin>(dlsym(runtime, "mcLaunchWatchBegin"));
      end = reinterpret_cast<End>(dlsym(runtime, "mcLaunchWatchEnd"));
    }
  }
  explicit operator bool() const { return begin != nullptr && end != nullptr; }
};

const LaunchWatch& launch_watch() {
  static const LaunchWatch watch;
  return watch;
}

/// A row of the operator table for an operator that no table knew of. It lives as long as the process, as the others do.
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
      entry = std::make_unique<ForeignSpec>(c10::toString(op.operator_name()), op.schema(), DispatchKey::CPU);
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
    return !value.toTensor().defined() || value.toTensor().is_cuda();
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

/// Makes arguments contiguous that are not because of the layout rule alone. False if there are none.
bool undo_layout(Stack& arguments) {
  bool found = false;
  for (c10::IValue& value : arguments) {
    if (value.isTensor() && value.toTensor().defined() && !layout_hint(value.toTensor()).empty()) {
      value = value.toTensor().contiguous();
      found = true;
    }
  }
  return found;
}

/// Puts `arguments` in the place of what is on the stack from `first` on.
void put_back(Stack* stack, size_t first, const Stack& arguments) {
  stack->resize(first);
  stack->insert(stack->end(), arguments.begin(), arguments.end());
}

/// Calls a foreign operator by `call(arguments)`. Code that was written for upstream's layout may insist on contiguous
/// arguments: what refuses them in those words is called again with arguments of that layout.
template <typename Call>
void in_layout(const c10::OperatorHandle& op, Stack* stack, const Call& call) {
  const size_t first = stack->size() - op.schema().arguments().size();
  Stack arguments(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
  try {
    call(arguments);
  } catch (const std::exception& error) {
    if (std::strstr(error.what(), "contiguous") == nullptr || op.schema().is_mutable() || !undo_layout(arguments)) {
      throw;
    }
    TORCH_WARN(op.operator_name(),
               " wants contiguous tensors, and channels-last is the layout in which images arrive "
               "on this device: they are copied for each call. PYTORCH_DEFAULT_NCHW=1 keeps upstream's layout.");
    put_back(stack, first, arguments);
    call(arguments);
  }
}

/// The guard of Note [Libraries of others], for arguments of one layout.
void try_device(const c10::OperatorHandle& op, DispatchKeySet backends, Stack* stack, const Stack& arguments) {
  const bool ours = backends.highestPriorityTypeId() == DispatchKey::CUDA && launch_watch() &&
                    op.hasKernelForDispatchKey(DispatchKey::CPU) && op.hasKernelForDispatchKey(DispatchKey::CUDA) &&
                    std::all_of(arguments.begin(), arguments.end(), all_on_device);
  if (!ours) {
    op.redispatchBoxed(backends, stack);
    return;
  }
  if (const OperatorSpec* spec = rerouted().find(op.operator_name())) {
    capture_operator(op, stack, [&] { call_boxed(*spec, op, stack); });
    return;
  }
  const size_t first = stack->size() - arguments.size();
  std::exception_ptr problem;
  launch_watch().begin();
  try {
    op.redispatchBoxed(backends, stack);
  } catch (...) {
    problem = std::current_exception();
  }
  if (launch_watch().end() == 0) {
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
  if (!keys.has(DispatchKey::CUDA)) {  // only what is on a device has the device's kernels and layout
    op.redispatchBoxed(backends, stack);
    return;
  }
  in_layout(op, stack, [&](const Stack& arguments) { try_device(op, backends, stack, arguments); });
}

// Operators that choose their kernel by the tensor's device themselves, without the dispatcher: only the whole operator
// can go to the CPU, with moves that autograd follows. torchaudio: recursive filters (lfilter.cpp).
constexpr std::array<const char*, 1> kWhole{"torchaudio::_lfilter"};

void on_cpu(const c10::OperatorHandle& op, DispatchKeySet, Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  std::optional<c10::Device> device;
  for (size_t i = first; i < stack->size(); ++i) {
    if ((*stack)[i].isTensor() && (*stack)[i].toTensor().defined()) {
      const at::Tensor tensor = (*stack)[i].toTensor();
      TORCH_CHECK(tensor.device() == device.value_or(tensor.device()),
                  "Expected all tensors to be on the same device, but found at least two devices, ", *device, " and ",
                  tensor.device(), "!");
      device = tensor.device();
      (*stack)[i] = tensor.to(c10::kCPU);
    }
  }
  op.callBoxed(stack);
  for (c10::IValue& value : *stack) {
    if (value.isTensor() && value.toTensor().defined()) {
      value = value.toTensor().to(*device);
    }
  }
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
    const std::string name = c10::toString(op.operator_name());
    if (std::find(kWhole.begin(), kWhole.end(), name) != kWhole.end()) {
      for (const DispatchKey key : {DispatchKey::AutogradCUDA, DispatchKey::CUDA}) {
        entry_of(op).registerKernel(c10::Dispatcher::singleton(), key,
                                    c10::KernelFunction::makeFromBoxedFunction<&on_cpu>(), std::nullopt, nullptr,
                                    "registered at macatorch/csrc/dispatch/Foreign.cpp");
      }
    }
  }
  void onOperatorDeregistered(const c10::OperatorHandle&) override {}

  bool armed = false;
};

/// Upstream's own operators outside of aten that have kernels for both.
void reroute_namespaces() {
  static std::deque<ForeignSpec> specs;
  static std::deque<torch::Library> libraries;
  for (const char* space : {"quantized", "quantization"}) {
    for (const auto& [device_key, cpu_key] : {std::pair{DispatchKey::CUDA, DispatchKey::CPU},
                                              std::pair{DispatchKey::QuantizedCUDA, DispatchKey::QuantizedCPU}}) {
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
  reroute_namespaces();
  auto listener = std::make_unique<GuardNewOperators>();
  GuardNewOperators* guards = listener.get();
  static const c10::RegistrationHandleRAII handle =
      c10::Dispatcher::singleton().addRegistrationListener(std::move(listener));
  // It was told of everything that is there already; from now on it is others'.
  guards->armed = true;
}

}  // namespace macatorch
