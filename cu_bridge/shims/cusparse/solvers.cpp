// Triangular solvers, and conversions between sparse and dense matrices.

#include "descriptors.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

// The matrix with the values that the analysis was given behind it.
cusparseSpMatDescr updated(const cusparseSpMatDescr& a, const TriangleAnalysis& analysis) {
  cusparseSpMatDescr matrix = a;
  if (!analysis.values->all.empty()) matrix.values = analysis.values->all.data();
  return matrix;
}

// Solves op(A) x = x in place, for `width` right sides stored row after row.
template <class T>
void solveTriangle(const cusparseSpMatDescr& given, const TriangleAnalysis& analysis, cusparseOperation_t op,
                   std::vector<T>& x, Index width) {
  const cusparseSpMatDescr a = updated(given, analysis);
  const Pattern pattern = patternOf(a, op);
  const std::vector<T> values = valuesOf<T>(a, pattern, op);
  // Of a matrix of which the diagonal is the new values.
  const std::vector<char>& newDiagonal = analysis.values->diagonal;
  std::vector<T> diagonals(newDiagonal.empty() ? 0 : static_cast<size_t>(a.rows));
  if (!diagonals.empty()) {
    readMatrix(newDiagonal.data(), a.type, a.rows, 1, a.rows, diagonals.data());
    if (op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE) {
      for (T& value : diagonals) value = conjugate(value);
    }
  }
  const bool lower = (a.fill == CUSPARSE_FILL_MODE_LOWER) == (op == CUSPARSE_OPERATION_NON_TRANSPOSE);
  for (Index step = 0; step < pattern.rows; ++step) {
    const Index row = lower ? step : pattern.rows - 1 - step;
    T* const line = x.data() + row * width;
    T diagonal(0);
    const auto end = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row + 1)]);
    for (auto i = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row)]); i < end; ++i) {
      const Index column = pattern.column[i];
      if (column == row) {
        diagonal += values[i];
      } else if ((column < row) == lower) {
        const T* const other = x.data() + column * width;
        for (Index j = 0; j < width; ++j) line[j] -= values[i] * other[j];
      }
    }
    if (a.diagonal == CUSPARSE_DIAG_TYPE_UNIT) continue;
    if (!diagonals.empty()) diagonal = diagonals[static_cast<size_t>(row)];
    for (Index j = 0; j < width; ++j) line[j] /= diagonal;
  }
}
Status checkSpSV(cusparseOperation_t op, const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                 cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVDescr_t descriptor) {
  MXMACA_REQUIRE(valid(op) && alpha != nullptr && live(a) && live(x) && live(y));
  MXMACA_REQUIRE(live(descriptor) && a->rows == a->columns && x->size == a->rows && y->size == a->rows);
  return a->type == compute && x->type == compute && y->type == compute ? CUSPARSE_STATUS_SUCCESS
                                                                        : CUSPARSE_STATUS_NOT_SUPPORTED;
}
Status checkSpSM(cusparseOperation_t opA, cusparseOperation_t opB, const void* alpha, cusparseConstSpMatDescr_t a,
                 cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c, cudaDataType compute,
                 cusparseSpSMDescr_t descriptor) {
  MXMACA_REQUIRE(valid(opA) && valid(opB) && alpha != nullptr && live(a) && live(b) && live(c));
  MXMACA_REQUIRE(live(descriptor) && a->rows == a->columns && c->rows == a->rows);
  MXMACA_REQUIRE(rowsOf(opB, b->rows, b->columns) == c->rows && rowsOf(opB, b->columns, b->rows) == c->columns);
  MXMACA_REQUIRE(a->batch == 1 && b->batch == c->batch);
  return a->type == compute && b->type == compute && c->type == compute ? CUSPARSE_STATUS_SUCCESS
                                                                        : CUSPARSE_STATUS_NOT_SUPPORTED;
}

