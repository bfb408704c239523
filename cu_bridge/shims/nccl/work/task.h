// Work that waits for other ranks, as steps that never wait themselves: so one thread carries on any number of them,
// and the order in which ranks begin them cannot dead-lock.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/shared_block.h"
#include "report/result.h"

namespace nccl {

enum class Step { Done, Moved, Blocked };

class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  // Takes its place among the work of its communicator, where that is not done before.
  virtual void start() {}
  // Does what can be done. Blocked: nothing can until the word of `*bell` differs from `*seen`.
  virtual Step advance(Bell** bell, uint32_t* seen) = 0;
  // Called from time to time while it is blocked: ends it if what it waits for will never come.
  virtual void look() = 0;
  // Whether spinning is worth while: no more ranks wait for each other than there are processors.
  virtual bool maySpin() const = 0;
  // Whether what it waits for rings no bell: something that comes from another host.
  virtual bool polls() const { return false; }
  // It will never be carried on: its stream has failed.
  virtual void drop() {}

  Result result() const { return result_; }
  const std::string& text() const { return text_; }

 protected:
  Step end(Result result, const std::string& text = {}) {
    // A failure of a call below has been noted with this text already.
    if (result != kSuccess && text != lastError()) fail(result, text);
    result_ = result;
    text_ = text;
    return Step::Done;
  }

 private:
  Result result_ = kSuccess;
  std::string text_;
};

using Tasks = std::vector<std::unique_ptr<Task>>;

// Carries on tasks, in one thread at a time.
class TaskRun {
 public:
  explicit TaskRun(Tasks tasks) : tasks_(std::move(tasks)) {}

  // Until all are done, or as long as something can be done and for that many microseconds more. Whether all are done.
  bool finish();
  bool tryFor(int microseconds);

  Result result() const { return result_; }  // the first failure
  void drop();                               // gives up all that are left

 private:
  bool step();  // whether any of them moved on

  Tasks tasks_;
  Result result_ = kSuccess;
  // Of the last step: whether all may spin, and what rings when there is something to do.
  bool spin_ = true;
  bool several_ = false;
  Bell* bell_ = nullptr;
  uint32_t seen_ = 0;
};

// Carries on the tasks until all are done, in the calling thread. The first failure.
Result runTasks(Tasks tasks);

int processors();

}  // namespace nccl
