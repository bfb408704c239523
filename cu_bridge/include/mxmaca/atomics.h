// CUDA's atomic functions. Blocks run on several processors at once, so these are the processor's own for the scopes of
// device and system. The threads of one block take turns on one processor, and change only where they wait: in the
// block's scope an operation is whole by itself.
#pragma once

#include <type_traits>

#include "execution.h"

namespace mxmaca {

template <class T, class Change>
static inline T change_atomically(T* address, Change change) {
  using Word = typename std::conditional<
      sizeof(T) == 2, unsigned short,
      typename std::conditional<sizeof(T) == 4, unsigned int, unsigned long long>::type>::type;
  static_assert(sizeof(T) == sizeof(Word), "an atomic operand has 2, 4 or 8 bytes");
  auto* const place = reinterpret_cast<Word*>(address);
  Word old = __atomic_load_n(place, __ATOMIC_RELAXED);
  for (;;) {
    T value;
    __builtin_memcpy(&value, &old, sizeof value);
    const T wanted = change(value);
    Word word;
    __builtin_memcpy(&word, &wanted, sizeof word);
    if (__atomic_compare_exchange_n(place, &old, word, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return value;
  }
}

}  // namespace mxmaca

#define MXMACA_SYSTEM(result, name, parameters, arguments) \
  static inline result name##_system parameters { return name arguments; }

// Sums and differences wrap, as those of the processor do. `atomicAdd(p, 0)` is how programs read a flag that they wait
// for.
#define MXMACA_BUILTIN(type, name, builtin, sign)                                       \
  static inline type name(type* address, type value) {                                  \
    if (value == 0) mxmaca::spun();                                                     \
    return builtin(address, value, __ATOMIC_SEQ_CST);                                   \
  }                                                                                     \
  static inline type name##_block(type* address, type value) {                          \
    using Wide = unsigned long long;                                                    \
    if (__builtin_constant_p(value) && value == 0) mxmaca::spun();                      \
    const type old = *address;                                                          \
    *address = static_cast<type>(static_cast<Wide>(old) sign static_cast<Wide>(value)); \
    return old;                                                                         \
  }                                                                                     \
  MXMACA_SYSTEM(type, name, (type * address, type value), (address, value))

#define MXMACA_INTEGERS(name, builtin, sign)        \
  MXMACA_BUILTIN(int, name, builtin, sign)          \
  MXMACA_BUILTIN(unsigned int, name, builtin, sign) \
  MXMACA_BUILTIN(unsigned long long, name, builtin, sign)

MXMACA_INTEGERS(atomicAdd, __atomic_fetch_add, +)
MXMACA_BUILTIN(int, atomicSub, __atomic_fetch_sub, -)
MXMACA_BUILTIN(unsigned int, atomicSub, __atomic_fetch_sub, -)
MXMACA_INTEGERS(atomicAnd, __atomic_fetch_and, &)
MXMACA_INTEGERS(atomicOr, __atomic_fetch_or, |)
MXMACA_INTEGERS(atomicXor, __atomic_fetch_xor, ^)

#define MXMACA_CHANGE(type, name, expression)                                                    \
  static inline type name(type* address, type value) {                                           \
    return mxmaca::change_atomically(address, [value](type old) -> type { return expression; }); \
  }                                                                                              \
  static inline type name##_block(type* address, type value) {                                   \
    const type old = *address;                                                                   \
    *address = expression;                                                                       \
    return old;                                                                                  \
  }                                                                                              \
  MXMACA_SYSTEM(type, name, (type * address, type value), (address, value))

MXMACA_CHANGE(float, atomicAdd, old + value)
MXMACA_CHANGE(double, atomicAdd, old + value)
MXMACA_CHANGE(int, atomicMin, value < old ? value : old)
MXMACA_CHANGE(unsigned int, atomicMin, value < old ? value : old)
MXMACA_CHANGE(long long, atomicMin, value < old ? value : old)
MXMACA_CHANGE(unsigned long long, atomicMin, value < old ? value : old)
MXMACA_CHANGE(int, atomicMax, value > old ? value : old)
MXMACA_CHANGE(unsigned int, atomicMax, value > old ? value : old)
MXMACA_CHANGE(long long, atomicMax, value > old ? value : old)
MXMACA_CHANGE(unsigned long long, atomicMax, value > old ? value : old)
MXMACA_CHANGE(unsigned int, atomicInc, old >= value ? 0 : old + 1)
MXMACA_CHANGE(unsigned int, atomicDec, old == 0 || old > value ? value : old - 1)

#define MXMACA_EXCHANGE(type)                                      \
  static inline type atomicExch(type* address, type value) {       \
    mxmaca::spun();                                                \
    type old;                                                      \
    __atomic_exchange(address, &value, &old, __ATOMIC_SEQ_CST);    \
    return old;                                                    \
  }                                                                \
  static inline type atomicExch_block(type* address, type value) { \
    mxmaca::spun();                                                \
    const type old = *address;                                     \
    *address = value;                                              \
    return old;                                                    \
  }                                                                \
  MXMACA_SYSTEM(type, atomicExch, (type * address, type value), (address, value))

MXMACA_EXCHANGE(int)
MXMACA_EXCHANGE(unsigned int)
MXMACA_EXCHANGE(unsigned long long)
MXMACA_EXCHANGE(float)

#define MXMACA_COMPARE(type)                                                                           \
  static inline type atomicCAS(type* address, type expected, type value) {                             \
    mxmaca::spun();                                                                                    \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    return expected;                                                                                   \
  }                                                                                                    \
  static inline type atomicCAS_block(type* address, type expected, type value) {                       \
    mxmaca::spun();                                                                                    \
    const type old = *address;                                                                         \
    if (old == expected) *address = value;                                                             \
    return old;                                                                                        \
  }                                                                                                    \
  MXMACA_SYSTEM(type, atomicCAS, (type * address, type expected, type value), (address, expected, value))

MXMACA_COMPARE(int)
MXMACA_COMPARE(unsigned int)
MXMACA_COMPARE(unsigned long long)
MXMACA_COMPARE(unsigned short)

#undef MXMACA_SYSTEM
#undef MXMACA_BUILTIN
#undef MXMACA_INTEGERS
#undef MXMACA_CHANGE
#undef MXMACA_EXCHANGE
#undef MXMACA_COMPARE
