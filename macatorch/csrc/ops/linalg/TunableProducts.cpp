#include "ops/linalg/TunableProducts.h"

#include <ATen/ops/allclose.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "arguments/Device.h"
#include "arguments/Release.h"

namespace macatorch {

#if MACATORCH_TUNABLE

namespace {

using at::cuda::tunable::ResultEntry;
using at::cuda::tunable::TuningContext;

/// What upstream calls a dtype in the names of tunable operators; nullptr for one whose products are not tuned.
const char* name_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return "float";
    case at::kDouble: return "double";
    case at::kHalf: return "Half";
    case at::kBFloat16: return "BFloat16";
    case at::kComplexFloat: return "c10::complex<float>";
    case at::kComplexDouble: return "c10::complex<double>";
    default: return nullptr;
  }
}

/// A matrix as BLAS is given it: whether its rows or its columns lie together, and how far they lie apart.
struct Layout {
  bool transposed;
  int64_t leading;
};
Layout layout_of(const at::Tensor& matrix) {
  const int64_t rows = matrix.size(-2);
  const int64_t columns = matrix.size(-1);
  if (matrix.stride(-1) == 1 && (rows == 1 || matrix.stride(-2) >= std::max<int64_t>(1, columns))) {
    return {false, rows == 1 ? columns : matrix.stride(-2)};
  }
  if (matrix.stride(-2) == 1 && (columns == 1 || matrix.stride(-1) >= std::max<int64_t>(1, rows))) {
    return {true, columns == 1 ? rows : matrix.stride(-1)};
  }
  return {false, columns};  // of the copy that is made
}

struct Signatures {
  std::string operation, parameters;
};
/// BLAS counts columns first: the product of transposed matrices in the other order.
Signatures signatures_of(const at::Tensor& left, const at::Tensor& right, bool with_bias, const char* dtype) {
  const Layout first = layout_of(right);
  const Layout second = layout_of(left);
  const auto letter = [](const Layout& layout, const char* letters) { return letters[layout.transposed ? 1 : 0]; };
  const bool batched = left.dim() == 3;
  Signatures result;
  result.operation = batched ? "GemmStridedBatched" : with_bias ? "GemmAndBias" : "Gemm";
  result.operation += std::string("TunableOp_") + dtype + "_" + letter(first, "NT") + letter(second, "NT");
  const int64_t columns = right.size(-1);
  std::string& parameters = result.parameters;
  parameters = {letter(first, "nt"), letter(second, "nt")};
  for (const int64_t size : {columns, left.size(-2), left.size(-1)}) {
    parameters += "_" + std::to_string(size);
  }
  if (batched) {
    parameters += "_B_" + std::to_string(left.size(0));
  }
#if MACATORCH_TORCH_AT_LEAST(2, 7)
  parameters += "_ld";
  for (const int64_t size : {first.leading, second.leading, columns}) {
    parameters += "_" + std::to_string(size);
  }
#endif
  return result;
}

double milliseconds_of(const ProductKernel& kernel, int times) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    kernel.compute();
  }
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / times;
}

/// How often a kernel is called within limits of time and number; a limit that is negative, or 0 where `zero_is_none`,
/// is none.
int times_within(double milliseconds, int number, double one, bool zero_is_none, int otherwise) {
  const auto limits = [zero_is_none](double limit) { return zero_is_none ? limit > 0 : limit >= 0; };
  int times = std::numeric_limits<int>::max();
  if (limits(milliseconds)) {
    times = static_cast<int>(std::min(milliseconds / std::max(one, 1e-6), 1e6));
  }
  if (limits(number)) {
    times = std::min(times, number);
  }
  return times == std::numeric_limits<int>::max() ? otherwise : times;
}

/// Whether two kernels of one product agree as far as sums in another order do.
bool agree(const at::Tensor& result, const at::Tensor& reference) {
  const bool low = result.scalar_type() == at::kHalf || result.scalar_type() == at::kBFloat16;
  const double tolerance = low ? 1e-2 : 1e-4;
  return at::allclose(result, reference, tolerance, tolerance, /*equal_nan=*/true);
}

ResultEntry fastest(TuningContext& context, const std::vector<ProductKernel>& kernels) {
  constexpr int kTrial = 3;
  constexpr int kWarmups = 1;
  constexpr int kMeasured = 100;
  std::string best = "Default";
  double least = std::numeric_limits<double>::infinity();
  std::optional<at::Tensor> reference;
  for (const ProductKernel& kernel : kernels) {
    const std::optional<at::Tensor> result = kernel.compute();
    if (!result) {
      continue;
    }
    if (!reference) {
      reference = result;
    }
    if (context.IsNumericsCheckEnabled() && !agree(*result, *reference)) {
      continue;
    }
    const double trial = milliseconds_of(kernel, kTrial);
    if (trial > 2 * least) {
      continue;
    }
    const int warmups =
        times_within(context.GetMaxWarmupDurationMs(), context.GetMaxWarmupIterations(), trial, false, kWarmups);
    for (int i = 0; i < warmups; ++i) {
      kernel.compute();
    }
    const int measured =
        times_within(context.GetMaxTuningDurationMs(), context.GetMaxTuningIterations(), trial, true, kMeasured);
    const double time = milliseconds_of(kernel, std::max(1, measured));
    if (time < least) {
      least = time;
      best = kernel.name;
    }
  }
  return ResultEntry(best, least);
}

#if MACATORCH_TORCH_AT_LEAST(2, 6)
/// A later release also records how BLAS is called, which is nothing that these kernels have.
template <class Manager, class File>
auto record_untuned(Manager& manager, File& file, const Signatures& names, int /*preferred*/)
    -> decltype(manager.RecordUntuned(file, names.operation, names.parameters)) {
  manager.RecordUntuned(file, names.operation, names.parameters);
}
template <class Manager, class File>
void record_untuned(Manager& manager, File& file, const Signatures& names, long /*otherwise*/) {
  manager.RecordUntuned(file, names.operation, names.parameters, names.parameters);
}
#endif

}  // namespace

at::Tensor tuned_product(const at::Tensor& left, const at::Tensor& right, bool with_bias,
                         const std::vector<ProductKernel>& kernels) {
  const char* const dtype = name_of(left.scalar_type());
  if (dtype == nullptr) {
    return *kernels.front().compute();
  }
  TuningContext& context = *at::cuda::tunable::getTuningContext();
  auto& results = context.GetTuningResultsManager();
  const Signatures names = signatures_of(left, right, with_bias, dtype);
  ResultEntry chosen = results.Lookup(names.operation, names.parameters);
  if (chosen == ResultEntry::Null()) {
    if (context.IsTuningEnabled()) {
      chosen = fastest(context, kernels);
      results.Add(names.operation, names.parameters, chosen);
#if MACATORCH_TORCH_AT_LEAST(2, 6)
    } else if (context.IsRecordUntunedEnabled()) {
      record_untuned(results, context.GetUntunedFile(), names, 0);
#endif
    }
  }
  const std::string name = chosen;
  for (const ProductKernel& kernel : kernels) {
    if (name != kernel.name) {
      continue;
    }
    // A result of another build may name a kernel that does not apply here.
    if (std::optional<at::Tensor> result = kernel.compute()) {
      return *std::move(result);
    }
  }
  return *kernels.front().compute();
}

#else

at::Tensor tuned_product(const at::Tensor&, const at::Tensor&, bool, const std::vector<ProductKernel>& kernels) {
  return *kernels.front().compute();
}

#endif

}  // namespace macatorch
