#include "graph/GraphCapture.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
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
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arguments/Device.h"
#include "arguments/Release.h"
#include "arguments/Walker.h"
#include "graph/Borrowed.h"
#include "graph/CompositeMembers.h"
#include "graph/FailedCapture.h"
#include "graph/Node.h"
#include "graph/PythonCall.h"
#include "graph/Session.h"
#include "graph/Turn.h"
#include "graph/Waits.h"

namespace macatorch {

std::atomic<int> captures_under_way{0};
std::atomic<bool> graphs_were_captured{false};
CaptureWatcher capture_watcher = nullptr;

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
  graph_operators.fetch_add(1, std::memory_order_relaxed);  // the allocator tells of memory from now on
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
  graph_operators.fetch_sub(1, std::memory_order_relaxed);
  forget_ended();
  if (failed != 0) {
    tidy_failed_capture(id);
  } else {
    forget_graph_of_capture(id);
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
  std::shared_ptr<Session> session;
  {
    const std::lock_guard<std::mutex> lock(sessions_mutex);
    const auto found = sessions().find(id);
    session = found == sessions().end() ? nullptr : found->second;
  }
  if (session != nullptr && !session->is_noted.exchange(true)) {
    note_graph_of_capture(id);
  }
  return session;
}

/// Operators that make memory or tell about tensors: nothing is computed, so nothing is to be repeated.
bool computes_nothing(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string> names{
      "aten::empty",
      "aten::empty_like",
      "aten::empty_strided",
      "aten::empty_permuted",
      "aten::empty_quantized",
      "aten::_empty_affine_quantized",
      "aten::_empty_per_channel_affine_quantized",
      "aten::_coalesced_",
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
  return (name.rfind("aten::empty", 0) == 0 || name.rfind("aten::_empty", 0) == 0 ||
          name.rfind("aten::new_empty", 0) == 0) &&
         !op.schema().is_mutable();
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

void check_kind(const at::Tensor& tensor, const c10::OperatorHandle& op, c10::DeviceIndex device) {
  if (!is_plain(tensor) && !is_composite(tensor)) {
    refuse(op, device, ": work on a tensor of this layout cannot be captured in a graph");
  }
}

/// What is known of an operator's arguments before it runs for a capture.
struct Captured {
  Borrowed borrowed;
  std::unordered_set<const void*> known;  // storages of the arguments
  std::vector<at::Tensor> changeable;     // composite tensors that are written
  bool writes = false;
  bool composite = false;

  bool is_fresh(const at::Tensor& member) const {
    return is_on_device(member) && known.count(member.storage().unsafeGetStorageImpl()) == 0;
  }
  bool is_changeable(const at::Tensor& tensor) const {
    return std::any_of(changeable.begin(), changeable.end(), [&](const auto& other) { return other.is_same(tensor); });
  }
};

Captured survey(Session& session, const c10::OperatorHandle& op, c10::DeviceIndex device, const Stack& arguments) {
  Captured captured;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool written = is_written(op.schema(), i);
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      check_kind(tensor, op, device);
      for (const at::Tensor& member : members_of(tensor)) {
        captured.known.insert(member.storage().unsafeGetStorageImpl());
        if (is_on_device(member)) {
          session.fill(member);
        }
        if (written) {
          session.save(member);
        }
      }
      captured.writes |= written;
      captured.composite |= is_composite(tensor);
      if (written && is_composite(tensor) && is_on_device(tensor)) {
        captured.borrowed(tensor);  // as it is before the operator
        captured.changeable.push_back(tensor);
      }
    });
  }
  return captured;
}

