// What code compiled by cucc calls, under names that programs linked with the CUDA runtime find.

#include "mxmaca/kernel_interface.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "mxmaca/cycles.h"
#include "own.h"

namespace {

// How many arguments a format of printf takes.
int argumentsOf(const char* format) {
  int count = 0;
  for (const char* at = std::strchr(format, '%'); at != nullptr; at = std::strchr(at, '%')) {
    const char* const conversion = at + 1 + std::strspn(at + 1, "-+ #0*.123456789hlLqjzt");
    for (; at < conversion; ++at) count += *at == '*';
    if (*conversion == '\0') break;
    count += *conversion != '%';
    at = conversion + 1;
  }
  return count;
}

int print(const char* format, va_list arguments) {
  if (format == nullptr) return -1;
  return std::vfprintf(stdout, format, arguments) < 0 ? -2 : argumentsOf(format);
}

}  // namespace

#pragma GCC visibility push(default)

extern "C" {

mcModule_t __cudaModuleLoad(const mcModuleTable* table) { return mcModuleLoad(table); }
void __cudaModuleUnload(mcModule_t module) { mcModuleUnregister(module); }

int __cudaLaunchChild(void (*function)(void), const char* name, const unsigned int* facts, void** arguments) {
  dim3 grid, block;
  size_t sharedBytes = 0;
  cudaStream_t stream = nullptr;
  const cudaError_t error = __cudaPopCallConfiguration(&grid, &block, &sharedBytes, &stream);
  if (error != cudaSuccess) return error;
  const mcKernelEntry entry{nullptr, function, name, facts};
  return mcKernelLaunchChild(&entry, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, arguments, sharedBytes,
                             mxmaca::own(stream));
}

// Also called in device code, for a kernel of another file, which it has found under its name.
int __cudaLaunchStub(void** arguments) {
  dim3 grid, block;
  size_t sharedBytes = 0;
  cudaStream_t stream = nullptr;
  const cudaError_t error = __cudaPopCallConfiguration(&grid, &block, &sharedBytes, &stream);
  if (error != cudaSuccess) return error;
  return mcLaunchStub(__builtin_return_address(0), {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, arguments,
                      sharedBytes, mxmaca::own(stream));
}

cudaError_t __cudaDeviceSynchronizeInKernel(void) {
  mcKernelWaitForChildren();
  return cudaSuccess;
}
cudaError_t __cudaMemcpyInKernel(void* to, const void* from, size_t count, cudaMemcpyKind, cudaStream_t) {
  mcKernelWaitForChildren();
  std::memmove(to, from, count);
  return cudaSuccess;
}
cudaError_t __cudaMemsetInKernel(void* pointer, int value, size_t count, cudaStream_t) {
  mcKernelWaitForChildren();
  std::memset(pointer, value, count);
  return cudaSuccess;
}

mcKernelContext* __cudaKernelEnter(void) { return mcKernelEnter(); }
void __cudaThreadPark(unsigned int thread) { mcThreadPark(thread); }
unsigned int __cudaBlockBarrier(int kind, int predicate, const char* file, int line) {
  return mcBlockBarrier(kind, predicate, file, line);
}
unsigned int __cudaBlockNamedBarrier(unsigned int number, unsigned int threads, int arrive, int predicate,
                                     const char* file, int line) {
  return mcBlockNamedBarrier(number, threads, arrive, predicate, file, line);
}
unsigned long long __cudaWarpExchange(mcWarpOperation operation, unsigned int mask, unsigned long long value,
                                      unsigned int lane, const char* file, int line) {
  return mcWarpExchange(operation, mask, value, lane, file, line);
}
unsigned int __cudaWarpActive(const char* file, int line) { return mcWarpActive(file, line); }
unsigned int __cudaThreadYield(void) { return mcThreadYield(); }
void __cudaThreadFence(void) { mcThreadFence(); }
mcAddressSpace __cudaAddressSpace(const void* address) { return mcKernelAddressSpace(address); }
void __cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value) {
  const mcError_t error = mcGraphConditionSet(handle, value);
  if (error != mcSuccess) mcKernelFail(error, "cudaGraphSetConditional() of an unknown handle");
}
void __cudaKernelFail(int error, const char* what) { mcKernelFail(static_cast<mcError_t>(error), what); }
void __cudaAssertFail(const char* expression, const char* file, unsigned int line, const char* function) noexcept {
  mcKernelAssertFail(expression, file, line, function);
}
long __cudaClock(void) noexcept { return static_cast<long>(mxmaca::cycles()); }
int __cudaPrintf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int count = print(format, arguments);
  va_end(arguments);
  return count;
}
int __cudaPrintfChecked(int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int count = print(format, arguments);
  va_end(arguments);
  return count;
}
int __cudaVprintf(const char* format, va_list arguments) { return print(format, arguments); }
void __cudaAbort(void) noexcept { mcKernelFail(mcErrorLaunchFailure, "abort()"); }
// One for each name: an object's names cannot be changed into the same one.
void __cudaExit(int) noexcept { mcKernelFail(mcErrorLaunchFailure, "exit()"); }
void __cudaExitAtOnce(int) noexcept { mcKernelFail(mcErrorLaunchFailure, "_exit()"); }
void __cudaExitAtOnceC(int) noexcept { mcKernelFail(mcErrorLaunchFailure, "_Exit()"); }
void __cudaExitQuickly(int) noexcept { mcKernelFail(mcErrorLaunchFailure, "quick_exit()"); }

}  // extern "C"

#pragma GCC visibility pop
