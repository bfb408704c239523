// cuSPARSE's older functions on plain arrays: sorting, conversions, sums of matrices.

#include <numeric>

#include "descriptors.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

// Sorts coordinates by (first, second), stably, and takes the permutation along.
void sortCoordinates(int count, int* first, int* second, int* permutation) {
  reachData();
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

// The offsets of a matrix of `m` rows must grow from 0 to its number of elements.
void checkOffsets(const int* offsets, int m, int nnz, int base) {
  reachData();
  if (offsets[0] != base || offsets[m] - base != nnz) throw BadIndex();
  for (int row = 0; row < m; ++row) {
    if (offsets[row + 1] < offsets[row]) throw BadIndex();
  }
}
// The arrays of a matrix in CSR.
Status checkCsr(int m, int n, int nnz, const int* offsets, const int* columns, int base) {
  MXMACA_REQUIRE(offsets != nullptr && (nnz == 0 || columns != nullptr));
  checkOffsets(offsets, m, nnz, base);
  for (int i = 0; i < nnz; ++i) inRange(columns[i] - base, n);
  return CUSPARSE_STATUS_SUCCESS;
}
Status checkSort(int m, int n, int nnz, const int* first, const int* second) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && nnz >= 0 && (nnz == 0 || (first != nullptr && second != nullptr)));
  return CUSPARSE_STATUS_SUCCESS;
}

// Which row each element of a matrix in CSR lies in, or column in CSC.
std::vector<int> expanded(const int* offsets, int count, int nnz, int base) {
  std::vector<int> result(static_cast<size_t>(nnz));
  for (int i = 0; i < count; ++i) {
    std::fill(result.begin() + (offsets[i] - base), result.begin() + (offsets[i + 1] - base), i);
  }
  return result;
}

// What is left of a matrix without its small elements, NaN among it. Of a complex tolerance the real part counts.
template <class T>
bool isKept(T value, T tolerance) {
  return !(std::abs(value) <= std::real(tolerance));
}
template <class T>
Status countKept(int m, const cusparseMatDescr_t descriptor, const T* values, const int* offsets, int* counts,
                 int* total, T tolerance) {
  MXMACA_REQUIRE(m >= 0 && live(descriptor) && offsets != nullptr && counts != nullptr && total != nullptr);
  MXMACA_REQUIRE(std::real(tolerance) >= 0);
  reachData();
  const int base = descriptor->base, nnz = offsets[m] - base;
  checkOffsets(offsets, m, nnz, base);
  MXMACA_REQUIRE(nnz == 0 || values != nullptr);
  int all = 0;
  for (int row = 0; row < m; ++row) {
    counts[row] = 0;
    for (int i = offsets[row] - base; i < offsets[row + 1] - base; ++i) counts[row] += isKept(values[i], tolerance);
    all += counts[row];
  }
  *total = all;
  return CUSPARSE_STATUS_SUCCESS;
}
template <class T>
Status compress(int m, int n, const cusparseMatDescr_t descriptor, const T* values, const int* columns,
                const int* offsets, int nnz, const int* counts, T* outValues, int* outColumns, int* outOffsets,
                T tolerance) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && nnz >= 0 && live(descriptor) && std::real(tolerance) >= 0);
  MXMACA_REQUIRE(counts != nullptr && outOffsets != nullptr);
  MXMACA_REQUIRE(nnz == 0 || (values != nullptr && outValues != nullptr && outColumns != nullptr));
  const int base = descriptor->base;
  MXMACA_RETURN_IF_FAILED(checkCsr(m, n, nnz, offsets, columns, base));
  int next = 0;
  for (int row = 0; row < m; ++row) {
    outOffsets[row] = next + base;
    for (int i = offsets[row] - base; i < offsets[row + 1] - base; ++i) {
      if (!isKept(values[i], tolerance)) continue;
      outValues[next] = values[i];
      outColumns[next++] = columns[i];
    }
  }
  outOffsets[m] = next + base;
  return CUSPARSE_STATUS_SUCCESS;
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
Status checkSum(int m, int n, const cusparseMatDescr_t descrA, int nnzA, const cusparseMatDescr_t descrB, int nnzB,
                const cusparseMatDescr_t descrC) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && nnzA >= 0 && nnzB >= 0 && live(descrA) && live(descrB) && live(descrC));
  for (const cusparseMatDescr* descriptor : {descrA, descrB, descrC}) {
    if (descriptor->type != CUSPARSE_MATRIX_TYPE_GENERAL) return CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
  }
  return CUSPARSE_STATUS_SUCCESS;
}

