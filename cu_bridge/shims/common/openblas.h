// BLAS and LAPACK for the libraries that compute with dense matrices: OpenBLAS with 64-bit integers, as the package
// scipy-openblas64 brings it.
//
// Note [OpenBLAS is loaded late]
// Programs that only link cuBLAS, torch among them, must not pay for a BLAS. The first computation loads it: from
// $MACA_BLAS_LIBRARY, from the site-packages folder in which mxmaca lies, or by its SONAME on the linker's search path.
// Where it cannot be found, the reason is said once on stderr and the caller gets its library's NOT_INITIALIZED status.
// Threads follow OPENBLAS_NUM_THREADS and OMP_NUM_THREADS.
#pragma once

#include <complex>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <vector>

#include "stream_work.h"

namespace mxmaca {

// The library, or one of its functions, is missing; the reason has been said.
class BlasMissing : public std::exception {
 public:
  const char* what() const noexcept override { return "OpenBLAS is missing"; }
};

// An index of the caller's arrays lies outside its matrix or vector: on the device the access would fail.
struct BadIndex {};

// The row exchanges of `n` rows as LAPACK wants them; none where the caller gave none. Throws BadIndex.
template <class Integer>
std::vector<int64_t> widePivots(const Integer* pivots, int64_t n) {
  reachData();
  std::vector<int64_t> wide(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t pivot = pivots != nullptr ? static_cast<int64_t>(pivots[i]) : i + 1;
    if (pivot < 1 || pivot > n) throw BadIndex();
    wide[static_cast<size_t>(i)] = pivot;
  }
  return wide;
}

// Address of the function `name`, without the package's own prefix and suffix. Throws BlasMissing.
void* openblasSymbol(const char* name);

using BlasInt = int64_t;

template <class T>
struct Scalar;
template <>
struct Scalar<float> {
  using Real = float;
  static constexpr char letter = 's';
  static constexpr bool complex = false;
};
template <>
struct Scalar<double> {
  using Real = double;
  static constexpr char letter = 'd';
  static constexpr bool complex = false;
};
template <>
struct Scalar<std::complex<float>> {
  using Real = float;
  static constexpr char letter = 'c';
  static constexpr bool complex = true;
};
template <>
struct Scalar<std::complex<double>> {
  using Real = double;
  static constexpr char letter = 'z';
  static constexpr bool complex = true;
};
template <class T>
using Real = typename Scalar<T>::Real;
template <class T>
constexpr bool kComplex = Scalar<T>::complex;

template <class T>
T conjugate(T value) {
  if constexpr (kComplex<T>) {
    return std::conj(value);
  } else {
    return value;
  }
}

// The function of a type, such as "dgemm_" of "?gemm_", for who calls it with the program's data.
void* openblasTyped(const char* pattern, char letter);

// A function of LAPACK in its C interface, by its name with the type's letter written "?".
// Its integers are BlasInt, and the first argument is LAPACK_COL_MAJOR.
constexpr int kColumnMajor = 102;

}  // namespace mxmaca

// The function pointer for type T: MXMACA_BLAS(T, "?gemm_", void(const char*, ...)) looks it up once.
#define MXMACA_BLAS(T, pattern, ...)                                                               \
  ([] {                                                                                            \
    using Function = std::add_pointer_t<__VA_ARGS__>;                                              \
    static const auto found =                                                                      \
        reinterpret_cast<Function>(::mxmaca::openblasTyped(pattern, ::mxmaca::Scalar<T>::letter)); \
    ::mxmaca::reachData();                                                                         \
    return found;                                                                                  \
  }())
