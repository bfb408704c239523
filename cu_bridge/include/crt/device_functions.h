// device_functions.h, where CUDA has it too.
#pragma once

#include "../device_functions.h"
