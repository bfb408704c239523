// The simulated MXMACA device: memory, streams, events, kernels. Plain C interface of libmcruntime.
//
// Every function that returns mcError_t also records a failure for mcGetLastError in the calling thread. After a launch
// of device code that is not there the error is sticky: nearly every later call of the process reports it too, as on
// real hardware, until mcDeviceReset. All functions may be called from any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "mc_error_codes.h"

#define MC_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcStream* mcStream_t;
typedef struct mcEvent* mcEvent_t;
typedef struct mcModule* mcModule_t;
typedef struct mcMemoryPool* mcMemoryPool_t;
typedef struct mcPhysicalMemory* mcPhysicalMemory_t;
typedef struct mcGraph* mcGraph_t;
typedef struct mcGraphNode* mcGraphNode_t;
typedef struct mcGraphExec* mcGraphExec_t;
typedef struct mcUserObject* mcUserObject_t;

typedef struct mcDim3 {
  unsigned int x, y, z;
} mcDim3;

// ---- Errors ---------------------------------------------------------------------------------------------------------
MC_API mcError_t mcGetLastError(void);                                 // returns and clears the thread's last error
MC_API mcError_t mcPeekAtLastError(void);                              // returns it
MC_API mcError_t mcSetLastError(mcError_t error, const char* detail);  // records a failure; detail may be NULL
// An error that lasts, as that of a kernel which failed. `detail` is shown behind the error's text.
MC_API void mcDeviceFail(mcError_t error, const char* detail);
MC_API mcError_t mcStickyError(void);                  // the process's sticky error, or mcSuccess
MC_API const char* mcGetErrorString(mcError_t error);  // message, with the detail of the latest such failure
MC_API const char* mcGetErrorName(mcError_t error);    // "MemoryAllocation", or NULL
// Says once per function, on stderr, that `function` of `library` is not implemented.
MC_API void mcReportRefusal(const char* library, const char* function, const char* status);

// ---- Handles of libraries on top of the runtime ---------------------------------------------------------------------
// Which addresses are live handles of a kind; the kinds are the libraries' own numbers, from 1 to 255. Any address may
// be asked about; it costs some nanoseconds and takes no lock.
MC_API int mcHandleAdd(const void* handle, int kind);     // 0: no memory to note it in
MC_API int mcHandleRemove(const void* handle, int kind);  // whether it was one
MC_API int mcHandleIs(const void* handle, int kind);

// ---- Devices --------------------------------------------------------------------------------------------------------
typedef struct mcDeviceProperties {
  char name[256];
  uint8_t uuid[16];
  size_t memory;  // bytes
  int major, minor;
  int multiprocessors;
  int clockKHz, memoryClockKHz, memoryBusBits, l2Bytes;
  int warpSize, maxThreadsPerBlock, maxThreadsPerMultiprocessor, maxBlocksPerMultiprocessor;
  int registersPerBlock, registersPerMultiprocessor;
  int sharedPerBlock, sharedPerBlockOptin, sharedPerMultiprocessor, sharedReserved;
  int pciDomain, pciBus, pciDevice;
  int physicalIndex;  // the device's number before CUDA_VISIBLE_DEVICES
} mcDeviceProperties;

MC_API mcError_t mcGetDeviceCount(int* count);  // visible devices
MC_API mcError_t mcGetDevice(int* device);
MC_API mcError_t mcSetDevice(int device);
// Whether the process has asked for its devices yet.
MC_API int mcIsStarted(void);
// Whether the process has done anything with the device but asking about it.
MC_API int mcDeviceIsUsed(int device);
// Whether the calling thread has a current context, for interfaces that know contexts. A thread begins with its
// device's; it can be without one (0) until a device is set or the runtime interface makes it current again (1).
MC_API void mcContextSet(int set);
MC_API int mcContextIsSet(void);
// Parts of a device: so many of its multiprocessors, which kernels share among their blocks. The calling thread's
// current part (0: all of the device) is that of the default streams and of each stream that it makes, as long as the
// part's device is the current one.
MC_API mcError_t mcPartCreate(unsigned int* part, int device, unsigned int multiprocessors);
MC_API mcError_t mcPartDestroy(unsigned int part);
MC_API mcError_t mcPartSet(unsigned int part);
MC_API mcError_t mcStreamGetPart(mcStream_t stream, unsigned int* part);
MC_API mcError_t mcStreamCreateInPart(mcStream_t* stream, unsigned int part, unsigned int flags, int priority);
MC_API mcError_t mcGetDeviceProperties(mcDeviceProperties* properties, int device);
MC_API int mcPhysicalDeviceCount(void);  // devices before CUDA_VISIBLE_DEVICES
MC_API mcError_t mcGetPhysicalDeviceProperties(mcDeviceProperties* properties, int physicalIndex);
// What simulated sensors show of an idle device, and of one for which all of the host's processors compute.
typedef struct mcDeviceSensors {
  int idleClockKHz, idleMilliwatts, limitMilliwatts;
  int idleCelsius, fullCelsius, slowdownCelsius, shutdownCelsius;
} mcDeviceSensors;
MC_API mcError_t mcGetPhysicalDeviceSensors(mcDeviceSensors* sensors, int physicalIndex);
MC_API mcError_t mcDeviceSynchronize(void);
MC_API mcError_t mcDeviceReset(void);  // clears the sticky error; memory stays
MC_API mcError_t mcDeviceCanAccessPeer(int* can, int device, int peer);
MC_API mcError_t mcDeviceEnablePeerAccess(int peer, unsigned int flags);
MC_API mcError_t mcDeviceDisablePeerAccess(int peer);

