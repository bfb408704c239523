// The older name of cuSPARSE's header.
#pragma once

#include "cusparse.h"
