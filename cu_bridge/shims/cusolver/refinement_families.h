// What each family of refinement_functions.txt computes.
#pragma once

#include <cmath>
#include <limits>

#include "families.h"
#include "gemm.h"

namespace mxmaca {
namespace cusolver {

// Note [Iterative refinement]
// A system is factored in a lower precision, and its solution corrected until its residual is as small as the precision
// of the data lets it be; where that fails, it is solved once more in the precision of the data. The lower precision is
// float's for double, and the data's own otherwise: OpenBLAS does not factor halves, and a factor that is nearer to the
// matrix does not make a solution worse. Every way to refine is the classical one. Least squares are solved in the
// precision of the data at once, in 0 iterations.

// Why a refinement gave up, as cuSOLVER and LAPACK number it; their negative limit says that iterations did not
// suffice.
enum Failure : int { kOverflowed = -2, kNotFactored = -3, kOverflowedOnTheWay = -5 };

// What factors data of type T where a lower precision is asked for.
template <class T>
using Lower = std::conditional_t<kComplex<T>, std::complex<float>, float>;

template <class T>
bool finite(T value) {
  return std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
}
// Copies a matrix into another one's type; false where a number does not fit.
template <class From, class To>
bool convert(Index rows, Index columns, const From* from, Index ldf, To* to, Index ldt) {
  bool fits = true;
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < rows; ++i) {
      to[i + j * ldt] = static_cast<To>(from[i + j * ldf]);
      fits = fits && (finite(to[i + j * ldt]) || !finite(from[i + j * ldf]));
    }
  }
  return fits;
}
// The largest sum of a row's absolute values: of one column, its largest absolute value. NaN where there is one.
template <class T>
double infinityNorm(Index rows, Index columns, const T* matrix, Index ld) {
  double norm = 0;
  for (Index i = 0; i < rows; ++i) {
    double sum = 0;
    for (Index j = 0; j < columns; ++j) sum += static_cast<double>(std::abs(matrix[i + j * ld]));
    if (!(sum <= norm)) norm = sum;
  }
  return norm;
}

template <class T>
struct System {
  Index n, right;
  T* a;
  Index lda;
  const T* b;
  Index ldb;
  T* x;
  Index ldx;
};

// The residual of a solution, and how its norms compare to what is allowed.
template <class T>
class Residual {
 public:
  Residual(const System<T>& system, double tolerance)
      : system_(system), values_(static_cast<size_t>(system.n * system.right)) {
    const double unit = tolerance > 0 ? tolerance : static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) / 2;
    allowed_ = std::sqrt(static_cast<double>(system.n)) * unit * infinityNorm(system.n, system.n, system.a, system.lda);
  }
  const T* compute() {
    const auto& [n, right, a, lda, b, ldb, x, ldx] = system_;
    convert(n, right, b, ldb, values_.data(), n);
    gemm('N', 'N', n, right, n, T(-1), a, lda, x, ldx, T(1), values_.data(), n);
    largest_ = 0;
    small_ = true;
    for (Index j = 0; j < right; ++j) {
      const double norm = infinityNorm(n, 1, values_.data() + j * n, n);
      if (!(norm <= largest_)) largest_ = norm;
      small_ = small_ && norm <= allowed_ * infinityNorm(n, 1, x + j * ldx, ldx);
    }
    return values_.data();
  }
  bool small() const { return small_; }
  double largest() const { return largest_; }

 private:
  const System<T>& system_;
  std::vector<T> values_;
  double allowed_ = 0, largest_ = 0;
  bool small_ = false;
};

// Factors in the lower precision and corrects. Returns the number of iterations, or why there is no solution; `norms`
// has the residual's before each iteration and behind the last.
template <class T, class Low>
int refine(const System<T>& system, const cusolverDnIRSParams& irs, std::vector<BlasInt>* pivots,
           std::vector<double>* norms) {
  const Index n = system.n, right = system.right;
  std::vector<Low> factors(static_cast<size_t>(n * n)), correction(static_cast<size_t>(n * right));
  if (!convert(n, n, system.a, system.lda, factors.data(), n)) return kOverflowed;
  if (!convert(n, right, system.b, system.ldb, correction.data(), n)) return kOverflowed;
  if (factor(n, n, factors.data(), n, pivots->data()) != 0) return kNotFactored;
  Residual<T> residual(system, irs.tolerance);
  for (int iteration = 0;; ++iteration) {
    solve<Low>(CUBLAS_OP_N, n, right, factors.data(), n, pivots->data(), correction.data(), n, nullptr);
    for (Index j = 0; j < right; ++j) {
      for (Index i = 0; i < n; ++i) {
        T& x = system.x[i + j * system.ldx];
        x = (iteration > 0 ? x : T(0)) + static_cast<T>(correction[static_cast<size_t>(i + j * n)]);
      }
    }
    const T* const left = residual.compute();
    norms->push_back(residual.largest());
    if (!std::isfinite(residual.largest())) return kOverflowedOnTheWay;
    if (residual.small() || irs.solver == CUSOLVER_IRS_REFINE_NONE) return iteration;
    if (iteration >= irs.iterations) return -std::max(irs.iterations, 1);
    if (!convert(n, right, left, n, correction.data(), n)) return kOverflowedOnTheWay;
  }
}