typedef struct mcProcessUse {
  int pid;
  uint64_t bytes;
} mcProcessUse;
// Processes that hold memory of a device (physical index). *count: room in, number out.
MC_API mcError_t mcDeviceProcesses(int physicalIndex, mcProcessUse* processes, unsigned int* count);
MC_API mcError_t mcDeviceMemoryInfo(int physicalIndex, size_t* free, size_t* total);

// ---- Memory ---------------------------------------------------------------------------------------------------------
typedef enum mcMemoryKind {
  mcMemoryUnregistered = 0,
  mcMemoryHost = 1,
  mcMemoryDevice = 2,
  mcMemoryManaged = 3
} mcMemoryKind;

typedef enum mcMemcpyKind {
  mcMemcpyHostToHost = 0,
  mcMemcpyHostToDevice = 1,
  mcMemcpyDeviceToHost = 2,
  mcMemcpyDeviceToDevice = 3,
  mcMemcpyDefault = 4
} mcMemcpyKind;

typedef struct mcPointerAttributes {
  mcMemoryKind kind;
  int device;  // -2 for unregistered memory
  void* base;  // start of the allocation that holds the address
  size_t size;
  uint64_t id;  // never reused
  unsigned int flags;
} mcPointerAttributes;

MC_API mcError_t mcMalloc(void** pointer, size_t bytes);
MC_API mcError_t mcMallocManaged(void** pointer, size_t bytes, unsigned int flags);
MC_API mcError_t mcFree(void* pointer);
MC_API mcError_t mcHostAlloc(void** pointer, size_t bytes, unsigned int flags);
MC_API mcError_t mcFreeHost(void* pointer);
MC_API mcError_t mcHostRegister(void* pointer, size_t bytes, unsigned int flags);
MC_API mcError_t mcHostUnregister(void* pointer);
MC_API mcError_t mcHostGetDevicePointer(void** device, void* host, unsigned int flags);
MC_API mcError_t mcHostGetFlags(unsigned int* flags, void* host);
MC_API mcError_t mcMemGetInfo(size_t* free, size_t* total);
// Hints about managed memory, by page: that it is mostly read; where it is best kept, who uses it, where it was last
// fetched to. Nothing depends on them. `place` is a device, or the host.
enum { mcPlaceHost = -1 };
typedef enum mcAdvice {
  mcAdviceReadMostly = 1,
  mcAdvicePreferred = 2,
  mcAdviceAccessedBy = 3,
  mcAdvicePrefetched = 4
} mcAdvice;
MC_API mcError_t mcMemAdvise(const void* pointer, size_t bytes, mcAdvice what, int place, int on);
// What holds for all pages: 1 or 0; a place, or -2 for none; of the users one place after the other, then -2.
MC_API mcError_t mcMemAdviceGet(const void* pointer, size_t bytes, mcAdvice what, int* answers, size_t count);
MC_API mcError_t mcPointerGetAttributes(mcPointerAttributes* attributes, const void* pointer);
// The id of the allocation that was made last: older ones have smaller ids. 0 before the first.
MC_API uint64_t mcLatestAllocation(void);
MC_API mcError_t mcMemcpy(void* to, const void* from, size_t bytes, mcMemcpyKind kind);
MC_API mcError_t mcMemcpyAsync(void* to, const void* from, size_t bytes, mcMemcpyKind kind, mcStream_t stream);
MC_API mcError_t mcMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                                 size_t height, mcMemcpyKind kind, mcStream_t stream);
MC_API mcError_t mcMemset(void* pointer, int value, size_t bytes);
MC_API mcError_t mcMemsetAsync(void* pointer, int value, size_t bytes, mcStream_t stream);
// Rows of `width` elements of `elementBytes` (1, 2 or 4), each set to `value`.
MC_API mcError_t mcMemset2DAsync(void* pointer, size_t pitch, unsigned int value, unsigned int elementBytes,
                                 size_t width, size_t height, mcStream_t stream);

