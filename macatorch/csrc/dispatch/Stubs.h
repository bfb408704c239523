#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/native/DispatchStub.h>

#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "alias/CompositeTensors.h"
#include "alias/DeviceScope.h"
#include "arguments/Device.h"
#include "arguments/Release.h"
#include "arguments/Walker.h"
#include "dispatch/Bound.h"
#include "dispatch/Operators.h"

namespace macatorch {

// Note [Function tables]
// Upstream's operators reach their innermost functions through tables with an entry for each kind of device
// (DispatchStub). An operator with kernels of its own for CPU and CUDA never gets there, since ours replaces it; one
// function that serves both does: mode(out=), conj_physical_(), layer_norm of nested tensors. So the CUDA entry of
// every table becomes a function over its signature that calls the CPU entry with CPU aliases of the same bytes. Which
// tables there are the generated list says; a test reads all of them in the running process.

/// The tensors of one call through a table.
class StubCall {
 public:
  /// `wide`: low-precision dtypes that the CPU's function lacks, computed in the next wider one. `promotes`: an
  /// iterator's operands are read in its common dtype.
  StubCall(c10::Device device, uint64_t wide, bool promotes)
      : device_(device), scope_(device.index()), wide_(wide), promotes_(promotes) {}

  /// What the CPU's function gets for a tensor; `target`: the function may put another tensor there.
  at::Tensor alias(const at::Tensor& tensor, bool target = false);
  /// The same for an iterator: over the aliases, all of one dtype where the CPU's functions want that.
  at::TensorIterator& iterator(at::TensorIteratorBase& iterator);
  std::optional<at::Generator> generator(const std::optional<at::Generator>& generator) const;

  /// Carries what was computed wider, or resized, back to the device's tensors.
  void finish();
  at::Tensor result(const at::Tensor& tensor) const { return aliases_.to_device(tensor, device_); }

 private:
  at::Tensor widened(const at::Tensor& alias, at::ScalarType dtype, bool written);

  c10::Device device_;
  DeviceScope scope_;
  uint64_t wide_;
  bool promotes_;
  AnyAliases aliases_;
  std::vector<std::unique_ptr<at::TensorIterator>> iterators_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // alias, what was computed in its place
};

namespace stubs {

/// What is looked at before a call: the device, and the low-precision dtypes.
struct Survey {
  std::optional<c10::Device> device;
  uint64_t dtypes = 0;

  template <class T>
  void see(const T& argument) {
    for_each_tensor(argument, [&](const at::TensorBase& tensor) {
      dtypes |= dtype_bit(tensor.scalar_type());
      if (!device && is_on_device(tensor)) {
        device = tensor.device();
      }
    });
  }
};

}  // namespace stubs

/// A tensor by reference: the function may put another one there.
template <>
struct Bound<StubCall, at::Tensor&> {
  at::Tensor& given;
  at::Tensor before;
  at::Tensor value;
  Bound(StubCall& call, at::Tensor& given) : given(given), before(call.alias(given, true)), value(before) {}
  at::Tensor& get() { return value; }
  void done(StubCall& call) {
    if (!before.is_same(value)) {
      given = call.result(value);
    }
  }
};
template <>
struct Bound<StubCall, at::Tensor*> {
  std::optional<Bound<StubCall, at::Tensor&>> target;
  Bound(StubCall& call, at::Tensor* given) {
    if (given != nullptr) {
      target.emplace(call, *given);
    }
  }
  at::Tensor* get() { return target ? &target->value : nullptr; }
  void done(StubCall& call) {
    if (target) {
      target->done(call);
    }
  }
};
template <>
struct Bound<StubCall, const at::TensorBase&> {
  at::Tensor value;
  Bound(StubCall& call, const at::TensorBase& given) : value(call.alias(at::Tensor(given))) {}
  const at::TensorBase& get() { return value; }
  void done(StubCall&) {}
};
template <>
struct Bound<StubCall, const c10::List<std::optional<at::Tensor>>&> {
  c10::List<std::optional<at::Tensor>> value;
  Bound(StubCall& call, const c10::List<std::optional<at::Tensor>>& given) {
    for (const std::optional<at::Tensor>& tensor : given) {
      value.push_back(tensor ? std::make_optional(call.alias(*tensor)) : std::nullopt);
    }
  }
  const c10::List<std::optional<at::Tensor>>& get() { return value; }
  void done(StubCall&) {}
};
template <class Iterator>
struct BoundIterator {
  at::TensorIterator& value;
  BoundIterator(StubCall& call, at::TensorIteratorBase& given) : value(call.iterator(given)) {}
  Iterator& get() { return value; }
  void done(StubCall&) {}
};
template <>
struct Bound<StubCall, at::TensorIterator&> : BoundIterator<at::TensorIterator> {
  using BoundIterator::BoundIterator;
};
template <>
struct Bound<StubCall, at::TensorIteratorBase&> : BoundIterator<at::TensorIteratorBase> {
  using BoundIterator::BoundIterator;
};
template <>
struct Bound<StubCall, std::optional<at::Generator>> {
  std::optional<at::Generator> value;
  Bound(StubCall& call, const std::optional<at::Generator>& given) : value(call.generator(given)) {}
  std::optional<at::Generator> get() { return value; }
  void done(StubCall&) {}
};

namespace stubs {

[[noreturn]] void refuse(const char* name);

template <class Stub, Stub& stub, class Function>
struct Rerouted;

template <class Stub, Stub& stub, class Result, class... Args>
struct Rerouted<Stub, stub, Result (*)(Args...)> {
  static inline const char* name = nullptr;
  static inline bool promotes = true;

