// One of thrust's public names; the vectors are in one place.
#pragma once

#include "../../detail/vector.h"
