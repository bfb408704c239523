// Its contents come with the CUDA runtime header.
#pragma once
#define __SM_32_ATOMIC_FUNCTIONS_H__

#include "cuda_runtime.h"