// Stream-ordered pools.
typedef enum mcPoolAttribute {
  mcPoolReuseFollowEventDependencies = 1,
  mcPoolReuseAllowOpportunistic = 2,
  mcPoolReuseAllowInternalDependencies = 3,
  mcPoolReleaseThreshold = 4,
  mcPoolReservedCurrent = 5,
  mcPoolReservedHigh = 6,
  mcPoolUsedCurrent = 7,
  mcPoolUsedHigh = 8
} mcPoolAttribute;
MC_API mcError_t mcDeviceGetDefaultMemPool(mcMemoryPool_t* pool, int device);
MC_API mcError_t mcDeviceGetMemPool(mcMemoryPool_t* pool, int device);
MC_API mcError_t mcDeviceSetMemPool(int device, mcMemoryPool_t pool);
MC_API mcError_t mcMemPoolCreate(mcMemoryPool_t* pool, int device);
MC_API mcError_t mcMemPoolDestroy(mcMemoryPool_t pool);
MC_API mcError_t mcMemPoolGetAttribute(mcMemoryPool_t pool, mcPoolAttribute attribute, void* value);
MC_API mcError_t mcMemPoolSetAttribute(mcMemoryPool_t pool, mcPoolAttribute attribute, void* value);
MC_API mcError_t mcMemPoolGetDevice(mcMemoryPool_t pool, int* device);
MC_API mcError_t mcMemPoolTrimTo(mcMemoryPool_t pool, size_t bytesToKeep);
MC_API mcError_t mcMallocAsync(void** pointer, size_t bytes, mcStream_t stream);
MC_API mcError_t mcMallocFromPoolAsync(void** pointer, size_t bytes, mcMemoryPool_t pool, mcStream_t stream);
MC_API mcError_t mcFreeAsync(void* pointer, mcStream_t stream);

// Virtual memory: physical memory is charged to the device when created, and mapped into reserved addresses.
MC_API size_t mcVirtualGranularity(void);
MC_API mcError_t mcAddressReserve(void** pointer, size_t bytes, size_t alignment, void* wish);
MC_API mcError_t mcAddressFree(void* pointer, size_t bytes);
MC_API mcError_t mcPhysicalCreate(mcPhysicalMemory_t* memory, size_t bytes, int device);
MC_API mcError_t mcPhysicalRetain(mcPhysicalMemory_t* memory, void* mapped);
MC_API mcError_t mcPhysicalRelease(mcPhysicalMemory_t memory);
MC_API mcError_t mcPhysicalInfo(mcPhysicalMemory_t memory, int* device, size_t* bytes);
MC_API mcError_t mcPhysicalExport(mcPhysicalMemory_t memory, int* fileDescriptor);
MC_API mcError_t mcPhysicalImport(mcPhysicalMemory_t* memory, int fileDescriptor);
MC_API mcError_t mcMap(void* pointer, size_t bytes, size_t offset, mcPhysicalMemory_t memory);
MC_API mcError_t mcUnmap(void* pointer, size_t bytes);
MC_API mcError_t mcSetAccess(void* pointer, size_t bytes, int readable, int writable);
// InvalidValue where nothing is mapped.
MC_API mcError_t mcGetAccess(const void* pointer, int* readable, int* writable);

// Memory and events of another process of the same user. The exporter must live as long as the memory is open.
typedef struct mcIpcHandle {
  char reserved[64];
} mcIpcHandle;
MC_API mcError_t mcIpcGetMemHandle(mcIpcHandle* handle, void* pointer);
MC_API mcError_t mcIpcOpenMemHandle(void** pointer, const mcIpcHandle* handle);
MC_API mcError_t mcIpcCloseMemHandle(void* pointer);
MC_API mcError_t mcIpcGetEventHandle(mcIpcHandle* handle, mcEvent_t event);
MC_API mcError_t mcIpcOpenEventHandle(mcEvent_t* event, const mcIpcHandle* handle);

// ---- Streams and events ---------------------------------------------------------------------------------------------
// NULL, (mcStream_t)1 and (mcStream_t)2 are the current device's default streams.
MC_API mcError_t mcStreamCreateWithPriority(mcStream_t* stream, unsigned int flags, int priority);
MC_API mcError_t mcStreamDestroy(mcStream_t stream);
MC_API mcError_t mcStreamQuery(mcStream_t stream);        // NotReady while work on it is pending; not while captured
MC_API mcError_t mcStreamSynchronize(mcStream_t stream);  // not while captured
MC_API mcError_t mcStreamCheck(mcStream_t stream);        // the same, before work that the caller does itself at once
MC_API mcError_t mcStreamWaitTurn(mcStream_t stream);     // the same, whether it is captured or not
// *defers: whether work of the stream is a node of a capture now, or waits behind pending work, instead of running at
// once.
MC_API mcError_t mcStreamDefers(mcStream_t stream, int* defers);
// Two bytes of the calling thread's, 0 at first, for libraries whose calls are made later. Variables of their own would
// each take of the static TLS block, of which there is little.
MC_API unsigned char* mcThreadLibraryBytes(void);
MC_API mcError_t mcStreamWaitEvent(mcStream_t stream, mcEvent_t event);
MC_API mcError_t mcStreamWaitEventExternal(mcStream_t stream, mcEvent_t event);  // in a capture a node of its own
MC_API mcError_t mcStreamGetPriority(mcStream_t stream, int* priority);
MC_API mcError_t mcStreamGetFlags(mcStream_t stream, unsigned int* flags);
MC_API mcError_t mcStreamGetDevice(mcStream_t stream, int* device);
MC_API mcError_t mcStreamGetId(mcStream_t stream, unsigned long long* id);
// Bytes that a library keeps with a stream under a number, to say what the program has set. `count` 0: none any more.
// NotSupported: there are none, or not so many.
MC_API mcError_t mcStreamKeep(mcStream_t stream, int number, const void* bytes, size_t count);
MC_API mcError_t mcStreamKept(mcStream_t stream, int number, void* bytes, size_t count);
MC_API void mcStreamPriorityRange(int* least, int* greatest);
MC_API mcError_t mcLaunchHostFunction(mcStream_t stream, void (*function)(void*), void* argument);

