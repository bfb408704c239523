// What inline PTX is translated to: registers are raw words, instructions see them as the type in their name.
// Semantics: PTX ISA 8.
#pragma once

#include <stdint.h>
#include <string.h>
#include <time.h>

#include <limits>
#include <type_traits>

#include "../device_functions.h"
#include "arithmetic/directed_rounding.h"
#include "arithmetic/integer_rounding.h"
#include "arithmetic/narrow_float.h"
#include "ptx/integers.h"
#include "warp_table.h"

namespace mxmaca {
namespace ptx {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct F16x2 {
  F16 low, high;
};
struct BF16x2 {
  BF16 low, high;
};

// The carry flag. Nothing that waits stands between instructions that use it, so it is the running thread's.
static __attribute__((unused)) __thread bool carry = false;

template <bool Keep, class T>
inline T add_with(T a, T b, bool more) {
  T sum;
  const bool first = __builtin_add_overflow(a, b, &sum), second = __builtin_add_overflow(sum, T(more), &sum);
  if (Keep) carry = first || second;
  return sum;
}
template <bool Keep, class T>
inline T subtract_with(T a, T b, bool less) {
  T difference;
  const bool first = __builtin_sub_overflow(a, b, &difference);
  const bool second = __builtin_sub_overflow(difference, T(less), &difference);
  if (Keep) carry = first || second;
  return difference;
}

// A register read as T: the same bits, or where sizes differ the low ones.
template <class T, class Register>
inline T as(const Register& value) {
  if constexpr (sizeof(T) == sizeof(Register)) {
    return bit_cast<T>(value);
  } else {
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value < 8 ? sizeof value : 8);
    T result;
    memcpy(static_cast<void*>(&result), &word, sizeof(T));
    return result;
  }
}
// A result into a register, which may be wider: signed ones extend their sign.
template <class Register, class T>
inline void put(Register& target, T value) {
  if constexpr (sizeof(T) == sizeof(Register)) {
    target = bit_cast<Register>(value);
  } else if constexpr (std::is_integral<T>::value && std::is_integral<Register>::value) {
    target = static_cast<Register>(value);
  } else {
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    memcpy(&target, &word, sizeof target);
  }
}

// C++ operands of the statement to registers and back.
template <class Register, class T>
inline Register in(const T& value) {
  if constexpr (std::is_pointer<T>::value || std::is_null_pointer<T>::value) {
    return static_cast<Register>(reinterpret_cast<uintptr_t>(value));
  } else if constexpr (std::is_arithmetic<T>::value || std::is_enum<T>::value) {
    return static_cast<Register>(value);
  } else {
    static_assert(sizeof(T) == sizeof(Register),
                  "the operand of an asm statement has another size than its constraint says");
    return bit_cast<Register>(value);
  }
}
template <class Register, class T, size_t N>
inline Register in(const T (&array)[N]) {
  return static_cast<Register>(reinterpret_cast<uintptr_t>(&array[0]));
}
template <class T, class Register>
inline void out(T& target, Register value) {
  if constexpr (std::is_pointer<T>::value) {
    target = reinterpret_cast<T>(static_cast<uintptr_t>(value));
  } else if constexpr (std::is_arithmetic<T>::value || std::is_enum<T>::value) {
    target = static_cast<T>(value);
  } else {
    static_assert(sizeof(T) == sizeof(Register),
                  "the operand of an asm statement has another size than its constraint says");
    target = bit_cast<T>(value);
  }
}

// Nanoseconds.
inline uint64_t global_timer() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
}

// ---- Shared addresses -----------------------------------------------------------------------------------------------
// A shared address is 32 bits: the number of a window of memory and a place in it. Windows are noted when a pointer is
// converted; a block's worker keeps its shared memory, so there are few.
struct SharedWindows {
  static constexpr unsigned window_bits = 20, windows = 1U << (32 - window_bits);
  uintptr_t base[windows];
  unsigned count;
};
static thread_local SharedWindows* __attribute__((unused)) shared_windows = nullptr;

