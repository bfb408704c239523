// math_functions.h, where CUDA has it too.
#pragma once

#include "../math_functions.h"
