// Errors of the device.
#pragma once

#include "../detail/policy.h"
