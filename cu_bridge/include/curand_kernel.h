// Random numbers in device code: Philox4x32-10, XORWOW, MRG32k3a and Sobol's sequence, with cuRAND's seeds, strides
// and conversions.
// What equals cuRAND bit for bit, and what does not, stands in docs/cu_bridge.md.
#pragma once
#define CURAND_KERNEL_H_

#include <math.h>
#include <cmath>

#include "curand_discrete.h"
#include "curand_philox4x32_x.h"
#include "math_functions.h"
#include "mxmaca/xorwow_jump.h"

#define CURAND_FN static inline __host__ __device__

// ---- Philox ---------------------------------------------------------------------------------------------------------
CURAND_FN void skipahead(unsigned long long n, curandStatePhilox4_32_10_t* state) {
  state->STATE += static_cast<unsigned>(n & 3);
  n >>= 2;
  if (state->STATE > 3) {
    ++n;
    state->STATE -= 4;
  }
  Philox_State_Incr(state, n);
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}
CURAND_FN void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t* state) {
  Philox_State_Incr_hi(state, n);
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}
CURAND_FN void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                           curandStatePhilox4_32_10_t* state) {
  *state = curandStatePhilox4_32_10_t();
  state->key = make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}
CURAND_FN unsigned int curand(curandStatePhilox4_32_10_t* state) {
  const unsigned words[] = {state->output.x, state->output.y, state->output.z, state->output.w};
  const unsigned result = words[state->STATE & 3];
  if (++state->STATE == 4) {
    Philox_State_Incr(state);
    state->output = curand_Philox4x32_10(state->ctr, state->key);
    state->STATE = 0;
  }
  return result;
}
CURAND_FN uint4 curand4(curandStatePhilox4_32_10_t* state) {
  const uint4 old = state->output;
  Philox_State_Incr(state);
  state->output = curand_Philox4x32_10(state->ctr, state->key);
  const uint4 next = state->output;
  switch (state->STATE) {
    case 1: return make_uint4(old.y, old.z, old.w, next.x);
    case 2: return make_uint4(old.z, old.w, next.x, next.y);
    case 3: return make_uint4(old.w, next.x, next.y, next.z);
    default: return old;
  }
}

// ---- XORWOW: G. Marsaglia, "Xorshift RNGs" (2003) -------------------------------------------------------------------
typedef struct curandStateXORWOW {
  unsigned int d, v[5];
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
} curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;

CURAND_FN unsigned int curand(curandStateXORWOW_t* state) {
  mxmaca::xorwow_step(state->v);
  state->d += 362437;
  return state->v[4] + state->d;
}
CURAND_FN void skipahead(unsigned long long n, curandStateXORWOW_t* state) {
  mxmaca::xorwow_jump(state->v, mxmaca::XorwowJumps::steps(), n);
  state->d += 362437U * static_cast<unsigned>(n);
}
// A subsequence has 2^67 numbers; the Weyl sequence d comes round in them.
CURAND_FN void skipahead_sequence(unsigned long long n, curandStateXORWOW_t* state) {
  mxmaca::xorwow_jump(state->v, mxmaca::XorwowJumps::sequences(), n);
}
CURAND_FN void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                           curandStateXORWOW_t* state) {
  *state = curandStateXORWOW_t();
  const unsigned low = 1099087573U * (static_cast<unsigned>(seed) ^ 0xaad26b49U);
  const unsigned high = 2591861531U * (static_cast<unsigned>(seed >> 32) ^ 0xf7dcefddU);
  state->d = 6615241U + low + high;
  state->v[0] = 123456789U + low;
  state->v[1] = 362436069U ^ low;
  state->v[2] = 521288629U + high;
  state->v[3] = 88675123U ^ high;
  state->v[4] = 5783321U + low;
  skipahead_sequence(subsequence, state);
  skipahead(offset, state);
}

// ---- MRG32k3a: P. L'Ecuyer, "Good parameters and implementations for combined multiple recursive generators" (1999) -
typedef struct curandStateMRG32k3a {
  unsigned int s1[3], s2[3];
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
} curandStateMRG32k3a_t;