inline uint32_t shared_address(const void* pointer) {
  constexpr uintptr_t size = uintptr_t{1} << SharedWindows::window_bits, margin = size / 4;
  if (shared_windows == nullptr) shared_windows = new SharedWindows();
  SharedWindows& all = *shared_windows;
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  for (unsigned i = 0; i < all.count; ++i) {
    const uintptr_t place = address - all.base[i];
    if (place >= margin && place < size - margin) return static_cast<uint32_t>(i << SharedWindows::window_bits | place);
  }
  // No kernel has 4096 places of shared memory a thread; better a stop than a wrong address.
  if (all.count == SharedWindows::windows) __builtin_trap();
  all.base[all.count] = address - size / 2;
  return static_cast<uint32_t>(all.count++ << SharedWindows::window_bits | size / 2);
}
inline void* shared_pointer(uint64_t address) {
  // A generic pointer in place of a shared address serves as well.
  if (address >> 32 != 0) return reinterpret_cast<void*>(address);
  const unsigned window = static_cast<unsigned>(address >> SharedWindows::window_bits);
  if (shared_windows == nullptr || window >= shared_windows->count) __builtin_trap();
  const uintptr_t place = address & ((uintptr_t{1} << SharedWindows::window_bits) - 1);
  return reinterpret_cast<void*>(shared_windows->base[window] + place);
}
inline void* generic_pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// ---- Floating point -------------------------------------------------------------------------------------------------
inline float value(float a) { return a; }
inline float rounded_to(float, float v) { return v; }
inline float value(F16 a) { return half_value(a.bits); }
inline float value(BF16 a) { return bfloat16_value(a.bits); }
inline F16 rounded_to(F16, float v) { return F16{half_bits(v)}; }
inline BF16 rounded_to(BF16, float v) { return BF16{bfloat16_bits(v)}; }
inline F16 rounded_to(F16, double v) { return F16{encode<HalfFormat>(v)}; }
inline BF16 rounded_to(BF16, double v) { return BF16{encode<BFloat16Format>(v)}; }

template <class T>
inline T flushed(T a) {
  return a != 0 && (a < 0 ? -a : a) < std::numeric_limits<T>::min() ? static_cast<T>(a < 0 ? T(-0.0) : T(0)) : a;
}
template <class T>
inline T saturated(T a) {
  return a > 0 ? (a < 1 ? a : T(1)) : T(0);
}
template <class T>
inline T smaller(T a, T b, bool keep_nan) {
  if (a != a || b != b) return keep_nan || (a != a && b != b) ? std::numeric_limits<T>::quiet_NaN() : a != a ? b : a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
inline T larger(T a, T b, bool keep_nan) {
  return -smaller(static_cast<T>(-a), static_cast<T>(-b), keep_nan);
}
#define MXMACA_NARROW(type)                                                                                       \
  inline type add(type a, type b) { return rounded_to(type(), value(a) + value(b)); }                             \
  inline type sub(type a, type b) { return rounded_to(type(), value(a) - value(b)); }                             \
  inline type mul(type a, type b) { return rounded_to(type(), value(a) * value(b)); }                             \
  inline type fma(type a, type b, type c) { return rounded_to(type(), fused_odd(value(a), value(b), value(c))); } \
  inline type min(type a, type b) { return rounded_to(type(), smaller(value(a), value(b), false)); }              \
  inline type max(type a, type b) { return rounded_to(type(), larger(value(a), value(b), false)); }               \
  inline type neg(type a) { return type{static_cast<uint16_t>(a.bits ^ 0x8000)}; }                                \
  inline type abs(type a) { return type{static_cast<uint16_t>(a.bits & 0x7fff)}; }                                \
  inline type ex2(type a) { return rounded_to(type(), ::exp2f(value(a))); }                                       \
  inline type tanh(type a) { return rounded_to(type(), ::tanhf(value(a))); }                                      \
  inline type##x2 add(type##x2 a, type##x2 b) { return {add(a.low, b.low), add(a.high, b.high)}; }                \
  inline type##x2 sub(type##x2 a, type##x2 b) { return {sub(a.low, b.low), sub(a.high, b.high)}; }                \
  inline type##x2 mul(type##x2 a, type##x2 b) { return {mul(a.low, b.low), mul(a.high, b.high)}; }                \
  inline type##x2 fma(type##x2 a, type##x2 b, type##x2 c) {                                                       \
    return {fma(a.low, b.low, c.low), fma(a.high, b.high, c.high)};                                               \
  }                                                                                                               \
  inline type##x2 min(type##x2 a, type##x2 b) { return {min(a.low, b.low), min(a.high, b.high)}; }                \
  inline type##x2 max(type##x2 a, type##x2 b) { return {max(a.low, b.low), max(a.high, b.high)}; }                \
  inline type##x2 neg(type##x2 a) { return {neg(a.low), neg(a.high)}; }                                           \
  inline type##x2 abs(type##x2 a) { return {abs(a.low), abs(a.high)}; }                                           \
  inline type##x2 ex2(type##x2 a) { return {ex2(a.low), ex2(a.high)}; }                                           \
  inline type##x2 tanh(type##x2 a) { return {tanh(a.low), tanh(a.high)}; }
