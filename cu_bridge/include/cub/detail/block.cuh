// Collectives of a block. All threads put what they have into shared memory; after one barrier the first thread works
// it out, in the order of operations that cub has, and after another all read. One barrier costs a simulated block more
// than the work that would be saved by sharing it.
#pragma once

#include "block/exchange.cuh"
#include "block/neighbours.cuh"
#include "block/order.cuh"
#include "block/raking.cuh"
#include "block/runs.cuh"
#include "block/sums.cuh"

#undef MXMACA_BLOCK
