// What cuSPARSE's descriptors hold, and a sparse matrix of any format in one form to compute with.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "numbers.h"
#include "sparse.h"

struct cusparseSpVecDescr {
  int64_t size, nnz;
  void *indices, *values;
  cusparseIndexType_t indexType;
  cusparseIndexBase_t base;
  cudaDataType type;
};

struct cusparseDnVecDescr {
  int64_t size;
  void* values;
  cudaDataType type;
};

struct cusparseDnMatDescr {
  int64_t rows, columns, ld;
  void* values;
  cudaDataType type;
  cusparseOrder_t order;
  int batch = 1;
  int64_t stride = 0;
};

// CSR: `outer` are row offsets; CSC: column offsets, and `inner` rows; COO: rows and columns.
struct cusparseSpMatDescr {
  cusparseFormat_t format;
  int64_t rows, columns, nnz;
  void *outer, *inner, *values;
  cusparseIndexType_t outerType, innerType;
  cusparseIndexBase_t base;
  cudaDataType type;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  int batch = 1;
  int64_t outerStride = 0, innerStride = 0;
};

struct cusparseSpGEMMDescr {
  bool computed = false;
  std::vector<int64_t> offsets, column;
  std::vector<std::complex<double>> values;  // of alpha * A * B
};
// A triangle that has been analysed, with the values that it was given since then, if any. Calls that are made later
// have copies of the descriptor, which share the values: they are the device's.
struct TriangleAnalysis {
  struct Values {
    std::vector<char> all{}, diagonal{};
  };
  bool analysed = false;
  int64_t rows = 0, nnz = 0;
  cudaDataType type{};
  std::shared_ptr<Values> values = std::make_shared<Values>();
};
struct cusparseSpSVDescr : TriangleAnalysis {};
struct cusparseSpSMDescr : TriangleAnalysis {};

MXMACA_OBJECT(cusparseContext, Cusparse);
MXMACA_OBJECT(cusparseSpVecDescr, CusparseSparseVector);
MXMACA_OBJECT(cusparseSpMatDescr, CusparseSparseMatrix);
MXMACA_OBJECT(cusparseDnVecDescr, CusparseDenseVector);
MXMACA_OBJECT(cusparseDnMatDescr, CusparseDenseMatrix);
MXMACA_OBJECT(cusparseSpGEMMDescr, CusparseSpGemm);
MXMACA_OBJECT(cusparseSpSVDescr, CusparseSpSv);
MXMACA_OBJECT(cusparseSpSMDescr, CusparseSpSm);

MXMACA_ANSWERS(cusparseStatus_t, CUSPARSE_STATUS_SUCCESS, CUSPARSE_STATUS_NOT_INITIALIZED,
               CUSPARSE_STATUS_INVALID_VALUE, CUSPARSE_STATUS_ALLOC_FAILED, CUSPARSE_STATUS_EXECUTION_FAILED);
MXMACA_RANGE(cusparseSpMVAlg_t, CUSPARSE_SPMV_ALG_DEFAULT, CUSPARSE_SPMV_SELL_ALG1);
MXMACA_RANGE(cusparseSpGEMMAlg_t, CUSPARSE_SPGEMM_DEFAULT, CUSPARSE_SPGEMM_ALG3);
MXMACA_RANGE(cusparseSDDMMAlg_t, CUSPARSE_SDDMM_ALG_DEFAULT, CUSPARSE_SDDMM_ALG_DEFAULT);
MXMACA_RANGE(cusparseSpSVAlg_t, CUSPARSE_SPSV_ALG_DEFAULT, CUSPARSE_SPSV_ALG_DEFAULT);
MXMACA_RANGE(cusparseSpSVUpdate_t, CUSPARSE_SPSV_UPDATE_GENERAL, CUSPARSE_SPSV_UPDATE_DIAGONAL);
MXMACA_RANGE(cusparseSpSMUpdate_t, CUSPARSE_SPSM_UPDATE_GENERAL, CUSPARSE_SPSM_UPDATE_DIAGONAL);
MXMACA_RANGE(cusparseSpSMAlg_t, CUSPARSE_SPSM_ALG_DEFAULT, CUSPARSE_SPSM_ALG_DEFAULT);
MXMACA_RANGE(cusparseSparseToDenseAlg_t, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, CUSPARSE_SPARSETODENSE_ALG_DEFAULT);
MXMACA_RANGE(cusparseDenseToSparseAlg_t, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT);
MXMACA_RANGE(cusparseCsr2CscAlg_t, CUSPARSE_CSR2CSC_ALG1, CUSPARSE_CSR2CSC_ALG2);
MXMACA_RANGE(cusparseOperation_t, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE);
MXMACA_RANGE(cusparseAction_t, CUSPARSE_ACTION_SYMBOLIC, CUSPARSE_ACTION_NUMERIC);
MXMACA_RANGE(cusparseIndexType_t, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_64I);
MXMACA_RANGE(cusparseOrder_t, CUSPARSE_ORDER_COL, CUSPARSE_ORDER_ROW);

