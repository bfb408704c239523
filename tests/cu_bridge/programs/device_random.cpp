// curand_kernel.h: published values, and the laws between init, skipahead and the plain sequence.
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "curand_kernel.h"

static int failures = 0;

#define CHECK(condition, ...)                             \
  do {                                                    \
    if (!(condition) && ++failures <= 20) {               \
      std::printf("line %d: %s: ", __LINE__, #condition); \
      std::printf(__VA_ARGS__);                           \
      std::printf("\n");                                  \
    }                                                     \
  } while (0)

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
static void philox() {
  const uint4 zero = curand_Philox4x32_10(make_uint4(0, 0, 0, 0), make_uint2(0, 0));
  CHECK(zero.x == 0x6627e8d5 && zero.y == 0xe169c58d && zero.z == 0xbc57ac4c && zero.w == 0x9b00dbd8, "%x", zero.x);
  const unsigned f = 0xffffffff;
  const uint4 ones = curand_Philox4x32_10(make_uint4(f, f, f, f), make_uint2(f, f));
  CHECK(ones.x == 0x408f276d && ones.y == 0x41c83b0e && ones.z == 0xa20bc7c6 && ones.w == 0x6d5451fd, "%x", ones.x);
  const uint4 pi = curand_Philox4x32_10(make_uint4(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344),
                                        make_uint2(0xa4093822, 0x299f31d0));
  CHECK(pi.x == 0xd16cfe09 && pi.y == 0x94fdcceb && pi.z == 0x5001e420 && pi.w == 0x24126ea1, "%x", pi.x);

  // Four at once is one after the other, from any position.
  for (int start = 0; start < 4; ++start) {
    curandStatePhilox4_32_10_t one, four;
    curand_init(42, 7, start, &one);
    curand_init(42, 7, 0, &four);
    for (int i = 0; i < start; ++i) curand(&four);
    for (int i = 0; i < 3; ++i) {
      const uint4 words = curand4(&four);
      const unsigned a = curand(&one), b = curand(&one), c = curand(&one), d = curand(&one);
      CHECK(words.x == a && words.y == b && words.z == c && words.w == d, "start %d", start);
    }
  }
  // The carry of the block number into the subsequence.
  curandStatePhilox4_32_10_t far, next;
  curand_init(1, 0, 0, &far);
  for (int i = 0; i < 4; ++i) skipahead(~0ULL, &far);
  skipahead(4, &far);
  curand_init(1, 1, 0, &next);
  CHECK(curand(&far) == curand(&next), "carry");
}

template <class State>
static void laws(const char* name) {
  for (unsigned long long n : {0ULL, 1ULL, 2ULL, 5ULL, 17ULL, 1000ULL, 100003ULL}) {
    State walked, jumped, skipped;
    curand_init(1234, 3, 0, &walked);
    for (unsigned long long i = 0; i < n; ++i) curand(&walked);
    curand_init(1234, 3, n, &jumped);
    curand_init(1234, 3, 0, &skipped);
    skipahead(n, &skipped);
    const unsigned expected = curand(&walked);
    CHECK(curand(&jumped) == expected && curand(&skipped) == expected, "%s: %llu steps", name, n);
  }
  State whole, halves;
  curand_init(5, 0x123456789abcdefULL, 0xfedcba987ULL, &whole);
  curand_init(5, 0x123456789abcdefULL - 77, 0xfedcba987ULL - 1000, &halves);
  State rest;
  curand_init(5, 0x123456789abcdefULL, 0, &rest);
  skipahead(0xfedcba987ULL, &rest);
  CHECK(curand(&whole) == curand(&rest), "%s: subsequence and offset", name);

  State state;
  curand_init(99, 0, 0, &state);
  double sum = 0, squares = 0, normal = 0, normal_squares = 0, fourth = 0, poisson = 0, poisson_squares = 0, small = 0;
  const int count = 200000;
  for (int i = 0; i < count; ++i) {
    const float u = curand_uniform(&state);
    CHECK(u > 0 && u <= 1, "%s: %g", name, u);
    const double w = curand_uniform_double(&state);
    CHECK(w > 0 && w <= 1, "%s: %g", name, w);
    sum += u;
    squares += static_cast<double>(u) * u;
    const double z = i % 2 == 0 ? curand_normal(&state) : curand_normal_double(&state);
    normal += z;
    normal_squares += z * z;
    fourth += z * z * z * z;
    const double k = curand_poisson(&state, 30);
    poisson += k;
    poisson_squares += k * k;
    small += curand_poisson(&state, 0.5);
  }
  const double n = count;
  // Five standard deviations.
  CHECK(std::fabs(sum / n - 0.5) < 5 * 0.2887 / std::sqrt(n), "%s: mean %g", name, sum / n);
  CHECK(std::fabs(squares / n - 1.0 / 3) < 5 * 0.2981 / std::sqrt(n), "%s: %g", name, squares / n);
  CHECK(std::fabs(normal / n) < 5 / std::sqrt(n), "%s: normal mean %g", name, normal / n);
  CHECK(std::fabs(normal_squares / n - 1) < 5 * 1.4142 / std::sqrt(n), "%s: %g", name, normal_squares / n);
  CHECK(std::fabs(fourth / n - 3) < 5 * 9.8 / std::sqrt(n), "%s: %g", name, fourth / n);
  CHECK(std::fabs(poisson / n - 30) < 5 * 5.478 / std::sqrt(n), "%s: Poisson mean %g", name, poisson / n);
  CHECK(std::fabs(poisson_squares / n - 930) < 5 * 337 / std::sqrt(n), "%s: %g", name, poisson_squares / n);
  CHECK(std::fabs(small / n - 0.5) < 5 * 0.7072 / std::sqrt(n), "%s: Poisson mean %g", name, small / n);
}

int main() {
  philox();
  laws<curandStatePhilox4_32_10_t>("Philox");
  laws<curandStateXORWOW_t>("XORWOW");
  laws<curandStateMRG32k3a_t>("MRG32k3a");

  // cuRAND's own first example prints these for XORWOW with seed 1234, one subsequence after the other.
  const char* const expected[] = {"0.1455", "0.8202", "0.5504", "0.2948", "0.9147",
                                  "0.8690", "0.3219", "0.7829", "0.0113", "0.2855"};
  for (int i = 0; i < 10; ++i) {
    curandState state;
    curand_init(1234, i, 0, &state);
    char text[16];
    std::snprintf(text, sizeof text, "%1.4f", curand_uniform(&state));
    CHECK(std::strcmp(text, expected[i]) == 0, "%d: %s", i, text);
  }
  // L'Ecuyer's generator from its default seed, all 12345: his first output.
  curandStateMRG32k3a_t mrg;
  curand_init(0, 0, 0, &mrg);
  CHECK(std::fabs(curand_uniform_double(&mrg) - 0.127011122046577) < 1e-14, "MRG32k3a");
  std::printf("%d failures\n", failures);
  return failures != 0;
}
