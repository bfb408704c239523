// host_defines.h, where CUDA has it too.
#pragma once

#include "../host_defines.h"
