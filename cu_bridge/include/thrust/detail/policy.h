// Where an algorithm runs, and the way there.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../../mxmaca/stream_task.h"
#include "pointer.h"

// Errors of CUDA as those of the C++ library.
namespace thrust {

using std::errc;
using std::error_category;
using std::error_code;
using std::error_condition;
using std::generic_category;
using std::make_error_condition;
using std::system_category;

namespace detail {
class cuda_error_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "cuda"; }
  std::string message(int value) const override {
    const auto error = static_cast<cudaError_t>(value);
    return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
  }
};
}  // namespace detail
inline const std::error_category& cuda_category() {
  static const detail::cuda_error_category category;
  return category;
}

class system_error : public std::system_error {
 public:
  using std::system_error::system_error;
  explicit system_error(cudaError_t error) : std::system_error(static_cast<int>(error), cuda_category()) {}
};
namespace system {
using thrust::cuda_category;
using thrust::error_category;
using thrust::error_code;
using thrust::system_error;
}  // namespace system

}  // namespace thrust

// So that a code can be compared with, and made of, an error of CUDA's.
inline std::error_code make_error_code(cudaError_t error) { return {static_cast<int>(error), thrust::cuda_category()}; }
template <>
struct std::is_error_code_enum<cudaError_t> : std::true_type {};

namespace thrust {

struct execution_policy_root {};
template <class Derived>
struct execution_policy : execution_policy_root {};
template <class Derived>
struct device_execution_policy : execution_policy<Derived> {};
template <class Derived>
struct host_execution_policy : execution_policy<Derived> {};

namespace detail {

// At once, in the calling thread.
struct sequential_policy : execution_policy<sequential_policy> {
  static constexpr bool on_device = false;
  __host__ __device__ cudaStream_t stream() const { return nullptr; }
  template <class Allocator>
  __host__ __device__ sequential_policy operator()(Allocator&&) const {
    return *this;
  }
};
// In the order of a stream. The algorithms need no temporary memory of the device, so the allocator goes unused.
struct stream_policy : execution_policy<stream_policy> {
  static constexpr bool on_device = true;
  cudaStream_t stream_ = nullptr;
  __host__ __device__ constexpr stream_policy() {}
  __host__ __device__ constexpr explicit stream_policy(cudaStream_t stream) : stream_(stream) {}
  __host__ __device__ cudaStream_t stream() const { return stream_; }
  __host__ __device__ stream_policy on(cudaStream_t stream) const { return stream_policy(stream); }
  template <class... Events>
  __host__ __device__ stream_policy after(Events&&...) const {
    return *this;
  }
  template <class Allocator>
  __host__ __device__ stream_policy operator()(Allocator&&) const {
    return *this;
  }
};

template <class T>
using is_policy = std::is_base_of<execution_policy_root, std::decay_t<T>>;
// A user's own policy runs on the device.
template <class Policy, class = void>
struct policy_on_device : std::true_type {};
template <class Policy>
struct policy_on_device<Policy, std::void_t<decltype(Policy::on_device)>> : std::bool_constant<Policy::on_device> {};
template <class Policy, class = void>
struct policy_stream {
  static __host__ __device__ cudaStream_t of(const Policy&) { return nullptr; }
};
template <class Policy>
struct policy_stream<Policy, std::void_t<decltype(std::declval<const Policy&>().stream())>> {
  static __host__ __device__ cudaStream_t of(const Policy& policy) { return policy.stream(); }
};

// An algorithm with its arguments and room for its result, on the stack of the caller, who waits for it.
template <class Algorithm, class Result, class... Arguments>
struct Task {
  std::tuple<Arguments...> arguments;
  alignas(Result) unsigned char result[sizeof(Result)];
  __host__ __device__ void run() { new (result) Result(std::apply(Algorithm(), arguments)); }
};
template <class Algorithm, class... Arguments>
struct Task<Algorithm, void, Arguments...> {
  std::tuple<Arguments...> arguments;
  __host__ __device__ void run() { std::apply(Algorithm(), arguments); }
};
template <class AnyTask>
struct TaskCall {
  AnyTask* task;
  __host__ __device__ void operator()() const { task->run(); }
};

template <class Algorithm, class... Arguments>
__host__ __device__ auto run_on_device(cudaStream_t stream, const Arguments&... arguments) {
  using Result = decltype(Algorithm()(arguments...));
  Task<Algorithm, Result, Arguments...> task{{arguments...}, {}};
  cudaError_t error = mxmaca::run_in_stream(TaskCall<Task<Algorithm, Result, Arguments...>>{&task}, stream);
  if (!mxmaca::in_device_code && error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) throw system_error(error);
  Result* const result = reinterpret_cast<Result*>(task.result);
  Result value = std::move(*result);
  result->~Result();
  return value;
}
template <class Algorithm, class... Arguments>
__host__ __device__ void run_void_on_device(cudaStream_t stream, const Arguments&... arguments) {
  Task<Algorithm, void, Arguments...> task{{arguments...}};
  cudaError_t error = mxmaca::run_in_stream(TaskCall<Task<Algorithm, void, Arguments...>>{&task}, stream);
  if (!mxmaca::in_device_code && error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) throw system_error(error);
}

// With a policy: there. Without: on the device if one of the iterators is the device's.
template <class Algorithm, class First, class... Rest>
__host__ __device__ auto dispatch(const First& first, const Rest&... rest) {
  if constexpr (is_policy<First>::value) {
    if constexpr (!policy_on_device<First>::value) {
      return Algorithm()(rest...);
    } else if constexpr (std::is_void<decltype(Algorithm()(rest...))>::value) {
      run_void_on_device<Algorithm>(policy_stream<First>::of(first), rest...);
    } else {
      return run_on_device<Algorithm>(policy_stream<First>::of(first), rest...);
    }
  } else if constexpr ((on_device<First>::value || ... || on_device<Rest>::value)) {
    if constexpr (std::is_void<decltype(Algorithm()(first, rest...))>::value) {
      run_void_on_device<Algorithm>(nullptr, first, rest...);
    } else {
      return run_on_device<Algorithm>(nullptr, first, rest...);
    }
  } else {
    return Algorithm()(first, rest...);
  }
}

}  // namespace detail

// `static` rather than inline: one per translation unit, as lambdas capture them.
static constexpr detail::stream_policy device{};
static constexpr detail::sequential_policy host{};
static constexpr detail::sequential_policy seq{};

namespace cuda {
static constexpr detail::stream_policy par{};
static constexpr detail::stream_policy par_nosync{};
template <class Derived>
using execution_policy = thrust::execution_policy<Derived>;
using tag = device_system_tag;
}  // namespace cuda
namespace cuda_cub {
using thrust::cuda::par;
using thrust::cuda::par_nosync;
}  // namespace cuda_cub
namespace cpp {
static constexpr detail::sequential_policy par{};
}
namespace omp {
static constexpr detail::sequential_policy par{};
}
namespace system {
namespace cuda {
using thrust::cuda::par;
using thrust::cuda::par_nosync;
}  // namespace cuda
}  // namespace system

}  // namespace thrust
