// cuSPARSE's older functions on plain arrays: sorting, conversions, sums of matrices.

#include <numeric>

#include "descriptors.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

// Sorts coordinates by (first, second), stably, and takes the permutation along.
void sortCoordinates(int count, int* first, int* second, int* permutation) {
  std::vector<int> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return first[a] != first[b] ? first[a] < first[b] : second[a] < second[b]; });
  const auto apply = [&](int* data) {
    if (data == nullptr) return;
    const std::vector<int> old(data, data + count);
    for (int i = 0; i < count; ++i) data[i] = old[static_cast<size_t>(order[static_cast<size_t>(i)])];
  };
  apply(permutation);
  apply(first);
  apply(second);
}

// Columns of the sum of two rows, each with what `visit` is told about its places in A and B (-1: none).
template <class Visit>
void mergeRow(const int* columnsA, int beginA, int endA, int baseA, const int* columnsB, int beginB, int endB,
              int baseB, Visit&& visit) {
  while (beginA < endA || beginB < endB) {
    const int a = beginA < endA ? columnsA[beginA] - baseA : 0x7fffffff;
    const int b = beginB < endB ? columnsB[beginB] - baseB : 0x7fffffff;
    visit(std::min(a, b), a <= b ? beginA : -1, b <= a ? beginB : -1);
    if (a <= b) ++beginA;
    if (b <= a) ++beginB;
  }
}
template <class Visit>
void mergeRows(int m, const cusparseMatDescr_t descrA, const int* rowsA, const int* colsA,
               const cusparseMatDescr_t descrB, const int* rowsB, const int* colsB, Visit&& visit) {
  for (int row = 0; row < m; ++row) {
    mergeRow(colsA, rowsA[row] - descrA->base, rowsA[row + 1] - descrA->base, descrA->base, colsB,
             rowsB[row] - descrB->base, rowsB[row + 1] - descrB->base, descrB->base,
             [&](int column, int a, int b) { visit(row, column, a, b); });
  }
}
bool general(const cusparseMatDescr_t descriptor) {
  return live(descriptor) && descriptor->type == CUSPARSE_MATRIX_TYPE_GENERAL;
}

template <class T>
Status geam(int m, int n, const T* alpha, const cusparseMatDescr_t descrA, const T* valA, const int* rowsA,
            const int* colsA, const T* beta, const cusparseMatDescr_t descrB, const T* valB, const int* rowsB,
            const int* colsB, const cusparseMatDescr_t descrC, T* valC, const int* rowsC, int* colsC) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && alpha != nullptr && beta != nullptr && live(descrC));
  if (!general(descrA) || !general(descrB) || !general(descrC)) return CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
  const T a = *alpha, b = *beta;
  int next = 0;
  mergeRows(m, descrA, rowsA, colsA, descrB, rowsB, colsB, [&](int, int column, int atA, int atB) {
    colsC[next] = column + descrC->base;
    valC[next++] = (atA < 0 ? T(0) : a * valA[atA]) + (atB < 0 ? T(0) : b * valB[atB]);
  });
  (void)rowsC;  // csrgeam2Nnz has written them
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

