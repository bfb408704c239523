// cuSPARSE's generic interface: descriptors, products, triangular solvers, conversions between sparse and dense.

#include "descriptors.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace mxmaca {
namespace cusparse {

Pattern patternOf(const cusparseSpMatDescr& matrix, cusparseOperation_t op, Index batch) {
  const bool transposed = op != CUSPARSE_OPERATION_NON_TRANSPOSE;
  Pattern result;
  result.rows = transposed ? matrix.columns : matrix.rows;
  result.columns = transposed ? matrix.rows : matrix.columns;
  const Index base = matrix.base;
  const bool byColumn = matrix.format == CUSPARSE_FORMAT_CSC;
  const Index outerCount = byColumn ? matrix.columns : matrix.rows;
  const Index innerCount = byColumn ? matrix.rows : matrix.columns;
  const Index outerStart = batch * (matrix.format == CUSPARSE_FORMAT_COO ? matrix.innerStride : matrix.outerStride);
  const Index innerStart = batch * matrix.innerStride;
  std::vector<Index> row(static_cast<size_t>(matrix.nnz));
  std::vector<Index> column(static_cast<size_t>(matrix.nnz));
  for (Index i = 0; i < matrix.nnz; ++i) {
    const Index index = readIndex(matrix.inner, matrix.innerType, innerStart + i) - base;
    column[static_cast<size_t>(i)] = inRange(index, innerCount);
  }
  if (matrix.format == CUSPARSE_FORMAT_COO) {
    for (Index i = 0; i < matrix.nnz; ++i) {
      const Index index = readIndex(matrix.outer, matrix.outerType, outerStart + i) - base;
      row[static_cast<size_t>(i)] = inRange(index, outerCount);
    }
  } else {
    Index end = readIndex(matrix.outer, matrix.outerType, outerStart) - base;
    if (end != 0) throw BadIndex();
    for (Index line = 0; line < outerCount; ++line) {
      const Index begin = end;
      end = readIndex(matrix.outer, matrix.outerType, outerStart + line + 1) - base;
      if (end < begin || end > matrix.nnz) throw BadIndex();
      for (Index i = begin; i < end; ++i) row[static_cast<size_t>(i)] = line;
    }
    if (end != matrix.nnz) throw BadIndex();
  }
  if (byColumn != transposed) row.swap(column);
  result.offsets.assign(static_cast<size_t>(result.rows + 1), 0);
  for (const Index r : row) ++result.offsets[static_cast<size_t>(r + 1)];
  for (size_t r = 0; r < static_cast<size_t>(result.rows); ++r) result.offsets[r + 1] += result.offsets[r];
  result.column.resize(row.size());
  result.place.resize(row.size());
  std::vector<Index> next(result.offsets.begin(), result.offsets.end() - 1);
  for (size_t i = 0; i < row.size(); ++i) {
    const auto to = static_cast<size_t>(next[static_cast<size_t>(row[i])]++);
    result.column[to] = column[i];
    result.place[to] = static_cast<Index>(i);
  }
  return result;
}

}  // namespace cusparse
}  // namespace mxmaca

namespace {

Status createSparse(cusparseSpMatDescr_t* descriptor, cusparseFormat_t format, Index rows, Index columns, Index nnz,
                    void* outer, void* inner, void* values, cusparseIndexType_t outerType,
                    cusparseIndexType_t innerType, cusparseIndexBase_t base, cudaDataType type) {
  MXMACA_REQUIRE(rows >= 0 && columns >= 0 && nnz >= 0 && valid(base));
  if (!valid(outerType) || !valid(innerType) || elementBytes(type) == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
  cusparseSpMatDescr value{};
  value.format = format;
  value.rows = rows;
  value.columns = columns;
  value.nnz = nnz;
  value.outer = outer;
  value.inner = inner;
  value.values = values;
  value.outerType = outerType;
  value.innerType = innerType;
  value.base = base;
  value.type = type;
  value.batch = 1;
  return create(descriptor, value);
}
Status setPointers(cusparseSpMatDescr_t descriptor, cusparseFormat_t format, void* outer, void* inner, void* values) {
  MXMACA_REQUIRE(live(descriptor) && descriptor->format == format && hasPattern(descriptor, outer, inner));
  MXMACA_REQUIRE(values != nullptr || descriptor->nnz == 0);
  descriptor->outer = outer;
  descriptor->inner = inner;
  descriptor->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
Status getSparse(cusparseSpMatDescr_t d, cusparseFormat_t format, Index* rows, Index* columns, Index* nnz, void** outer,
                 void** inner, void** values, cusparseIndexType_t* outerType, cusparseIndexType_t* innerType,
                 cusparseIndexBase_t* base, cudaDataType* type) {
  MXMACA_REQUIRE(live(d) && d->format == format);
  MXMACA_REQUIRE(rows != nullptr && columns != nullptr && nnz != nullptr && outer != nullptr && inner != nullptr &&
                 values != nullptr && outerType != nullptr && innerType != nullptr && base != nullptr &&
                 type != nullptr);
  *rows = d->rows;
  *columns = d->columns;
  *nnz = d->nnz;
  *outer = d->outer;
  *inner = d->inner;
  *values = d->values;
  *outerType = d->outerType;
  *innerType = d->innerType;
  *base = d->base;
  *type = d->type;
  return CUSPARSE_STATUS_SUCCESS;
}
template <class Pointer>
void* writable(Pointer data) {
  return const_cast<void*>(static_cast<const void*>(data));
}
Index rowsOf(cusparseOperation_t op, Index rows, Index columns) {
  return op == CUSPARSE_OPERATION_NON_TRANSPOSE ? rows : columns;
}

// ---- Products -----------------------------------------------------------------------------------------------------------
// c = alpha * op(a) * b + beta * c, of `width` columns stored row after row in `b`.
template <class T, class WriteRow>
void multiply(const cusparseSpMatDescr& a, cusparseOperation_t op, Index batch, const std::vector<T>& b, Index width,
              WriteRow&& writeRow) {
  const Pattern pattern = patternOf(a, op, batch);
  const std::vector<T> values = valuesOf<T>(a, pattern, op, batch);
  std::vector<T> sums(static_cast<size_t>(width));
  for (Index row = 0; row < pattern.rows; ++row) {
    std::fill(sums.begin(), sums.end(), T(0));
    const auto end = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row + 1)]);
    for (auto i = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row)]); i < end; ++i) {
      const T value = values[i];
      const T* const from = b.data() + pattern.column[i] * width;
      for (Index j = 0; j < width; ++j) sums[static_cast<size_t>(j)] += value * from[j];
    }
    writeRow(row, sums);
  }
}
template <class T>
void combine(void* data, cudaDataType type, Index at, T alpha, T product, T beta) {
  T value = alpha * product;
  if (beta != T(0)) value += beta * valueAs<T>(readElement(data, type, at));
  writeElement(data, type, at, std::complex<double>(value));
}

