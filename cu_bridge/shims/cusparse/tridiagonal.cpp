// cuSPARSE's solvers of tridiagonal systems: of one matrix with several right sides, and of batches.

#include "blocks.h"

using namespace mxmaca;
using namespace mxmaca::cusparse;

namespace {

constexpr int kLeastSize = 3;  // as documented

// The diagonals of one system, whose elements lie `step` apart. The first of `lower` and the last of `upper` are not
// read.
template <class T>
struct Diagonals {
  const T *lower, *middle, *upper;
  Index step;
};

// The eliminated matrix: its diagonal and the two above it, which an exchange of rows fills.
template <class T>
struct Rows {
  std::vector<T> middle, upper, farther;
};

template <class T>
void exchange(Rows<T>& rows, T* x, Index step, size_t i, T& lower) {
  std::swap(rows.middle[i], lower);
  std::swap(rows.upper[i], rows.middle[i + 1]);
  std::swap(rows.farther[i], rows.upper[i + 1]);
  std::swap(x[static_cast<Index>(i) * step], x[static_cast<Index>(i + 1) * step]);
}

// Gauss's elimination, with exchanges of neighbouring rows where the caller wants them. `x`: the right side, then the
// solution.
template <class T>
void solve(const Diagonals<T>& a, Index m, T* x, Index step, bool pivoting) {
  const auto size = static_cast<size_t>(m);
  Rows<T> rows{std::vector<T>(size), std::vector<T>(size), std::vector<T>(size)};
  for (size_t i = 0; i < size; ++i) {
    rows.middle[i] = a.middle[static_cast<Index>(i) * a.step];
    if (i + 1 < size) rows.upper[i] = a.upper[static_cast<Index>(i) * a.step];
  }
  for (size_t i = 0; i + 1 < size; ++i) {
    T lower = a.lower[static_cast<Index>(i + 1) * a.step];
    if (pivoting && std::abs(lower) > std::abs(rows.middle[i])) exchange(rows, x, step, i, lower);
    const T factor = lower / rows.middle[i];
    rows.middle[i + 1] -= factor * rows.upper[i];
    rows.upper[i + 1] -= factor * rows.farther[i];
    x[static_cast<Index>(i + 1) * step] -= factor * x[static_cast<Index>(i) * step];
  }
  for (size_t i = size; i-- > 0;) {
    T value = x[static_cast<Index>(i) * step];
    if (i + 1 < size) value -= rows.upper[i] * x[static_cast<Index>(i + 1) * step];
    if (i + 2 < size) value -= rows.farther[i] * x[static_cast<Index>(i + 2) * step];
    x[static_cast<Index>(i) * step] = value / rows.middle[i];
  }
}

template <class T>
Status checkDiagonals(int m, const T* lower, const T* middle, const T* upper, const T* x) {
  MXMACA_REQUIRE(m >= kLeastSize && lower != nullptr && middle != nullptr && upper != nullptr && x != nullptr);
  return CUSPARSE_STATUS_SUCCESS;
}
Status checkSides(int m, int n, int ldb) {
  MXMACA_REQUIRE(n >= 0 && ldb >= m);
  return CUSPARSE_STATUS_SUCCESS;
}
Status checkBatch(int m, int count, int stride) {
  MXMACA_REQUIRE(count >= 0 && stride >= m);
  return CUSPARSE_STATUS_SUCCESS;
}
// Algorithms of interleaved batches: Thomas's (0), LU with exchanges (1), QR (2).
Status checkInterleaved(int algorithm, int count) {
  MXMACA_REQUIRE(algorithm >= 0 && algorithm <= 2 && count >= 0);
  return CUSPARSE_STATUS_SUCCESS;
}

Status sized(cusparseHandle_t handle, Status checked, size_t* bytes) {
  return sizeOfBuffer(handle, true, checked, bytes);
}
// Runs the work of a solver when what its family checks and the diagonals are right.
template <class T, class Work>
Status run(cusparseHandle_t handle, Status checked, int m, const T* lower, const T* middle, const T* upper, const T* x,
           const void* buffer, Work&& work) {
  return guarded(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkDiagonals(m, lower, middle, upper, x));
    MXMACA_RETURN_IF_FAILED(checked);
    MXMACA_REQUIRE(aligned(buffer));
    reachData();
    work();
    return CUSPARSE_STATUS_SUCCESS;
  });
}

}  // namespace

