// One of thrust's public names; all iterators are in one place.
#pragma once

#include "../detail/iterators.h"