namespace mxmaca {

constexpr uint64_t mrg_modulus[2] = {4294967087ULL, 4294944443ULL};

// One of the two recurrences as a matrix, and its powers by doubling.
struct MrgMatrix {
  uint64_t m[3][3];
};
inline MrgMatrix multiply(const MrgMatrix& a, const MrgMatrix& b, uint64_t modulus) {
  MrgMatrix c{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) c.m[i][j] = (c.m[i][j] + a.m[i][k] * b.m[k][j] % modulus) % modulus;
    }
  }
  return c;
}
// The matrices of 2^(first + k) steps, k = 0..63, for each of the recurrences.
struct MrgJumps {
  MrgMatrix power[2][64];
  explicit MrgJumps(int first) {
    MrgMatrix step[2] = {{{{0, 1, 0}, {0, 0, 1}, {mrg_modulus[0] - 810728, 1403580, 0}}},
                         {{{0, 1, 0}, {0, 0, 1}, {mrg_modulus[1] - 1370589, 0, 527612}}}};
    for (int r = 0; r < 2; ++r) {
      for (int i = 0; i < first; ++i) step[r] = multiply(step[r], step[r], mrg_modulus[r]);
      for (int k = 0; k < 64; ++k) {
        power[r][k] = step[r];
        step[r] = multiply(step[r], step[r], mrg_modulus[r]);
      }
    }
  }
  static const MrgJumps& steps() {
    static const MrgJumps jumps(0);
    return jumps;
  }
  static const MrgJumps& subsequences() {
    static const MrgJumps jumps(76);
    return jumps;
  }
  static const MrgJumps& sequences() {
    static const MrgJumps jumps(127);
    return jumps;
  }
};
inline void mrg_jump(unsigned* state, const MrgMatrix* powers, uint64_t modulus, unsigned long long n) {
  for (; n != 0; n >>= 1, ++powers) {
    if ((n & 1) == 0) continue;
    uint64_t next[3] = {};
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) next[i] = (next[i] + powers->m[i][j] * state[j] % modulus) % modulus;
    }
    for (int i = 0; i < 3; ++i) state[i] = static_cast<unsigned>(next[i]);
  }
}
inline void mrg_jump(curandStateMRG32k3a* state, const MrgJumps& jumps, unsigned long long n) {
  mrg_jump(state->s1, jumps.power[0], mrg_modulus[0], n);
  mrg_jump(state->s2, jumps.power[1], mrg_modulus[1], n);
}

}  // namespace mxmaca

// In 1 .. 4294967087.
CURAND_FN double curand_MRG32k3a(curandStateMRG32k3a_t* state) {
  const uint64_t m1 = mxmaca::mrg_modulus[0], m2 = mxmaca::mrg_modulus[1];
  const uint64_t p1 = (1403580ULL * state->s1[1] + 810728ULL * (m1 - state->s1[0])) % m1;
  const uint64_t p2 = (527612ULL * state->s2[2] + 1370589ULL * (m2 - state->s2[0])) % m2;
  state->s1[0] = state->s1[1];
  state->s1[1] = state->s1[2];
  state->s1[2] = static_cast<unsigned>(p1);
  state->s2[0] = state->s2[1];
  state->s2[1] = state->s2[2];
  state->s2[2] = static_cast<unsigned>(p2);
  return static_cast<double>(p1 <= p2 ? p1 + m1 - p2 : p1 - p2);
}
CURAND_FN unsigned int curand(curandStateMRG32k3a_t* state) {
  return static_cast<unsigned>(curand_MRG32k3a(state) * 1.000000048662);
}
CURAND_FN void skipahead(unsigned long long n, curandStateMRG32k3a_t* state) {
  mxmaca::mrg_jump(state, mxmaca::MrgJumps::steps(), n);
}
CURAND_FN void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a_t* state) {
  mxmaca::mrg_jump(state, mxmaca::MrgJumps::subsequences(), n);
}
CURAND_FN void skipahead_sequence(unsigned long long n, curandStateMRG32k3a_t* state) {
  mxmaca::mrg_jump(state, mxmaca::MrgJumps::sequences(), n);
}
CURAND_FN void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                           curandStateMRG32k3a_t* state) {
  *state = curandStateMRG32k3a_t();
  for (int i = 0; i < 3; ++i) state->s1[i] = state->s2[i] = 12345;
  if (seed != 0) {
    const uint64_t m1 = mxmaca::mrg_modulus[0], m2 = mxmaca::mrg_modulus[1];
    const uint64_t x1 = static_cast<uint32_t>(seed) ^ 0x55555555U;
    const uint64_t x2 = static_cast<uint32_t>(seed >> 32) ^ 0xAAAAAAAAU;
    state->s1[0] = static_cast<unsigned>(x1 * state->s1[0] % m1);
    state->s1[1] = static_cast<unsigned>(x2 * state->s1[1] % m1);
    state->s1[2] = static_cast<unsigned>(x1 * state->s1[2] % m1);
    state->s2[0] = static_cast<unsigned>(x2 * state->s2[0] % m2);
    state->s2[1] = static_cast<unsigned>(x1 * state->s2[1] % m2);
    state->s2[2] = static_cast<unsigned>(x2 * state->s2[2] % m2);
  }
  skipahead_subsequence(subsequence, state);
  skipahead(offset, state);
}

