#include "execution/watchdog.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "execution/registers.h"

namespace mc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kLook = 0.25;           // seconds between two looks
constexpr double kInterruptible = 1.0;   // from when on Ctrl-C ends a kernel
constexpr double kAfterInterrupt = 1.0;  // how long it then may still run

std::atomic<bool> interrupted{false};
struct sigaction interruptBefore;

void onInterrupt(int number, siginfo_t* info, void* context) {
  interrupted.store(true);
  if ((interruptBefore.sa_flags & SA_SIGINFO) != 0) {
    interruptBefore.sa_sigaction(number, info, context);
  } else {
    interruptBefore.sa_handler(number);
  }
}

struct Same {
  uintptr_t first, second;
};
// Whether two addresses lie in one object file.
bool inOneObject(uintptr_t first, uintptr_t second) {
  Same both{first, second};
  return dl_iterate_phdr(
             [](dl_phdr_info* object, size_t, void* data) {
               const Same& wanted = *static_cast<Same*>(data);
               bool one = false, other = false;
               for (int i = 0; i < object->dlpi_phnum; ++i) {
                 const auto& segment = object->dlpi_phdr[i];
                 if (segment.p_type != PT_LOAD) continue;
                 const uintptr_t start = object->dlpi_addr + segment.p_vaddr, end = start + segment.p_memsz;
                 one = one || (wanted.first >= start && wanted.first < end);
                 other = other || (wanted.second >= start && wanted.second < end);
               }
               return one && other ? 1 : 0;
             },
             &both) != 0;
}

int endSignal() { return SIGRTMAX - 5; }

void onEnd(int, siginfo_t*, void* context) {
  Worker* const worker = Worker::current();
  if (worker == nullptr || !worker->inKernel() || !worker->toBeEnded()) return;
  const int saved = errno;
  if (inOneObject(interruptedAt(context), worker->kernelAddress())) {
    goOnWith(worker->abandon(mcErrorLaunchTimeout, worker->endReason()), context);
  }
  errno = saved;
}

class Watchdog {
 public:
  Watchdog() {
    const char* const text = std::getenv("MACA_KERNEL_TIMEOUT");
    char* end = nullptr;
    limit_ = text == nullptr ? 0 : std::strtod(text, &end);
    if (text != nullptr && (end == text || *end != '\0' || !(limit_ >= 0))) {
      std::fprintf(stderr, "mxmaca: MACA_KERNEL_TIMEOUT is '%s', which is no number of seconds: there is no limit\n",
                   text);
      limit_ = 0;
    }
    std::snprintf(tooLong_, sizeof tooLong_, "it ran for more than %g seconds (MACA_KERNEL_TIMEOUT)", limit_);
    struct sigaction action{};
    action.sa_sigaction = onEnd;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(endSignal(), &action, nullptr);
    // The program's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void add(Worker* worker) {
    if (getpid() != process_) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    workers_[worker] = {pthread_self(), 0, Clock::now(), Clock::time_point()};
  }
  void remove(Worker* worker) {
    // A forked child has no watchdog, and perhaps one's lock.
    if (getpid() != process_) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    workers_.erase(worker);
  }

 private:
  struct Seen {
    pthread_t thread;
    uint64_t launch;  // 0: none
    Clock::time_point since, interrupted;
  };

  void run() {
    prctl(PR_SET_NAME, "mc-watchdog");
    const double look = limit_ > 0 && limit_ < 4 * kLook ? limit_ / 4 : kLook;
    for (;;) {
      std::this_thread::sleep_for(std::chrono::duration<double>(ending_ ? 0.01 : look));
      const std::lock_guard<std::mutex> lock(mutex_);
      const Clock::time_point now = Clock::now();
      bool longOne = false;
      ending_ = false;
      const bool asked = interrupted.load();
      for (auto& [worker, seen] : workers_) {
        const uint64_t launch = worker->runningLaunch();
        if (launch != seen.launch) seen = {seen.thread, launch, now, Clock::time_point()};
        if (launch == 0) continue;
        const double seconds = std::chrono::duration<double>(now - seen.since).count();
        longOne = longOne || seconds >= kInterruptible;
        if (asked && seen.interrupted == Clock::time_point()) seen.interrupted = now;
        const bool stopped = seen.interrupted != Clock::time_point() &&
                             std::chrono::duration<double>(now - seen.interrupted).count() >= kAfterInterrupt;
        if (!stopped && !(limit_ > 0 && seconds >= limit_)) continue;
        worker->end(launch, stopped ? "it was interrupted" : tooLong_);
        pthread_kill(seen.thread, endSignal());
        ending_ = true;
      }
      hookInterrupt(longOne);
    }
  }

  // Ctrl-C is heard while a kernel runs for long, and only where the program has a handler that lets it live on.
  void hookInterrupt(bool wanted) {
    if (wanted == hooked_) return;
    struct sigaction now{};
    sigaction(SIGINT, nullptr, &now);
    if (wanted) {
      const bool handled = (now.sa_flags & SA_SIGINFO) != 0 || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
      if (!handled) return;
      interrupted.store(false);
      interruptBefore = now;
      struct sigaction action = now;
      action.sa_sigaction = onInterrupt;
      action.sa_flags |= SA_SIGINFO;
      sigaction(SIGINT, &action, nullptr);
    } else if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == onInterrupt) {
      sigaction(SIGINT, &interruptBefore, nullptr);
    }
    hooked_ = wanted;
  }

  std::mutex mutex_;
  std::map<Worker*, Seen> workers_;
  const pid_t process_ = getpid();
  double limit_ = 0;
  bool ending_ = false, hooked_ = false;
  char tooLong_[96];
};

// Never destroyed: its thread runs until the process ends.
Watchdog& watchdog() {
  static auto* const instance = new Watchdog;
  return *instance;
}

}  // namespace

void watch(Worker* worker) { watchdog().add(worker); }
void unwatch(Worker* worker) { watchdog().remove(worker); }

}  // namespace mc
