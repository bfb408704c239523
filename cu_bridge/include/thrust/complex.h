// Complex numbers for host and device. The functions are the C++ library's.
#pragma once

#include <cmath>
#include <complex>
#include <sstream>
#include <type_traits>

#include "../host_defines.h"
#include "detail/config.h"

namespace thrust {

template <class T>
struct alignas(2 * sizeof(T)) complex {
  using value_type = T;

  complex() = default;
  __host__ __device__ constexpr complex(const T& real) : re_(real), im_(T()) {}
  __host__ __device__ constexpr complex(const T& real, const T& imag) : re_(real), im_(imag) {}
  complex(const complex&) = default;
  template <class U>
  __host__ __device__ constexpr complex(const complex<U>& other)
      : re_(static_cast<T>(other.real())), im_(static_cast<T>(other.imag())) {}
  template <class U>
  __host__ __device__ constexpr complex(const std::complex<U>& other)
      : re_(static_cast<T>(other.real())), im_(static_cast<T>(other.imag())) {}

  complex& operator=(const complex&) = default;
  __host__ __device__ complex& operator=(const T& real) { return *this = complex(real); }
  template <class U>
  __host__ __device__ complex& operator=(const complex<U>& other) {
    return *this = complex(other);
  }
  template <class U>
  __host__ __device__ complex& operator=(const std::complex<U>& other) {
    return *this = complex(other);
  }
  __host__ __device__ operator std::complex<T>() const { return std::complex<T>(re_, im_); }

  __host__ __device__ constexpr T real() const { return re_; }
  __host__ __device__ constexpr T imag() const { return im_; }
  __host__ __device__ T real() const volatile { return re_; }
  __host__ __device__ T imag() const volatile { return im_; }
  __host__ __device__ void real(T value) { re_ = value; }
  __host__ __device__ void imag(T value) { im_ = value; }

  template <class U>
  __host__ __device__ complex& operator+=(const complex<U>& other) {
    return *this = *this + complex(other);
  }
  template <class U>
  __host__ __device__ complex& operator-=(const complex<U>& other) {
    return *this = *this - complex(other);
  }
  template <class U>
  __host__ __device__ complex& operator*=(const complex<U>& other) {
    return *this = *this * complex(other);
  }
  template <class U>
  __host__ __device__ complex& operator/=(const complex<U>& other) {
    return *this = *this / complex(other);
  }
  __host__ __device__ complex& operator+=(const T& other) { return *this = *this + other; }
  __host__ __device__ complex& operator-=(const T& other) { return *this = *this - other; }
  __host__ __device__ complex& operator*=(const T& other) { return *this = *this * other; }
  __host__ __device__ complex& operator/=(const T& other) { return *this = *this / other; }

