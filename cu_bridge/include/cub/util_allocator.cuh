// One of cub's public names.
#pragma once

// Programs count on what cub's own allocator brings.
#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "detail/device.cuh"
