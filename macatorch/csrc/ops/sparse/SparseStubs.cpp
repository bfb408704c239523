#include "dispatch/Stubs.h"
#include "registered/Specs.h"

// Tables of sparse operators that no installed header declares. What there is to know of a table is its signature,
// which its symbol's users in libtorch_cpu show; a wrong name fails when the library is linked.

namespace at::native {

DECLARE_DISPATCH(Tensor (*)(const Tensor& indices, IntArrayRef size), flatten_indices_stub);
DECLARE_DISPATCH(void (*)(Tensor& result, const Tensor& x, const Tensor& y), mul_sparse_sparse_out_stub);
DECLARE_DISPATCH(void (*)(Tensor& result, const Tensor& x, const Tensor& y, const std::optional<Tensor>& hash),
                 sparse_mask_intersection_out_stub);
DECLARE_DISPATCH(void (*)(Tensor& result, const Tensor& x, const Tensor& y, const std::optional<Tensor>& hash,
                          bool accumulate_matches),
                 sparse_mask_projection_out_stub);

}  // namespace at::native

#include "registered/sparse/SparseStubs.h"
