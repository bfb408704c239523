// cuSOLVER's refactorisation: LU of matrices whose elements are in the places of one that has been factored, row by row
// without exchanges.

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "numbers.h"
#include "sparse/informations.h"

using namespace mxmaca;
using mxmaca::cusolver::Status;
using mxmaca::sparse::at;
using mxmaca::sparse::Matrix;

// L (without its diagonal) and U in one matrix, row after row, with values for each matrix of the batch.
struct cusolverRfCommon {
  cusolverRfMatrixFormat_t format = CUSOLVERRF_MATRIX_FORMAT_CSR;
  cusolverRfUnitDiagonal_t diagonal = CUSOLVERRF_UNIT_DIAGONAL_STORED_L;
  cusolverRfResetValuesFastMode_t fastMode = CUSOLVERRF_RESET_VALUES_FAST_MODE_OFF;
  cusolverRfFactorization_t factorization = CUSOLVERRF_FACTORIZATION_ALG0;
  cusolverRfTriangularSolve_t solve = CUSOLVERRF_TRIANGULAR_SOLVE_ALG1;
  double zero = 0, boost = 0;
  bool boosted = false;

  int n = -1, count = 0;  // -1: not set up
  bool batched = false, analysed = false, factored = false;
  std::vector<int> rowOf, columnOf;        // P and Q
  std::vector<int> startsA, indicesA;      // the caller's, to know them again
  std::vector<std::vector<double>> given;  // values of A, for each of the batch
  sparse::Pattern pattern;                 // of both factors, indices in order
  std::vector<int64_t> diagonalPlace;
  std::vector<int64_t> placeOfA;  // where each element of A is in it
  std::vector<std::vector<double>> values;
  std::vector<int> zeroPivots;       // -1: none
  std::vector<int> starts, indices;  // what AccessBundledFactorsDevice shows
};
MXMACA_OBJECT(cusolverRfCommon, CusolverRefactor);
MXMACA_RANGE(cusolverRfMatrixFormat_t, CUSOLVERRF_MATRIX_FORMAT_CSR, CUSOLVERRF_MATRIX_FORMAT_CSC);
MXMACA_RANGE(cusolverRfUnitDiagonal_t, CUSOLVERRF_UNIT_DIAGONAL_STORED_L, CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_U);
MXMACA_RANGE(cusolverRfResetValuesFastMode_t, CUSOLVERRF_RESET_VALUES_FAST_MODE_OFF,
             CUSOLVERRF_RESET_VALUES_FAST_MODE_ON);
MXMACA_RANGE(cusolverRfFactorization_t, CUSOLVERRF_FACTORIZATION_ALG0, CUSOLVERRF_FACTORIZATION_ALG2);
MXMACA_RANGE(cusolverRfTriangularSolve_t, CUSOLVERRF_TRIANGULAR_SOLVE_ALG1, CUSOLVERRF_TRIANGULAR_SOLVE_ALG3);

namespace {

using Handle = cusolverRfHandle_t;

// Runs the work of a function; this part's handles have no stream.
template <class Work>
Status withHandle(Handle handle, Work&& work, const char* function = __builtin_FUNCTION()) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  const DeviceWork computes(function);
  try {
    return work();
  } catch (const BadIndex&) {
    return CUSOLVER_STATUS_EXECUTION_FAILED;
  } catch (const std::bad_alloc&) {
    return CUSOLVER_STATUS_ALLOC_FAILED;
  }
}

struct Csr {
  int count;
  const int *starts, *indices;
  const double* values;

  bool complete() const { return count >= 0 && starts != nullptr && indices != nullptr && values != nullptr; }
};

bool unitIsL(const cusolverRfCommon& h) {
  return h.diagonal == CUSOLVERRF_UNIT_DIAGONAL_STORED_L || h.diagonal == CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_L;
}

