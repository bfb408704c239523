// One of cub's public names; what concerns grids is in one place.
#pragma once

#include "../detail/grid.cuh"
