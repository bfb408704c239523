// One of thrust's public names; iterators that programs write are in one place.
#pragma once

#include "../detail/iterator_facade.h"