MXMACA_NARROW(F16)
MXMACA_NARROW(BF16)
#undef MXMACA_NARROW

// ---- Modifiers: .ftz, .sat, .relu, .NaN, .xorsign.abs --------------------------------------------------------------
inline F16 flushed(F16 a) { return (a.bits & 0x7c00) == 0 ? F16{static_cast<uint16_t>(a.bits & 0x8000)} : a; }
inline BF16 flushed(BF16 a) { return (a.bits & 0x7f80) == 0 ? BF16{static_cast<uint16_t>(a.bits & 0x8000)} : a; }
template <class T>
inline T limited_from(T a, float low, float high) {
  const float v = value(a);
  if (v != v) return high == 1 ? T{0} : T{0x7fff};  // .sat makes a NaN 0, .relu keeps it
  return v > low ? (v < high ? a : rounded_to(T(), high)) : T{0};
}
constexpr float unlimited = std::numeric_limits<float>::infinity();
inline F16 saturated(F16 a) { return limited_from(a, 0, 1); }
inline BF16 saturated(BF16 a) { return limited_from(a, 0, 1); }
inline F16 relu(F16 a) { return limited_from(a, 0, unlimited); }
inline BF16 relu(BF16 a) { return limited_from(a, 0, unlimited); }
inline float relu(float a) { return a != a ? a : a > 0 ? a : 0.0F; }
#define MXMACA_EACH(type)                                                                                      \
  inline type##x2 flushed(type##x2 a) { return {flushed(a.low), flushed(a.high)}; }                            \
  inline type##x2 saturated(type##x2 a) { return {saturated(a.low), saturated(a.high)}; }                      \
  inline type##x2 relu(type##x2 a) { return {relu(a.low), relu(a.high)}; }                                     \
  inline type min_nan(type a, type b) { return rounded_to(type(), smaller(value(a), value(b), true)); }        \
  inline type max_nan(type a, type b) { return rounded_to(type(), larger(value(a), value(b), true)); }         \
  inline type##x2 min_nan(type##x2 a, type##x2 b) { return {min_nan(a.low, b.low), min_nan(a.high, b.high)}; } \
  inline type##x2 max_nan(type##x2 a, type##x2 b) { return {max_nan(a.low, b.low), max_nan(a.high, b.high)}; }
MXMACA_EACH(F16)
MXMACA_EACH(BF16)
#undef MXMACA_EACH

// ---- 8-bit formats --------------------------------------------------------------------------------------------------
// wide: E5M2, which is the upper half of a half; else E4M3, which has no infinities.
template <bool wide>
inline float fp8_value(uint8_t bits) {
  if (wide) return half_value(static_cast<uint16_t>(bits << 8));
  const uint32_t magnitude = bits & 0x7fU;
  float result = static_cast<float>(magnitude) * 0x1p-9F;
  if (magnitude == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude >= 8) result = bit_cast<float>((magnitude << 20) + (120U << 23));
  return (bits & 0x80) != 0 ? -result : result;
}
// To nearest; what is too large becomes the largest finite value.
template <bool wide>
inline uint16_t fp8_bits(float a) {
  if (a != a) return 0x7f;
  const bool negative = std::signbit(a);
  constexpr uint32_t largest = wide ? 0x7b : 0x7e;
  uint32_t bits = largest;
  const double magnitude = negative ? -static_cast<double>(a) : a;
  if (magnitude <= std::numeric_limits<float>::max()) {
    bits = encode_magnitude<Format<wide ? 5 : 4, wide ? 2 : 3>>(magnitude, negative, Rounding::nearest);
    if (bits > largest) bits = largest;
  }
  return static_cast<uint16_t>(bits | (negative ? 0x80U : 0U));
}
template <bool wide>
inline uint16_t fp8_pair(float high, float low) {
  return static_cast<uint16_t>(fp8_bits<wide>(high) << 8 | fp8_bits<wide>(low));
}

// ---- TF32: a float with 10 bits of the fraction ---------------------------------------------------------------------
// away: a tie goes away from zero, else to an even number.
inline float tf32(float a, bool away, bool cut) {
  const uint32_t bits = bit_cast<uint32_t>(a);
  if ((bits & 0x7f800000U) == 0x7f800000U) return a != a ? bit_cast<float>(0x7fffffffU) : a;
  const uint32_t more = cut ? 0 : away ? 0x1000 : 0xfff + (bits >> 13 & 1);
  return bit_cast<float>((bits + more) & 0xffffe000U);
}

