// Device-wide algorithms: each one task in the order of its stream. The first call, without temporary storage, says how
// much of it is wanted (one byte: the tasks keep their own).
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>

#include "../../../mxmaca/arithmetic/pairwise.h"
#include "../../../mxmaca/stream_task.h"
#include "../../util_type.cuh"
#include "../iterators.cuh"
#include "../order.cuh"

CUB_NAMESPACE_BEGIN

namespace detail {
using Size = std::ptrdiff_t;

template <class Body>
CUB_RUNTIME_FUNCTION cudaError_t device_task(void* storage, std::size_t& bytes, cudaStream_t stream, Body body) {
  if (storage == nullptr) {
    bytes = 1;
    return cudaSuccess;
  }
  return ::mxmaca::run_in_stream(body, stream);
}

// What operation gives on a start and an input value, which sums are kept in.
template <class Op, class Init, class Input>
using accumulator = std::decay_t<decltype(std::declval<Op&>()(std::declval<Init>(), std::declval<Input>()))>;

template <class Init>
struct initial_type {
  using type = Init;
};
template <class T, class Iterator>
struct initial_type<FutureValue<T, Iterator>> {
  using type = T;
};

}  // namespace detail

#define MXMACA_STORAGE void *d_temp_storage, std::size_t &temp_storage_bytes
#define MXMACA_STREAM cudaStream_t stream = 0, bool = false
#define MXMACA_TASK(...) detail::device_task(d_temp_storage, temp_storage_bytes, stream, [=]() mutable __VA_ARGS__)

CUB_NAMESPACE_END
