// Its contents come with the generators of device code.
#pragma once
#define CURAND_POISSON_H_

#include "curand_kernel.h"
