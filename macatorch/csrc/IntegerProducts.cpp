#include <ATen/ATen.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/vdot_ops.h>

#include <type_traits>

#include "NeuralNet.h"
#include "Unboxed.h"

namespace macatorch {

// Products of integer and boolean matrices and vectors: the CPU has them, cuBLAS has not, and upstream refuses them on CUDA.

#define MACATORCH_PRODUCTS(apply)                    \
  apply(mm, "mm", "addmm_cuda");                     \
  apply(mm_out, "mm.out", "addmm_cuda");             \
  apply(addmm, "addmm", "addmm_cuda");               \
  apply(addmm_, "addmm_", "addmm_cuda");             \
  apply(addmm_out, "addmm.out", "addmm_cuda");       \
  apply(bmm, "bmm", "baddbmm_cuda");                 \
  apply(bmm_out, "bmm.out", "baddbmm_cuda");         \
  apply(baddbmm, "baddbmm", "baddbmm_cuda");         \
  apply(baddbmm_, "baddbmm_", "baddbmm_cuda");       \
  apply(baddbmm_out, "baddbmm.out", "baddbmm_cuda"); \
  apply(addmv, "addmv", "addmv_impl_cuda");          \
  apply(addmv_, "addmv_", "addmv_impl_cuda");        \
  apply(addmv_out, "addmv.out", "addmv_impl_cuda");  \
  apply(dot, "dot", "dot");                          \
  apply(vdot, "vdot", "vdot")

#define MACATORCH_DECLARE(symbol, name, kernel) MACATORCH_SPEC(symbol)
MACATORCH_PRODUCTS(MACATORCH_DECLARE);
#undef MACATORCH_DECLARE

namespace {

/// Tensors of one integer dtype, none of them empty: an empty product calls no kernel.
struct Integers {
  at::ScalarType dtype = at::ScalarType::Undefined;
  bool all = true;

  void see(const at::Tensor& tensor) {
    const at::ScalarType own = tensor.scalar_type();
    all = all && at::isIntegralType(own, /*includeBool=*/true) &&
          (dtype == at::ScalarType::Undefined || dtype == own) && tensor.numel() != 0 && tensor.is_cuda();
    dtype = own;
  }
  void see(at::Tensor& /*written*/) {}
  template <class T>
  void see(const T& /*no tensor*/) {}
};

template <class Op, const OperatorSpec& spec, class Signature = typename Op::schema>
struct Product;
template <class Op, const OperatorSpec& spec, class Result, class... Args>
struct Product<Op, spec, Result(Args...)> {
  static inline const char* kernel = nullptr;

  static Result call(Args... args) {
    Integers integers;
    (integers.see(args), ...);
    if (C10_UNLIKELY(integers.all)) {
      refuse_dtype(kernel, integers.dtype);
    }
    return Unboxed<Op, spec>::call(args...);
  }
};

}  // namespace

void register_integer_products(torch::Library& cuda) {
#define MACATORCH_IMPLEMENT(symbol, name, function)            \
  Product<at::_ops::symbol, spec_##symbol>::kernel = function; \
  cuda.impl(name, TORCH_FN((Product<at::_ops::symbol, spec_##symbol>::call)))
  MACATORCH_PRODUCTS(MACATORCH_IMPLEMENT);
#undef MACATORCH_IMPLEMENT
}

}  // namespace macatorch
