// bfloat16: the upper half of IEEE 754 binary32.
#pragma once
#define __CUDA_BF16_H__

typedef struct __attribute__((aligned(2))) __nv_bfloat16_raw {
  unsigned short x;
} __nv_bfloat16_raw;
typedef struct __attribute__((aligned(4))) __nv_bfloat162_raw {
  unsigned short x, y;
} __nv_bfloat162_raw;

#ifdef __cplusplus
#include <math.h>

#ifdef __CUDACC__
#include "cuda_runtime.h"
#endif
#include "mxmaca/arithmetic/integer_rounding.h"
#include "mxmaca/arithmetic/narrow_float.h"
#include "vector_functions.h"

#define MXMACA_N bfloat16
#define MXMACA_PLURAL __halves
#define MXMACA_T __nv_bfloat16
#define MXMACA_T2 __nv_bfloat162
#define MXMACA_RAW __nv_bfloat16_raw
#define MXMACA_RAW2 __nv_bfloat162_raw
#define MXMACA_FORMAT BFloat16Format
#define MXMACA_BITS bfloat16_bits
#define MXMACA_VALUE bfloat16_value
#ifdef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define MXMACA_CONVERSIONS 0
#else
#define MXMACA_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_BFLOAT16_OPERATORS__
#define MXMACA_OPERATORS 0
#else
#define MXMACA_OPERATORS 1
#endif
#if defined(__CUDA_NO_BFLOAT162_OPERATORS__) || defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#define MXMACA_OPERATORS2 0
#else
#define MXMACA_OPERATORS2 1
#endif
// In this order; apart, so that no tool sorts them.
#include "mxmaca/arithmetic/narrow_float_class.inc"

#include "mxmaca/arithmetic/narrow_float_functions.inc"

#include "mxmaca/arithmetic/narrow_float_end.inc"

#ifndef CUDA_NO_BFLOAT16
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#endif

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7F80U))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7FFFU))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001U))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7F7FU))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000U))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000U))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3F80U))
#else
typedef __nv_bfloat16_raw __nv_bfloat16;
typedef __nv_bfloat162_raw __nv_bfloat162;
#endif
