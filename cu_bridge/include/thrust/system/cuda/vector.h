// The vectors of the device.
#pragma once

#include "../../detail/vector.h"
