// Half and bfloat16 against a reference that shares nothing with them: a sorted table of all values, searched in long
// double, where every sum, product and (for half) fused product is exact. Prints what differs; exit status 1 then.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

using mxmaca::Rounding;
static int failures = 0;

#define CHECK(condition, ...)                             \
  do {                                                    \
    if (!(condition) && ++failures <= 20) {               \
      std::printf("line %d: %s: ", __LINE__, #condition); \
      std::printf(__VA_ARGS__);                           \
      std::printf("\n");                                  \
    }                                                     \
  } while (0)

template <int ExponentBits, int MantissaBits>
struct Table {
  std::vector<long double> values;  // of the non-negative finite bit patterns, in order
  Table() {
    const int bias = (1 << (ExponentBits - 1)) - 1;
    for (int bits = 0; bits < ((1 << ExponentBits) - 1) << MantissaBits; ++bits) {
      const int exponent = bits >> MantissaBits, mantissa = bits & ((1 << MantissaBits) - 1);
      values.push_back(exponent == 0 ? std::ldexp(static_cast<long double>(mantissa), 1 - bias - MantissaBits)
                                     : std::ldexp(static_cast<long double>(mantissa + (1 << MantissaBits)),
                                                  exponent - bias - MantissaBits));
    }
  }
  unsigned round(long double value, Rounding mode) const {
    if (value != value) return 0x7fff;
    const bool negative = std::signbit(value);
    const long double magnitude = negative ? -value : value;
    const unsigned infinity = static_cast<unsigned>(values.size());
    const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
    const unsigned high = static_cast<unsigned>(above - values.begin());
    unsigned result = high;
    if (std::isinf(magnitude)) {
      result = infinity;
    } else if (above == values.end() || *above != magnitude) {
      const unsigned low = high - 1;
      const long double step = high == infinity ? values[low] - values[low - 1] : values[high] - values[low];
      const long double rest = magnitude - values[low];
      const bool away = mode == Rounding::nearest ? rest > step / 2 || (rest == step / 2 && low % 2 == 1)
                        : mode == Rounding::up    ? !negative
                        : mode == Rounding::down  ? negative
                                                  : false;
      result = away ? high : low;
    }
    return result | (negative ? 0x8000U : 0U);
  }
};

static const Rounding modes[] = {Rounding::nearest, Rounding::zero, Rounding::up, Rounding::down};

template <class T, class Values>
void conversions(const Values& table, float (*decode)(T), T (*convert[4])(float), T (*from_double)(double)) {
  const int count = static_cast<int>(table.values.size());
  for (int bits = 0; bits < count; ++bits) {
    T value;
    value.__x = static_cast<unsigned short>(bits);
    CHECK(decode(value) == table.values[bits], "%#x", bits);
    value.__x |= 0x8000;
    CHECK(decode(value) == -table.values[bits] && std::signbit(decode(value)), "-%#x", bits);
    const long double next =
        bits + 1 < count ? table.values[bits + 1] : 2 * table.values[bits] - table.values[bits - 1];
    const float middle = static_cast<float>((table.values[bits] + next) / 2);
    for (float x : {middle, std::nextafterf(middle, 0), std::nextafterf(middle, INFINITY), static_cast<float>(next)}) {
      for (float y : {x, -x}) {
        for (int mode = 0; mode < 4; ++mode) {
          CHECK(convert[mode](y).__x == table.round(y, modes[mode]), "%a mode %d", y, mode);
        }
        const double near = std::nextafter(static_cast<double>(y), 0.0);
        CHECK(from_double(near).__x == table.round(near, Rounding::nearest), "%a", near);
      }
    }
  }
  for (float x : {INFINITY, -INFINITY, NAN, -NAN, 1e-45F, -1e-45F, 3.4e38F, -3.4e38F, 65519.996F, 65520.0F}) {
    for (int mode = 0; mode < 4; ++mode) {
      CHECK(convert[mode](x).__x == table.round(x, modes[mode]), "%a mode %d", x, mode);
    }
  }
}

template <class T, class Values>
void arithmetic(const Values& table, bool fused) {
  std::mt19937 random(7);
  for (int i = 0; i < 400000; ++i) {
    T a, b, c;
    a.__x = static_cast<unsigned short>(random());
    // Near exponents as often as far ones: there the last places meet.
    b.__x = static_cast<unsigned short>(random() % 2 == 0 ? random() : a.__x ^ (random() & 0x87ff));
    c.__x = static_cast<unsigned short>(random());
    const long double x = static_cast<float>(a), y = static_cast<float>(b), z = static_cast<float>(c);
    CHECK(__hadd(a, b).__x == table.round(x + y, Rounding::nearest), "%La %La", x, y);
    CHECK(__hsub(a, b).__x == table.round(x - y, Rounding::nearest), "%La %La", x, y);
    CHECK(__hmul(a, b).__x == table.round(x * y, Rounding::nearest), "%La %La", x, y);
    // Division: no quotient of such short numbers comes near a tie without being one.
    CHECK(__hdiv(a, b).__x == table.round(x / y, Rounding::nearest), "%La %La", x, y);
    if (fused) CHECK(__hfma(a, b, c).__x == table.round(x * y + z, Rounding::nearest), "%La %La %La", x, y, z);
    CHECK(__hlt(a, b) == (x < y) && __hge(a, b) == (x >= y) && __heq(a, b) == (x == y), "%La %La", x, y);
    CHECK(__hltu(a, b) == !(x >= y) && __hneu(a, b) == !(x == y) && __hequ(a, b) == !(x < y || x > y), "%La %La", x, y);
    const T larger = __hmax(a, b);
    CHECK(x != x ? larger.__x == (y != y ? 0x7fff : b.__x) : y != y || static_cast<float>(larger) == std::max(x, y),
          "%La %La", x, y);
  }
  for (int bits = 0; bits < 0x10000; ++bits) {
    T a;
    a.__x = static_cast<unsigned short>(bits);
    const long double x = static_cast<float>(a);
    CHECK(hsqrt(a).__x == table.round(x < 0 ? std::nanl("") : sqrtl(x), Rounding::nearest), "%La", x);
    CHECK(hrcp(a).__x == table.round(1 / x, Rounding::nearest), "%La", x);
    const unsigned expected = table.round(x < 0 ? std::nanl("") : 1 / sqrtl(x), Rounding::nearest);
    CHECK(hrsqrt(a).__x == expected, "%La", x);
    CHECK(abs(hexp(a).__x - static_cast<int>(table.round(expl(x), Rounding::nearest))) <= 1, "%La", x);
    CHECK(hceil(a).__x == table.round(ceill(x), Rounding::nearest), "%La", x);
    if (x == x) {
      const long double down = floorl(x), inside = std::min(std::max(down, -2147483648.0L), 2147483647.0L);
      CHECK(mxmaca::to_integer<int>(static_cast<float>(a), Rounding::down) == inside, "%La", x);
    }
  }
}

int main() {
  const Table<5, 10> half;
  const Table<8, 7> bfloat16;
  __half (*to_half[])(float) = {__float2half_rn, __float2half_rz, __float2half_ru, __float2half_rd};
  __nv_bfloat16 (*to_bfloat16[])(float) = {__float2bfloat16_rn, __float2bfloat16_rz, __float2bfloat16_ru,
                                           __float2bfloat16_rd};
  conversions<__half>(half, __half2float, to_half, __double2half);
  conversions<__nv_bfloat16>(bfloat16, __bfloat162float, to_bfloat16, __double2bfloat16);
  arithmetic<__half>(half, true);
  arithmetic<__nv_bfloat16>(bfloat16, false);

  std::mt19937_64 random(11);
  for (int i = 0; i < 200000; ++i) {
    const long long value = static_cast<long long>(random()) >> (random() % 64);
    const long double exact = value;
    CHECK(__ll2half_rd(value).__x == half.round(exact, Rounding::down), "%lld", value);
    CHECK(__ll2bfloat16_rn(value).__x == bfloat16.round(exact, Rounding::nearest), "%lld", value);
    CHECK(__ull2bfloat16_ru(value).__x == bfloat16.round(static_cast<unsigned long long>(value), Rounding::up), "%lld",
          value);
  }
  CHECK(__half2int_rz(__ushort_as_half(0x7e00)) == 0, "NaN to int");
  CHECK(__half2ll_rz(__ushort_as_half(0x7e00)) == static_cast<long long>(1ULL << 63), "NaN to long long");
  CHECK(__half2short_rn(__float2half(40000)) == 32767, "saturation");
  CHECK(__half2uint_rd(__float2half(-3)) == 0, "saturation");
  CHECK(__hfma_sat(__float2half(2), __float2half(2), __float2half(1)).__x == 0x3c00, "saturation");
  CHECK(__hfma_relu(__float2half(2), __float2half(-2), __float2half(1)).__x == 0, "relu");
  // (1 + 2^-7)(1 + 2^-7) - (1 + 2^-6) in bfloat16: fused keeps 2^-14.
  CHECK(__bfloat162float(__hfma(__ushort_as_bfloat16(0x3f81), __ushort_as_bfloat16(0x3f81),
                                __ushort_as_bfloat16(0xbf82))) == 0x1p-14F,
        "fused");
  // A tie broken by something 2^-120 away, which a sum in double would lose.
  CHECK(__hfma(__ushort_as_bfloat16(0x3f81), __ushort_as_bfloat16(0x3fc0), __float2bfloat16(-0x1p-120F)).__x == 0x3fc1,
        "tie");
  std::printf("%d failures\n", failures);
  return failures != 0;
}
