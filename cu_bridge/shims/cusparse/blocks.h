// Matrices in plain arrays, in blocks (BSR) or element by element (CSR: blocks of one), as rows of elements.
#pragma once

#include "descriptors.h"

MXMACA_RANGE(cusparseDirection_t, CUSPARSE_DIRECTION_ROW, CUSPARSE_DIRECTION_COLUMN);
MXMACA_RANGE(cusparseSolvePolicy_t, CUSPARSE_SOLVE_POLICY_NO_LEVEL, CUSPARSE_SOLVE_POLICY_USE_LEVEL);

namespace mxmaca {
namespace cusparse {

// Sizes count blocks of `dim` x `dim` elements, which lie row after row or column after column.
struct Blocks {
  cusparseDirection_t direction;
  int rows, columns, nnz;
  cusparseMatDescr_t descr;
  const int *offsets, *inner;
  int dim;
};

inline Status checkShape(const Blocks& a) {
  MXMACA_REQUIRE(a.rows >= 0 && a.columns >= 0 && a.nnz >= 0 && a.dim > 0 && valid(a.direction) && live(a.descr));
  return a.descr->type == CUSPARSE_MATRIX_TYPE_GENERAL ? CUSPARSE_STATUS_SUCCESS
                                                       : CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
}
// The arrays that computing needs.
inline Status checkArrays(const Blocks& a, const void* values) {
  MXMACA_RETURN_IF_FAILED(checkShape(a));
  MXMACA_REQUIRE(a.offsets != nullptr && (a.nnz == 0 || (a.inner != nullptr && values != nullptr)));
  return CUSPARSE_STATUS_SUCCESS;
}
// A buffer whose address the library documents as a multiple of 128.
inline bool aligned(const void* buffer) {
  constexpr uintptr_t kAlignment = 128;
  return buffer != nullptr && reinterpret_cast<uintptr_t>(buffer) % kAlignment == 0;
}

// The elements, the columns of a row in ascending order. With `transpose` those of the transpose.
Pattern elementsOf(const Blocks& a, bool transpose = false);

}  // namespace cusparse
}  // namespace mxmaca