template <class T>
struct is_narrow : std::bool_constant<std::is_same<T, F16>::value || std::is_same<T, BF16>::value> {};

// cvt: from From to To. `whole` rounds a float to an integral float (rni and its kin).
template <class To, Rounding mode, bool saturate, bool whole, class From>
inline To convert(From from) {
  if constexpr (is_narrow<From>::value) {
    return convert<To, mode, saturate, whole>(value(from));
  } else if constexpr (is_narrow<To>::value) {
    using Format = std::conditional_t<std::is_same<To, F16>::value, HalfFormat, BFloat16Format>;
    double exact;
    if constexpr (std::is_integral<From>::value) {
      exact = integer_odd(static_cast<std::conditional_t<std::is_signed<From>::value, int64_t, uint64_t>>(from));
    } else {
      exact = from;
    }
    if (whole) exact = rounded(exact, mode);
    if (saturate) exact = saturated(exact);
    return To{encode<Format>(exact, mode)};
  } else if constexpr (std::is_floating_point<From>::value && std::is_integral<To>::value) {
    return to_integer<To>(from, mode);
  } else if constexpr (std::is_floating_point<To>::value) {
    To result;
    if constexpr (std::is_floating_point<From>::value) {
      result = whole ? static_cast<To>(rounded(from, mode)) : in_mode<mode>(Convert<To>(), from);
    } else {
      result = in_mode<mode>(Convert<To>(), from);
    }
    return saturate ? saturated(result) : result;
  } else {
    if constexpr (saturate) {
      using Wide = __int128;
      const Wide wide = from, low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
      return static_cast<To>(wide < low ? low : wide > high ? high : wide);
    }
    return static_cast<To>(from);
  }
}

// ---- Memory ---------------------------------------------------------------------------------------------------------
template <class T>
inline T load(const void* pointer) {
  T result;
  memcpy(static_cast<void*>(&result), pointer, sizeof(T));
  return result;
}
template <class T>
inline void store(void* pointer, T value) {
  memcpy(pointer, static_cast<const void*>(&value), sizeof(T));
}
template <class T>
inline T load_ordered(const void* pointer) {
  ::mxmaca::spun();  // a flag that the thread waits for
  T result;
  __atomic_load(static_cast<const T*>(pointer), &result, __ATOMIC_SEQ_CST);
  return result;
}
template <class T>
inline void store_ordered(void* pointer, T value) {
  __atomic_store(static_cast<T*>(pointer), &value, __ATOMIC_SEQ_CST);
}
template <class T, class Operation>
inline T atomic(void* pointer, Operation operation) {
  T* const cell = static_cast<T*>(pointer);
  T old, next;
  __atomic_load(cell, &old, __ATOMIC_RELAXED);
  do {
    next = operation(old);
  } while (!__atomic_compare_exchange(cell, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}
// What a vector holds, in words that are read and written at once: programs put a value and its flag into one.
template <class T, int count>
inline void load_vector(const void* pointer, T (&result)[count]) {
  ::mxmaca::spun();
  uint64_t words[count * sizeof(T) / 8];
  for (size_t i = 0; i < count * sizeof(T) / 8; ++i) {
    words[i] = __atomic_load_n(static_cast<const uint64_t*>(pointer) + i, __ATOMIC_SEQ_CST);
  }
  memcpy(static_cast<void*>(result), words, sizeof words);
}
template <class T, int count>
inline void store_vector(void* pointer, const T (&values)[count]) {
  uint64_t words[count * sizeof(T) / 8];
  memcpy(words, static_cast<const void*>(values), sizeof words);
  for (size_t i = 0; i < count * sizeof(T) / 8; ++i) {
    __atomic_store_n(static_cast<uint64_t*>(pointer) + i, words[i], __ATOMIC_SEQ_CST);
  }
}
inline void copy_part(void* to, const void* from, uint32_t bytes, uint32_t given) {
  memcpy(to, from, given < bytes ? given : bytes);
  if (given < bytes) memset(static_cast<char*>(to) + given, 0, bytes - given);
}

}  // namespace ptx
}  // namespace mxmaca

#include "ptx/barriers.h"
#include "ptx/matrices.h"

inline __device__ size_t __cvta_generic_to_shared(const void* pointer) { return mxmaca::ptx::shared_address(pointer); }
inline __device__ void* __cvta_shared_to_generic(size_t address) { return mxmaca::ptx::shared_pointer(address); }
inline __device__ size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
inline __device__ void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline __device__ size_t __cvta_generic_to_local(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
inline __device__ size_t __cvta_generic_to_constant(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
