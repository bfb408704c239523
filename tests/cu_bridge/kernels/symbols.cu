// Variables of device code.
#include "case.h"

__device__ int initialised[4] = {1, 2, 3, 4};
__device__ int zero;
static __device__ float internal;
__constant__ float coefficients[8];
__constant__ struct {
  int a;
  double b;
} settings;
__managed__ int managed = 5;
static __managed__ float managed_array[3];
namespace deep {
namespace {
__device__ unsigned hidden_counter;
}
__device__ const int fixed[3] = {7, 8, 9};
}  // namespace deep

__global__ void read_initialised(int* out) { out[threadIdx.x] = initialised[threadIdx.x] + deep::fixed[threadIdx.x % 3]; }
CASE(initialised_device_variables) {
  Array<int> out(4);
  read_initialised<<<1, 4>>>(out.data());
  DONE();
  const int expected[] = {8, 10, 12, 11};
  for (int i = 0; i < 4; ++i) EXPECT(out.get()[i] == expected[i]);
}

__global__ void count() {
  atomicAdd(&zero, 1);
  atomicAdd(&internal, 0.5f);
  atomicAdd(&deep::hidden_counter, 2u);
}
CASE(device_variables_are_copied_from_and_to_the_host) {
  int z = 100;
  float f = 0;
  unsigned h = 0;
  CUDA(cudaMemcpyToSymbol(zero, &z, sizeof z));
  CUDA(cudaMemcpyToSymbol(internal, &f, sizeof f));
  CUDA(cudaMemcpyToSymbol(deep::hidden_counter, &h, sizeof h));
  count<<<3, 32>>>();
  DONE();
  CUDA(cudaMemcpyFromSymbol(&z, zero, sizeof z));
  CUDA(cudaMemcpyFromSymbol(&f, internal, sizeof f));
  CUDA(cudaMemcpyFromSymbol(&h, deep::hidden_counter, sizeof h));
  EXPECT(z == 196 && f == 48 && h == 192);
}

__global__ void polynomial(const float* x, float* y) {
  float v = 0;
  for (int i = 7; i >= 0; --i) v = v * x[threadIdx.x] + coefficients[i];
  y[threadIdx.x] = v + settings.a + settings.b;
}
CASE(constant_memory) {
  float c[8] = {1, 2, 0, 0, 3, 0, 0, 0};
  CUDA(cudaMemcpyToSymbol(coefficients, c, sizeof c));
  float changed = 4;
  CUDA(cudaMemcpyToSymbol(coefficients, &changed, sizeof changed, 4 * sizeof(float)));
  decltype(settings) s{3, 0.5};
  CUDA(cudaMemcpyToSymbol(settings, &s, sizeof s));
  auto x = Array<float>::of(16, [](size_t i) { return float(i) / 8; });
  Array<float> y(16);
  polynomial<<<1, 16>>>(x.data(), y.data());
  DONE();
  auto& v = y.get();
  for (int i = 0; i < 16; ++i) {
    float t = i / 8.0f;
    EXPECT(v[i] == 1 + t * (2 + t * t * t * 4) + 3.5f);
  }
}

__global__ void change_managed() {
  managed += 1;
  managed_array[2] = managed;
}
CASE(managed_variables_are_read_by_the_host) {
  managed = 41;
  change_managed<<<1, 1>>>();
  DONE();
  EXPECT(managed == 42 && managed_array[2] == 42.0f);
}

CASE(addresses_and_sizes_of_symbols) {
  size_t bytes = 0;
  CUDA(cudaGetSymbolSize(&bytes, coefficients));
  EXPECT(bytes == 32);
  void* address = nullptr;
  CUDA(cudaGetSymbolAddress(&address, initialised));
  int first = 0;
  CUDA(cudaMemcpy(&first, address, sizeof first, cudaMemcpyDefault));
  EXPECT(first == 1);
  int plain = 0;
  EXPECT(cudaMemcpyToSymbol(plain, &first, sizeof first) != cudaSuccess);
  cudaGetLastError();
  EXPECT(cudaMemcpyToSymbol(coefficients, &first, 4, 32) == cudaErrorInvalidValue);
  cudaGetLastError();
}

__device__ float square(float x) { return x * x; }
__device__ float cube(float x) { return x * x * x; }
typedef float (*Function)(float);
__device__ Function table[2] = {square, cube};
__global__ void call_table(float* x) { x[threadIdx.x] = table[threadIdx.x % 2](x[threadIdx.x]); }
CASE(tables_of_device_functions) {
  auto x = Array<float>::of(8, [](size_t i) { return float(i); });
  call_table<<<1, 8>>>(x.data());
  DONE();
  for (int i = 0; i < 8; ++i) EXPECT(x.get()[i] == (i % 2 ? i * i * i : i * i));
}
