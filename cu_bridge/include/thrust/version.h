// The version of the thrust interface.
#pragma once

#include "detail/config.h"
