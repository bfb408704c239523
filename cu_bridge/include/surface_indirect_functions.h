// Textures and surfaces: in one place.
#pragma once

#include "cuda_runtime.h"
