// The number formats of CUDA's libraries and how they are read and written.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>

#include "cuComplex.h"
#include "library_types.h"
#include "stream_work.h"

struct __half;

namespace mxmaca {

// IEEE 754 binary16 and bfloat16 as stored.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

inline float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float toFloat(Half half) {
  const uint32_t sign = uint32_t{half.bits & 0x8000U} << 16;
  const uint32_t magnitude = half.bits & 0x7fffU;
  if (magnitude >= 0x7c00) return bitsToFloat(sign | 0x7f800000U | (magnitude & 0x3ff) << 13);
  // Subnormal numbers by arithmetic that also holds where the program has denormals flushed to zero.
  if (magnitude < 0x400) return bitsToFloat(sign | floatToBits(static_cast<float>(magnitude) * 0x1p-24F));
  return bitsToFloat(sign | ((magnitude << 13) + (112U << 23)));
}
inline float toFloat(BFloat16 value) { return bitsToFloat(uint32_t{value.bits} << 16); }

// Round to nearest, ties to even.
inline Half toHalf(float value) {
  const uint32_t bits = floatToBits(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return {static_cast<uint16_t>(sign | 0x7fff)};
  if (magnitude >= 0x477ff000U) return {static_cast<uint16_t>(sign | 0x7c00)};  // 65520 and more
  if (magnitude < 0x38800000U) {                                                // below 2^-14: a subnormal number
    // Adding 0.5 rounds to units of 2^-24 by the adder itself.
    const uint32_t rounded = floatToBits(bitsToFloat(magnitude) + 0.5F) - floatToBits(0.5F);
    return {static_cast<uint16_t>(sign | rounded)};
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13))};
}
inline BFloat16 toBFloat16(float value) {
  const uint32_t bits = floatToBits(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// FP8 as the OCP specification has it. Conversion to it saturates, as the libraries' do.
inline float fromE4M3(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  if ((code & 0x7f) == 0x7f) return bitsToFloat(0x7fc00000U);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}
inline float fromE5M2(uint8_t code) { return toFloat(Half{static_cast<uint16_t>(code << 8)}); }

inline uint8_t roundToFp8(float value, int mantissaBits, int lowestExponent, float greatest, uint8_t nan,
                          float (*decode)(uint8_t)) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  float magnitude = std::fabs(value);
  if (magnitude != magnitude) return nan;
  if (magnitude > greatest) magnitude = greatest;
  int exponent = magnitude == 0 ? lowestExponent : std::ilogb(magnitude);
  if (exponent < lowestExponent) exponent = lowestExponent;
  const float rounded = std::nearbyint(std::ldexp(magnitude, mantissaBits - exponent));
  magnitude = std::ldexp(rounded, exponent - mantissaBits);
  // The codes of positive numbers are in their order: a search finds the one that decodes to it.
  int low = 0;
  int high = 0x7f;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (decode(static_cast<uint8_t>(middle)) >= magnitude) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return static_cast<uint8_t>(sign | low);
}
inline uint8_t toE4M3(float value) { return roundToFp8(value, 3, -6, 448.F, 0x7f, fromE4M3); }
inline uint8_t toE5M2(float value) { return roundToFp8(value, 2, -14, 57344.F, 0x7f, fromE5M2); }

// ---- What C++ computes with for a type of the C interface -----------------------------------------------------------
template <class T>
struct NativeType {
  using Type = T;
};
template <>
struct NativeType<cuComplex> {
  using Type = std::complex<float>;
};
template <>
struct NativeType<cuDoubleComplex> {
  using Type = std::complex<double>;
};
template <>
struct NativeType<__half> {
  using Type = Half;
};
template <class T>
using Native = typename NativeType<T>::Type;

template <class T>
T native(T value) {
  return value;
}
inline std::complex<float> native(cuComplex value) { return {value.x, value.y}; }
inline std::complex<double> native(cuDoubleComplex value) { return {value.x, value.y}; }
#define MXMACA_NATIVE(T)                                                                          \
  inline Native<T>* native(T* p) { return reinterpret_cast<Native<T>*>(p); }                      \
  inline const Native<T>* native(const T* p) { return reinterpret_cast<const Native<T>*>(p); }    \
  inline Native<T>** native(T** p) { return reinterpret_cast<Native<T>**>(p); }                   \
  inline Native<T>* const* native(T* const* p) { return reinterpret_cast<Native<T>* const*>(p); } \
  inline const Native<T>* const* native(const T* const* p) { return reinterpret_cast<const Native<T>* const*>(p); }
MXMACA_NATIVE(cuComplex)
MXMACA_NATIVE(cuDoubleComplex)
MXMACA_NATIVE(__half)
#undef MXMACA_NATIVE

// ---- Types chosen at run time ---------------------------------------------------------------------------------------
// Bytes of one element; 0 for a type that is not known here.
size_t elementBytes(cudaDataType type);
bool isComplex(cudaDataType type);

// Element `index` of an array, and back, rounded once (FP8 and integers saturate). Real types have imaginary part 0.
std::complex<double> readElement(const void* data, cudaDataType type, int64_t index);
void writeElement(void* data, cudaDataType type, int64_t index, std::complex<double> value);

// `rows` x `columns` elements, column-major with leading dimension `ld`, as T without gaps, and back.
template <class T>
void readMatrix(const void* data, cudaDataType type, int64_t rows, int64_t columns, int64_t ld, T* out);
template <class T>
void writeMatrix(void* data, cudaDataType type, int64_t rows, int64_t columns, int64_t ld, const T* in);

// An address of a batch. A batch of empty matrices needs no addresses.
template <class Pointer>
Pointer at(const Pointer* pointers, int64_t index) {
  reachData();
  return pointers == nullptr ? nullptr : pointers[index];
}
// Whether one of a batch's addresses is missing. Which they are is not known before the call computes.
template <class Pointer>
bool hasNull(const Pointer* pointers, int64_t count) {
  return phase() != Phase::Checking && std::find(pointers, pointers + count, nullptr) != pointers + count;
}

}  // namespace mxmaca
