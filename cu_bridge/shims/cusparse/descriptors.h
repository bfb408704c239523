// What cuSPARSE's descriptors hold, and a sparse matrix of any format in one form to compute with.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "handle.h"
#include "numbers.h"
#include "openblas.h"

#pragma GCC visibility push(default)
#include "cusparse.h"
#pragma GCC visibility pop

struct cusparseMatDescr {
  cusparseMatrixType_t type = CUSPARSE_MATRIX_TYPE_GENERAL;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  cusparseIndexBase_t base = CUSPARSE_INDEX_BASE_ZERO;
};

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
struct cusparseSpSVDescr {
  bool analysed = false;
};
struct cusparseSpSMDescr {
  bool analysed = false;
};

MXMACA_OBJECT(cusparseContext, Cusparse);
MXMACA_OBJECT(cusparseMatDescr, CusparseMatrix);
MXMACA_OBJECT(cusparseSpVecDescr, CusparseSparseVector);
MXMACA_OBJECT(cusparseSpMatDescr, CusparseSparseMatrix);
MXMACA_OBJECT(cusparseDnVecDescr, CusparseDenseVector);
MXMACA_OBJECT(cusparseDnMatDescr, CusparseDenseMatrix);
MXMACA_OBJECT(cusparseSpGEMMDescr, CusparseSpGemm);
MXMACA_OBJECT(cusparseSpSVDescr, CusparseSpSv);
MXMACA_OBJECT(cusparseSpSMDescr, CusparseSpSm);

namespace mxmaca {
namespace cusparse {

using Status = cusparseStatus_t;
using Index = int64_t;

#define MXMACA_EXPORT extern "C" __attribute__((visibility("default")))
#define MXMACA_REQUIRE(condition)                           \
  do {                                                      \
    if (!(condition)) return CUSPARSE_STATUS_INVALID_VALUE; \
  } while (false)

// An index of the caller's arrays lies outside its matrix or vector: on the device the access would fail.
struct BadIndex {};
inline int64_t inRange(int64_t index, int64_t count) {
  if (index < 0 || index >= count) throw BadIndex();
  return index;
}

template <class Work>
Status guarded(cusparseHandle_t handle, Work&& work) {
  if (!live(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (mcStreamCheck(static_cast<mcStream_t>(handleOf(handle)->stream)) != mcSuccess) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  try {
    return work();
  } catch (const BadIndex&) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  } catch (const std::bad_alloc&) {
    return CUSPARSE_STATUS_ALLOC_FAILED;
  }
}

template <class Descriptor>
Status create(Descriptor** descriptor, const Descriptor& value) {
  MXMACA_REQUIRE(descriptor != nullptr);
  auto created = std::unique_ptr<Descriptor>(new (std::nothrow) Descriptor(value));
  return createObject(descriptor, std::move(created)) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}
template <class Descriptor>
Status destroy(const Descriptor* descriptor) {
  return destroyObject(descriptor) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
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

inline bool valid(cusparseSpMVAlg_t algorithm) {
  return algorithm >= CUSPARSE_SPMV_ALG_DEFAULT && algorithm <= CUSPARSE_SPMV_SELL_ALG1;
}
inline bool valid(cusparseSpMMAlg_t algorithm) {
  return (algorithm >= CUSPARSE_SPMM_ALG_DEFAULT && algorithm <= CUSPARSE_SPMM_CSR_ALG2) ||
         algorithm == CUSPARSE_SPMM_CSR_ALG3 || algorithm == CUSPARSE_SPMM_BLOCKED_ELL_ALG1;
}
inline bool valid(cusparseSpGEMMAlg_t algorithm) {
  return algorithm >= CUSPARSE_SPGEMM_DEFAULT && algorithm <= CUSPARSE_SPGEMM_ALG3;
}
inline bool valid(cusparseSDDMMAlg_t algorithm) { return algorithm == CUSPARSE_SDDMM_ALG_DEFAULT; }
inline bool valid(cusparseSpSVAlg_t algorithm) { return algorithm == CUSPARSE_SPSV_ALG_DEFAULT; }
inline bool valid(cusparseSpSMAlg_t algorithm) { return algorithm == CUSPARSE_SPSM_ALG_DEFAULT; }
inline bool valid(cusparseSparseToDenseAlg_t algorithm) { return algorithm == CUSPARSE_SPARSETODENSE_ALG_DEFAULT; }
inline bool valid(cusparseDenseToSparseAlg_t algorithm) { return algorithm == CUSPARSE_DENSETOSPARSE_ALG_DEFAULT; }
inline bool valid(cusparseCsr2CscAlg_t algorithm) {
  return algorithm == CUSPARSE_CSR2CSC_ALG1 || algorithm == CUSPARSE_CSR2CSC_ALG2;
}
inline bool valid(cusparseOperation_t op) {
  return op >= CUSPARSE_OPERATION_NON_TRANSPOSE && op <= CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;
}
inline bool valid(cusparseIndexBase_t base) {
  return base == CUSPARSE_INDEX_BASE_ZERO || base == CUSPARSE_INDEX_BASE_ONE;
}
inline bool valid(cusparseAction_t action) {
  return action == CUSPARSE_ACTION_SYMBOLIC || action == CUSPARSE_ACTION_NUMERIC;
}
inline bool valid(cusparseIndexType_t type) { return type == CUSPARSE_INDEX_32I || type == CUSPARSE_INDEX_64I; }

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

template <class T>
struct Typed {
  using Type = T;
};
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

}  // namespace cusparse
}  // namespace mxmaca
