// cuSPARSE's conversions between rows and blocks, counts of a dense matrix's elements, and its product with a sparse
// vector.

#include "blocks.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

// A matrix in CSR of which no count of elements was given.
struct Rows {
  int m, n;
  cusparseMatDescr_t descr;
  const int *offsets, *columns;
  Index begin(Index row) const { return offsets[row] - descr->base; }
  Index column(Index place) const { return inRange(columns[place] - descr->base, n); }
};

Status checkConversion(cusparseDirection_t direction, int rows, int columns, const cusparseMatDescr_t from, int dim,
                       const cusparseMatDescr_t to) {
  MXMACA_REQUIRE(rows >= 0 && columns >= 0 && dim > 0 && valid(direction) && live(from) && live(to));
  for (const cusparseMatDescr* descriptor : {from, to}) {
    if (descriptor->type != CUSPARSE_MATRIX_TYPE_GENERAL) return CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
  }
  return CUSPARSE_STATUS_SUCCESS;
}
void checkOffsets(const int* offsets, Index rows, Index base) {
  reachData();
  if (offsets[0] != base) throw BadIndex();
  for (Index row = 0; row < rows; ++row) {
    if (offsets[row + 1] < offsets[row]) throw BadIndex();
  }
}

Index blocksOf(Index size, Index dim) { return (size + dim - 1) / dim; }

// The columns of blocks that a row of blocks has, in order.
std::vector<Index> blockColumns(const Rows& a, Index blockRow, Index dim) {
  std::vector<Index> found;
  for (Index row = blockRow * dim; row < std::min<Index>(a.m, (blockRow + 1) * dim); ++row) {
    for (Index i = a.begin(row); i < a.begin(row + 1); ++i) found.push_back(a.column(i) / dim);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Index inBlock(cusparseDirection_t direction, Index row, Index column, Index dim) {
  return direction == CUSPARSE_DIRECTION_ROW ? row * dim + column : column * dim + row;
}

template <class T>
Status toBlocks(cusparseDirection_t direction, const Rows& a, const T* values, Index dim, int baseC, T* valuesC,
                const int* offsetsC, int* columnsC) {
  checkOffsets(a.offsets, a.m, a.descr->base);
  const Index rows = blocksOf(a.m, dim);
  checkOffsets(offsetsC, rows, baseC);  // csr2bsrNnz has written them
  for (Index blockRow = 0; blockRow < rows; ++blockRow) {
    const std::vector<Index> columns = blockColumns(a, blockRow, dim);
    const Index first = offsetsC[blockRow] - baseC;
    if (offsetsC[blockRow + 1] - offsetsC[blockRow] != static_cast<Index>(columns.size())) throw BadIndex();
    std::fill_n(valuesC + first * dim * dim, static_cast<Index>(columns.size()) * dim * dim, T(0));
    for (size_t i = 0; i < columns.size(); ++i) {
      columnsC[first + static_cast<Index>(i)] = static_cast<int>(columns[i] + baseC);
    }
    for (Index row = blockRow * dim; row < std::min<Index>(a.m, (blockRow + 1) * dim); ++row) {
      for (Index i = a.begin(row); i < a.begin(row + 1); ++i) {
        const Index column = a.column(i);
        const auto block = std::lower_bound(columns.begin(), columns.end(), column / dim) - columns.begin();
        valuesC[(first + block) * dim * dim + inBlock(direction, row % dim, column % dim, dim)] = values[i];
      }
    }
  }
  return CUSPARSE_STATUS_SUCCESS;
}

// Every element of a block becomes one of the matrix, zeros as well.
template <class T>
Status fromBlocks(const Blocks& a, const T* values, int baseC, T* valuesC, int* offsetsC, int* columnsC) {
  const Pattern pattern = elementsOf(a);
  for (size_t i = 0; i < pattern.place.size(); ++i) {
    valuesC[i] = values[pattern.place[i]];
    columnsC[i] = static_cast<int>(pattern.column[i] + baseC);
  }
  for (size_t row = 0; row < pattern.offsets.size(); ++row) {
    offsetsC[row] = static_cast<int>(pattern.offsets[row] + baseC);
  }
  return CUSPARSE_STATUS_SUCCESS;
}

template <class T>
Status countElements(cusparseDirection_t direction, int m, int n, const cusparseMatDescr_t descr, const T* a, int lda,
                     int* counts, int* total) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && valid(direction) && live(descr) && lda >= std::max(1, m) && total != nullptr);
  if (descr->type != CUSPARSE_MATRIX_TYPE_GENERAL) return CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
  MXMACA_REQUIRE((m == 0 || n == 0 || a != nullptr) && counts != nullptr);
  reachData();
  const bool rows = direction == CUSPARSE_DIRECTION_ROW;
  std::fill_n(counts, rows ? m : n, 0);
  int all = 0;
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) {
      if (a[i + j * lda] == T(0)) continue;
      ++counts[rows ? i : j];
      ++all;
    }
  }
  *total = all;
  return CUSPARSE_STATUS_SUCCESS;
}