Status checkProduct(const cusparseSpMatDescr* a, cudaDataType b, cudaDataType c, cudaDataType compute) {
  MXMACA_REQUIRE(live(a));
  return fits(a->type, compute) && fits(b, compute) && fits(c, compute) ? CUSPARSE_STATUS_SUCCESS
                                                                        : CUSPARSE_STATUS_NOT_SUPPORTED;
}
Status checkSpMV(cusparseOperation_t op, const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                 const void* beta, cusparseDnVecDescr_t y, cudaDataType compute) {
  MXMACA_REQUIRE(valid(op) && alpha != nullptr && beta != nullptr && live(a) && live(x) && live(y));
  MXMACA_REQUIRE(rowsOf(op, a->rows, a->columns) == y->size && rowsOf(op, a->columns, a->rows) == x->size);
  return checkProduct(a, x->type, y->type, compute);
}
Status checkSpMM(cusparseOperation_t opA, cusparseOperation_t opB, const void* alpha, cusparseConstSpMatDescr_t a,
                 cusparseConstDnMatDescr_t b, const void* beta, cusparseDnMatDescr_t c, cudaDataType compute) {
  MXMACA_REQUIRE(valid(opA) && valid(opB) && alpha != nullptr && beta != nullptr && live(a) && live(b) && live(c));
  MXMACA_REQUIRE(rowsOf(opA, a->rows, a->columns) == c->rows && rowsOf(opB, b->columns, b->rows) == c->columns);
  MXMACA_REQUIRE(rowsOf(opA, a->columns, a->rows) == rowsOf(opB, b->rows, b->columns));
  MXMACA_REQUIRE((a->batch == 1 || a->batch == c->batch) && (b->batch == 1 || b->batch == c->batch));
  return checkProduct(a, b->type, c->type, compute);
}
Status checkSddmm(cusparseOperation_t opA, cusparseOperation_t opB, const void* alpha, cusparseConstDnMatDescr_t a,
                  cusparseConstDnMatDescr_t b, const void* beta, cusparseSpMatDescr_t c, cudaDataType compute) {
  MXMACA_REQUIRE(valid(opA) && valid(opB) && alpha != nullptr && beta != nullptr && live(a) && live(b) && live(c));
  MXMACA_REQUIRE(rowsOf(opA, a->rows, a->columns) == c->rows && rowsOf(opB, b->columns, b->rows) == c->columns);
  MXMACA_REQUIRE(rowsOf(opA, a->columns, a->rows) == rowsOf(opB, b->rows, b->columns));
  MXMACA_REQUIRE((a->batch == 1 || a->batch == c->batch) && (b->batch == 1 || b->batch == c->batch));
  return checkProduct(c, a->type, b->type, compute);
}

// ---- Triangular solves ----------------------------------------------------------------------------------------------------
// Solves op(A) x = x in place, for `width` right sides stored row after row.
template <class T>
void solveTriangle(const cusparseSpMatDescr& a, cusparseOperation_t op, std::vector<T>& x, Index width) {
  const Pattern pattern = patternOf(a, op);
  const std::vector<T> values = valuesOf<T>(a, pattern, op);
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

}  // namespace

#define RETURN_UNLESS_GOOD(check)                           \
  do {                                                      \
    const cusparseStatus_t checked = check;                 \
    if (checked != CUSPARSE_STATUS_SUCCESS) return checked; \
  } while (false)
// The body of a function, in which T is the type that is computed in.
#define COMPUTE_IN(type, ...)                    \
  withCompute(type, [&](auto chosen) -> Status { \
    using T = typename decltype(chosen)::Type;   \
    __VA_ARGS__                                  \
    return CUSPARSE_STATUS_SUCCESS;              \
  })

