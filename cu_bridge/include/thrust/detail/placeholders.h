// _1, _2, …: function objects written as expressions, such as `_1 * 2 > _2`.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../../host_defines.h"

namespace thrust {
namespace detail {
namespace expressions {

// What an expression is made of is asked for its value with the arguments of the call, which are a tuple of references.
template <std::size_t Position>
struct Argument {
  template <class Arguments>
  __host__ __device__ constexpr decltype(auto) value(const Arguments& arguments) const {
    return std::get<Position>(arguments);
  }
};
template <class T>
struct Constant {
  T kept;
  template <class Arguments>
  __host__ __device__ constexpr const T& value(const Arguments&) const {
    return kept;
  }
};
template <class Operator, class A>
struct Unary {
  A a;
  template <class Arguments>
  __host__ __device__ constexpr decltype(auto) value(const Arguments& arguments) const {
    return Operator()(a.value(arguments));
  }
};
template <class Operator, class A, class B>
struct Binary {
  A a;
  B b;
  template <class Arguments>
  __host__ __device__ constexpr decltype(auto) value(const Arguments& arguments) const {
    return Operator()(a.value(arguments), b.value(arguments));
  }
};
struct Assign {
  template <class A, class B>
  __host__ __device__ constexpr decltype(auto) operator()(A&& a, B&& b) const {
    return static_cast<A&&>(a) = static_cast<B&&>(b);
  }
};

template <class Part>
struct Expression : Part {
  constexpr Expression() = default;
  __host__ __device__ constexpr explicit Expression(const Part& part) : Part(part) {}
  Expression(const Expression&) = default;
  template <class... T>
  __host__ __device__ constexpr decltype(auto) operator()(T&&... arguments) const {
    return this->value(std::tuple<T&&...>(static_cast<T&&>(arguments)...));
  }
  template <class B>
  __host__ __device__ constexpr auto operator=(const B& b) const;
};

template <class T>
struct is_expression : std::false_type {};
template <class Part>
struct is_expression<Expression<Part>> : std::true_type {};

template <class T>
__host__ __device__ constexpr Constant<T> part(const T& constant) {
  return {constant};
}
template <class Part>
__host__ __device__ constexpr Part part(const Expression<Part>& expression) {
  return expression;
}
template <class Operator, class A>
__host__ __device__ constexpr auto unary(const A& a) {
  using Whole = Unary<Operator, A>;
  return Expression<Whole>(Whole{a});
}
template <class Operator, class A, class B>
__host__ __device__ constexpr auto binary(const A& a, const B& b) {
  using Whole = Binary<Operator, A, B>;
  return Expression<Whole>(Whole{a, b});
}
template <class Part>
template <class B>
__host__ __device__ constexpr auto Expression<Part>::operator=(const B& b) const {
  return binary<Assign>(static_cast<const Part&>(*this), part(b));
}

#define MXMACA_EXPRESSION_1(name, sign)                                         \
  struct name {                                                                 \
    template <class A>                                                          \
    __host__ __device__ constexpr decltype(auto) operator()(A&& a) const {      \
      return sign static_cast<A&&>(a);                                          \
    }                                                                           \
  };                                                                            \
  template <class Part>                                                         \
  __host__ __device__ constexpr auto operator sign(const Expression<Part>& a) { \
    return unary<name>(part(a));                                                \
  }
MXMACA_EXPRESSION_1(Minus, -)
MXMACA_EXPRESSION_1(Plus, +)
MXMACA_EXPRESSION_1(Not, !)
MXMACA_EXPRESSION_1(Complement, ~)
#undef MXMACA_EXPRESSION_1

#define MXMACA_EXPRESSION_2(name, sign)                                                                     \
  struct name {                                                                                             \
    template <class A, class B>                                                                             \
    __host__ __device__ constexpr decltype(auto) operator()(A&& a, B&& b) const {                           \
      return static_cast<A&&>(a) sign static_cast<B&&>(b);                                                  \
    }                                                                                                       \
  };                                                                                                        \
  template <class A, class B, class = std::enable_if_t<is_expression<A>::value || is_expression<B>::value>> \
  __host__ __device__ constexpr auto operator sign(const A& a, const B& b) {                                \
    return binary<name>(part(a), part(b));                                                                  \
  }
MXMACA_EXPRESSION_2(Add, +)
MXMACA_EXPRESSION_2(Subtract, -)
MXMACA_EXPRESSION_2(Multiply, *)
MXMACA_EXPRESSION_2(Divide, /)
MXMACA_EXPRESSION_2(Remainder, %)
MXMACA_EXPRESSION_2(BitAnd, &)
MXMACA_EXPRESSION_2(BitOr, |)
MXMACA_EXPRESSION_2(BitXor, ^)
MXMACA_EXPRESSION_2(ShiftLeft, <<)
MXMACA_EXPRESSION_2(ShiftRight, >>)
MXMACA_EXPRESSION_2(Equal, ==)
MXMACA_EXPRESSION_2(NotEqual, !=)
MXMACA_EXPRESSION_2(Less, <)
MXMACA_EXPRESSION_2(LessEqual, <=)
MXMACA_EXPRESSION_2(Greater, >)
MXMACA_EXPRESSION_2(GreaterEqual, >=)
MXMACA_EXPRESSION_2(And, &&)
MXMACA_EXPRESSION_2(Or, ||)
MXMACA_EXPRESSION_2(AddTo, +=)
MXMACA_EXPRESSION_2(SubtractFrom, -=)
MXMACA_EXPRESSION_2(MultiplyBy, *=)
MXMACA_EXPRESSION_2(DivideBy, /=)
MXMACA_EXPRESSION_2(RemainderOf, %=)
MXMACA_EXPRESSION_2(AndWith, &=)
MXMACA_EXPRESSION_2(OrWith, |=)
MXMACA_EXPRESSION_2(XorWith, ^=)
#undef MXMACA_EXPRESSION_2

template <std::size_t Position>
using Placeholder = Expression<Argument<Position>>;

}  // namespace expressions
}  // namespace detail

namespace placeholders {
static constexpr detail::expressions::Placeholder<0> _1{};
static constexpr detail::expressions::Placeholder<1> _2{};
static constexpr detail::expressions::Placeholder<2> _3{};
static constexpr detail::expressions::Placeholder<3> _4{};
static constexpr detail::expressions::Placeholder<4> _5{};
static constexpr detail::expressions::Placeholder<5> _6{};
static constexpr detail::expressions::Placeholder<6> _7{};
static constexpr detail::expressions::Placeholder<7> _8{};
static constexpr detail::expressions::Placeholder<8> _9{};
static constexpr detail::expressions::Placeholder<9> _10{};
}  // namespace placeholders
}  // namespace thrust
