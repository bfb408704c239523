#include "enqueue.h"

#include <cstdio>
#include <map>
#include <utility>

#include "work/between_hosts.h"
#include "workers.h"

namespace nccl {
namespace {

// What one stream is given.
struct Launch {
  std::vector<Submitted> operations;
  size_t bytes = 0;
  bool captured = false;
  std::unique_ptr<TaskRun> tasks;  // of the operations; not yet there if they are a node of a graph
};

constexpr size_t kAtOnce = size_t{64} << 10;  // bytes that are worth an attempt in the calling thread
constexpr int kAttempt = 10;                  // microseconds that it may wait

std::unique_ptr<Task> newTask(const Submitted& one) {
  const std::lock_guard<std::mutex> lock(one.comm->mutex);
  return newTask(one.comm, one.operation);
}

// Until the communicators whose work has failed are given up.
void hold(const std::vector<Submitted>& operations) {
  std::fprintf(stderr, "libnccl: %s. Its stream waits until the communicator is aborted.\n", lastError());
  for (const Submitted& one : operations) {
    for (;;) {
      const uint32_t turn = one.comm->turn.word.load();
      if (one.comm->aborted || one.comm->failure() == kSuccess) break;
      one.comm->turn.sleep(turn, 100000);
    }
  }
}

Tasks newTasks(const Launch& launch) {
  Tasks tasks;
  for (const Submitted& one : launch.operations) tasks.push_back(newTask(one));
  return tasks;
}

void finish(Launch* launch, TaskRun* tasks) {
  tasks->finish();
  bool aborted = false;
  for (const Submitted& one : launch->operations) aborted = aborted || one.comm->aborted;
  if (tasks->result() != kSuccess && !aborted) hold(launch->operations);
}

// As a node of a graph, in a thread of the runtime.
mcError_t runNode(void* data) {
  auto* const launch = static_cast<Launch*>(data);
  TaskRun tasks(newTasks(*launch));
  finish(launch, &tasks);
  return mcSuccess;
}

// On a stream. The other ranks may be there already: a short message is then over without another thread.
void begin(void* data, mcTask_t task) {
  auto* const launch = static_cast<Launch*>(data);
  TaskRun* const tasks = launch->tasks.get();
  if (launch->bytes <= kAtOnce && tasks->tryFor(kAttempt) && tasks->result() == kSuccess) {
    return mcTaskEnd(task, mcSuccess, nullptr);
  }
  const bool runs = inWorker([launch, tasks, task] {
    finish(launch, tasks);
    mcTaskEnd(task, mcSuccess, nullptr);
  });
  if (runs) return;
  tasks->drop();
  mcTaskEnd(task, mcErrorUnknown, "no thread for a collective");
}

void destroy(void* data) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(data));
  if (launch->tasks != nullptr) launch->tasks->drop();
}

bool captures(mcStream_t stream) {
  mcCaptureStatus status = mcCaptureNone;
  return mcStreamCaptureInfo(stream, &status, nullptr, nullptr, nullptr, nullptr) == mcSuccess &&
         status != mcCaptureNone;
}

}  // namespace

Result enqueue(const std::vector<Submitted>& work) {
  std::vector<mcStream_t> order;
  std::map<mcStream_t, std::unique_ptr<Launch>> launches;
  std::map<mcStream_t, Tasks> tasks;
  for (const Submitted& one : work) {
    // The default stream is one of each device.
    auto& launch = launches[one.stream];
    if (launch == nullptr) {
      launch = std::make_unique<Launch>();
      launch->captured = captures(one.stream);
      order.push_back(one.stream);
    }
    // Numbers are taken in the order of the calls: another rank may use other streams for the same ones.
    if (!launch->captured) tasks[one.stream].push_back(newTask(one));
    launch->operations.push_back(one);
    launch->bytes += one.operation.count * findElement(one.operation.type)->bytes;
  }
  Result result = kSuccess;
  for (const mcStream_t stream : order) {
    Launch* const launch = launches[stream].release();
    const char* const label = kindName(launch->operations[0].operation.kind);
    mcError_t error = mcSuccess;
    if (launch->captured) {
      error = mcStreamSubmit(stream, "collective", label, mcTaskWaits, runNode, launch, destroy);
    } else {
      launch->tasks = std::make_unique<TaskRun>(std::move(tasks[stream]));
      error = mcStreamSubmitOpen(stream, "collective", label, begin, launch, destroy);
    }
    if (error != mcSuccess) {
      result = fail(kCudaError, "the stream or the device has failed");
    }
  }
  return result;
}

}  // namespace nccl
