// Jumps of the xorshift part of XORWOW. Its step is linear over GF(2) on 160 bits, so n steps are the polynomial
// x^n modulo the step's characteristic polynomial, applied to the state (H. Haramoto et al., "Efficient jump ahead for
// F2-linear random number generators", 2008).
#pragma once

#include <stdint.h>

#include "arithmetic/narrow_float.h"

namespace mxmaca {

MXMACA_HD void xorwow_step(unsigned* v) {
  const unsigned t = v[0] ^ v[0] >> 2;
  v[0] = v[1];
  v[1] = v[2];
  v[2] = v[3];
  v[3] = v[4];
  v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
}

// A polynomial over GF(2) of degree below 160: coefficient i is bit i % 64 of word i / 64.
struct XorwowPolynomial {
  uint64_t w[3];
};

MXMACA_HD XorwowPolynomial times(const XorwowPolynomial& a, const XorwowPolynomial& b) {
  // The characteristic polynomial without its leading x^160, found by Berlekamp and Massey's algorithm.
  constexpr uint64_t p0 = 0x0861003000060001ULL, p1 = 0x0f3c003500062121ULL, p2 = 0xf0eULL;
  XorwowPolynomial r = {{0, 0, 0}};
  for (int i = 159; i >= 0; --i) {
    const uint64_t over = 0 - (r.w[2] >> 31 & 1);
    r.w[2] = ((r.w[2] << 1 | r.w[1] >> 63) & 0xffffffffULL) ^ (over & p2);
    r.w[1] = (r.w[1] << 1 | r.w[0] >> 63) ^ (over & p1);
    r.w[0] = r.w[0] << 1 ^ (over & p0);
    const uint64_t add = 0 - (b.w[i / 64] >> (i % 64) & 1);
    for (int k = 0; k < 3; ++k) r.w[k] ^= add & a.w[k];
  }
  return r;
}

// Jumps by d * 16^window * unit steps, for each digit d of a 64-bit number in base 16.
struct XorwowJumps {
  XorwowPolynomial digit[16][16];
  explicit XorwowJumps(int unit_exponent) {
    XorwowPolynomial one = {{1, 0, 0}}, unit = {{2, 0, 0}};
    for (int i = 0; i < unit_exponent; ++i) unit = times(unit, unit);
    for (auto& window : digit) {
      window[0] = one;
      for (int d = 1; d < 16; ++d) window[d] = times(window[d - 1], unit);
      unit = times(window[15], unit);
    }
  }
  static const XorwowJumps& steps() {
    static const XorwowJumps jumps(0);
    return jumps;
  }
  static const XorwowJumps& sequences() {
    static const XorwowJumps jumps(67);
    return jumps;
  }
};

// The polynomial of n units. Neighbouring threads ask for neighbouring numbers: what the digits above the last one give
// is kept.
inline XorwowPolynomial xorwow_polynomial(const XorwowJumps& jumps, unsigned long long n) {
  struct Upper {
    const XorwowJumps* jumps;
    unsigned long long digits;
    XorwowPolynomial product;
  };
  static thread_local Upper kept = {nullptr, 0, {{1, 0, 0}}};
  const unsigned long long digits = n >> 4;
  if (kept.jumps != &jumps || kept.digits != digits) {
    XorwowPolynomial product = {{1, 0, 0}};
    for (unsigned long long rest = digits, window = 1; rest != 0; ++window, rest >>= 4) {
      if ((rest & 15) != 0) product = times(product, jumps.digit[window][rest & 15]);
    }
    kept = {&jumps, digits, product};
  }
  if (digits == 0) return jumps.digit[0][n & 15];
  return (n & 15) == 0 ? kept.product : times(kept.product, jumps.digit[0][n & 15]);
}

inline void xorwow_jump(unsigned* v, const XorwowJumps& jumps, unsigned long long n) {
  if (n == 0) return;
  const XorwowPolynomial whole = xorwow_polynomial(jumps, n);
  unsigned result[5] = {};
  for (int i = 159; i >= 0; --i) {
    xorwow_step(result);
    const unsigned add = 0 - static_cast<unsigned>(whole.w[i / 64] >> (i % 64) & 1);
    for (int k = 0; k < 5; ++k) result[k] ^= add & v[k];
  }
  for (int k = 0; k < 5; ++k) v[k] = result[k];
}

}  // namespace mxmaca
