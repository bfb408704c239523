// Floating point to integer as the hardware converts: four rounding modes, out of range saturates.
#pragma once

#include <math.h>
#include <limits>
#include <type_traits>

#include "narrow_float.h"

namespace mxmaca {

MXMACA_HD float rounded(float value, Rounding mode) {
  switch (mode) {
    case Rounding::nearest: return ::nearbyintf(value);
    case Rounding::up: return ::ceilf(value);
    case Rounding::down: return ::floorf(value);
    case Rounding::zero: break;
  }
  return ::truncf(value);
}
MXMACA_HD double rounded(double value, Rounding mode) {
  switch (mode) {
    case Rounding::nearest: return ::nearbyint(value);
    case Rounding::up: return ::ceil(value);
    case Rounding::down: return ::floor(value);
    case Rounding::zero: break;
  }
  return ::trunc(value);
}

// PTX ISA, cvt: NaN gives 0, but the top bit alone where the source is double or the result has 64 bits.
template <class Integer, class Float>
MXMACA_HD Integer to_integer(Float value, Rounding mode) {
  using Limits = std::numeric_limits<Integer>;
  if (value != value) {
    if (sizeof(Float) < 8 && sizeof(Integer) < 8) return 0;
    using Unsigned = typename std::make_unsigned<Integer>::type;
    return static_cast<Integer>(static_cast<Unsigned>(Unsigned{1} << (8 * sizeof(Integer) - 1)));
  }
  const Float whole = mode == Rounding::zero ? value : rounded(value, mode);
  // 2^digits is exact in every type; the first value above the range.
  const Float above = static_cast<Float>(2) * static_cast<Float>(Limits::max() / 2 + 1);
  if (whole >= above) return Limits::max();
  if (whole < static_cast<Float>(Limits::min())) return Limits::min();
  return static_cast<Integer>(whole);
}

}  // namespace mxmaca
