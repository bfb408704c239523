#include "workers.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace nccl {
namespace {

struct Workers {
  std::mutex mutex;
  std::condition_variable wanted;
  std::deque<std::function<void()>> work;
  size_t idle = 0;
  int process = 0;
};

// Never destroyed: the threads go on while the process exits. A forked child has none of its parent's threads.
Workers& workers() {
  static auto* current = new Workers;
  if (current->process != getpid()) {
    if (current->process != 0) current = new Workers;
    current->process = getpid();
  }
  return *current;
}

void serve(Workers& all) {
  std::unique_lock<std::mutex> lock(all.mutex);
  for (;;) {
    ++all.idle;
    all.wanted.wait(lock, [&] { return !all.work.empty(); });
    --all.idle;
    const std::function<void()> work = std::move(all.work.front());
    all.work.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace

bool inWorker(std::function<void()> work) {
  Workers& all = workers();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.work.push_back(std::move(work));
  if (all.work.size() <= all.idle) {
    all.wanted.notify_one();
    return true;
  }
  try {
    std::thread([&all] { serve(all); }).detach();
  } catch (const std::system_error&) {
    all.work.pop_back();
    return false;
  }
  return true;
}

}  // namespace nccl
