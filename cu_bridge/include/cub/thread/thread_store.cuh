// One of cub's public names.
#pragma once

#include "../detail/iterators.cuh"
