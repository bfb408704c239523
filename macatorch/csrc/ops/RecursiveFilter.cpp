#include "ops/RecursiveFilter.h"

#include <ATen/Parallel.h>
#include <ATen/core/TensorAccessor.h>
#include <mc_runtime.h>

#include <algorithm>
#include <array>
#include <string>

namespace macatorch {
namespace {

// Laid out as the one whose pointer is restricted, which the headers keep for CUDA's compilers.
template <class T, size_t dimensions>
using Accessor = at::GenericPackedTensorAccessor<T, dimensions, at::DefaultPtrTraits, size_t>;

// Samples times coefficients that a thread of its own is worth.
constexpr int64_t kGrain = 1 << 16;

/// iir_cu_kernel(in [batch, channel, time], coefficients [channel, order], out [batch, channel, order - 1 + time]):
/// out = in less what the coefficients make of the order - 1 last results, the oldest first. `out` begins with zeros,
/// and the coefficients, which are of the last result first at their end, end with one that is not read.
template <class T>
void filter(mcDim3, mcDim3, void** arguments, size_t, mcStream_t) {
  const auto& in = *static_cast<const Accessor<T, 3>*>(arguments[0]);
  const auto& coefficients = *static_cast<const Accessor<T, 2>*>(arguments[1]);
  const auto& out = *static_cast<const Accessor<T, 3>*>(arguments[2]);
  const auto channels = static_cast<int64_t>(in.size(1));
  const auto samples = static_cast<int64_t>(in.size(2));
  const auto last = static_cast<int64_t>(coefficients.size(1)) - 1;
  const int64_t work = std::max<int64_t>(1, samples * std::max<int64_t>(1, last));
  at::parallel_for(0, static_cast<int64_t>(in.size(0)) * channels, std::max<int64_t>(1, kGrain / work),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t line = begin; line < end; ++line) {
                       const int64_t channel = line % channels;
                       const T* from = in.data() + line / channels * in.stride(0) + channel * in.stride(1);
                       const T* factors = coefficients.data() + channel * coefficients.stride(0);
                       T* to = out.data() + line / channels * out.stride(0) + channel * out.stride(1);
                       for (int64_t time = 0; time < samples; ++time) {
                         T value = from[time];
                         for (int64_t order = 0; order < last; ++order) {
                           value -= factors[order] * to[time + order];
                         }
                         to[time + last] = value;
                       }
                     }
                   });
}

template <class T>
void implement(const char* dtype) {
  const std::string type = dtype;
  const auto accessor = [&](const char* dimensions) {
    return "at::GenericPackedTensorAccessor<" + type + ", " + dimensions + "ul, at::RestrictPtrTraits, unsigned long>";
  };
  const std::string name =
      "void iir_cu_kernel<" + type + ">(" + accessor("3") + ", " + accessor("2") + ", " + accessor("3") + ")";
  const std::array<size_t, 3> bytes{sizeof(Accessor<T, 3>), sizeof(Accessor<T, 2>), sizeof(Accessor<T, 3>)};
  mcKernelImplementWaiting(name.c_str(), &filter<T>, bytes.data(), bytes.size());
}

}  // namespace

void register_recursive_filter() {
  implement<float>("float");
  implement<double>("double");
}

}  // namespace macatorch
