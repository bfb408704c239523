// Integers in inline PTX: fields, permuted bytes, dot products, several in a word. Included by ptx.h.
#pragma once

namespace mxmaca {
namespace ptx {

template <class T>
inline T mul_hi(T a, T b) {
  using Wide = std::conditional_t<std::is_signed<T>::value, __int128, unsigned __int128>;
  return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> (8 * sizeof(T)));
}
// The upper 32 of the 48 bits of a product of 24-bit numbers.
template <class T>
inline T mul24_hi(T a, T b) {
  constexpr unsigned rest = 8;
  const int64_t x = static_cast<T>(static_cast<uint32_t>(a) << rest) >> rest;
  const int64_t y = static_cast<T>(static_cast<uint32_t>(b) << rest) >> rest;
  return static_cast<T>(x * y >> 16);
}
template <class T>
inline T shift_left(T a, uint32_t by) {
  return by >= 8 * sizeof(T) ? T(0) : static_cast<T>(a << by);
}
template <class T>
inline T shift_right(T a, uint32_t by) {
  if (by >= 8 * sizeof(T)) return static_cast<T>(a < 0 ? -1 : 0);
  return static_cast<T>(a >> by);
}
template <class T>
inline T extract(T a, uint32_t position, uint32_t length) {
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  using U = std::make_unsigned_t<T>;
  const int p = static_cast<int>(position & 0xff), n = static_cast<int>(length & 0xff);
  const U u = static_cast<U>(a);
  U result = 0;
  // The sign is the field's top bit, or the word's where the field goes beyond it.
  const int top = p + n - 1 < bits - 1 ? p + n - 1 : bits - 1;
  const bool negative = std::is_signed<T>::value && n != 0 && (u >> top & 1) != 0;
  for (int i = 0; i < bits; ++i) {
    const bool bit = i < n && p + i < bits ? (u >> (p + i) & 1) != 0 : negative;
    result = static_cast<U>(result | (static_cast<U>(bit) << i));
  }
  return static_cast<T>(result);
}
template <class U>
inline U insert(U a, U b, uint32_t position, uint32_t length) {
  constexpr int bits = 8 * static_cast<int>(sizeof(U));
  const int p = static_cast<int>(position & 0xff), n = static_cast<int>(length & 0xff);
  for (int i = 0; i < n && p + i < bits; ++i) {
    b = static_cast<U>((b & ~(U{1} << (p + i))) | ((a >> i & 1) << (p + i)));
  }
  return b;
}
template <class T>
inline uint32_t find_leading(T a, bool shift_amount) {
  using U = std::make_unsigned_t<T>;
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  const U u = a < 0 ? static_cast<U>(~static_cast<U>(a)) : static_cast<U>(a);
  for (int i = bits - 1; i >= 0; --i) {
    if ((u >> i & 1) != 0) return static_cast<uint32_t>(shift_amount ? bits - 1 - i : i);
  }
  return 0xffffffffU;
}
inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  if ((table & 0x01) != 0) result |= ~a & ~b & ~c;
  if ((table & 0x02) != 0) result |= ~a & ~b & c;
  if ((table & 0x04) != 0) result |= ~a & b & ~c;
  if ((table & 0x08) != 0) result |= ~a & b & c;
  if ((table & 0x10) != 0) result |= a & ~b & ~c;
  if ((table & 0x20) != 0) result |= a & ~b & c;
  if ((table & 0x40) != 0) result |= a & b & ~c;
  if ((table & 0x80) != 0) result |= a & b & c;
  return result;
}

template <class T>
inline T clamped(__int128 exact) {
  constexpr __int128 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(exact < low ? low : exact > high ? high : exact);
}

// Bits from `position` on, as many as `width` says.
inline uint32_t mask_of_bits(uint32_t position, uint32_t width, bool wrap) {
  position = wrap ? position & 31 : position < 32 ? position : 32;
  width = wrap ? width & 31 : width < 32 ? width : 32;
  return static_cast<uint32_t>(((uint64_t{1} << width) - 1) << position);
}
// The value of the low `bits` bits.
template <class T>
inline T extended(T a, uint32_t bits, bool wrap) {
  bits = wrap ? bits & 31 : bits;
  if (bits == 0) return 0;
  if (bits >= 32) return a;
  return static_cast<T>(static_cast<uint32_t>(a) << (32 - bits)) >> (32 - bits);
}

// prmt's other modes say where byte i of the result comes from, of the bytes of a and then of b, by the number in its
// last operand.
template <class Place>
inline uint32_t permuted(uint32_t a, uint32_t b, uint32_t number, Place place) {
  const uint32_t n = number & 3;
  uint32_t places = 0;
  for (uint32_t i = 0; i < 4; ++i) places |= (place(n, i) & 7) << (4 * i);
  return __byte_perm(a, b, places);
}

// Products of bytes, and of 16-bit numbers with two bytes from `first` on, added to c.
template <class A, class B>
inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; ++i) c += static_cast<uint32_t>(static_cast<A>(a >> (8 * i)) * static_cast<B>(b >> (8 * i)));
  return c;
}
template <class A, class B>
inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, int first) {
  for (int i = 0; i < 2; ++i) {
    c += static_cast<uint32_t>(static_cast<A>(a >> (16 * i)) * static_cast<B>(b >> (8 * (first + i))));
  }
  return c;
}

// Two or four numbers in a word: A and B are the types of the operands', D that of the results, which are clamped to it
// or cut. Added up, or each in its place.
template <class D, class A, class B, bool saturate, bool sum, class Operation>
inline uint32_t packed(uint32_t a, uint32_t b, uint32_t c, Operation operation) {
  constexpr int bits = 8 * static_cast<int>(sizeof(D));
  uint32_t result = sum ? c : 0;
  for (int i = 0; i < 32; i += bits) {
    const int exact = operation(static_cast<int>(static_cast<A>(a >> i)), static_cast<int>(static_cast<B>(b >> i)));
    const D kept = saturate ? clamped<D>(exact) : static_cast<D>(exact);
    if (sum) {
      result += static_cast<uint32_t>(saturate ? static_cast<int>(kept) : exact);
    } else {
      result |= (static_cast<uint32_t>(kept) & ((uint64_t{1} << bits) - 1)) << i;
    }
  }
  return result;
}

// a and b as numbers of `bits` bits above each other, with c on top.
template <int bits, bool negative>
inline uint32_t packed_on(int32_t a, int32_t b, uint32_t c) {
  constexpr int low = negative ? -(1 << (bits - 1)) : 0, high = (1 << (negative ? bits - 1 : bits)) - 1;
  constexpr uint32_t mask = (1U << bits) - 1;
  const auto part = [](int32_t x) { return static_cast<uint32_t>(x < low ? low : x > high ? high : x) & mask; };
  const uint32_t above = bits == 16 ? 0 : c << (2 * bits % 32);
  return above | part(a) << bits | part(b);
}

}  // namespace ptx
}  // namespace mxmaca
