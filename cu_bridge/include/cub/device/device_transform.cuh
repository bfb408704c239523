// One of cub's public names; the algorithms of the device are in one place.
#pragma once

#include "../detail/device.cuh"
