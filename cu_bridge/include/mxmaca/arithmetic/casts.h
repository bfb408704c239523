// Casts of floating-point numbers to integers as NVIDIA's hardware has them: out of range they saturate. cucc writes
// `to<int> ->* x` where the text has `(int)x`, so that operands and what binds them stay as they are.
#pragma once

#include <limits>
#include <type_traits>

namespace mxmaca {
namespace casts {

template <class Integer>
struct To {};
template <class Integer>
constexpr To<Integer> to{};

// PTX ISA, cvt.rzi to 32 or 64 bits: NaN gives 0, but the top bit alone where either side has 64.
template <class Integer, class Number>
__attribute__((always_inline)) constexpr Integer nearest(Number number) {
  using Limits = std::numeric_limits<Integer>;
  using Unsigned = typename std::make_unsigned<Integer>::type;
  constexpr bool wide = sizeof(Number) >= 8 || sizeof(Integer) >= 8;
  constexpr Integer for_nan = wide ? static_cast<Integer>(Unsigned{1} << (8 * sizeof(Integer) - 1)) : Integer{0};
  // 2^digits is exact in every type; the first value above the range.
  constexpr Number above = static_cast<Number>(2) * static_cast<Number>(Limits::max() / 2 + 1);
  constexpr Number least = static_cast<Number>(Limits::min());
#if defined(__x86_64__)
  // The processor gives the least integer for whatever does not fit, as GCC does for what is too small a constant.
  if (std::is_signed<Integer>::value && !__builtin_is_constant_evaluated()) {
    const Integer result = number >= above ? Limits::max() : static_cast<Integer>(number);
    return number == number ? result : for_nan;
  }
#endif
  const bool fits = number >= least && number < above;
  const Integer inside = static_cast<Integer>(fits ? number : Number{0});
  // No branches, so that loops keep their vectors. What is no number is neither above the range nor below it.
  const Integer outside = number >= above ? Limits::max() : number < least ? Limits::min() : for_nan;
  return fits ? inside : outside;
}

template <class Integer, class Number>
__attribute__((always_inline)) constexpr Integer cast(const Number& number) {
  if constexpr (std::is_floating_point<Number>::value && sizeof(Number) <= 8) {
    // nvcc converts to 32 bits and takes the low ones of them.
    using Wide =
        typename std::conditional<(sizeof(Integer) >= 4), Integer,
                                  typename std::conditional<std::is_signed<Integer>::value, int, unsigned>::type>::type;
    return static_cast<Integer>(nearest<Wide, typename std::remove_cv<Number>::type>(number));
  } else {
    return (Integer) const_cast<Number&>(number);
  }
}

template <class Integer, class Number>
__attribute__((always_inline)) constexpr Integer operator->*(To<Integer>, const Number& number) {
  return cast<Integer>(number);
}

}  // namespace casts
}  // namespace mxmaca
