// cuDNN's recurrent networks, CTC loss and spatial transformers, which cudnn.h has as well.
#pragma once

#include "cudnn.h"
