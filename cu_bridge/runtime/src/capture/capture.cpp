// Capture of streams into graphs.

#include "capture/capture.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/graph_node.h"
#include "capture/resources.h"

namespace mc {
namespace {

struct DestroyGraph {
  void operator()(mcGraph* graph) const {
    tellOfGraph(mcGraphDestroys, graph);
    graphs.destroy(graph);
  }
};

}  // namespace

struct Capture {
  unsigned long long id = 0;
  mcCaptureMode mode = mcCaptureModeGlobal;
  mcStream_t origin = nullptr;
  const void* thread = nullptr;  // address of its captureThread
  bool invalid = false;
  bool ended = false;
  bool quiet = false;
  mcGraph* graph = nullptr;
  std::unique_ptr<mcGraph, DestroyGraph> own;  // `graph`, unless it was there before the capture
  // By stream id: its captured nodes in order, and what it has waited for.
  struct Branch {
    mcStream_t stream;
    std::vector<mcGraphNode*> nodes;
    CaptureClock seen;
  };
  std::map<unsigned long long, Branch> branches;
  unsigned long long given = 0;  // nodes that a program has named as dependencies
};

namespace {

struct CaptureThread {
  mcCaptureMode mode = mcCaptureModeGlobal;
  int suspended = 0;
};
thread_local CaptureThread captureThread;

// One lock for everything about captures: they are rare, and recorded work costs more than the lock.
std::mutex& captureMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

// The captures under way; guarded by captureMutex.
std::set<std::shared_ptr<Capture>>& captures() {
  static auto* const all = new std::set<std::shared_ptr<Capture>>;
  return *all;
}

mcCaptureHooks captureHooks{};

// With the lock: the capture that the stream takes part in.
std::shared_ptr<Capture> captureOf(mcStream_t stream) {
  if (isDefaultStream(stream)) return nullptr;
  for (const auto& capture : captures()) {
    if (capture->branches.count(stream->id) != 0) return capture;
  }
  return nullptr;
}

// With the lock: work on a default stream would wait for the capturing streams of its device that are not non-blocking.
// Who only asks about that stream gets the error and leaves the capture valid.
mcError_t refuseImplicit(mcStream_t stream, bool asks = false) {
  if (!isDefaultStream(stream)) return mcSuccess;
  for (const auto& capture : captures()) {
    for (const auto& [id, branch] : capture->branches) {
      (void)id;
      if (branch.stream == nullptr || branch.stream->flags != 0 || branch.stream->device != threadState.device)
        continue;
      if (!asks) capture->invalid = true;
      return fail(mcErrorStreamCaptureImplicit);
    }
  }
  return mcSuccess;
}

// With the lock: the capture for work on a stream; none and an error where it is invalid, or the work would wait for
// one.
mcError_t findCapture(mcStream_t stream, std::shared_ptr<Capture>* capture) {
  *capture = captureOf(stream);
  if (*capture == nullptr) return refuseImplicit(stream);
  return (*capture)->invalid ? fail(mcErrorStreamCaptureInvalidated) : mcSuccess;
}

// With the lock.
mcGraphNode* append(Capture& capture, mcStream_t stream, mcGraphNode&& made) {
  mcGraphNode* const node = addNode(capture.graph, std::move(made));
  Capture::Branch& branch = capture.branches.at(stream->id);
  for (const auto& [id, count] : branch.seen) {
    const auto other = capture.branches.find(id);
    if (count != 0 && other != capture.branches.end()) node->dependencies.push_back(other->second.nodes[count - 1]);
  }
  branch.nodes.push_back(node);
  branch.seen = {{stream->id, branch.nodes.size()}};
  return node;
}

// With the lock: the stream's next node comes after `nodes` of the graph as well. Each stands for a stream that no
// other has as its number.
mcError_t comeAfter(Capture& capture, Capture::Branch* branch, const mcGraphNode_t* nodes, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!nodeHandles.contains(nodes[i]) || nodes[i]->graph != capture.graph) return mcErrorInvalidValue;
  }
  for (size_t i = 0; i < count; ++i) {
    const unsigned long long number = ~capture.given++;
    capture.branches[number] = {nullptr, {nodes[i]}, {}};
    branch->seen[number] = 1;
  }
  return mcSuccess;
}

// With the lock. Who calls tells the hooks of it without the lock.
mcCaptureHooks finish(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  if (!capture->quiet) capture->graph->inCapture = false;
  captures().erase(capture);
  activity.captures.fetch_sub(1, std::memory_order_relaxed);
  return capture->quiet ? mcCaptureHooks{} : captureHooks;
}

