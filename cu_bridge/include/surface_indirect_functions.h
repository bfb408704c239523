// Textures and surfaces: in one place.
#pragma once
#define __SURFACE_INDIRECT_FUNCTIONS_H__

#include "cuda_runtime.h"
