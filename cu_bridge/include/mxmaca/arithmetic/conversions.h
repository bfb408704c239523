// Conversions of floating-point numbers to integers without a cast, which saturate as casts do. Where the compiler has
// said that a number may get lost, cucc writes `int i = converting(x)` for `int i = x` and `combining(i) += x` for
// `i += x`. In a template the same place may convert something else: that stays as it is.
#pragma once

#include "casts.h"

namespace mxmaca {
namespace casts {

// What is not a number of a size that hardware converts keeps C++'s conversion.
template <class T, class N>
constexpr bool saturates_like_casts = is_saturated_integer<T> && std::is_floating_point<N>::value;

// A number for the constructor of a class, which may take an integer.
template <class N>
struct NumberToConstructWith {
  N number;
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  __attribute__((always_inline)) constexpr operator T() const {
    if constexpr (saturates_like_casts<T, N>) {
      return cast_to<T>(number);
    } else {
      return static_cast<T>(number);
    }
  }
};

// Of several types the one that C++ chooses is the number's own, and a class that takes anything is to get the number.
struct AnythingAtAll {};
template <class T, class N>
constexpr bool takes_one_number_type = std::is_class<T>::value && !std::is_constructible<T, AnythingAtAll>::value &&
                                       std::is_constructible<T, NumberToConstructWith<N>>::value;

template <class N>
struct NumberToConvert {
  N number;
  template <class T>
  __attribute__((always_inline)) constexpr operator T() const {
    if constexpr (saturates_like_casts<T, N>) {
      return cast_to<T>(number);
    } else if constexpr (takes_one_number_type<T, N>) {
      return static_cast<T>(NumberToConstructWith<N>{number});
    } else {
      return static_cast<T>(number);
    }
  }
};

template <class N>
__attribute__((always_inline)) constexpr decltype(auto) converting(N&& number) {
  using NumberType = typename std::remove_cv<typename std::remove_reference<N>::type>::type;
  if constexpr (std::is_floating_point<NumberType>::value) {
    return NumberToConvert<NumberType>{number};
  } else {
    return static_cast<N>(static_cast<N&&>(number));
  }
}

template <class T>
struct NumberToCombine {
  T& number;
#define MXMACA_COMBINING(op)                                                           \
  template <class N>                                                                   \
  __attribute__((always_inline)) constexpr T& operator op## = (const N& other) const { \
    if constexpr (saturates_like_casts<T, N>) {                                        \
      number = cast_to<typename std::remove_cv<T>::type>(number op other);             \
    } else {                                                                           \
      number op## = other;                                                             \
    }                                                                                  \
    return number;                                                                     \
  }
  MXMACA_COMBINING(+)
  MXMACA_COMBINING(-)
  MXMACA_COMBINING(*)
  MXMACA_COMBINING(/)
#undef MXMACA_COMBINING
};

template <class T>
__attribute__((always_inline)) constexpr NumberToCombine<T> combining(T& number) {
  return {number};
}

}  // namespace casts
}  // namespace mxmaca
