#include "graph/GraphCapture.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <mc_runtime.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arguments/Device.h"
#include "arguments/Walker.h"
#include "graph/Borrowed.h"
#include "graph/FailedCapture.h"
#include "graph/Turn.h"

namespace macatorch {

std::atomic<int> captures_under_way{0};
std::atomic<bool> graphs_were_captured{false};
std::atomic<int> graph_operators{0};

void* Requests::next(size_t bytes) {
  const size_t number = next_++;
  if (places_ != nullptr) {
    for (const Place& place : *places_) {
      if (place.number == number && place.bytes == bytes) {
        held_.push_back(place.data);
        return place.data;
      }
    }
  }
  return nullptr;
}

bool Requests::release(const void* data) {
  const auto found = std::find(held_.begin(), held_.end(), data);
  if (found == held_.end()) {
    return false;
  }
  held_.erase(found);
  return true;
}

std::optional<Requests::Place> Requests::find(const void* data, size_t bytes) const {
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
    if (made->data == data) {
      return made->bytes == bytes ? std::make_optional(*made) : std::nullopt;
    }
  }
  return std::nullopt;
}

namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using torch::jit::Stack;

// Upstream has this key for modes of its own and registers nothing there.
constexpr DispatchKey kCaptureKey = DispatchKey::Fake;

/// Work of this thread on captured streams runs at once, or, with -1, is the capture's again.
class Suspended {
 public:
  explicit Suspended(int change = 1) : change_(change) { mcCaptureSuspend(change_); }
  ~Suspended() { mcCaptureSuspend(-change_); }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

 private:
  int change_;
};

/// Memory that a tensor covers: first byte and number of bytes.
std::pair<char*, size_t> extent(const at::Tensor& tensor) {
  size_t elements = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    elements += static_cast<size_t>(tensor.size(i) - 1) * static_cast<size_t>(tensor.stride(i));
  }
  return {static_cast<char*>(tensor.data_ptr()), elements * tensor.dtype().itemsize()};
}

/// One capture: what it wrote to memory that was there before, and which memory is its own.
class Session {
 public:
  explicit Session(const void* thread) : begun_by(thread) {}
  const void* const begun_by;

  /// Keeps what `tensor` holds, to put it back.
  void save(const at::Tensor& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!tensor.defined() || tensor.numel() == 0 || own_.count(tensor.storage().data()) != 0) {
      return;
    }
    const auto place = extent(tensor);
    if (!seen_.insert(place).second) {
      return;
    }
    Saved& saved = saved_.emplace_back(Saved{tensor, place.first, std::vector<char>(place.second)});
    std::memcpy(saved.bytes.data(), place.first, place.second);
  }
  /// Keeps the memory of `tensor` from being freed before the capture ends, if it is older than the capture. A program
  /// may give up an input once its operators are captured; captured operators run here, and would write their results
  /// into that memory, which the first launch reads.
  void keep(const at::Tensor& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (own_.count(tensor.storage().data()) == 0) {
      kept_.emplace(tensor.storage().unsafeGetStorageImpl(), tensor.storage());
    }
  }
  void owns(const at::Tensor& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    own_.insert(tensor.storage().data());
  }
  void restore() {
    for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved) {
      std::memcpy(saved->place, saved->bytes.data(), saved->bytes.size());
    }
    saved_.clear();
  }

 private:
  struct Saved {
    at::Tensor owner;
    char* place;
    std::vector<char> bytes;
  };
  std::mutex mutex_;  // backward runs in threads of its own
  std::vector<Saved> saved_;
  std::set<std::pair<char*, size_t>> seen_;
  std::unordered_set<const void*> own_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> kept_;
};

std::mutex sessions_mutex;

std::unordered_map<unsigned long long, std::shared_ptr<Session>>& sessions() {
  static auto* const all = new std::unordered_map<unsigned long long, std::shared_ptr<Session>>;
  return *all;
}

/// Whether this thread has begun a capture and not seen all of its captures end. Its address names the thread: captures
/// end with their thread as well, when it has no objects any more.
thread_local bool has_begun = false;

/// The thread goes on as without a capture once all that it has begun are over, whoever has ended them.
void forget_ended() {
  const std::lock_guard<std::mutex> lock(sessions_mutex);
  has_begun = std::any_of(sessions().begin(), sessions().end(),
                          [](const auto& entry) { return entry.second->begun_by == &has_begun; });
  if (!has_begun) {
    c10::impl::tls_set_dispatch_key_included(kCaptureKey, false);
  }
}

