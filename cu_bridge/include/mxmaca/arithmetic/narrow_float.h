// Encoding and decoding of binary floating-point formats narrower than float: half, bfloat16, the two FP8 formats.
#pragma once

#include <stdint.h>
#include <string.h>

#include "../../host_defines.h"

#if defined(__F16C__) && !defined(MXMACA_NO_F16C)
#include <immintrin.h>
#define MXMACA_F16C 1
#endif

#define MXMACA_HD inline __host__ __device__

namespace mxmaca {

enum class Rounding { nearest, zero, up, down };

template <class To, class From>
MXMACA_HD To bit_cast(From value) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast between sizes");
  To result;
  memcpy(&result, &value, sizeof(To));
  return result;
}

// A format of 1 sign bit, `Exponent` exponent bits and `Mantissa` stored mantissa bits, IEEE-like.
template <int Exponent, int Mantissa>
struct Format {
  static constexpr int exponent_bits = Exponent;
  static constexpr int mantissa_bits = Mantissa;
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr uint32_t infinity = ((1U << Exponent) - 1) << Mantissa;
  static constexpr uint32_t sign = 1U << (Exponent + Mantissa);
};
using HalfFormat = Format<5, 10>;
using BFloat16Format = Format<8, 7>;

// Whether a magnitude whose dropped bits are `rest` of `unit` goes up, in the given mode.
MXMACA_HD bool rounds_up(uint64_t rest, uint64_t unit, bool odd, bool negative, Rounding mode) {
  switch (mode) {
    case Rounding::nearest: return rest > unit / 2 || (rest == unit / 2 && odd);
    case Rounding::up: return rest != 0 && !negative;
    case Rounding::down: return rest != 0 && negative;
    case Rounding::zero: break;
  }
  return false;
}

// The bits (without sign) of a finite magnitude in format F, rounded once. May exceed F's largest finite value: then
// the result is at or above F::infinity, and `overflow` decides.
template <class F>
MXMACA_HD uint32_t encode_magnitude(double magnitude, bool negative, Rounding mode) {
  const uint64_t bits = bit_cast<uint64_t>(magnitude);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  uint64_t significand = bits & 0xfffffffffffffULL;
  if (exponent == -1023) {
    if (significand == 0) return 0;
    exponent = -1022;
  } else {
    significand |= 1ULL << 52;
  }
  constexpr int lowest = 1 - F::bias;
  // Overflow all the same, also where the exponent behind the bias is one of numbers and not of infinity (E4M3).
  if (exponent > F::bias + 2) exponent = F::bias + 2;
  int shift = 52 - F::mantissa_bits;
  uint32_t base = 0;
  if (exponent >= lowest) {
    base = static_cast<uint32_t>(exponent - lowest) << F::mantissa_bits;
  } else {
    shift += lowest - exponent;
  }
  if (shift > 60) {
    // Far below half of the smallest subnormal number.
    return rounds_up(1, 4, false, negative, mode) ? 1 : 0;
  }
  const uint64_t unit = 1ULL << shift;
  const uint64_t kept = significand >> shift;
  const bool up = rounds_up(significand & (unit - 1), unit, (kept & 1) != 0, negative, mode);
  return base + static_cast<uint32_t>(kept) + (up ? 1 : 0);
}

// To an IEEE-like format with infinities. A NaN becomes the canonical one, all ones without sign, as on the hardware.
template <class F>
MXMACA_HD uint16_t encode(double value, Rounding mode = Rounding::nearest) {
  if (value != value) return static_cast<uint16_t>(F::sign - 1);
  const bool negative = (bit_cast<uint64_t>(value) >> 63) != 0;
  const double magnitude = negative ? -value : value;
  const uint32_t sign = negative ? F::sign : 0;
  uint32_t result = F::infinity;
  if (magnitude <= 1.7976931348623157e308) {
    result = encode_magnitude<F>(magnitude, negative, mode);
    if (result >= F::infinity) {
      const bool toward_zero =
          mode == Rounding::zero || (mode == Rounding::up && negative) || (mode == Rounding::down && !negative);
      result = toward_zero ? F::infinity - 1 : F::infinity;
    }
  }
  return static_cast<uint16_t>(sign | result);
}