template <class T>
void keepHistory(const std::vector<double>& norms, cusolverDnIRSInfos* infos) {
  const auto rows = static_cast<size_t>(infos->mostIterations) + 1;
  auto& history = [infos]() -> auto& {
    if constexpr (std::is_same_v<Real<T>, double>) return infos->wideHistory;
    if constexpr (std::is_same_v<Real<T>, float>) return infos->history;
  }();
  history.assign(2 * rows, 0);
  for (size_t i = 0; i < std::min(norms.size(), rows); ++i) {
    history[i] = static_cast<Real<T>>(i);
    history[rows + i] = static_cast<Real<T>>(norms[i]);
  }
}

template <class T, class Low>
Status refined(const System<T>& system, const cusolverDnIRSParams& irs, int* pivots, cusolverDnIRSInfos* infos,
               int* iter, int* info) {
  reachData();
  const Index n = system.n, right = system.right;
  std::vector<BlasInt> wide(static_cast<size_t>(n));
  std::vector<double> norms;
  const int iterations = n == 0 || right == 0 ? 0 : refine<T, Low>(system, irs, &wide, &norms);
  BlasInt found = 0;
  if (iterations < 0 && irs.fallsBack) {
    found = factor(n, n, system.a, system.lda, wide.data());
    convert(n, right, system.b, system.ldb, system.x, system.ldx);
    if (found == 0) solve(CUBLAS_OP_N, n, right, system.a, system.lda, wide.data(), system.x, system.ldx, nullptr);
  }
  if (pivots != nullptr) std::copy(wide.begin(), wide.end(), pivots);
  *iter = iterations;
  if (infos != nullptr) {
    infos->iterations = iterations;
    infos->mostIterations = irs.iterations;
    if (infos->wantsHistory) keepHistory<T>(norms, infos);
  }
  return report(info, found);
}