// ---- From words to numbers ------------------------------------------------------------------------------------------
namespace mxmaca {

// (0, 1], from one word.
MXMACA_HD float uniform_of(unsigned x) { return static_cast<float>(x) * 0x1p-32F + 0x1p-33F; }
MXMACA_HD double uniform_double_of(unsigned x) { return x * 0x1p-32 + 0x1p-32; }
// (0, 1], from two words, 53 bits.
MXMACA_HD double uniform_double_of(unsigned x, unsigned y) {
  return static_cast<double>(static_cast<uint64_t>(x) ^ static_cast<uint64_t>(y) << 21) * 0x1p-53 + 0x1p-54;
}
// The Box-Muller transform: sine first.
MXMACA_HD float2 normals_of(unsigned x, unsigned y) {
  constexpr float turn = 0x1p-32F * 6.2831855F;
  const float u = uniform_of(x), v = static_cast<float>(y) * turn + turn / 2;
  const float radius = ::sqrtf(-2.0F * ::logf(u));
  return make_float2(::sinf(v) * radius, ::cosf(v) * radius);
}
MXMACA_HD double2 normals_of(unsigned x0, unsigned x1, unsigned y0, unsigned y1) {
  const double u = uniform_double_of(x0, x1);
  const double v = static_cast<double>(static_cast<uint64_t>(y0) ^ static_cast<uint64_t>(y1) << 21) * 0x1p-52 + 0x1p-53;
  const double radius = ::sqrt(-2.0 * ::log(u));
  double sine, cosine;
  sincospi_double(v, sine, cosine);
  return make_double2(sine * radius, cosine * radius);
}

// Poisson numbers. Small means: products of uniforms (Knuth). Others: transformed rejection, W. Hoermann, "The
// transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
template <class Uniform>
MXMACA_HD unsigned poisson_of(double lambda, Uniform uniform) {
  if (!(lambda > 0)) return 0;
  if (lambda < 10) {
    const double limit = ::exp(-lambda);
    double product = uniform();
    unsigned count = 0;
    for (; product > limit; ++count) product *= uniform();
    return count;
  }
  const double b = 0.931 + 2.53 * ::sqrt(lambda), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = uniform() - 0.5, v = uniform();
    const double us = 0.5 - ::fabs(u);
    const double k = ::floor((2 * a / us + b) * u + lambda + 0.43);
    if (us >= 0.07 && v <= v_r) return static_cast<unsigned>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (::log(v) + ::log(inverse_alpha) - ::log(a / (us * us) + b) <= k * ::log(lambda) - lambda - ::lgamma(k + 1)) {
      return static_cast<unsigned>(k);
    }
  }
}

}  // namespace mxmaca

CURAND_FN float curand_uniform(curandStatePhilox4_32_10_t* state) { return mxmaca::uniform_of(curand(state)); }
CURAND_FN float curand_uniform(curandStateXORWOW_t* state) { return mxmaca::uniform_of(curand(state)); }
CURAND_FN float curand_uniform(curandStateMRG32k3a_t* state) {
  return static_cast<float>(curand_MRG32k3a(state) * 2.328306549295728e-10);
}
CURAND_FN double curand_uniform_double(curandStatePhilox4_32_10_t* state) {
  return mxmaca::uniform_double_of(curand(state));
}
CURAND_FN double curand_uniform_double(curandStateXORWOW_t* state) {
  const unsigned x = curand(state), y = curand(state);
  return mxmaca::uniform_double_of(x, y);
}
CURAND_FN double curand_uniform_double(curandStateMRG32k3a_t* state) {
  return curand_MRG32k3a(state) * 2.328306549295728e-10;
}
CURAND_FN float4 curand_uniform4(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  return make_float4(mxmaca::uniform_of(x.x), mxmaca::uniform_of(x.y), mxmaca::uniform_of(x.z),
                     mxmaca::uniform_of(x.w));
}
CURAND_FN double2 curand_uniform2_double(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  return make_double2(mxmaca::uniform_double_of(x.x, x.y), mxmaca::uniform_double_of(x.z, x.w));
}
CURAND_FN double4 curand_uniform4_double(curandStatePhilox4_32_10_t* state) {
  const double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
  return make_double4(a.x, a.y, b.x, b.y);
}

// ---- Normal ---------------------------------------------------------------------------------------------------------
#define MXMACA_WORDS(State)                                \
  CURAND_FN float2 curand_normal2(State* state) {          \
    const unsigned x = curand(state), y = curand(state);   \
    return mxmaca::normals_of(x, y);                       \
  }                                                        \
  CURAND_FN double2 curand_normal2_double(State* state) {  \
    const unsigned x0 = curand(state), x1 = curand(state); \
    const unsigned y0 = curand(state), y1 = curand(state); \
    return mxmaca::normals_of(x0, x1, y0, y1);             \
  }
