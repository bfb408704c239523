// The driver interface's switch for a profiler.
#pragma once

#include "cuda.h"
#include "cuda_runtime_api.h"

static inline CUresult cuProfilerStart(void) { return (CUresult)cudaProfilerStart(); }
static inline CUresult cuProfilerStop(void) { return (CUresult)cudaProfilerStop(); }
