// cuSPARSE's solver of systems with five diagonals, in interleaved batches.

#include <array>

#include "blocks.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

constexpr int kLeastSize = 3;
constexpr Index kBelow = 2, kAbove = 4;  // diagonals of the eliminated matrix: exchanges of rows fill two above

// A row's elements from two columns before the diagonal to four behind it.
template <class T>
using Row = std::array<T, static_cast<size_t>(kBelow + 1 + kAbove)>;

// Gauss's elimination with exchanges of rows; `at` gives a place for an index of a system.
template <class T, class Place>
void solve(const T* ds, const T* dl, const T* d, const T* du, const T* dw, T* x, Index m, Place&& at) {
  std::vector<Row<T>> rows(static_cast<size_t>(m));
  const auto element = [&](Index row, Index column) -> T& {
    return rows[static_cast<size_t>(row)][static_cast<size_t>(column - row + kBelow)];
  };
  for (Index i = 0; i < m; ++i) {
    rows[static_cast<size_t>(i)] = {i > 1 ? ds[at(i)] : T(0),
                                    i > 0 ? dl[at(i)] : T(0),
                                    d[at(i)],
                                    i + 1 < m ? du[at(i)] : T(0),
                                    i + 2 < m ? dw[at(i)] : T(0),
                                    T(0),
                                    T(0)};
  }
  for (Index column = 0; column < m; ++column) {
    const Index last = std::min(column + kBelow, m - 1), end = std::min(column + kAbove, m - 1);
    Index pivot = column;
    for (Index row = column + 1; row <= last; ++row) {
      if (std::abs(element(row, column)) > std::abs(element(pivot, column))) pivot = row;
    }
    if (pivot != column) {
      for (Index j = column; j <= end; ++j) std::swap(element(pivot, j), element(column, j));
      std::swap(x[at(pivot)], x[at(column)]);
    }
    for (Index row = column + 1; row <= last; ++row) {
      const T factor = element(row, column) / element(column, column);
      for (Index j = column; j <= end; ++j) element(row, j) -= factor * element(column, j);
      x[at(row)] -= factor * x[at(column)];
    }
  }
  for (Index row = m; row-- > 0;) {
    T value = x[at(row)];
    for (Index j = row + 1; j <= std::min(row + kAbove, m - 1); ++j) value -= element(row, j) * x[at(j)];
    x[at(row)] = value / element(row, row);
  }
}

// The one algorithm is QR's number.
Status checkBatch(int algorithm, int m, int count) {
  MXMACA_REQUIRE(algorithm == 0 && m >= kLeastSize && count >= 0);
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

#define PENTADIAGONAL(letter, T)                                                                                      \
  MXMACA_EXPORT Status cusparse##letter##gpsvInterleavedBatch_bufferSizeExt(                                          \
      cusparseHandle_t handle, int algo, int m, const T*, const T*, const T*, const T*, const T*, const T*,           \
      int batchCount, size_t* bytes) {                                                                                \
    return sizeOfBuffer(handle, true, checkBatch(algo, m, batchCount), bytes);                                        \
  }                                                                                                                   \
  MXMACA_EXPORT Status cusparse##letter##gpsvInterleavedBatch(cusparseHandle_t handle, int algo, int m, T* ds, T* dl, \
                                                              T* d, T* du, T* dw, T* x, int batchCount,               \
                                                              void* buffer) {                                         \
    MXMACA_LATER(Status, cusparse##letter##gpsvInterleavedBatch, handle, algo, m, ds, dl, d, du, dw, x, batchCount,   \
                 unread(buffer));                                                                                     \
    return guarded(handle, [&]() -> Status {                                                                          \
      MXMACA_RETURN_IF_FAILED(checkBatch(algo, m, batchCount));                                                       \
      MXMACA_REQUIRE(ds != nullptr && dl != nullptr && d != nullptr && du != nullptr && dw != nullptr);               \
      MXMACA_REQUIRE(x != nullptr && aligned(buffer));                                                                \
      reachData();                                                                                                    \
      for (Index i = 0; i < batchCount; ++i) {                                                                        \
        solve<Native<T>>(native(ds), native(dl), native(d), native(du), native(dw), native(x), m,                     \
                         [=](Index row) { return row * batchCount + i; });                                            \
      }                                                                                                               \
      return CUSPARSE_STATUS_SUCCESS;                                                                                 \
    });                                                                                                               \
  }
PENTADIAGONAL(S, float)
PENTADIAGONAL(D, double)
PENTADIAGONAL(C, cuComplex)
PENTADIAGONAL(Z, cuDoubleComplex)
