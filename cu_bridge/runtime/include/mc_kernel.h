// What kernels compiled by cucc and the runtime agree on. Code calls these functions from inside a kernel, or has them
// called by its start-up code; programs use mc_runtime.h.
//
// Note: how a block runs
// ~~~~~~~~~~~~~~~~~~~~~~
// A kernel's device function is a loop over the threads of a block and over blocks. It asks mcKernelEnter where to
// start and where to end. As long as no thread has to wait, the loop runs through, on one stack. The first thread that
// has to wait (barrier, warp operation) leaves the loop: mcThreadPark makes the stack that thread's own, the remaining
// threads go on in a new loop on another stack, and so on. So a kernel without barriers never changes stacks, and one
// with barriers has a stack for each thread that waited.
//
// Note [Programs]
// ~~~~~~~~~~~~~~~
// Triton's kernels have no threads: a block is one program over tiles. The device function of such a kernel is a loop
// over blocks that runs each when it is asked for the block's first thread, and does nothing for the others. The
// configuration of its launches says how many threads the program would have on hardware.
#pragma once

#include "mc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where a kernel's loop runs; the loop writes `block` and `blocks` as it proceeds.
typedef struct mcKernelContext {
  void** arguments;
  mcDim3 gridDim, blockDim;
  mcDim3 block;                   // the first block, then the current one
  unsigned long long blocks;      // blocks to run, the current one included; x runs fastest
  mcDim3 firstThread, endThread;  // of the first block; later blocks start at 0
  unsigned int wholeBlocks;       // 1: firstThread is 0 and endThread is blockDim; the kernel may set mcBlocksInPhases
  unsigned int dynamicSharedBytes;
  void* dynamicShared;
} mcKernelContext;

// The kernel runs one loop over the threads for each stretch between two waits, so none of them can be parked.
enum { mcBlocksInPhases = 2 };

typedef void (*mcDeviceFunction)(void);

// Beside how much a thread does: the kernel may go round a loop until the host or another kernel has stored something.
#define mcKernelMayWait 0x80000000U

// One kernel of an object file. `facts`: the launch bound (0 for none), about how much a thread does (0 for the work of
// a thread of cucc's) and mcKernelMayWait, size and alignment of each parameter, 0 and 0.
typedef struct mcKernelEntry {
  const void* hostFunction;
  mcDeviceFunction deviceFunction;
  const char* name;  // mangled
  const unsigned int* facts;
} mcKernelEntry;

enum { mcVariableConstant = 1, mcVariableManaged = 2 };

// A variable of device code. Host code knows it by the address of a variable of its own; of a managed one both are one.
typedef struct mcVariableEntry {
  const void* hostVariable;
  void* address;
  size_t bytes;
  const char* name;  // mangled
  size_t flags;
} mcVariableEntry;

typedef struct mcModuleTable {
  size_t version;  // mcModuleTableVersion
  size_t kernelCount;
  const mcKernelEntry* kernels;
  size_t variableCount;
  const mcVariableEntry* variables;
  // From version 2 on: bytes of static shared memory of each kernel.
  const size_t* staticShared;
} mcModuleTable;

// Version 3: warp operations of each kind have a number of their own.
enum { mcModuleTableVersion = 3 };

// ---- Start-up and launch --------------------------------------------------------------------------------------------
MC_API mcModule_t mcModuleLoad(const mcModuleTable* table);
// Places an object file of the host in memory and registers the kernels of its table, which is the symbol of this name.
// Its kernels run a block by one call: see Note [Programs]. mcModuleUnregister takes it away. Errors:
// InvalidKernelImage, whose text says what is wrong with the file.
#define mcObjectTableSymbol "mxmaca.module"
MC_API mcError_t mcModuleLoadObject(mcModule_t* module, const void* image, size_t bytes);
// Launches the kernel in whose host function the address `inside` lies.
MC_API mcError_t mcLaunchStub(const void* inside, mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes,
                              mcStream_t stream);

// ---- Inside a kernel ------------------------------------------------------------------------------------------------
MC_API mcKernelContext* mcKernelEnter(void);
// The calling loop becomes the thread of this linear number for good: it must return when the thread has ended.
MC_API void mcThreadPark(unsigned int thread);
// The operations below may be called by parked threads only.
enum { mcBarrierPlain = 0, mcBarrierGrid = 1 };
// Waits for all threads of the block that have not ended; returns how many had a predicate that is not 0.
MC_API unsigned int mcBlockBarrier(int kind, int predicate, const char* file, int line);
// PTX's barriers of a block, by number (0 to 15): comes to the one at which `threads` threads meet, a multiple of 32
// (0: all of the block that have not ended), and waits for them unless `arrive`. Returns how many of them had a
// predicate that is not 0; to a thread that does not wait, 0.
MC_API unsigned int mcBlockNamedBarrier(unsigned int number, unsigned int threads, int arrive, int predicate,
                                        const char* file, int line);

