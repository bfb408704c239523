// One of cub's public names; what a thread does is in one place.
#pragma once

#include "../detail/thread.cuh"