template <class T>
Status geam(int m, int n, const T* alpha, const cusparseMatDescr_t descrA, int nnzA, const T* valA, const int* rowsA,
            const int* colsA, const T* beta, const cusparseMatDescr_t descrB, int nnzB, const T* valB, const int* rowsB,
            const int* colsB, const cusparseMatDescr_t descrC, T* valC, const int* rowsC, int* colsC) {
  MXMACA_RETURN_IF_FAILED(checkSum(m, n, descrA, nnzA, descrB, nnzB, descrC));
  MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && rowsC != nullptr);
  MXMACA_REQUIRE((nnzA == 0 || valA != nullptr) && (nnzB == 0 || valB != nullptr));
  MXMACA_REQUIRE(nnzA + nnzB == 0 || (valC != nullptr && colsC != nullptr));
  MXMACA_RETURN_IF_FAILED(checkCsr(m, n, nnzA, rowsA, colsA, descrA->base));
  MXMACA_RETURN_IF_FAILED(checkCsr(m, n, nnzB, rowsB, colsB, descrB->base));
  int count = 0;
  mergeRows(m, descrA, rowsA, colsA, descrB, rowsB, colsB, [&](int, int, int, int) { ++count; });
  checkOffsets(rowsC, m, count, descrC->base);  // csrgeam2Nnz has written them
  const T a = *alpha, b = *beta;
  int next = 0;
  mergeRows(m, descrA, rowsA, colsA, descrB, rowsB, colsB, [&](int, int column, int atA, int atB) {
    colsC[next] = column + descrC->base;
    valC[next++] = (atA < 0 ? T(0) : a * valA[atA]) + (atB < 0 ? T(0) : b * valB[atB]);
  });
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

