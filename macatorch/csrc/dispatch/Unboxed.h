#pragma once

#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAFunctions.h>

#include <tuple>
#include <type_traits>

#include "alias/CpuAliases.h"
#include "dispatch/Operators.h"

namespace macatorch {

// Note [The fast path]
// A wrapper per operator, from one template over its signature (at::_ops). It takes the common case (all tensors strided
// and on one device, CPU tensors only as scalars) without boxing an argument; everything else goes through call_boxed,
// which holds the whole contract. Measured cost over upstream's CPU kernel: docs/architecture.md, "Operators".

namespace unboxed {

/// What the tensors of one call have in common.
struct Survey {
  const c10::TensorImpl* lead = nullptr;  // the first tensor on the device
  uint64_t dtypes = 0;
  bool plain = true;
  bool scalar = false;  // one CPU scalar was there

  void see(const at::Tensor& tensor, bool scalars_allowed) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (!tensor.defined()) {
      return;
    }
    dtypes |= uint64_t(1) << static_cast<unsigned>(c10::typeMetaToScalarType(impl->dtype()));
    if (C10_LIKELY(is_plain_cuda(*impl))) {
      if (lead == nullptr) {
        lead = impl;
      } else if (C10_UNLIKELY(lead->device() != impl->device())) {
        plain = false;
      }
    } else if (!scalar && scalars_allowed && impl->dim() == 0 && impl->device_type() == c10::kCPU) {
      scalar = true;
    } else {
      plain = false;
    }
  }
  void see(const std::optional<at::Tensor>& tensor, bool scalars_allowed) {
    if (tensor) {
      see(*tensor, scalars_allowed);
    }
  }
  void see(at::TensorList tensors, bool scalars_allowed) {
    for (const at::Tensor& tensor : tensors) {
      see(tensor, scalars_allowed);
    }
  }
  void see(const at::ITensorListRef& tensors, bool scalars_allowed) {
    for (const at::Tensor& tensor : tensors) {
      see(tensor, scalars_allowed);
    }
  }
  void see(const std::optional<at::ScalarType>& dtype, bool /*scalars_allowed*/) {
    if (dtype) {
      dtypes |= dtype_bit(*dtype);
    }
  }
  template <class T>
  void see(const T& /*no tensor*/, bool /*scalars_allowed*/) {}
};

inline at::Tensor alias_of(CpuAliases& aliases, const at::Tensor& tensor, bool write) {
  return tensor.defined() && is_plain_cuda(*tensor.unsafeGetTensorImpl()) ? aliases.bind(tensor, write) : tensor;
}

inline std::vector<at::Tensor> aliases_of(CpuAliases& aliases, const at::ITensorListRef& tensors) {
  std::vector<at::Tensor> list;
  list.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    list.push_back(alias_of(aliases, tensor, false));
  }
  return list;
}

/// One argument as the CPU kernel gets it; holds what the kernel only refers to.
template <class T>
struct CpuArgument {
  T value;
  CpuArgument(CpuAliases&, T given) : value(given) {}
  T get() { return value; }
};
template <>
struct CpuArgument<const at::Tensor&> {
  at::Tensor value;
  CpuArgument(CpuAliases& aliases, const at::Tensor& given) : value(alias_of(aliases, given, false)) {}
  const at::Tensor& get() { return value; }
};
template <>
struct CpuArgument<at::Tensor&> {
  at::Tensor value;
  CpuArgument(CpuAliases& aliases, const at::Tensor& given) : value(alias_of(aliases, given, true)) {}
  at::Tensor& get() { return value; }
};
template <>
struct CpuArgument<const std::optional<at::Tensor>&> {
  std::optional<at::Tensor> value;
  CpuArgument(CpuAliases& aliases, const std::optional<at::Tensor>& given) {
    if (given) {
      value = alias_of(aliases, *given, false);
    }
  }
  const std::optional<at::Tensor>& get() { return value; }
};
template <>
struct CpuArgument<at::TensorList> {
  std::vector<at::Tensor> value;
  CpuArgument(CpuAliases& aliases, at::TensorList given) : value(aliases_of(aliases, given)) {}
  at::TensorList get() { return value; }
};
template <>
struct CpuArgument<const at::ITensorListRef&> {
  std::vector<at::Tensor> value;
  at::ITensorListRef list;
  CpuArgument(CpuAliases& aliases, const at::ITensorListRef& given) : value(aliases_of(aliases, given)), list(value) {}
  const at::ITensorListRef& get() { return list; }
};