Status readOrder(const int* order, int n, std::vector<int>* result) {
  std::vector<char> seen(at(n), 0);
  for (int i = 0; i < n; ++i) {
    MXMACA_REQUIRE(order[i] >= 0 && order[i] < n && seen[at(order[i])]++ == 0);
  }
  result->assign(order, order + n);
  return CUSOLVER_STATUS_SUCCESS;
}

// The patterns of L and U in one, with the diagonal, in rows of the form that the factorisation works in: those of the
// transposed matrix where the caller's arrays are columns.
void mergePatterns(int n, const Csr& l, const Csr& u, sparse::Pattern* merged) {
  const sparse::Pattern lower = sparse::readPattern(n, n, l.count, 0, l.starts, l.starts + 1, l.indices);
  const sparse::Pattern upper = sparse::readPattern(n, n, u.count, 0, u.starts, u.starts + 1, u.indices);
  *merged = sparse::Pattern();
  merged->lines = merged->width = n;
  std::vector<int> line;
  for (int row = 0; row < n; ++row) {
    line.assign(1, row);
    for (const sparse::Pattern* each : {&lower, &upper}) {
      line.insert(line.end(), each->index.begin() + each->begin(row), each->index.begin() + each->end(row));
    }
    std::sort(line.begin(), line.end());
    merged->index.insert(merged->index.end(), line.begin(), std::unique(line.begin(), line.end()));
    merged->offsets.push_back(merged->count());
  }
}

Status setup(Handle h, int batch, int n, const Csr& a, const double* const* valuesA, const Csr& l, const Csr& u,
             const int* p, const int* q) {
  MXMACA_REQUIRE(batch > 0 && n > 0 && a.count >= 0 && a.starts != nullptr && a.indices != nullptr);
  MXMACA_REQUIRE(valuesA != nullptr && !hasNull(valuesA, batch) && l.complete() && u.complete());
  MXMACA_REQUIRE(p != nullptr && q != nullptr);
  cusolverRfCommon next = *h;
  next.analysed = next.factored = next.boosted = false;
  MXMACA_RETURN_IF_FAILED(readOrder(p, n, &next.rowOf));
  MXMACA_RETURN_IF_FAILED(readOrder(q, n, &next.columnOf));
  const sparse::Pattern pattern = sparse::readPattern(n, n, a.count, 0, a.starts, a.starts + 1, a.indices);
  if (pattern.count() != a.count) throw BadIndex();
  mergePatterns(n, l, u, &next.pattern);
  next.startsA.assign(a.starts, a.starts + n + 1);
  next.indicesA.assign(a.indices, a.indices + a.count);
  next.given.clear();
  for (int i = 0; i < batch; ++i) next.given.emplace_back(valuesA[i], valuesA[i] + a.count);
  next.n = n;
  next.count = a.count;
  *h = std::move(next);
  return CUSOLVER_STATUS_SUCCESS;
}

Status resetValues(Handle h, int batch, int n, int count, const int* starts, const int* indices,
                   const double* const* values, const int* p, const int* q) {
  MXMACA_REQUIRE(n == h->n && count == h->count && batch == static_cast<int>(h->given.size()));
  MXMACA_REQUIRE(starts != nullptr && indices != nullptr && values != nullptr && !hasNull(values, batch));
  MXMACA_REQUIRE(p != nullptr && q != nullptr);
  MXMACA_REQUIRE(std::equal(h->startsA.begin(), h->startsA.end(), starts) &&
                 std::equal(h->indicesA.begin(), h->indicesA.end(), indices));
  MXMACA_REQUIRE(std::equal(h->rowOf.begin(), h->rowOf.end(), p) &&
                 std::equal(h->columnOf.begin(), h->columnOf.end(), q));
  for (int i = 0; i < batch; ++i) h->given[at(i)].assign(values[i], values[i] + count);
  h->factored = false;
  return CUSOLVER_STATUS_SUCCESS;
}