void merge(CaptureClock* into, const CaptureClock& from) {
  for (const auto& [id, count] : from) {
    size_t& own = (*into)[id];
    if (own < count) own = count;
  }
}

// Everything that a node comes after, the node itself included.
void collect(const mcGraphNode* node, std::set<const mcGraphNode*>* before) {
  std::vector<const mcGraphNode*> open{node};
  while (!open.empty()) {
    const mcGraphNode* const next = open.back();
    open.pop_back();
    if (!before->insert(next).second) continue;
    open.insert(open.end(), next->dependencies.begin(), next->dependencies.end());
  }
}

// With the lock: whether the origin has waited for the last work of every stream that joined.
bool joined(const Capture& capture) {
  const Capture::Branch& origin = capture.branches.at(capture.origin->id);
  std::set<const mcGraphNode*> before;
  if (!origin.nodes.empty()) collect(origin.nodes.back(), &before);
  for (const auto& [id, count] : origin.seen) {
    const auto& nodes = capture.branches.at(id).nodes;
    if (count != 0) collect(nodes[count - 1], &before);
  }
  for (const auto& [id, branch] : capture.branches) {
    if (branch.stream == nullptr || id == capture.origin->id) continue;
    if (!branch.nodes.empty() && before.count(branch.nodes.back()) == 0) return false;
  }
  return true;
}

}  // namespace

bool captureSuspended() { return captureThread.suspended != 0; }

mcError_t recordWork(mcStream_t stream, NodeWork work, bool* recorded) {
  if (captureSuspended()) return mcSuccess;
  mcGraphNode* node = nullptr;
  {
    const std::lock_guard<std::mutex> lock(captureMutex());
    std::shared_ptr<Capture> capture;
    const mcError_t problem = findCapture(stream, &capture);
    if (problem != mcSuccess || capture == nullptr) return problem;
    node = append(*capture, stream,
                  {work.kind, std::move(work.label), std::move(work.work), streamDevice(stream), work.flags,
                   std::move(work.launch)});
  }
  *recorded = true;
  tellOfNewNode(node);
  return mcSuccess;
}

mcError_t refuseWait(mcStream_t stream) {
  if (!capturing() || captureSuspended()) return mcSuccess;
  const std::lock_guard<std::mutex> lock(captureMutex());
  std::shared_ptr<Capture> capture;
  const mcError_t problem = findCapture(stream, &capture);
  if (problem != mcSuccess || capture == nullptr) return problem;
  capture->invalid = true;
  return fail(mcErrorStreamCaptureUnsupported);
}

mcError_t checkUncaptured(mcStream_t stream) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  return capturing() ? refuseWait(stream) : mcSuccess;
}

mcError_t refuseUnsafe() {
  if (!capturing() || captureSuspended() || captureThread.mode == mcCaptureModeRelaxed) return mcSuccess;
  const std::lock_guard<std::mutex> lock(captureMutex());
  bool refused = false;
  for (const auto& capture : captures()) {
    const bool own = capture->thread == &captureThread && capture->mode != mcCaptureModeRelaxed;
    const bool global = captureThread.mode == mcCaptureModeGlobal && capture->mode == mcCaptureModeGlobal;
    if (!own && !global) continue;
    capture->invalid = refused = true;
  }
  return refused ? fail(mcErrorStreamCaptureUnsupported) : mcSuccess;
}

mcError_t captureEventRecord(mcStream_t stream, std::shared_ptr<CapturedEvent>* captured) {
  captured->reset();
  if (!capturing() || captureSuspended()) return mcSuccess;
  const std::lock_guard<std::mutex> lock(captureMutex());
  std::shared_ptr<Capture> capture;
  const mcError_t problem = findCapture(stream, &capture);
  if (problem != mcSuccess || capture == nullptr) return problem;
  const CaptureClock clock = capture->branches.at(stream->id).seen;
  *captured = std::make_shared<CapturedEvent>(CapturedEvent{std::move(capture), clock});
  return mcSuccess;
}

mcError_t captureWait(mcStream_t stream, const std::shared_ptr<CapturedEvent>& captured) {
  if (captureSuspended()) return mcSuccess;
  const std::lock_guard<std::mutex> lock(captureMutex());
  const std::shared_ptr<Capture> capture = captureOf(stream);
  if (captured == nullptr) {
    if (capture == nullptr) return refuseImplicit(stream);
    capture->invalid = true;
    return fail(mcErrorStreamCaptureIsolation);
  }
  if (captured->capture->ended) return fail(mcErrorCapturedEvent);
  if (isDefaultStream(stream)) {
    captured->capture->invalid = true;
    return fail(mcErrorStreamCaptureImplicit);
  }
  if (capture != nullptr && capture != captured->capture) {
    capture->invalid = captured->capture->invalid = true;
    return fail(mcErrorStreamCaptureMerge);
  }
  auto& branch = captured->capture->branches[stream->id];
  branch.stream = stream;
  merge(&branch.seen, captured->clock);
  return mcSuccess;
}

