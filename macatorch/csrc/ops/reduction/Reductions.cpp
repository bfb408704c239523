#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/sum_ops.h>

#include <optional>
#include <vector>

#include "arguments/Arguments.h"
#include "arguments/Device.h"
#include "arguments/Release.h"
#include "dispatch/Precision.h"
#include "dispatch/Stubs.h"
#include "dispatch/Unboxed.h"
#include "ops/Forms.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

/// What is added up or multiplied, in an integer dtype where the result has one: upstream converts it first, which is a
/// copy on the device. The CPU's kernel would convert as the processor does.
c10::MaybeOwned<at::Tensor> in_dtype(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  if (C10_LIKELY(!dtype) || !at::isIntegralType(*dtype, /*includeBool=*/false) || !self.is_floating_point()) {
    return c10::MaybeOwned<at::Tensor>::borrowed(self);
  }
  return c10::MaybeOwned<at::Tensor>::owned(self.to(*dtype));
}

// Note [Sums of many halves]
// Where one number is left and there are several threads, upstream's CPU kernel gives each thread a part, and keeps the
// sums of the parts in the input's dtype: of 262,656 numbers in bfloat16, whose sum is 32.25, it makes 30. CUDA's
// kernel keeps them in float, as the CPU's does in one thread. So one thread sums here, at 1.6 times the cost of two.

/// Whether the kernel would round sums of parts.
bool loses_digits(const at::Tensor& self, at::ScalarType dtype, at::OptionalIntArrayRef dim) {
  if (C10_LIKELY(!is_low(dtype) || self.numel() < at::internal::GRAIN_SIZE || at::get_num_threads() == 1)) {
    return false;
  }
  const auto summed = at::native::make_dim_mask(dim, self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (!summed[i] && self.size(i) != 1) {
      return false;
    }
  }
  return true;
}

/// Up to 2.1 the kernel goes through rows that do not make one, and adds each to a sum in the input's dtype: of a batch
/// of images, say, or of every second column.
bool adds_rows(const at::Tensor& self, at::ScalarType dtype, at::OptionalIntArrayRef dim) {
  if (MACATORCH_TORCH_AT_LEAST(2, 4) || !is_low(dtype)) {
    return false;
  }
  const auto summed = at::native::make_dim_mask(dim, self.dim());
  int64_t dims = 0, whole = 0;
  for (int64_t i = 0; i < self.dim(); ++i) {
    dims += self.size(i) > 1 ? 1 : 0;
    whole += self.size(i) > 1 && summed[i] ? 1 : 0;
  }
  return whole > 1 && (whole < dims || !self.is_contiguous());
}

/// Calls `function` where upstream's kernels find no threads to share their work with.
template <class Function>
void in_one_thread(const Function& function) {
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t begin, int64_t) {
    if (begin == 0) {
      function();
    }
  });
}

at::Tensor sum(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, std::optional<at::ScalarType> dtype) {
  const at::ScalarType given = dtype.value_or(self.scalar_type());
  if (adds_rows(self, given, dim)) {
    return macatorch::sum(widen(self.to(given)), dim, keepdim, std::nullopt).to(given);
  }
  const auto call = [&] {
    return Unboxed<at::_ops::sum_dim_IntList, spec_sum_dim_IntList>::call(*in_dtype(self, dtype), dim, keepdim, dtype);
  };
  if (C10_LIKELY(!loses_digits(self, given, dim))) {
    return call();
  }
  at::Tensor result;
  in_one_thread([&] { result = call(); });
  return result;
}

at::Tensor prod(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  return Unboxed<at::_ops::prod, spec_prod>::call(*in_dtype(self, dtype), dtype);
}

at::Tensor prod_of_dim(const at::Tensor& self, int64_t dim, bool keepdim, std::optional<at::ScalarType> dtype) {
  return Unboxed<at::_ops::prod_dim_int, spec_prod_dim_int>::call(*in_dtype(self, dtype), dim, keepdim, dtype);
}

at::Tensor cumsum(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype) {
  return Unboxed<at::_ops::cumsum, spec_cumsum>::call(*in_dtype(self, dtype), dim, dtype);
}

at::Tensor cumprod(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype) {
  return Unboxed<at::_ops::cumprod, spec_cumprod>::call(*in_dtype(self, dtype), dim, dtype);
}

/// The same into a given tensor, whose dtype counts where none is named.
template <const OperatorSpec& spec>
void accumulate_into(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const at::Tensor out = arguments.tensor("out");
  const at::ScalarType dtype = arguments.dtype("dtype").value_or(out.scalar_type());
  c10::IValue& self = (*stack)[stack->size() - op.schema().arguments().size()];
  self = at::Tensor(*in_dtype(self.toTensor(), dtype));
  call_boxed(spec, op, stack);
}

void sum_into(const OperatorHandle& op, Stack* stack) {
  Arguments given(op, stack);
  const at::Tensor self = given.tensor("self"), out = given.tensor("out");
  const at::ScalarType dtype = given.dtype("dtype").value_or(out.scalar_type());
  const c10::IValue dim = given["dim"];
  const std::vector<int64_t> dims = dim.isNone() ? std::vector<int64_t>() : dim.toIntVector();
  if (adds_rows(self, dtype, at::IntArrayRef(dims)) && self.device() == out.device() && out.scalar_type() == dtype) {
    given.give(write_out(out, macatorch::sum(self, at::IntArrayRef(dims), given.flag("keepdim"), dtype)));
    return;
  }
  const auto call = [&] { accumulate_into<spec_sum_IntList_out>(op, stack); };
  if (C10_LIKELY(!loses_digits(self, dtype, at::IntArrayRef(dims)))) {
    call();
  } else {
    in_one_thread(call);
  }
}

