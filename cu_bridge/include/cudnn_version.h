// The version of cuDNN that these headers describe.
#pragma once

#define CUDNN_MAJOR 9
#define CUDNN_MINOR 20
#define CUDNN_PATCHLEVEL 0
#define CUDNN_VERSION (CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL)
