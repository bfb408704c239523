// What a kernel calls while it runs.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "execution/worker.h"
#include "memory/allocations.h"

using namespace mc;

mcKernelContext* mcKernelEnter(void) { return Worker::current()->context(); }
void mcThreadPark(unsigned int thread) { Worker::current()->park(thread); }
unsigned int mcBlockBarrier(int kind, int predicate, const char* file, int line) {
  return Worker::current()->barrier(kind, predicate, file, line);
}
unsigned long long mcWarpExchange(mcWarpOperation operation, unsigned int mask, unsigned long long value,
                                  unsigned int lane, const char* file, int line) {
  return Worker::current()->exchange(operation, mask, value, lane, file, line);
}
unsigned int mcWarpActive(const char* file, int line) { return Worker::current()->activeLanes(file, line); }
void mcThreadYield(void) { Worker::current()->yield(); }

void* mcKernelScratch(size_t bytes) { return Worker::current()->scratch(bytes); }

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
