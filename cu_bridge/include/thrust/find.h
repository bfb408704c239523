// One of thrust's public names; all algorithms are in one place.
#pragma once

#include "detail/algorithms.h"
