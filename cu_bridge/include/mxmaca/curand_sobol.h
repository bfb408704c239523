// Sobol's quasi-random sequence in device code, and numbers of discrete distributions from any generator. A part of
// curand_kernel.h, which defines CURAND_FN.
#pragma once

// The order of points is that of the Gray code: from point i to the next one bit of the code changes, the lowest that
// is zero in i (I. Antonov, V. Saleev, "An economic method of computing LP-tau sequences", 1979).
#define MXMACA_SOBOL(State, Word, bits)                                                                          \
  typedef struct State {                                                                                         \
    Word i, x, c;                                                                                                \
    Word direction_vectors[bits];                                                                                \
  } State##_t;                                                                                                   \
  CURAND_FN void skipahead(Word n, State##_t* state) {                                                           \
    state->i += n;                                                                                               \
    state->x = state->c;                                                                                         \
    const Word gray = state->i ^ state->i >> 1;                                                                  \
    for (int k = 0; k < bits; ++k) {                                                                             \
      if ((gray >> k & 1) != 0) state->x ^= state->direction_vectors[k];                                         \
    }                                                                                                            \
  }                                                                                                              \
  CURAND_FN Word curand(State##_t* state) {                                                                      \
    const Word result = state->x, zeros = ~state->i;                                                             \
    const int bit = zeros == 0 ? bits - 1 : __builtin_ctzll(zeros);                                              \
    state->x ^= state->direction_vectors[bit];                                                                   \
    ++state->i;                                                                                                  \
    return result;                                                                                               \
  }                                                                                                              \
  CURAND_FN float curand_uniform(State##_t* state) {                                                             \
    return mxmaca::uniform_of(static_cast<unsigned>(curand(state) >> (bits - 32)));                              \
  }                                                                                                              \
  CURAND_FN double curand_uniform_double(State##_t* state) { return mxmaca::sobol_uniform(curand(state)); }      \
  CURAND_FN float curand_normal(State##_t* state) {                                                              \
    return mxmaca::sobol_normal(static_cast<unsigned>(curand(state) >> (bits - 32)));                            \
  }                                                                                                              \
  CURAND_FN double curand_normal_double(State##_t* state) { return mxmaca::sobol_normal_double(curand(state)); } \
  CURAND_FN float curand_log_normal(State##_t* state, float mean, float stddev) {                                \
    return ::expf(mean + stddev * curand_normal(state));                                                         \
  }                                                                                                              \
  CURAND_FN double curand_log_normal_double(State##_t* state, double mean, double stddev) {                      \
    return ::exp(mean + stddev * curand_normal_double(state));                                                   \
  }                                                                                                              \
  CURAND_FN unsigned int curand_poisson(State##_t* state, double lambda) {                                       \
    return mxmaca::poisson_inverse(lambda, curand_uniform_double(state));                                        \
  }
#define MXMACA_SOBOL_INIT(State, Word, bits)                                                            \
  CURAND_FN void curand_init(curandDirectionVectors##bits##_t vectors, Word offset, State##_t* state) { \
    state->i = state->c = 0;                                                                            \
    for (int k = 0; k < bits; ++k) state->direction_vectors[k] = vectors[k];                            \
    skipahead(offset, state);                                                                           \
  }
#define MXMACA_SCRAMBLED_INIT(State, Word, bits)                                                     \
  CURAND_FN void curand_init(curandDirectionVectors##bits##_t vectors, Word scramble_c, Word offset, \
                             State##_t* state) {                                                     \
    state->i = 0;                                                                                    \
    state->c = scramble_c;                                                                           \
    for (int k = 0; k < bits; ++k) state->direction_vectors[k] = vectors[k];                         \
    skipahead(offset, state);                                                                        \
  }

namespace mxmaca {

// (0, 1], from the words of one dimension.
MXMACA_HD double sobol_uniform(unsigned x) { return uniform_double_of(x); }
MXMACA_HD double sobol_uniform(unsigned long long x) { return static_cast<double>(x >> 11) * 0x1p-53 + 0x1p-54; }

// The inverse of the normal distribution, which keeps points apart that are. The upper half of the words is mirrored,
// so that no precision is lost at its end.
MXMACA_HD float sobol_normal(unsigned x) {
  const bool upper = x > 0x80000000U;
  const float p = uniform_of(upper ? ~x : x);
  return static_cast<float>((upper ? 1.4142135623730951 : -1.4142135623730951) * inverse_erfc(2.0 * p));
}
MXMACA_HD double sobol_normal_double(unsigned x) {
  const bool upper = x > 0x80000000U;
  const double p = (upper ? ~x : x) * 0x1p-32 + 0x1p-33;
  return (upper ? 1.4142135623730951 : -1.4142135623730951) * inverse_erfc(2.0 * p);
}
MXMACA_HD double sobol_normal_double(unsigned long long x) {
  constexpr unsigned long long all = (1ULL << 53) - 1;
  x >>= 11;
  const bool upper = x > 1ULL << 52;
  const double p = static_cast<double>(upper ? all - x : x) * 0x1p-53 + 0x1p-54;
  return (upper ? 1.4142135623730951 : -1.4142135623730951) * inverse_erfc(2.0 * p);
}

// Where a Poisson distribution begins and ends: 14 standard deviations and as many numbers on either side leave less
// than a double's last place.
MXMACA_HD double poisson_begin(double lambda) {
  const double begin = ::floor(lambda - 14 * ::sqrt(lambda) - 14);
  return begin > 0 ? begin : 0;
}
MXMACA_HD double poisson_probability(double lambda, double k) {
  return ::exp(k * ::log(lambda) - lambda - ::lgamma(k + 1));
}
// The first number that is not exceeded with probability u.
MXMACA_HD unsigned poisson_inverse(double lambda, double u) {
  if (!(lambda > 0)) return 0;
  const double end = lambda + 14 * ::sqrt(lambda) + 40;
  double k = poisson_begin(lambda), p = poisson_probability(lambda, k);
  for (double sum = p; sum < u && k < end; sum += p) p *= lambda / ++k;
  return static_cast<unsigned>(k);
}

MXMACA_HD unsigned discrete_of(double u, curandDiscreteDistribution_t distribution) {
  size_t low = 0, high = distribution->count - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (distribution->cumulative[middle] < u) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return distribution->shift + static_cast<unsigned>(low);
}

}  // namespace mxmaca

MXMACA_SOBOL(curandStateSobol32, unsigned int, 32)
MXMACA_SOBOL(curandStateScrambledSobol32, unsigned int, 32)
MXMACA_SOBOL(curandStateSobol64, unsigned long long, 64)
MXMACA_SOBOL(curandStateScrambledSobol64, unsigned long long, 64)
MXMACA_SOBOL_INIT(curandStateSobol32, unsigned int, 32)
MXMACA_SOBOL_INIT(curandStateSobol64, unsigned long long, 64)
MXMACA_SCRAMBLED_INIT(curandStateScrambledSobol32, unsigned int, 32)
MXMACA_SCRAMBLED_INIT(curandStateScrambledSobol64, unsigned long long, 64)
#undef MXMACA_SOBOL
#undef MXMACA_SOBOL_INIT
#undef MXMACA_SCRAMBLED_INIT

// CUDA's form names the state: skipahead<curandStateSobol32_t*>(n, state).
template <class Pointer>
CURAND_FN void skipahead(unsigned long long n, Pointer state) {
  skipahead(static_cast<decltype(state->i)>(n), state);
}

#define MXMACA_DISCRETE(State)                                                                      \
  CURAND_FN unsigned int curand_discrete(State* state, curandDiscreteDistribution_t distribution) { \
    return mxmaca::discrete_of(curand_uniform_double(state), distribution);                         \
  }
MXMACA_DISCRETE(curandStateXORWOW_t)
MXMACA_DISCRETE(curandStateMRG32k3a_t)
MXMACA_DISCRETE(curandStatePhilox4_32_10_t)
MXMACA_DISCRETE(curandStateSobol32_t)
MXMACA_DISCRETE(curandStateScrambledSobol32_t)
MXMACA_DISCRETE(curandStateSobol64_t)
MXMACA_DISCRETE(curandStateScrambledSobol64_t)
#undef MXMACA_DISCRETE
CURAND_FN uint4 curand_discrete4(curandStatePhilox4_32_10_t* state, curandDiscreteDistribution_t distribution) {
  const unsigned a = curand_discrete(state, distribution), b = curand_discrete(state, distribution);
  const unsigned c = curand_discrete(state, distribution), d = curand_discrete(state, distribution);
  return make_uint4(a, b, c, d);
}
