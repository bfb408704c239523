#include <ATen/ATen.h>
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "arguments/Arguments.h"
#include "arguments/Release.h"
#include "registered/Specs.h"

namespace macatorch {
namespace {

using at::DimVector;
using c10::OperatorHandle;
using torch::jit::Stack;

/// The most dimensions that one cuFFT plan takes; more are transformed in turn.
constexpr size_t kPlanDims = 3;

constexpr bool kTransformsBfloat16 = MACATORCH_TORCH_AT_LEAST(2, 14);
// Before, cuFFT gets a plan of an empty batch and refuses it.
constexpr bool kLeavesEmptyBatchesOut = MACATORCH_TORCH_AT_LEAST(2, 15);

/// Where upstream's CUDA code leaves the result of a transform: it runs one cuFFT plan after the other, and each gives
/// a contiguous batch of contiguous signals, the batch in the order of the strides before. What is computed is the
/// same.
class Layout {
 public:
  explicit Layout(const at::Tensor& self)
      : dtype_(at::toRealValueType(self.scalar_type())), sizes_(self.sizes()), strides_(self.strides()) {}

  const DimVector& sizes() const { return sizes_; }
  const DimVector& strides() const { return strides_; }

  void make_contiguous() { strides_ = c10::contiguous_strides(sizes_); }
  void resize(int64_t dim, int64_t size) {
    sizes_[dim] = size;
    make_contiguous();
  }

  /// One plan over `dims`; the last of them has `last` elements afterwards.
  void plan(const DimVector& dims, int64_t last) {
    std::vector<int64_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto batch = std::stable_partition(order.begin(), order.end(), [&](int64_t dim) {
      return std::find(dims.begin(), dims.end(), dim) == dims.end();
    });
    sort(order.begin(), batch);
    std::copy(dims.begin(), dims.end(), batch);
    check_low_precision(dims, last);
    TORCH_CHECK(kLeavesEmptyBatchesOut || c10::multiply_integers(sizes_) != 0, "cuFFT error: CUFFT_INVALID_SIZE");
    sizes_[dims.back()] = last;
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides_[order[i]] = stride;
      stride *= std::max<int64_t>(sizes_[order[i]], 1);
    }
  }

  /// Complex to complex, over any number of dimensions: those with the smallest strides first.
  void complex_plans(DimVector dims) {
    while (!dims.empty()) {
      sort(dims.begin(), dims.end());
      const size_t left = dims.size() - std::min(kPlanDims, dims.size());
      const DimVector now(dims.begin() + static_cast<ptrdiff_t>(left), dims.end());
      plan(now, sizes_[now.back()]);
      dims.resize(left);
    }
  }

 private:
  template <class Iterator>
  void sort(Iterator begin, Iterator end) const {
    std::stable_sort(begin, end, [&](int64_t a, int64_t b) { return strides_[a] > strides_[b]; });
  }

  void check_low_precision(const DimVector& dims, int64_t last) const {
    // There are no kernels for complex results in bfloat16: from torch 2.14 on it is transformed as float.
    TORCH_CHECK(dtype_ != at::kBFloat16 || kTransformsBfloat16, "cuFFT doesn't support tensor of type: ", dtype_);
    if (C10_LIKELY(dtype_ != at::kHalf)) {
      return;
    }
    DimVector signal;
    for (const int64_t dim : dims) {
      signal.push_back(sizes_[dim]);
    }
    signal.back() = std::max(signal.back(), last);
    TORCH_CHECK(
        std::all_of(signal.begin(), signal.end(), [](int64_t size) { return size > 0 && (size & (size - 1)) == 0; }),
        "cuFFT only supports dimensions whose sizes are powers of two when computing in half precision, but got "
        "a signal size of",
        at::IntArrayRef(signal));
  }

  const at::ScalarType dtype_;
  DimVector sizes_;
  DimVector strides_;
};

/// Whether real and complex steps are one plan.
bool one_plan(const DimVector& dims) {
  return dims.size() <= kPlanDims && !(dims.size() >= 2 && dims[0] == 0 && dims[1] == 1);
}

DimVector dims_of(const Arguments& arguments, const at::Tensor& self) {
  DimVector dims;
  for (const int64_t dim : arguments["dim"].toIntVector()) {
    dims.push_back(at::maybe_wrap_dim(dim, self.dim()));
  }
  return dims;
}

Layout real_to_complex(const Arguments& arguments, const at::Tensor& self, DimVector dims) {
  Layout layout(self);
  const int64_t last = dims.back();
  const int64_t size = self.size(last);
  const int64_t half_size = size / 2 + 1;
  const bool onesided = arguments.flag("onesided");
  if (one_plan(dims)) {
    layout.plan(dims, onesided ? half_size : size);
    return layout;
  }
  dims.pop_back();
  layout.plan({last}, half_size);
  layout.complex_plans(dims);
  if (!onesided && half_size != size) {
    layout.resize(last, size);
  }
  return layout;
}

Layout complex_to_real(const Arguments& arguments, const at::Tensor& self, DimVector dims) {
  Layout layout(self);
  const int64_t last_size = *arguments.integer("last_dim_size");
  if (one_plan(dims)) {
    layout.make_contiguous();
    layout.plan(dims, last_size);
    return layout;
  }
  const int64_t last = dims.back();
  dims.pop_back();
  layout.complex_plans(dims);
  layout.plan({last}, last_size);
  return layout;
}

Layout complex_to_complex(const Arguments&, const at::Tensor& self, DimVector dims) {
  Layout layout(self);
  layout.complex_plans(std::move(dims));
  return layout;
}

template <const OperatorSpec& spec, Layout (*layout_of)(const Arguments&, const at::Tensor&, DimVector)>
void transform(const OperatorHandle& op, Stack* stack) {
  const Arguments arguments(op, stack);
  const at::Tensor self = arguments.tensor("self");
  const DimVector dims = dims_of(arguments, self);
  if (dims.empty()) {
    call_boxed(spec, op, stack);
    return;
  }
  const Layout layout = layout_of(arguments, self, dims);
  const bool has_out = arguments.tensor("out").defined();
  if (C10_UNLIKELY(self.scalar_type() == at::kBFloat16)) {
    (*stack)[stack->size() - op.schema().arguments().size()] = self.to(at::kFloat);
  }
  call_boxed(spec, op, stack);
  const at::Tensor result = stack->back().toTensor();
  if (!has_out && result.strides() != at::IntArrayRef(layout.strides())) {
    stack->back() = at::empty_strided(layout.sizes(), layout.strides(), result.options()).copy_(result);
  }
}

}  // namespace
}  // namespace macatorch

#include "registered/linalg/Fourier.h"