bool isCaptured(mcStream_t stream) {
  if (!capturing() || captureSuspended()) return false;
  const std::lock_guard<std::mutex> lock(captureMutex());
  return captureOf(stream) != nullptr;
}

void captureForget(mcStream_t stream) {
  std::shared_ptr<Capture> capture;
  mcCaptureHooks hooks{};
  {
    const std::lock_guard<std::mutex> lock(captureMutex());
    capture = captureOf(stream);
    if (capture == nullptr) return;
    capture->invalid = true;
    capture->branches.at(stream->id).stream = nullptr;
    if (capture->origin != stream) return;
    hooks = finish(capture);
  }
  if (hooks.end != nullptr) hooks.end(capture->id, 1);
}

namespace {

// Only the thread that began a capture may end it, unless it is a relaxed one. A thread that ends before takes its
// captures along: nobody could end them any more, and they would forbid other threads their calls.
struct EndOfThread {
  ~EndOfThread() {
    if (syscall(SYS_gettid) == getpid()) return;  // the process ends
    std::vector<std::pair<std::shared_ptr<Capture>, mcCaptureHooks>> ended;
    {
      const std::lock_guard<std::mutex> lock(captureMutex());
      const std::set<std::shared_ptr<Capture>> all = captures();
      for (const auto& capture : all) {
        if (capture->thread != &captureThread || capture->mode == mcCaptureModeRelaxed) continue;
        capture->invalid = true;
        ended.emplace_back(capture, finish(capture));
      }
    }
    for (const auto& [capture, hooks] : ended) {
      if (hooks.end != nullptr) hooks.end(capture->id, 1);
    }
  }
};
// Made by a thread's first capture.
void watchEndOfThread() {
  static thread_local const EndOfThread end;
  static_cast<void>(&end);
}

}  // namespace

mcError_t beginCapture(mcStream_t stream, mcCaptureMode mode, const CaptureTarget& target) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (mode < mcCaptureModeGlobal || mode > mcCaptureModeRelaxed) return fail(mcErrorInvalidValue);
  if (isDefaultStream(stream)) return fail(mcErrorStreamCaptureUnsupported);  // default streams cannot be captured
  static std::atomic<unsigned long long> lastId{0};
  watchEndOfThread();
  auto capture = std::make_shared<Capture>();
  mcCaptureHooks hooks;
  {
    const std::lock_guard<std::mutex> lock(captureMutex());
    if (const auto other = captureOf(stream)) {
      other->invalid = true;
      return fail(mcErrorIllegalState);
    }
    capture->graph = target.graph;
    if (target.graph == nullptr) {
      capture->own.reset(graphs.create());
      capture->graph = capture->own.get();
    }
    if (capture->graph->inCapture && !target.quiet) return fail(mcErrorIllegalState);
    auto& branch = capture->branches[stream->id];
    branch.stream = stream;
    const mcError_t problem = comeAfter(*capture, &branch, target.dependencies, target.count);
    if (problem != mcSuccess) return fail(problem);
    capture->id = ++lastId;
    capture->mode = mode;
    capture->origin = stream;
    capture->thread = &captureThread;
    capture->quiet = target.quiet;
    if (!target.quiet) capture->graph->inCapture = true;
    captures().insert(capture);
    activity.captures.fetch_add(1, std::memory_order_relaxed);
    hooks = target.quiet ? mcCaptureHooks{} : captureHooks;
  }
  if (target.graph == nullptr) tellOfGraph(mcGraphCreated, capture->graph);
  if (hooks.begin != nullptr) hooks.begin(capture->id);
  return mcSuccess;
}

}  // namespace mc

using namespace mc;

void mcCaptureSetHooks(const mcCaptureHooks* hooks) {
  const std::lock_guard<std::mutex> lock(captureMutex());
  captureHooks = hooks == nullptr ? mcCaptureHooks{} : *hooks;
}

mcError_t mcCaptureForbids() { return refuseUnsafe(); }

void mcCaptureSuspend(int change) {
  captureThread.suspended += change;
  silenceProfile(change);
}

mcError_t mcThreadExchangeCaptureMode(mcCaptureMode* mode) {
  if (mode == nullptr || *mode < mcCaptureModeGlobal || *mode > mcCaptureModeRelaxed) return fail(mcErrorInvalidValue);
  std::swap(*mode, captureThread.mode);
  return mcSuccess;
}

