// Incomplete factorizations without fill: LU and Cholesky, of elements and of blocks.
//
// A matrix of blocks is factorized element by element. All elements of a block are in the pattern, so that this leaves
// what eliminating with whole blocks leaves: the factors of a block of the diagonal lie in its two triangles.

#include "pivots.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

// The places of one row's values, by column.
class RowPlaces {
 public:
  explicit RowPlaces(const Pattern& pattern) : pattern_(pattern), at_(static_cast<size_t>(pattern.columns), kNone) {}
  void enter(Index row) {
    each(row, [&](size_t i) { at_[static_cast<size_t>(pattern_.column[i])] = pattern_.place[i]; });
  }
  void leave(Index row) {
    each(row, [&](size_t i) { at_[static_cast<size_t>(pattern_.column[i])] = kNone; });
  }
  Index operator[](Index column) const { return at_[static_cast<size_t>(column)]; }

  static constexpr Index kNone = -1;

 private:
  template <class Visit>
  void each(Index row, Visit&& visit) {
    const auto end = static_cast<size_t>(pattern_.offsets[static_cast<size_t>(row + 1)]);
    for (auto i = static_cast<size_t>(pattern_.offsets[static_cast<size_t>(row)]); i < end; ++i) visit(i);
  }

  const Pattern& pattern_;
  std::vector<Index> at_;
};

size_t beginOf(const Pattern& pattern, Index row) {
  return static_cast<size_t>(pattern.offsets[static_cast<size_t>(row)]);
}

// A(i,j) of a diagonal that is not there divides as zero: what follows is infinite or not a number, as with a zero
// that is there.
template <class T>
T diagonalOf(const std::vector<Index>& places, Index row, const T* values) {
  const Index place = places[static_cast<size_t>(row)];
  return place == RowPlaces::kNone ? T(0) : values[place];
}

// Each returns the first row whose pivot is zero.
template <class T>
Index incompleteLu(const Pattern& pattern, T* values, const Boost& boost) {
  const double tolerance = boost.onHost ? boost.tolerance : boost.enabled ? *boost.toleranceOnDevice : 0;
  const T instead = boost.onHost    ? valueAs<T>(boost.value)
                    : boost.enabled ? *static_cast<const T*>(boost.valueOnDevice)
                                    : T(0);
  Index zero = kNoPivot;
  RowPlaces places(pattern);
  std::vector<Index> diagonal(static_cast<size_t>(pattern.rows), RowPlaces::kNone);
  for (Index row = 0; row < pattern.rows; ++row) {
    places.enter(row);
    const size_t end = beginOf(pattern, row + 1);
    for (size_t i = beginOf(pattern, row); i < end && pattern.column[i] < row; ++i) {
      const Index k = pattern.column[i];
      T& factor = values[pattern.place[i]];
      factor /= diagonalOf(diagonal, k, values);
      for (size_t j = beginOf(pattern, k + 1); j-- > beginOf(pattern, k) && pattern.column[j] > k;) {
        const Index to = places[pattern.column[j]];
        if (to != RowPlaces::kNone) values[to] -= factor * values[pattern.place[j]];
      }
    }
    const Index own = diagonal[static_cast<size_t>(row)] = places[row];
    if (own != RowPlaces::kNone && boost.enabled && tolerance >= std::abs(values[own])) values[own] = instead;
    if (diagonalOf(diagonal, row, values) == T(0)) zero = firstPivot(zero, row);
    places.leave(row);
  }
  return zero;
}

// Reads and writes the lower triangle alone.
template <class T>
Index incompleteCholesky(const Pattern& pattern, T* values) {
  Index zero = kNoPivot;
  RowPlaces places(pattern);
  std::vector<Index> diagonal(static_cast<size_t>(pattern.rows), RowPlaces::kNone);
  for (Index row = 0; row < pattern.rows; ++row) {
    places.enter(row);
    const size_t end = beginOf(pattern, row + 1);
    for (size_t i = beginOf(pattern, row); i < end && pattern.column[i] <= row; ++i) {
      const Index k = pattern.column[i];
      T& value = values[pattern.place[i]];
      for (size_t j = beginOf(pattern, k); j < beginOf(pattern, k + 1) && pattern.column[j] < k; ++j) {
        const Index with = places[pattern.column[j]];
        if (with != RowPlaces::kNone) value -= values[with] * conjugate(values[pattern.place[j]]);
      }
      if (k < row) value /= diagonalOf(diagonal, k, values);
    }
    const Index own = diagonal[static_cast<size_t>(row)] = places[row];
    const Real<T> square = std::real(diagonalOf(diagonal, row, values));
    if (!(square > 0)) zero = firstPivot(zero, row);
    if (own != RowPlaces::kNone) values[own] = T(std::sqrt(square));
    places.leave(row);
  }
  return zero;
}

template <class T>
Index factorize(const Pattern& pattern, T* values, const csrilu02Info& info) {
  return incompleteLu(pattern, values, info.boost);
}
template <class T>
Index factorize(const Pattern& pattern, T* values, const bsrilu02Info& info) {
  return incompleteLu(pattern, values, info.boost);
}
template <class T>
Index factorize(const Pattern& pattern, T* values, const csric02Info&) {
  return incompleteCholesky(pattern, values);
}
template <class T>
Index factorize(const Pattern& pattern, T* values, const bsric02Info&) {
  return incompleteCholesky(pattern, values);
}

