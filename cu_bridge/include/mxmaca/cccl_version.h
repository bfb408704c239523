// The version of the cub and thrust interface that belongs to the CUDA release: others choose their code by it.
#pragma once

#include "../mxmaca_cuda_version.h"

#if MXMACA_CUDA_MAJOR == 12
#define MXMACA_CCCL_VERSION 200200
#else
#define MXMACA_CCCL_VERSION 300000
#endif
