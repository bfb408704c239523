// One of cub's public names; the collectives of a warp are in one place.
#pragma once

#include "../detail/warp.cuh"