namespace mxmaca {
namespace cusparse {

using Status = cusparseStatus_t;
using Index = int64_t;

inline int64_t inRange(int64_t index, int64_t count) {
  if (index < 0 || index >= count) throw BadIndex();
  return index;
}

// Whether a descriptor has the memory that computing with it reads or writes. Before that it may be without.
inline bool complete(const cusparseSpVecDescr* x) {
  return x->nnz == 0 || (x->indices != nullptr && x->values != nullptr);
}
inline bool complete(const cusparseDnVecDescr* x) { return x->size == 0 || x->values != nullptr; }
inline bool complete(const cusparseDnMatDescr* a) { return a->rows == 0 || a->columns == 0 || a->values != nullptr; }
inline bool hasPattern(const cusparseSpMatDescr* a, const void* outer, const void* inner) {
  const bool offsets = a->format != CUSPARSE_FORMAT_COO;
  return (a->nnz == 0 && !offsets) || (outer != nullptr && (a->nnz == 0 || inner != nullptr));
}
inline bool complete(const cusparseSpMatDescr* a) {
  return hasPattern(a, a->outer, a->inner) && (a->nnz == 0 || a->values != nullptr);
}

using mxmaca::valid;
inline bool valid(cusparseSpMMAlg_t algorithm) {
  return (algorithm >= CUSPARSE_SPMM_ALG_DEFAULT && algorithm <= CUSPARSE_SPMM_CSR_ALG2) ||
         algorithm == CUSPARSE_SPMM_CSR_ALG3 || algorithm == CUSPARSE_SPMM_BLOCKED_ELL_ALG1;
}

inline Index readIndex(const void* data, cusparseIndexType_t type, Index place) {
  return type == CUSPARSE_INDEX_32I ? static_cast<const int32_t*>(data)[place]
                                    : static_cast<const int64_t*>(data)[place];
}
inline void writeIndex(void* data, cusparseIndexType_t type, Index place, Index value) {
  if (type == CUSPARSE_INDEX_32I) {
    static_cast<int32_t*>(data)[place] = static_cast<int32_t>(value);
  } else {
    static_cast<int64_t*>(data)[place] = value;
  }
}

template <class T>
T valueAs(std::complex<double> value) {
  if constexpr (kComplex<T>) {
    return {static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag())};
  } else {
    return static_cast<T>(value.real());
  }
}
template <class T>
T scalar(const void* pointer, cudaDataType type) {
  return valueAs<T>(readElement(pointer, type, 0));
}

// Rows from zero, columns from zero within a row in the order of storage, each with its place among the values.
struct Pattern {
  Index rows = 0, columns = 0;
  std::vector<Index> offsets, column, place;
};
Pattern patternOf(const cusparseSpMatDescr& matrix, cusparseOperation_t op, Index batch = 0);

template <class T>
std::vector<T> valuesOf(const cusparseSpMatDescr& matrix, const Pattern& pattern, cusparseOperation_t op,
                        Index batch = 0) {
  std::vector<T> values(pattern.place.size());
  const Index start = batch * matrix.innerStride;
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = valueAs<T>(readElement(matrix.values, matrix.type, start + pattern.place[i]));
    values[i] = op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? conjugate(value) : value;
  }
  return values;
}

