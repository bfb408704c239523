// One of thrust's public names; what returns at once is in one place.
#pragma once

#include "../detail/async.h"