// Work for a stream that another library does. In a capture it becomes a node. Else, when nothing is pending on the
// stream, `run` is called at once in the calling thread and its error is returned. When something is, `run` is called
// in the stream's order on a thread of the runtime; an error is then the process's sticky one. `destroy` (may be NULL)
// is called once, when the work is over or was refused.
enum {
  mcTaskWaits = 1,  // `run` may wait, for the host or for other streams: never in the calling thread
  mcTaskAlways = 2  // it is called after a sticky error too, which drops other pending work
};
MC_API mcError_t mcStreamSubmit(mcStream_t stream, const char* kind, const char* label, unsigned int flags,
                                mcError_t (*run)(void* data), void* data, void (*destroy)(void* data));
// The same for work that goes on in other threads: `begin` must not wait, and the work is pending until mcTaskEnd is
// called for the task, from any thread, `begin` included. After a sticky error it does not begin.
typedef struct mcTask* mcTask_t;
MC_API mcError_t mcStreamSubmitOpen(mcStream_t stream, const char* kind, const char* label,
                                    void (*begin)(void* data, mcTask_t task), void* data, void (*destroy)(void* data));
MC_API void mcTaskEnd(mcTask_t task, mcError_t error, const char* detail);  // an error is sticky; detail may be NULL
// How much work of the process is pending, to be read at any time: 0 is the common case, in which nothing has to wait.
// Read it with acquire order (__atomic_load_n): who sees 0 then sees what finished work has written.
MC_API const volatile int* mcPendingWork(void);

// Capture: what is submitted to the stream becomes the nodes of a graph. Errors are those that CUDA documents.
typedef enum mcCaptureMode {
  mcCaptureModeGlobal = 0,
  mcCaptureModeThreadLocal = 1,
  mcCaptureModeRelaxed = 2
} mcCaptureMode;
typedef enum mcCaptureStatus { mcCaptureNone = 0, mcCaptureActive = 1, mcCaptureInvalidated = 2 } mcCaptureStatus;
MC_API mcError_t mcStreamBeginCapture(mcStream_t stream, mcCaptureMode mode);
// Into a graph that is there; the first nodes come after `dependencies`, nodes of it.
MC_API mcError_t mcStreamBeginCaptureToGraph(mcStream_t stream, mcGraph_t graph, const mcGraphNode_t* dependencies,
                                             size_t count, mcCaptureMode mode);
MC_API mcError_t mcStreamEndCapture(mcStream_t stream, mcGraph_t* graph);
// The captured stream's next node comes after `nodes`, beside or (replaces) instead of what it would come after.
MC_API mcError_t mcStreamUpdateCapture(mcStream_t stream, const mcGraphNode_t* nodes, size_t count, int replaces);
// All but `status` may be NULL. `dependencies` stays valid until the thread's next call.
MC_API mcError_t mcStreamCaptureInfo(mcStream_t stream, mcCaptureStatus* status, unsigned long long* id,
                                     mcGraph_t* graph, mcGraphNode_t const** dependencies, size_t* count);
