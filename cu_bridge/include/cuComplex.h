// Complex numbers of CUDA's libraries, for C as well. Quotients and absolute values neither overflow nor underflow
// before their result does.
#pragma once
#define CU_COMPLEX_H_

#include <math.h>

#include "host_defines.h"
#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define MXMACA_COMPLEX static inline __host__ __device__

MXMACA_COMPLEX cuFloatComplex make_cuFloatComplex(float r, float i) {
  cuFloatComplex v = {r, i};
  return v;
}
MXMACA_COMPLEX float cuCrealf(cuFloatComplex v) { return v.x; }
MXMACA_COMPLEX float cuCimagf(cuFloatComplex v) { return v.y; }
MXMACA_COMPLEX cuFloatComplex cuConjf(cuFloatComplex v) { return make_cuFloatComplex(v.x, -v.y); }
MXMACA_COMPLEX cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x + b.x, a.y + b.y);
}
MXMACA_COMPLEX cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x - b.x, a.y - b.y);
}
MXMACA_COMPLEX cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
MXMACA_COMPLEX cuFloatComplex cuCdivf(cuFloatComplex a, cuFloatComplex b) {
  // By the larger part of the denominator, so that no square of it is formed.
  if (fabsf(b.x) >= fabsf(b.y)) {
    const float ratio = b.y / b.x, length = b.x + b.y * ratio;
    return make_cuFloatComplex((a.x + a.y * ratio) / length, (a.y - a.x * ratio) / length);
  }
  const float ratio = b.x / b.y, length = b.x * ratio + b.y;
  return make_cuFloatComplex((a.x * ratio + a.y) / length, (a.y * ratio - a.x) / length);
}
MXMACA_COMPLEX float cuCabsf(cuFloatComplex v) { return hypotf(v.x, v.y); }
MXMACA_COMPLEX cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) {
  return make_cuFloatComplex(fmaf(-a.y, b.y, fmaf(a.x, b.x, c.x)), fmaf(a.y, b.x, fmaf(a.x, b.y, c.y)));
}

MXMACA_COMPLEX cuDoubleComplex make_cuDoubleComplex(double r, double i) {
  cuDoubleComplex v = {r, i};
  return v;
}
MXMACA_COMPLEX double cuCreal(cuDoubleComplex v) { return v.x; }
MXMACA_COMPLEX double cuCimag(cuDoubleComplex v) { return v.y; }
MXMACA_COMPLEX cuDoubleComplex cuConj(cuDoubleComplex v) { return make_cuDoubleComplex(v.x, -v.y); }
MXMACA_COMPLEX cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x + b.x, a.y + b.y);
}
MXMACA_COMPLEX cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x - b.x, a.y - b.y);
}
MXMACA_COMPLEX cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
MXMACA_COMPLEX cuDoubleComplex cuCdiv(cuDoubleComplex a, cuDoubleComplex b) {
  // By the larger part of the denominator, so that no square of it is formed.
  if (fabs(b.x) >= fabs(b.y)) {
    const double ratio = b.y / b.x, length = b.x + b.y * ratio;
    return make_cuDoubleComplex((a.x + a.y * ratio) / length, (a.y - a.x * ratio) / length);
  }
  const double ratio = b.x / b.y, length = b.x * ratio + b.y;
  return make_cuDoubleComplex((a.x * ratio + a.y) / length, (a.y * ratio - a.x) / length);
}
MXMACA_COMPLEX double cuCabs(cuDoubleComplex v) { return hypot(v.x, v.y); }
MXMACA_COMPLEX cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) {
  return make_cuDoubleComplex(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}

MXMACA_COMPLEX cuComplex make_cuComplex(float r, float i) { return make_cuFloatComplex(r, i); }
MXMACA_COMPLEX cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex v) { return make_cuDoubleComplex(v.x, v.y); }
MXMACA_COMPLEX cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex v) {
  return make_cuFloatComplex((float)v.x, (float)v.y);
}

#undef MXMACA_COMPLEX
