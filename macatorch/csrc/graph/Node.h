#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <mc_runtime.h>

#include <utility>
#include <vector>

#include "graph/Work.h"

namespace macatorch {

/// Where a launch leaves a tensor: what the capture made of it, and which members have memory of their own.
struct Place {
  at::Tensor tensor;
  std::vector<bool> fresh;
};

/// A captured operator.
struct Node {
  c10::OperatorHandle op;
  c10::DeviceIndex device;
  bool gradients;  // a recurrent network's forward keeps more when they are wanted
  torch::jit::Stack arguments;
  std::vector<std::pair<size_t, Place>> results;      // with: number of the result tensor
  std::vector<std::pair<at::Tensor, Place>> changed;  // composite arguments that the operator gives other members
  std::vector<CapturedPosition> positions;
  std::vector<Requests::Place> places;
};

/// Runs a `Node` again, for a launch of its graph.
mcError_t run_node(void* data);

void destroy_node(void* data);

}  // namespace macatorch
