// mma.h, where CUDA has it too.
#pragma once

#include "../mma.h"