inline Index place(const cusparseDnMatDescr& matrix, Index row, Index column, Index batch = 0) {
  return batch * matrix.stride +
         (matrix.order == CUSPARSE_ORDER_COL ? row + column * matrix.ld : row * matrix.ld + column);
}

// op of a dense matrix as T, row after row.
template <class T>
std::vector<T> denseRows(const cusparseDnMatDescr& matrix, cusparseOperation_t op, Index batch) {
  const bool plain = op == CUSPARSE_OPERATION_NON_TRANSPOSE;
  const Index rows = plain ? matrix.rows : matrix.columns;
  const Index columns = plain ? matrix.columns : matrix.rows;
  std::vector<T> result(static_cast<size_t>(rows * columns));
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      const Index at =
          plain ? mxmaca::cusparse::place(matrix, i, j, batch) : mxmaca::cusparse::place(matrix, j, i, batch);
      const T value = valueAs<T>(readElement(matrix.values, matrix.type, at));
      result[static_cast<size_t>(i * columns + j)] =
          op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? conjugate(value) : value;
    }
  }
  return result;
}

// Calls `work` with the type that a compute type means. Sums of 8-bit integers are exact in double.
template <class Work>
Status withCompute(cudaDataType type, Work&& work) {
  switch (type) {
    case CUDA_R_32F: return work(Typed<float>());
    case CUDA_R_64F: return work(Typed<double>());
    case CUDA_C_32F: return work(Typed<std::complex<float>>());
    case CUDA_C_64F: return work(Typed<std::complex<double>>());
    case CUDA_R_32I: return work(Typed<double>());
    default: return CUSPARSE_STATUS_NOT_SUPPORTED;
  }
}
// Whether values of this type may be computed with in that one.
inline bool fits(cudaDataType value, cudaDataType compute) {
  switch (compute) {
    case CUDA_R_32F: return value == CUDA_R_32F || value == CUDA_R_16F || value == CUDA_R_16BF || value == CUDA_R_8I;
    case CUDA_R_32I: return value == CUDA_R_8I || value == CUDA_R_32I;
    case CUDA_R_64F: return value == CUDA_R_64F || value == CUDA_R_32F;
    case CUDA_C_32F: return value == CUDA_C_32F || value == CUDA_R_32F;
    case CUDA_C_64F: return value == CUDA_C_64F || value == CUDA_R_64F || value == CUDA_C_32F;
    default: return false;
  }
}

inline Status needsLittle(size_t* bytes) {
  MXMACA_REQUIRE(bytes != nullptr);
  *bytes = 16;  // nothing is kept there; callers tell the two calls of a function apart by the pointer
  return CUSPARSE_STATUS_SUCCESS;
}
// The size of a buffer, and a preparation, which needs the matrix alone. `checked`: what the arguments' check has
// found.
inline Status sizeOfBuffer(cusparseHandle_t handle, bool good, Status checked, size_t* bytes) {
  return described(handle, [=]() -> Status {
    MXMACA_REQUIRE(good);
    return checked == CUSPARSE_STATUS_SUCCESS ? needsLittle(bytes) : checked;
  });
}
inline Status prepared(cusparseHandle_t handle, bool good, Status checked, const cusparseSpMatDescr* matrix) {
  return described(handle, [=]() -> Status {
    MXMACA_REQUIRE(good);
    MXMACA_RETURN_IF_FAILED(checked);
    MXMACA_REQUIRE(complete(matrix));
    return CUSPARSE_STATUS_SUCCESS;
  });
}

inline Index rowsOf(cusparseOperation_t op, Index rows, Index columns) {
  return op == CUSPARSE_OPERATION_NON_TRANSPOSE ? rows : columns;
}

template <class T>
void combine(void* data, cudaDataType type, Index at, T alpha, T product, T beta) {
  T value = alpha * product;
  if (beta != T(0)) value += beta * valueAs<T>(readElement(data, type, at));
  writeElement(data, type, at, std::complex<double>(value));
}

// The body of a function behind its checks, in which T is the type that is computed in.
#define COMPUTE_IN(type, ...) MXMACA_WITH_TYPE(withCompute, type, T, reachData(); __VA_ARGS__)

}  // namespace cusparse
}  // namespace mxmaca
