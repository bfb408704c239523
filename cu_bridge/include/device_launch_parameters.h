// threadIdx and its kin, for files that ask for them by this name.
#pragma once

#include "cuda_runtime.h"
