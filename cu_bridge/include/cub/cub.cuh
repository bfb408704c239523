// All of cub.
#pragma once

#include "config.cuh"
#include "detail/block.cuh"
#include "detail/device.cuh"
#include "detail/grid.cuh"
#include "detail/iterators.cuh"
#include "detail/order.cuh"
#include "detail/thread.cuh"
#include "detail/warp.cuh"
#include "util_allocator.cuh"
#include "util_type.cuh"
