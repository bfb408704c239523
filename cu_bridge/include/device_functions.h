// CUDA's intrinsics for device code: rounding modes, casts, integers, SIMD within a word, cached memory accesses.
#pragma once
#define __DEVICE_FUNCTIONS_H__

#ifdef __cplusplus
#include "mxmaca/arithmetic/directed_rounding.h"
#include "mxmaca/arithmetic/integer_rounding.h"
#include "mxmaca/arithmetic/simd_intrinsics.h"

#define MXMACA_MODES(one) one(rn, nearest) one(rz, zero) one(ru, up) one(rd, down)

// ---- One operation, rounded once, never fused with its neighbour ----------------------------------------------------
#define MXMACA_FLOAT(suffix, mode)                                                                     \
  MXMACA_HD float __fadd_##suffix(float a, float b) {                                                  \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Add(), a, b);                               \
  }                                                                                                    \
  MXMACA_HD float __fsub_##suffix(float a, float b) {                                                  \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Subtract(), a, b);                          \
  }                                                                                                    \
  MXMACA_HD float __fmul_##suffix(float a, float b) {                                                  \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Multiply(), a, b);                          \
  }                                                                                                    \
  MXMACA_HD float __fdiv_##suffix(float a, float b) {                                                  \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Divide(), a, b);                            \
  }                                                                                                    \
  MXMACA_HD float __frcp_##suffix(float a) {                                                           \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Reciprocal(), a);                           \
  }                                                                                                    \
  MXMACA_HD float __fsqrt_##suffix(float a) {                                                          \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::SquareRoot(), a);                           \
  }                                                                                                    \
  MXMACA_HD float __fmaf_##suffix(float a, float b, float c) {                                         \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::FusedMultiplyAdd(), a, b, c);               \
  }                                                                                                    \
  MXMACA_HD float __fmaf_ieee_##suffix(float a, float b, float c) { return __fmaf_##suffix(a, b, c); } \
  MXMACA_HD double __dadd_##suffix(double a, double b) {                                               \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Add(), a, b);                               \
  }                                                                                                    \
  MXMACA_HD double __dsub_##suffix(double a, double b) {                                               \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Subtract(), a, b);                          \
  }                                                                                                    \
  MXMACA_HD double __dmul_##suffix(double a, double b) {                                               \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Multiply(), a, b);                          \
  }                                                                                                    \
  MXMACA_HD double __ddiv_##suffix(double a, double b) {                                               \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Divide(), a, b);                            \
  }                                                                                                    \
  MXMACA_HD double __drcp_##suffix(double a) {                                                         \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Reciprocal(), a);                           \
  }                                                                                                    \
  MXMACA_HD double __dsqrt_##suffix(double a) {                                                        \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::SquareRoot(), a);                           \
  }                                                                                                    \
  MXMACA_HD double __fma_##suffix(double a, double b, double c) {                                      \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::FusedMultiplyAdd(), a, b, c);               \
  }                                                                                                    \
  MXMACA_HD float __double2float_##suffix(double a) {                                                  \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Convert<float>(), a);                       \
  }
MXMACA_MODES(MXMACA_FLOAT)
#undef MXMACA_FLOAT

MXMACA_HD float __frsqrt_rn(float a) { return static_cast<float>(1 / ::sqrt(static_cast<double>(a))); }
MXMACA_HD float __saturatef(float a) { return a > 0 ? (a < 1 ? a : 1.0F) : 0.0F; }  // NaN: +0
MXMACA_HD float __fdividef(float a, float b) { return a / b; }

// Fast forms. They answer as the exact ones. glibc declares some of these names itself: C linkage, noexcept.
extern "C" {
#define MXMACA_FAST(name, call) \
  __attribute__((always_inline)) MXMACA_HD float name(float x) noexcept { return call; }
MXMACA_FAST(__sinf, ::sinf(x))
MXMACA_FAST(__cosf, ::cosf(x))
MXMACA_FAST(__tanf, ::tanf(x))
MXMACA_FAST(__tanhf, ::tanhf(x))
MXMACA_FAST(__expf, ::expf(x))
MXMACA_FAST(__exp10f, ::exp10f(x))
MXMACA_FAST(__logf, ::logf(x))
MXMACA_FAST(__log2f, ::log2f(x))
MXMACA_FAST(__log10f, ::log10f(x))
#undef MXMACA_FAST
__attribute__((always_inline)) MXMACA_HD float __powf(float x, float y) noexcept { return ::powf(x, y); }
__attribute__((always_inline)) MXMACA_HD void __sincosf(float x, float* sine, float* cosine) noexcept {
  *sine = ::sinf(x);
  *cosine = ::cosf(x);
}
}

