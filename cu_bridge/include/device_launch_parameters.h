// threadIdx and its kin, for files that ask for them by this name.
#pragma once
#define __DEVICE_LAUNCH_PARAMETERS_H__

#include "cuda_runtime.h"
