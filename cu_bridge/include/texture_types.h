// Textures and surfaces: in one place.
#pragma once
#define __TEXTURE_TYPES_H__

#include "cuda_runtime.h"