inline at::Tensor result(const CpuAliases& aliases, at::Tensor value, c10::Device device) {
  return aliases.to_device(std::move(value), device);
}
inline std::vector<at::Tensor> result(const CpuAliases& aliases, std::vector<at::Tensor> values, c10::Device device) {
  for (at::Tensor& value : values) {
    value = aliases.to_device(std::move(value), device);
  }
  return values;
}
template <class... T>
std::tuple<T...> result(const CpuAliases& aliases, std::tuple<T...> values, c10::Device device) {
  return std::apply([&](auto&... value) { return std::tuple<T...>(result(aliases, std::move(value), device)...); },
                    values);
}
template <class T>
T result(const CpuAliases&, T value, c10::Device) {
  return value;
}

template <class T>
constexpr bool is_mutable_tensor = std::is_same_v<T, at::Tensor&>;

/// The one tensor that an in-place or out= operator returns.
template <class... Args>
at::Tensor& written_tensor(Args&... args) {
  at::Tensor* found = nullptr;
  auto look = [&](auto& arg, auto is_written) {
    if constexpr (decltype(is_written)::value) {
      found = &arg;
    }
  };
  (look(args, std::bool_constant<is_mutable_tensor<Args>>()), ...);
  return *found;
}

}  // namespace unboxed

template <class Op, const OperatorSpec& spec, class Schema = typename Op::schema>
struct Unboxed;

template <class Op, const OperatorSpec& spec, class Result, class... Args>
struct Unboxed<Op, spec, Result(Args...)> {
  static constexpr bool writes = (unboxed::is_mutable_tensor<Args> || ...);

  static Result call(Args... args) {
    unboxed::Survey survey;
    (survey.see(args, spec.check == DeviceCheck::TensorIterator && !unboxed::is_mutable_tensor<Args>), ...);
    const uint64_t low = survey.dtypes & kLowPrecision;
    if (C10_UNLIKELY(!survey.plain || survey.lead == nullptr || (survey.dtypes & spec.lacks) != 0 ||
                     (low != 0 && (spec.widens || (low & spec.cpu_lacks) != 0)))) {
      return call_slow(args...);
    }
    if (C10_LIKELY(low == 0)) {
      return call_fast(survey.lead->device(), args...);
    }
    try {
      return call_fast(survey.lead->device(), args...);
    } catch (const c10::Error& error) {
      at::ScalarType dtype{};
      if (!lacks_dtype(error.what_without_backtrace(), low, &dtype)) {
        throw;
      }
    }
    return call_slow(args...);
  }

 private:
  static C10_ALWAYS_INLINE Result call_fast(c10::Device device, Args... args) {
    DeviceScope scope(device.index());
    CpuAliases aliases;
    std::tuple<unboxed::CpuArgument<Args>...> cpu{unboxed::CpuArgument<Args>(aliases, args)...};
    auto redispatch = [](auto&... argument) -> Result {
      return Op::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), argument.get()...);
    };
    const auto run = [&]() -> Result {
      if constexpr (writes) {
        try {
          return std::apply(redispatch, cpu);
        } catch (...) {
          // A kernel that raises has often given `out` its size by then.
          aliases.write_back(device);
          throw;
        }
      } else {
        return std::apply(redispatch, cpu);
      }
    };
    if constexpr (std::is_void_v<Result>) {
      run();
      aliases.write_back(device);
    } else if constexpr (std::is_same_v<Result, at::Tensor&>) {
      run();
      aliases.write_back(device);
      return unboxed::written_tensor<Args...>(args...);
    } else {
      Result value = run();
      if constexpr (writes) {
        aliases.write_back(device);
      }
      return unboxed::result(aliases, std::move(value), device);
    }
  }

  static C10_NOINLINE Result call_slow(Args... args) {
    static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    static const c10::BoxedKernel kernel = c10::BoxedKernel::makeFromFunction<&boxed>();
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(kernel, op, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                                                args...);
  }
  static void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) { call_boxed(spec, op, stack); }
};

}  // namespace macatorch
