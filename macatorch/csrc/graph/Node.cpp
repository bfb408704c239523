#include "graph/Node.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>
#include <unordered_map>

#include "arguments/Device.h"
#include "arguments/Walker.h"
#include "graph/CompositeMembers.h"

namespace macatorch {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using torch::jit::Stack;

void leave_member(const at::Tensor& result, const at::Tensor& place, const c10::OperatorHandle& op) {
  TORCH_CHECK(result.sizes() == place.sizes(), op.operator_name(), " gave a result of shape ", result.sizes(),
              " when its graph was launched, and of shape ", place.sizes(), " when it was captured");
  if (result.const_data_ptr() == place.const_data_ptr()) {
    return;
  }
  if (result.strides() == place.strides() && result.is_non_overlapping_and_dense() &&
      result.scalar_type() == place.scalar_type() && result.is_conj() == place.is_conj() &&
      result.is_neg() == place.is_neg()) {
    std::memcpy(place.data_ptr(), result.const_data_ptr(), place.nbytes());
    return;
  }
  at::Tensor(place).copy_(result);
}

void leave_result(const at::Tensor& result, const Place& place, const c10::OperatorHandle& op) {
  if (!is_composite(place.tensor)) {
    leave_member(result, place.tensor, op);
    return;
  }
  // The host has this from the capture, and nobody tells it of anything else.
  TORCH_CHECK(is_described_alike(result, place.tensor), op.operator_name(),
              " gave a sparse, nested or quantised tensor of another shape, order or scale when its graph was launched"
              " than when it was captured");
  const std::vector<at::Tensor> members = members_of(result), places = members_of(place.tensor);
  for (size_t i = 0; i < places.size(); ++i) {
    if (place.fresh[i]) {
      leave_member(members[i], places[i], op);
    }
  }
}

/// The arguments of one launch. An operator may give a composite tensor other members, so it gets a tensor of its own.
class LaunchedArguments {
 public:
  Stack operator()(const Stack& arguments) {
    Stack stack;
    stack.reserve(arguments.size());
    for (const IValue& value : arguments) {
      stack.push_back(holds_composite(value)
                          ? map_tensors(value, [this](const at::Tensor& tensor) { return for_launch(tensor); })
                          : value);
    }
    return stack;
  }
  /// The tensor that stands for a captured one.
  const at::Tensor& of(const at::Tensor& captured) const { return copies_.at(captured.unsafeGetTensorImpl()); }

 private:
  static bool holds_composite(const IValue& value) {
    bool found = false;
    for_each_tensor(value, [&](const at::Tensor& tensor) { found |= is_composite(tensor); });
    return found;
  }
  at::Tensor for_launch(const at::Tensor& tensor) {
    if (!is_composite(tensor) || !is_on_device(tensor)) {
      return tensor;
    }
    at::Tensor& copy = copies_[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) {
      copy = with_members(tensor, members_of(tensor));
    }
    return copy;
  }
  std::unordered_map<const c10::TensorImpl*, at::Tensor> copies_;
};

void launch(Node& node) {
  // Nothing above the backends takes part, whatever the launching thread is doing.
  c10::impl::LocalDispatchKeySet wanted = c10::impl::tls_local_dispatch_key_set();
  wanted.included_ = c10::default_included_set - DispatchKeySet(DispatchKey::ADInplaceOrView);
  wanted.excluded_ =
      c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;
  const c10::impl::ForceDispatchKeyGuard keys(wanted);
  const c10::AutoGradMode gradients(node.gradients);
  const c10::cuda::CUDAGuard device(node.device);
  Requests requests(node.places);
  const WorkScope scope(Work{nullptr, &node.positions, &requests, 0, false, nullptr});
  {
    LaunchedArguments arguments;
    Stack stack = arguments(node.arguments);
    node.op.callBoxed(stack);
    size_t number = 0;
    auto next = node.results.begin();
    for (const IValue& value : stack) {
      for_each_tensor(value, [&](const at::Tensor& tensor) {
        if (next != node.results.end() && next->first == number) {
          leave_result(tensor, next->second, node.op);
          ++next;
        }
        ++number;
      });
    }
    for (const auto& [captured, place] : node.changed) {
      leave_result(arguments.of(captured), place, node.op);
    }
  }
  TORCH_CHECK(requests.held().empty(), node.op.operator_name(), " kept memory that belongs to its graph");
}

}  // namespace

mcError_t run_node(void* data) {
  try {
    launch(*static_cast<Node*>(data));
    return mcSuccess;
  } catch (const c10::OutOfMemoryError& error) {
    return mcSetLastError(mcErrorMemoryAllocation, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return mcSetLastError(mcErrorLaunchFailure, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return mcSetLastError(mcErrorLaunchFailure, error.what());
  }
}

void destroy_node(void* data) { delete static_cast<Node*>(data); }

}  // namespace macatorch