void capture_begins(unsigned long long id) {
  {
    const std::lock_guard<std::mutex> lock(sessions_mutex);
    sessions()[id] = std::make_shared<Session>(&has_begun);
  }
  captures_under_way.fetch_add(1, std::memory_order_relaxed);
  graphs_were_captured.store(true);
  has_begun = true;
  c10::impl::tls_set_dispatch_key_included(kCaptureKey, true);
}

void capture_ends(unsigned long long id, int failed) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard<std::mutex> lock(sessions_mutex);
    const auto found = sessions().find(id);
    if (found == sessions().end()) {
      return;
    }
    session = std::move(found->second);
    sessions().erase(found);
  }
  session->restore();
  captures_under_way.fetch_sub(1, std::memory_order_relaxed);
  forget_ended();
  if (failed != 0) {
    tidy_failed_capture(id);
  }
}

mcStream_t current_stream(c10::DeviceIndex device) {
  return reinterpret_cast<mcStream_t>(c10::cuda::getCurrentCUDAStream(device).stream());
}

/// The capture that the current stream of `device` takes part in. One that has failed raises upstream's error.
std::shared_ptr<Session> session_of(c10::DeviceIndex device) {
  mcCaptureStatus status = mcCaptureNone;
  unsigned long long id = 0;
  C10_CUDA_CHECK(
      static_cast<cudaError_t>(mcStreamCaptureInfo(current_stream(device), &status, &id, nullptr, nullptr, nullptr)));
  if (status == mcCaptureNone) {
    return nullptr;
  }
  if (status == mcCaptureInvalidated) {
    C10_CUDA_CHECK(cudaErrorStreamCaptureInvalidated);
  }
  const std::lock_guard<std::mutex> lock(sessions_mutex);
  const auto found = sessions().find(id);
  return found == sessions().end() ? nullptr : found->second;
}

/// A place in the random stream that only a launch knows.
struct CapturedPosition {
  const int64_t* seed;
  const int64_t* offset;
  uint64_t advance;

  PhiloxPosition read() const { return {static_cast<uint64_t>(*seed), static_cast<uint64_t>(*offset) + advance}; }
};

/// What this thread is doing about a captured operator.
struct Work {
  std::vector<CapturedPosition>* captured = nullptr;        // an operator runs for a capture
  const std::vector<CapturedPosition>* launched = nullptr;  // an operator runs in a launch
  Requests* requests = nullptr;
  size_t next = 0;
};
thread_local Work work;

class WorkScope {
 public:
  explicit WorkScope(Work mine) : outer_(std::exchange(work, mine)) {
    graph_operators.fetch_add(1, std::memory_order_relaxed);
  }
  ~WorkScope() {
    graph_operators.fetch_sub(1, std::memory_order_relaxed);
    work = outer_;
  }
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

 private:
  Work outer_;
};

/// A captured operator.
struct Node {
  c10::OperatorHandle op;
  c10::DeviceIndex device;
  bool gradients;  // a recurrent network's forward keeps more when they are wanted
  Stack arguments;
  std::vector<std::pair<size_t, at::Tensor>> results;  // number of the result tensor, its memory
  std::vector<CapturedPosition> positions;
  std::vector<Requests::Place> places;
};

void leave_result(const at::Tensor& result, const at::Tensor& place, const c10::OperatorHandle& op) {
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

void launch(Node& node) {
  // Nothing above the backends takes part, whatever the launching thread is doing.
  const c10::impl::ForceDispatchKeyGuard keys(
      c10::default_included_set - DispatchKeySet(DispatchKey::ADInplaceOrView),
      c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset);
  const c10::AutoGradMode gradients(node.gradients);
  const c10::cuda::CUDAGuard device(node.device);
  Requests requests(node.places);
  const WorkScope scope(Work{nullptr, &node.positions, &requests, 0});
  {
    Stack stack = node.arguments;
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
  }
  TORCH_CHECK(requests.held().empty(), node.op.operator_name(), " kept memory that belongs to its graph");
}

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

/// Operators that make memory or tell about tensors: nothing is computed, so nothing is to be repeated.
bool computes_nothing(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string> names{
      "aten::empty",
      "aten::empty_like",
      "aten::empty_strided",
      "aten::empty_permuted",
      "aten::empty_quantized",
      "aten::new_empty",
      "aten::new_empty_strided",
      "aten::record_stream",
      "aten::is_pinned",
      "aten::pin_memory",
      "aten::_pin_memory",
      "aten::_version",
      "aten::set_data",
      "aten::requires_grad_",
      "aten::retain_grad",
      "aten::is_same_size",
      "aten::is_set_to",
      "aten::_has_compatible_shallow_copy_type",
  };
  return op.hasTag(at::Tag::inplace_view) || names.count(op.schema().name()) != 0;
}

bool makes_memory(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return (name.rfind("aten::empty", 0) == 0 || name.rfind("aten::new_empty", 0) == 0) && !op.schema().is_mutable();
}

/// The CPU tensor that a captured operator reads: a copy reads it at each launch, every other one takes its value now.
at::Tensor host_argument(const at::Tensor& tensor, const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  if (name == "aten::copy_" || name == "aten::_to_copy" || name == "aten::_copy_from") {
    return tensor;
  }
  at::Tensor value = tensor.clone();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    value.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return value;
}

/// A program that goes on without what CUDA would have captured must not get a graph without it.
void invalidate_capture(c10::DeviceIndex device) {
  const Suspended resumed(in_captured_operator() ? -1 : 0);
  static_cast<void>(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream(device).stream()));
  static_cast<void>(cudaGetLastError());
}

