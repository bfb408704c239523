// Complex numbers of CUDA's libraries.
#pragma once
#define CU_COMPLEX_H_

#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

static inline cuFloatComplex make_cuFloatComplex(float r, float i) {
  cuFloatComplex v = {r, i};
  return v;
}
static inline cuDoubleComplex make_cuDoubleComplex(double r, double i) {
  cuDoubleComplex v = {r, i};
  return v;
}
static inline cuComplex make_cuComplex(float r, float i) { return make_cuFloatComplex(r, i); }
static inline float cuCrealf(cuFloatComplex v) { return v.x; }
static inline float cuCimagf(cuFloatComplex v) { return v.y; }
static inline double cuCreal(cuDoubleComplex v) { return v.x; }
static inline double cuCimag(cuDoubleComplex v) { return v.y; }
