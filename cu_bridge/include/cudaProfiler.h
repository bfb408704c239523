// The driver interface's switch for a profiler.
#pragma once

#include "cuda.h"

typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0x00, CU_OUT_CSV = 0x01 } CUoutput_mode;

#ifdef __cplusplus
extern "C" {
#endif
CUresult cuProfilerInitialize(const char* configFile, const char* outputFile, CUoutput_mode mode);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#ifdef __cplusplus
}  // extern "C"
#endif