mcError_t mcStreamBeginCapture(mcStream_t stream, mcCaptureMode mode) { return beginCapture(stream, mode, {}); }

mcError_t mcStreamBeginCaptureToGraph(mcStream_t stream, mcGraph_t graph, const mcGraphNode_t* dependencies,
                                      size_t count, mcCaptureMode mode) {
  MC_RETURN_IF_STICKY();
  if (!graphs.contains(graph) || (dependencies == nullptr && count != 0)) return fail(mcErrorInvalidValue);
  return beginCapture(stream, mode, {graph, dependencies, count, false});
}

mcError_t mcStreamUpdateCapture(mcStream_t stream, const mcGraphNode_t* nodes, size_t count, int replaces) {
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (nodes == nullptr && count != 0) return fail(mcErrorInvalidValue);
  const std::lock_guard<std::mutex> lock(captureMutex());
  const std::shared_ptr<Capture> capture = captureOf(stream);
  if (capture == nullptr) return fail(mcErrorIllegalState);
  if (capture->invalid) return fail(mcErrorStreamCaptureInvalidated);
  Capture::Branch& branch = capture->branches.at(stream->id);
  CaptureClock before = branch.seen;
  if (replaces != 0) branch.seen.clear();
  const mcError_t problem = comeAfter(*capture, &branch, nodes, count);
  if (problem == mcSuccess) return mcSuccess;
  branch.seen = std::move(before);
  return fail(problem);
}

mcError_t mcStreamEndCapture(mcStream_t stream, mcGraph_t* graph) {
  if (graph == nullptr) return fail(mcErrorInvalidValue);
  *graph = nullptr;
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  std::shared_ptr<Capture> capture;
  mcError_t error = mcSuccess;
  mcCaptureHooks hooks;
  {
    const std::lock_guard<std::mutex> lock(captureMutex());
    capture = captureOf(stream);
    if (capture == nullptr) return fail(mcErrorIllegalState);
    if (capture->origin != stream) {
      capture->invalid = true;
      return fail(mcErrorStreamCaptureUnmatched);
    }
    if (capture->mode != mcCaptureModeRelaxed && capture->thread != &captureThread) {
      return fail(mcErrorStreamCaptureWrongThread);
    }
    if (capture->invalid) {
      error = mcErrorStreamCaptureInvalidated;
    } else if (!joined(*capture)) {
      error = mcErrorStreamCaptureUnjoined;
    }
    hooks = finish(capture);
  }
  if (hooks.end != nullptr) hooks.end(capture->id, error == mcSuccess ? 0 : 1);
  if (error != mcSuccess) return fail(error);
  *graph = capture->graph;
  static_cast<void>(capture->own.release());
  return mcSuccess;
}

mcError_t mcStreamCaptureInfo(mcStream_t stream, mcCaptureStatus* status, unsigned long long* id, mcGraph_t* graph,
                              mcGraphNode_t const** dependencies, size_t* count) {
  if (status == nullptr) return fail(mcErrorInvalidValue);
  *status = mcCaptureNone;
  MC_RETURN_IF_STICKY();
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  if (!capturing()) return mcSuccess;
  const std::lock_guard<std::mutex> lock(captureMutex());
  const std::shared_ptr<Capture> capture = captureOf(stream);
  if (capture == nullptr) return refuseImplicit(stream, true);
  *status = capture->invalid ? mcCaptureInvalidated : mcCaptureActive;
  if (id != nullptr) *id = capture->id;
  if (graph != nullptr) *graph = capture->graph;
  if (count != nullptr || dependencies != nullptr) {
    static thread_local std::vector<mcGraphNode_t> last;
    last.clear();
    const Capture::Branch& branch = capture->branches.at(stream->id);
    for (const auto& [other, number] : branch.seen) {
      if (number != 0) last.push_back(capture->branches.at(other).nodes[number - 1]);
    }
    if (count != nullptr) *count = last.size();
    if (dependencies != nullptr) *dependencies = last.data();
  }
  return mcSuccess;
}

mcError_t mcCaptureAdd(mcStream_t stream, const char* kind, const char* label, mcError_t (*run)(void*), void* data,
                       void (*destroy)(void*)) {
  const std::shared_ptr<void> owner(data, destroy);
  if (!isStream(stream)) return fail(mcErrorInvalidResourceHandle);
  bool recorded = false;
  const int suspended = std::exchange(captureThread.suspended, 0);
  const mcError_t error = recordWork(stream, {kind, label, [run, owner] { return run(owner.get()); }}, &recorded);
  captureThread.suspended = suspended;
  if (error != mcSuccess || recorded) return error;
  return fail(mcErrorIllegalState);
}
