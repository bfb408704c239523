// One of thrust's public names; iterators of memory are in one place.
#pragma once

#include "is_contiguous_iterator.h"
