// The device library's mathematics against the table named on the command line, within the documented units in the
// last place; its intrinsics against their definitions.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "vector_functions.h"

#include "device_functions.h"
#include "math_functions.h"

static int failures = 0;

#define CHECK(condition, ...)                             \
  do {                                                    \
    if (!(condition) && ++failures <= 20) {               \
      std::printf("line %d: %s: ", __LINE__, #condition); \
      std::printf(__VA_ARGS__);                           \
      std::printf("\n");                                  \
    }                                                     \
  } while (0)

static double distance(double a, double b) {
  if (a == b) return 0;
  int exponent;
  std::frexp(b, &exponent);
  return std::fabs(a - b) / std::ldexp(1.0, exponent - 53);
}

struct Pair {
  double (*wide)(double);
  float (*single)(float);
  double bound;  // units in the last place, double form; the float form is within 1
};
static const std::map<std::string, Pair> functions = {
    {"rsqrt", {rsqrt, rsqrtf, 1}},
    {"rcbrt", {rcbrt, rcbrtf, 2}},
    {"erfinv", {erfinv, erfinvf, 3}},
    {"erfcinv", {erfcinv, erfcinvf, 3}},
    {"erfcx", {erfcx, erfcxf, 3}},
    {"normcdf", {normcdf, normcdff, 3}},
    {"normcdfinv", {normcdfinv, normcdfinvf, 4}},
    {"cyl_bessel_i0", {cyl_bessel_i0, cyl_bessel_i0f, 4}},
    {"cyl_bessel_i1", {cyl_bessel_i1, cyl_bessel_i1f, 4}},
    {"sinpi", {sinpi, sinpif, 1}},
    {"cospi", {cospi, cospif, 1}},
    {"exp10", {exp10, exp10f, 2}},
};

static void table(const char* path) {
  std::FILE* const file = std::fopen(path, "r");
  char name[64], argument[64], expected[64];
  std::map<std::string, double> worst;
  int rows = 0;
  while (file != nullptr && std::fscanf(file, "%63s %63s %63s", name, argument, expected) == 3) {
    const Pair& pair = functions.at(name);
    const double x = std::strtod(argument, nullptr), y = std::strtod(expected, nullptr);
    const double error = distance(pair.wide(x), y);
    if (error > worst[name]) worst[name] = error;
    CHECK(error <= pair.bound, "%s(%g): %g, not %g: %g units", name, x, pair.wide(x), y, error);
    const float single = pair.single(static_cast<float>(x)), wanted = static_cast<float>(y);
    CHECK(single == wanted || single == std::nextafterf(wanted, single), "%sf(%g)", name, x);
    ++rows;
  }
  if (file != nullptr) std::fclose(file);
  CHECK(rows > 200, "only %d rows in %s", rows, path);
  if (std::getenv("SHOW_WORST") != nullptr) {
    for (const auto& [which, error] : worst) std::printf("%s %.2f\n", which.c_str(), error);
  }
}

// Directed roundings bracket the exact result and are neighbours; checked where long double holds the exact one.
static void directed() {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const float a = __uint_as_float(static_cast<unsigned>(random())),
                b = __uint_as_float(static_cast<unsigned>(random()));
    const double product = static_cast<double>(a) * b;  // exact
    if (!(product - product == 0)) continue;
    const float down = __fmul_rd(a, b), up = __fmul_ru(a, b), zero = __fmul_rz(a, b);
    CHECK(down <= product && product <= up, "%a * %a", a, b);
    CHECK(down == up ? down == product : std::nextafterf(down, INFINITY) == up, "%a * %a", a, b);
    CHECK(zero == (product < 0 ? up : down), "%a * %a", a, b);
    CHECK(__double2float_rd(product) == down && __double2float_ru(product) == up, "%a", product);
    const double q = __ddiv_ru(a, b), p = __ddiv_rd(a, b);
    CHECK(p == q || (b != 0 && std::nextafter(p, INFINITY) == q), "%a / %a", a, b);
    const long long n = static_cast<long long>(random());
    CHECK(static_cast<__int128>(__ll2double_rd(n)) <= n && static_cast<__int128>(__ll2double_ru(n)) >= n, "%lld", n);
  }
  CHECK(__fadd_rn(__fmul_rn(1.0F + 0x1p-12F, 1.0F + 0x1p-12F), -1.0F) == 0x1p-11F, "fused although rn");
  CHECK(__fmaf_rn(1.0F + 0x1p-12F, 1.0F + 0x1p-12F, -1.0F) == 0x1p-11F + 0x1p-24F, "not fused");
  CHECK(__fadd_ru(3e38F, 3e38F) == INFINITY && __fadd_rd(3e38F, 3e38F) == CUDART_MAX_NORMAL_F, "overflow");
  CHECK(__dmul_ru(1e-200, 1e-200) == CUDART_MIN_DENORM && __dmul_rd(1e-200, 1e-200) == 0, "underflow");
  CHECK(__fsqrt_ru(2.0F) > __fsqrt_rd(2.0F) && __fadd_rn(1.0F, 0x1p-25F) == 1.0F, "mode left switched");
}

