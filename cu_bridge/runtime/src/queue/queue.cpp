#include "queue/queue.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "check/check.h"
#include "handle_table.h"
#include "mc_device_limits.h"
#include "state/state.h"
#include "state/stream_table.h"

// What mcTaskEnd is called with.
struct mcTask {
  std::shared_ptr<mc::Task> task;
};

namespace mc {

struct Timeline {
  int device;
  bool blocking;  // ordered with the legacy default stream of its device
  bool legacy;
  int priority;
  TaskRef last{};  // null once it is finished
};

struct Task {
  int device = 0;
  int priority = 0;
  unsigned flags = 0;
  std::function<mcError_t()> work{};      // none: the task is finished as soon as it is ready
  std::function<void(mcTask_t)> begin{};  // of an open task
  std::function<void()> release{};
  int unmet = 0;  // unfinished tasks that it comes after
  std::vector<TaskRef> successors{};
  std::shared_ptr<Timeline> timeline{};
  int64_t stamp = 0;  // written before `finished`
  std::atomic<bool> finished{false};
};

namespace {

using Lock = std::unique_lock<std::mutex>;

thread_local int taskDepth = 0;

// Never destroyed: its threads run until the process ends.
class Queue {
 public:
  static Queue& instance() {
    static auto* const made = new Queue;
    return *made;
  }

  std::mutex mutex;

  // ---- All with the lock ----

  std::shared_ptr<Timeline> timelineOf(mcStream_t stream) {
    if (!isDefaultStream(stream)) return stream->timeline;
    const int device = threadState.device;
    constexpr uintptr_t kPerThread = 2;
    if (reinterpret_cast<uintptr_t>(stream) != kPerThread) return defaultTimeline(legacy_[device], device, true);
    thread_local std::map<int, std::shared_ptr<Timeline>> own;
    return defaultTimeline(own[device], device, false);
  }

  // The unfinished tasks that the next work of `timeline` comes after.
  std::vector<TaskRef> before(const Timeline& timeline) const {
    std::vector<TaskRef> found;
    if (timeline.last != nullptr) found.push_back(timeline.last);
    if (!timeline.legacy && !timeline.blocking) return found;
    for (const auto& other : active_) {
      if (other.get() == &timeline || other->device != timeline.device) continue;
      if (timeline.legacy ? other->blocking : other->legacy) found.push_back(other->last);
    }
    return found;
  }
  bool anyBefore(const Timeline& timeline) const {
    if (timeline.last != nullptr) return true;
    if (!timeline.legacy && !timeline.blocking) return false;
    return std::any_of(active_.begin(), active_.end(), [&](const auto& other) {
      return other->device == timeline.device && (timeline.legacy ? other->blocking : other->legacy);
    });
  }
  std::vector<TaskRef> ofDevice(int device) const {
    std::vector<TaskRef> found;
    for (const auto& timeline : active_) {
      if (timeline->device == device) found.push_back(timeline->last);
    }
    return found;
  }

  void add(const std::shared_ptr<Timeline>& timeline, const TaskRef& task, const std::vector<TaskRef>& predecessors) {
    task->device = timeline->device;
    task->priority = timeline->priority;
    task->timeline = timeline;
    for (const TaskRef& predecessor : predecessors) {
      if (predecessor->finished.load(std::memory_order_relaxed)) continue;
      predecessor->successors.push_back(task);
      ++task->unmet;
    }
    if (timeline->last == nullptr) active_.push_back(timeline);
    timeline->last = task;
    activity.tasks.fetch_add(1, std::memory_order_relaxed);
    if (task->unmet == 0) ready(task);
  }

  // False: there is no progress thread, and the system gives none.
  bool canRun() { return workers_ != 0 || addWorker(); }

  void wait(Lock& lock, const std::vector<TaskRef>& tasks) {
    ++waiting_;
    for (const TaskRef& task : tasks) {
      done_.wait(lock, [&] { return task->finished.load(std::memory_order_relaxed) || ending_; });
    }
    --waiting_;
  }

  void finish(const TaskRef& first) {
    const int64_t now = monotonicNow();
    std::vector<TaskRef> open{first};
    while (!open.empty()) {
      const TaskRef task = std::move(open.back());
      open.pop_back();
      task->stamp = now;
      task->finished.store(true, std::memory_order_release);
      Timeline& timeline = *task->timeline;
      if (timeline.last == task) {
        timeline.last = nullptr;
        active_.erase(std::find(active_.begin(), active_.end(), task->timeline));
      }
      task->timeline = nullptr;
      for (const TaskRef& next : std::exchange(task->successors, {})) {
        if (--next->unmet != 0) continue;
        if (next->work || next->begin) {
          ready(next);
        } else {
          open.push_back(next);
        }
      }
      activity.tasks.fetch_sub(1, std::memory_order_release);
    }
    if (waiting_ != 0) done_.notify_all();
  }

