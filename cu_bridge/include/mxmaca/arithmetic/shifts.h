// Shifts as NVIDIA's hardware has them: by the width of the operand or more, everything is shifted out. cucc writes
// `a << to_left << b` where the text has `a << b`, so that operands and what binds them stay as they are.
#pragma once

#include <type_traits>

namespace mxmaca {
namespace shifts {

struct ShiftLeft {};
struct ShiftRight {};
constexpr ShiftLeft to_left{};
constexpr ShiftRight to_right{};

// A shift whose amount comes next. A reference, since objects have shifts of their own; a bit field is read into it.
// Types have no short names here: cucc asks for all declarations of the names that kernels have for types.
template <class T, class Way>
struct BegunShift {
  const T& value;
};
// The other operand of an assignment.
template <class N, class Way>
struct ShiftAmount {
  const N& value;
};

template <class T>
constexpr bool is_number =
    std::is_integral<typename std::remove_cv<T>::type>::value ||
    (std::is_enum<typename std::remove_cv<T>::type>::value && std::is_convertible<T, long long>::value)
#ifdef __SIZEOF_INT128__
    || std::is_same<typename std::remove_cv<T>::type, __int128>::value ||
    std::is_same<typename std::remove_cv<T>::type, unsigned __int128>::value
#endif
    ;

template <class T>
struct UnsignedOf : std::make_unsigned<T> {};
#ifdef __SIZEOF_INT128__
template <>
struct UnsignedOf<__int128> {
  using type = unsigned __int128;
};
template <>
struct UnsignedOf<unsigned __int128> {
  using type = unsigned __int128;
};
#endif

template <class T>
__attribute__((always_inline)) constexpr T shifted(T value, unsigned amount, ShiftLeft) {
  return amount < sizeof(T) * 8 ? static_cast<T>(static_cast<typename UnsignedOf<T>::type>(value) << amount) : T(0);
}
template <class T>
__attribute__((always_inline)) constexpr T shifted(T value, unsigned amount, ShiftRight) {
  return static_cast<T>(amount < sizeof(T) * 8 ? value >> amount : value < 0 ? -1 : 0);
}

template <class T>
__attribute__((always_inline)) constexpr BegunShift<T, ShiftLeft> operator<<(const T& value, ShiftLeft) {
  return {value};
}
template <class T>
__attribute__((always_inline)) constexpr BegunShift<T, ShiftRight> operator<<(const T& value, ShiftRight) {
  return {value};
}

template <class T, class Way, class N>
__attribute__((always_inline)) constexpr decltype(auto) operator<<(BegunShift<T, Way> begun, const N& amount) {
  if constexpr (is_number<T> && is_number<N>) {
    return shifted(+begun.value, static_cast<unsigned>(amount), Way());
  } else if constexpr (std::is_same<Way, ShiftLeft>::value) {
    return const_cast<T&>(begun.value) << amount;
  } else {
    return const_cast<T&>(begun.value) >> amount;
  }
}

template <class N>
__attribute__((always_inline)) constexpr ShiftAmount<N, ShiftLeft> operator<<=(ShiftLeft, const N& amount) {
  return {amount};
}
template <class N>
__attribute__((always_inline)) constexpr ShiftAmount<N, ShiftRight> operator<<=(ShiftRight, const N& amount) {
  return {amount};
}

template <class T, class N>
__attribute__((always_inline)) constexpr T& operator<<=(T& value, ShiftAmount<N, ShiftLeft> amount) {
  if constexpr (is_number<T> && is_number<N>) {
    value = static_cast<T>(shifted(+value, static_cast<unsigned>(amount.value), ShiftLeft()));
  } else {
    value <<= amount.value;
  }
  return value;
}
template <class T, class N>
__attribute__((always_inline)) constexpr T& operator>>=(T& value, ShiftAmount<N, ShiftRight> amount) {
  if constexpr (is_number<T> && is_number<N>) {
    value = static_cast<T>(shifted(+value, static_cast<unsigned>(amount.value), ShiftRight()));
  } else {
    value >>= amount.value;
  }
  return value;
}

}  // namespace shifts
}  // namespace mxmaca
