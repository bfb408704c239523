// One of thrust's public names; the policies are in one place.
#pragma once

#include "detail/policy.h"