MC_API mcError_t mcThreadExchangeCaptureMode(mcCaptureMode* mode);  // sets the thread's, returns the one before
MC_API mcError_t mcGraphInstantiate(mcGraphExec_t* exec, mcGraph_t graph);
MC_API mcError_t mcGraphUpload(mcGraphExec_t exec, mcStream_t stream);  // checks; there is nothing to transfer
MC_API mcError_t mcGraphLaunch(mcGraphExec_t exec, mcStream_t stream);
MC_API mcError_t mcGraphDestroy(mcGraph_t graph);
MC_API mcError_t mcGraphExecDestroy(mcGraphExec_t exec);
// *count: room in, number out; with `nodes` NULL the number alone.
MC_API mcError_t mcGraphGetNodes(mcGraph_t graph, mcGraphNode_t* nodes, size_t* count);
MC_API mcError_t mcGraphNodeDependencies(mcGraphNode_t node, mcGraphNode_t* dependencies, size_t* count);
// `detailed`: with numbers of nodes and what kernels are launched with.
MC_API mcError_t mcGraphDebugDotPrint(mcGraph_t graph, const char* path, int detailed);
// Graphs that programs build. A new node comes after `dependencies`, which are nodes of the same graph.
MC_API mcError_t mcGraphCreate(mcGraph_t* graph);
MC_API mcError_t mcGraphClone(mcGraph_t* clone, mcGraph_t original);
MC_API mcError_t mcGraphNodeFindInClone(mcGraphNode_t* found, mcGraphNode_t original, mcGraph_t clone);
MC_API mcError_t mcGraphNodeDestroy(mcGraphNode_t node);
MC_API mcError_t mcGraphNodeKind(mcGraphNode_t node, const char** kind);
MC_API mcError_t mcGraphRootNodes(mcGraph_t graph, mcGraphNode_t* nodes, size_t* count);
MC_API mcError_t mcGraphEdges(mcGraph_t graph, mcGraphNode_t* from, mcGraphNode_t* to, size_t* count);
MC_API mcError_t mcGraphNodeDependents(mcGraphNode_t node, mcGraphNode_t* dependents, size_t* count);
MC_API mcError_t mcGraphAddDependencies(mcGraph_t graph, const mcGraphNode_t* from, const mcGraphNode_t* to,
                                        size_t count);
MC_API mcError_t mcGraphRemoveDependencies(mcGraph_t graph, const mcGraphNode_t* from, const mcGraphNode_t* to,
                                           size_t count);
// The node is what `submit` submits to the stream that it is given: one piece of work.
MC_API mcError_t mcGraphRecord(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count,
                               mcError_t (*submit)(mcStream_t stream, void* data), void* data, mcGraphNode_t* node);
MC_API mcError_t mcGraphAddEmpty(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count, mcGraphNode_t* node);
// A copy of `child`, which mcGraphChild gives.
MC_API mcError_t mcGraphAddChild(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count, mcGraph_t child,
                                 mcGraphNode_t* node);
MC_API mcError_t mcGraphChild(mcGraphNode_t node, mcGraph_t* child);
// If: the first body runs for a value that is not 0, a second one for 0. While: the body runs as long as the value is
// not 0. Switch: the body of that number. The handle names a value; with `assigned` each launch begins with `initial`.
typedef enum mcGraphConditionKind {
  mcGraphConditionIf = 0,
  mcGraphConditionWhile = 1,
  mcGraphConditionSwitch = 2
} mcGraphConditionKind;
MC_API mcError_t mcGraphConditionCreate(unsigned long long* handle, mcGraph_t graph, unsigned int initial,
                                        int assigned);
MC_API mcError_t mcGraphConditionSet(unsigned long long handle, unsigned int value);
MC_API mcError_t mcGraphAddConditional(mcGraph_t graph, const mcGraphNode_t* dependencies, size_t count,
                                       unsigned long long handle, mcGraphConditionKind kind, unsigned int bodies,
                                       mcGraph_t* body, mcGraphNode_t* node);
// An object of the program's that graphs keep alive. `destroy` is called once, with the last reference, by the thread
// that gives it back. A graph's references are those of its clones and of its copies for launches too, and last until
// their launches are over. InvalidValue: a count of 0, or of more references than the holder has.
MC_API mcError_t mcUserObjectCreate(mcUserObject_t* object, void* pointer, void (*destroy)(void* pointer),
                                    unsigned int references);
MC_API mcError_t mcUserObjectRetain(mcUserObject_t object, unsigned int count);
MC_API mcError_t mcUserObjectRelease(mcUserObject_t object, unsigned int count);
// `move`: the caller's references become the graph's.
MC_API mcError_t mcGraphRetainUserObject(mcGraph_t graph, mcUserObject_t object, unsigned int count, int move);
MC_API mcError_t mcGraphReleaseUserObject(mcGraph_t graph, mcUserObject_t object, unsigned int count);
// Changes of an executable graph, for the launches that follow. `node` is of the graph that it was made from.
// `node` of a graph does the work of `by`, a node of the same kind of any graph. What was instantiated stays.
MC_API mcError_t mcGraphNodeReplace(mcGraphNode_t node, mcGraphNode_t by);
// What a kernel's node launches. The arguments lie in memory of the node until it goes or launches another kernel; what
// is written there has an effect when it is given to mcGraphNodeReplace or mcGraphExecReplace. InvalidDeviceFunction:
// an operator or a call of a library, which is no kernel of the program.
typedef struct mcKernelLaunch {
  const void* hostFunction;
  mcDim3 grid, block;
  size_t sharedBytes;
  void** arguments;
  int cooperative;
} mcKernelLaunch;
MC_API mcError_t mcGraphKernelLaunch(mcGraphNode_t node, mcKernelLaunch* launch);
MC_API mcError_t mcGraphExecReplace(mcGraphExec_t exec, mcGraphNode_t node, mcGraphNode_t by);
MC_API mcError_t mcGraphExecEnable(mcGraphExec_t exec, mcGraphNode_t node, int enabled);
MC_API mcError_t mcGraphExecEnabled(mcGraphExec_t exec, mcGraphNode_t node, int* enabled);
// The nodes of a child's copy in `exec` do the work of those of `child`. InvalidValue: it is of another shape.
MC_API mcError_t mcGraphExecReplaceChild(mcGraphExec_t exec, mcGraphNode_t node, mcGraph_t child);
// Memory that graphs allocate: what launches have taken and not given back, and what is there for them to take.
typedef enum mcGraphMemory { mcGraphMemoryUsed = 0, mcGraphMemoryReserved = 1 } mcGraphMemory;
MC_API mcError_t mcGraphMemoryGet(int device, mcGraphMemory which, unsigned long long* current,
                                  unsigned long long* high);
