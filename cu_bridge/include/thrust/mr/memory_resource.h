// One of thrust's public names; memory resources are in one place.
#pragma once

#include "../detail/memory_resources.h"
