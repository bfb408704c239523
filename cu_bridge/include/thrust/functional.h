// Function objects for host and device.
#pragma once

#include <functional>
#include <utility>

#include "../host_defines.h"
#include "detail/config.h"
#include "detail/placeholders.h"

namespace thrust {

#define MXMACA_BINARY(name, expression)                                                                \
  template <class T = void>                                                                            \
  struct name {                                                                                        \
    using first_argument_type = T;                                                                     \
    using second_argument_type = T;                                                                    \
    __host__ __device__ constexpr auto operator()(const T& a, const T& b) const { return expression; } \
  };                                                                                                   \
  template <>                                                                                          \
  struct name<void> {                                                                                  \
    using is_transparent = void;                                                                       \
    template <class A, class B>                                                                        \
    __host__ __device__ constexpr auto operator()(const A& a, const B& b) const {                      \
      return expression;                                                                               \
    }                                                                                                  \
  };
#define MXMACA_UNARY(name, expression)                                                     \
  template <class T = void>                                                                \
  struct name {                                                                            \
    using argument_type = T;                                                               \
    __host__ __device__ constexpr auto operator()(const T& a) const { return expression; } \
  };                                                                                       \
  template <>                                                                              \
  struct name<void> {                                                                      \
    using is_transparent = void;                                                           \
    template <class A>                                                                     \
    __host__ __device__ constexpr auto operator()(const A& a) const {                      \
      return expression;                                                                   \
    }                                                                                      \
  };
MXMACA_BINARY(plus, a + b)
MXMACA_BINARY(minus, a - b)
MXMACA_BINARY(multiplies, a* b)
MXMACA_BINARY(divides, a / b)
MXMACA_BINARY(modulus, a % b)
MXMACA_BINARY(equal_to, a == b)
MXMACA_BINARY(not_equal_to, a != b)
MXMACA_BINARY(greater, a > b)
MXMACA_BINARY(less, a < b)
MXMACA_BINARY(greater_equal, a >= b)
MXMACA_BINARY(less_equal, a <= b)
MXMACA_BINARY(logical_and, a&& b)
MXMACA_BINARY(logical_or, a || b)
MXMACA_BINARY(bit_and, a& b)
MXMACA_BINARY(bit_or, a | b)
MXMACA_BINARY(bit_xor, a ^ b)
MXMACA_BINARY(maximum, a < b ? b : a)
MXMACA_BINARY(minimum, b < a ? b : a)
MXMACA_BINARY(project1st, (static_cast<void>(b), a))
MXMACA_BINARY(project2nd, (static_cast<void>(a), b))
MXMACA_UNARY(negate, -a)
MXMACA_UNARY(square, a* a)
MXMACA_UNARY(logical_not, !a)
MXMACA_UNARY(identity, a)
#undef MXMACA_BINARY
#undef MXMACA_UNARY

template <class Predicate>
struct unary_negate {
  Predicate predicate;
  template <class A>
  __host__ __device__ bool operator()(const A& a) const {
    return !predicate(a);
  }
};
template <class Predicate>
__host__ __device__ unary_negate<Predicate> not1(Predicate predicate) {
  return {predicate};
}
template <class Predicate>
struct binary_negate {
  Predicate predicate;
  template <class A, class B>
  __host__ __device__ bool operator()(const A& a, const B& b) const {
    return !predicate(a, b);
  }
};
template <class Predicate>
__host__ __device__ binary_negate<Predicate> not2(Predicate predicate) {
  return {predicate};
}
template <class Predicate>
__host__ __device__ auto not_fn(Predicate predicate) {
  return [predicate](const auto&... arguments) { return !predicate(arguments...); };
}

// Bases of user functors; C++17 took std's away.
template <class Argument, class Result>
struct unary_function {
  using argument_type = Argument;
  using result_type = Result;
};
template <class First, class Second, class Result>
struct binary_function {
  using first_argument_type = First;
  using second_argument_type = Second;
  using result_type = Result;
};

}  // namespace thrust
