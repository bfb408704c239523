// What each family of sparse_functions.txt computes, by the factorisations in sparse/.
#pragma once

#include <limits>

#include "numbers.h"
#include "sparse/informations.h"
#include "sparse/order.h"

namespace mxmaca {
namespace cusolver {

using sparse::Matrix;
using sparse::Pattern;
using Description = const cusparseMatDescr*;

// ---- Arguments ------------------------------------------------------------------------------------------------------
inline Status checkMatrix(int count, Description description) {
  MXMACA_REQUIRE(count >= 0 && live(description));
  return description->type == CUSPARSE_MATRIX_TYPE_GENERAL ? CUSOLVER_STATUS_SUCCESS
                                                           : CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
}
inline Status readPattern(int m, int n, int count, Description description, const int* starts, const int* indices,
                          Pattern* pattern) {
  MXMACA_RETURN_IF_FAILED(checkMatrix(count, description));
  MXMACA_REQUIRE(count == 0 || indices != nullptr);
  if (m > 0) *pattern = sparse::readPattern(m, n, count, description->base, starts, starts + 1, indices);
  pattern->width = n;
  return pattern->count() == count ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}
template <class T>
Status readMatrix(int m, int n, int count, Description description, const T* values, const int* starts,
                  const int* indices, Matrix<T>* matrix) {
  MXMACA_REQUIRE(count <= 0 || values != nullptr);
  MXMACA_RETURN_IF_FAILED(readPattern(m, n, count, description, starts, indices, matrix));
  matrix->values.assign(values, values + count);
  return CUSOLVER_STATUS_SUCCESS;
}
inline Status needsLittle(size_t* internal, size_t* workspace) {
  MXMACA_REQUIRE(internal != nullptr && workspace != nullptr);
  *internal = *workspace = 16;  // nothing is kept there
  return CUSOLVER_STATUS_SUCCESS;
}

// The order that a solver is asked for: none, reverse Cuthill-McKee, minimum degree, nested dissection.
inline std::vector<int> chosenOrder(const Pattern& matrix, int reorder) {
  switch (reorder) {
    case 1: return sparse::reverseCuthillMcKee(matrix);
    case 2: return sparse::minimumDegree(matrix, true);
    case 3: return sparse::nestedDissection(matrix);
    default: break;
  }
  std::vector<int> order(sparse::at(matrix.lines));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// ---- Solvers in one call --------------------------------------------------------------------------------------------
// Solves with what `makeFactor` makes of A(order, order), unless it is singular within the tolerance; then x is left
// alone.
template <class T, class MakeFactor>
Status solveReordered(const Matrix<T>& matrix, const T* b, Real<T> tolerance, int reorder, T* x, int* singularity,
                      MakeFactor&& makeFactor) {
  MXMACA_REQUIRE(reorder >= 0 && reorder <= 3 && tolerance >= 0);
  if (matrix.lines == 0) {
    if (singularity != nullptr) *singularity = -1;
    return CUSOLVER_STATUS_SUCCESS;
  }
  const std::vector<int> order = chosenOrder(matrix, reorder);
  const auto factor = makeFactor(sparse::permuted(matrix, order, order));
  *singularity = factor.zeroPivot(tolerance);
  if (*singularity >= 0) return CUSOLVER_STATUS_SUCCESS;
  std::vector<T> y(order.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = b[order[i]];
  factor.solve(y.data(), y.data());
  for (size_t i = 0; i < y.size(); ++i) x[order[i]] = y[i];
  return CUSOLVER_STATUS_SUCCESS;
}
// A QR factor whose matrix is square.
template <class T>
struct SquareQr : sparse::Qr<T> {
  using sparse::Qr<T>::Qr;
  void solve(const T* b, T* x) const { sparse::Qr<T>::solve(b, this->upper.lines, x); }
};
// The elements below the diagonal and on it.
template <class T>
Matrix<T> lowerHalf(const Matrix<T>& matrix) {
  Matrix<T> half;
  half.lines = half.width = matrix.lines;
  for (int row = 0; row < matrix.lines; ++row) {
    for (int64_t i = matrix.begin(row); i < matrix.end(row); ++i) {
      if (matrix.index[sparse::at(i)] > row) continue;
      half.index.push_back(matrix.index[sparse::at(i)]);
      half.values.push_back(matrix.values[sparse::at(i)]);
    }
    half.offsets.push_back(half.count());
  }
  return half;
}
// A Hermitian matrix of which each element is there on one side: all of them below.
template <class T>
Matrix<T> foldedDown(const Matrix<T>& matrix) {
  Matrix<T> half;
  half.lines = half.width = matrix.lines;
  const Matrix<T> other = sparse::transposed(matrix);
  for (int row = 0; row < matrix.lines; ++row) {
    for (const Matrix<T>* each : {&matrix, &other}) {
      for (int64_t i = each->begin(row); i < each->end(row); ++i) {
        const int column = each->index[sparse::at(i)];
        if (column > row || (column == row && each == &other)) continue;
        half.index.push_back(column);
        half.values.push_back(each == &other ? conjugate(each->values[sparse::at(i)]) : each->values[sparse::at(i)]);
      }
    }
    half.offsets.push_back(half.count());
  }
  return half;
}

template <class T>
Status csrlsvlu(int n, int count, Description description, const T* values, const int* starts, const int* indices,
                const T* b, Real<T> tolerance, int reorder, T* x, int* singularity) {
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(n, n, count, description, values, starts, indices, &matrix));
  return solveReordered(matrix, b, tolerance, reorder, x, singularity,
                        [](const Matrix<T>& ordered) { return sparse::Lu<T>(ordered, 1); });
}
template <class T>
Status csrlsvqr(int n, int count, Description description, const T* values, const int* starts, const int* indices,
                const T* b, Real<T> tolerance, int reorder, T* x, int* singularity) {
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(n, n, count, description, values, starts, indices, &matrix));
  return solveReordered(matrix, b, tolerance, reorder, x, singularity, [](const Matrix<T>& ordered) {
    return SquareQr<T>(ordered, sparse::QrTree(ordered), Real<T>(0));
  });
}
// The upper half is ignored.
template <class T>
Status csrlsvchol(int n, int count, Description description, const T* values, const int* starts, const int* indices,
                  const T* b, Real<T> tolerance, int reorder, T* x, int* singularity) {
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(n, n, count, description, values, starts, indices, &matrix));
  return solveReordered(lowerHalf(matrix), b, tolerance, reorder, x, singularity,
                        [](const Matrix<T>& ordered) { return sparse::Cholesky<T>(foldedDown(ordered)); });
}

template <class T>
Status csrlsqvqr(int m, int n, int count, Description description, const T* values, const int* starts,
                 const int* indices, const T* b, Real<T> tolerance, int* rank, T* x, int* p, Real<T>* least) {
  MXMACA_REQUIRE(m >= n && tolerance >= 0);
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(m, n, count, description, values, starts, indices, &matrix));
  if (m == 0 || n == 0) return m == 0 ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
  const sparse::Qr<T> factor(matrix, sparse::QrTree(matrix), tolerance);
  factor.solve(b, m, x);
  *rank = factor.rank();
  int next = 0;
  for (const bool dependent : {false, true}) {
    for (int column = 0; column < n; ++column) {
      if ((factor.reflections[sparse::at(column)].pivot < 0) == dependent) p[next++] = column;
    }
  }
  Real<T> sum = 0;
  for (int row = 0; row < m; ++row) {
    T rest = b[row];
    for (int64_t i = matrix.begin(row); i < matrix.end(row); ++i) {
      rest -= matrix.values[sparse::at(i)] * x[matrix.index[sparse::at(i)]];
    }
    sum += std::norm(rest);
  }
  *least = std::sqrt(sum);
  return CUSOLVER_STATUS_SUCCESS;
}

