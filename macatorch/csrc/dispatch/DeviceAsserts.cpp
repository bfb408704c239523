#include "dispatch/DeviceAsserts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAException.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <mc_runtime.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "arguments/Device.h"

namespace macatorch {
namespace {

// Operators whose CUDA kernels assert something about the values that they read. Every overload is meant.
constexpr std::array kAsserting{
    "index",
    "_unsafe_index",
    "_index_put_impl_",
    "index_select",
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_fill",
    "index_fill_",
    "index_reduce",
    "index_reduce_",
    "gather",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "scatter_reduce_",
    "take",
    "put_",
    "embedding",
    "embedding_renorm_",
    "embedding_dense_backward",
    "_embedding_bag",
    "nll_loss_forward",
    "_embedding_bag_forward_only",
    "multinomial",
    "nll_loss2d_forward",
    "multilabel_margin_loss_forward",
    "bernoulli",
    "binary_cross_entropy",
    "multi_margin_loss",
    "bernoulli_",
};

// What the CPU's kernels say where CUDA's assert. Other errors of these operators are raised before a launch by both.
constexpr std::array<std::string_view, 8> kValueErrors{
    "out of bounds",
    "index out of range",
    "out of range: tried to access",
    "probability tensor contains",
    "invalid multinomial distribution",
    "should be between 0 and 1",
    "target out of range",
    "Expected p_in >= 0",
};

bool is_about_values(std::string_view message) {
  return std::any_of(kValueErrors.begin(), kValueErrors.end(),
                     [message](std::string_view part) { return message.find(part) != std::string_view::npos; });
}

void run_asserting(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  using c10::DispatchKeySet;
  const DispatchKeySet backends = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, c10::DispatchKey::BackendSelect);
  if (!keys.has(kDeviceKey)) {
    op.redispatchBoxed(backends, stack);
    return;
  }
  try {
    op.redispatchBoxed(backends, stack);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (!is_about_values(message)) {
      throw;
    }
    const std::string detail = c10::toString(op.operator_name()) + ": " + message;
    static_cast<void>(std::fprintf(stderr, "mxmaca: device-side assert in %s\n", detail.c_str()));
    mcDeviceFail(mcErrorAssert, detail.c_str());
    C10_CUDA_CHECK(cudaGetLastError());
  }
}

}  // namespace

void register_device_asserts() {
  const char* const wanted = std::getenv("MACA_DEVICE_ASSERT");
  if (wanted == nullptr || std::string_view(wanted) != "1") {
    return;
  }
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::BackendSelect,
                                "macatorch/csrc/dispatch/DeviceAsserts.cpp", 0);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string full = c10::toString(name);
    const std::string_view base = std::string_view(full).substr(0, full.find('.'));
    const auto asserts = [base](const char* one) { return base.substr(0, 6) == "aten::" && base.substr(6) == one; };
    if (std::any_of(kAsserting.begin(), kAsserting.end(), asserts)) {
      library.impl(full.c_str() + 6, torch::CppFunction::makeFromBoxedFunction<&run_asserting>());
    }
  }
}

}  // namespace macatorch
