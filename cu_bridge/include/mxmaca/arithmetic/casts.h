// Casts of floating-point numbers to integers as NVIDIA's hardware has them: out of range they saturate. cucc writes
// `casting<int> ->* x` where the text has `(int)x`, so that operands and what binds them stay as they are.
#pragma once

#include <limits>
#include <type_traits>

namespace mxmaca {
namespace casts {

// Names are long here: cucc asks for all declarations of the names that kernels have for types and functions.

template <class T>
struct CastTo {};
template <class T>
constexpr CastTo<T> casting{};

// PTX ISA, cvt.rzi to 32 or 64 bits: NaN gives 0, but the top bit alone where either side has 64.
template <class T, class N>
__attribute__((always_inline)) constexpr T cast_nearest(N number) {
  using CastLimits = std::numeric_limits<T>;
  using CastUnsigned = typename std::make_unsigned<T>::type;
  constexpr bool wide = sizeof(N) >= 8 || sizeof(T) >= 8;
  constexpr T for_nan = wide ? static_cast<T>(CastUnsigned{1} << (8 * sizeof(T) - 1)) : T{0};
  // 2^digits is exact in every type; the first value above the range.
  constexpr N above = static_cast<N>(2) * static_cast<N>(CastLimits::max() / 2 + 1);
  constexpr N least = static_cast<N>(CastLimits::min());
#if defined(__x86_64__)
  // The processor gives the least integer for whatever does not fit, as GCC does for what is too small a constant.
  if (std::is_signed<T>::value && !__builtin_is_constant_evaluated()) {
    const T result = number >= above ? CastLimits::max() : static_cast<T>(number);
    return number == number ? result : for_nan;
  }
#endif
  const bool fits = number >= least && number < above;
  const T inside = static_cast<T>(fits ? number : N{0});
  // No branches, so that loops keep their vectors. What is no number is neither above the range nor below it.
  const T outside = number >= above ? CastLimits::max() : number < least ? CastLimits::min() : for_nan;
  return fits ? inside : outside;
}

// T may be any type where the program has a name for it.
template <class T>
constexpr bool is_saturated_integer =
    std::is_integral<T>::value && !std::is_same<typename std::remove_cv<T>::type, bool>::value && sizeof(T) <= 8;

template <class T, class N>
__attribute__((always_inline)) constexpr T cast_to(const N& number) {
  if constexpr (is_saturated_integer<T> && std::is_floating_point<N>::value && sizeof(N) <= 8) {
    // nvcc converts to 32 bits and takes the low ones of them.
    using CastBetween =
        typename std::conditional<(sizeof(T) >= 4), typename std::remove_cv<T>::type,
                                  typename std::conditional<std::is_signed<T>::value, int, unsigned>::type>::type;
    return static_cast<T>(cast_nearest<CastBetween, typename std::remove_cv<N>::type>(number));
  } else if constexpr (std::is_class<N>::value) {
    return (T) const_cast<N&>(number);  // whose conversion may not be const
  } else {
    return (T)number;
  }
}

template <class T, class N>
__attribute__((always_inline)) constexpr T operator->*(CastTo<T>, const N& number) {
  return cast_to<T>(number);
}

}  // namespace casts
}  // namespace mxmaca
