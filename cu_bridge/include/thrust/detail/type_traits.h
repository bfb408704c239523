// One of thrust's public names; what iterators say about themselves is in one place.
#pragma once

#include "iterators.h"
