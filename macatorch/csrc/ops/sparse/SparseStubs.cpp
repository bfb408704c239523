#include "dispatch/Stubs.h"
#include "ops/NeuralNet.h"

// Tables of sparse operators that no installed header declares. What there is to know of a table is its signature, which
// its symbol's users in libtorch_cpu show; a wrong name fails when the library is linked.
namespace at::native {

DECLARE_DISPATCH(Tensor (*)(const Tensor& indices, IntArrayRef size), flatten_indices_stub)
DECLARE_DISPATCH(void (*)(Tensor& result, const Tensor& x, const Tensor& y), mul_sparse_sparse_out_stub)
DECLARE_DISPATCH(void (*)(Tensor& result, const Tensor& x, const Tensor& y, const std::optional<Tensor>& hash),
                 sparse_mask_intersection_out_stub)
DECLARE_DISPATCH(void (*)(Tensor& result, const Tensor& x, const Tensor& y, const std::optional<Tensor>& hash,
                          bool accumulate_matches),
                 sparse_mask_projection_out_stub)

}  // namespace at::native

namespace macatorch {

void register_sparse_stubs() {
  using namespace at::native;
  reroute_stub<flatten_indices_stub_DECLARE_DISPATCH_type, flatten_indices_stub>("flatten_indices_stub");
  reroute_stub<mul_sparse_sparse_out_stub_DECLARE_DISPATCH_type, mul_sparse_sparse_out_stub>(
      "mul_sparse_sparse_out_stub");
  reroute_stub<sparse_mask_intersection_out_stub_DECLARE_DISPATCH_type, sparse_mask_intersection_out_stub>(
      "sparse_mask_intersection_out_stub");
  reroute_stub<sparse_mask_projection_out_stub_DECLARE_DISPATCH_type, sparse_mask_projection_out_stub>(
      "sparse_mask_projection_out_stub");
}

}  // namespace macatorch
