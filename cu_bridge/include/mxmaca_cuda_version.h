// Which CUDA release these headers describe. MXMACA_CUDA_MAJOR chooses: 12 or 13 (default).
// The two differ in a few struct layouts and signatures, each marked at its place.
#pragma once

#ifndef MXMACA_CUDA_MAJOR
#define MXMACA_CUDA_MAJOR 13
#endif

#if MXMACA_CUDA_MAJOR == 12
#define CUDART_VERSION 12040
#elif MXMACA_CUDA_MAJOR == 13
#define CUDART_VERSION 13000
#else
#error "MXMACA_CUDA_MAJOR must be 12 or 13"
#endif

#define CUDA_VERSION CUDART_VERSION