Status checkVectorProduct(cusparseOperation_t op, int m, int n, int nnz) {
  MXMACA_REQUIRE(valid(op) && m >= 0 && n >= 0 && nnz >= 0);
  MXMACA_REQUIRE(nnz <= (op == CUSPARSE_OPERATION_NON_TRANSPOSE ? n : m));
  return CUSPARSE_STATUS_SUCCESS;
}

// y = alpha op(A) x + beta y
template <class T>
Status multiply(cusparseOperation_t op, int m, int n, const T* alpha, const T* a, int lda, int nnz, const T* x,
                const int* indices, const T* beta, T* y, cusparseIndexBase_t base) {
  MXMACA_RETURN_IF_FAILED(checkVectorProduct(op, m, n, nnz));
  const bool plain = op == CUSPARSE_OPERATION_NON_TRANSPOSE;
  const Index rows = plain ? m : n, columns = plain ? n : m;
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && valid(base) && lda >= std::max(1, m));
  MXMACA_REQUIRE((nnz == 0 || (x != nullptr && indices != nullptr)) && (rows == 0 || y != nullptr));
  MXMACA_REQUIRE(m == 0 || n == 0 || a != nullptr);
  reachData();
  for (Index k = 0; k < nnz; ++k) inRange(indices[k] - base, columns);
  for (Index i = 0; i < rows; ++i) {
    T sum(0);
    for (Index k = 0; k < nnz; ++k) {
      const Index j = indices[k] - base;
      const T value = plain ? a[i + j * lda] : a[j + i * lda];
      sum += (op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? conjugate(value) : value) * x[k];
    }
    y[i] = *alpha * sum + (*beta == T(0) ? T(0) : *beta * y[i]);
  }
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

MXMACA_EXPORT Status cusparseXcsr2bsrNnz(cusparseHandle_t handle, cusparseDirection_t direction, int m, int n,
                                         const cusparseMatDescr_t descrA, const int* rowsA, const int* colsA,
                                         int blockDim, const cusparseMatDescr_t descrC, int* rowsC, int* nnz) {
  MXMACA_LATER(Status, cusparseXcsr2bsrNnz, handle, direction, m, n, descrA, rowsA, colsA, blockDim, descrC, rowsC,
               resultOf(handle, nnz));
  return guarded(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkConversion(direction, m, n, descrA, blockDim, descrC));
    MXMACA_REQUIRE(rowsA != nullptr && colsA != nullptr && rowsC != nullptr && nnz != nullptr);
    checkOffsets(rowsA, m, descrA->base);
    const Rows a{m, n, descrA, rowsA, colsA};
    rowsC[0] = descrC->base;
    const Index rows = blocksOf(m, blockDim);
    for (Index row = 0; row < rows; ++row) {
      rowsC[row + 1] = rowsC[row] + static_cast<int>(blockColumns(a, row, blockDim).size());
    }
    *nnz = rowsC[rows] - descrC->base;
    return CUSPARSE_STATUS_SUCCESS;
  });
}

