// Device states with direction vectors and distributions of the host interface: the same numbers as its generators.
#include <cuda_runtime.h>
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <vector>

#include "check.h"

constexpr int kDimensions = 300, kPoints = 33, kOffset = 7;

template <class Word>
std::vector<Word> generated(curandRngType_t type, curandStatus_t (*generate)(curandGenerator_t, Word*, size_t)) {
  curandGenerator_t generator;
  std::vector<Word> words(kDimensions * kPoints);
  CHECK(curandCreateGenerator(&generator, type) == CURAND_STATUS_SUCCESS);
  CHECK(curandSetQuasiRandomGeneratorDimensions(generator, kDimensions) == CURAND_STATUS_SUCCESS);
  CHECK(curandSetGeneratorOffset(generator, kOffset) == CURAND_STATUS_SUCCESS);
  CHECK(curandSetGeneratorOrdering(generator, CURAND_ORDERING_QUASI_DEFAULT) == CURAND_STATUS_SUCCESS);
  CHECK(generate(generator, words.data(), words.size()) == CURAND_STATUS_SUCCESS);
  CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
  return words;
}

template <class Word, class Initialise>
void compare(const std::vector<Word>& words, Initialise initialise) {
  for (int dimension = 0; dimension < kDimensions; ++dimension) {
    auto state = initialise(dimension, kOffset);
    for (int point = 0; point < kPoints; ++point) {
      auto skipped = initialise(dimension, 0);
      skipahead<decltype(&skipped)>(static_cast<Word>(kOffset + point), &skipped);
      const Word word = curand(&state);
      CHECK(word == words[static_cast<size_t>(dimension * kPoints + point)] && word == curand(&skipped));
    }
  }
}

int main() {
  curandDirectionVectors32_t *plain32 = nullptr, *mixed32 = nullptr;
  curandDirectionVectors64_t *plain64 = nullptr, *mixed64 = nullptr;
  unsigned* constants32 = nullptr;
  unsigned long long* constants64 = nullptr;
  CHECK(curandGetDirectionVectors32(&plain32, CURAND_DIRECTION_VECTORS_32_JOEKUO6) == CURAND_STATUS_SUCCESS);
  CHECK(curandGetDirectionVectors32(&mixed32, CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6) == CURAND_STATUS_SUCCESS);
  CHECK(curandGetDirectionVectors64(&plain64, CURAND_DIRECTION_VECTORS_64_JOEKUO6) == CURAND_STATUS_SUCCESS);
  CHECK(curandGetDirectionVectors64(&mixed64, CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6) == CURAND_STATUS_SUCCESS);
  CHECK(curandGetScrambleConstants32(&constants32) == CURAND_STATUS_SUCCESS);
  CHECK(curandGetScrambleConstants64(&constants64) == CURAND_STATUS_SUCCESS);

  compare(generated<unsigned>(CURAND_RNG_QUASI_SOBOL32, curandGenerate), [&](int dimension, unsigned offset) {
    curandStateSobol32_t state;
    curand_init(plain32[dimension], offset, &state);
    return state;
  });
  compare(generated<unsigned>(CURAND_RNG_QUASI_SCRAMBLED_SOBOL32, curandGenerate), [&](int dimension, unsigned offset) {
    curandStateScrambledSobol32_t state;
    curand_init(mixed32[dimension], constants32[dimension], offset, &state);
    return state;
  });
  compare(generated<unsigned long long>(CURAND_RNG_QUASI_SOBOL64, curandGenerateLongLong),
          [&](int dimension, unsigned offset) {
            curandStateSobol64_t state;
            curand_init(plain64[dimension], offset, &state);
            return state;
          });
  compare(generated<unsigned long long>(CURAND_RNG_QUASI_SCRAMBLED_SOBOL64, curandGenerateLongLong),
          [&](int dimension, unsigned offset) {
            curandStateScrambledSobol64_t state;
            curand_init(mixed64[dimension], constants64[dimension], offset, &state);
            return state;
          });

  // The first points of the second dimension, by hand: 0, 1/2, 1/4, 3/4.
  curandStateSobol32_t second;
  curand_init(plain32[1], 0, &second);
  for (const float expected : {0.0F, 0.5F, 0.25F, 0.75F}) {
    CHECK(std::fabs(curand_uniform(&second) - expected) < 1e-6F);
  }

  curandDiscreteDistribution_t poisson;
  CHECK(curandCreatePoissonDistribution(6.0, &poisson) == CURAND_STATUS_SUCCESS);
  curandStatePhilox4_32_10_t philox;
  curandState xorwow;
  curandStateMRG32k3a_t mrg;
  curandStateSobol32_t sobol;
  curand_init(1, 0, 0, &philox);
  curand_init(1, 0, 0, &xorwow);
  curand_init(1, 0, 0, &mrg);
  curand_init(plain32[0], 0, &sobol);
  constexpr int kNumbers = 1 << 14;
  double sums[5] = {};
  for (int i = 0; i < kNumbers; ++i) {
    sums[0] += curand_discrete(&philox, poisson);
    sums[1] += curand_discrete(&xorwow, poisson);
    sums[2] += curand_discrete(&mrg, poisson);
    sums[3] += curand_discrete(&sobol, poisson);
    const uint4 four = curand_discrete4(&philox, poisson);
    sums[4] += (four.x + four.y + four.z + four.w) / 4.0;
  }
  for (const double sum : sums) CHECK(std::fabs(sum / kNumbers - 6) < 0.1);
  CHECK(std::fabs(sums[3] / kNumbers - 6) < 0.002);
  CHECK(curandDestroyDistribution(poisson) == CURAND_STATUS_SUCCESS);
  return 0;
}
