// The functions of the CUDA runtime library that compiled kernels call.
#pragma once

#include "driver_types.h"
#include "mc_kernel.h"

extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream);

mcModule_t __cudaModuleLoad(const mcModuleTable* table);
void __cudaModuleUnload(mcModule_t module);
int __cudaLaunchStub(void** arguments);

// Launches from device code. The configuration comes first; the kernel's function then finds that it is wanted as a
// child, and hands its arguments on instead of running.
unsigned __cudaPushChildConfiguration(dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream);
int __cudaChildWanted(void);
int __cudaLaunchChild(void (*function)(void), const char* name, const unsigned int* facts, void** arguments);

mcKernelContext* __cudaKernelEnter(void);
void __cudaThreadPark(unsigned int thread);
unsigned int __cudaBlockBarrier(int kind, int predicate, const char* file, int line);
unsigned int __cudaBlockNamedBarrier(unsigned int number, unsigned int threads, int arrive, int predicate,
                                     const char* file, int line);
unsigned long long __cudaWarpExchange(mcWarpOperation operation, unsigned int mask, unsigned long long value,
                                      unsigned int lane, const char* file, int line);
unsigned int __cudaWarpActive(const char* file, int line);
unsigned int __cudaThreadYield(void);
void __cudaThreadFence(void);
mcAddressSpace __cudaAddressSpace(const void* address);
void __cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
__attribute__((noreturn)) void __cudaKernelFail(int error, const char* what);
// Takes the place of the C library's function, and so is declared as that is.
__attribute__((noreturn)) void __cudaAssertFail(const char* expression, const char* file, unsigned int line,
                                                const char* function) noexcept;
// The same for what cucc exchanges by name (DEVICE_LIBRARY in objects.py).
// Of the runtime interface: what the block has launched comes before them.
cudaError_t __cudaDeviceSynchronizeInKernel(void);
cudaError_t __cudaMemcpyInKernel(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t __cudaMemsetInKernel(void* pointer, int value, size_t count, cudaStream_t stream);
long __cudaClock(void) noexcept;  // cycles of a counter that never goes back
// The number of arguments that the format takes, -1 for none, -2 where nothing could be written.
int __cudaPrintf(const char* format, ...) __attribute__((format(printf, 1, 2)));
int __cudaPrintfChecked(int flag, const char* format, ...) __attribute__((format(printf, 2, 3)));
int __cudaVprintf(const char* format, __builtin_va_list arguments) __attribute__((format(printf, 1, 0)));
__attribute__((noreturn)) void __cudaAbort(void) noexcept;
__attribute__((noreturn)) void __cudaExit(int status) noexcept;
__attribute__((noreturn)) void __cudaExitAtOnce(int status) noexcept;
__attribute__((noreturn)) void __cudaExitAtOnceC(int status) noexcept;
__attribute__((noreturn)) void __cudaExitQuickly(int status) noexcept;
}