MC_API mcError_t mcGraphMemoryResetHigh(int device, mcGraphMemory which);  // to what is current
// Bytes that a library keeps with a node, to say what the program had asked for. Copies of the node have them too, and
// a node whose work is replaced gets those of the other. NotSupported: there are none, or not so many.
MC_API mcError_t mcGraphNodeDescribe(mcGraphNode_t node, const void* bytes, size_t count);
MC_API mcError_t mcGraphNodeDescription(mcGraphNode_t node, void* bytes, size_t count);
// The same under a number, as mcStreamKeep. They stay where a node's work is replaced.
MC_API mcError_t mcGraphNodeKeep(mcGraphNode_t node, int number, const void* bytes, size_t count);
MC_API mcError_t mcGraphNodeKept(mcGraphNode_t node, int number, void* bytes, size_t count);
typedef enum mcGraphUpdateResult {
  mcGraphUpdateSuccess = 0,
  mcGraphUpdateError = 1,
  mcGraphUpdateTopologyChanged = 2,
  mcGraphUpdateKindChanged = 3,
  mcGraphUpdateParametersChanged = 5
} mcGraphUpdateResult;
// GraphExecUpdateFailure: `graph` is of another shape. *node (may be NULL): its first node that differs.
// Its launches free what the launch before has left of the memory that its nodes allocate.
MC_API mcError_t mcGraphExecFreesFirst(mcGraphExec_t exec);
// What the program has given when the graph was instantiated; the runtime keeps it and does not look at it.
MC_API mcError_t mcGraphExecSetFlags(mcGraphExec_t exec, unsigned long long flags);
// Numbers of graphs, executable ones and nodes: no other one of the process has it.
MC_API mcError_t mcGraphGetId(mcGraph_t graph, unsigned int* id);
MC_API mcError_t mcGraphExecGetId(mcGraphExec_t exec, unsigned int* id);
MC_API mcError_t mcGraphNodeGetId(mcGraphNode_t node, unsigned long long* id);
MC_API mcError_t mcGraphExecGetFlags(mcGraphExec_t exec, unsigned long long* flags);
MC_API mcError_t mcGraphExecUpdate(mcGraphExec_t exec, mcGraph_t graph, mcGraphUpdateResult* result,
                                   mcGraphNode_t* node);
// For a library that computes on the host, such as PyTorch's operators: it is told of captures, in the thread that
// begins or ends one, and adds its own work as nodes. `run` is called at each launch, `destroy` with the graph.
// `failed`: the capture has given no graph.
typedef struct mcCaptureHooks {
  void (*begin)(unsigned long long id);
  void (*end)(unsigned long long id, int failed);
} mcCaptureHooks;
MC_API void mcCaptureSetHooks(const mcCaptureHooks* hooks);
MC_API mcError_t mcCaptureAdd(mcStream_t stream, const char* kind, const char* label, mcError_t (*run)(void* data),
                              void* data, void (*destroy)(void* data));
// For a call that allocates or waits, which the capture modes forbid: its error, and the end of the captures that do.
MC_API mcError_t mcCaptureForbids(void);
// With 1, until -1: the calling thread's work on capturing streams runs at once and is not recorded. Nests.
MC_API void mcCaptureSuspend(int change);

enum { mcEventDisableTiming = 2, mcEventInterprocess = 4 };
MC_API mcError_t mcEventCreate(mcEvent_t* event, unsigned int flags);
MC_API mcError_t mcEventDestroy(mcEvent_t event);
MC_API mcError_t mcEventRecord(mcEvent_t event, mcStream_t stream);
MC_API mcError_t mcEventRecordExternal(mcEvent_t event, mcStream_t stream);  // in a capture a node of its own
MC_API mcError_t mcEventQuery(mcEvent_t event);                              // NotReady until it is reached
MC_API mcError_t mcEventSynchronize(mcEvent_t event);
MC_API mcError_t mcEventCheck(mcEvent_t event);  // whether it is one
MC_API mcError_t mcEventElapsedTime(float* milliseconds, mcEvent_t start, mcEvent_t end);

// ---- Late copies ----------------------------------------------------------------------------------------------------
MC_API int mcLateMode(void);  // MACA_ASYNC=late