// ---- Types of the function's name -----------------------------------------------------------------------------------
inline Status workspaceOf(size_t* bytes) {
  MXMACA_REQUIRE(bytes != nullptr);
  *bytes = static_cast<size_t>(kWorkspace);
  return CUSOLVER_STATUS_SUCCESS;
}
inline bool sufficient(const void* workspace, size_t bytes) {
  return workspace != nullptr && bytes >= static_cast<size_t>(kWorkspace);
}
template <class T>
Status gesv_bufferSize(Index n, Index nrhs, T*, Index ldda, int*, T*, Index lddb, T*, Index lddx, void*,
                       size_t* bytes) {
  MXMACA_REQUIRE(n >= 0 && nrhs >= 0 && ldda >= least(n) && lddb >= least(n) && lddx >= least(n));
  return workspaceOf(bytes);
}
template <class T, class Low>
Status gesv(Index n, Index nrhs, T* A, Index ldda, int* pivots, T* B, Index lddb, T* X, Index lddx,
            const void* workspace, size_t bytes, int* iter, int* info) {
  MXMACA_REQUIRE(n >= 0 && nrhs >= 0 && ldda >= least(n) && lddb >= least(n) && lddx >= least(n));
  if (!sufficient(workspace, bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  const System<T> system{n, nrhs, A, ldda, B, lddb, X, lddx};
  return refined<T, Low>(system, cusolverDnIRSParams(), pivots, nullptr, iter, info);
}
template <class T>
Status gesvMain(Index n, Index nrhs, T* A, Index ldda, int* pivots, T* B, Index lddb, T* X, Index lddx, void* workspace,
                size_t bytes, int* iter, int* info) {
  return gesv<T, T>(n, nrhs, A, ldda, pivots, B, lddb, X, lddx, workspace, bytes, iter, info);
}
template <class T>
Status gesvLow(Index n, Index nrhs, T* A, Index ldda, int* pivots, T* B, Index lddb, T* X, Index lddx, void* workspace,
               size_t bytes, int* iter, int* info) {
  return gesv<T, Lower<T>>(n, nrhs, A, ldda, pivots, B, lddb, X, lddx, workspace, bytes, iter, info);
}
template <class T>
Status gels_bufferSize(Index m, Index n, Index nrhs, T*, Index ldda, T*, Index lddb, T*, Index lddx, void*,
                       size_t* bytes) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && nrhs >= 0 && ldda >= least(m) && lddb >= least(m) && lddx >= least(n));
  return workspaceOf(bytes);
}
// A and B stay as they are.
template <class T>
Status gels(Index m, Index n, Index nrhs, const T* A, Index ldda, const T* B, Index lddb, T* X, Index lddx,
            const void* workspace, size_t bytes, int* iter, int* info) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && nrhs >= 0 && ldda >= least(m) && lddb >= least(m) && lddx >= least(n));
  if (!sufficient(workspace, bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  reachData();
  const Index tall = least(std::max(m, n));
  std::vector<T> factors(static_cast<size_t>(least(m) * n)), solution(static_cast<size_t>(tall * nrhs));
  convert(m, n, A, ldda, factors.data(), least(m));
  convert(m, nrhs, B, lddb, solution.data(), tall);
  const BlasInt found =
      MXMACA_BLAS(T, "LAPACKE_?gels", BlasInt(int, char, BlasInt, BlasInt, BlasInt, T*, BlasInt, T*, BlasInt))(
          kColumnMajor, 'N', m, n, nrhs, factors.data(), least(m), solution.data(), tall);
  if (found == 0) convert(n, nrhs, solution.data(), tall, X, lddx);
  *iter = 0;
  return report(info, found);
}

// ---- Types chosen at run time ---------------------------------------------------------------------------------------
inline bool isComplex(cusolverPrecType_t type) { return type > CUSOLVER_R_AP; }
inline cudaDataType dataType(cusolverPrecType_t main) {
  switch (main) {
    case CUSOLVER_R_32F: return CUDA_R_32F;
    case CUSOLVER_R_64F: return CUDA_R_64F;
    case CUSOLVER_C_32F: return CUDA_C_32F;
    default: return CUDA_C_64F;
  }
}
// Whether data of the one precision can be factored in the other: that or a lower one, of floating-point numbers.
inline bool fits(cusolverPrecType_t main, cusolverPrecType_t lowest) {
  const cusolverPrecType_t wide = isComplex(main) ? CUSOLVER_C_64F : CUSOLVER_R_64F;
  const cusolverPrecType_t last = isComplex(main) ? CUSOLVER_C_TF32 : CUSOLVER_R_TF32;
  return (main == wide || main == wide + 1) && lowest >= main && lowest <= last;
}
inline Status checkRefinement(cusolverDnIRSParams_t irs, Index nrhs) {
  if (!live(irs)) return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
  if (!fits(irs->main, irs->lowest)) return CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC;
  if (irs->solver == CUSOLVER_IRS_REFINE_NOT_SET) return CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE;
  // GMRES is for one right-hand side.
  if (irs->solver > CUSOLVER_IRS_REFINE_CLASSICAL && nrhs > 1) return CUSOLVER_STATUS_IRS_NOT_SUPPORTED;
  return CUSOLVER_STATUS_SUCCESS;
}
#define MXMACA_TYPED(type, Name, ...) MXMACA_WITH_TYPE(withType, type, Name, __VA_ARGS__)

inline Status IRSXgesv_bufferSize(cusolverDnIRSParams_t irs, Index n, Index nrhs, size_t* bytes) {
  MXMACA_REQUIRE(n >= 0 && nrhs >= 0);
  MXMACA_RETURN_IF_FAILED(checkRefinement(irs, nrhs));
  return workspaceOf(bytes);
}
inline Status IRSXgesv(cusolverDnIRSParams_t irs, cusolverDnIRSInfos_t infos, Index n, Index nrhs, void* A, Index ldda,
                       void* B, Index lddb, void* X, Index lddx, void* workspace, size_t bytes, int* iter, int* info) {
  MXMACA_RETURN_IF_FAILED(checkRefinement(irs, nrhs));
  if (!live(infos)) return CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED;
  MXMACA_REQUIRE(n >= 0 && nrhs >= 0 && ldda >= least(n) && lddb >= least(n) && lddx >= least(n));
  if (!sufficient(workspace, bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return MXMACA_TYPED(dataType(irs->main), T, {
    const System<T> system{n, nrhs, static_cast<T*>(A), ldda, static_cast<T*>(B), lddb, static_cast<T*>(X), lddx};
    if (irs->lowest == irs->main) return refined<T, T>(system, *irs, nullptr, infos, iter, info);
    return refined<T, Lower<T>>(system, *irs, nullptr, infos, iter, info);
  });
}
inline Status IRSXgels_bufferSize(cusolverDnIRSParams_t irs, Index m, Index n, Index nrhs, size_t* bytes) {
  MXMACA_REQUIRE(m >= 0 && n >= 0 && nrhs >= 0);
  MXMACA_RETURN_IF_FAILED(checkRefinement(irs, nrhs));
  return workspaceOf(bytes);
}
inline Status IRSXgels(cusolverDnIRSParams_t irs, cusolverDnIRSInfos_t infos, Index m, Index n, Index nrhs, void* A,
                       Index ldda, void* B, Index lddb, void* X, Index lddx, void* workspace, size_t bytes, int* iter,
                       int* info) {
  MXMACA_RETURN_IF_FAILED(checkRefinement(irs, nrhs));
  if (!live(infos)) return CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED;
  return MXMACA_TYPED(dataType(irs->main), T, {
    const Status status = gels<T>(m, n, nrhs, static_cast<T*>(A), ldda, static_cast<T*>(B), lddb, static_cast<T*>(X),
                                  lddx, workspace, bytes, iter, info);
    infos->iterations = 0;
    infos->mostIterations = irs->iterations;
    if (status == CUSOLVER_STATUS_SUCCESS && infos->wantsHistory) keepHistory<T>({}, infos);
    return status;
  });
}
#undef MXMACA_TYPED

}  // namespace cusolver
}  // namespace mxmaca
