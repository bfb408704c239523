// cuSPARSE's matrices in blocks: products and triangular solvers.

#include "blocks.h"
#include "pivots.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace mxmaca {
namespace cusparse {

Pattern elementsOf(const Blocks& a, bool transpose) {
  reachData();
  const Index dim = a.dim, base = a.descr->base;
  if (a.offsets[0] != base || a.offsets[a.rows] - base != a.nnz) throw BadIndex();
  struct Element {
    Index row, column, place;
  };
  std::vector<Element> elements;
  elements.reserve(static_cast<size_t>(a.nnz) * static_cast<size_t>(dim * dim));
  for (Index row = 0; row < a.rows; ++row) {
    if (a.offsets[row + 1] < a.offsets[row]) throw BadIndex();
    for (Index block = a.offsets[row] - base; block < a.offsets[row + 1] - base; ++block) {
      const Index column = inRange(a.inner[block] - base, a.columns);
      for (Index i = 0; i < dim; ++i) {
        for (Index j = 0; j < dim; ++j) {
          const Index place = block * dim * dim + (a.direction == CUSPARSE_DIRECTION_ROW ? i * dim + j : j * dim + i);
          elements.push_back({row * dim + i, column * dim + j, place});
          if (transpose) std::swap(elements.back().row, elements.back().column);
        }
      }
    }
  }
  std::stable_sort(elements.begin(), elements.end(), [](const Element& x, const Element& y) {
    return x.row != y.row ? x.row < y.row : x.column < y.column;
  });
  Pattern result;
  result.rows = (transpose ? a.columns : a.rows) * dim;
  result.columns = (transpose ? a.rows : a.columns) * dim;
  result.offsets.assign(static_cast<size_t>(result.rows + 1), 0);
  result.column.reserve(elements.size());
  result.place.reserve(elements.size());
  for (const Element& element : elements) {
    ++result.offsets[static_cast<size_t>(element.row + 1)];
    result.column.push_back(element.column);
    result.place.push_back(element.place);
  }
  for (size_t row = 0; row + 1 < result.offsets.size(); ++row) result.offsets[row + 1] += result.offsets[row];
  return result;
}

}  // namespace cusparse
}  // namespace mxmaca

namespace {

// A matrix of right sides or results, column after column, or its transpose.
template <class T>
struct Sides {
  T* values;
  Index ld;
  bool transpose;
  T& at(Index row, Index column) const { return values[transpose ? column + row * ld : row + column * ld]; }
};

template <class T>
void multiply(const Blocks& a, const T* values, T alpha, const Sides<const T>& x, T beta, const Sides<T>& y, Index n) {
  const Pattern pattern = elementsOf(a);
  for (Index row = 0; row < pattern.rows; ++row) {
    for (Index j = 0; j < n; ++j) {
      T sum(0);
      for (auto i = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row)]);
           i < static_cast<size_t>(pattern.offsets[static_cast<size_t>(row + 1)]); ++i) {
        sum += values[pattern.place[i]] * x.at(pattern.column[i], j);
      }
      T& result = y.at(row, j);
      result = alpha * sum + (beta == T(0) ? T(0) : beta * result);
    }
  }
}

// Solves op(A) x = alpha b, where A is the triangle that its description names. Returns the first zero pivot.
template <class T>
Index solve(const Blocks& a, cusparseOperation_t op, const T* values, T alpha, const Sides<const T>& b,
            const Sides<T>& x, Index n) {
  const Pattern pattern = elementsOf(a, op != CUSPARSE_OPERATION_NON_TRANSPOSE);
  const bool conjugated = op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
  const bool lower = (a.descr->fill == CUSPARSE_FILL_MODE_LOWER) == (op == CUSPARSE_OPERATION_NON_TRANSPOSE);
  const bool unit = a.descr->diagonal == CUSPARSE_DIAG_TYPE_UNIT;
  const Index rows = pattern.rows;
  std::vector<T> lines(static_cast<size_t>(rows * n));  // the right sides may be where the results go
  for (Index row = 0; row < rows; ++row) {
    for (Index j = 0; j < n; ++j) lines[static_cast<size_t>(row * n + j)] = alpha * b.at(row, j);
  }
  Index zero = kNoPivot;
  for (Index step = 0; step < rows; ++step) {
    const Index row = lower ? step : rows - 1 - step;
    T* const line = lines.data() + row * n;
    T diagonal(0);
    for (auto i = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row)]);
         i < static_cast<size_t>(pattern.offsets[static_cast<size_t>(row + 1)]); ++i) {
      const Index column = pattern.column[i];
      const T plain = values[pattern.place[i]], value = conjugated ? conjugate(plain) : plain;
      if (column == row) {
        diagonal += value;
      } else if ((column < row) == lower) {
        const T* const other = lines.data() + column * n;
        for (Index j = 0; j < n; ++j) line[j] -= value * other[j];
      }
    }
    if (unit) continue;
    if (diagonal == T(0)) zero = firstPivot(zero, row / a.dim);
    for (Index j = 0; j < n; ++j) line[j] /= diagonal;
  }
  for (Index row = 0; row < rows; ++row) {
    for (Index j = 0; j < n; ++j) x.at(row, j) = lines[static_cast<size_t>(row * n + j)];
  }
  return zero;
}

