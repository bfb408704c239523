// Algorithms that return before they are done: work in the order of a stream of their own, and an object to wait by.
#pragma once

#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "vector.h"

namespace thrust {
namespace detail {

// A stream that goes with the last of its users.
class owned_stream {
 public:
  owned_stream() {
    const cudaError_t error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    if (error != cudaSuccess) throw system_error(error);
  }
  ~owned_stream() { cudaStreamDestroy(stream_); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// What an asynchronous call leaves: its stream, and an event behind its work.
class eager_state {
 public:
  eager_state() = default;
  eager_state(std::shared_ptr<owned_stream> own, cudaStream_t stream)
      : own_(std::move(own)), stream_(stream), event_(new cudaEvent_t(), destroy) {
    cudaError_t error = cudaEventCreateWithFlags(event_.get(), cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventRecord(*event_, stream_);
    if (error != cudaSuccess) throw system_error(error);
  }
  bool valid_stream() const { return event_ != nullptr; }
  cudaStream_t native() const { return stream_; }
  bool ready() const {
    if (event_ == nullptr) return false;
    const cudaError_t error = cudaEventQuery(*event_);
    if (error != cudaSuccess && error != cudaErrorNotReady) throw system_error(error);
    return error == cudaSuccess;
  }
  void wait() const {
    if (event_ == nullptr) throw std::logic_error("thrust: there is nothing to wait for");
    const cudaError_t error = cudaEventSynchronize(*event_);
    if (error != cudaSuccess) throw system_error(error);
  }
  cudaEvent_t event() const { return event_ == nullptr ? nullptr : *event_; }
  const std::shared_ptr<owned_stream>& own() const { return own_; }

 private:
  // Waits: the work writes to what goes with the last of its users.
  static void destroy(cudaEvent_t* event) {
    if (*event != nullptr) {
      cudaEventSynchronize(*event);
      cudaEventDestroy(*event);
    }
    delete event;
  }
  std::shared_ptr<owned_stream> own_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<cudaEvent_t> event_;
};

struct stream_view {
  cudaStream_t stream_;
  cudaStream_t native_handle() const { return stream_; }
  cudaStream_t get() const { return stream_; }
};

}  // namespace detail

class device_event {
 public:
  device_event() = default;
  explicit device_event(detail::eager_state state) : state_(std::move(state)) {}
  device_event(device_event&&) = default;
  device_event& operator=(device_event&&) = default;
  bool valid_stream() const { return state_.valid_stream(); }
  bool ready() const { return state_.ready(); }
  void wait() const { state_.wait(); }
  detail::stream_view stream() const { return {state_.native()}; }
  const detail::eager_state& state() const { return state_; }

 private:
  detail::eager_state state_;
};

template <class T, class Pointer = device_ptr<T>>
class device_future {
 public:
  using value_type = T;
  device_future() = default;
  device_future(detail::eager_state state, std::shared_ptr<T> value)
      : value_(std::move(value)), state_(std::move(state)) {}
  device_future(device_future&&) = default;
  device_future& operator=(device_future&&) = default;
  bool valid_stream() const { return state_.valid_stream(); }
  bool valid_content() const { return value_ != nullptr; }
  bool valid() const { return valid_stream() && valid_content(); }
  bool ready() const { return state_.ready(); }
  void wait() const { state_.wait(); }
  const T& get() const {
    state_.wait();
    return *value_;
  }
  T extract() {
    state_.wait();
    return std::move(*std::exchange(value_, nullptr));
  }
  detail::stream_view stream() const { return {state_.native()}; }
  const detail::eager_state& state() const { return state_; }

 private:
  // In this order: the state's end waits for what writes the value.
  std::shared_ptr<T> value_;
  detail::eager_state state_;
};
template <class T>
using unique_eager_future = device_future<T>;
using unique_eager_event = device_event;

template <class... Awaitables>
device_event when_all(Awaitables&&... all) {
  auto own = std::make_shared<detail::owned_stream>();
  (..., static_cast<void>(cudaStreamWaitEvent(own->get(), all.state().event(), 0)));
  return device_event(detail::eager_state(own, own->get()));
}

namespace detail {

// A copy of the algorithm's arguments, as a kernel's parameter: what it has is copied byte by byte. The result, if
// somebody wants it, goes to the host's memory.
template <class Algorithm, class T, class... Arguments>
struct AsyncCall {
  std::tuple<Arguments...> arguments;
  T* result;
  __host__ __device__ void operator()() {
    if constexpr (std::is_void<T>::value) {
      std::apply(Algorithm(), arguments);
    } else {
      *result = static_cast<T>(std::apply(Algorithm(), arguments));
    }
  }
};

// The policy's stream where it names one, else a new one behind the default stream's work.
struct async_stream {
  std::shared_ptr<owned_stream> own;
  cudaStream_t stream = nullptr;
  template <class Policy>
  explicit async_stream(const Policy& policy) : stream(policy_stream<Policy>::of(policy)) {
    if (stream != nullptr) return;
    own = std::make_shared<owned_stream>();
    stream = own->get();
    cudaEvent_t before = nullptr;
    cudaError_t error = cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventRecord(before, nullptr);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(stream, before, 0);
    if (before != nullptr) cudaEventDestroy(before);
    if (error != cudaSuccess) throw system_error(error);
  }
};

template <class Algorithm, class T, class... Arguments>
void submit_async(cudaStream_t stream, T* result, const Arguments&... arguments) {
  const cudaError_t error =
      mxmaca::run_in_stream(AsyncCall<Algorithm, T, Arguments...>{{arguments...}, result}, stream);
  if (error != cudaSuccess) throw system_error(error);
}

// With a policy as the first argument, or without.
template <class Algorithm, class First, class... Rest>
device_event run_async(const First& first, const Rest&... rest) {
  if constexpr (is_policy<First>::value) {
    const async_stream to(first);
    submit_async<Algorithm, void>(to.stream, nullptr, rest...);
    return device_event(eager_state(to.own, to.stream));
  } else {
    return run_async<Algorithm>(stream_policy(), first, rest...);
  }
}
template <class Algorithm, class T, class First, class... Rest>
device_future<T> run_async_for(const First& first, const Rest&... rest) {
  if constexpr (is_policy<First>::value) {
    const async_stream to(first);
    auto value = std::make_shared<T>();
    submit_async<Algorithm>(to.stream, value.get(), rest...);
    return device_future<T>(eager_state(to.own, to.stream), value);
  } else {
    return run_async_for<Algorithm, T>(stream_policy(), first, rest...);
  }
}

// The type of a reduction's start, or of the elements.
template <class I, class J>
iterator_value_t<I> reduced(I, J);
template <class I, class J, class T>
T reduced(I, J, T);
template <class I, class J, class T, class Op>
T reduced(I, J, T, Op);
template <class First, class... Rest>
auto reduction_type(const First& first, const Rest&... rest) {
  if constexpr (is_policy<First>::value) {
    return reduced(rest...);
  } else {
    return reduced(first, rest...);
  }
}

}  // namespace detail

namespace async {

template <class... Arguments>
device_event for_each(const Arguments&... arguments) {
  return detail::run_async<detail::algorithm::for_each>(arguments...);
}
template <class... Arguments>
device_event transform(const Arguments&... arguments) {
  return detail::run_async<detail::algorithm::transform>(arguments...);
}
template <class... Arguments>
device_event copy(const Arguments&... arguments) {
  return detail::run_async<detail::algorithm::copy>(arguments...);
}
// Two policies: where from, and where to. One memory, so one stream.
template <class From, class To, class I, class J, class Out, class = std::enable_if_t<detail::is_policy<To>::value>>
device_event copy(const From& from, const To& to, I first, J last, Out out) {
  if (detail::policy_stream<From>::of(from) != nullptr) {
    return detail::run_async<detail::algorithm::copy>(from, first, last, out);
  }
  return detail::run_async<detail::algorithm::copy>(to, first, last, out);
}
template <class... Arguments>
device_event sort(const Arguments&... arguments) {
  return detail::run_async<detail::algorithm::stable_sort>(arguments...);
}
template <class... Arguments>
device_event stable_sort(const Arguments&... arguments) {
  return detail::run_async<detail::algorithm::stable_sort>(arguments...);
}
template <class... Arguments>
device_event inclusive_scan(const Arguments&... arguments) {
  return detail::run_async<detail::algorithm::inclusive_scan>(arguments...);
}
template <class... Arguments>
device_event exclusive_scan(const Arguments&... arguments) {
  return detail::run_async<detail::algorithm::exclusive_scan>(arguments...);
}
template <class... Arguments>
auto reduce(const Arguments&... arguments) {
  using T = decltype(detail::reduction_type(arguments...));
  return detail::run_async_for<detail::algorithm::reduce, T>(arguments...);
}

}  // namespace async
}  // namespace thrust