static void integers() {
  CHECK(__float2int_rz(3e9F) == 2147483647 && __float2int_rn(NAN) == 0, "saturation");
  CHECK(__double2int_rz(NAN) == static_cast<int>(0x80000000U), "NaN of double");
  CHECK(__float2uint_rz(-1.0F) == 0 && __float2ull_rn(1e30F) == ~0ULL, "saturation");
  CHECK(__float2int_rn(2.5F) == 2 && __float2int_rn(3.5F) == 4 && __float2int_rd(-0.5F) == -1, "modes");
  CHECK(__clz(0) == 32 && __clz(1) == 31 && __ffs(0) == 0 && __ffsll(1LL << 40) == 41 && __popcll(~0ULL) == 64, "bits");
  CHECK(__brev(1) == 0x80000000U && __brevll(2) == 1ULL << 62, "reversal");
  CHECK(__mulhi(-1, 1) == -1 && __umulhi(~0U, ~0U) == 0xfffffffeU && __umul64hi(~0ULL, 2) == 1, "high product");
  CHECK(__mul24(0xffffff, 5) == -5 && __umul24(0x1ffffff, 2) == 0x1fffffe, "24 bits");
  CHECK(__byte_perm(0x33221100, 0x77665544, 0x7130) == 0x77113300, "%x", __byte_perm(0x33221100, 0x77665544, 0x7130));
  CHECK(__funnelshift_l(0x80000000U, 1, 1) == 3 && __funnelshift_rc(1, 2, 40) == 2, "funnel");
  CHECK(__fns(0xf0, 0, 2) == 5 && __fns(0xf0, 5, -1) == 5 && __fns(0xf0, 0, 5) == ~0U, "nth bit");
  CHECK(__dp4a(0x01ff0203, 0x01010101, 10) == 15 && __dp4a(0xffU, 0xffU, 0U) == 65025, "dp4a");
  CHECK(__dp2a_lo(0x00020003, 0x7f7f0504, 1) == 23, "dp2a %d", __dp2a_lo(0x00020003, 0x7f7f0504, 1));
  CHECK(__vadd4(0xff010203, 0x01010101) == 0x00020304 && __vaddus4(0xff010203, 0x01010101) == 0xff020304, "vadd");
  CHECK(__vcmpgts2(0x0001ffff, 0) == 0xffff0000 && __vsetltu4(0x01020304, 0x02020202) == 0x01000000, "vcmp");
  CHECK(__vsadu4(0x01020304, 0x02020202) == 4 && __vabsss2(0x80008000) == 0x7fff7fff, "vsad");
  CHECK(__hadd(2147483647, 1) == 1 << 30 && __urhadd(~0U, ~0U) == ~0U, "average");
  CHECK(min(-1, 1U) == 1U && max(-1, 1U) == ~0U && min(NAN, 1.0F) == 1.0F, "min and max");
  CHECK(__hiloint2double(__double2hiint(-1.5), __double2loint(-1.5)) == -1.5, "halves");
  CHECK(__saturatef(NAN) == 0 && __saturatef(2) == 1, "saturate");
  CHECK(norm3d(3e300, 4e300, 0.0) == 5e300 && rnorm4df(2, 2, 2, 2) == 0.25F && rhypot(0.0, 0.0) == INFINITY, "norms");
  CHECK(sinpi(1e300) == 0 && cospi(0.5) == 0 && normcdf(-37.0) > 0 && erfcx(-30.0) == INFINITY, "limits");
}

int main(int, char** arguments) {
  table(arguments[1]);
  directed();
  integers();
  std::printf("%d failures\n", failures);
  return failures != 0;
}