// ---- Descriptors ------------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cusparseCreateSpVec(cusparseSpVecDescr_t* descriptor, Index size, Index nnz, void* indices,
                                         void* values, cusparseIndexType_t indexType, cusparseIndexBase_t base,
                                         cudaDataType type) {
  MXMACA_REQUIRE(size >= 0 && nnz >= 0 && nnz <= size && valid(base));
  if (!valid(indexType) || elementBytes(type) == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
  return create(descriptor, cusparseSpVecDescr{size, nnz, indices, values, indexType, base, type});
}
MXMACA_EXPORT Status cusparseDestroySpVec(cusparseConstSpVecDescr_t descriptor) { return destroy(descriptor); }
MXMACA_EXPORT Status cusparseSpVecSetValues(cusparseSpVecDescr_t descriptor, void* values) {
  MXMACA_REQUIRE(live(descriptor) && (values != nullptr || descriptor->nnz == 0));
  descriptor->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpVecGetValues(cusparseSpVecDescr_t descriptor, void** values) {
  MXMACA_REQUIRE(live(descriptor) && values != nullptr);
  *values = descriptor->values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseCreateDnVec(cusparseDnVecDescr_t* descriptor, Index size, void* values,
                                         cudaDataType type) {
  MXMACA_REQUIRE(size >= 0);
  if (elementBytes(type) == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
  return create(descriptor, cusparseDnVecDescr{size, values, type});
}
MXMACA_EXPORT Status cusparseCreateConstDnVec(cusparseConstDnVecDescr_t* descriptor, Index size, const void* values,
                                              cudaDataType type) {
  return cusparseCreateDnVec(const_cast<cusparseDnVecDescr_t*>(descriptor), size, writable(values), type);
}
MXMACA_EXPORT Status cusparseDestroyDnVec(cusparseConstDnVecDescr_t descriptor) { return destroy(descriptor); }
MXMACA_EXPORT Status cusparseDnVecGet(cusparseDnVecDescr_t descriptor, Index* size, void** values, cudaDataType* type) {
  MXMACA_REQUIRE(live(descriptor) && size != nullptr && values != nullptr && type != nullptr);
  *size = descriptor->size;
  *values = descriptor->values;
  *type = descriptor->type;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseDnVecSetValues(cusparseDnVecDescr_t descriptor, void* values) {
  MXMACA_REQUIRE(live(descriptor) && (values != nullptr || descriptor->size == 0));
  descriptor->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseDnVecGetValues(cusparseDnVecDescr_t descriptor, void** values) {
  MXMACA_REQUIRE(live(descriptor) && values != nullptr);
  *values = descriptor->values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseCreateDnMat(cusparseDnMatDescr_t* descriptor, Index rows, Index columns, Index ld,
                                         void* values, cudaDataType type, cusparseOrder_t order) {
  MXMACA_REQUIRE(rows >= 0 && columns >= 0 && (order == CUSPARSE_ORDER_COL || order == CUSPARSE_ORDER_ROW));
  MXMACA_REQUIRE(ld >= (order == CUSPARSE_ORDER_COL ? rows : columns));
  if (elementBytes(type) == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
  return create(descriptor, cusparseDnMatDescr{rows, columns, ld, values, type, order, 1, 0});
}
MXMACA_EXPORT Status cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* descriptor, Index rows, Index columns,
                                              Index ld, const void* values, cudaDataType type, cusparseOrder_t order) {
  return cusparseCreateDnMat(const_cast<cusparseDnMatDescr_t*>(descriptor), rows, columns, ld, writable(values), type,
                             order);
}
MXMACA_EXPORT Status cusparseDestroyDnMat(cusparseConstDnMatDescr_t descriptor) { return destroy(descriptor); }
MXMACA_EXPORT Status cusparseDnMatGet(cusparseDnMatDescr_t d, Index* rows, Index* columns, Index* ld, void** values,
                                      cudaDataType* type, cusparseOrder_t* order) {
  MXMACA_REQUIRE(live(d) && rows != nullptr && columns != nullptr && ld != nullptr && values != nullptr &&
                 type != nullptr && order != nullptr);
  *rows = d->rows;
  *columns = d->columns;
  *ld = d->ld;
  *values = d->values;
  *type = d->type;
  *order = d->order;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseDnMatSetValues(cusparseDnMatDescr_t descriptor, void* values) {
  MXMACA_REQUIRE(live(descriptor));
  MXMACA_REQUIRE(values != nullptr || descriptor->rows == 0 || descriptor->columns == 0);
  descriptor->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseDnMatGetValues(cusparseDnMatDescr_t descriptor, void** values) {
  MXMACA_REQUIRE(live(descriptor) && values != nullptr);
  *values = descriptor->values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t descriptor, int batch, Index stride) {
  MXMACA_REQUIRE(live(descriptor) && batch >= 1 && stride >= 0);
  descriptor->batch = batch;
  descriptor->stride = stride;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseDnMatGetStridedBatch(cusparseConstDnMatDescr_t descriptor, int* batch, Index* stride) {
  MXMACA_REQUIRE(live(descriptor) && batch != nullptr && stride != nullptr);
  *batch = descriptor->batch;
  *stride = descriptor->stride;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseCreateCoo(cusparseSpMatDescr_t* descriptor, Index rows, Index columns, Index nnz,
                                       void* rowIndices, void* columnIndices, void* values, cusparseIndexType_t type,
                                       cusparseIndexBase_t base, cudaDataType valueType) {
  return createSparse(descriptor, CUSPARSE_FORMAT_COO, rows, columns, nnz, rowIndices, columnIndices, values, type,
                      type, base, valueType);
}
MXMACA_EXPORT Status cusparseCreateConstCoo(cusparseConstSpMatDescr_t* descriptor, Index rows, Index columns, Index nnz,
                                            const void* rowIndices, const void* columnIndices, const void* values,
                                            cusparseIndexType_t type, cusparseIndexBase_t base,
                                            cudaDataType valueType) {
  return cusparseCreateCoo(const_cast<cusparseSpMatDescr_t*>(descriptor), rows, columns, nnz, writable(rowIndices),
                           writable(columnIndices), writable(values), type, base, valueType);
}
MXMACA_EXPORT Status cusparseCreateCsr(cusparseSpMatDescr_t* descriptor, Index rows, Index columns, Index nnz,
                                       void* offsets, void* indices, void* values, cusparseIndexType_t offsetsType,
                                       cusparseIndexType_t indicesType, cusparseIndexBase_t base, cudaDataType type) {
  return createSparse(descriptor, CUSPARSE_FORMAT_CSR, rows, columns, nnz, offsets, indices, values, offsetsType,
                      indicesType, base, type);
}
MXMACA_EXPORT Status cusparseCreateConstCsr(cusparseConstSpMatDescr_t* descriptor, Index rows, Index columns, Index nnz,
                                            const void* offsets, const void* indices, const void* values,
                                            cusparseIndexType_t offsetsType, cusparseIndexType_t indicesType,
                                            cusparseIndexBase_t base, cudaDataType type) {
  return cusparseCreateCsr(const_cast<cusparseSpMatDescr_t*>(descriptor), rows, columns, nnz, writable(offsets),
                           writable(indices), writable(values), offsetsType, indicesType, base, type);
}
MXMACA_EXPORT Status cusparseCreateCsc(cusparseSpMatDescr_t* descriptor, Index rows, Index columns, Index nnz,
                                       void* offsets, void* indices, void* values, cusparseIndexType_t offsetsType,
                                       cusparseIndexType_t indicesType, cusparseIndexBase_t base, cudaDataType type) {
  return createSparse(descriptor, CUSPARSE_FORMAT_CSC, rows, columns, nnz, offsets, indices, values, offsetsType,
                      indicesType, base, type);
}
MXMACA_EXPORT Status cusparseDestroySpMat(cusparseConstSpMatDescr_t descriptor) { return destroy(descriptor); }
MXMACA_EXPORT Status cusparseCooGet(cusparseSpMatDescr_t d, Index* rows, Index* columns, Index* nnz, void** rowIndices,
                                    void** columnIndices, void** values, cusparseIndexType_t* type,
                                    cusparseIndexBase_t* base, cudaDataType* valueType) {
  return getSparse(d, CUSPARSE_FORMAT_COO, rows, columns, nnz, rowIndices, columnIndices, values, type, type, base,
                   valueType);
}
MXMACA_EXPORT Status cusparseCsrGet(cusparseSpMatDescr_t d, Index* rows, Index* columns, Index* nnz, void** offsets,
                                    void** indices, void** values, cusparseIndexType_t* offsetsType,
                                    cusparseIndexType_t* indicesType, cusparseIndexBase_t* base, cudaDataType* type) {
  return getSparse(d, CUSPARSE_FORMAT_CSR, rows, columns, nnz, offsets, indices, values, offsetsType, indicesType, base,
                   type);
}
MXMACA_EXPORT Status cusparseCsrSetPointers(cusparseSpMatDescr_t d, void* offsets, void* columns, void* values) {
  return setPointers(d, CUSPARSE_FORMAT_CSR, offsets, columns, values);
}
MXMACA_EXPORT Status cusparseCscSetPointers(cusparseSpMatDescr_t d, void* offsets, void* rows, void* values) {
  return setPointers(d, CUSPARSE_FORMAT_CSC, offsets, rows, values);
}
MXMACA_EXPORT Status cusparseCooSetPointers(cusparseSpMatDescr_t d, void* rows, void* columns, void* values) {
  return setPointers(d, CUSPARSE_FORMAT_COO, rows, columns, values);
}
MXMACA_EXPORT Status cusparseSpMatGetSize(cusparseConstSpMatDescr_t d, Index* rows, Index* columns, Index* nnz) {
  MXMACA_REQUIRE(live(d) && rows != nullptr && columns != nullptr && nnz != nullptr);
  *rows = d->rows;
  *columns = d->columns;
  *nnz = d->nnz;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpMatGetFormat(cusparseConstSpMatDescr_t d, cusparseFormat_t* format) {
  MXMACA_REQUIRE(live(d) && format != nullptr);
  *format = d->format;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t d, cusparseIndexBase_t* base) {
  MXMACA_REQUIRE(live(d) && base != nullptr);
  *base = d->base;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpMatGetValues(cusparseSpMatDescr_t d, void** values) {
  MXMACA_REQUIRE(live(d) && values != nullptr);
  *values = d->values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpMatSetValues(cusparseSpMatDescr_t d, void* values) {
  MXMACA_REQUIRE(live(d) && (values != nullptr || d->nnz == 0));
  d->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpMatSetAttribute(cusparseSpMatDescr_t d, cusparseSpMatAttribute_t attribute, void* data,
                                               size_t size) {
  MXMACA_REQUIRE(live(d) && data != nullptr && size == sizeof(int));
  int value = 0;
  std::memcpy(&value, data, sizeof value);
  MXMACA_REQUIRE(value == 0 || value == 1);
  if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
    d->fill = static_cast<cusparseFillMode_t>(value);
  } else {
    MXMACA_REQUIRE(attribute == CUSPARSE_SPMAT_DIAG_TYPE);
    d->diagonal = static_cast<cusparseDiagType_t>(value);
  }
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t d, cusparseSpMatAttribute_t attribute,
                                               void* data, size_t size) {
  MXMACA_REQUIRE(live(d) && data != nullptr && size == sizeof(int));
  MXMACA_REQUIRE(attribute == CUSPARSE_SPMAT_FILL_MODE || attribute == CUSPARSE_SPMAT_DIAG_TYPE);
  const int value = attribute == CUSPARSE_SPMAT_FILL_MODE ? static_cast<int>(d->fill) : static_cast<int>(d->diagonal);
  std::memcpy(data, &value, sizeof value);
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseCsrSetStridedBatch(cusparseSpMatDescr_t d, int batch, Index offsetsStride,
                                                Index valuesStride) {
  MXMACA_REQUIRE(live(d) && d->format == CUSPARSE_FORMAT_CSR && batch >= 1 && offsetsStride >= 0 && valuesStride >= 0);
  d->batch = batch;
  d->outerStride = offsetsStride;
  d->innerStride = valuesStride;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseCooSetStridedBatch(cusparseSpMatDescr_t d, int batch, Index stride) {
  MXMACA_REQUIRE(live(d) && d->format == CUSPARSE_FORMAT_COO && batch >= 1 && stride >= 0);
  d->batch = batch;
  d->outerStride = d->innerStride = stride;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpMatGetStridedBatch(cusparseConstSpMatDescr_t d, int* batch) {
  MXMACA_REQUIRE(live(d) && batch != nullptr);
  *batch = d->batch;
  return CUSPARSE_STATUS_SUCCESS;
}

// ---- Vectors ----------------------------------------------------------------------------------------------------------------
namespace {
Index elementAt(const cusparseSpVecDescr& x, Index i) {
  return inRange(readIndex(x.indices, x.indexType, i) - x.base, x.size);
}
}  // namespace

MXMACA_EXPORT Status cusparseAxpby(cusparseHandle_t handle, const void* alpha, cusparseConstSpVecDescr_t x,
                                   const void* beta, cusparseDnVecDescr_t y) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && live(x) && live(y) && x->size == y->size);
    MXMACA_REQUIRE(complete(x) && complete(y));
    if (x->type != y->type) return CUSPARSE_STATUS_NOT_SUPPORTED;
    // 16-bit vectors have scalars in float.
    const bool narrow = x->type == CUDA_R_16F || x->type == CUDA_R_16BF;
    const cudaDataType scale = narrow ? CUDA_R_32F : x->type;
    return COMPUTE_IN(scale, {
      const T a = scalar<T>(alpha, scale), b = scalar<T>(beta, scale);
      for (Index i = 0; i < y->size; ++i) combine<T>(y->values, y->type, i, T(0), T(0), b);
      for (Index i = 0; i < x->nnz; ++i) {
        combine<T>(y->values, y->type, elementAt(*x, i), a, valueAs<T>(readElement(x->values, x->type, i)), T(1));
      }
    });
  });
}
MXMACA_EXPORT Status cusparseGather(cusparseHandle_t handle, cusparseConstDnVecDescr_t y, cusparseSpVecDescr_t x) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(x) && live(y) && x->size == y->size);
    MXMACA_REQUIRE(complete(x) && complete(y));
    if (x->type != y->type) return CUSPARSE_STATUS_NOT_SUPPORTED;
    for (Index i = 0; i < x->nnz; ++i) {
      writeElement(x->values, x->type, i, readElement(y->values, y->type, elementAt(*x, i)));
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t x, cusparseDnVecDescr_t y) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(x) && live(y) && x->size == y->size);
    MXMACA_REQUIRE(complete(x) && complete(y));
    if (x->type != y->type) return CUSPARSE_STATUS_NOT_SUPPORTED;
    for (Index i = 0; i < x->nnz; ++i) {
      writeElement(y->values, y->type, elementAt(*x, i), readElement(x->values, x->type, i));
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseSpVV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op,
                                             cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y, const void*,
                                             cudaDataType compute, size_t* bytes) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(op) && live(x) && live(y) && x->size == y->size);
    if (!fits(x->type, compute) || !fits(y->type, compute)) return CUSPARSE_STATUS_NOT_SUPPORTED;
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSpVV(cusparseHandle_t handle, cusparseOperation_t op, cusparseConstSpVecDescr_t x,
                                  cusparseConstDnVecDescr_t y, void* result, cudaDataType compute, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(op) && live(x) && live(y) && x->size == y->size);
    MXMACA_REQUIRE(result != nullptr && buffer != nullptr && complete(x) && complete(y));
    if (!fits(x->type, compute) || !fits(y->type, compute)) return CUSPARSE_STATUS_NOT_SUPPORTED;
    return COMPUTE_IN(compute, {
      T sum(0);
      for (Index i = 0; i < x->nnz; ++i) {
        const T value = valueAs<T>(readElement(x->values, x->type, i));
        sum += (op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? conjugate(value) : value) *
               valueAs<T>(readElement(y->values, y->type, elementAt(*x, i)));
      }
      writeElement(result, compute, 0, std::complex<double>(sum));
    });
  });
}

// ---- Products ---------------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                             cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,
                                             cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t algorithm,
                                             size_t* bytes) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpMV(op, alpha, a, x, beta, y, compute));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                             cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,
                                             cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t algorithm,
                                             void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSpMV(op, alpha, a, x, beta, y, compute));
    MXMACA_REQUIRE(complete(a));
    return CUSPARSE_STATUS_SUCCESS;  // nothing to prepare
  });
}
MXMACA_EXPORT Status cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                  cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,
                                  cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t algorithm,
                                  void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSpMV(op, alpha, a, x, beta, y, compute));
    MXMACA_REQUIRE(complete(a) && complete(x) && complete(y));
    return COMPUTE_IN(compute, {
      const T scaleProduct = scalar<T>(alpha, compute), scaleOld = scalar<T>(beta, compute);
      std::vector<T> from(static_cast<size_t>(x->size));
      readMatrix(x->values, x->type, x->size, 1, x->size, from.data());
      multiply<T>(*a, op, 0, from, 1, [&](Index row, const std::vector<T>& sums) {
        combine(y->values, y->type, row, scaleProduct, sums[0], scaleOld);
      });
    });
  });
}
MXMACA_EXPORT Status cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                             const void* alpha, cusparseConstSpMatDescr_t a,
                                             cusparseConstDnMatDescr_t b, const void* beta, cusparseDnMatDescr_t c,
                                             cudaDataType compute, cusparseSpMMAlg_t algorithm, size_t* bytes) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpMM(opA, opB, alpha, a, b, beta, c, compute));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSpMM_preprocess(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                             const void* alpha, cusparseConstSpMatDescr_t a,
                                             cusparseConstDnMatDescr_t b, const void* beta, cusparseDnMatDescr_t c,
                                             cudaDataType compute, cusparseSpMMAlg_t algorithm, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSpMM(opA, opB, alpha, a, b, beta, c, compute));
    MXMACA_REQUIRE(complete(a));
    return CUSPARSE_STATUS_SUCCESS;  // nothing to prepare
  });
}
MXMACA_EXPORT Status cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                  const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                  const void* beta, cusparseDnMatDescr_t c, cudaDataType compute,
                                  cusparseSpMMAlg_t algorithm, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSpMM(opA, opB, alpha, a, b, beta, c, compute));
    MXMACA_REQUIRE(complete(a) && complete(b) && complete(c));
    return COMPUTE_IN(compute, {
      const T scaleProduct = scalar<T>(alpha, compute), scaleOld = scalar<T>(beta, compute);
      for (Index batch = 0; batch < c->batch; ++batch) {
        const std::vector<T> from = denseRows<T>(*b, opB, b->batch == 1 ? 0 : batch);
        multiply<T>(*a, opA, a->batch == 1 ? 0 : batch, from, c->columns, [&](Index row, const std::vector<T>& sums) {
          for (Index j = 0; j < c->columns; ++j) {
            combine(c->values, c->type, place(*c, row, j, batch), scaleProduct, sums[static_cast<size_t>(j)], scaleOld);
          }
        });
      }
    });
  });
}

