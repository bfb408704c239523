// One of cub's public names; the iterators are in one place.
#pragma once

#include "../detail/iterators.cuh"
