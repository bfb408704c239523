// What the older solvers and factorizations keep in their `info`: that a matrix was analysed, and its zero pivots.
#pragma once

#include <atomic>

#include "blocks.h"

namespace mxmaca {
namespace cusparse {

constexpr Index kNoPivot = -1;
inline Index firstPivot(Index a, Index b) { return a == kNoPivot ? b : b == kNoPivot ? a : std::min(a, b); }

// Shared by an info and its copies: a call that is made later reports to the program's own.
struct Pivots {
  std::atomic<bool> analysed{false};
  std::atomic<cusparseSolvePolicy_t> policy{CUSPARSE_SOLVE_POLICY_NO_LEVEL};
  std::atomic<int> base{0};
  std::atomic<Index> structural{kNoPivot}, numerical{kNoPivot};  // in blocks, from 0
};
// Diagonal elements that are too small, and what takes their place.
struct Boost {
  bool enabled = false;
  bool onHost = true;
  double tolerance = 0;
  std::complex<double> value = 0;
  const double* toleranceOnDevice = nullptr;
  const void* valueOnDevice = nullptr;
};
struct PivotInfo {
  std::shared_ptr<Pivots> found = std::make_shared<Pivots>();
  Boost boost;
};

enum class Diagonal { Needed, AsDescribed };

// Whether the matrix was analysed, with levels where they are to be used now.
template <class Info>
bool analysed(const Info* info, cusparseSolvePolicy_t policy) {
  return live(info) && valid(policy) && info->found->analysed && policy <= info->found->policy;
}

// The size of a buffer. `checked`: what is wrong with arguments that few families have, here and below.
template <class Info, class Size>
Status bufferFor(cusparseHandle_t handle, const Blocks& a, const Info* info, Status checked, Size* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkShape(a));
    MXMACA_RETURN_IF_FAILED(checked);
    MXMACA_REQUIRE(live(info) && bytes != nullptr);
    *bytes = 16;  // nothing is kept there
    return CUSPARSE_STATUS_SUCCESS;
  });
}

// Reads the pattern and finds the first block of the diagonal that is missing.
template <class Info>
Status analyse(cusparseHandle_t handle, const Blocks& a, const void* values, Info* info, Status checked,
               cusparseSolvePolicy_t policy, const void* buffer, Diagonal needed) {
  return guarded(handle, [&]() -> Status {
    MXMACA_RETURN_IF_FAILED(checkArrays(a, values));
    MXMACA_RETURN_IF_FAILED(checked);
    MXMACA_REQUIRE(live(info) && valid(policy) && aligned(buffer));
    Index missing = kNoPivot;
    if (needed == Diagonal::Needed || a.descr->diagonal == CUSPARSE_DIAG_TYPE_NON_UNIT) {
      const Pattern pattern = elementsOf(a);
      for (Index row = pattern.rows; row-- > 0;) {
        const auto begin = pattern.column.begin() + pattern.offsets[static_cast<size_t>(row)];
        const auto end = pattern.column.begin() + pattern.offsets[static_cast<size_t>(row + 1)];
        if (!std::binary_search(begin, end, row)) missing = row / a.dim;
      }
    } else {
      elementsOf(a);  // which checks the indices
    }
    Pivots& found = *info->found;
    found.base = a.descr->base;
    found.policy = policy;
    found.structural = missing;
    found.numerical = kNoPivot;
    found.analysed = true;
    return CUSPARSE_STATUS_SUCCESS;
  });
}

// The program's question waits for all that the device has to do.
template <class Info>
Status zeroPivot(cusparseHandle_t handle, const Info* info, int* position) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(live(info) && position != nullptr);
    if (mcDeviceSynchronize() != mcSuccess) return CUSPARSE_STATUS_EXECUTION_FAILED;
    const Pivots& found = *info->found;
    const Index first = firstPivot(found.structural, found.numerical);
    *position = static_cast<int>(first == kNoPivot ? first : first + found.base);
    return first == kNoPivot ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ZERO_PIVOT;
  });
}

}  // namespace cusparse
}  // namespace mxmaca

struct csrilu02Info : mxmaca::cusparse::PivotInfo {};
struct csric02Info : mxmaca::cusparse::PivotInfo {};
struct bsrilu02Info : mxmaca::cusparse::PivotInfo {};
struct bsric02Info : mxmaca::cusparse::PivotInfo {};
struct bsrsv2Info : mxmaca::cusparse::PivotInfo {};
struct bsrsm2Info : mxmaca::cusparse::PivotInfo {};
MXMACA_OBJECT(csrilu02Info, CusparseIncompleteLu);
MXMACA_OBJECT(csric02Info, CusparseIncompleteCholesky);
MXMACA_OBJECT(bsrilu02Info, CusparseBlockLu);
MXMACA_OBJECT(bsric02Info, CusparseBlockCholesky);
MXMACA_OBJECT(bsrsv2Info, CusparseBlockSv);
MXMACA_OBJECT(bsrsm2Info, CusparseBlockSm);

// An info is made, asked for its zero pivot and destroyed alike, whatever it is of.
#define MXMACA_INFO(Name, name)                                                                                   \
  MXMACA_EXPORT Status cusparseCreate##Name##Info(name##Info_t* info) {                                           \
    return createDescriptor<Status>(info, name##Info());                                                          \
  }                                                                                                               \
  MXMACA_EXPORT Status cusparseDestroy##Name##Info(name##Info_t info) { return destroyDescriptor<Status>(info); } \
  MXMACA_EXPORT Status cusparseX##name##_zeroPivot(cusparseHandle_t handle, name##Info_t info, int* position) {   \
    return zeroPivot(handle, info, position);                                                                     \
  }