// Lanes that meet must call operations of one number. Several numbers do the same for different functions of CUDA.
typedef enum mcWarpOperation {
  mcWarpSync = 0,
  mcWarpShuffle = 1,  // the value of lane `lane`; all bits are 1 where that lane takes no part
  mcWarpBallot = 2,   // the set of lanes with a value that is not 0
  mcWarpMatch = 3,    // the set of lanes with the same value
  mcWarpAdd = 4,      // over the mask, of 32-bit values
  mcWarpMinSigned = 5,
  mcWarpMaxSigned = 6,
  mcWarpMinUnsigned = 7,
  mcWarpMaxUnsigned = 8,
  mcWarpAnd = 9,
  mcWarpOr = 10,
  mcWarpXor = 11,
  mcWarpShuffleUp = 12,
  mcWarpShuffleDown = 13,
  mcWarpShuffleXor = 14,
  mcWarpAny = 15,  // as mcWarpBallot
  mcWarpAll = 16,
  mcWarpUniform = 17,
  mcWarpMatchAll = 18  // as mcWarpMatch
} mcWarpOperation;
// Waits for the lanes of `mask` (bit numbers within the caller's warp; ended threads do not count).
MC_API unsigned long long mcWarpExchange(mcWarpOperation operation, unsigned int mask, unsigned long long value,
                                         unsigned int lane, const char* file, int line);
// The lanes of the caller's warp that come to the same place before they end or have to wait elsewhere.
MC_API unsigned int mcWarpActive(const char* file, int line);
// Lets other threads of the block run. Returns after how many rounds of its loop the caller should do it again: fewer
// once the block is known to wait.
MC_API unsigned int mcThreadYield(void);
// Before what the caller has stored is announced to other blocks: the threads of the block that could run have done so.
// On hardware the lanes of a warp come to a fence together, and programs announce what all of them have stored.
MC_API void mcThreadFence(void);
// Memory of the calling worker for one program: `bytes`, aligned to a page and followed by one that nobody can touch.
// It stays until the worker's next call; what is in it is undefined.
MC_API void* mcKernelScratch(size_t bytes);
// Where an address lies as PTX's `isspacep` tells it. Parameters are in the local memory of their thread, and what is
// in no other space is global.
typedef enum mcAddressSpace { mcAddressGlobal, mcAddressShared, mcAddressLocal, mcAddressConstant } mcAddressSpace;
MC_API mcAddressSpace mcKernelAddressSpace(const void* address);
// Writes text to the standard output in one piece, in the order of the calls of this block.
MC_API void mcKernelPrint(const char* text, size_t bytes);
// A launch from device code, which runs later: see the note in execution/child_launch.h. Its configuration is checked
// now; the calling thread's last error is what is wrong with it.
#define mcStreamTailLaunch ((mcStream_t)3)
MC_API mcError_t mcKernelLaunchChild(const mcKernelEntry* kernel, mcDim3 grid, mcDim3 block, void** arguments,
                                     size_t sharedBytes, mcStream_t stream);
// Runs what the calling block has launched so far, but for tail launches.
MC_API void mcKernelWaitForChildren(void);
// Fails the launch unless [address, address + bytes) lies in one of the device's allocations. `where` names the access.
MC_API void mcKernelCheckAccess(const void* address, size_t bytes, int write, const char* where);
// Whether the calling thread runs a kernel.
MC_API int mcInKernel(void);
MC_API __attribute__((noreturn)) void mcKernelFail(mcError_t error, const char* what);
// Takes the place of the C library's __assert_fail in device code.
MC_API __attribute__((noreturn)) void mcKernelAssertFail(const char* expression, const char* file, unsigned int line,
                                                         const char* function);

// ---- About kernels --------------------------------------------------------------------------------------------------
typedef struct mcKernelFacts {
  unsigned int maxThreads;        // 1024, or the launch bound
  unsigned int maxDynamicShared;  // bytes; 48 KiB unless raised
  unsigned int staticShared;      // bytes that its own function declares
} mcKernelFacts;
MC_API mcError_t mcKernelGetFacts(mcKernelFacts* facts, const void* hostFunction);
MC_API mcError_t mcKernelSetMaxDynamicShared(const void* hostFunction, unsigned int bytes);
// Size and alignment of parameter `index`; InvalidValue past the last one.
MC_API mcError_t mcKernelGetParameter(const void* hostFunction, unsigned int index, size_t* bytes, size_t* alignment);
// The kernel's mangled name, which lives as long as its library.
MC_API mcError_t mcKernelGetName(const char** name, const void* hostFunction);
// The host functions of a module's compiled kernels (NULL: of all), by address. *count: room in, number out; with
// `hostFunctions` NULL the number alone.
MC_API mcError_t mcModuleGetKernels(const void** hostFunctions, size_t* count, mcModule_t module);
// A kernel or variable of the module (NULL: of any) by mangled name, or by plain name for one with C linkage.
MC_API mcError_t mcModuleGetKernel(const void** hostFunction, mcModule_t module, const char* name);
MC_API mcError_t mcModuleGetVariable(void** address, size_t* bytes, mcModule_t module, const char* name);
MC_API mcError_t mcVariableGet(void** address, size_t* bytes, const void* hostVariable);
MC_API mcError_t mcLaunchCooperative(const void* hostFunction, mcDim3 grid, mcDim3 block, void** arguments,
                                     size_t sharedBytes, mcStream_t stream);
// Blocks of a cooperative launch that a device holds at once, for each multiprocessor.
MC_API unsigned int mcKernelBlocksPerMultiprocessor(unsigned int threads, size_t sharedBytes);

#ifdef __cplusplus
}
#endif
