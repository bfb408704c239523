// One of thrust's public names; random numbers are in one place.
#pragma once

#include "../random.h"