// Where the elements of A go to. One that neither factor has room for cannot be factored.
Status analyse(Handle h) {
  const bool byColumn = h->format == CUSOLVERRF_MATRIX_FORMAT_CSC;
  const std::vector<int> lineTo = sparse::inverse(byColumn ? h->columnOf : h->rowOf);
  const std::vector<int> indexTo = sparse::inverse(byColumn ? h->rowOf : h->columnOf);
  const auto find = [&](int line, int index) {
    const auto begin = h->pattern.index.begin() + h->pattern.begin(line);
    const auto end = h->pattern.index.begin() + h->pattern.end(line);
    const auto place = std::lower_bound(begin, end, index);
    return place != end && *place == index ? place - h->pattern.index.begin() : int64_t{-1};
  };
  h->placeOfA.clear();
  for (int line = 0; line < h->n; ++line) {
    for (int i = h->startsA[at(line)]; i < h->startsA[at(line) + 1]; ++i) {
      h->placeOfA.push_back(find(lineTo[at(line)], indexTo[at(h->indicesA[at(i)])]));
      if (h->placeOfA.back() < 0) return CUSOLVER_STATUS_EXECUTION_FAILED;
    }
  }
  h->diagonalPlace.clear();
  for (int line = 0; line < h->n; ++line) h->diagonalPlace.push_back(find(line, line));
  h->values.assign(h->given.size(), std::vector<double>(h->pattern.index.size(), 0.0));
  h->zeroPivots.assign(h->given.size(), -1);
  h->starts.assign(h->pattern.offsets.begin(), h->pattern.offsets.end());
  h->indices = h->pattern.index;
  h->analysed = true;
  h->factored = false;
  return CUSOLVER_STATUS_SUCCESS;
}

// Columns are factored as rows of the transposed matrix, A^T = U^T L^T: whose diagonal is ones is the other way round.
bool onesBelow(const cusolverRfCommon& h) { return unitIsL(h) == (h.format == CUSOLVERRF_MATRIX_FORMAT_CSR); }

// One matrix, in place: for each row those above are taken off, by what stands left of the diagonal.
int factor(Handle h, std::vector<double>& m) {
  const sparse::Pattern& pattern = h->pattern;
  std::vector<int64_t> placeOf(at(h->n), -1);
  int zeroPivot = -1;
  for (int row = 0; row < h->n; ++row) {
    const int64_t diagonal = h->diagonalPlace[at(row)];
    for (int64_t i = pattern.begin(row); i < pattern.end(row); ++i) placeOf[at(pattern.index[at(i)])] = i;
    for (int64_t i = pattern.begin(row); i < diagonal; ++i) {
      const int above = pattern.index[at(i)];
      const int64_t pivot = h->diagonalPlace[at(above)];
      m[at(i)] /= m[at(pivot)];
      for (int64_t j = pivot + 1; j < pattern.end(above); ++j) {
        const int64_t to = placeOf[at(pattern.index[at(j)])];
        if (to >= pattern.begin(row)) m[at(to)] -= m[at(i)] * m[at(j)];
      }
    }
    for (int64_t i = pattern.begin(row); i < pattern.end(row); ++i) placeOf[at(pattern.index[at(i)])] = -1;
    double& pivot = m[at(diagonal)];
    if (std::fabs(pivot) < h->zero || (pivot == 0 && h->boost != 0)) {
      pivot = std::signbit(pivot) ? -h->boost : h->boost;
      h->boosted = true;
    }
    if (pivot == 0 && zeroPivot < 0) zeroPivot = row;
  }
  if (!onesBelow(*h)) {  // L D and D^-1 U
    for (int row = 0; row < h->n; ++row) {
      for (int64_t i = pattern.begin(row); i < h->diagonalPlace[at(row)]; ++i) {
        m[at(i)] *= m[at(h->diagonalPlace[at(pattern.index[at(i)])])];
      }
    }
    for (int row = 0; row < h->n; ++row) {
      const double pivot = m[at(h->diagonalPlace[at(row)])];
      for (int64_t i = h->diagonalPlace[at(row)] + 1; i < pattern.end(row); ++i) m[at(i)] /= pivot;
    }
  }
  return zeroPivot;
}