MXMACA_WORDS(curandStatePhilox4_32_10_t)
MXMACA_WORDS(curandStateXORWOW_t)
#undef MXMACA_WORDS
CURAND_FN float2 curand_normal2(curandStateMRG32k3a_t* state) {
  const float x = curand_uniform(state), y = curand_uniform(state) * 6.2831855F;
  const float radius = ::sqrtf(-2.0F * ::logf(x));
  return make_float2(::sinf(y) * radius, ::cosf(y) * radius);
}
CURAND_FN double2 curand_normal2_double(curandStateMRG32k3a_t* state) {
  const double x = curand_uniform_double(state), y = curand_uniform_double(state) * 2;
  const double radius = ::sqrt(-2.0 * ::log(x));
  double sine, cosine;
  mxmaca::sincospi_double(y, sine, cosine);
  return make_double2(sine * radius, cosine * radius);
}

#define MXMACA_NORMAL(State)                                                              \
  CURAND_FN float curand_normal(State* state) {                                           \
    if (state->boxmuller_flag != 0) {                                                     \
      state->boxmuller_flag = 0;                                                          \
      return state->boxmuller_extra;                                                      \
    }                                                                                     \
    const float2 both = curand_normal2(state);                                            \
    state->boxmuller_extra = both.y;                                                      \
    state->boxmuller_flag = 1;                                                            \
    return both.x;                                                                        \
  }                                                                                       \
  CURAND_FN double curand_normal_double(State* state) {                                   \
    if (state->boxmuller_flag_double != 0) {                                              \
      state->boxmuller_flag_double = 0;                                                   \
      return state->boxmuller_extra_double;                                               \
    }                                                                                     \
    const double2 both = curand_normal2_double(state);                                    \
    state->boxmuller_extra_double = both.y;                                               \
    state->boxmuller_flag_double = 1;                                                     \
    return both.x;                                                                        \
  }                                                                                       \
  CURAND_FN float curand_log_normal(State* state, float mean, float stddev) {             \
    return ::expf(mean + stddev * curand_normal(state));                                  \
  }                                                                                       \
  CURAND_FN double curand_log_normal_double(State* state, double mean, double stddev) {   \
    return ::exp(mean + stddev * curand_normal_double(state));                            \
  }                                                                                       \
  CURAND_FN float2 curand_log_normal2(State* state, float mean, float stddev) {           \
    const float2 n = curand_normal2(state);                                               \
    return make_float2(::expf(mean + stddev * n.x), ::expf(mean + stddev * n.y));         \
  }                                                                                       \
  CURAND_FN double2 curand_log_normal2_double(State* state, double mean, double stddev) { \
    const double2 n = curand_normal2_double(state);                                       \
    return make_double2(::exp(mean + stddev * n.x), ::exp(mean + stddev * n.y));          \
  }                                                                                       \
  CURAND_FN unsigned int curand_poisson(State* state, double lambda) {                    \
    return mxmaca::poisson_of(lambda, [state] { return curand_uniform_double(state); });  \
  }
MXMACA_NORMAL(curandStatePhilox4_32_10_t)
MXMACA_NORMAL(curandStateXORWOW_t)
MXMACA_NORMAL(curandStateMRG32k3a_t)
#undef MXMACA_NORMAL

CURAND_FN float4 curand_normal4(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  const float2 a = mxmaca::normals_of(x.x, x.y), b = mxmaca::normals_of(x.z, x.w);
  return make_float4(a.x, a.y, b.x, b.y);
}
CURAND_FN double4 curand_normal4_double(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state), y = curand4(state);
  const double2 a = mxmaca::normals_of(x.x, x.y, x.z, x.w), b = mxmaca::normals_of(y.x, y.y, y.z, y.w);
  return make_double4(a.x, a.y, b.x, b.y);
}
CURAND_FN float4 curand_log_normal4(curandStatePhilox4_32_10_t* state, float mean, float stddev) {
  const float4 n = curand_normal4(state);
  return make_float4(::expf(mean + stddev * n.x), ::expf(mean + stddev * n.y), ::expf(mean + stddev * n.z),
                     ::expf(mean + stddev * n.w));
}
CURAND_FN uint4 curand_poisson4(curandStatePhilox4_32_10_t* state, double lambda) {
  const unsigned a = curand_poisson(state, lambda), b = curand_poisson(state, lambda);
  const unsigned c = curand_poisson(state, lambda), d = curand_poisson(state, lambda);
  return make_uint4(a, b, c, d);
}
#include "mxmaca/curand_sobol.h"
#undef CURAND_FN
