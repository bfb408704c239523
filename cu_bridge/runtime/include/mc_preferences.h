// What programs set and read again, and nothing depends on: limits of a device, and how it shares out its caches. Both
// interfaces of CUDA have the same ones, in the same numbers.
#pragma once

#include "mc_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// limit: cudaLimit, or CUlimit.
MC_API mcError_t mcLimitGet(size_t* value, int limit);
MC_API mcError_t mcLimitSet(int limit, size_t value);

// cudaFuncCache, or CUfunc_cache.
MC_API int mcCacheConfigGet(void);
MC_API mcError_t mcCacheConfigSet(int config);

#ifdef __cplusplus
}
#endif