 private:
  Queue() {
    std::atexit([] { instance().end(); });
  }

  std::shared_ptr<Timeline> defaultTimeline(std::shared_ptr<Timeline>& place, int device, bool isLegacy) {
    if (place == nullptr) place = std::make_shared<Timeline>(Timeline{device, !isLegacy, isLegacy, 0});
    return place;
  }

  void ready(const TaskRef& task) {
    if (!task->work && !task->begin) {
      finish(task);
      return;
    }
    if (ending_) return;
    // A smaller number goes first; equal ones in the order in which they became ready.
    const auto behind = std::find_if(ready_.begin(), ready_.end(),
                                     [&](const TaskRef& other) { return other->priority > task->priority; });
    ready_.insert(behind, task);
    // Every ready task has a thread to itself. If the system gives no more, it waits for one of those that are there.
    if (ready_.size() > idle_) addWorker();
    wake_.notify_one();
  }

  bool addWorker() {
    // The program's signals are for its own threads; faults, and what ends a kernel, are for the thread that runs it.
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGRTMAX - 5}) sigdelset(&blocked, number);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool made = true;
    try {
      std::thread([this] { serve(); }).detach();
      ++workers_;
    } catch (const std::system_error&) {
      made = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return made;
  }

  // Of the system's clock: waiting by the steady one asks for a function that glibc 2.28 lacks.
  static std::chrono::system_clock::time_point until(std::chrono::seconds duration) {
    return std::chrono::system_clock::now() + duration;
  }

  void serve() {
    constexpr size_t kKept = 4;
    constexpr auto kIdle = std::chrono::seconds(5);
    prctl(PR_SET_NAME, "mc-stream");
    threadState.ofRuntime = true;
    Lock lock(mutex);
    for (;;) {
      ++idle_;
      const bool found = wake_.wait_until(lock, until(kIdle), [this] { return !ready_.empty(); });
      --idle_;
      if (!found) {
        if (idle_ < kKept) continue;
        --workers_;
        return;
      }
      const TaskRef task = std::move(ready_.front());
      ready_.pop_front();
      run(lock, task);
    }
  }

  // Takes the lock away while the task's work runs.
  void run(Lock& lock, const TaskRef& task) {
    const bool waits = (task->flags & kTaskWaits) != 0;
    if (!waits) ++computing_;
    lock.unlock();
    threadState.device = task->device;
    threadState.lastError = mcSuccess;
    threadState.noContext = false;
    ++taskDepth;
    const bool dropped = (task->flags & kTaskAlways) == 0 && checkSticky() != mcSuccess;
    const bool isOpen = static_cast<bool>(task->begin);
    if (!dropped) {
      if (isOpen) {
        if (checkMode) check::open();
        task->begin(handles_.create(mcTask{task}));
      } else {
        // Host functions are the program's own.
        const bool computes = checkMode && !waits;
        if (computes) check::enter();
        const mcError_t error = task->work();
        if (computes) check::leave("work that was queued");
        // Who launched it has gone on: like any failure of a device's work it is the process's from now on. Its text
        // has been recorded where it was found.
        if (error != mcSuccess) setSticky(error, nullptr);
      }
    }
    --taskDepth;
    if (!isOpen || dropped) {
      // What the work holds goes before the task is finished: it may be memory that the next work counts on.
      task->work = nullptr;
      task->begin = nullptr;
      if (task->release) std::exchange(task->release, nullptr)();
      lock.lock();
      finish(task);
    } else {
      lock.lock();
    }
    if (!waits) --computing_;
    if (ending_ && computing_ == 0) wake_.notify_all();
  }

  // At the end of the process no task begins any more, as on a device that is switched off. What computes may use
  // objects that are destroyed next, so it is waited for; what waits for others is not.
  void end() {
    if (isForkedChild()) return;
    Lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;  // exit was called inside of it, by a signal handler
    ending_ = true;
    ready_.clear();
    done_.notify_all();
    wake_.wait_until(lock, until(std::chrono::seconds(2)), [this] { return computing_ == 0; });
  }

  std::condition_variable wake_, done_;
  std::deque<TaskRef> ready_;
  std::vector<std::shared_ptr<Timeline>> active_;  // with an unfinished task
  std::shared_ptr<Timeline> legacy_[limits::kDevices];
  size_t workers_ = 0, idle_ = 0;
  int waiting_ = 0, computing_ = 0;
  bool ending_ = false;