// ---- Checked memory -------------------------------------------------------------------------------------------------
MC_API int mcCheckMode(void);  // MACA_CHECK=memory
// Around what a library computes in the calling thread with device memory. They nest. `what` it was, or NULL.
MC_API void mcCheckEnter(void);
MC_API void mcCheckLeave(const char* what);

// Writes where the calling thread's program is, such as "train.py:31", for reports; or nothing. Any thread, with no
// lock.
typedef void (*mcPlaceHook)(char* text, size_t room);
MC_API void mcSetPlaceHook(mcPlaceHook hook);

// ---- Profiling ------------------------------------------------------------------------------------------------------
typedef enum mcWorkKind {
  mcWorkCall = 1,  // a call of the program
  mcWorkKernel = 2,
  mcWorkCopy = 3,
  mcWorkFill = 4,
  mcWorkHost = 5,   // a host function, or what a library does on the host
  mcWorkBegin = 6,  // a call begins, in the calling thread: its number, and nothing else
  mcWorkMark = 7    // what the program says of itself: mark, name, domain, range and start
} mcWorkKind;
typedef enum mcMarkKind {
  mcMarkInstant = 1,
  mcMarkPush = 2,  // a range within the thread's ranges
  mcMarkPop = 3,
  mcMarkStart = 4,  // a range that any thread may end, in any order
  mcMarkEnd = 5
} mcMarkKind;
typedef enum mcCall {
  mcCallLaunchKernel = 1,
  mcCallMemcpyAsync = 2,
  mcCallMemcpy = 3,
  mcCallMemsetAsync = 4,
  mcCallMemset = 5,
  mcCallLaunchHostFunction = 6,
  mcCallGraphLaunch = 7,
  mcCallStreamSynchronize = 8,
  mcCallDeviceSynchronize = 9,
  mcCallEventSynchronize = 10,
  mcCallStreamWaitEvent = 11,
  mcCallEventRecord = 12,
  mcCallMalloc = 13,
  mcCallFree = 14,
  mcCallHostAlloc = 15,
  mcCallFreeHost = 16,
  mcCallMallocAsync = 17,
  mcCallFreeAsync = 18,
  mcCallOther = 19,  // of a library: work without a call of CUDA
  mcCallLaunchCooperative = 20
} mcCall;
typedef struct mcWorkRecord {
  mcWorkKind kind;
  mcCall call;
  int ofDriver;           // the call came through the driver interface
  unsigned int function;  // the number of the function that was called, as mcFunctionCall has it; 0: that of `call`
  // Of a call, when it begins and when it is over: the addresses of its arguments, in the order of the function of this
  // interface, which is CUDA's; NULL where they are not known.
  const void* const* arguments;
  const char* name;    // of a kernel or host work; lives as long as the process (of a call: of the kernel, as it is
                       // registered)
  int64_t start, end;  // of the listener's clock
  int device;
  unsigned long long stream;  // as mcStreamGetId; of a call that waits for one stream, that one
  unsigned int correlation;   // one for a call and the work that it begins
  mcError_t result;
  mcDim3 grid, block;
  size_t sharedBytes, staticSharedBytes;
  size_t bytes;  // of copies and fills
  mcMemoryKind source, target;
  unsigned int value;  // of a fill
  // Of work that the launch of a graph does: what mcGraphExecGetId gives, and the number of the node's copy in the
  // executable graph (mcResource). 0 for other work.
  unsigned int graph;
  unsigned long long graphNode;
  mcMarkKind mark;
  const char* domain;        // of a mark; lives as long as the process, NULL for the default one
  unsigned long long range;  // one for the begin and the end of a range
} mcWorkRecord;
typedef void (*mcWorkListener)(const mcWorkRecord* record);
typedef uint64_t (*mcProfileClock)(void);
// The one listener; NULL ends it. It is called from any thread, and must not call the runtime.
MC_API void mcProfileListen(mcWorkListener listener, mcProfileClock clock);
// For a library that computes on the host, such as PyTorch's operators: `changed` is called when somebody begins (1) or
// ends (0) to listen. The library then tells of each operator as a kernel of that name: when it begins (which gives it
// a number) and when it has run.
MC_API void mcProfileSetHook(void (*changed)(int listens));
MC_API int mcProfileListens(void);
MC_API int64_t mcProfileNow(void);
MC_API unsigned int mcProfileBegin(const char* name, mcStream_t stream);
// Of one that is captured (`captured`) there is the call alone: the launch of its graph tells of the kernel.
MC_API void mcProfileOperator(unsigned int correlation, const char* name, mcStream_t stream, int64_t start, int64_t end,
                              int captured);
