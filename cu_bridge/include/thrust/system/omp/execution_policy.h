// The policies of the host.
#pragma once

#include "../../detail/policy.h"