void analyse(TriangleAnalysis* analysis, const cusparseSpMatDescr& a) {
  *analysis = TriangleAnalysis{true, a.rows, a.nnz, a.type};
}
// Takes a copy of the values of all elements, in the order in which the matrix has them, or of the diagonal's.
Status update(const TriangleAnalysis* analysis, const void* values, bool diagonal) {
  MXMACA_REQUIRE(analysis->analysed && values != nullptr);
  reachData();
  const auto* const from = static_cast<const char*>(values);
  const size_t count = static_cast<size_t>(diagonal ? analysis->rows : analysis->nnz);
  std::vector<char> copy(from, from + count * elementBytes(analysis->type));
  if (diagonal) {
    analysis->values->diagonal = std::move(copy);
  } else {
    analysis->values->all = std::move(copy);
    analysis->values->diagonal.clear();
  }
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

MXMACA_EXPORT Status cusparseSpSV_createDescr(cusparseSpSVDescr_t* descriptor) {
  return createDescriptor<Status>(descriptor, cusparseSpSVDescr());
}
MXMACA_EXPORT Status cusparseSpSV_destroyDescr(cusparseSpSVDescr_t descriptor) {
  return destroyDescriptor<Status>(descriptor);
}
MXMACA_EXPORT Status cusparseSpSV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                             cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                             cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t algorithm,
                                             cusparseSpSVDescr_t descriptor, size_t* bytes) {
  return sizeOfBuffer(handle, valid(algorithm), checkSpSV(op, alpha, a, x, y, compute, descriptor), bytes);
}
MXMACA_EXPORT Status cusparseSpSV_analysis(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                           cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                           cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t algorithm,
                                           cusparseSpSVDescr_t descriptor, void* buffer) {
  const Status status =
      prepared(handle, valid(algorithm) && buffer != nullptr, checkSpSV(op, alpha, a, x, y, compute, descriptor), a);
  if (status == CUSPARSE_STATUS_SUCCESS) analyse(descriptor, *a);
  return status;
}
MXMACA_EXPORT Status cusparseSpSV_updateMatrix(cusparseHandle_t handle, cusparseSpSVDescr_t descriptor, void* values,
                                               cusparseSpSVUpdate_t part) {
  MXMACA_LATER(Status, cusparseSpSV_updateMatrix, handle, descriptor, unread(values), part);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(descriptor) && valid(part));
    return update(descriptor, values, part == CUSPARSE_SPSV_UPDATE_DIAGONAL);
  });
}
MXMACA_EXPORT Status cusparseSpSV_solve(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                        cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                        cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t algorithm,
                                        cusparseSpSVDescr_t descriptor) {
  MXMACA_LATER(Status, cusparseSpSV_solve, handle, op, scalars(handle, alpha), a, x, y, compute, algorithm, descriptor);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    MXMACA_RETURN_IF_FAILED(checkSpSV(op, alpha, a, x, y, compute, descriptor));
    MXMACA_REQUIRE(complete(a) && complete(x) && complete(y));
    MXMACA_REQUIRE(descriptor->analysed);
    return COMPUTE_IN(compute, {
      std::vector<T> line(static_cast<size_t>(x->size));
      readMatrix(x->values, x->type, x->size, 1, x->size, line.data());
      const T factor = scalar<T>(alpha, compute);
      for (T& value : line) value *= factor;
      solveTriangle(*a, *descriptor, op, line, 1);
      writeMatrix(y->values, y->type, y->size, 1, y->size, line.data());
    });
  });
}
MXMACA_EXPORT Status cusparseSpSM_createDescr(cusparseSpSMDescr_t* descriptor) {
  return createDescriptor<Status>(descriptor, cusparseSpSMDescr());
}
MXMACA_EXPORT Status cusparseSpSM_destroyDescr(cusparseSpSMDescr_t descriptor) {
  return destroyDescriptor<Status>(descriptor);
}
MXMACA_EXPORT Status cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                             const void* alpha, cusparseConstSpMatDescr_t a,
                                             cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c, cudaDataType compute,
                                             cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t descriptor,
                                             size_t* bytes) {
  return sizeOfBuffer(handle, valid(algorithm), checkSpSM(opA, opB, alpha, a, b, c, compute, descriptor), bytes);
}
MXMACA_EXPORT Status cusparseSpSM_analysis(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                           const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                           cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpSMAlg_t algorithm,
                                           cusparseSpSMDescr_t descriptor, void* buffer) {
  const Status status = prepared(handle, valid(algorithm) && buffer != nullptr,
                                 checkSpSM(opA, opB, alpha, a, b, c, compute, descriptor), a);
  if (status == CUSPARSE_STATUS_SUCCESS) analyse(descriptor, *a);
  return status;
}
MXMACA_EXPORT Status cusparseSpSM_updateMatrix(cusparseHandle_t handle, cusparseSpSMDescr_t descriptor, void* values,
                                               cusparseSpSMUpdate_t part) {
  MXMACA_LATER(Status, cusparseSpSM_updateMatrix, handle, descriptor, unread(values), part);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(descriptor) && valid(part));
    return update(descriptor, values, part == CUSPARSE_SPSM_UPDATE_DIAGONAL);
  });
}
MXMACA_EXPORT Status cusparseSpSM_solve(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                        const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                        cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpSMAlg_t algorithm,
                                        cusparseSpSMDescr_t descriptor) {
  MXMACA_LATER(Status, cusparseSpSM_solve, handle, opA, opB, scalars(handle, alpha), a, b, c, compute, algorithm,
               descriptor);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    MXMACA_RETURN_IF_FAILED(checkSpSM(opA, opB, alpha, a, b, c, compute, descriptor));
    MXMACA_REQUIRE(complete(a) && complete(b) && complete(c));
    MXMACA_REQUIRE(descriptor->analysed);
    return COMPUTE_IN(compute, {
      const T factor = scalar<T>(alpha, compute);
      for (Index batch = 0; batch < c->batch; ++batch) {
        std::vector<T> lines = denseRows<T>(*b, opB, batch);
        for (T& value : lines) value *= factor;
        solveTriangle(*a, *descriptor, opA, lines, c->columns);
        for (Index i = 0; i < c->rows; ++i) {
          for (Index j = 0; j < c->columns; ++j) {
            writeElement(c->values, c->type, place(*c, i, j, batch),
                         std::complex<double>(lines[static_cast<size_t>(i * c->columns + j)]));
          }
        }
      }
    });
  });
}

