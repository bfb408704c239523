// Starting and stopping a profiler.
#pragma once

#include "cuda_runtime_api.h"