template <class T, class Info>
Status run(const Blocks& a, T* values, Info* info, cusparseSolvePolicy_t policy, const void* buffer) {
  MXMACA_RETURN_IF_FAILED(checkArrays(a, values));
  MXMACA_REQUIRE(analysed(info, policy) && aligned(buffer));
  const Index zero = factorize(elementsOf(a), values, *info);
  info->found->numerical = zero == kNoPivot ? zero : zero / a.dim;
  return CUSPARSE_STATUS_SUCCESS;
}

// Scalars on the host are read at once, those on the device when the matrix is factorized.
template <class T, class Info>
Status setBoost(cusparseHandle_t handle, Info* info, int enable, const double* tolerance, const T* value) {
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(info));
    Boost boost;
    boost.enabled = enable != 0;
    if (boost.enabled) {
      MXMACA_REQUIRE(tolerance != nullptr && value != nullptr);
      boost.onHost = handleOf(handle)->pointerMode == CUSPARSE_POINTER_MODE_HOST;
      if (boost.onHost) {
        boost.tolerance = *tolerance;
        boost.value = std::complex<double>(*value);
      } else {
        boost.toleranceOnDevice = tolerance;
        boost.valueOnDevice = value;
      }
    }
    info->boost = boost;
    return CUSPARSE_STATUS_SUCCESS;
  });
}

}  // namespace

MXMACA_INFO(Csrilu02, csrilu02)
MXMACA_INFO(Csric02, csric02)
MXMACA_INFO(Bsrilu02, bsrilu02)
MXMACA_INFO(Bsric02, bsric02)

// The two forms of a matrix: their parameters, the arguments of a call, and what is computed with.
#define CSR_PARAMETERS(T) \
  int m, int nnz, const cusparseMatDescr_t descr, T *values, const int *offsets, const int *columns
#define CSR_ARGUMENTS m, nnz, descr, values, offsets, columns
#define CSR_MATRIX {CUSPARSE_DIRECTION_ROW, m, m, nnz, descr, offsets, columns, 1}
#define BSR_PARAMETERS(T)                                                                                         \
  cusparseDirection_t direction, int mb, int nnzb, const cusparseMatDescr_t descr, T *values, const int *offsets, \
      const int *columns, int dim
#define BSR_ARGUMENTS direction, mb, nnzb, descr, values, offsets, columns, dim
#define BSR_MATRIX {direction, mb, mb, nnzb, descr, offsets, columns, dim}

#define FACTORIZATION(FORM, letter, T, name, Analysed)                                                              \
  MXMACA_EXPORT Status cusparse##letter##name##_bufferSize(cusparseHandle_t handle, FORM##_PARAMETERS(T),           \
                                                           name##Info_t info, int* bytes) {                         \
    static_cast<void>(values);                                                                                      \
    return bufferFor(handle, FORM##_MATRIX, info, CUSPARSE_STATUS_SUCCESS, bytes);                                  \
  }                                                                                                                 \
  MXMACA_EXPORT Status cusparse##letter##name##_bufferSizeExt(cusparseHandle_t handle, FORM##_PARAMETERS(T),        \
                                                              name##Info_t info, size_t* bytes) {                   \
    static_cast<void>(values);                                                                                      \
    return bufferFor(handle, FORM##_MATRIX, info, CUSPARSE_STATUS_SUCCESS, bytes);                                  \
  }                                                                                                                 \
  MXMACA_EXPORT Status cusparse##letter##name##_analysis(cusparseHandle_t handle, FORM##_PARAMETERS(Analysed),      \
                                                         name##Info_t info, cusparseSolvePolicy_t policy,           \
                                                         void* buffer) {                                            \
    return analyse(handle, FORM##_MATRIX, values, info, CUSPARSE_STATUS_SUCCESS, policy, buffer, Diagonal::Needed); \
  }                                                                                                                 \
  MXMACA_EXPORT Status cusparse##letter##name(cusparseHandle_t handle, FORM##_PARAMETERS(T), name##Info_t info,     \
                                              cusparseSolvePolicy_t policy, void* buffer) {                         \
    MXMACA_LATER(Status, cusparse##letter##name, handle, FORM##_ARGUMENTS, info, policy, unread(buffer));           \
    return guarded(handle, [&]() -> Status { return run(FORM##_MATRIX, native(values), info, policy, buffer); });   \
  }
#define BOOST(letter, T, name)                                                                                       \
  MXMACA_EXPORT Status cusparse##letter##name##_numericBoost(cusparseHandle_t handle, name##Info_t info, int enable, \
                                                             double* tolerance, T* value) {                          \
    return setBoost(handle, info, enable, tolerance, native(value));                                                 \
  }

#define FACTORIZATIONS(letter, T)                  \
  FACTORIZATION(CSR, letter, T, csrilu02, const T) \
  FACTORIZATION(CSR, letter, T, csric02, const T)  \
  FACTORIZATION(BSR, letter, T, bsrilu02, T)       \
  FACTORIZATION(BSR, letter, T, bsric02, const T)  \
  BOOST(letter, T, csrilu02)                       \
  BOOST(letter, T, bsrilu02)
FACTORIZATIONS(S, float)
FACTORIZATIONS(D, double)
FACTORIZATIONS(C, cuComplex)
FACTORIZATIONS(Z, cuDoubleComplex)