// ---- Eigenvalues ----------------------------------------------------------------------------------------------------
template <class T>
Matrix<T> shifted(const Matrix<T>& matrix, T shift) {
  Matrix<T> result;
  result.lines = matrix.lines;
  result.width = matrix.width;
  for (int row = 0; row < matrix.lines; ++row) {
    const auto begin = matrix.begin(row), end = matrix.end(row);
    result.index.insert(result.index.end(), matrix.index.begin() + begin, matrix.index.begin() + end);
    result.values.insert(result.values.end(), matrix.values.begin() + begin, matrix.values.begin() + end);
    if (shift != T(0) && row < matrix.width) {  // elements in the same place are added
      result.index.push_back(row);
      result.values.push_back(-shift);
    }
    result.offsets.push_back(result.count());
  }
  return result;
}
template <class T>
std::vector<T> product(const Matrix<T>& matrix, const std::vector<T>& x) {
  std::vector<T> y(x.size(), T(0));
  for (int row = 0; row < matrix.lines; ++row) {
    for (int64_t i = matrix.begin(row); i < matrix.end(row); ++i) {
      y[sparse::at(row)] += matrix.values[sparse::at(i)] * x[sparse::at(matrix.index[sparse::at(i)])];
    }
  }
  return y;
}
template <class T>
Real<T> normalise(std::vector<T>& x) {
  Real<T> sum = 0;
  for (const T value : x) sum += std::norm(value);
  const Real<T> norm = std::sqrt(sum);
  for (T& value : x) value /= norm;
  return norm;
}

