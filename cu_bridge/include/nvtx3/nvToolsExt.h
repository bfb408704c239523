// Marks and ranges for a profiler: they go to the runtime of the simulated device where it is loaded. Without it they
// answer what NVTX answers without a tool: that nothing is tracked.
#pragma once

#include <stdint.h>

#define NVTX_VERSION 3
#define NVTX_NO_PUSH_POP_TRACKING (-2)

typedef uint64_t nvtxRangeId_t;

#ifdef __cplusplus
extern "C" {
#endif

// The runtime's function, declared here alone: this header is included where mc_runtime.h is not wanted. Kinds: 1 mark,
// 2 push, 3 pop, 4 start, 5 end.
#ifdef __CUDA_ARCH__  // no kernel marks anything, and a weak name would become a strong one where objects are joined
static int64_t (*const mxmacaProfileMark)(int kind, const char* domain, const char* name, unsigned long long range) = 0;
#else
extern int64_t mxmacaProfileMark(int kind, const char* domain, const char* name,
                                 unsigned long long range) __asm__("mcProfileMark") __attribute__((weak));
#endif

static inline void nvtxMarkA(const char* message) {
  if (mxmacaProfileMark) mxmacaProfileMark(1, 0, message, 0);
}
static inline int nvtxRangePushA(const char* message) {
  return mxmacaProfileMark ? (int)mxmacaProfileMark(2, 0, message, 0) : NVTX_NO_PUSH_POP_TRACKING;
}
static inline int nvtxRangePop(void) {
  return mxmacaProfileMark ? (int)mxmacaProfileMark(3, 0, 0, 0) : NVTX_NO_PUSH_POP_TRACKING;
}
static inline nvtxRangeId_t nvtxRangeStartA(const char* message) {
  return mxmacaProfileMark ? (nvtxRangeId_t)mxmacaProfileMark(4, 0, message, 0) : 0;
}
static inline void nvtxRangeEnd(nvtxRangeId_t id) {
  if (mxmacaProfileMark) mxmacaProfileMark(5, 0, 0, id);
}

#ifdef __cplusplus
}  // extern "C"
#endif

#define nvtxMark nvtxMarkA
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
