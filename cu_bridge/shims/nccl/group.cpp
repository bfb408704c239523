#include "group.h"

#include <unistd.h>

#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "enqueue.h"

namespace nccl {
namespace {

struct Group {
  int depth = 0;
  Result result = kSuccess;
  std::vector<Submitted> operations;
  std::vector<ncclComm*> handles;  // of the operations
  std::vector<Creation> creations;
};

Group& group() {
  static thread_local Group* current = nullptr;  // small, and the thread may use it while it ends
  if (current == nullptr) current = new Group;
  return *current;
}

void withdraw(const Creation& creation) {
  if (creation.target == nullptr || *creation.target == nullptr) return;
  mxmaca::destroyObject(*creation.target);
  *creation.target = nullptr;
}

Result runCreations(std::vector<Creation> creations) {
  Tasks now;
  Tasks later;
  std::vector<Creation> waited;
  for (Creation& creation : creations) {
    creation.task->start();
    const bool blocking = creation.made == nullptr || creation.made->blocking;
    (blocking ? now : later).push_back(std::move(creation.task));
    if (blocking) waited.push_back(std::move(creation));
  }
  Result result = kSuccess;
  if (!later.empty()) {
    try {
      std::thread([tasks = std::move(later)]() mutable { runTasks(std::move(tasks)); }).detach();
    } catch (const std::system_error&) {
      return fail(kSystemError, "no thread to make a communicator in");
    }
    result = kInProgress;
  }
  const Result failed = runTasks(std::move(now));
  if (failed == kSuccess) return result;
  for (const Creation& creation : waited) {
    if (creation.made != nullptr && !creation.made->ready) withdraw(creation);
  }
  return failed;
}

// Whether `bytes` at `buffer` are memory that the communicator's device may use.
Result checkBuffer(const Communicator& comm, const void* buffer, size_t bytes) {
  if (bytes == 0) return kSuccess;
  if (buffer == nullptr) return fail(kInvalidArgument, "a buffer is null");
  mcPointerAttributes facts;
  if (mcPointerGetAttributes(&facts, buffer) != mcSuccess || facts.kind == mcMemoryUnregistered) {
    return fail(kInvalidArgument, "a buffer is memory of the host that is not pinned");
  }
  if (facts.kind == mcMemoryDevice && facts.device != comm.device) {
    return fail(kInvalidArgument, "a buffer is memory of device " + std::to_string(facts.device) +
                                      ", the communicator is one of device " + std::to_string(comm.device));
  }
  const auto offset = static_cast<size_t>(static_cast<const char*>(buffer) - static_cast<const char*>(facts.base));
  if (bytes > facts.size - offset) {
    return fail(kInvalidArgument, "a buffer of " + std::to_string(bytes) +
                                      " bytes does not fit its allocation, which ends " +
                                      std::to_string(facts.size - offset) + " bytes after it begins");
  }
  return kSuccess;
}

constexpr size_t kMostElements = size_t{1} << 40;

Result check(const ncclComm* handle, const Operation& operation, mcStream_t stream, bool alone) {
  Result result = usable(handle);
  if (result != kSuccess) return result;
  const Communicator& comm = *handle->inner;
  const Element* const element = findElement(operation.type);
  if (operation.count > kMostElements) return fail(kInvalidArgument, "more elements than there can be");
  if (element == nullptr) return fail(kInvalidArgument, "no such element type");
  if (operation.peer < 0 || operation.peer >= comm.size) return fail(kInvalidArgument, "no such rank");
  const bool message = operation.kind == Kind::Send || operation.kind == Kind::Receive;
  const size_t bytes = operation.count * element->bytes;
  const size_t all = bytes * static_cast<size_t>(comm.size);
  const bool root = operation.peer == comm.rank;
  size_t sends = bytes;
  size_t receives = bytes;
  switch (operation.kind) {
    case Kind::Reduce: receives = root ? bytes : 0; break;
    case Kind::Broadcast: sends = root ? bytes : 0; break;
    case Kind::AllGather: receives = all; break;
    case Kind::ReduceScatter: sends = all; break;
    case Kind::AllToAll: sends = receives = all; break;
    case Kind::Gather: receives = root ? all : 0; break;
    case Kind::Scatter: sends = root ? all : 0; break;
    case Kind::Send: receives = 0; break;
    case Kind::Receive: sends = 0; break;
    default: break;
  }
  if (operation.kind == Kind::AllToAll && comm.size > 1 && operation.send == operation.receive && bytes > 0) {
    return fail(kInvalidArgument, "AllToAll cannot work in place");
  }
  result = checkBuffer(comm, operation.send, sends);
  if (result == kSuccess) result = checkBuffer(comm, operation.receive, receives);
  if (result != kSuccess) return result;
  if (!mxmaca::isStream(stream) || mcStickyError() != mcSuccess) {
    return fail(kCudaError, "the stream or the device has failed");
  }
  if (message && alone && operation.peer == comm.rank) {
    return fail(kInvalidUsage, "a message of a rank to itself needs both sides in one group");
  }
  return kSuccess;
}

}  // namespace

Result usable(const ncclComm* comm) {
  if (!mxmaca::live(comm)) return fail(kInvalidArgument, "no communicator");
  const Communicator& inner = *comm->inner;
  if (inner.process != getpid()) return fail(kInvalidUsage, "the communicator is one of the process before its fork");
  std::string text;
  const Result failure = inner.failure(&text);
  if (failure != kSuccess) {
    return fail(failure, "the communicator has failed: " + text);
  }
  if (!inner.ready) return fail(kInvalidArgument, "the communicator is not ready yet");
  if (inner.finalized) return fail(kInvalidUsage, "the communicator is finalized");
  return kSuccess;
}

void groupStart() { ++group().depth; }

Result groupEnd() {
  Group& current = group();
  if (current.depth == 0) return fail(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--current.depth > 0) return kSuccess;
  const Result wrong = std::exchange(current.result, kSuccess);
  const std::vector<Submitted> operations = std::exchange(current.operations, {});
  const std::vector<ncclComm*> handles = std::exchange(current.handles, {});
  std::vector<Creation> creations = std::exchange(current.creations, {});
  if (wrong != kSuccess) {
    for (const Creation& creation : creations) withdraw(creation);
    return wrong;
  }
  const Result created = creations.empty() ? kSuccess : runCreations(std::move(creations));
  if (operations.empty() || (created != kSuccess && created != kInProgress)) return created;
  for (const ncclComm* const handle : handles) {
    if (!mxmaca::live(handle)) return fail(kInvalidArgument, "a communicator was destroyed within the group");
  }
  const Result ran = enqueue(operations);
  return ran == kSuccess ? created : ran;
}

Result submit(ncclComm* comm, const Operation& operation, mcStream_t stream) {
  Group& current = group();
  const Result result = check(comm, operation, stream, current.depth == 0);
  if (result != kSuccess) {
    if (current.depth > 0) current.result = result;
    return result;
  }
  const Submitted submitted{comm->inner, operation, stream};
  if (current.depth == 0) return enqueue({submitted});
  current.operations.push_back(submitted);
  current.handles.push_back(comm);
  return kSuccess;
}

Result create(Creation creation) {
  Group& current = group();
  if (creation.target != nullptr) {
    *creation.target = nullptr;
    if (creation.made != nullptr) {
      auto handle = std::make_unique<ncclComm>();
      handle->inner = creation.made;
      if (!mxmaca::createObject(creation.target, std::move(handle))) return fail(kSystemError, "no memory");
    }
  }
  if (current.depth > 0) {
    const bool blocking = creation.made == nullptr || creation.made->blocking;
    current.creations.push_back(std::move(creation));
    return blocking ? kSuccess : kInProgress;
  }
  std::vector<Creation> one;
  one.push_back(std::move(creation));
  return runCreations(std::move(one));
}

}  // namespace nccl
