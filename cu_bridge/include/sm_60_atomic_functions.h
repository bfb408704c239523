// Its contents come with the CUDA runtime header.
#pragma once

#include "cuda_runtime.h"
