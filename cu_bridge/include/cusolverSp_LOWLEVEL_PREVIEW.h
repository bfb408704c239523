// cuSOLVER's sparse factorisations step by step: declared with the others.
#pragma once
#define CUSOLVERSP_LOWLEVEL_PREVIEW_H_
#include "cusolverSp.h"