#define CONVERSIONS(letter, T)                                                                                         \
  MXMACA_EXPORT Status cusparse##letter##csr2bsr(cusparseHandle_t handle, cusparseDirection_t direction, int m, int n, \
                                                 const cusparseMatDescr_t descrA, const T* valA, const int* rowsA,     \
                                                 const int* colsA, int blockDim, const cusparseMatDescr_t descrC,      \
                                                 T* valC, int* rowsC, int* colsC) {                                    \
    MXMACA_LATER(Status, cusparse##letter##csr2bsr, handle, direction, m, n, descrA, valA, rowsA, colsA, blockDim,     \
                 descrC, valC, rowsC, colsC);                                                                          \
    return guarded(handle, [&]() -> Status {                                                                           \
      MXMACA_RETURN_IF_FAILED(checkConversion(direction, m, n, descrA, blockDim, descrC));                             \
      MXMACA_REQUIRE(valA != nullptr && rowsA != nullptr && colsA != nullptr);                                         \
      MXMACA_REQUIRE(valC != nullptr && rowsC != nullptr && colsC != nullptr);                                         \
      return toBlocks(direction, Rows{m, n, descrA, rowsA, colsA}, native(valA), blockDim, descrC->base, native(valC), \
                      rowsC, colsC);                                                                                   \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##bsr2csr(cusparseHandle_t handle, cusparseDirection_t direction, int mb,       \
                                                 int nb, const cusparseMatDescr_t descrA, const T* valA,               \
                                                 const int* rowsA, const int* colsA, int blockDim,                     \
                                                 const cusparseMatDescr_t descrC, T* valC, int* rowsC, int* colsC) {   \
    MXMACA_LATER(Status, cusparse##letter##bsr2csr, handle, direction, mb, nb, descrA, valA, rowsA, colsA, blockDim,   \
                 descrC, valC, rowsC, colsC);                                                                          \
    return guarded(handle, [&]() -> Status {                                                                           \
      MXMACA_RETURN_IF_FAILED(checkConversion(direction, mb, nb, descrA, blockDim, descrC));                           \
      MXMACA_REQUIRE(valA != nullptr && rowsA != nullptr && colsA != nullptr);                                         \
      MXMACA_REQUIRE(valC != nullptr && rowsC != nullptr && colsC != nullptr);                                         \
      checkOffsets(rowsA, mb, descrA->base);                                                                           \
      const Blocks a{direction, mb, nb, rowsA[mb] - descrA->base, descrA, rowsA, colsA, blockDim};                     \
      return fromBlocks(a, native(valA), descrC->base, native(valC), rowsC, colsC);                                    \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##nnz(cusparseHandle_t handle, cusparseDirection_t direction, int m, int n,     \
                                             const cusparseMatDescr_t descrA, const T* a, int lda,                     \
                                             int* nnzPerRowColumn, int* nnz) {                                         \
    MXMACA_LATER(Status, cusparse##letter##nnz, handle, direction, m, n, descrA, a, lda, nnzPerRowColumn,              \
                 resultOf(handle, nnz));                                                                               \
    return guarded(handle, [&]() -> Status {                                                                           \
      return countElements(direction, m, n, descrA, native(a), lda, nnzPerRowColumn, nnz);                             \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##gemvi_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, int m,      \
                                                          int n, int nnz, int* bytes) {                                \
    return described(handle, [&]() -> Status {                                                                         \
      MXMACA_RETURN_IF_FAILED(checkVectorProduct(op, m, n, nnz));                                                      \
      size_t needed = 0;                                                                                               \
      MXMACA_REQUIRE(bytes != nullptr);                                                                                \
      MXMACA_RETURN_IF_FAILED(needsLittle(&needed));                                                                   \
      *bytes = static_cast<int>(needed);                                                                               \
      return CUSPARSE_STATUS_SUCCESS;                                                                                  \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##gemvi(                                                                        \
      cusparseHandle_t handle, cusparseOperation_t op, int m, int n, const T* alpha, const T* a, int lda, int nnz,     \
      const T* x, const int* indices, const T* beta, T* y, cusparseIndexBase_t base, void* buffer) {                   \
    MXMACA_LATER(Status, cusparse##letter##gemvi, handle, op, m, n, scalars(handle, alpha), a, lda, nnz, x, indices,   \
                 scalars(handle, beta), y, base, unread(buffer));                                                      \
    return guarded(handle, [&]() -> Status {                                                                           \
      MXMACA_REQUIRE(buffer != nullptr);                                                                               \
      return multiply(op, m, n, native(alpha), native(a), lda, nnz, native(x), indices, native(beta), native(y),       \
                      base);                                                                                           \
    });                                                                                                                \
  }
CONVERSIONS(S, float)
CONVERSIONS(D, double)
CONVERSIONS(C, cuComplex)
CONVERSIONS(Z, cuDoubleComplex)
