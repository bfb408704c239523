// MACA_CHECK=memory: who touches device memory that is not its own is told of it. See Note [Checked memory].
//
// Note [Checked memory]
// ~~~~~~~~~~~~~~~~~~~~~
// Device memory is host memory, so a program that reads a device's address on the host gets a value here, where a GPU
// machine ends it. In this mode every allocation has pages of its own, which nobody can read or write ("closed") while
// no work of the device runs, and a page before and behind it that nobody can ever touch. Work of the device (kernels,
// copies, PyTorch's operators) runs in a Scope. The first touch of a closed allocation faults; in a Scope it is opened,
// and the work goes on. The end of the last Scope closes what was opened, and looks whether the bytes between the
// allocation and the ends of its pages are what they were. What has been freed stays closed until many other
// allocations have been freed, so that a later touch finds out whose it was. Protection is the process's, not the
// thread's. Where the processor has protection keys, what is open is so for threads in a Scope and for those of pools
// (keys.h): the host's touches in one thread are seen while another one computes. Without keys they are not.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace mc {

// From the environment, once. While it holds, activity.tasks is never 0, so that no work takes the fast path.
extern const bool checkMode;

namespace check {

// Work of the device, in the calling thread. Nests.
void enter();
// `what` it was, for reports, or nullptr. False: it has left its memory. That has been reported, and is sticky.
bool leave(const char* what);

// The same for work that begins in one thread and may end in another.
void open();
bool close(const char* what);

class Scope {
 public:
  explicit Scope(const char* what = nullptr) : what_(what) {
    if (checkMode) enter();
  }
  ~Scope() {
    if (checkMode) leave(what_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const char* what_;
};

// Address space for `bytes` bytes that end, but for what alignment asks for, where their last page ends. nullptr: the
// system gives none. `closes`: the host may not touch it.
void* allocate(size_t bytes, bool closes);
// The addresses stay closed; what is behind them goes back to the system. False: allocate() did not give it.
bool release(void* memory);
// An allocation is to be freed that is not there: says so if it was there before.
void reportFree(const void* memory);

enum class Fault {
  kForeign,  // none of ours: whoever else handles it
  kOpened,   // the thread goes on
  kStray     // the device's work has left its memory, and cannot go on
};
// Asked first of every fault, in the signal's handler: whether it has dealt with it.
using KernelFault = bool (*)(int number, siginfo_t* info, void* context);
void onKernelFault(KernelFault handler);
// From the signal's handler. `inKernel`: the work can be ended; other work goes on with zeros, and is reported later.
Fault onFault(const siginfo_t& info, void* context, bool inKernel);
// What an address is that a kernel must not touch; from the handler, after kStray.
std::string explain(const void* address);
void report(const std::string& what);

}  // namespace check
}  // namespace mc
