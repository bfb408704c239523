// The name of the header before NVTX 3.
#pragma once

#include "nvtx3/nvToolsExt.h"