// Inverse iteration with a fixed shift, until |A x - mu x| is below the tolerance or the iterations are used up.
template <class T>
Status csreigvsi(int m, int count, Description description, const T* values, const int* starts, const int* indices,
                 T mu0, const T* x0, int iterations, Real<T> tolerance, T* mu, T* x) {
  MXMACA_REQUIRE(iterations >= 0 && tolerance >= 0);
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(m, m, count, description, values, starts, indices, &matrix));
  if (m == 0) return CUSOLVER_STATUS_SUCCESS;
  Real<T> size = std::abs(mu0);
  for (const T value : matrix.values) size = std::max(size, std::abs(value));
  // At an eigenvalue itself there is no inverse: a shift beside it, by what rounding leaves open, has one.
  const Real<T> step = std::numeric_limits<Real<T>>::epsilon() * std::max(size, std::numeric_limits<Real<T>>::min());
  auto factor = std::make_unique<sparse::Lu<T>>(shifted(matrix, mu0), Real<T>(1));
  for (int i = 1; factor->zeroPivot(0) >= 0; i *= 2) {
    factor = std::make_unique<sparse::Lu<T>>(shifted(matrix, T(mu0 + step * Real<T>(i))), Real<T>(1));
    if (i > 1 << 20) return CUSOLVER_STATUS_EXECUTION_FAILED;
  }
  std::vector<T> v(x0, x0 + m);
  MXMACA_REQUIRE(normalise(v) > 0);
  T value = mu0;
  for (int i = 0; i <= iterations; ++i) {
    const std::vector<T> image = product(matrix, v);
    value = T(0);
    for (size_t j = 0; j < v.size(); ++j) value += conjugate(v[j]) * image[j];
    Real<T> rest = 0;
    for (size_t j = 0; j < v.size(); ++j) rest += std::norm(image[j] - value * v[j]);
    if (std::sqrt(rest) < tolerance || i == iterations) break;
    factor->solve(v.data(), v.data());
    normalise(v);
  }
  *mu = value;
  std::copy(v.begin(), v.end(), x);
  return CUSOLVER_STATUS_SUCCESS;
}

// How many eigenvalues lie in a box of the complex plane, by the dense method: the matrix must fit into memory as such.
template <class T>
Status csreigs(int m, int count, Description description, const T* values, const int* starts, const int* indices,
               std::complex<Real<T>> low, std::complex<Real<T>> high, int* found) {
  using Complex = std::complex<Real<T>>;
  MXMACA_REQUIRE(low.real() <= high.real() && low.imag() <= high.imag() && (m == 0 || starts != nullptr));
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(m, m, count, description, values, starts, indices, &matrix));
  if (m == 0) return CUSOLVER_STATUS_SUCCESS;
  std::vector<Complex> dense(sparse::at(m) * sparse::at(m)), eigenvalues(sparse::at(m));
  for (int row = 0; row < m; ++row) {
    for (int64_t i = matrix.begin(row); i < matrix.end(row); ++i) {
      dense[sparse::at(row) + sparse::at(matrix.index[sparse::at(i)]) * sparse::at(m)] += matrix.values[sparse::at(i)];
    }
  }
  const BlasInt info =
      MXMACA_BLAS(Complex, "LAPACKE_?geev",
                  BlasInt(int, char, char, BlasInt, Complex*, BlasInt, Complex*, Complex*, BlasInt, Complex*, BlasInt))(
          kColumnMajor, 'N', 'N', m, dense.data(), m, eigenvalues.data(), nullptr, 1, nullptr, 1);
  if (info != 0) return CUSOLVER_STATUS_EXECUTION_FAILED;
  *found = static_cast<int>(std::count_if(eigenvalues.begin(), eigenvalues.end(), [&](Complex value) {
    return value.real() >= low.real() && value.real() <= high.real() && value.imag() >= low.imag() &&
           value.imag() <= high.imag();
  }));
  return CUSOLVER_STATUS_SUCCESS;
}