MXMACA_EXPORT Status cusparseSpGEMM_createDescr(cusparseSpGEMMDescr_t* descriptor) {
  return create(descriptor, cusparseSpGEMMDescr());
}
MXMACA_EXPORT Status cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t descriptor) { return destroy(descriptor); }
namespace {
Status checkSpGemm(cusparseOperation_t opA, cusparseOperation_t opB, const void* alpha, cusparseConstSpMatDescr_t a,
                   cusparseConstSpMatDescr_t b, const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                   cusparseSpGEMMDescr_t descriptor) {
  MXMACA_REQUIRE(valid(opA) && valid(opB) && alpha != nullptr && beta != nullptr && live(a) && live(b) && live(c) &&
                 live(descriptor));
  MXMACA_REQUIRE(a->rows == c->rows && b->columns == c->columns && a->columns == b->rows);
  if (opA != CUSPARSE_OPERATION_NON_TRANSPOSE || opB != CUSPARSE_OPERATION_NON_TRANSPOSE) {
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  }
  for (const cusparseSpMatDescr* matrix : {a, b, static_cast<cusparseConstSpMatDescr_t>(c)}) {
    if (matrix->format != CUSPARSE_FORMAT_CSR || matrix->batch != 1) return CUSPARSE_STATUS_NOT_SUPPORTED;
  }
  return fits(a->type, compute) && fits(b->type, compute) && fits(c->type, compute) ? CUSPARSE_STATUS_SUCCESS
                                                                                    : CUSPARSE_STATUS_NOT_SUPPORTED;
}
}  // namespace
MXMACA_EXPORT Status cusparseSpGEMM_workEstimation(cusparseHandle_t handle, cusparseOperation_t opA,
                                                   cusparseOperation_t opB, const void* alpha,
                                                   cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                                   const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                                   cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t descriptor,
                                                   size_t* bytes, void*) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpGemm(opA, opB, alpha, a, b, beta, c, compute, descriptor));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSpGEMM_compute(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                            const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                            const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                            cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t descriptor,
                                            size_t* bytes, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpGemm(opA, opB, alpha, a, b, beta, c, compute, descriptor));
    MXMACA_REQUIRE(complete(a) && complete(b));
    if (buffer == nullptr) return needsLittle(bytes);
    return COMPUTE_IN(compute, {
      const T factor = scalar<T>(alpha, compute);
      const Pattern left = patternOf(*a, opA), right = patternOf(*b, opB);
      const std::vector<T> leftValues = valuesOf<T>(*a, left, opA), rightValues = valuesOf<T>(*b, right, opB);
      descriptor->offsets.assign(1, 0);
      descriptor->column.clear();
      descriptor->values.clear();
      std::vector<T> sums(static_cast<size_t>(right.columns));
      std::vector<Index> seen(static_cast<size_t>(right.columns), -1);
      std::vector<Index> touched;
      for (Index row = 0; row < left.rows; ++row) {
        touched.clear();
        for (auto i = static_cast<size_t>(left.offsets[static_cast<size_t>(row)]);
             i < static_cast<size_t>(left.offsets[static_cast<size_t>(row + 1)]); ++i) {
          const auto middle = static_cast<size_t>(left.column[i]);
          for (auto l = static_cast<size_t>(right.offsets[middle]); l < static_cast<size_t>(right.offsets[middle + 1]);
               ++l) {
            const auto column = static_cast<size_t>(right.column[l]);
            if (seen[column] != row) {
              seen[column] = row;
              sums[column] = T(0);
              touched.push_back(right.column[l]);
            }
            sums[column] += leftValues[i] * rightValues[l];
          }
        }
        std::sort(touched.begin(), touched.end());
        for (const Index column : touched) {
          descriptor->column.push_back(column);
          descriptor->values.emplace_back(factor * sums[static_cast<size_t>(column)]);
        }
        descriptor->offsets.push_back(static_cast<Index>(descriptor->column.size()));
      }
      descriptor->computed = true;
      c->nnz = static_cast<Index>(descriptor->column.size());
    });
  });
}
MXMACA_EXPORT Status cusparseSpGEMM_copy(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                         const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                         const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                         cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t descriptor) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpGemm(opA, opB, alpha, a, b, beta, c, compute, descriptor));
    MXMACA_REQUIRE(descriptor->computed && c->nnz == static_cast<Index>(descriptor->column.size()));
    MXMACA_REQUIRE(c->outer != nullptr && (c->nnz == 0 || (c->inner != nullptr && c->values != nullptr)));
    return COMPUTE_IN(compute, {
      const T old = scalar<T>(beta, compute);  // C has the product's own pattern where its values count
      for (size_t i = 0; i < descriptor->offsets.size(); ++i) {
        writeIndex(c->outer, c->outerType, static_cast<Index>(i), descriptor->offsets[i] + c->base);
      }
      for (size_t i = 0; i < descriptor->column.size(); ++i) {
        const auto at = static_cast<Index>(i);
        writeIndex(c->inner, c->innerType, at, descriptor->column[i] + c->base);
        combine<T>(c->values, c->type, at, T(1), valueAs<T>(descriptor->values[i]), old);
      }
    });
  });
}