#define GTSV2(letter, T, name, pivoting)                                                                              \
  MXMACA_EXPORT Status cusparse##letter##name##_bufferSizeExt(cusparseHandle_t handle, int m, int n, const T*,        \
                                                              const T*, const T*, const T*, int ldb, size_t* bytes) { \
    return sized(handle, m < kLeastSize ? CUSPARSE_STATUS_INVALID_VALUE : checkSides(m, n, ldb), bytes);              \
  }                                                                                                                   \
  MXMACA_EXPORT Status cusparse##letter##name(cusparseHandle_t handle, int m, int n, const T* dl, const T* d,         \
                                              const T* du, T* b, int ldb, void* buffer) {                             \
    MXMACA_LATER(Status, cusparse##letter##name, handle, m, n, dl, d, du, b, ldb, unread(buffer));                    \
    return run(handle, checkSides(m, n, ldb), m, dl, d, du, static_cast<const T*>(b), buffer, [&] {                   \
      for (Index j = 0; j < n; ++j) {                                                                                 \
        solve<Native<T>>({native(dl), native(d), native(du), 1}, m, native(b) + j * ldb, 1, pivoting);                \
      }                                                                                                               \
    });                                                                                                               \
  }
#define GTSV2_BATCHES(letter, T)                                                                                       \
  MXMACA_EXPORT Status cusparse##letter##gtsv2StridedBatch_bufferSizeExt(cusparseHandle_t handle, int m, const T*,     \
                                                                         const T*, const T*, const T*, int batchCount, \
                                                                         int batchStride, size_t* bytes) {             \
    return sized(handle, m < kLeastSize ? CUSPARSE_STATUS_INVALID_VALUE : checkBatch(m, batchCount, batchStride),      \
                 bytes);                                                                                               \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##gtsv2StridedBatch(cusparseHandle_t handle, int m, const T* dl, const T* d,    \
                                                           const T* du, T* x, int batchCount, int batchStride,         \
                                                           void* buffer) {                                             \
    MXMACA_LATER(Status, cusparse##letter##gtsv2StridedBatch, handle, m, dl, d, du, x, batchCount, batchStride,        \
                 unread(buffer));                                                                                      \
    return run(handle, checkBatch(m, batchCount, batchStride), m, dl, d, du, static_cast<const T*>(x), buffer, [&] {   \
      for (Index i = 0; i < batchCount; ++i) {                                                                         \
        const Index at = i * batchStride;                                                                              \
        solve<Native<T>>({native(dl) + at, native(d) + at, native(du) + at, 1}, m, native(x) + at, 1, false);          \
      }                                                                                                                \
    });                                                                                                                \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##gtsvInterleavedBatch_bufferSizeExt(cusparseHandle_t handle, int algo, int m,  \
                                                                            const T*, const T*, const T*, const T*,    \
                                                                            int batchCount, size_t* bytes) {           \
    return sized(handle, m < kLeastSize ? CUSPARSE_STATUS_INVALID_VALUE : checkInterleaved(algo, batchCount), bytes);  \
  }                                                                                                                    \
  MXMACA_EXPORT Status cusparse##letter##gtsvInterleavedBatch(cusparseHandle_t handle, int algo, int m, T* dl, T* d,   \
                                                              T* du, T* x, int batchCount, void* buffer) {             \
    MXMACA_LATER(Status, cusparse##letter##gtsvInterleavedBatch, handle, algo, m, dl, d, du, x, batchCount,            \
                 unread(buffer));                                                                                      \
    const auto plain = [](const T* pointer) { return pointer; };                                                       \
    return run(handle, checkInterleaved(algo, batchCount), m, plain(dl), plain(d), plain(du), plain(x), buffer, [&] {  \
      for (Index i = 0; i < batchCount; ++i) {                                                                         \
        solve<Native<T>>({native(dl) + i, native(d) + i, native(du) + i, batchCount}, m, native(x) + i, batchCount,    \
                         algo != 0);                                                                                   \
      }                                                                                                                \
    });                                                                                                                \
  }
#define TRIDIAGONAL(letter, T)           \
  GTSV2(letter, T, gtsv2, true)          \
  GTSV2(letter, T, gtsv2_nopivot, false) \
  GTSV2_BATCHES(letter, T)
TRIDIAGONAL(S, float)
TRIDIAGONAL(D, double)
TRIDIAGONAL(C, cuComplex)
TRIDIAGONAL(Z, cuDoubleComplex)