/// The CPU's kernel takes no complex numbers. A number is left out if either of its parts is NaN.
template <const OperatorSpec& spec>
void nansum(const OperatorHandle& op, Stack* stack) {
  Arguments arguments(op, stack);
  const at::Tensor self = arguments.tensor("self");
  if (!self.is_complex() && !at::isComplexType(arguments.dtype("dtype").value_or(at::kFloat))) {
    call_boxed(spec, op, stack);
    return;
  }
  const at::Tensor numbers = at::where(at::isnan(self), at::zeros({}, self.options()), self);
  const c10::IValue dim = arguments["dim"];
  const std::vector<int64_t> list = dim.isNone() ? std::vector<int64_t>() : dim.toIntVector();
  const at::OptionalIntArrayRef dims = dim.isNone() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(list);
  const bool keepdim = arguments.flag("keepdim");
  at::Tensor out = arguments.tensor("out");
  arguments.give(out.defined() ? at::sum_out(out, numbers, dims, keepdim, arguments.dtype("dtype"))
                               : at::sum(numbers, dims, keepdim, arguments.dtype("dtype")));
}

/// The same behind the function table, which nanmean(out=) calls by itself. On CUDA upstream's
/// kernel reads low precision and writes float; the CPU's would read the bytes of one dtype as the other.
void nansum_table(at::TensorIterator& iterator) {
  const at::ScalarType given = iterator.dtype(iterator.noutputs());
  if (!at::isComplexType(given) && given == iterator.dtype(0)) {
    using Table = decltype(at::native::nansum_stub);
    stubs::Rerouted<Table, at::native::nansum_stub, Table::FnPtr>::call(iterator);
    return;
  }
  // The iterator's output has one element where a dimension is summed.
  const at::Tensor out = iterator.tensor(0), self = iterator.tensor(1);
  const at::Tensor numbers = at::where(at::isnan(self), at::zeros({}, self.options()), self);
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < out.dim(); ++dim) {
    if (out.size(dim) == 1) {
      dims.push_back(dim);
    }
  }
  out.copy_(dims.empty() ? numbers : at::sum(numbers, dims, /*keepdim=*/true, out.scalar_type()));
}

/// CUDA's result is laid out by columns.
template <const OperatorSpec& spec>
void nonzero_static(const OperatorHandle& op, Stack* stack) {
  call_boxed(spec, op, stack);
  stack->back() = stack->back().toTensor().t().contiguous().t();
}

/// A permutation of nothing draws nothing, so that the generator may be of any device.
void randperm(const OperatorHandle& op, Stack* stack) {
  Arguments arguments(op, stack);
  if (arguments.integer("n") == 0) {
    at::Tensor out = arguments.tensor("out");
    arguments.give(out.resize_({0}));
  } else {
    const c10::IValue generator = arguments["generator"];
    TORCH_CHECK(
        is_on_device(arguments.tensor("out")) || generator.isNone() || !is_on_device(generator.toGenerator().device()),
        "Expected a 'cpu' device type for generator but found 'cuda'");
    call_boxed(spec_randperm_generator_out, op, stack);
  }
}

/// CUDA's kernel holds the sizes in an array of this length.
template <const OperatorSpec& spec>
void median(const OperatorHandle& op, Stack* stack) {
  TORCH_CHECK(Arguments(op, stack).tensor("self").dim() <= 25, "CUDA Tensors cannot have more than 25 dimensions");
  call_boxed(spec, op, stack);
}

/// CUDA has atomic sums of every dtype; products, means, maxima and minima of real numbers only.
template <const OperatorSpec& spec>
void scatter_reduced(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const at::ScalarType dtype = arguments.tensor("self").scalar_type();
  const std::string& reduce = arguments["reduce"].toStringRef();
  const bool lacking = (dtype == at::kBool || at::isComplexType(dtype)) && reduce != "add" && reduce != "sum";
  if (lacking && arguments.tensor("index").numel() != 0) {
    const bool fills = arguments["value"].isScalar();
    refuse_dtype(fills ? "cuda_scatter_fill_base_kernel_reduce_multiply" : "cuda_scatter_gather_base_kernel_func",
                 dtype);
  }
  call_boxed(spec, op, stack);
}

/// CUDA's kernel has no halves; distances that are computed by a matrix product do not come to it.
void cdist(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const at::Tensor first = arguments.tensor("x1"), second = arguments.tensor("x2");
  const at::ScalarType dtype = first.scalar_type();
  const bool matrices = first.dim() >= 2 && second.dim() >= 2;
  if (C10_UNLIKELY(is_half(dtype)) && matrices && first.numel() != 0 && second.numel() != 0) {
    constexpr int64_t kMany = 25;  // rows from which on upstream takes the product, unless told otherwise
    const int64_t mode = arguments.integer("compute_mode").value_or(0);
    const bool many = first.size(-2) > kMany || second.size(-2) > kMany;
    if (*arguments.number("p") != 2 || !(mode == 1 || (mode == 0 && many))) {
      refuse_dtype("cdist_cuda", dtype);
    }
  }
  call_boxed(spec__cdist_forward, op, stack);
}

}  // namespace
}  // namespace macatorch

#include "registered/reduction/Reductions.h"