[[noreturn]] void refuse(const c10::OperatorHandle& op, c10::DeviceIndex device, const char* reason) {
  invalidate_capture(device);
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), reason);
}

void check_plain(const at::Tensor& tensor, const c10::OperatorHandle& op, c10::DeviceIndex device) {
  if (tensor.layout() != at::kStrided || tensor.is_nested() || tensor.is_quantized() || !tensor.has_storage()) {
    refuse(op, device, ": work on a sparse, nested or quantised tensor cannot be captured in a graph");
  }
}

void record(Session& session, const c10::OperatorHandle& op, c10::DeviceIndex device, Stack* stack,
            const std::function<void()>& call) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const size_t first = stack->size() - count;
  // Each tensor's memory goes back to the runtime with it in that mode, and a launch would write there.
  static const bool checked = mcCheckMode() != 0;
  if (checked) {
    refuse(op, device, " cannot be captured under MACA_CHECK=memory, as graphs live in the caching allocator's pools");
  }
  if (schema.name() == "aten::_local_scalar_dense") {
    refuse_wait_in_capture();
  }

  Stack arguments(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
  std::unordered_set<const void*> known;  // storages of the arguments
  bool writes = false;
  for (size_t i = 0; i < count; ++i) {
    const bool written = is_written(schema, i);
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      check_plain(tensor, op, device);
      known.insert(tensor.storage().unsafeGetStorageImpl());
      if (is_on_device(tensor)) {
        session.keep(tensor);
      }
      if (written) {
        session.save(tensor);
        writes = true;
      }
    });
  }

  std::vector<CapturedPosition> positions;
  Requests requests;
  {
    const c10::impl::ExcludeDispatchKeyGuard once(kCaptureKey);
    const Suspended suspended;
    const WorkScope scope(Work{&positions, nullptr, &requests, 0});
    call();
  }

  auto node = std::make_unique<Node>(Node{op, device, at::GradMode::is_enabled(), {}, {}, std::move(positions), {}});
  Borrowed borrowed;
  size_t number = 0;
  for (size_t i = first; i < stack->size(); ++i) {
    for_each_tensor((*stack)[i], [&](const at::Tensor& tensor) {
      check_plain(tensor, op, device);
      const bool fresh = known.count(tensor.storage().unsafeGetStorageImpl()) == 0;
      if (fresh && !is_on_device(tensor) && tensor.numel() != 0) {
        refuse(op, device, " returns a tensor on the CPU, which a launch of the graph could not change");
      }
      if (fresh && is_on_device(tensor)) {
        session.owns(tensor);
        node->results.emplace_back(number, borrowed(tensor));
        if (const auto place = requests.find(tensor.storage().data(), tensor.storage().nbytes())) {
          node->places.push_back(*place);
        }
      }
      ++number;
    });
  }
  if (!writes && node->results.empty()) {
    return;  // a view, or a question
  }
  node->arguments.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const bool written = is_written(schema, i);
    node->arguments.push_back(map_tensors(arguments[i], [&](const at::Tensor& tensor) {
      return !tensor.defined()      ? tensor
             : is_on_device(tensor) ? borrowed(tensor)
             : written              ? tensor
                                    : host_argument(tensor, op);
    }));
  }
  const std::string label = c10::toString(op.operator_name());
  C10_CUDA_CHECK(static_cast<cudaError_t>(
      mcCaptureAdd(current_stream(device), "operator", label.c_str(), &run_node, node.release(), &destroy_node)));
}

