// The version of the cub interface.
#pragma once

#include "../mxmaca/versions/cccl.h"

#define CUB_VERSION MXMACA_CCCL_VERSION
#define CUB_MAJOR_VERSION (CUB_VERSION / 100000)
#define CUB_MINOR_VERSION (CUB_VERSION / 100 % 1000)
#define CUB_SUBMINOR_VERSION (CUB_VERSION % 100)
#define CUB_PATCH_NUMBER 0