MXMACA_EXPORT Status cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                              const void* alpha, cusparseConstDnMatDescr_t a,
                                              cusparseConstDnMatDescr_t b, const void* beta, cusparseSpMatDescr_t c,
                                              cudaDataType compute, cusparseSDDMMAlg_t algorithm, size_t* bytes) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSddmm(opA, opB, alpha, a, b, beta, c, compute));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSDDMM_preprocess(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                              const void* alpha, cusparseConstDnMatDescr_t a,
                                              cusparseConstDnMatDescr_t b, const void* beta, cusparseSpMatDescr_t c,
                                              cudaDataType compute, cusparseSDDMMAlg_t algorithm, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSddmm(opA, opB, alpha, a, b, beta, c, compute));
    MXMACA_REQUIRE(complete(c));
    return CUSPARSE_STATUS_SUCCESS;  // nothing to prepare
  });
}
MXMACA_EXPORT Status cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                   const void* alpha, cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                                   const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                   cusparseSDDMMAlg_t algorithm, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSddmm(opA, opB, alpha, a, b, beta, c, compute));
    MXMACA_REQUIRE(complete(a) && complete(b) && complete(c));
    return COMPUTE_IN(compute, {
      const T scaleProduct = scalar<T>(alpha, compute), scaleOld = scalar<T>(beta, compute);
      // op(B)' row after row: both factors of an element lie in one piece.
      const bool plain = opB == CUSPARSE_OPERATION_NON_TRANSPOSE;
      const auto flipped = plain ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
      const Index inner = rowsOf(opA, a->columns, a->rows);
      for (Index batch = 0; batch < c->batch; ++batch) {
        const std::vector<T> left = denseRows<T>(*a, opA, a->batch == 1 ? 0 : batch);
        std::vector<T> right = denseRows<T>(*b, flipped, b->batch == 1 ? 0 : batch);
        if (opB == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE) {
          for (T& value : right) value = conjugate(value);
        }
        const Pattern pattern = patternOf(*c, CUSPARSE_OPERATION_NON_TRANSPOSE, batch);
        for (Index row = 0; row < pattern.rows; ++row) {
          for (auto i = static_cast<size_t>(pattern.offsets[static_cast<size_t>(row)]);
               i < static_cast<size_t>(pattern.offsets[static_cast<size_t>(row + 1)]); ++i) {
            T sum(0);
            for (Index l = 0; l < inner; ++l) {
              sum += left[static_cast<size_t>(row * inner + l)] *
                     right[static_cast<size_t>(pattern.column[i] * inner + l)];
            }
            combine(c->values, c->type, batch * c->innerStride + pattern.place[i], scaleProduct, sum, scaleOld);
          }
        }
      }
    });
  });
}