Status refactor(Handle h) {
  h->boosted = false;
  for (size_t each = 0; each < h->given.size(); ++each) {
    std::vector<double>& m = h->values[each];
    std::fill(m.begin(), m.end(), 0.0);
    for (size_t i = 0; i < h->placeOfA.size(); ++i) m[at(h->placeOfA[i])] += h->given[each][i];
    h->zeroPivots[each] = factor(h, m);
  }
  h->factored = true;
  const bool zero = std::any_of(h->zeroPivots.begin(), h->zeroPivots.end(), [](int place) { return place >= 0; });
  return zero && !h->batched ? CUSOLVER_STATUS_ZERO_PIVOT : CUSOLVER_STATUS_SUCCESS;
}

// L U y = b(P), x(Q) = y; or, of the rows of the transposed matrix, the same from the other side.
void solve(Handle h, const std::vector<double>& m, double* x) {
  const sparse::Pattern& pattern = h->pattern;
  std::vector<double> y(at(h->n));
  for (int i = 0; i < h->n; ++i) y[at(i)] = x[h->rowOf[at(i)]];
  const bool below = onesBelow(*h);
  if (h->format == CUSOLVERRF_MATRIX_FORMAT_CSR) {
    for (int row = 0; row < h->n; ++row) {
      const int64_t diagonal = h->diagonalPlace[at(row)];
      for (int64_t i = pattern.begin(row); i < diagonal; ++i) y[at(row)] -= m[at(i)] * y[at(pattern.index[at(i)])];
      if (!below) y[at(row)] /= m[at(diagonal)];
    }
    for (int row = h->n - 1; row >= 0; --row) {
      const int64_t diagonal = h->diagonalPlace[at(row)];
      for (int64_t i = diagonal + 1; i < pattern.end(row); ++i) y[at(row)] -= m[at(i)] * y[at(pattern.index[at(i)])];
      if (below) y[at(row)] /= m[at(diagonal)];
    }
  } else {  // the lines are columns: L is what stands right of the diagonal, U left of it
    for (int column = 0; column < h->n; ++column) {
      const int64_t diagonal = h->diagonalPlace[at(column)];
      if (below) y[at(column)] /= m[at(diagonal)];
      for (int64_t i = diagonal + 1; i < pattern.end(column); ++i) {
        y[at(pattern.index[at(i)])] -= m[at(i)] * y[at(column)];
      }
    }
    for (int column = h->n - 1; column >= 0; --column) {
      const int64_t diagonal = h->diagonalPlace[at(column)];
      if (!below) y[at(column)] /= m[at(diagonal)];
      for (int64_t i = pattern.begin(column); i < diagonal; ++i) {
        y[at(pattern.index[at(i)])] -= m[at(i)] * y[at(column)];
      }
    }
  }
  for (int i = 0; i < h->n; ++i) x[h->columnOf[at(i)]] = y[at(i)];
}

Status solveAll(Handle h, const int* p, const int* q, int columns, const double* work, int ldt, double* const* x,
                int batch, int ld) {
  MXMACA_REQUIRE(h->factored && columns >= 0 && ldt >= h->n && ld >= h->n && p != nullptr && q != nullptr);
  MXMACA_REQUIRE(columns == 0 || (work != nullptr && x != nullptr && !hasNull(x, batch)));
  MXMACA_REQUIRE(std::equal(h->rowOf.begin(), h->rowOf.end(), p) &&
                 std::equal(h->columnOf.begin(), h->columnOf.end(), q));
  if (columns == 0) return CUSOLVER_STATUS_SUCCESS;
  for (int each = 0; each < batch; ++each) {
    if (h->zeroPivots[at(each)] >= 0) return CUSOLVER_STATUS_ZERO_PIVOT;
  }
  for (int each = 0; each < batch; ++each) {
    for (int column = 0; column < columns; ++column) {
      solve(h, h->values[at(each)], x[each] + static_cast<int64_t>(column) * ld);
    }
  }
  return CUSOLVER_STATUS_SUCCESS;
}

