// What CUDA has without an include, beyond execution: mathematics and intrinsics.
#pragma once

#include "../vector_functions.h"

#include "../device_functions.h"
#include "../math_functions.h"
#ifdef __CUDACC__
#include "ptx.h"
#endif