/// Where launches leave `tensor`, which the operator has made or changed; none if all of its memory was there before.
std::optional<Place> place_for(const at::Tensor& tensor, Session& session, Captured& captured, const Requests& requests,
                               Node& node) {
  Place place;
  const std::vector<at::Tensor> members = members_of(tensor);
  for (const at::Tensor& member : members) {
    place.fresh.push_back(captured.is_fresh(member));
    if (place.fresh.back()) {
      session.owns(member);
      if (const auto request = requests.find(member.storage().data(), member.storage().nbytes())) {
        node.places.push_back(*request);
      }
    }
  }
  if (std::none_of(place.fresh.begin(), place.fresh.end(), [](bool fresh) { return fresh; })) {
    return std::nullopt;
  }
  place.tensor = captured.is_changeable(tensor) ? captured.borrowed.as_it_is(tensor) : captured.borrowed(tensor);
  return place;
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
  if (schema.name() == "aten::_local_scalar_dense" || waits_for_composite(op, *stack, false)) {
    refuse_wait_in_capture();
  }
  check_host_memory(op, *stack);

  const Stack arguments(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
  Captured captured = survey(session, op, device, arguments);
  const bool followed = captured.composite && !adds_to_dense(op, *stack);
  std::vector<CapturedPosition> positions;
  Requests requests;
  {
    std::optional<c10::impl::ExcludeDispatchKeyGuard> once;
    if (!followed) {
      once.emplace(kCaptureKey);
    }
    const Suspended suspended;
    const WorkScope scope(Work{&positions, nullptr, &requests, 0, followed, &session});
    call();
  }

  auto node =
      std::make_unique<Node>(Node{op, device, c10::GradMode::is_enabled(), {}, {}, {}, std::move(positions), {}});
  size_t number = 0;
  for (size_t i = first; i < stack->size(); ++i) {
    for_each_tensor((*stack)[i], [&](const at::Tensor& tensor) {
      check_kind(tensor, op, device);
      if (!is_on_device(tensor) && tensor.numel() != 0 && is_plain(tensor) &&
          captured.known.count(tensor.storage().unsafeGetStorageImpl()) == 0) {
        refuse(op, device, " returns a tensor on the CPU, which a launch of the graph could not change");
      }
      if (is_on_device(tensor) && !captured.is_changeable(tensor)) {
        if (auto place = place_for(tensor, session, captured, requests, *node)) {
          node->results.emplace_back(number, std::move(*place));
        }
      }
      ++number;
    });
  }
  for (const at::Tensor& tensor : captured.changeable) {
    if (auto place = place_for(tensor, session, captured, requests, *node)) {
      node->changed.emplace_back(captured.borrowed(tensor), std::move(*place));
    }
  }
  if (!captured.writes && node->results.empty()) {
    return;  // a view, or a question
  }
  node->arguments.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const bool written = is_written(schema, i);
    node->arguments.push_back(map_tensors(arguments[i], [&](const at::Tensor& tensor) {
      return !tensor.defined()      ? tensor
             : is_on_device(tensor) ? captured.borrowed(tensor)
             : written              ? tensor
                                    : host_argument(tensor, op);
    }));
  }
  const std::string label = c10::toString(op.operator_name());
  const auto add = [&] {
    C10_CUDA_CHECK(static_cast<cudaError_t>(
        mcCaptureAdd(current_stream(device), "operator", label.c_str(), &run_node, node.release(), &destroy_node)));
  };
  if (capture_watcher != nullptr) {
    capture_watcher(op.operator_name().name.c_str(), device, add);
  } else {
    add();
  }
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

/// Operators of other libraries are made of these operators and of kernels, which are captured themselves.
bool is_whole(const c10::OperatorHandle& op) {
  const auto library = op.operator_name().getNamespace();
  return library && (*library == "aten" || *library == "quantized" || *library == "quantization");
}

/// An operator that makes an object of a tensor (packed weights) does so once, whatever the tensor holds later.
bool makes_object(const c10::OperatorHandle& op) {
  const auto& results = op.schema().returns();
  return std::any_of(results.begin(), results.end(),
                     [](const c10::Argument& result) { return result.type()->kind() == c10::TypeKind::ClassType; });
}

void fallback(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const DispatchKeySet below = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kCaptureKey);
  if (work.followed) {
    if (waits_for_composite(op, *stack, true)) {
      refuse_wait_in_capture();
    }
    std::optional<c10::impl::ExcludeDispatchKeyGuard> once;
    if (adds_to_dense(op, *stack)) {
      once.emplace(kCaptureKey);
    }
    op.redispatchBoxed(below, stack);
    return;
  }
  const bool python = below.has(DispatchKey::Python);
  const size_t count = op.schema().arguments().size();
  const std::optional<c10::DeviceIndex> device =
      python || is_whole(op) ? device_of(at::ArrayRef<IValue>(stack->data() + (stack->size() - count), count))
                             : std::nullopt;
  const std::shared_ptr<Session> session = device ? session_of(*device) : nullptr;
  if (C10_UNLIKELY(session == nullptr && has_begun)) {
    forget_ended();
  }
  if (python && session != nullptr && call_python(op, stack, kCaptureKey)) {
    return;
  }
  if (python || session == nullptr || computes_nothing(op)) {
    op.redispatchBoxed(below, stack);
    if (!python && session != nullptr && makes_memory(op)) {
      session->owns(stack->back().toTensor());
    }
    return;
  }
  if (makes_object(op)) {
    refuse(op, *device, " makes an object of what its tensors hold, which a launch of the graph could not change");
  }
  record(*session, op, *device, stack, [&] { op.redispatchBoxed(below, stack); });
}

}  // namespace

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

void save_given(void* data, size_t bytes) {
  if (work.session != nullptr) {
    work.session->save_given(data, bytes);
    return;
  }
  if (work.launched != nullptr || captures_under_way.load(std::memory_order_relaxed) == 0) {
    return;
  }
  mcCaptureStatus status = mcCaptureNone;
  unsigned long long id = 0;
  const mcStream_t stream = current_stream(c10::cuda::current_device());
  if (mcStreamCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr) != mcSuccess || status != mcCaptureActive) {
    return;
  }
  const std::lock_guard<std::mutex> lock(sessions_mutex);
  const auto found = sessions().find(id);
  if (found != sessions().end()) {
    found->second->note_unwritten(data, bytes);
  }
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
    const auto stream = reinterpret_cast<uintptr_t>(c10::cuda::getCurrentCUDAStream().stream());
#if MACATORCH_TORCH_AT_LEAST(2, 4)
    (*listener)->trace_gpu_stream_synchronization(kDevice, stream);
#else
    (*listener)->trace_gpu_stream_synchronization(stream);
#endif
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

void register_graph_capture() {
  static auto library =
      torch::Library(torch::Library::IMPL, "_", kCaptureKey, "macatorch/csrc/graph/GraphCapture.cpp", 0);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
  static const mcCaptureHooks hooks{&capture_begins, &capture_ends};
  mcCaptureSetHooks(&hooks);
}

}  // namespace macatorch