std::optional<c10::DeviceIndex> device_of(at::ArrayRef<IValue> arguments) {
  std::optional<c10::DeviceIndex> device;
  for (const IValue& value : arguments) {
    if (device) {
      break;
    }
    if (value.isDevice() && is_on_device(value.toDevice())) {
      const c10::Device given = value.toDevice();
      device = given.has_index() ? given.index() : c10::cuda::current_device();
    }
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (!device && is_on_device(tensor)) {
        device = tensor.device().index();
      }
    });
  }
  return device;
}

void fallback(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const DispatchKeySet below = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kCaptureKey);
  // Operators of other libraries are made of these operators and of kernels, which are captured themselves.
  const bool ours =
      op.operator_name().getNamespace() == std::optional<c10::string_view>("aten") && !below.has(DispatchKey::Python);
  const size_t count = op.schema().arguments().size();
  const std::optional<c10::DeviceIndex> device =
      ours ? device_of(at::ArrayRef<IValue>(stack->data() + (stack->size() - count), count)) : std::nullopt;
  const std::shared_ptr<Session> session = device ? session_of(*device) : nullptr;
  if (C10_UNLIKELY(session == nullptr && has_begun)) {
    forget_ended();
  }
  if (session == nullptr || computes_nothing(op)) {
    op.redispatchBoxed(below, stack);
    if (session != nullptr && makes_memory(op)) {
      session->owns(stack->back().toTensor());
    }
    return;
  }
  record(*session, op, *device, stack, [&] { op.redispatchBoxed(below, stack); });
}

}  // namespace

bool in_captured_operator() noexcept { return work.captured != nullptr; }

Requests* graph_requests() noexcept { return work.requests; }

bool in_launched_operator() noexcept { return work.launched != nullptr; }

void capture_operator(const c10::OperatorHandle& op, Stack* stack, const std::function<void()>& call) {
  if (captures_under_way.load(std::memory_order_relaxed) != 0 && !in_captured_operator()) {
    const size_t count = op.schema().arguments().size();
    const auto device = device_of(at::ArrayRef<IValue>(stack->data() + (stack->size() - count), count));
    const std::shared_ptr<Session> session = device ? session_of(*device) : nullptr;
    if (session != nullptr) {
      record(*session, op, *device, stack, call);
      return;
    }
  }
  call();
}

void refuse_wait_in_capture() {
  if (captures_under_way.load(std::memory_order_relaxed) == 0) {
    if (C10_UNLIKELY(pending() != 0)) {
      C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream().stream()));
    }
    return;
  }
  std::optional<Suspended> resumed;
  if (in_captured_operator()) {
    resumed.emplace(-1);
  }
  C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream().stream()));
}

void wait_as_upstream() {
  refuse_wait_in_capture();
  if (C10_UNLIKELY(c10::cuda::warning_state().get_sync_debug_mode() != c10::cuda::SyncDebugMode::L_DISABLED)) {
    c10::cuda::warn_or_error_on_sync();
  }
  if (const auto* const listener = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(listener != nullptr)) {
    (*listener)->trace_gpu_stream_synchronization(
        kDevice, reinterpret_cast<uintptr_t>(c10::cuda::getCurrentCUDAStream().stream()));
  }
}

void refuse_foreign_thread() {
  if (work.captured != nullptr || work.launched != nullptr) {
    return;
  }
  const c10::DeviceIndex device = c10::cuda::current_device();
  if (session_of(device) != nullptr) {
    invalidate_capture(device);
    TORCH_CHECK(
        false,
        "an operator came to a stream that is captured from a thread that does not take part in the capture, or "
        "from a dispatch mode in Python; begin the capture in this thread and outside of the mode, or use "
        "another stream here");
  }
}

PhiloxPosition captured_position(const at::PhiloxCudaState& state) {
  if (!state.captured_) {
    return {state.seed_.val, state.offset_.val};
  }
  return work.captured->emplace_back(CapturedPosition{state.seed_.ptr, state.offset_.ptr, state.offset_intragraph_})
      .read();
}

std::optional<PhiloxPosition> launched_position() {
  if (work.launched == nullptr) {
    return std::nullopt;
  }
  TORCH_CHECK(work.next < work.launched->size(),
              "an operator draws more random numbers in a launch of its graph than when it was captured");
  return (*work.launched)[work.next++].read();
}

void register_graph_capture() {
  static auto library =
      torch::Library(torch::Library::IMPL, "_", kCaptureKey, "macatorch/csrc/graph/GraphCapture.cpp", 0);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
  static const mcCaptureHooks hooks{&capture_begins, &capture_ends};
  mcCaptureSetHooks(&hooks);
}

}  // namespace macatorch