 public:
  HandleTable<mcTask> handles_;
};

mcError_t noThread() {
  return failWith(mcErrorMemoryAllocation, "the system gives no thread for work that is pending");
}

}  // namespace

int64_t monotonicNow() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

std::shared_ptr<Timeline> makeTimeline(int device, bool blocking, int priority) {
  return std::make_shared<Timeline>(Timeline{device, blocking, false, priority});
}

bool inTask() { return taskDepth != 0; }

bool isPending(mcStream_t stream) {
  if (!anythingPending() || inTask()) return false;
  Queue& queue = Queue::instance();
  const Lock lock(queue.mutex);
  return queue.anyBefore(*queue.timelineOf(stream));
}

mcError_t enqueue(mcStream_t stream, unsigned flags, std::function<mcError_t()> work) {
  markInitialized();  // a forked child has no progress threads
  const auto task = std::make_shared<Task>();
  task->flags = flags;
  task->work = std::move(work);
  Queue& queue = Queue::instance();
  const Lock lock(queue.mutex);
  if (!queue.canRun()) return noThread();
  const auto timeline = queue.timelineOf(stream);
  queue.add(timeline, task, queue.before(*timeline));
  return mcSuccess;
}

mcError_t enqueueOpen(mcStream_t stream, std::function<void(mcTask_t)> begin, std::function<void()> release) {
  markInitialized();
  const auto task = std::make_shared<Task>();
  task->begin = std::move(begin);
  task->release = std::move(release);
  Queue& queue = Queue::instance();
  mcTask_t now = nullptr;
  {
    const Lock lock(queue.mutex);
    const auto timeline = inTask() ? makeTimeline(threadState.device, false, 0) : queue.timelineOf(stream);
    const std::vector<TaskRef> before = queue.before(*timeline);
    if (!before.empty()) {
      if (!queue.canRun()) return noThread();
      queue.add(timeline, task, before);
      return mcSuccess;
    }
    // Its turn has come: it begins here, and the queue must not start it.
    task->unmet = 1;
    queue.add(timeline, task, before);
    now = queue.handles_.create(mcTask{task});
  }
  ++taskDepth;
  if (checkMode) check::open();
  task->begin(now);
  --taskDepth;
  // Inside a task it is a part of that one.
  if (inTask()) waitFor(task);
  return mcSuccess;
}

TaskRef orderPoint(mcStream_t stream) {
  if (!anythingPending() || inTask()) return nullptr;
  Queue& queue = Queue::instance();
  const Lock lock(queue.mutex);
  const auto timeline = queue.timelineOf(stream);
  const std::vector<TaskRef> before = queue.before(*timeline);
  if (before.empty()) return nullptr;
  const auto task = std::make_shared<Task>();
  queue.add(timeline, task, before);
  return task;
}

void orderAfter(mcStream_t stream, const TaskRef& first) {
  Queue& queue = Queue::instance();
  const Lock lock(queue.mutex);
  if (first->finished.load(std::memory_order_relaxed)) return;
  const auto timeline = queue.timelineOf(stream);
  std::vector<TaskRef> before = queue.before(*timeline);
  before.push_back(first);
  queue.add(timeline, std::make_shared<Task>(), before);
}

bool isFinished(const TaskRef& task) { return task->finished.load(std::memory_order_acquire); }
int64_t finishedAt(const TaskRef& task) { return task->stamp; }

void waitFor(const TaskRef& task) {
  Queue& queue = Queue::instance();
  Lock lock(queue.mutex);
  queue.wait(lock, {task});
}

void waitTurn(mcStream_t stream) {
  if (!anythingPending() || inTask()) return;
  Queue& queue = Queue::instance();
  Lock lock(queue.mutex);
  queue.wait(lock, queue.before(*queue.timelineOf(stream)));
}

void waitDevice(int device) {
  if (!anythingPending() || inTask()) return;
  Queue& queue = Queue::instance();
  Lock lock(queue.mutex);
  queue.wait(lock, queue.ofDevice(device));
}

}  // namespace mc

using namespace mc;

const volatile int* mcPendingWork(void) {
  static_assert(sizeof(std::atomic<int>) == sizeof(int), "read as an int by code in other libraries");
  return reinterpret_cast<const volatile int*>(&activity.tasks);
}

void mcTaskEnd(mcTask_t handle, mcError_t error, const char* detail) {
  Queue& queue = Queue::instance();
  if (isForkedChild() || !queue.handles_.contains(handle)) return;
  const TaskRef task = handle->task;
  if (!queue.handles_.destroy(handle)) return;
  if (error != mcSuccess) setSticky(error, detail);
  if (checkMode) check::close("work of a library");
  if (task->release) std::exchange(task->release, nullptr)();
  const Lock lock(queue.mutex);
  queue.finish(task);
}
