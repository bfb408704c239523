// One of cub's public names.
#pragma once

#include "util_type.cuh"