MXMACA_EXPORT Status cusparseXcoo2csr(cusparseHandle_t handle, const int* rows, int nnz, int m, int* offsets,
                                      cusparseIndexBase_t base) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(nnz >= 0 && m >= 0 && offsets != nullptr);
    std::fill(offsets, offsets + m + 1, 0);
    for (int i = 0; i < nnz; ++i) ++offsets[rows[i] - base + 1];
    offsets[0] = base;
    for (int row = 0; row < m; ++row) offsets[row + 1] += offsets[row];
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcsr2coo(cusparseHandle_t handle, const int* offsets, int nnz, int m, int* rows,
                                      cusparseIndexBase_t base) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(nnz >= 0 && m >= 0);
    for (int row = 0; row < m; ++row) {
      for (int i = offsets[row] - base; i < offsets[row + 1] - base && i < nnz; ++i) rows[i] = row + base;
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseCreateIdentityPermutation(cusparseHandle_t handle, int n, int* permutation) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(n >= 0 && (n == 0 || permutation != nullptr));
    std::iota(permutation, permutation + n, 0);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcoosort_bufferSizeExt(cusparseHandle_t handle, int, int, int, const int*, const int*,
                                                    size_t* bytes) {
  return guarded(handle, [&] { return needsLittle(bytes); });
}
MXMACA_EXPORT Status cusparseXcoosortByRow(cusparseHandle_t handle, int, int, int nnz, int* rows, int* columns, int* p,
                                           void*) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(nnz >= 0);
    sortCoordinates(nnz, rows, columns, p);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcoosortByColumn(cusparseHandle_t handle, int, int, int nnz, int* rows, int* columns,
                                              int* p, void*) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(nnz >= 0);
    sortCoordinates(nnz, columns, rows, p);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcsrsort_bufferSizeExt(cusparseHandle_t handle, int, int, int, const int*, const int*,
                                                    size_t* bytes) {
  return guarded(handle, [&] { return needsLittle(bytes); });
}
MXMACA_EXPORT Status cusparseXcsrsort(cusparseHandle_t handle, int m, int, int nnz, const cusparseMatDescr_t descriptor,
                                      const int* offsets, int* columns, int* p, void*) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(m >= 0 && nnz >= 0 && live(descriptor));
    std::vector<int> rows(static_cast<size_t>(nnz));
    for (int row = 0; row < m; ++row) {
      for (int i = offsets[row] - descriptor->base; i < offsets[row + 1] - descriptor->base; ++i) {
        rows[static_cast<size_t>(i)] = row;
      }
    }
    sortCoordinates(nnz, rows.data(), columns, p);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseCsr2cscEx2_bufferSize(cusparseHandle_t handle, int, int, int, const void*, const int*,
                                                   const int*, void*, int*, int*, cudaDataType type, cusparseAction_t,
                                                   cusparseIndexBase_t, cusparseCsr2CscAlg_t, size_t* bytes) {
  return guarded(handle, [&] { return elementBytes(type) == 0 ? CUSPARSE_STATUS_NOT_SUPPORTED : needsLittle(bytes); });
}
MXMACA_EXPORT Status cusparseCsr2cscEx2(cusparseHandle_t handle, int m, int n, int nnz, const void* values,
                                        const int* offsets, const int* columns, void* outValues, int* outOffsets,
                                        int* outRows, cudaDataType type, cusparseAction_t action,
                                        cusparseIndexBase_t base, cusparseCsr2CscAlg_t, void*) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(m >= 0 && n >= 0 && nnz >= 0);
    const size_t bytes = elementBytes(type);
    if (bytes == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
    std::vector<int> next(static_cast<size_t>(n + 1), 0);
    for (int i = 0; i < nnz; ++i) ++next[static_cast<size_t>(columns[i] - base + 1)];
    for (int column = 0; column < n; ++column)
      next[static_cast<size_t>(column + 1)] += next[static_cast<size_t>(column)];
    for (int column = 0; column <= n; ++column) outOffsets[column] = next[static_cast<size_t>(column)] + base;
    for (int row = 0; row < m; ++row) {
      for (int i = offsets[row] - base; i < offsets[row + 1] - base; ++i) {
        const int to = next[static_cast<size_t>(columns[i] - base)]++;
        outRows[to] = row + base;
        if (action == CUSPARSE_ACTION_NUMERIC) {
          std::memcpy(static_cast<char*>(outValues) + static_cast<size_t>(to) * bytes,
                      static_cast<const char*>(values) + static_cast<size_t>(i) * bytes, bytes);
        }
      }
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}

MXMACA_EXPORT Status cusparseXcsrgeam2Nnz(cusparseHandle_t handle, int m, int n, const cusparseMatDescr_t descrA, int,
                                          const int* rowsA, const int* colsA, const cusparseMatDescr_t descrB, int,
                                          const int* rowsB, const int* colsB, const cusparseMatDescr_t descrC,
                                          int* rowsC, int* nnz, void*) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(m >= 0 && n >= 0 && rowsC != nullptr && nnz != nullptr && live(descrC));
    if (!general(descrA) || !general(descrB) || !general(descrC)) return CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
    std::fill(rowsC, rowsC + m + 1, 0);
    mergeRows(m, descrA, rowsA, colsA, descrB, rowsB, colsB, [&](int row, int, int, int) { ++rowsC[row + 1]; });
    rowsC[0] = descrC->base;
    for (int row = 0; row < m; ++row) rowsC[row + 1] += rowsC[row];
    *nnz = rowsC[m] - descrC->base;
    return CUSPARSE_STATUS_SUCCESS;
  });
}

#define GEAM(letter, T)                                                                                               \
  MXMACA_EXPORT Status cusparse##letter##csrgeam2_bufferSizeExt(                                                      \
      cusparseHandle_t handle, int, int, const T*, const cusparseMatDescr_t, int, const T*, const int*, const int*,   \
      const T*, const cusparseMatDescr_t, int, const T*, const int*, const int*, const cusparseMatDescr_t, const T*,  \
      const int*, const int*, size_t* bytes) {                                                                        \
    return guarded(handle, [&] { return needsLittle(bytes); });                                                       \
  }                                                                                                                   \
  MXMACA_EXPORT Status cusparse##letter##csrgeam2(                                                                    \
      cusparseHandle_t handle, int m, int n, const T* alpha, const cusparseMatDescr_t descrA, int, const T* valA,     \
      const int* rowsA, const int* colsA, const T* beta, const cusparseMatDescr_t descrB, int, const T* valB,         \
      const int* rowsB, const int* colsB, const cusparseMatDescr_t descrC, T* valC, int* rowsC, int* colsC, void*) {  \
    return guarded(handle, [&] {                                                                                      \
      return geam(m, n, native(alpha), descrA, native(valA), rowsA, colsA, native(beta), descrB, native(valB), rowsB, \
                  colsB, descrC, native(valC), rowsC, colsC);                                                         \
    });                                                                                                               \
  }
GEAM(S, float)
GEAM(D, double)
GEAM(C, cuComplex)
GEAM(Z, cuDoubleComplex)
