// The driver interface's switch for a profiler.
#pragma once

#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#ifdef __cplusplus
}  // extern "C"
#endif