 private:
  T re_, im_;
};

namespace detail {
template <class T>
__host__ __device__ std::complex<T> standard(const complex<T>& z) {
  return std::complex<T>(z.real(), z.imag());
}
template <class A, class B>
using common = std::common_type_t<A, B>;
}  // namespace detail

#define MXMACA_BINARY(op)                                                                                   \
  template <class A, class B>                                                                               \
  __host__ __device__ complex<detail::common<A, B>> operator op(const complex<A>& x, const complex<B>& y) { \
    using T = detail::common<A, B>;                                                                         \
    return complex<T>(detail::standard(complex<T>(x)) op detail::standard(complex<T>(y)));                  \
  }                                                                                                         \
  template <class A, class B, class = std::enable_if_t<std::is_arithmetic<B>::value>>                       \
  __host__ __device__ complex<detail::common<A, B>> operator op(const complex<A>& x, const B& y) {          \
    using T = detail::common<A, B>;                                                                         \
    return complex<T>(detail::standard(complex<T>(x)) op static_cast<T>(y));                                \
  }                                                                                                         \
  template <class A, class B, class = std::enable_if_t<std::is_arithmetic<A>::value>>                       \
  __host__ __device__ complex<detail::common<A, B>> operator op(const A& x, const complex<B>& y) {          \
    using T = detail::common<A, B>;                                                                         \
    return complex<T>(static_cast<T>(x) op detail::standard(complex<T>(y)));                                \
  }
MXMACA_BINARY(+)
MXMACA_BINARY(-)
MXMACA_BINARY(*)
MXMACA_BINARY(/)
#undef MXMACA_BINARY

template <class T>
__host__ __device__ complex<T> operator+(const complex<T>& z) {
  return z;
}
template <class T>
__host__ __device__ complex<T> operator-(const complex<T>& z) {
  return complex<T>(-z.real(), -z.imag());
}

template <class A, class B>
__host__ __device__ constexpr bool operator==(const complex<A>& x, const complex<B>& y) {
  return x.real() == y.real() && x.imag() == y.imag();
}
template <class A, class B>
__host__ __device__ constexpr bool operator==(const complex<A>& x, const std::complex<B>& y) {
  return x.real() == y.real() && x.imag() == y.imag();
}
template <class A, class B>
__host__ __device__ constexpr bool operator==(const std::complex<A>& x, const complex<B>& y) {
  return y == x;
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic<B>::value>>
__host__ __device__ constexpr bool operator==(const complex<A>& x, const B& y) {
  return x.real() == y && x.imag() == A();
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic<A>::value>>
__host__ __device__ constexpr bool operator==(const A& x, const complex<B>& y) {
  return y == x;
}
#if __cplusplus < 202002L
template <class A, class B>
__host__ __device__ constexpr bool operator!=(const complex<A>& x, const complex<B>& y) {
  return !(x == y);
}
template <class A, class B>
__host__ __device__ constexpr bool operator!=(const complex<A>& x, const std::complex<B>& y) {
  return !(x == y);
}
template <class A, class B>
__host__ __device__ constexpr bool operator!=(const std::complex<A>& x, const complex<B>& y) {
  return !(x == y);
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic<B>::value>>
__host__ __device__ constexpr bool operator!=(const complex<A>& x, const B& y) {
  return !(x == y);
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic<A>::value>>
__host__ __device__ constexpr bool operator!=(const A& x, const complex<B>& y) {
  return !(x == y);
}
#endif

#define MXMACA_REAL(name)                           \
  template <class T>                                \
  __host__ __device__ T name(const complex<T>& z) { \
    return std::name(detail::standard(z));          \
  }
MXMACA_REAL(abs)
MXMACA_REAL(arg)
MXMACA_REAL(norm)
#undef MXMACA_REAL

#define MXMACA_COMPLEX(name)                                 \
  template <class T>                                         \
  __host__ __device__ complex<T> name(const complex<T>& z) { \
    return complex<T>(std::name(detail::standard(z)));       \
  }
MXMACA_COMPLEX(conj)
MXMACA_COMPLEX(proj)
MXMACA_COMPLEX(exp)
MXMACA_COMPLEX(log)
MXMACA_COMPLEX(log10)
MXMACA_COMPLEX(sqrt)
MXMACA_COMPLEX(sin)
MXMACA_COMPLEX(cos)
MXMACA_COMPLEX(tan)
MXMACA_COMPLEX(sinh)
MXMACA_COMPLEX(cosh)
MXMACA_COMPLEX(tanh)
MXMACA_COMPLEX(asin)
MXMACA_COMPLEX(acos)
MXMACA_COMPLEX(atan)
MXMACA_COMPLEX(asinh)
MXMACA_COMPLEX(acosh)
MXMACA_COMPLEX(atanh)
#undef MXMACA_COMPLEX

template <class A, class B>
__host__ __device__ complex<detail::common<A, B>> polar(const A& magnitude, const B& angle) {
  using T = detail::common<A, B>;
  return complex<T>(std::polar(static_cast<T>(magnitude), static_cast<T>(angle)));
}
template <class T>
__host__ __device__ complex<T> polar(const T& magnitude) {
  return complex<T>(magnitude);
}

template <class A, class B>
__host__ __device__ complex<detail::common<A, B>> pow(const complex<A>& x, const complex<B>& y) {
  using T = detail::common<A, B>;
  return complex<T>(std::pow(detail::standard(complex<T>(x)), detail::standard(complex<T>(y))));
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic<B>::value>>
__host__ __device__ complex<detail::common<A, B>> pow(const complex<A>& x, const B& y) {
  using T = detail::common<A, B>;
  return complex<T>(std::pow(detail::standard(complex<T>(x)), static_cast<T>(y)));
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic<A>::value>>
__host__ __device__ complex<detail::common<A, B>> pow(const A& x, const complex<B>& y) {
  using T = detail::common<A, B>;
  return complex<T>(std::pow(static_cast<T>(x), detail::standard(complex<T>(y))));
}

template <class T, class Char, class Traits>
std::basic_ostream<Char, Traits>& operator<<(std::basic_ostream<Char, Traits>& stream, const complex<T>& z) {
  return stream << detail::standard(z);
}
template <class T, class Char, class Traits>
std::basic_istream<Char, Traits>& operator>>(std::basic_istream<Char, Traits>& stream, complex<T>& z) {
  std::complex<T> value;
  stream >> value;
  z = value;
  return stream;
}

}  // namespace thrust