// ---- Conversions: floating point to integer saturates, NaN as PTX's cvt has it --------------------------------------
#define MXMACA_TO_INTEGER(name, type)                                                                              \
  MXMACA_HD type __float2##name##_rn(float a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::nearest); }   \
  MXMACA_HD type __float2##name##_rz(float a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::zero); }      \
  MXMACA_HD type __float2##name##_ru(float a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::up); }        \
  MXMACA_HD type __float2##name##_rd(float a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::down); }      \
  MXMACA_HD type __double2##name##_rn(double a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::nearest); } \
  MXMACA_HD type __double2##name##_rz(double a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::zero); }    \
  MXMACA_HD type __double2##name##_ru(double a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::up); }      \
  MXMACA_HD type __double2##name##_rd(double a) { return mxmaca::to_integer<type>(a, mxmaca::Rounding::down); }
MXMACA_TO_INTEGER(int, int)
MXMACA_TO_INTEGER(uint, unsigned int)
MXMACA_TO_INTEGER(ll, long long)
MXMACA_TO_INTEGER(ull, unsigned long long)
#undef MXMACA_TO_INTEGER

#define MXMACA_FROM_INTEGER(suffix, mode)                                         \
  MXMACA_HD float __int2float_##suffix(int a) {                                   \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Convert<float>(), a);  \
  }                                                                               \
  MXMACA_HD float __uint2float_##suffix(unsigned a) {                             \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Convert<float>(), a);  \
  }                                                                               \
  MXMACA_HD float __ll2float_##suffix(long long a) {                              \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Convert<float>(), a);  \
  }                                                                               \
  MXMACA_HD float __ull2float_##suffix(unsigned long long a) {                    \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Convert<float>(), a);  \
  }                                                                               \
  MXMACA_HD double __ll2double_##suffix(long long a) {                            \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Convert<double>(), a); \
  }                                                                               \
  MXMACA_HD double __ull2double_##suffix(unsigned long long a) {                  \
    return mxmaca::in_mode<mxmaca::Rounding::mode>(mxmaca::Convert<double>(), a); \
  }
MXMACA_MODES(MXMACA_FROM_INTEGER)
#undef MXMACA_FROM_INTEGER
#undef MXMACA_MODES
MXMACA_HD double __int2double_rn(int a) { return a; }
MXMACA_HD double __uint2double_rn(unsigned a) { return a; }

// ---- Casts of bits --------------------------------------------------------------------------------------------------
MXMACA_HD int __float_as_int(float a) { return mxmaca::bit_cast<int>(a); }
MXMACA_HD unsigned __float_as_uint(float a) { return mxmaca::bit_cast<unsigned>(a); }
MXMACA_HD float __int_as_float(int a) { return mxmaca::bit_cast<float>(a); }
MXMACA_HD float __uint_as_float(unsigned a) { return mxmaca::bit_cast<float>(a); }
MXMACA_HD long long __double_as_longlong(double a) { return mxmaca::bit_cast<long long>(a); }
MXMACA_HD double __longlong_as_double(long long a) { return mxmaca::bit_cast<double>(a); }
MXMACA_HD int __double2hiint(double a) { return static_cast<int>(mxmaca::bit_cast<long long>(a) >> 32); }
MXMACA_HD int __double2loint(double a) { return static_cast<int>(mxmaca::bit_cast<long long>(a)); }
MXMACA_HD double __hiloint2double(int hi, int lo) {
  return mxmaca::bit_cast<double>(static_cast<uint64_t>(static_cast<uint32_t>(hi)) << 32 | static_cast<uint32_t>(lo));
}