// ---- Orders ---------------------------------------------------------------------------------------------------------
inline Status csrissym(int m, int count, Description description, const int* starts, const int* ends,
                       const int* indices, int* symmetric) {
  MXMACA_RETURN_IF_FAILED(checkMatrix(count, description));
  MXMACA_REQUIRE(count == 0 || indices != nullptr);
  if (m == 0) return CUSOLVER_STATUS_SUCCESS;
  const Pattern other = sparse::transposed(sparse::readPattern(m, m, count, description->base, starts, ends, indices));
  const Pattern sorted = sparse::transposed(other);
  *symmetric = sorted.offsets == other.offsets && sorted.index == other.index ? 1 : 0;
  return CUSOLVER_STATUS_SUCCESS;
}
template <class Choose>
Status order(int n, int count, Description description, const int* starts, const int* indices, int* p,
             Choose&& choose) {
  Pattern pattern;
  MXMACA_RETURN_IF_FAILED(readPattern(n, n, count, description, starts, indices, &pattern));
  const std::vector<int> found = choose(pattern);
  std::copy(found.begin(), found.end(), p);
  return CUSOLVER_STATUS_SUCCESS;
}
inline Status csrsymrcm(int n, int count, Description description, const int* starts, const int* indices, int* p) {
  return order(n, count, description, starts, indices, p, sparse::reverseCuthillMcKee);
}
inline Status csrsymmdq(int n, int count, Description description, const int* starts, const int* indices, int* p) {
  return order(n, count, description, starts, indices, p,
               [](const Pattern& pattern) { return sparse::minimumDegree(pattern, false); });
}
inline Status csrsymamd(int n, int count, Description description, const int* starts, const int* indices, int* p) {
  return order(n, count, description, starts, indices, p,
               [](const Pattern& pattern) { return sparse::minimumDegree(pattern, true); });
}
// METIS is not here: its options say how it would search, and are not read.
inline Status csrmetisnd(int n, int count, Description description, const int* starts, const int* indices,
                         const int64_t*, int* p) {
  return order(n, count, description, starts, indices, p, sparse::nestedDissection);
}
template <class T>
Status csrzfd(int n, int count, Description description, const T* values, const int* starts, const int* indices, int* p,
              int* found) {
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(n, n, count, description, values, starts, indices, &matrix));
  if (n == 0) return CUSOLVER_STATUS_SUCCESS;
  Pattern filled;
  filled.lines = filled.width = n;
  for (int row = 0; row < n; ++row) {
    for (int64_t i = matrix.begin(row); i < matrix.end(row); ++i) {
      if (matrix.values[sparse::at(i)] != T(0)) filled.index.push_back(matrix.index[sparse::at(i)]);
    }
    filled.offsets.push_back(filled.count());
  }
  const std::vector<int> rows = sparse::maximumTransversal(filled, found);
  std::copy(rows.begin(), rows.end(), p);
  return CUSOLVER_STATUS_SUCCESS;
}
inline Status csrperm_bufferSize(int, int, int count, Description description, const int*, const int*, const int*,
                                 const int*, size_t* bytes) {
  MXMACA_RETURN_IF_FAILED(checkMatrix(count, description));
  return needsLittle(bytes, bytes);
}
// B = A(p, q) in the place of A, rows in order; `map` is put into the same order.
inline Status csrperm(int m, int n, int count, Description description, int* starts, int* indices, const int* p,
                      const int* q, int* map, void*) {
  Matrix<int> matrix;
  MXMACA_RETURN_IF_FAILED(readPattern(m, n, count, description, starts, indices, &matrix));
  if (m == 0 || n == 0) return CUSOLVER_STATUS_SUCCESS;
  const auto isOrder = [](const int* order, int size) {
    std::vector<char> seen(sparse::at(size), 0);
    return std::all_of(order, order + size, [&](int i) { return i >= 0 && i < size && seen[sparse::at(i)]++ == 0; });
  };
  MXMACA_REQUIRE(isOrder(p, m) && isOrder(q, n));
  matrix.values.resize(sparse::at(count));
  std::iota(matrix.values.begin(), matrix.values.end(), 0);
  if (map != nullptr) std::copy(map, map + count, matrix.values.begin());
  matrix = sparse::transposed(sparse::transposed(sparse::permuted(matrix, {p, p + m}, {q, q + n})));
  for (int row = 0; row <= m; ++row)
    starts[row] = static_cast<int>(matrix.offsets[sparse::at(row)]) + description->base;
  for (int i = 0; i < count; ++i) indices[i] = matrix.index[sparse::at(i)] + description->base;
  if (map != nullptr) std::copy(matrix.values.begin(), matrix.values.end(), map);
  return CUSOLVER_STATUS_SUCCESS;
}