  static Result call(Args... args) {
    Survey survey;
    (survey.see(args), ...);
    if (!survey.device) {
      return stub(c10::kCPU, args...);
    }
    const uint64_t low = survey.dtypes & kLowPrecision;
    uint64_t wide = 0;
    for (;;) {
      try {
        return attempt(*survey.device, wide, args...);
      } catch (const c10::Error& error) {
        at::ScalarType dtype{};
        if (!lacks_dtype(error.what_without_backtrace(), low & ~wide, &dtype)) {
          throw;
        }
        wide |= dtype_bit(dtype);
      }
    }
  }

  static Result missing(Args...) { refuse(name); }

 private:
  static Result attempt(c10::Device device, uint64_t wide, Args... args) {
    StubCall call(device, wide, promotes);
    std::tuple<Bound<StubCall, Args>...> cpu{Bound<StubCall, Args>(call, args)...};
    auto run = [](auto&... argument) -> Result { return stub(c10::kCPU, argument.get()...); };
    auto done = [&](auto&... argument) { (argument.done(call), ...); };
    if constexpr (std::is_void_v<Result>) {
      std::apply(run, cpu);
      call.finish();
      std::apply(done, cpu);
    } else if constexpr (std::is_same_v<Result, at::Tensor&>) {
      // Such a function returns the tensor that it was given first.
      std::apply(run, cpu);
      call.finish();
      std::apply(done, cpu);
      return std::get<0>(std::tie(args...));
    } else {
      Result value = std::apply(run, cpu);
      call.finish();
      std::apply(done, cpu);
      return result_of(call, std::move(value));
    }
  }
};

}  // namespace stubs

/// Whether a table has an entry for a kind of device.
template <class Stub>
bool has_entry(Stub& stub, c10::DeviceType device) {
#if MACATORCH_TORCH_AT_LEAST(2, 4)
  return stub.is_device_supported(device);
#else
  // A table is nothing but its entries, and those for the CPU's instruction sets beside it.
  const auto& entries = reinterpret_cast<const at::native::DispatchStubImpl&>(stub);
  return device == c10::kCPU ? Stub::DEFAULT != nullptr : entries.cuda_dispatch_ptr != nullptr;
#endif
}

/// Points the CUDA entry of one table at the CPU's function, or, where the CPU has none, at an error that says so.
/// `promotes`: the table's functions read every operand in the iterator's common dtype, of which a CUDA iterator does
/// not say.
template <class Stub, Stub& stub>
void reroute_stub(const char* name, bool promotes) {
  using Rerouted = stubs::Rerouted<Stub, stub, typename Stub::FnPtr>;
  if (!has_entry(stub, kDevice)) {
    return;
  }
  Rerouted::name = name;
  Rerouted::promotes = promotes;
  const auto entry = has_entry(stub, c10::kCPU) ? &Rerouted::call : &Rerouted::missing;
  if constexpr (kDevice == c10::kCUDA) {
    stub.set_cuda_dispatch_ptr(entry);
  } else {
    stub.set_privateuse1_dispatch_ptr(entry);
  }
}

}  // namespace macatorch
