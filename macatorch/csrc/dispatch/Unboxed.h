#pragma once

#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAFunctions.h>

#include <tuple>
#include <type_traits>

#include "alias/DeviceCall.h"
#include "arguments/Device.h"
#include "arguments/Walker.h"
#include "dispatch/Bound.h"
#include "dispatch/Operators.h"

namespace macatorch {

// Note [The fast path]
// A wrapper per operator, from one template over its signature (at::_ops). It takes the common case (all tensors
// strided and on one device, CPU tensors only as scalars) without boxing an argument; everything else goes through
// call_boxed, which holds the whole contract. Measured cost over upstream's CPU kernel: docs/architecture.md,
// "Operators".

namespace unboxed {

/// What the tensors of one call have in common.
struct Survey {
  const c10::TensorImpl* lead = nullptr;  // the first tensor on the device
  uint64_t dtypes = 0;
  bool plain = true;
  bool scalar = false;  // one CPU scalar was there

  void see(const at::Tensor& tensor, bool scalars_allowed) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
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
  template <class T>
  void see_argument(const T& argument, bool scalars_allowed) {
    if constexpr (std::is_same_v<T, std::optional<at::ScalarType>>) {
      dtypes |= argument ? dtype_bit(*argument) : 0;
    } else {
      for_each_tensor(argument, [&](const at::Tensor& tensor) { see(tensor, scalars_allowed); });
    }
  }
};

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
    // What upstream says of devices in its own words is said of numbers on the CPU as well.
    const bool takes_scalars = spec.check == DeviceCheck::TensorIterator && spec.rules.empty();
    (survey.see_argument(args, takes_scalars && !unboxed::is_mutable_tensor<Args>), ...);
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
    DeviceCall call(device);
    std::tuple<Bound<DeviceCall, Args>...> cpu{Bound<DeviceCall, Args>(call, args)...};
    auto redispatch = [](auto&... argument) -> Result {
      return Op::redispatch(c10::DispatchKeySet(kHostKey), argument.get()...);
    };
    const auto run = [&]() -> Result {
      if constexpr (writes) {
        try {
          return std::apply(redispatch, cpu);
        } catch (...) {
          // A kernel that raises has often given `out` its size by then.
          call.write_back();
          throw;
        }
      } else {
        return std::apply(redispatch, cpu);
      }
    };
    if constexpr (std::is_void_v<Result>) {
      run();
      call.write_back();
    } else if constexpr (std::is_same_v<Result, at::Tensor&>) {
      run();
      call.write_back();
      return unboxed::written_tensor<Args...>(args...);
    } else {
      Result value = run();
      if constexpr (writes) {
        call.write_back();
      }
      return result_of(call, std::move(value));
    }
  }

  static C10_NOINLINE Result call_slow(Args... args) {
    static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    static const c10::BoxedKernel kernel = c10::BoxedKernel::makeFromFunction<&boxed>();
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(kernel, op, c10::DispatchKeySet(kDeviceKey), args...);
  }
  static void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) { call_boxed(spec, op, stack); }
};

}  // namespace macatorch