// What the products and the solvers with many sides ask of a matrix of sides.
Status checkSides(cusparseOperation_t op, Index rows, Index columns, const void* values, Index ld) {
  MXMACA_REQUIRE(valid(op) && (rows == 0 || columns == 0 || values != nullptr));
  MXMACA_REQUIRE(ld >= std::max<Index>(op == CUSPARSE_OPERATION_NON_TRANSPOSE ? rows : columns, 1));
  return op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? CUSPARSE_STATUS_NOT_SUPPORTED : CUSPARSE_STATUS_SUCCESS;
}
Status checkSolve(cusparseOperation_t op, cusparseOperation_t opSides = CUSPARSE_OPERATION_NON_TRANSPOSE, int n = 0) {
  MXMACA_REQUIRE(valid(op) && valid(opSides) && n >= 0);
  return opSides == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? CUSPARSE_STATUS_NOT_SUPPORTED : CUSPARSE_STATUS_SUCCESS;
}
Status checkPlain(cusparseOperation_t op) {
  MXMACA_REQUIRE(valid(op));
  return op == CUSPARSE_OPERATION_NON_TRANSPOSE ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_SUPPORTED;
}

}  // namespace

#define BSR_PRODUCTS(letter, T)                                                                                        \
  MXMACA_EXPORT Status cusparse##letter##bsrmv(cusparseHandle_t handle, cusparseDirection_t direction,                 \
                                               cusparseOperation_t op, int mb, int nb, int nnzb, const T* alpha,       \
                                               const cusparseMatDescr_t descr, const T* values, const int* offsets,    \
                                               const int* columns, int dim, const T* x, const T* beta, T* y) {         \
    MXMACA_LATER(Status, cusparse##letter##bsrmv, handle, direction, op, mb, nb, nnzb, scalars(handle, alpha), descr,  \
                 values, offsets, columns, dim, x, scalars(handle, beta), y);                                          \
    return guarded(handle, [&]() -> Status {                                                                           \
      const Blocks a{direction, mb, nb, nnzb, descr, offsets, columns, dim};                                           \
      MXMACA_RETURN_IF_FAILED(checkArrays(a, values));                                                                 \
      MXMACA_RETURN_IF_FAILED(checkPlain(op));                                                                         \
      MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && (nb == 0 || x != nullptr) && (mb == 0 || y != nullptr));   \
      reachData();                                                                                                     \
      multiply<Native<T>>(a, native(values), *native(alpha), {native(x), 0, false}, *native(beta),                     \
                          {native(y), 0, false}, 1);                                                                   \
      return CUSPARSE_STATUS_SUCCESS;                                                                                  \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##bsrmm(cusparseHandle_t handle, cusparseDirection_t direction,                 \
                                               cusparseOperation_t opA, cusparseOperation_t opB, int mb, int n,        \
                                               int kb, int nnzb, const T* alpha, const cusparseMatDescr_t descr,       \
                                               const T* values, const int* offsets, const int* columns, const int dim, \
                                               const T* b, const int ldb, const T* beta, T* c, int ldc) {              \
    MXMACA_LATER(Status, cusparse##letter##bsrmm, handle, direction, opA, opB, mb, n, kb, nnzb,                        \
                 scalars(handle, alpha), descr, values, offsets, columns, dim, b, ldb, scalars(handle, beta), c, ldc); \
    return guarded(handle, [&]() -> Status {                                                                           \
      const Blocks a{direction, mb, kb, nnzb, descr, offsets, columns, dim};                                           \
      MXMACA_RETURN_IF_FAILED(checkArrays(a, values));                                                                 \
      MXMACA_RETURN_IF_FAILED(checkPlain(opA));                                                                        \
      MXMACA_REQUIRE(n >= 0 && alpha != nullptr && beta != nullptr);                                                   \
      MXMACA_RETURN_IF_FAILED(checkSides(opB, Index{kb} * dim, n, b, ldb));                                            \
      MXMACA_RETURN_IF_FAILED(checkSides(CUSPARSE_OPERATION_NON_TRANSPOSE, Index{mb} * dim, n, c, ldc));               \
      reachData();                                                                                                     \
      multiply<Native<T>>(a, native(values), *native(alpha),                                                           \
                          {native(b), ldb, opB != CUSPARSE_OPERATION_NON_TRANSPOSE}, *native(beta),                    \
                          {native(c), ldc, false}, n);                                                                 \
      return CUSPARSE_STATUS_SUCCESS;                                                                                  \
    });                                                                                                                \
  }
BSR_PRODUCTS(S, float)
BSR_PRODUCTS(D, double)
BSR_PRODUCTS(C, cuComplex)
BSR_PRODUCTS(Z, cuDoubleComplex)

// ---- Triangular solvers ---------------------------------------------------------------------------------------------
MXMACA_INFO(Bsrsv2, bsrsv2)
MXMACA_INFO(Bsrsm2, bsrsm2)

#define BSRSV2(letter, T)                                                                                           \
  MXMACA_EXPORT Status cusparse##letter##bsrsv2_bufferSize(                                                         \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t op, int mb, int nnzb,             \
      const cusparseMatDescr_t descr, T*, const int* offsets, const int* columns, int dim, bsrsv2Info_t info,       \
      int* bytes) {                                                                                                 \
    return bufferFor(handle, {direction, mb, mb, nnzb, descr, offsets, columns, dim}, info, checkSolve(op), bytes); \
  }                                                                                                                 \
  MXMACA_EXPORT Status cusparse##letter##bsrsv2_bufferSizeExt(                                                      \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t op, int mb, int nnzb,             \
      const cusparseMatDescr_t descr, T*, const int* offsets, const int* columns, int dim, bsrsv2Info_t info,       \
      size_t* bytes) {                                                                                              \
    return bufferFor(handle, {direction, mb, mb, nnzb, descr, offsets, columns, dim}, info, checkSolve(op), bytes); \
  }                                                                                                                 \
  MXMACA_EXPORT Status cusparse##letter##bsrsv2_analysis(                                                           \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t op, int mb, int nnzb,             \
      const cusparseMatDescr_t descr, const T* values, const int* offsets, const int* columns, int dim,             \
      bsrsv2Info_t info, cusparseSolvePolicy_t policy, void* buffer) {                                              \
    return analyse(handle, {direction, mb, mb, nnzb, descr, offsets, columns, dim}, values, info, checkSolve(op),   \
                   policy, buffer, Diagonal::AsDescribed);                                                          \
  }                                                                                                                 \
  MXMACA_EXPORT Status cusparse##letter##bsrsv2_solve(                                                              \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t op, int mb, int nnzb,             \
      const T* alpha, const cusparseMatDescr_t descr, const T* values, const int* offsets, const int* columns,      \
      int dim, bsrsv2Info_t info, const T* f, T* x, cusparseSolvePolicy_t policy, void* buffer) {                   \
    MXMACA_LATER(Status, cusparse##letter##bsrsv2_solve, handle, direction, op, mb, nnzb, scalars(handle, alpha),   \
                 descr, values, offsets, columns, dim, info, f, x, policy, unread(buffer));                         \
    return guarded(handle, [&]() -> Status {                                                                        \
      const Blocks a{direction, mb, mb, nnzb, descr, offsets, columns, dim};                                        \
      MXMACA_RETURN_IF_FAILED(checkArrays(a, values));                                                              \
      MXMACA_REQUIRE(valid(op) && alpha != nullptr && analysed(info, policy) && aligned(buffer));                   \
      MXMACA_REQUIRE(mb == 0 || (f != nullptr && x != nullptr));                                                    \
      reachData();                                                                                                  \
      info->found->numerical =                                                                                      \
          solve<Native<T>>(a, op, native(values), *native(alpha), {native(f), 0, false}, {native(x), 0, false}, 1); \
      return CUSPARSE_STATUS_SUCCESS;                                                                               \
    });                                                                                                             \
  }