// To a format that has numbers alone, of at most 8 bits. What is too large becomes the largest of its sign, NaN the
// largest.
template <class F>
MXMACA_HD uint8_t encode_finite(double value, Rounding mode) {
  constexpr uint32_t largest = F::sign - 1;
  if (value != value) return static_cast<uint8_t>(largest);
  const bool negative = (bit_cast<uint64_t>(value) >> 63) != 0;
  const double magnitude = negative ? -value : value;
  uint32_t result = magnitude <= 1.7976931348623157e308 ? encode_magnitude<F>(magnitude, negative, mode) : largest;
  if (result > largest) result = largest;
  return static_cast<uint8_t>(result | (negative ? F::sign : 0));
}
template <class F>
MXMACA_HD float decode_finite(uint32_t code) {
  const uint32_t magnitude = code & (F::sign - 1);
  constexpr int shift = 23 - F::mantissa_bits;
  float value;
  if (magnitude >> F::mantissa_bits == 0) {
    // A multiple of the smallest subnormal number.
    constexpr uint32_t smallest = static_cast<uint32_t>(128 - F::bias - F::mantissa_bits) << 23;
    value = static_cast<float>(magnitude) * bit_cast<float>(smallest);
  } else {
    value = bit_cast<float>((magnitude << shift) + (static_cast<uint32_t>(127 - F::bias) << 23));
  }
  return (code & F::sign) != 0 ? -value : value;
}

// The exact double value nearest in "round to odd" of hi + lo: a later rounding to at most 51 bits is then single.
MXMACA_HD double to_odd(double hi, double lo) {
  if (lo == 0 || lo != lo || hi != hi) return hi;
  const uint64_t bits = bit_cast<uint64_t>(hi);
  if ((bits & 1) != 0) return hi;
  const bool away = (lo > 0) == (hi > 0);
  return bit_cast<double>(away ? bits + 1 : bits - 1);
}

// a * b + c for operands whose product is exact in double (half, bfloat16, float), ready for one rounding.
MXMACA_HD double fused_odd(double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  if (!(sum - sum == 0)) return sum;  // infinite or NaN
  const double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);
  return to_odd(sum, error);
}

// An integer as a double that rounds to at most 51 bits as the integer itself would.
MXMACA_HD double integer_odd(uint64_t magnitude) {
  if (magnitude >> 53 == 0) return static_cast<double>(magnitude);
  const uint64_t sticky = (magnitude & 0xfff) != 0 ? 0x1000 : 0;
  return static_cast<double>((magnitude & ~0xfffULL) | sticky);
}
MXMACA_HD double integer_odd(int64_t value) {
  return value < 0 ? -integer_odd(0 - static_cast<uint64_t>(value)) : integer_odd(static_cast<uint64_t>(value));
}

// ---- half -----------------------------------------------------------------------------------------------------------
MXMACA_HD uint16_t half_bits(float value) {
#ifdef MXMACA_F16C
  if (value != value) return 0x7fff;
  return static_cast<uint16_t>(_cvtss_sh(value, 0));
#else
  uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t sign = bits & 0x80000000U;
  bits ^= sign;
  if (bits > 0x7f800000U) return 0x7fff;
  uint32_t result;
  if (bits >= 0x47800000U) {  // 2^16 and up
    result = 0x7c00;
  } else if (bits < 0x38800000U) {  // below 2^-14: the addition in float rounds at the subnormal's last place
    result = bit_cast<uint32_t>(bit_cast<float>(bits) + 0.5F) - 0x3f000000U;
  } else {
    result = (bits - 0x38000000U + 0xfff + ((bits >> 13) & 1)) >> 13;
  }
  return static_cast<uint16_t>(result | (sign >> 16));
#endif
}

MXMACA_HD float half_value(uint16_t half) {
#ifdef MXMACA_F16C
  return _cvtsh_ss(half);
#else
  const uint32_t magnitude = half & 0x7fffU;
  uint32_t bits = magnitude << 13;
  if (magnitude >= 0x7c00) {
    bits += 0x70000000U;
  } else if (magnitude >= 0x400) {
    bits += 0x38000000U;
  } else {
    bits = bit_cast<uint32_t>(static_cast<float>(magnitude) * 5.9604644775390625e-8F);
  }
  return bit_cast<float>(bits | static_cast<uint32_t>(half & 0x8000) << 16);
#endif
}

// ---- bfloat16 -------------------------------------------------------------------------------------------------------
MXMACA_HD uint16_t bfloat16_bits(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

MXMACA_HD float bfloat16_value(uint16_t bfloat16) { return bit_cast<float>(static_cast<uint32_t>(bfloat16) << 16); }

}  // namespace mxmaca
