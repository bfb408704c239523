// One of thrust's public names; references are in one place.
#pragma once

#include "detail/pointer.h"