BSRSV2(S, float)
BSRSV2(D, double)
BSRSV2(C, cuComplex)
BSRSV2(Z, cuDoubleComplex)

#define BSRSM2(letter, T)                                                                                            \
  MXMACA_EXPORT Status cusparse##letter##bsrsm2_bufferSize(                                                          \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t opA, cusparseOperation_t opX,      \
      int mb, int n, int nnzb, const cusparseMatDescr_t descr, T*, const int* offsets, const int* columns, int dim,  \
      bsrsm2Info_t info, int* bytes) {                                                                               \
    return bufferFor(handle, {direction, mb, mb, nnzb, descr, offsets, columns, dim}, info, checkSolve(opA, opX, n), \
                     bytes);                                                                                         \
  }                                                                                                                  \
  MXMACA_EXPORT Status cusparse##letter##bsrsm2_bufferSizeExt(                                                       \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t opA, cusparseOperation_t opX,      \
      int mb, int n, int nnzb, const cusparseMatDescr_t descr, T*, const int* offsets, const int* columns, int dim,  \
      bsrsm2Info_t info, size_t* bytes) {                                                                            \
    return bufferFor(handle, {direction, mb, mb, nnzb, descr, offsets, columns, dim}, info, checkSolve(opA, opX, n), \
                     bytes);                                                                                         \
  }                                                                                                                  \
  MXMACA_EXPORT Status cusparse##letter##bsrsm2_analysis(                                                            \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t opA, cusparseOperation_t opX,      \
      int mb, int n, int nnzb, const cusparseMatDescr_t descr, const T* values, const int* offsets,                  \
      const int* columns, int dim, bsrsm2Info_t info, cusparseSolvePolicy_t policy, void* buffer) {                  \
    return analyse(handle, {direction, mb, mb, nnzb, descr, offsets, columns, dim}, values, info,                    \
                   checkSolve(opA, opX, n), policy, buffer, Diagonal::AsDescribed);                                  \
  }                                                                                                                  \
  MXMACA_EXPORT Status cusparse##letter##bsrsm2_solve(                                                               \
      cusparseHandle_t handle, cusparseDirection_t direction, cusparseOperation_t opA, cusparseOperation_t opX,      \
      int mb, int n, int nnzb, const T* alpha, const cusparseMatDescr_t descr, const T* values, const int* offsets,  \
      const int* columns, int dim, bsrsm2Info_t info, const T* b, int ldb, T* x, int ldx,                            \
      cusparseSolvePolicy_t policy, void* buffer) {                                                                  \
    MXMACA_LATER(Status, cusparse##letter##bsrsm2_solve, handle, direction, opA, opX, mb, n, nnzb,                   \
                 scalars(handle, alpha), descr, values, offsets, columns, dim, info, b, ldb, x, ldx, policy,         \
                 unread(buffer));                                                                                    \
    return guarded(handle, [&]() -> Status {                                                                         \
      const Blocks a{direction, mb, mb, nnzb, descr, offsets, columns, dim};                                         \
      MXMACA_RETURN_IF_FAILED(checkArrays(a, values));                                                               \
      MXMACA_REQUIRE(valid(opA) && n >= 0 && alpha != nullptr && analysed(info, policy) && aligned(buffer));         \
      MXMACA_RETURN_IF_FAILED(checkSides(opX, Index{mb} * dim, n, b, ldb));                                          \
      MXMACA_RETURN_IF_FAILED(checkSides(opX, Index{mb} * dim, n, x, ldx));                                          \
      reachData();                                                                                                   \
      const bool turned = opX != CUSPARSE_OPERATION_NON_TRANSPOSE;                                                   \
      info->found->numerical = solve<Native<T>>(a, opA, native(values), *native(alpha), {native(b), ldb, turned},    \
                                                {native(x), ldx, turned}, n);                                        \
      return CUSPARSE_STATUS_SUCCESS;                                                                                \
    });                                                                                                              \
  }
BSRSM2(S, float)
BSRSM2(D, double)
BSRSM2(C, cuComplex)
BSRSM2(Z, cuDoubleComplex)
