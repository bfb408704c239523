// cuComplex.h's functions on both sides against std::complex, the choices of nv/target, division that rounds up.
#include <crt/device_functions.h>
#include <crt/host_defines.h>
#include <crt/math_functions.h>
#include <cuComplex.h>

#include <complex>
#include <cuda/cmath>
#include <nv/target>

#include "../check.h"

struct __builtin_align__(16) Results {
  cuDoubleComplex sum, difference, product, quotient, fused, conjugate;
  double length;
};
struct ResultsFloat {
  cuFloatComplex sum, difference, product, quotient, fused, conjugate;
  float length;
};

__host__ __device__ Results all(cuDoubleComplex a, cuDoubleComplex b) {
  return {cuCadd(a, b), cuCsub(a, b), cuCmul(a, b), cuCdiv(a, b), cuCfma(a, b, a), cuConj(a), cuCabs(a)};
}
__host__ __device__ ResultsFloat all(cuFloatComplex a, cuFloatComplex b) {
  return {cuCaddf(a, b), cuCsubf(a, b), cuCmulf(a, b), cuCdivf(a, b), cuCfmaf(a, b, a), cuConjf(a), cuCabsf(a)};
}
__global__ void on_device(Results* out, ResultsFloat* narrow, cuDoubleComplex a, cuDoubleComplex b) {
  *out = all(a, b);
  *narrow = all(cuComplexDoubleToFloat(a), cuComplexDoubleToFloat(b));
}

template <class Value, class Wanted>
bool is_near(Value value, Wanted wanted, double limit) {
  return std::abs(std::complex<double>(value.x, value.y) - std::complex<double>(wanted)) <= limit * std::abs(wanted);
}
template <class All>
void compare(const All& r, std::complex<double> a, std::complex<double> b, double limit) {
  CHECK(is_near(r.sum, a + b, limit) && is_near(r.difference, a - b, limit));
  CHECK(is_near(r.product, a * b, limit) && is_near(r.quotient, a / b, limit));
  CHECK(is_near(r.fused, a * b + a, limit) && is_near(r.conjugate, std::conj(a), limit));
  CHECK(std::abs(r.length - std::abs(a)) <= limit * std::abs(a));
}

__host__ __device__ int side() {
  NV_IF_TARGET(NV_IS_DEVICE, (return 1;), (return 2;))
  return 0;
}
__host__ __device__ int dispatched() {
  NV_DISPATCH_TARGET(NV_PROVIDES_SM_90, (return 90;), NV_PROVIDES_SM_70, (return 70;), NV_IS_HOST, (return 1;));
  return 0;
}
__global__ void sides(int* out) {
  out[0] = side();
  out[1] = dispatched();
}

int main() {
  Results* wide;
  ResultsFloat* narrow;
  int* where;
  cudaMallocManaged(&wide, sizeof *wide);
  cudaMallocManaged(&narrow, sizeof *narrow);
  cudaMallocManaged(&where, 2 * sizeof *where);
  const double numbers[] = {3, -0.25, 0, 1e6, -7};
  for (const double x : numbers) {
    for (const double y : numbers) {
      const std::complex<double> a(x, 1.5), b(-2.25, y);
      on_device<<<1, 1>>>(wide, narrow, make_cuDoubleComplex(x, 1.5), make_cuDoubleComplex(-2.25, y));
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
      compare(*wide, a, b, 1e-13);
      compare(*narrow, a, b, 1e-5);
      compare(all(make_cuDoubleComplex(x, 1.5), make_cuDoubleComplex(-2.25, y)), a, b, 1e-13);
    }
  }
  const cuDoubleComplex large = cuCdiv(make_cuDoubleComplex(1e300, 1e300), make_cuDoubleComplex(2e300, 0));
  CHECK(large.x == 0.5 && large.y == 0.5 && cuCabs(make_cuDoubleComplex(3e200, 4e200)) < 5.1e200);
  CHECK(cuComplexFloatToDouble(make_cuComplex(1, 2)).y == 2);
  sides<<<1, 1>>>(where);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && where[0] == 1 && where[1] == 70);
  CHECK(side() == 2 && dispatched() == 1);
  static_assert(cuda::ceil_div(10, 4) == 3 && cuda::ceil_div(8u, 4) == 2 && cuda::round_up(9, 4) == 12, "");
  static_assert(cuda::round_down(11LL, 4) == 8 && cuda::ceil_div(0xffffffffU, 2U) == 0x80000000U, "");
  return summary();
}