// ---- Triangular solvers -------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cusparseSpSV_createDescr(cusparseSpSVDescr_t* descriptor) {
  return create(descriptor, cusparseSpSVDescr());
}
MXMACA_EXPORT Status cusparseSpSV_destroyDescr(cusparseSpSVDescr_t descriptor) { return destroy(descriptor); }
MXMACA_EXPORT Status cusparseSpSV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                             cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                             cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t algorithm,
                                             cusparseSpSVDescr_t descriptor, size_t* bytes) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpSV(op, alpha, a, x, y, compute, descriptor));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSpSV_analysis(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                           cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                           cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t algorithm,
                                           cusparseSpSVDescr_t descriptor, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSpSV(op, alpha, a, x, y, compute, descriptor));
    MXMACA_REQUIRE(complete(a));
    descriptor->analysed = true;
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseSpSV_solve(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                        cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                        cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t algorithm,
                                        cusparseSpSVDescr_t descriptor) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpSV(op, alpha, a, x, y, compute, descriptor));
    MXMACA_REQUIRE(complete(a) && complete(x) && complete(y));
    MXMACA_REQUIRE(descriptor->analysed);
    return COMPUTE_IN(compute, {
      std::vector<T> line(static_cast<size_t>(x->size));
      readMatrix(x->values, x->type, x->size, 1, x->size, line.data());
      const T factor = scalar<T>(alpha, compute);
      for (T& value : line) value *= factor;
      solveTriangle(*a, op, line, 1);
      writeMatrix(y->values, y->type, y->size, 1, y->size, line.data());
    });
  });
}
MXMACA_EXPORT Status cusparseSpSM_createDescr(cusparseSpSMDescr_t* descriptor) {
  return create(descriptor, cusparseSpSMDescr());
}
MXMACA_EXPORT Status cusparseSpSM_destroyDescr(cusparseSpSMDescr_t descriptor) { return destroy(descriptor); }
MXMACA_EXPORT Status cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                             const void* alpha, cusparseConstSpMatDescr_t a,
                                             cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c, cudaDataType compute,
                                             cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t descriptor,
                                             size_t* bytes) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpSM(opA, opB, alpha, a, b, c, compute, descriptor));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSpSM_analysis(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                           const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                           cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpSMAlg_t algorithm,
                                           cusparseSpSMDescr_t descriptor, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkSpSM(opA, opB, alpha, a, b, c, compute, descriptor));
    MXMACA_REQUIRE(complete(a));
    descriptor->analysed = true;
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseSpSM_solve(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                        const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                        cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpSMAlg_t algorithm,
                                        cusparseSpSMDescr_t descriptor) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkSpSM(opA, opB, alpha, a, b, c, compute, descriptor));
    MXMACA_REQUIRE(complete(a) && complete(b) && complete(c));
    MXMACA_REQUIRE(descriptor->analysed);
    return COMPUTE_IN(compute, {
      const T factor = scalar<T>(alpha, compute);
      for (Index batch = 0; batch < c->batch; ++batch) {
        std::vector<T> lines = denseRows<T>(*b, opB, batch);
        for (T& value : lines) value *= factor;
        solveTriangle(*a, opA, lines, c->columns);
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

// ---- Sparse and dense ---------------------------------------------------------------------------------------------------------
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
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkBoth(a, b));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSparseToDense(cusparseHandle_t handle, cusparseConstSpMatDescr_t a, cusparseDnMatDescr_t b,
                                           cusparseSparseToDenseAlg_t algorithm, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkBoth(a, b));
    MXMACA_REQUIRE(complete(a) && complete(b));
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
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    RETURN_UNLESS_GOOD(checkBoth(b, a));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseDenseToSparse_analysis(cusparseHandle_t handle, cusparseConstDnMatDescr_t a,
                                                    cusparseSpMatDescr_t b, cusparseDenseToSparseAlg_t algorithm,
                                                    void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkBoth(b, a));
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
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    RETURN_UNLESS_GOOD(checkBoth(b, a));
    MXMACA_REQUIRE(complete(a) && complete(b));
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
