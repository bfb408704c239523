// One of cub's public names; the collectives of a block are in one place.
#pragma once

#include "../detail/block.cuh"
