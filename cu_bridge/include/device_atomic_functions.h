// Its contents come with the CUDA runtime header.
#pragma once
#define __DEVICE_ATOMIC_FUNCTIONS_H__

#include "cuda_runtime.h"
