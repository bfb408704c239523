// Its contents come with the generators of device code.
#pragma once
#define CURAND_LOGNORMAL_H_

#include "curand_kernel.h"
