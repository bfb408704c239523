// cuRAND's discrete distributions.
#pragma once
#define CURANDDISCRETE_H_

#include "mxmaca/curand_types.h"