// ---- Sparse and dense -----------------------------------------------------------------------------------------------
namespace {
Status checkBoth(cusparseConstSpMatDescr_t sparse, cusparseConstDnMatDescr_t dense) {
  MXMACA_REQUIRE(live(sparse) && live(dense) && sparse->rows == dense->rows && sparse->columns == dense->columns);
  return sparse->type == dense->type && sparse->batch == 1 && dense->batch == 1 ? CUSPARSE_STATUS_SUCCESS
                                                                                : CUSPARSE_STATUS_NOT_SUPPORTED;
}
// Visits what is not zero, in the order in which the format stores it.
template <class Visit>
void eachNonzero(const cusparseDnMatDescr& dense, bool byColumn, Visit&& visit) {
  for (Index outer = 0; outer < (byColumn ? dense.columns : dense.rows); ++outer) {
    for (Index inner = 0; inner < (byColumn ? dense.rows : dense.columns); ++inner) {
      const Index row = byColumn ? inner : outer, column = byColumn ? outer : inner;
      const std::complex<double> value = readElement(dense.values, dense.type, place(dense, row, column));
      if (value != std::complex<double>(0)) visit(outer, inner, value);
    }
  }
}
}  // namespace
MXMACA_EXPORT Status cusparseSparseToDense_bufferSize(cusparseHandle_t handle, cusparseConstSpMatDescr_t a,
                                                      cusparseDnMatDescr_t b, cusparseSparseToDenseAlg_t algorithm,
                                                      size_t* bytes) {
  return sizeOfBuffer(handle, valid(algorithm), checkBoth(a, b), bytes);
}
MXMACA_EXPORT Status cusparseSparseToDense(cusparseHandle_t handle, cusparseConstSpMatDescr_t a, cusparseDnMatDescr_t b,
                                           cusparseSparseToDenseAlg_t algorithm, void* buffer) {
  MXMACA_LATER(Status, cusparseSparseToDense, handle, a, b, algorithm, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    MXMACA_RETURN_IF_FAILED(checkBoth(a, b));
    MXMACA_REQUIRE(complete(a) && complete(b));
    reachData();
    for (Index i = 0; i < b->rows; ++i) {
      for (Index j = 0; j < b->columns; ++j) writeElement(b->values, b->type, place(*b, i, j), 0);
    }
    const Pattern pattern = patternOf(*a, CUSPARSE_OPERATION_NON_TRANSPOSE);
    for (Index row = 0; row < pattern.rows; ++row) {
      for (auto i = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row)]);
           i < static_cast<size_t>(pattern.offsets[static_cast<size_t>(row + 1)]); ++i) {
        writeElement(b->values, b->type, place(*b, row, pattern.column[i]),
                     readElement(a->values, a->type, pattern.place[i]));
      }
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseDenseToSparse_bufferSize(cusparseHandle_t handle, cusparseConstDnMatDescr_t a,
                                                      cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t algorithm,
                                                      size_t* bytes) {
  return sizeOfBuffer(handle, valid(algorithm), checkBoth(b, a), bytes);
}
MXMACA_EXPORT Status cusparseDenseToSparse_analysis(cusparseHandle_t handle, cusparseConstDnMatDescr_t a,
                                                    cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t algorithm,
                                                    void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    MXMACA_RETURN_IF_FAILED(checkBoth(b, a));
    MXMACA_REQUIRE(complete(a));
    Index count = 0;
    eachNonzero(*a, false, [&](Index, Index, std::complex<double>) { ++count; });
    b->nnz = count;
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseDenseToSparse_convert(cusparseHandle_t handle, cusparseConstDnMatDescr_t a,
                                                   cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t algorithm,
                                                   void* buffer) {
  MXMACA_LATER(Status, cusparseDenseToSparse_convert, handle, a, b, algorithm, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    MXMACA_RETURN_IF_FAILED(checkBoth(b, a));
    MXMACA_REQUIRE(complete(a) && complete(b));
    reachData();
    const bool byColumn = b->format == CUSPARSE_FORMAT_CSC;
    const Index lines = byColumn ? b->columns : b->rows;
    std::vector<Index> counts(static_cast<size_t>(lines + 1), 0);
    Index next = 0;
    eachNonzero(*a, byColumn, [&](Index outer, Index inner, std::complex<double> value) {
      if (next < b->nnz) {
        if (b->format == CUSPARSE_FORMAT_COO) writeIndex(b->outer, b->outerType, next, outer + b->base);
        writeIndex(b->inner, b->innerType, next, inner + b->base);
        writeElement(b->values, b->type, next, value);
      }
      ++next;
      ++counts[static_cast<size_t>(outer + 1)];
    });
    if (next != b->nnz) return CUSPARSE_STATUS_INVALID_VALUE;  // the analysis saw another matrix
    if (b->format != CUSPARSE_FORMAT_COO) {
      Index sum = 0;
      for (size_t line = 0; line < counts.size(); ++line) {
        sum += counts[line];
        writeIndex(b->outer, b->outerType, static_cast<Index>(line), sum + b->base);
      }
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
