// One of cub's public names.
#pragma once

#include "detail/device.cuh"
