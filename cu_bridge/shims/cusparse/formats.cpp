// Descriptors of vectors and matrices of any format.

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
  return createDescriptor<Status>(descriptor, value);
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
// The values of a descriptor, which may be missing where it has no elements.
bool isEmpty(const cusparseSpVecDescr* x) { return x->nnz == 0; }
bool isEmpty(const cusparseDnVecDescr* x) { return x->size == 0; }
bool isEmpty(const cusparseDnMatDescr* a) { return a->rows == 0 || a->columns == 0; }
bool isEmpty(const cusparseSpMatDescr* a) { return a->nnz == 0; }
template <class Descriptor>
Status getValues(const Descriptor* descriptor, void** values) {
  MXMACA_REQUIRE(live(descriptor) && values != nullptr);
  *values = descriptor->values;
  return CUSPARSE_STATUS_SUCCESS;
}
template <class Descriptor>
Status setValues(Descriptor* descriptor, void* values) {
  MXMACA_REQUIRE(live(descriptor) && (values != nullptr || isEmpty(descriptor)));
  descriptor->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

MXMACA_EXPORT Status cusparseCreateSpVec(cusparseSpVecDescr_t* descriptor, Index size, Index nnz, void* indices,
                                         void* values, cusparseIndexType_t indexType, cusparseIndexBase_t base,
                                         cudaDataType type) {
  MXMACA_REQUIRE(size >= 0 && nnz >= 0 && nnz <= size && valid(base));
  if (!valid(indexType) || elementBytes(type) == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
  return createDescriptor<Status>(descriptor, cusparseSpVecDescr{size, nnz, indices, values, indexType, base, type});
}
MXMACA_EXPORT Status cusparseDestroySpVec(cusparseConstSpVecDescr_t descriptor) {
  return destroyDescriptor<Status>(descriptor);
}
MXMACA_EXPORT Status cusparseSpVecGet(cusparseSpVecDescr_t descriptor, Index* size, Index* nnz, void** indices,
                                      void** values, cusparseIndexType_t* indexType, cusparseIndexBase_t* base,
                                      cudaDataType* type) {
  MXMACA_REQUIRE(live(descriptor) && size != nullptr && nnz != nullptr && indices != nullptr && values != nullptr);
  MXMACA_REQUIRE(indexType != nullptr && base != nullptr && type != nullptr);
  *size = descriptor->size;
  *nnz = descriptor->nnz;
  *indices = descriptor->indices;
  *values = descriptor->values;
  *indexType = descriptor->indexType;
  *base = descriptor->base;
  *type = descriptor->type;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpVecGetIndexBase(cusparseConstSpVecDescr_t descriptor, cusparseIndexBase_t* base) {
  MXMACA_REQUIRE(live(descriptor) && base != nullptr);
  *base = descriptor->base;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseSpVecSetValues(cusparseSpVecDescr_t descriptor, void* values) {
  return setValues(descriptor, values);
}
MXMACA_EXPORT Status cusparseSpVecGetValues(cusparseSpVecDescr_t descriptor, void** values) {
  return getValues(descriptor, values);
}
MXMACA_EXPORT Status cusparseCreateDnVec(cusparseDnVecDescr_t* descriptor, Index size, void* values,
                                         cudaDataType type) {
  MXMACA_REQUIRE(size >= 0);
  if (elementBytes(type) == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
  return createDescriptor<Status>(descriptor, cusparseDnVecDescr{size, values, type});
}
MXMACA_EXPORT Status cusparseCreateConstDnVec(cusparseConstDnVecDescr_t* descriptor, Index size, const void* values,
                                              cudaDataType type) {
  return cusparseCreateDnVec(const_cast<cusparseDnVecDescr_t*>(descriptor), size, writable(values), type);
}
MXMACA_EXPORT Status cusparseDestroyDnVec(cusparseConstDnVecDescr_t descriptor) {
  return destroyDescriptor<Status>(descriptor);
}
MXMACA_EXPORT Status cusparseDnVecGet(cusparseDnVecDescr_t descriptor, Index* size, void** values, cudaDataType* type) {
  MXMACA_REQUIRE(live(descriptor) && size != nullptr && values != nullptr && type != nullptr);
  *size = descriptor->size;
  *values = descriptor->values;
  *type = descriptor->type;
  return CUSPARSE_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cusparseDnVecSetValues(cusparseDnVecDescr_t descriptor, void* values) {
  return setValues(descriptor, values);
}
MXMACA_EXPORT Status cusparseDnVecGetValues(cusparseDnVecDescr_t descriptor, void** values) {
  return getValues(descriptor, values);
}
MXMACA_EXPORT Status cusparseCreateDnMat(cusparseDnMatDescr_t* descriptor, Index rows, Index columns, Index ld,
                                         void* values, cudaDataType type, cusparseOrder_t order) {
  MXMACA_REQUIRE(rows >= 0 && columns >= 0 && (order == CUSPARSE_ORDER_COL || order == CUSPARSE_ORDER_ROW));
  MXMACA_REQUIRE(ld >= (order == CUSPARSE_ORDER_COL ? rows : columns));
  if (elementBytes(type) == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
  return createDescriptor<Status>(descriptor, cusparseDnMatDescr{rows, columns, ld, values, type, order, 1, 0});
}
MXMACA_EXPORT Status cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* descriptor, Index rows, Index columns,
                                              Index ld, const void* values, cudaDataType type, cusparseOrder_t order) {
  return cusparseCreateDnMat(const_cast<cusparseDnMatDescr_t*>(descriptor), rows, columns, ld, writable(values), type,
                             order);
}
MXMACA_EXPORT Status cusparseDestroyDnMat(cusparseConstDnMatDescr_t descriptor) {
  return destroyDescriptor<Status>(descriptor);
}
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
  return setValues(descriptor, values);
}
MXMACA_EXPORT Status cusparseDnMatGetValues(cusparseDnMatDescr_t descriptor, void** values) {
  return getValues(descriptor, values);
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
MXMACA_EXPORT Status cusparseDestroySpMat(cusparseConstSpMatDescr_t descriptor) {
  return destroyDescriptor<Status>(descriptor);
}
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
MXMACA_EXPORT Status cusparseSpMatGetValues(cusparseSpMatDescr_t d, void** values) { return getValues(d, values); }
MXMACA_EXPORT Status cusparseSpMatSetValues(cusparseSpMatDescr_t d, void* values) { return setValues(d, values); }
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
