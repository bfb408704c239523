#include <ATen/SavedTensorHooks.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/util/flat_hash_map.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include "arguments/Release.h"

// Note [The thread of a backward pass]
// On CUDA a backward pass runs in a thread that autograd's engine keeps for each device. Here its operators compute on
// the host's cores, and OpenMP gives a pool of its own to each thread that calls it: the forward pass has one and the
// backward pass another. GNU's OpenMP lets idle threads spin only while all pools together have no more threads than
// there are cores; beyond that they sleep after each parallel loop and must be woken for the next (some 400 times in a
// step of a small language model, which took a quarter to a third longer). Handing a pass over costs 40 to 130 us
// besides, with one thread to compute as well: several times the whole pass of a small model.
//
// So a pass in which nothing can tell the difference runs in the calling thread, by the engine's own switch for it
// (torch.autograd.set_multithreading_enabled). Who can tell is Python code: hooks, custom functions, tensors and modes
// with operators of their own. Of that none may take part; a program whose hook relies on the thread it is called in
// finds the thread that it would find on hardware.
//
// This library stands before libtorch_cpu where libtorch_python looks for its symbols; it takes the place of the three
// functions below and goes on into upstream's.

namespace macatorch {
namespace {

constexpr const char* UPSTREAM = "libtorch_cpu.so";

/// Where upstream's library lies in memory.
struct Extent {
  std::uintptr_t begin = UINTPTR_MAX, end = 0;

  Extent() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* self) {
          const char* slash = std::strrchr(info->dlpi_name, '/');
          if (std::strcmp(slash != nullptr ? slash + 1 : info->dlpi_name, UPSTREAM) != 0) {
            return 0;
          }
          auto& extent = *static_cast<Extent*>(self);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            if (segment.p_type == PT_LOAD) {
              const std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
              extent.begin = std::min(extent.begin, start);
              extent.end = std::max(extent.end, start + segment.p_memsz);
            }
          }
          return 1;
        },
        this);
  }

  bool holds(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return begin <= place && place < end;
  }
};

/// The function that the caller took the place of.
template <class Function>
Function upstream(const char* name) {
  void* library = dlopen(UPSTREAM, RTLD_NOLOAD | RTLD_LAZY);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  TORCH_CHECK(found != nullptr, UPSTREAM, " has no ", name,
              ": it is not of the release that this wheel was built from");
  return reinterpret_cast<Function>(found);
}

/// True once a program has given a saved tensor hooks: nodes do not show theirs, so that any may have some.
std::atomic<bool> saved_tensors_have_hooks{false};

/// True if the node is upstream's own and calls nothing but upstream's own.
bool is_plain(torch::autograd::Node& node, const Extent& extent) {
  // The table of virtual functions lies in the library that defines the class.
  if (!extent.holds(*reinterpret_cast<const void* const*>(&node))) {
    return false;
  }
  if (!node.pre_hooks().empty() || !node.post_hooks().empty() || !node.tensor_pre_hooks().empty() ||
      node.tensor_post_acc_grad_hooks() != nullptr) {
    return false;
  }
  for (uint32_t i = 0; i < node.num_inputs(); ++i) {
    if (node.input_metadata(i).is_tensor_subclass()) {
      return false;
    }
  }
  if (typeid(node) != typeid(torch::autograd::CopySlices)) {
    return true;
  }
  const auto& inner = static_cast<torch::autograd::CopySlices&>(node).fn;
  return inner == nullptr || is_plain(*inner, extent);
}

/// True if all nodes that a pass may come to are plain. `outputs`: where it ends, if it does not run to the leaves.
bool is_plain(const torch::autograd::edge_list& roots, const torch::autograd::edge_list& outputs) {
  static const Extent extent;
  uint64_t nearest = 0;
  if (!outputs.empty()) {
    nearest = UINT64_MAX;
    for (const auto& edge : outputs) {
      nearest = std::min(nearest, edge.function != nullptr ? edge.function->topological_nr() : 0);
    }
  }
  ska::flat_hash_set<const torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> waiting;
  const auto take = [&](const torch::autograd::edge_list& edges) {
    for (const auto& edge : edges) {
      auto* node = edge.function.get();
      if (node != nullptr && node->topological_nr() >= nearest && seen.insert(node).second) {
        waiting.push_back(node);
      }
    }
  };
  take(roots);
  while (!waiting.empty()) {
    auto* node = waiting.back();
    waiting.pop_back();
    if (!is_plain(*node, extent)) {
      return false;
    }
    take(node->next_edges());
  }
  return true;
}

