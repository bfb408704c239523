// Products of sparse vectors and matrices.

#include "descriptors.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

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

}  // namespace

// ---- Vectors --------------------------------------------------------------------------------------------------------
namespace {
Index elementAt(const cusparseSpVecDescr& x, Index i) {
  return inRange(readIndex(x.indices, x.indexType, i) - x.base, x.size);
}
}  // namespace

MXMACA_EXPORT Status cusparseAxpby(cusparseHandle_t handle, const void* alpha, cusparseConstSpVecDescr_t x,
                                   const void* beta, cusparseDnVecDescr_t y) {
  MXMACA_LATER(Status, cusparseAxpby, handle, scalars(handle, alpha), x, scalars(handle, beta), y);
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
  MXMACA_LATER(Status, cusparseGather, handle, y, x);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(x) && live(y) && x->size == y->size);
    MXMACA_REQUIRE(complete(x) && complete(y));
    if (x->type != y->type) return CUSPARSE_STATUS_NOT_SUPPORTED;
    reachData();
    for (Index i = 0; i < x->nnz; ++i) {
      writeElement(x->values, x->type, i, readElement(y->values, y->type, elementAt(*x, i)));
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t x, cusparseDnVecDescr_t y) {
  MXMACA_LATER(Status, cusparseScatter, handle, x, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(x) && live(y) && x->size == y->size);
    MXMACA_REQUIRE(complete(x) && complete(y));
    if (x->type != y->type) return CUSPARSE_STATUS_NOT_SUPPORTED;
    reachData();
    for (Index i = 0; i < x->nnz; ++i) {
      writeElement(y->values, y->type, elementAt(*x, i), readElement(x->values, x->type, i));
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
// Elements that x does not have stay as they are in y.
MXMACA_EXPORT Status cusparseRot(cusparseHandle_t handle, const void* c, const void* s, cusparseSpVecDescr_t x,
                                 cusparseDnVecDescr_t y) {
  MXMACA_LATER(Status, cusparseRot, handle, scalars(handle, c), scalars(handle, s), x, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(c != nullptr && s != nullptr && live(x) && live(y) && x->size == y->size);
    MXMACA_REQUIRE(complete(x) && complete(y));
    if (x->type != y->type) return CUSPARSE_STATUS_NOT_SUPPORTED;
    const bool narrow = x->type == CUDA_R_16F || x->type == CUDA_R_16BF;
    const cudaDataType scale = narrow ? CUDA_R_32F : x->type;
    return COMPUTE_IN(scale, {
      const T cosine = scalar<T>(c, scale), sine = scalar<T>(s, scale);
      for (Index i = 0; i < x->nnz; ++i) {
        const Index at = elementAt(*x, i);
        const T a = valueAs<T>(readElement(x->values, x->type, i)), b = valueAs<T>(readElement(y->values, y->type, at));
        writeElement(x->values, x->type, i, cosine * a + sine * b);
        writeElement(y->values, y->type, at, cosine * b - sine * a);
      }
    });
  });
}
MXMACA_EXPORT Status cusparseSpVV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op,
                                             cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y, const void*,
                                             cudaDataType compute, size_t* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(op) && live(x) && live(y) && x->size == y->size);
    if (!fits(x->type, compute) || !fits(y->type, compute)) return CUSPARSE_STATUS_NOT_SUPPORTED;
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseSpVV(cusparseHandle_t handle, cusparseOperation_t op, cusparseConstSpVecDescr_t x,
                                  cusparseConstDnVecDescr_t y, void* result, cudaDataType compute, void* buffer) {
  MXMACA_LATER(Status, cusparseSpVV, handle, op, x, y, resultOf(handle, result), compute, unread(buffer));
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

// ---- Matrices -------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                             cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,
                                             cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t algorithm,
                                             size_t* bytes) {
  return sizeOfBuffer(handle, valid(algorithm), checkSpMV(op, alpha, a, x, beta, y, compute), bytes);
}
MXMACA_EXPORT Status cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                             cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,
                                             cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t algorithm,
                                             void* buffer) {
  return prepared(handle, valid(algorithm) && buffer != nullptr, checkSpMV(op, alpha, a, x, beta, y, compute), a);
}
MXMACA_EXPORT Status cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                                  cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void* beta,
                                  cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t algorithm,
                                  void* buffer) {
  MXMACA_LATER(Status, cusparseSpMV, handle, op, scalars(handle, alpha), a, x, scalars(handle, beta), y, compute,
               algorithm, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    MXMACA_RETURN_IF_FAILED(checkSpMV(op, alpha, a, x, beta, y, compute));
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
  return sizeOfBuffer(handle, valid(algorithm), checkSpMM(opA, opB, alpha, a, b, beta, c, compute), bytes);
}
MXMACA_EXPORT Status cusparseSpMM_preprocess(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                             const void* alpha, cusparseConstSpMatDescr_t a,
                                             cusparseConstDnMatDescr_t b, const void* beta, cusparseDnMatDescr_t c,
                                             cudaDataType compute, cusparseSpMMAlg_t algorithm, void* buffer) {
  return prepared(handle, valid(algorithm) && buffer != nullptr, checkSpMM(opA, opB, alpha, a, b, beta, c, compute), a);
}
MXMACA_EXPORT Status cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                  const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                  const void* beta, cusparseDnMatDescr_t c, cudaDataType compute,
                                  cusparseSpMMAlg_t algorithm, void* buffer) {
  MXMACA_LATER(Status, cusparseSpMM, handle, opA, opB, scalars(handle, alpha), a, b, scalars(handle, beta), c, compute,
               algorithm, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    MXMACA_RETURN_IF_FAILED(checkSpMM(opA, opB, alpha, a, b, beta, c, compute));
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
  return createDescriptor<Status>(descriptor, cusparseSpGEMMDescr());
}
MXMACA_EXPORT Status cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t descriptor) {
  return destroyDescriptor<Status>(descriptor);
}
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
  return sizeOfBuffer(handle, valid(algorithm), checkSpGemm(opA, opB, alpha, a, b, beta, c, compute, descriptor),
                      bytes);
}
MXMACA_EXPORT Status cusparseSpGEMM_compute(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                            const void* alpha, cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                            const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                            cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t descriptor,
                                            size_t* bytes, void* buffer) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm));
    MXMACA_RETURN_IF_FAILED(checkSpGemm(opA, opB, alpha, a, b, beta, c, compute, descriptor));
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
    MXMACA_RETURN_IF_FAILED(checkSpGemm(opA, opB, alpha, a, b, beta, c, compute, descriptor));
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
  return sizeOfBuffer(handle, valid(algorithm), checkSddmm(opA, opB, alpha, a, b, beta, c, compute), bytes);
}
MXMACA_EXPORT Status cusparseSDDMM_preprocess(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                              const void* alpha, cusparseConstDnMatDescr_t a,
                                              cusparseConstDnMatDescr_t b, const void* beta, cusparseSpMatDescr_t c,
                                              cudaDataType compute, cusparseSDDMMAlg_t algorithm, void* buffer) {
  return prepared(handle, valid(algorithm) && buffer != nullptr, checkSddmm(opA, opB, alpha, a, b, beta, c, compute),
                  c);
}
MXMACA_EXPORT Status cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,
                                   const void* alpha, cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b,
                                   const void* beta, cusparseSpMatDescr_t c, cudaDataType compute,
                                   cusparseSDDMMAlg_t algorithm, void* buffer) {
  MXMACA_LATER(Status, cusparseSDDMM, handle, opA, opB, scalars(handle, alpha), a, b, scalars(handle, beta), c, compute,
               algorithm, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && buffer != nullptr);
    MXMACA_RETURN_IF_FAILED(checkSddmm(opA, opB, alpha, a, b, beta, c, compute));
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
