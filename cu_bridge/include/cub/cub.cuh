// All of cub.
#pragma once

#include "config.cuh"
#include "util_type.cuh"
#include "detail/iterators.cuh"
#include "detail/order.cuh"
#include "detail/warp.cuh"
#include "detail/block.cuh"
#include "detail/device.cuh"