/// In a forked child there is no device to ask, and upstream refuses the pass in its own words.
std::atomic<bool> forked{false};
[[maybe_unused]] const int forks_are_watched = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });

bool has_dispatch_mode() {
#if MACATORCH_TORCH_AT_LEAST(2, 4)
  return c10::impl::TorchDispatchModeTLS::any_modes_set();
#else
  return c10::impl::TorchDispatchModeTLS::stack_len() != 0;
#endif
}

/// True if this thread may run the pass without anybody noticing, and gains by it. `gradients`: those it begins with.
bool keeps_pass(const torch::autograd::edge_list& roots, const torch::autograd::variable_list& gradients,
                const torch::autograd::edge_list& outputs) {
  using c10::DispatchKey;
  if (!c10::cuda::CUDACachingAllocator::get()->initialized() || forked.load(std::memory_order_relaxed)) {
    return false;
  }
  // Within a pass the engine goes on in the thread it is in. Observers are told of threads.
  if (torch::autograd::get_current_graph_task_id() != -1 || torch::autograd::AnomalyMode::is_enabled() ||
      at::hasGlobalCallbacks() || at::hasThreadLocalCallbacks() || saved_tensors_have_hooks.load() ||
      has_dispatch_mode()) {
    return false;
  }
  const auto keys = c10::impl::tls_local_dispatch_key_set().included_;
  if (keys.has_any(c10::DispatchKeySet(
          {DispatchKey::Python, DispatchKey::PythonTLSSnapshot, DispatchKey::FuncTorchDynamicLayerFrontMode}))) {
    return false;
  }
  for (const auto& gradient : gradients) {
    if (gradient.defined() && gradient.unsafeGetTensorImpl()->is_python_dispatch()) {
      return false;
    }
  }
  return c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None &&
         is_plain(roots, outputs);
}

/// Switches the engine's threads off in this thread, for the life of the object.
class CallingThreadOnly {
 public:
  CallingThreadOnly() { c10::AutogradState::get_tls_state().set_multithreading_enabled(false); }
  ~CallingThreadOnly() { c10::AutogradState::get_tls_state().set_multithreading_enabled(true); }
  CallingThreadOnly(const CallingThreadOnly&) = delete;
  CallingThreadOnly& operator=(const CallingThreadOnly&) = delete;
};

}  // namespace
}  // namespace macatorch

namespace torch::autograd {

variable_list Engine::execute(const edge_list& roots, const variable_list& inputs, bool keep_graph, bool create_graph,
                              bool accumulate_grad, const edge_list& outputs) {
  using Function =
      variable_list (*)(Engine*, const edge_list&, const variable_list&, bool, bool, bool, const edge_list&);
  static const auto upstream = macatorch::upstream<Function>(
      "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_");
  if (c10::AutogradState::get_tls_state().get_multithreading_enabled() &&
      macatorch::keeps_pass(roots, inputs, outputs)) {
    const macatorch::CallingThreadOnly guard;
    return upstream(this, roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  return upstream(this, roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
}

void SavedVariable::register_hooks(std::unique_ptr<SavedVariableHooks>&& hooks) {
  using Function = void (*)(SavedVariable*, std::unique_ptr<SavedVariableHooks>&&);
  static const auto upstream = macatorch::upstream<Function>(
      "_ZN5torch8autograd13SavedVariable14register_hooksEOSt10unique_ptrINS0_18SavedVariableHooksESt14default_"
      "deleteIS3_EE");
  macatorch::saved_tensors_have_hooks.store(true);
  upstream(this, std::move(hooks));
}

}  // namespace torch::autograd

namespace at {

// Called before hooks become the default ones of a thread.
void SavedTensorDefaultHooks::lazy_initialize() {
  static const auto upstream = macatorch::upstream<void (*)()>("_ZN2at23SavedTensorDefaultHooks15lazy_initializeEv");
  macatorch::saved_tensors_have_hooks.store(true);
  upstream();
}

}  // namespace at