// ---- Step by step ---------------------------------------------------------------------------------------------------
template <class Info>
Status analyse(int m, int n, int count, Description description, const int* starts, const int* indices, Info* info,
               Pattern* pattern) {
  MXMACA_REQUIRE(live(info));
  MXMACA_RETURN_IF_FAILED(readPattern(m, n, count, description, starts, indices, pattern));
  *info = Info();
  info->rows = m;
  info->columns = n;
  info->count = count;
  return CUSOLVER_STATUS_SUCCESS;
}
template <class Info>
Status sizes(int m, int n, int count, Description description, const Info* info, size_t* internal, size_t* workspace) {
  MXMACA_REQUIRE(live(info));
  MXMACA_RETURN_IF_FAILED(checkMatrix(count, description));
  MXMACA_REQUIRE(info->isOf(m, n, count));
  return needsLittle(internal, workspace);
}
template <class T, class Factor, class Info>
Status zeroPivot(const Info* info, Real<T> tolerance, int* position) {
  MXMACA_REQUIRE(live(info) && tolerance >= 0);
  const auto* const factor = info->factors.template get<T, Factor>();
  MXMACA_REQUIRE(factor != nullptr);
  *position = factor->zeroPivot(tolerance);
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T, class Factor, class Info>
Status solveFactored(int n, const T* b, T* x, const Info* info) {
  MXMACA_REQUIRE(live(info));
  const auto* const factor = info->factors.template get<T, Factor>();
  MXMACA_REQUIRE(factor != nullptr && info->rows == n);
  if (n > 0) factor->solve(b, x);
  return CUSOLVER_STATUS_SUCCESS;
}

template <class Info>
Status csrqrAnalysis(int m, int n, int count, Description description, const int* starts, const int* indices,
                     Info* info) {
  Pattern pattern;
  MXMACA_REQUIRE(m >= n);
  MXMACA_RETURN_IF_FAILED(analyse(m, n, count, description, starts, indices, info, &pattern));
  info->tree = sparse::QrTree(pattern);
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T>
Status csrqrBufferInfoBatched(int m, int n, int count, Description description, const T*, const int*, const int*, int,
                              const csrqrInfo* info, size_t* internal, size_t* workspace) {
  return sizes(m, n, count, description, info, internal, workspace);
}
// Matrices of one pattern, with their values, right sides and solutions one after another.
template <class T>
Status csrqrsvBatched(int m, int n, int count, Description description, const T* values, const int* starts,
                      const int* indices, const T* b, T* x, int batch, const csrqrInfo* info, void*) {
  MXMACA_REQUIRE(live(info));
  MXMACA_RETURN_IF_FAILED(checkMatrix(count, description));
  MXMACA_REQUIRE(info->isOf(m, n, count));
  Matrix<T> matrix;
  for (int64_t i = 0; i < batch; ++i) {
    MXMACA_RETURN_IF_FAILED(readMatrix(m, n, count, description, values + i * count, starts, indices, &matrix));
    if (m > 0) sparse::Qr<T>(matrix, info->tree, 0).solve(b + i * m, m, x + i * n);
  }
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T, class Info>
Status csrqrBufferInfo(int m, int n, int count, Description description, const T*, const int*, const int*,
                       const Info* info, size_t* internal, size_t* workspace) {
  return sizes(m, n, count, description, info, internal, workspace);
}
template <class T, class Info>
Status csrqrSetup(int m, int n, int count, Description description, const T* values, const int* starts,
                  const int* indices, T mu, Info* info) {
  MXMACA_REQUIRE(live(info));
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(m, n, count, description, values, starts, indices, &matrix));
  MXMACA_REQUIRE(info->isOf(m, n, count));
  if (mu != T(0)) {
    matrix = shifted(matrix, mu);
    info->tree = sparse::QrTree(matrix);  // the diagonal may be new
  }
  info->matrix.template keep<T>(std::move(matrix));
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T, class Info>
Status csrqrSolve(int m, int n, const T* b, T* x, const Info* info, void*) {
  MXMACA_REQUIRE(live(info));
  const auto* const factor = info->factors.template get<T, sparse::Qr<T>>();
  MXMACA_REQUIRE(factor != nullptr && info->rows == m && info->columns == n);
  if (n > 0) factor->solve(b, m, x);
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T, class Info>
Status csrqrFactor(int m, int n, int count, const T* b, T* x, Info* info, void* buffer) {
  MXMACA_REQUIRE(live(info) && info->isOf(m, n, count));
  const auto* const matrix = info->matrix.template get<T, Matrix<T>>();
  MXMACA_REQUIRE(matrix != nullptr);
  info->factors.template keep<T>(sparse::Qr<T>(*matrix, info->tree, 0));
  return b != nullptr && x != nullptr ? csrqrSolve(m, n, b, x, info, buffer) : CUSOLVER_STATUS_SUCCESS;
}
template <class T, class Info>
Status csrqrZeroPivot(const Info* info, Real<T> tolerance, int* position) {
  return zeroPivot<T, sparse::Qr<T>>(info, tolerance, position);
}

inline Status csrluAnalysis(int n, int count, Description description, const int* starts, const int* indices,
                            csrluInfoHost* info) {
  Pattern pattern;
  return analyse(n, n, count, description, starts, indices, info, &pattern);
}
template <class T>
Status csrluBufferInfo(int n, int count, Description description, const T*, const int*, const int*,
                       const csrluInfoHost* info, size_t* internal, size_t* workspace) {
  return sizes(n, n, count, description, info, internal, workspace);
}
template <class T>
Status csrluFactor(int n, int count, Description description, const T* values, const int* starts, const int* indices,
                   csrluInfoHost* info, Real<T> threshold, void*) {
  MXMACA_REQUIRE(live(info) && threshold >= 0 && threshold <= 1);
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(n, n, count, description, values, starts, indices, &matrix));
  MXMACA_REQUIRE(info->isOf(n, n, count));
  info->factors.keep<T>(sparse::Lu<T>(matrix, threshold));
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T>
Status csrluZeroPivot(const csrluInfoHost* info, Real<T> tolerance, int* position) {
  return zeroPivot<T, sparse::Lu<T>>(info, tolerance, position);
}
template <class T>
Status csrluSolve(int n, const T* b, T* x, const csrluInfoHost* info, void*) {
  return solveFactored<T, sparse::Lu<T>>(n, b, x, info);
}
// Calls `use` with the factors, of whatever type they are.
template <class Use>
Status withLu(const csrluInfoHost* info, Use&& use) {
  switch (info->factors.letter) {
    case 's': return use(*static_cast<const sparse::Lu<float>*>(info->factors.held.get()));
    case 'd': return use(*static_cast<const sparse::Lu<double>*>(info->factors.held.get()));
    case 'c': return use(*static_cast<const sparse::Lu<std::complex<float>>*>(info->factors.held.get()));
    case 'z': return use(*static_cast<const sparse::Lu<std::complex<double>>*>(info->factors.held.get()));
    default: return CUSOLVER_STATUS_INVALID_VALUE;
  }
}
// L is stored without the ones of its diagonal.
inline Status csrluNnz(int* countL, int* countU, const csrluInfoHost* info) {
  MXMACA_REQUIRE(live(info));
  return withLu(info, [&](const auto& factor) -> Status {
    *countL = static_cast<int>(factor.lower.count());
    *countU = static_cast<int>(factor.upper.count()) + factor.upper.lines;
    return CUSOLVER_STATUS_SUCCESS;
  });
}
template <class T>
void writeCsr(const Matrix<T>& columns, const std::vector<T>* diagonal, int base, T* values, int* starts,
              int* indices) {
  const Matrix<T> rows = sparse::transposed(columns);
  int next = 0;
  starts[0] = base;
  for (int row = 0; row < rows.lines; ++row) {
    if (diagonal != nullptr) {
      values[next] = (*diagonal)[sparse::at(row)];
      indices[next++] = row + base;
    }
    for (int64_t i = rows.begin(row); i < rows.end(row); ++i) {
      values[next] = rows.values[sparse::at(i)];
      indices[next++] = rows.index[sparse::at(i)] + base;
    }
    starts[row + 1] = next + base;
  }
}
// P A Q^T = L U with row P[i] of A in row i; columns are not exchanged.
template <class T>
Status csrluExtract(int* P, int* Q, Description descriptionL, T* valuesL, int* startsL, int* indicesL,
                    Description descriptionU, T* valuesU, int* startsU, int* indicesU, const csrluInfoHost* info,
                    void*) {
  MXMACA_REQUIRE(live(info));
  MXMACA_RETURN_IF_FAILED(checkMatrix(0, descriptionL));
  MXMACA_RETURN_IF_FAILED(checkMatrix(0, descriptionU));
  const auto* const factor = info->factors.get<T, sparse::Lu<T>>();
  MXMACA_REQUIRE(factor != nullptr);
  MXMACA_REQUIRE(factor->lower.count() == 0 || (valuesL != nullptr && indicesL != nullptr));
  MXMACA_REQUIRE(factor->pivots.empty() || (valuesU != nullptr && indicesU != nullptr));
  writeCsr<T>(factor->lower, nullptr, descriptionL->base, valuesL, startsL, indicesL);
  writeCsr<T>(factor->upper, &factor->pivots, descriptionU->base, valuesU, startsU, indicesU);
  std::copy(factor->rows.begin(), factor->rows.end(), P);
  std::iota(Q, Q + factor->rows.size(), 0);
  return CUSOLVER_STATUS_SUCCESS;
}

template <class Info>
Status csrcholAnalysis(int n, int count, Description description, const int* starts, const int* indices, Info* info) {
  Pattern pattern;
  return analyse(n, n, count, description, starts, indices, info, &pattern);
}
template <class T, class Info>
Status csrcholBufferInfo(int n, int count, Description description, const T*, const int*, const int*, const Info* info,
                         size_t* internal, size_t* workspace) {
  return sizes(n, n, count, description, info, internal, workspace);
}
// A matrix that is not positive definite is found by the zero pivot alone.
template <class T, class Info>
Status csrcholFactor(int n, int count, Description description, const T* values, const int* starts, const int* indices,
                     Info* info, void*) {
  MXMACA_REQUIRE(live(info));
  Matrix<T> matrix;
  MXMACA_RETURN_IF_FAILED(readMatrix(n, n, count, description, values, starts, indices, &matrix));
  MXMACA_REQUIRE(info->isOf(n, n, count));
  info->factors.template keep<T>(sparse::Cholesky<T>(matrix));
  return CUSOLVER_STATUS_SUCCESS;
}
template <class T, class Info>
Status csrcholZeroPivot(const Info* info, Real<T> tolerance, int* position) {
  return zeroPivot<T, sparse::Cholesky<T>>(info, tolerance, position);
}
template <class T, class Info>
Status csrcholSolve(int n, const T* b, T* x, const Info* info, void*) {
  MXMACA_REQUIRE(live(info));
  const auto* const factor = info->factors.template get<T, sparse::Cholesky<T>>();
  MXMACA_REQUIRE(factor != nullptr && factor->failed < 0);
  return solveFactored<T, sparse::Cholesky<T>>(n, b, x, info);
}
template <class T>
Status csrcholDiag(const csrcholInfo* info, Real<T>* diagonal) {
  MXMACA_REQUIRE(live(info));
  const auto* const factor = info->factors.get<T, sparse::Cholesky<T>>();
  MXMACA_REQUIRE(factor != nullptr && factor->failed < 0);
  std::copy(factor->diagonal.begin(), factor->diagonal.end(), diagonal);
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace cusolver
}  // namespace mxmaca
