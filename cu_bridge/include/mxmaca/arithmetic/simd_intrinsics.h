// Two or four small integers in a 32-bit word, and comparisons with limits (min, max, three operands, relu).
#pragma once

#include "../../vector_types.h"
#include "narrow_float.h"

namespace mxmaca {

// Applies operation to each of the 32 / Bits lanes, seen as `Lane`, and joins what fits into a lane of the results.
template <class Lane, class Operation>
MXMACA_HD unsigned lanes(unsigned a, unsigned b, Operation operation) {
  constexpr int bits = 8 * sizeof(Lane);
  constexpr unsigned mask = (1U << bits) - 1;
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += bits) {
    const int x = static_cast<Lane>(a >> shift), y = static_cast<Lane>(b >> shift);
    result |= (static_cast<unsigned>(operation(x, y)) & mask) << shift;
  }
  return result;
}
template <class Lane>
MXMACA_HD int clamped(int value) {
  constexpr int bits = 8 * sizeof(Lane);
  constexpr int low = static_cast<Lane>(-1) < 0 ? -(1 << (bits - 1)) : 0;
  constexpr int high = static_cast<Lane>(-1) < 0 ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  return value < low ? low : value > high ? high : value;
}
MXMACA_HD int distance(int x, int y) { return x > y ? x - y : y - x; }

}  // namespace mxmaca

#define MXMACA_LANES1(name, lane, expression)                                                  \
  MXMACA_HD unsigned name(unsigned a) {                                                        \
    return mxmaca::lanes<lane>(a, 0, [](int x, int) { return static_cast<int>(expression); }); \
  }
#define MXMACA_LANES2(name, lane, expression)                                                    \
  MXMACA_HD unsigned name(unsigned a, unsigned b) {                                              \
    return mxmaca::lanes<lane>(a, b, [](int x, int y) { return static_cast<int>(expression); }); \
  }
