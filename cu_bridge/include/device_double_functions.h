// Its contents come with the CUDA runtime header.
#pragma once
#define __DEVICE_DOUBLE_FUNCTIONS_H__

#include "cuda_runtime.h"
