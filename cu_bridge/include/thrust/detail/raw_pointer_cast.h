// One of thrust's public names; pointers are in one place.
#pragma once

#include "pointer.h"
