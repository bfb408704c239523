// 2.1 defines it in a header that may be read once only, and reads it here.
#pragma once

#include <ATen/cuda/CUDAGeneratorImpl.h>