// Memory that the caller frees.
template <class T, class From>
T* copied(const std::vector<From>& values) {
  auto* const copy = static_cast<T*>(std::malloc(std::max<size_t>(values.size(), 1) * sizeof(T)));
  if (copy == nullptr) throw std::bad_alloc();
  std::copy(values.begin(), values.end(), copy);
  return copy;
}

template <class Field>
Status set(Handle handle, Field cusolverRfCommon::* field, Field value) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(valid(value));
  handle->*field = value;
  return CUSOLVER_STATUS_SUCCESS;
}
template <class Field>
Status get(Handle handle, Field cusolverRfCommon::* field, Field* value) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(value != nullptr);
  *value = handle->*field;
  return CUSOLVER_STATUS_SUCCESS;
}

Status analyseAs(Handle handle, bool batched) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(handle->n > 0 && handle->batched == batched);
    return analyse(handle);
  });
}
Status refactorAs(Handle handle, bool batched) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(handle->analysed && handle->batched == batched);
    return refactor(handle);
  });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cusolverRfCreate(Handle* handle) { return createDescriptor<Status>(handle); }
Status cusolverRfDestroy(Handle handle) {
  return destroyObject(handle) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_NOT_INITIALIZED;
}
Status cusolverRfGetMatrixFormat(Handle handle, cusolverRfMatrixFormat_t* format, cusolverRfUnitDiagonal_t* diagonal) {
  if (live(handle)) MXMACA_REQUIRE(diagonal != nullptr);
  MXMACA_RETURN_IF_FAILED(get(handle, &cusolverRfCommon::format, format));
  return get(handle, &cusolverRfCommon::diagonal, diagonal);
}
Status cusolverRfSetMatrixFormat(Handle handle, cusolverRfMatrixFormat_t format, cusolverRfUnitDiagonal_t diagonal) {
  if (live(handle)) MXMACA_REQUIRE(valid(diagonal) && handle->n < 0);  // what is set up has a form already
  MXMACA_RETURN_IF_FAILED(set(handle, &cusolverRfCommon::format, format));
  return set(handle, &cusolverRfCommon::diagonal, diagonal);
}
Status cusolverRfSetNumericProperties(Handle handle, double zero, double boost) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(zero >= 0 && boost >= 0);
  handle->zero = zero;
  handle->boost = boost;
  return CUSOLVER_STATUS_SUCCESS;
}
Status cusolverRfGetNumericProperties(Handle handle, double* zero, double* boost) {
  if (live(handle)) MXMACA_REQUIRE(boost != nullptr);
  MXMACA_RETURN_IF_FAILED(get(handle, &cusolverRfCommon::zero, zero));
  return get(handle, &cusolverRfCommon::boost, boost);
}
Status cusolverRfGetNumericBoostReport(Handle handle, cusolverRfNumericBoostReport_t* report) {
  if (!live(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(report != nullptr);
  *report = handle->boosted ? CUSOLVERRF_NUMERIC_BOOST_USED : CUSOLVERRF_NUMERIC_BOOST_NOT_USED;
  return CUSOLVER_STATUS_SUCCESS;
}
Status cusolverRfSetAlgs(Handle handle, cusolverRfFactorization_t factorization, cusolverRfTriangularSolve_t solve) {
  if (live(handle)) MXMACA_REQUIRE(valid(solve));
  MXMACA_RETURN_IF_FAILED(set(handle, &cusolverRfCommon::factorization, factorization));
  return set(handle, &cusolverRfCommon::solve, solve);
}
Status cusolverRfGetAlgs(Handle handle, cusolverRfFactorization_t* factorization, cusolverRfTriangularSolve_t* solve) {
  if (live(handle)) MXMACA_REQUIRE(solve != nullptr);
  MXMACA_RETURN_IF_FAILED(get(handle, &cusolverRfCommon::factorization, factorization));
  return get(handle, &cusolverRfCommon::solve, solve);
}
Status cusolverRfGetResetValuesFastMode(Handle handle, cusolverRfResetValuesFastMode_t* mode) {
  return get(handle, &cusolverRfCommon::fastMode, mode);
}
Status cusolverRfSetResetValuesFastMode(Handle handle, cusolverRfResetValuesFastMode_t mode) {
  return set(handle, &cusolverRfCommon::fastMode, mode);
}

Status cusolverRfSetupHost(int n, int nnzA, int* startsA, int* indicesA, double* valuesA, int nnzL, int* startsL,
                           int* indicesL, double* valuesL, int nnzU, int* startsU, int* indicesU, double* valuesU,
                           int* p, int* q, Handle handle) {
  return withHandle(handle, [&]() -> Status {
    const double* const values[] = {valuesA};
    MXMACA_RETURN_IF_FAILED(setup(handle, 1, n, {nnzA, startsA, indicesA, valuesA}, values,
                                  {nnzL, startsL, indicesL, valuesL}, {nnzU, startsU, indicesU, valuesU}, p, q));
    handle->batched = false;
    return CUSOLVER_STATUS_SUCCESS;
  });
}
Status cusolverRfSetupDevice(int n, int nnzA, int* startsA, int* indicesA, double* valuesA, int nnzL, int* startsL,
                             int* indicesL, double* valuesL, int nnzU, int* startsU, int* indicesU, double* valuesU,
                             int* p, int* q, Handle handle) {
  return cusolverRfSetupHost(n, nnzA, startsA, indicesA, valuesA, nnzL, startsL, indicesL, valuesL, nnzU, startsU,
                             indicesU, valuesU, p, q, handle);
}
Status cusolverRfResetValues(int n, int nnzA, int* startsA, int* indicesA, double* valuesA, int* p, int* q,
                             Handle handle) {
  return withHandle(handle, [&]() -> Status {
    const double* const values[] = {valuesA};
    MXMACA_REQUIRE(!handle->batched);
    return resetValues(handle, 1, n, nnzA, startsA, indicesA, values, p, q);
  });
}
Status cusolverRfAnalyze(Handle handle) { return analyseAs(handle, false); }
Status cusolverRfRefactor(Handle handle) { return refactorAs(handle, false); }
Status cusolverRfAccessBundledFactorsDevice(Handle handle, int* count, int** starts, int** indices, double** values) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(count != nullptr && starts != nullptr && indices != nullptr && values != nullptr);
    MXMACA_REQUIRE(handle->factored && !handle->batched);
    *count = static_cast<int>(handle->indices.size());
    *starts = handle->starts.data();
    *indices = handle->indices.data();
    *values = handle->values[0].data();
    return CUSOLVER_STATUS_SUCCESS;
  });
}
Status cusolverRfExtractBundledFactorsHost(Handle handle, int* count, int** starts, int** indices, double** values) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(count != nullptr && starts != nullptr && indices != nullptr && values != nullptr);
    MXMACA_REQUIRE(handle->factored && !handle->batched);
    *count = static_cast<int>(handle->indices.size());
    *starts = copied<int>(handle->starts);
    *indices = copied<int>(handle->indices);
    *values = copied<double>(handle->values[0]);
    return CUSOLVER_STATUS_SUCCESS;
  });
}
Status cusolverRfExtractSplitFactorsHost(Handle handle, int* countL, int** startsL, int** indicesL, double** valuesL,
                                         int* countU, int** startsU, int** indicesU, double** valuesU) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(countL != nullptr && startsL != nullptr && indicesL != nullptr && valuesL != nullptr);
    MXMACA_REQUIRE(countU != nullptr && startsU != nullptr && indicesU != nullptr && valuesU != nullptr);
    MXMACA_REQUIRE(handle->factored && !handle->batched);
    // The diagonal goes to the factor that has no ones there, ones to the other where they are stored.
    const bool stored =
        handle->diagonal == CUSOLVERRF_UNIT_DIAGONAL_STORED_L || handle->diagonal == CUSOLVERRF_UNIT_DIAGONAL_STORED_U;
    sparse::Factor<double> halves[2];  // left of the diagonal, right of it
    const bool below = onesBelow(*handle);
    for (int line = 0; line < handle->n; ++line) {
      for (int64_t i = handle->pattern.begin(line); i < handle->pattern.end(line); ++i) {
        const int index = handle->pattern.index[at(i)];
        const double value = handle->values[0][at(i)];
        if (index != line) {
          halves[index > line ? 1 : 0].add(index, value);
          continue;
        }
        if (!below || stored) halves[0].add(line, below ? 1 : value);
        if (below || stored) halves[1].add(line, below ? value : 1);
      }
      halves[0].finishLine();
      halves[1].finishLine();
    }
    const bool byColumn = handle->format == CUSOLVERRF_MATRIX_FORMAT_CSC;
    const sparse::Factor<double>&l = halves[byColumn ? 1 : 0], &u = halves[byColumn ? 0 : 1];
    *countL = static_cast<int>(l.count());
    *startsL = copied<int>(l.offsets);
    *indicesL = copied<int>(l.index);
    *valuesL = copied<double>(l.values);
    *countU = static_cast<int>(u.count());
    *startsU = copied<int>(u.offsets);
    *indicesU = copied<int>(u.index);
    *valuesU = copied<double>(u.values);
    return CUSOLVER_STATUS_SUCCESS;
  });
}
Status cusolverRfSolve(Handle handle, int* p, int* q, int columns, double* work, int ldt, double* x, int ld) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(!handle->batched);
    return solveAll(handle, p, q, columns, work, ldt, &x, 1, ld);
  });
}