#define MXMACA_BOTH_COMPARE(n, s, u, name, lane, op)    \
  MXMACA_LANES2(__vcmp##name##n, lane, x op y ? -1 : 0) \
  MXMACA_LANES2(__vset##name##n, lane, x op y ? 1 : 0)
#define MXMACA_SIMD(n, s, u)                                                                          \
  MXMACA_LANES1(__vabs##n, s, x < 0 ? -x : x)                                                         \
  MXMACA_LANES1(__vabsss##n, s, mxmaca::clamped<s>(x < 0 ? -x : x))                                   \
  MXMACA_LANES1(__vneg##n, s, -x)                                                                     \
  MXMACA_LANES1(__vnegss##n, s, mxmaca::clamped<s>(-x))                                               \
  MXMACA_LANES2(__vadd##n, s, x + y)                                                                  \
  MXMACA_LANES2(__vaddss##n, s, mxmaca::clamped<s>(x + y))                                            \
  MXMACA_LANES2(__vaddus##n, u, mxmaca::clamped<u>(x + y))                                            \
  MXMACA_LANES2(__vsub##n, s, x - y)                                                                  \
  MXMACA_LANES2(__vsubss##n, s, mxmaca::clamped<s>(x - y))                                            \
  MXMACA_LANES2(__vsubus##n, u, mxmaca::clamped<u>(x - y))                                            \
  MXMACA_LANES2(__vabsdiffs##n, s, mxmaca::distance(x, y))                                            \
  MXMACA_LANES2(__vabsdiffu##n, u, mxmaca::distance(x, y))                                            \
  /* rounded up, away from zero where negative */                                                     \
  MXMACA_LANES2(__vavgs##n, s, (x + y + (x + y >= 0)) >> 1)                                           \
  MXMACA_LANES2(__vavgu##n, u, (x + y + 1) >> 1)                                                      \
  MXMACA_LANES2(__vhaddu##n, u, (x + y) >> 1)                                                         \
  MXMACA_LANES2(__vmaxs##n, s, x > y ? x : y)                                                         \
  MXMACA_LANES2(__vmaxu##n, u, x > y ? x : y)                                                         \
  MXMACA_LANES2(__vmins##n, s, x < y ? x : y)                                                         \
  MXMACA_LANES2(__vminu##n, u, x < y ? x : y)                                                         \
  MXMACA_BOTH_COMPARE(n, s, u, eq, s, ==)                                                             \
  MXMACA_BOTH_COMPARE(n, s, u, ne, s, !=)                                                             \
  MXMACA_BOTH_COMPARE(n, s, u, gts, s, >)                                                             \
  MXMACA_BOTH_COMPARE(n, s, u, gtu, u, >)                                                             \
  MXMACA_BOTH_COMPARE(n, s, u, ges, s, >=)                                                            \
  MXMACA_BOTH_COMPARE(n, s, u, geu, u, >=)                                                            \
  MXMACA_BOTH_COMPARE(n, s, u, lts, s, <)                                                             \
  MXMACA_BOTH_COMPARE(n, s, u, ltu, u, <)                                                             \
  MXMACA_BOTH_COMPARE(n, s, u, les, s, <=)                                                            \
  MXMACA_BOTH_COMPARE(n, s, u, leu, u, <=)                                                            \
  MXMACA_HD unsigned __vsads##n(unsigned a, unsigned b) {                                             \
    unsigned sum = 0;                                                                                 \
    for (int i = 0; i < 32; i += 8 * static_cast<int>(sizeof(s))) {                                   \
      sum += static_cast<unsigned>(mxmaca::distance(static_cast<s>(a >> i), static_cast<s>(b >> i))); \
    }                                                                                                 \
    return sum;                                                                                       \
  }                                                                                                   \
  MXMACA_HD unsigned __vsadu##n(unsigned a, unsigned b) {                                             \
    unsigned sum = 0;                                                                                 \
    for (int i = 0; i < 32; i += 8 * static_cast<int>(sizeof(u))) {                                   \
      sum += static_cast<unsigned>(mxmaca::distance(static_cast<u>(a >> i), static_cast<u>(b >> i))); \
    }                                                                                                 \
    return sum;                                                                                       \
  }
MXMACA_SIMD(2, int16_t, uint16_t)
MXMACA_SIMD(4, int8_t, uint8_t)
#undef MXMACA_SIMD
#undef MXMACA_BOTH_COMPARE

// Comparisons of two and three operands; _relu: not below 0.
MXMACA_HD int __vimax3_s32(int x, int y, int z) { return x > y ? (x > z ? x : z) : (y > z ? y : z); }
MXMACA_HD int __vimin3_s32(int x, int y, int z) { return x < y ? (x < z ? x : z) : (y < z ? y : z); }
MXMACA_HD unsigned __vimax3_u32(unsigned x, unsigned y, unsigned z) {
  return x > y ? (x > z ? x : z) : (y > z ? y : z);
}
MXMACA_HD unsigned __vimin3_u32(unsigned x, unsigned y, unsigned z) {
  return x < y ? (x < z ? x : z) : (y < z ? y : z);
}
MXMACA_HD int __vimax_s32_relu(int x, int y) { return __vimax3_s32(x, y, 0); }
MXMACA_HD int __vimin_s32_relu(int x, int y) {
  const int smaller = x < y ? x : y;
  return smaller > 0 ? smaller : 0;
}
MXMACA_HD int __vimax3_s32_relu(int x, int y, int z) {
  const int largest = __vimax3_s32(x, y, z);
  return largest > 0 ? largest : 0;
}
MXMACA_HD int __vimin3_s32_relu(int x, int y, int z) {
  const int smallest = __vimin3_s32(x, y, z);
  return smallest > 0 ? smallest : 0;
}
MXMACA_HD int __viaddmax_s32(int x, int y, int z) {
  const int sum = static_cast<int>(static_cast<unsigned>(x) + static_cast<unsigned>(y));
  return sum > z ? sum : z;
}
MXMACA_HD int __viaddmin_s32(int x, int y, int z) {
  const int sum = static_cast<int>(static_cast<unsigned>(x) + static_cast<unsigned>(y));
  return sum < z ? sum : z;
}
#undef MXMACA_LANES1
#undef MXMACA_LANES2