// ---- Integers -------------------------------------------------------------------------------------------------------
MXMACA_HD int __popc(unsigned a) { return __builtin_popcount(a); }
MXMACA_HD int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
MXMACA_HD int __clz(int a) { return a == 0 ? 32 : __builtin_clz(static_cast<unsigned>(a)); }
MXMACA_HD int __clzll(long long a) { return a == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(a)); }
MXMACA_HD int __ffs(int a) { return __builtin_ffs(a); }
MXMACA_HD int __ffsll(long long a) { return __builtin_ffsll(a); }
MXMACA_HD unsigned __brev(unsigned a) {
  a = (a >> 1 & 0x55555555U) | (a & 0x55555555U) << 1;
  a = (a >> 2 & 0x33333333U) | (a & 0x33333333U) << 2;
  a = (a >> 4 & 0x0f0f0f0fU) | (a & 0x0f0f0f0fU) << 4;
  return __builtin_bswap32(a);
}
MXMACA_HD unsigned long long __brevll(unsigned long long a) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(a))) << 32 |
         __brev(static_cast<unsigned>(a >> 32));
}
MXMACA_HD int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
MXMACA_HD unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
MXMACA_HD long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
MXMACA_HD unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
MXMACA_HD int mulhi(int a, int b) { return __mulhi(a, b); }
MXMACA_HD unsigned mulhi(unsigned a, unsigned b) { return __umulhi(a, b); }
// Of the low 24 bits; the signed form sees bit 23 as the sign.
MXMACA_HD int __mul24(int a, int b) {
  const int64_t x = static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8;
  const int64_t y = static_cast<int32_t>(static_cast<uint32_t>(b) << 8) >> 8;
  return static_cast<int>(x * y);
}
MXMACA_HD unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffU) * (b & 0xffffffU); }
MXMACA_HD int mul24(int a, int b) { return __mul24(a, b); }
MXMACA_HD unsigned umul24(unsigned a, unsigned b) { return __umul24(a, b); }
MXMACA_HD unsigned __sad(int a, int b, unsigned c) {
  const int64_t difference = static_cast<int64_t>(a) - b;
  return c + static_cast<unsigned>(difference < 0 ? -difference : difference);
}
MXMACA_HD unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
MXMACA_HD int __hadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b) >> 1); }
MXMACA_HD int __rhadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b + 1) >> 1); }
MXMACA_HD unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1);
}
MXMACA_HD unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1);
}
// Each of the four low nibbles of the selector picks a byte of b:a; its top bit spreads that byte's sign.
MXMACA_HD unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    // CUDA documents three bits of each nibble; PTX's prmt, which it is, has the sign in the fourth.
    const unsigned nibble = selector >> (4 * i) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7))) & 0xff;
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
MXMACA_HD unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) << (shift & 31) >> 32);
}
MXMACA_HD unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
MXMACA_HD unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) >> (shift & 31));
}
MXMACA_HD unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}
// The position of the offset-th set bit of mask, counted from base (upwards from 1, downwards from -1).
MXMACA_HD unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return (mask >> (base & 31) & 1) != 0 ? base : 0xffffffffU;
  const int step = offset > 0 ? 1 : -1;
  int left = offset > 0 ? offset : -offset;
  for (int position = static_cast<int>(base); position >= 0 && position < 32; position += step) {
    if ((mask >> position & 1) != 0 && --left == 0) return static_cast<unsigned>(position);
  }
  return 0xffffffffU;
}

// ---- Dot products of four or two numbers in a word ------------------------------------------------------------------
MXMACA_HD int __dp4a(int a, int b, int c) {
  uint32_t sum = static_cast<uint32_t>(c);
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<uint32_t>(static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i)));
  }
  return static_cast<int>(sum);
}
MXMACA_HD unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff);
  return c;
}
MXMACA_HD int __dp4a(char4 a, char4 b, int c) { return __dp4a(mxmaca::bit_cast<int>(a), mxmaca::bit_cast<int>(b), c); }
MXMACA_HD unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(mxmaca::bit_cast<unsigned>(a), mxmaca::bit_cast<unsigned>(b), c);
}
#define MXMACA_DP2A(name, first)                                                                                       \
  MXMACA_HD int name(int a, int b, int c) {                                                                            \
    return static_cast<int>(static_cast<uint32_t>(c) +                                                                 \
                            static_cast<uint32_t>(static_cast<int16_t>(a) * static_cast<int8_t>(b >> (8 * first))) +   \
                            static_cast<uint32_t>((a >> 16) * static_cast<int8_t>(b >> (8 * (first + 1)))));           \
  }                                                                                                                    \
  MXMACA_HD unsigned name(unsigned a, unsigned b, unsigned c) {                                                        \
    return c + (a & 0xffff) * (b >> (8 * first) & 0xff) + (a >> 16) * (b >> (8 * (first + 1)) & 0xff);                 \
  }                                                                                                                    \
  MXMACA_HD int name(short2 a, char4 b, int c) { return name(mxmaca::bit_cast<int>(a), mxmaca::bit_cast<int>(b), c); } \
  MXMACA_HD unsigned name(ushort2 a, uchar4 b, unsigned c) {                                                           \
    return name(mxmaca::bit_cast<unsigned>(a), mxmaca::bit_cast<unsigned>(b), c);                                      \
  }
MXMACA_DP2A(__dp2a_lo, 0)
MXMACA_DP2A(__dp2a_hi, 2)
#undef MXMACA_DP2A

// ---- Loads and stores with a cache hint: the hint changes no value --------------------------------------------------
#define MXMACA_LOAD(name)              \
  template <class T>                   \
  MXMACA_HD T name(const T* pointer) { \
    return *pointer;                   \
  }
MXMACA_LOAD(__ldg)
MXMACA_LOAD(__ldca)
MXMACA_LOAD(__ldcg)
MXMACA_LOAD(__ldcs)
MXMACA_LOAD(__ldlu)
#undef MXMACA_LOAD
// Fetched again each time: programs read so what they wait for.
template <class T>
MXMACA_HD T __ldcv(const T* pointer) {
#ifdef __CUDA_ARCH__
  mxmaca::spun();
#endif
  asm volatile("" ::: "memory");
  const T value = *pointer;
  asm volatile("" ::: "memory");
  return value;
}
#define MXMACA_STORE(name)                   \
  template <class T>                         \
  MXMACA_HD void name(T* pointer, T value) { \
    *pointer = value;                        \
  }
MXMACA_STORE(__stwb)
MXMACA_STORE(__stcg)
MXMACA_STORE(__stcs)
MXMACA_STORE(__stwt)
#undef MXMACA_STORE
#endif