MXMACA_EXPORT Status cusparseXcoo2csr(cusparseHandle_t handle, const int* rows, int nnz, int m, int* offsets,
                                      cusparseIndexBase_t base) {
  MXMACA_LATER(Status, cusparseXcoo2csr, handle, rows, nnz, m, offsets, base);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(nnz >= 0 && m >= 0 && valid(base) && offsets != nullptr && (nnz == 0 || rows != nullptr));
    reachData();
    for (int i = 0; i < nnz; ++i) inRange(rows[i] - base, m);
    std::fill(offsets, offsets + m + 1, 0);
    for (int i = 0; i < nnz; ++i) ++offsets[rows[i] - base + 1];
    offsets[0] = base;
    for (int row = 0; row < m; ++row) offsets[row + 1] += offsets[row];
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcsr2coo(cusparseHandle_t handle, const int* offsets, int nnz, int m, int* rows,
                                      cusparseIndexBase_t base) {
  MXMACA_LATER(Status, cusparseXcsr2coo, handle, offsets, nnz, m, rows, base);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(nnz >= 0 && m >= 0 && valid(base) && (nnz == 0 || rows != nullptr));
    MXMACA_REQUIRE(offsets != nullptr);
    checkOffsets(offsets, m, nnz, base);
    for (int row = 0; row < m; ++row) {
      for (int i = offsets[row] - base; i < offsets[row + 1] - base; ++i) rows[i] = row + base;
    }
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseCreateIdentityPermutation(cusparseHandle_t handle, int n, int* permutation) {
  MXMACA_LATER(Status, cusparseCreateIdentityPermutation, handle, n, permutation);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(n >= 0 && (n == 0 || permutation != nullptr));
    reachData();
    std::iota(permutation, permutation + n, 0);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcoosort_bufferSizeExt(cusparseHandle_t handle, int m, int n, int nnz, const int* rows,
                                                    const int* columns, size_t* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkSort(m, n, nnz, rows, columns));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseXcoosortByRow(cusparseHandle_t handle, int m, int n, int nnz, int* rows, int* columns,
                                           int* p, void* buffer) {
  MXMACA_LATER(Status, cusparseXcoosortByRow, handle, m, n, nnz, rows, columns, p, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkSort(m, n, nnz, rows, columns));
    MXMACA_REQUIRE(buffer != nullptr);
    sortCoordinates(nnz, rows, columns, p);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcoosortByColumn(cusparseHandle_t handle, int m, int n, int nnz, int* rows, int* columns,
                                              int* p, void* buffer) {
  MXMACA_LATER(Status, cusparseXcoosortByColumn, handle, m, n, nnz, rows, columns, p, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkSort(m, n, nnz, rows, columns));
    MXMACA_REQUIRE(buffer != nullptr);
    sortCoordinates(nnz, columns, rows, p);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cusparseXcsrsort_bufferSizeExt(cusparseHandle_t handle, int m, int n, int nnz, const int* offsets,
                                                    const int* columns, size_t* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkSort(m, n, nnz, offsets, columns));
    return needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseXcsrsort(cusparseHandle_t handle, int m, int n, int nnz,
                                      const cusparseMatDescr_t descriptor, const int* offsets, int* columns, int* p,
                                      void* buffer) {
  MXMACA_LATER(Status, cusparseXcsrsort, handle, m, n, nnz, descriptor, offsets, columns, p, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkSort(m, n, nnz, offsets, columns));
    MXMACA_REQUIRE(live(descriptor) && offsets != nullptr && buffer != nullptr);
    checkOffsets(offsets, m, nnz, descriptor->base);
    std::vector<int> rows = expanded(offsets, m, nnz, descriptor->base);
    sortCoordinates(nnz, rows.data(), columns, p);
    return CUSPARSE_STATUS_SUCCESS;
  });
}
// The same for columns after each other.
MXMACA_EXPORT Status cusparseXcscsort_bufferSizeExt(cusparseHandle_t handle, int m, int n, int nnz, const int* offsets,
                                                    const int* rows, size_t* bytes) {
  return cusparseXcsrsort_bufferSizeExt(handle, n, m, nnz, offsets, rows, bytes);
}
MXMACA_EXPORT Status cusparseXcscsort(cusparseHandle_t handle, int m, int n, int nnz,
                                      const cusparseMatDescr_t descriptor, const int* offsets, int* rows, int* p,
                                      void* buffer) {
  return cusparseXcsrsort(handle, n, m, nnz, descriptor, offsets, rows, p, buffer);
}
MXMACA_EXPORT Status cusparseCsr2cscEx2_bufferSize(cusparseHandle_t handle, int m, int n, int nnz, const void*,
                                                   const int*, const int*, void*, int*, int*, cudaDataType type,
                                                   cusparseAction_t action, cusparseIndexBase_t base,
                                                   cusparseCsr2CscAlg_t algorithm, size_t* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(m >= 0 && n >= 0 && nnz >= 0 && valid(action) && valid(base) && valid(algorithm));
    return elementBytes(type) == 0 ? CUSPARSE_STATUS_NOT_SUPPORTED : needsLittle(bytes);
  });
}
MXMACA_EXPORT Status cusparseCsr2cscEx2(cusparseHandle_t handle, int m, int n, int nnz, const void* values,
                                        const int* offsets, const int* columns, void* outValues, int* outOffsets,
                                        int* outRows, cudaDataType type, cusparseAction_t action,
                                        cusparseIndexBase_t base, cusparseCsr2CscAlg_t algorithm, void* buffer) {
  MXMACA_LATER(Status, cusparseCsr2cscEx2, handle, m, n, nnz, values, offsets, columns, outValues, outOffsets, outRows,
               type, action, base, algorithm, unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(m >= 0 && n >= 0 && nnz >= 0 && valid(action) && valid(base) && valid(algorithm));
    const size_t bytes = elementBytes(type);
    if (bytes == 0) return CUSPARSE_STATUS_NOT_SUPPORTED;
    MXMACA_REQUIRE(buffer != nullptr && outOffsets != nullptr && (nnz == 0 || outRows != nullptr));
    MXMACA_REQUIRE(action == CUSPARSE_ACTION_SYMBOLIC || nnz == 0 || (values != nullptr && outValues != nullptr));
    MXMACA_RETURN_IF_FAILED(checkCsr(m, n, nnz, offsets, columns, base));
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

MXMACA_EXPORT Status cusparseXcsrgeam2Nnz(cusparseHandle_t handle, int m, int n, const cusparseMatDescr_t descrA,
                                          int nnzA, const int* rowsA, const int* colsA, const cusparseMatDescr_t descrB,
                                          int nnzB, const int* rowsB, const int* colsB, const cusparseMatDescr_t descrC,
                                          int* rowsC, int* nnz, void* buffer) {
  MXMACA_LATER(Status, cusparseXcsrgeam2Nnz, handle, m, n, descrA, nnzA, rowsA, colsA, descrB, nnzB, rowsB, colsB,
               descrC, rowsC, resultOf(handle, nnz), unread(buffer));
  return guarded(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkSum(m, n, descrA, nnzA, descrB, nnzB, descrC));
    MXMACA_REQUIRE(rowsC != nullptr && nnz != nullptr && buffer != nullptr);
    MXMACA_RETURN_IF_FAILED(checkCsr(m, n, nnzA, rowsA, colsA, descrA->base));
    MXMACA_RETURN_IF_FAILED(checkCsr(m, n, nnzB, rowsB, colsB, descrB->base));
    std::fill(rowsC, rowsC + m + 1, 0);
    mergeRows(m, descrA, rowsA, colsA, descrB, rowsB, colsB, [&](int row, int, int, int) { ++rowsC[row + 1]; });
    rowsC[0] = descrC->base;
    for (int row = 0; row < m; ++row) rowsC[row + 1] += rowsC[row];
    *nnz = rowsC[m] - descrC->base;
    return CUSPARSE_STATUS_SUCCESS;
  });
}

#define GEAM(letter, T)                                                                                                \
  MXMACA_EXPORT Status cusparse##letter##csrgeam2_bufferSizeExt(                                                       \
      cusparseHandle_t handle, int m, int n, const T* alpha, const cusparseMatDescr_t descrA, int nnzA, const T*,      \
      const int*, const int*, const T* beta, const cusparseMatDescr_t descrB, int nnzB, const T*, const int*,          \
      const int*, const cusparseMatDescr_t descrC, const T*, const int*, const int*, size_t* bytes) {                  \
    return described(handle, [&]() -> Status {                                                                         \
      MXMACA_RETURN_IF_FAILED(checkSum(m, n, descrA, nnzA, descrB, nnzB, descrC));                                     \
      MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);                                                             \
      return needsLittle(bytes);                                                                                       \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##csrgeam2(                                                                     \
      cusparseHandle_t handle, int m, int n, const T* alpha, const cusparseMatDescr_t descrA, int nnzA, const T* valA, \
      const int* rowsA, const int* colsA, const T* beta, const cusparseMatDescr_t descrB, int nnzB, const T* valB,     \
      const int* rowsB, const int* colsB, const cusparseMatDescr_t descrC, T* valC, int* rowsC, int* colsC,            \
      void* buffer) {                                                                                                  \
    MXMACA_LATER(Status, cusparse##letter##csrgeam2, handle, m, n, scalars(handle, alpha), descrA, nnzA, valA, rowsA,  \
                 colsA, scalars(handle, beta), descrB, nnzB, valB, rowsB, colsB, descrC, valC, rowsC, colsC,           \
                 unread(buffer));                                                                                      \
    return guarded(handle, [&]() -> Status {                                                                           \
      MXMACA_REQUIRE(buffer != nullptr);                                                                               \
      return geam(m, n, native(alpha), descrA, nnzA, native(valA), rowsA, colsA, native(beta), descrB, nnzB,           \
                  native(valB), rowsB, colsB, descrC, native(valC), rowsC, colsC);                                     \
    });                                                                                                                \
  }
GEAM(S, float)
GEAM(D, double)
GEAM(C, cuComplex)
GEAM(Z, cuDoubleComplex)

// ---- Small elements left out ----------------------------------------------------------------------------------------
#define COMPRESSION(letter, T)                                                                                         \
  MXMACA_EXPORT Status cusparse##letter##nnz_compress(cusparseHandle_t handle, int m,                                  \
                                                      const cusparseMatDescr_t descriptor, const T* values,            \
                                                      const int* offsets, int* counts, int* total, T tolerance) {      \
    MXMACA_LATER(Status, cusparse##letter##nnz_compress, handle, m, descriptor, values, offsets, counts,               \
                 resultOf(handle, total), tolerance);                                                                  \
    return guarded(handle, [&]() -> Status {                                                                           \
      return countKept(m, descriptor, native(values), offsets, counts, total, native(tolerance));                      \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##csr2csr_compress(                                                             \
      cusparseHandle_t handle, int m, int n, const cusparseMatDescr_t descriptor, const T* values, const int* columns, \
      const int* offsets, int nnz, const int* counts, T* outValues, int* outColumns, int* outOffsets, T tolerance) {   \
    MXMACA_LATER(Status, cusparse##letter##csr2csr_compress, handle, m, n, descriptor, values, columns, offsets, nnz,  \
                 counts, outValues, outColumns, outOffsets, tolerance);                                                \
    return guarded(handle, [&]() -> Status {                                                                           \
      return compress(m, n, descriptor, native(values), columns, offsets, nnz, counts, native(outValues), outColumns,  \
                      outOffsets, native(tolerance));                                                                  \
    });                                                                                                                \
  }
COMPRESSION(S, float)
COMPRESSION(D, double)
COMPRESSION(C, cuComplex)
COMPRESSION(Z, cuDoubleComplex)