Status cusolverRfBatchSetupHost(int batch, int n, int nnzA, int* startsA, int* indicesA, double* valuesA[], int nnzL,
                                int* startsL, int* indicesL, double* valuesL, int nnzU, int* startsU, int* indicesU,
                                double* valuesU, int* p, int* q, Handle handle) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(setup(handle, batch, n, {nnzA, startsA, indicesA, nullptr}, valuesA,
                                  {nnzL, startsL, indicesL, valuesL}, {nnzU, startsU, indicesU, valuesU}, p, q));
    handle->batched = true;
    return CUSOLVER_STATUS_SUCCESS;
  });
}
Status cusolverRfBatchResetValues(int batch, int n, int nnzA, int* startsA, int* indicesA, double* valuesA[], int* p,
                                  int* q, Handle handle) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(handle->batched);
    return resetValues(handle, batch, n, nnzA, startsA, indicesA, valuesA, p, q);
  });
}
Status cusolverRfBatchAnalyze(Handle handle) { return analyseAs(handle, true); }
Status cusolverRfBatchRefactor(Handle handle) { return refactorAs(handle, true); }
Status cusolverRfBatchSolve(Handle handle, int* p, int* q, int columns, double* work, int ldt, double* x[], int ld) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(handle->batched);
    return solveAll(handle, p, q, columns, work, ldt, x, static_cast<int>(handle->given.size()), ld);
  });
}
Status cusolverRfBatchZeroPivot(Handle handle, int* positions) {
  return withHandle(handle, [&]() -> Status {
    MXMACA_REQUIRE(handle->batched && handle->factored && positions != nullptr);
    std::copy(handle->zeroPivots.begin(), handle->zeroPivots.end(), positions);
    const bool zero = std::any_of(positions, positions + handle->given.size(), [](int place) { return place >= 0; });
    return zero ? CUSOLVER_STATUS_ZERO_PIVOT : CUSOLVER_STATUS_SUCCESS;
  });
}

}  // extern "C"
#pragma GCC visibility pop
