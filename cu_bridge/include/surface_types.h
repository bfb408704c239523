// Textures and surfaces: in one place.
#pragma once
#define __SURFACE_TYPES_H__

#include "cuda_runtime.h"
