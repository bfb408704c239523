// The current cuBLAS interface under its short name.
#pragma once

#include "cublas_v2.h"
