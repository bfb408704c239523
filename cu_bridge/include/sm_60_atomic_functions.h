// Its contents come with the CUDA runtime header.
#pragma once
#define __SM_60_ATOMIC_FUNCTIONS_H__

#include "cuda_runtime.h"
