// Half precision: IEEE 754 binary16.
#pragma once
#define __CUDA_FP16_H__

typedef struct __attribute__((aligned(2))) __half_raw {
  unsigned short x;
} __half_raw;
typedef struct __attribute__((aligned(4))) __half2_raw {
  unsigned short x, y;
} __half2_raw;

#ifdef __cplusplus
#include <math.h>

#ifdef __CUDACC__
#include "cuda_runtime.h"
#endif
#include "mxmaca/arithmetic/integer_rounding.h"
#include "mxmaca/arithmetic/narrow_float.h"
#include "vector_functions.h"

#define MXMACA_N half
#define MXMACA_PLURAL __halves
#define MXMACA_T __half
#define MXMACA_T2 __half2
#define MXMACA_RAW __half_raw
#define MXMACA_RAW2 __half2_raw
#define MXMACA_FORMAT HalfFormat
#define MXMACA_BITS half_bits
#define MXMACA_VALUE half_value
#ifdef __CUDA_NO_HALF_CONVERSIONS__
#define MXMACA_CONVERSIONS 0
#else
#define MXMACA_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_HALF_OPERATORS__
#define MXMACA_OPERATORS 0
#else
#define MXMACA_OPERATORS 1
#endif
#if defined(__CUDA_NO_HALF2_OPERATORS__) || defined(__CUDA_NO_HALF_OPERATORS__)
#define MXMACA_OPERATORS2 0
#else
#define MXMACA_OPERATORS2 1
#endif
// In this order; apart, so that no tool sorts them.
#include "mxmaca/arithmetic/narrow_float_class.inc"

#include "mxmaca/arithmetic/narrow_float_functions.inc"

#include "mxmaca/arithmetic/narrow_float_end.inc"

#ifndef CUDA_NO_HALF
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
#endif

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7C00U))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7FFFU))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001U))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7BFFU))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000U))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000U))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3C00U))
#else
typedef __half_raw __half;
typedef __half2_raw __half2;
#endif
