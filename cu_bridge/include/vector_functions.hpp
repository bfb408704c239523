// Its contents come with the CUDA runtime header.
#pragma once
#define __VECTOR_FUNCTIONS_HPP__

#include "vector_functions.h"
