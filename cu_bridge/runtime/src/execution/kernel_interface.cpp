// What a kernel calls while it runs.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "execution/run_kernel.h"
#include "execution/worker.h"
#include "host/demangle.h"
#include "memory/allocations.h"
#include "state/state.h"

using namespace mc;

namespace {

// Where the running block stands in its grid.
uint64_t currentBlock(const mcKernelContext& context) {
  return (uint64_t{context.block.z} * context.gridDim.y + context.block.y) * context.gridDim.x + context.block.x;
}

}  // namespace

mcKernelContext* mcKernelEnter(void) { return Worker::current()->context(); }
void mcThreadPark(unsigned int thread) { Worker::current()->park(thread); }
unsigned int mcBlockBarrier(int kind, int predicate, const char* file, int line) {
  return Worker::current()->barrier(kind, predicate, file, line);
}
unsigned int mcBlockNamedBarrier(unsigned int number, unsigned int threads, int arrive, int predicate, const char* file,
                                 int line) {
  return Worker::current()->namedBarrier(number, threads, arrive != 0, predicate, file, line);
}
unsigned long long mcWarpExchange(mcWarpOperation operation, unsigned int mask, unsigned long long value,
                                  unsigned int lane, const char* file, int line) {
  return Worker::current()->exchange(operation, mask, value, lane, file, line);
}
unsigned int mcWarpActive(const char* file, int line) { return Worker::current()->activeLanes(file, line); }
unsigned int mcThreadYield(void) { return Worker::current()->yield(); }
void mcThreadFence(void) { Worker::current()->letWarpCatchUp(); }

void* mcKernelScratch(size_t bytes) { return Worker::current()->scratch(bytes); }

mcAddressSpace mcKernelAddressSpace(const void* address) { return Worker::current()->addressSpace(address); }

void mcKernelPrint(const char* text, size_t bytes) { std::fwrite(text, 1, bytes, stdout); }

void mcKernelCheckAccess(const void* address, size_t bytes, int write, const char* where) {
  const Allocation* const found = findAllocation(address);
  const auto offset = found == nullptr ? 0 : reinterpret_cast<uintptr_t>(address) - found->base;
  if (found != nullptr && bytes <= found->size - offset) return;
  char text[256];
  if (found != nullptr) {
    std::snprintf(text, sizeof text, "%s of %zu bytes at offset %zu of an allocation of %zu bytes, at %s",
                  write != 0 ? "store" : "load", bytes, static_cast<size_t>(offset), found->size, where);
  } else {
    std::snprintf(text, sizeof text, "%s of %zu bytes at address %p, in no allocation, at %s",
                  write != 0 ? "store" : "load", bytes, address, where);
  }
  mcKernelFail(mcErrorIllegalAddress, text);
}

mcError_t mcKernelLaunchChild(const mcKernelEntry* kernel, mcDim3 grid, mcDim3 block, void** arguments,
                              size_t sharedBytes, mcStream_t stream) {
  Worker* const worker = Worker::current();
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const unsigned bound = kernel->facts[0] != 0 ? kernel->facts[0] : kMaxThreads;
  const bool fits = threads != 0 && threads <= bound && block.z <= limits::kBlockZ && grid.x != 0 && grid.y != 0 &&
                    grid.z != 0 && grid.x <= limits::kGridX && grid.y <= limits::kGridY && grid.z <= limits::kGridZ &&
                    sharedBytes <= limits::kSharedPerBlockOptin;
  if (!fits) {
    // As on hardware nobody but the device code itself hears of it, and only if it asks. So it is said once.
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) {
      std::fprintf(stderr,
                   "mxmaca: kernel %s was not launched from device code: %u x %u x %u blocks of %u x %u x %u threads "
                   "with %zu bytes of dynamic shared memory are not possible\n",
                   demangled(kernel->name).c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, sharedBytes);
    }
    return fail(mcErrorInvalidConfiguration);
  }
  auto kept = std::make_shared<KeptArguments>();
  if (!kept->addAll(*kernel, arguments)) return fail(mcErrorMemoryAllocation);
  worker->launch().children.add({*kernel, grid, block, sharedBytes, stream == mcStreamTailLaunch,
                                 currentBlock(*worker->context()), std::move(kept)});
  return mcSuccess;
}

void mcKernelWaitForChildren(void) {
  Worker* const worker = Worker::current();
  std::vector<ChildLaunch> children = worker->launch().children.takeOf(currentBlock(*worker->context()));
  if (children.empty()) return;
  // A worker runs one grid at a time, so these get a thread with a worker of its own.
  mcError_t error = mcSuccess;
  std::thread([&children, &error, device = threadState.device] {
    threadState.device = device;
    threadState.ofRuntime = true;
    error = runChildren(std::move(children));
  }).join();
  if (error == mcSuccess) return;
  mcKernelFail(error, (std::string("a child grid has failed: ") + mcGetErrorString(error)).c_str());
}

int mcInKernel(void) {
  const Worker* const worker = Worker::current();
  return worker != nullptr && worker->inKernel();
}

void mcKernelFail(mcError_t error, const char* what) {
  Worker* const worker = Worker::current();
  if (worker == nullptr || !worker->inKernel()) {
    std::fprintf(stderr, "mxmaca: %s outside a kernel\n", what);
    std::abort();
  }
  worker->failHere(error, what);
}

void mcKernelAssertFail(const char* expression, const char* file, unsigned int line, const char* function) {
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s` failed.\n", file, line, function, expression);
  mcKernelFail(mcErrorAssert,
               (std::string("assertion `") + expression + "` failed at " + file + ":" + std::to_string(line)).c_str());
}
