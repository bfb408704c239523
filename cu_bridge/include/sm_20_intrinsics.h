// Its contents come with the CUDA runtime header.
#pragma once
#define __SM_20_INTRINSICS_H__

#include "cuda_runtime.h"