// A program's mark, or the begin or end of a range (NVTX). Ranges of a thread are pushed and popped for each domain by
// itself. Returns the number of what begins or ends: of a push or pop the range's depth, from 0 on, and -1 where there
// is nothing to pop; of a start its number, which its end takes; else 0. `name` may be NULL for ends.
MC_API int64_t mcProfileMark(mcMarkKind kind, const char* domain, const char* name, unsigned long long range);
// Called with each of them, in its thread, whether anybody listens or not. NULL ends it.
typedef void (*mcMarkHook)(mcMarkKind kind, const char* name, unsigned long long range);
MC_API void mcProfileSetMarkHook(mcMarkHook hook);
// What becomes of streams, graphs and nodes. Something is there when it is told of: after it was made, before it goes.
// To instantiate a graph copies its nodes: for the time of each call the copy is a node of a graph whose number is the
// executable graph's, and the node's number is the one in the records of its work.
typedef enum mcResourceEvent {
  mcStreamCreated,
  mcStreamDestroys,
  mcGraphCreated,
  mcGraphDestroys,
  mcGraphCloned,
  mcGraphNodeCreated,
  mcGraphNodeDestroys,
  mcGraphNodeCloned,
  mcGraphDependencyCreated,
  mcGraphDependencyDestroys,
  mcGraphExecCreated,
  mcGraphExecDestroys
} mcResourceEvent;
typedef struct mcResource {
  mcResourceEvent event;
  mcStream_t stream;
  mcGraph_t graph, originalGraph;  // the copy, and what it is a copy of
  mcGraphNode_t node, originalNode;
  const char* kind;          // of the node
  mcGraphNode_t dependency;  // which comes after `node`
  mcGraphExec_t exec;
} mcResource;
typedef void (*mcResourceListener)(const mcResource* resource);
// Called in the thread that makes or ends it, with no lock. NULL ends it.
MC_API void mcResourceListen(mcResourceListener listener);
// A function of CUDA's interfaces that is not one of this interface's, with arguments of its own. What the runtime is
// asked for between its begin and its end is a part of it. Begin returns 0, and there is no end, where nobody listens
// and where the thread is in another call.
typedef struct mcFunctionCall {
  mcCall call;            // what is most like it here
  int ofDriver;           // of the driver interface
  unsigned int function;  // its number in CUPTI's list of the interface's functions
  const char* kernel;     // that it launches, or NULL
  const void* const* arguments;
  unsigned int correlation;  // these two are the runtime's
  int64_t start;
} mcFunctionCall;
MC_API int mcProfileFunctionBegin(mcFunctionCall* call);
MC_API void mcProfileFunctionEnd(const mcFunctionCall* call, mcError_t result);

// ---- Kernels --------------------------------------------------------------------------------------------------------
// Host code registers its kernels by the address of a host function. A kernel runs only if somebody has given an
// implementation for that address; otherwise its launch fails, stickily, with the kernel's name.
typedef void (*mcKernelFunction)(mcDim3 grid, mcDim3 block, void** arguments, size_t sharedBytes, mcStream_t stream);

MC_API mcModule_t mcModuleRegister(void);
MC_API void mcModuleUnregister(mcModule_t module);
MC_API void mcKernelRegister(mcModule_t module, const void* hostFunction, const char* mangledName);
MC_API void mcVariableRegister(mcModule_t module, const void* hostVariable, const char* mangledName, size_t bytes);
MC_API mcError_t mcKernelImplement(const void* hostFunction, mcKernelFunction function);  // NULL removes
// The same for every kernel whose readable name, with its parameters' types, is this one, and whose library brings no
// code for it. The first call for a name counts. A launch is pending until the function has returned.
MC_API mcError_t mcKernelImplementWaiting(const char* name, mcKernelFunction function, const size_t* argumentBytes,
                                          size_t count);
MC_API mcError_t mcKernelCheck(const void* hostFunction);  // as Known; NoKernelImageForDevice without implementation
// InvalidDeviceFunction for an address that no library has registered as a kernel's.
MC_API mcError_t mcKernelKnown(const void* hostFunction);
MC_API mcError_t mcVariableCheck(const void* hostVariable);
MC_API mcError_t mcLaunchKernel(const void* hostFunction, mcDim3 grid, mcDim3 block, void** arguments,
                                size_t sharedBytes, mcStream_t stream);
// Threads that a library of the program has already, for the blocks of compiled kernels: two sets of threads that spin
// while they wait for work take the processors from each other. `size`: how many the calling thread may use, itself
// included. `run`: calls body(data) on it and on the others, and returns when all have. The runtime's own threads, and
// all where MACA_NUM_THREADS is set, keep to the runtime's pool. The team is not copied; NULL removes it.
typedef struct mcTeam {
  unsigned int (*size)(void);
  void (*run)(unsigned int threads, void (*body)(void* data), void* data);
} mcTeam;
MC_API void mcKernelTeam(const mcTeam* team);
// Between the two, a launch of missing device code on this thread fails without becoming the lasting error; End tells
// how many did. They nest. For whoever has another way when a kernel is not there.
MC_API void mcLaunchWatchBegin(void);
MC_API int mcLaunchWatchEnd(void);

#ifdef __cplusplus
}
#endif
