#include "execution/faults.h"

#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <mutex>

#include "check/check.h"
#include "check/operand.h"
#include "execution/registers.h"
#include "execution/worker.h"

namespace mc {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr size_t kSignalStackBytes = size_t{64} << 10;
struct sigaction previous[65];

void passOn(int number, siginfo_t* info, void* context) {
  const struct sigaction& before = previous[number];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_DFL) {
    // The faulting instruction runs again, and its signal then ends the process as it would have.
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number);
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  }
}

// What a fault on memory was, in `text`. Of an address that no process can have, and of a vector that is not aligned,
// the processor says no more than that something was wrong.
mcError_t explainMemory(const siginfo_t& info, [[maybe_unused]] void* context, char* text, size_t size) {
  uintptr_t address = reinterpret_cast<uintptr_t>(info.si_addr);
  bool misaligned = info.si_signo == SIGBUS && info.si_code == BUS_ADRALN;
#if defined(__x86_64__)
  if (info.si_signo == SIGSEGV && info.si_code == SI_KERNEL && operandOf(context, &address)) {
    misaligned = isUserAddress(address);
  }
#endif
  const void* const place = reinterpret_cast<const void*>(address);
  if (misaligned) {
    std::snprintf(text, size, "a vector at address %p, which is no multiple of its size", place);
    return mcErrorMisalignedAddress;
  }
  std::snprintf(text, size, "no memory to read or write at address %p", place);
  return mcErrorIllegalAddress;
}

// False: the fault is no kernel's.
bool endKernel(int number, siginfo_t* info, void* context) {
  Worker* const worker = Worker::current();
  if (worker == nullptr || !worker->inKernel() || info->si_code <= 0) return false;
  if (checkMode && number == SIGSEGV) {
    const check::Fault fault = check::onFault(*info, context, true);
    if (fault == check::Fault::kStray) {
      const std::string what = "touches " + check::explain(info->si_addr);
      goOnWith(worker->abandon(mcErrorIllegalAddress, what.c_str()), context);
    }
    if (fault != check::Fault::kForeign) return true;
  }
  char text[96];
  mcError_t error = mcErrorLaunchFailure;
  switch (number) {
    case SIGSEGV:
    case SIGBUS: error = explainMemory(*info, context, text, sizeof text); break;
    case SIGFPE: std::snprintf(text, sizeof text, "division of an integer by zero"); break;
    default: std::snprintf(text, sizeof text, "__trap() or an unreachable statement"); break;
  }
  goOnWith(worker->abandon(error, text), context);
  return true;
}

void onFault(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  if (!endKernel(number, info, context)) passOn(number, info, context);
  errno = saved;
}

}  // namespace

// A sanitizer's own handlers give the better report.
extern "C" __attribute__((weak)) void __asan_init();

void installFaultHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (__asan_init != nullptr) return;
    if (checkMode) check::onKernelFault(&endKernel);
    for (const int number : kSignals) {
      if (checkMode && (number == SIGSEGV || number == SIGBUS)) continue;  // check/ has a handler for them
      struct sigaction action{};
      action.sa_sigaction = onFault;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      sigaction(number, &action, &previous[number]);
    }
  });
}

// The handler needs a stack of its own: the fault may be that a thread's stack has run into its guard page.
void prepareFaultStack() {
  stack_t current;
  if (sigaltstack(nullptr, &current) == 0 && (current.ss_flags & SS_DISABLE) == 0) return;
  void* const memory =
      mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t fresh{};
  fresh.ss_sp = memory;
  fresh.ss_size = kSignalStackBytes;
  sigaltstack(&fresh, nullptr);
}

}  // namespace mc
