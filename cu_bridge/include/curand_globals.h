// Its contents come with the generators of device code.
#pragma once
#define CURAND_GLOBALS_H

#include "curand_kernel.h"
