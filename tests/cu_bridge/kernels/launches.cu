// The ways to launch a kernel.
#include "case.h"

#include <cooperative_groups.h>

#include <string>

__global__ void fill(int* out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
static __global__ void fill_static(int* out) { out[threadIdx.x] = 3; }
extern "C" __global__ void fill_c(int* out, short s, double d, char c) { out[threadIdx.x] = s + int(d) + c; }
namespace {
__global__ void fill_hidden(int* out, int) { out[threadIdx.x] = 9; }
}
__global__ void nothing() {}
__global__ void with_default(int* out, int value = 77) { out[threadIdx.x] = value; }

static bool all(Array<int>& x, int value) {
  for (int v : x.get())
    if (v != value) return false;
  return true;
}

CASE(launches_of_every_linkage) {
  Array<int> x(32);
  fill<<<1, 32>>>(x.data(), 5);
  EXPECT(all(x, 5));
  fill_static<<<1, 32>>>(x.data());
  EXPECT(all(x, 3));
  fill_c<<<1, 32>>>(x.data(), 1, 2.5, 'a');
  EXPECT(all(x, 100));
  fill_hidden<<<1, 32>>>(x.data(), 0);
  EXPECT(all(x, 9));
  with_default<<<1, 32>>>(x.data());
  EXPECT(all(x, 77));
  nothing<<<1, 1>>>();
  DONE();
}

struct Wide {
  double values[9];
};
__global__ void add_captured(int* x, Wide wide, short step) { x[threadIdx.x] += int(wide.values[8]) + step; }

CASE(launches_in_a_graph_keep_their_arguments) {
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  Array<int> x(32, 1);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  {
    Wide wide{};
    wide.values[8] = 20;
    add_captured<<<1, 32, 0, stream>>>(x.data(), wide, 3);
    wide.values[8] = 1000;
  }
  CUDA(cudaStreamEndCapture(stream, &graph));
  EXPECT(all(x, 1));
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphLaunch(exec, stream));
  EXPECT(all(x, 24));
  CUDA(cudaGraphLaunch(exec, stream));
  EXPECT(all(x, 47));
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
  DONE();
}

CASE(launches_on_streams) {
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  Array<int> x(64);
  fill<<<dim3(2, 1, 1), dim3(32, 1, 1), 0, stream>>>(x.data(), 4);
  CUDA(cudaStreamSynchronize(stream));
  EXPECT(all(x, 4));
  CUDA(cudaStreamDestroy(stream));
}

CASE(function_pointers_are_launched) {
  Array<int> x(32);
  void (*pointer)(int*, int) = fill;
  pointer<<<1, 32>>>(x.data(), 6);
  EXPECT(all(x, 6));
  void (*table[2])(int*, int) = {fill, fill_hidden};
  for (int i = 0; i < 2; ++i) {
    table[i]<<<1, 32>>>(x.data(), 1);
    EXPECT(all(x, i == 0 ? 1 : 9));
  }
  DONE();
}

CASE(argument_arrays_are_launched) {
  Array<int> x(32);
  int* pointer = x.data();
  int value = 8;
  void* arguments[] = {&pointer, &value};
  CUDA(cudaLaunchKernel((const void*)fill, dim3(1), dim3(32), arguments, 0, 0));
  EXPECT(all(x, 8));
  value = 9;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  CUDA(cudaLaunchKernelExC(&config, (const void*)fill, arguments));
  EXPECT(all(x, 9));
  CUDA(cudaLaunchKernelEx(&config, fill, x.data(), short(10)));
  EXPECT(all(x, 10));
}

template <class T, int N, class... Rest>
__global__ void __launch_bounds__(N * 2, 1) generic(T* out, Rest... rest) {
  T sum = N;
  int unused[] = {0, (sum += T(rest), 0)...};
  (void)unused;
  out[threadIdx.x] = sum;
}
template <>
__global__ void generic<int, 3>(int* out) {
  out[threadIdx.x] = -3;
}
template __global__ void generic<int, 16, int>(int*, int);
CASE(templates_packs_and_specialisations) {
  Array<int> x(32);
  generic<int, 16><<<1, 32>>>(x.data(), 1, 2.0f, 3L);
  EXPECT(all(x, 22));
  generic<int, 3><<<1, 32>>>(x.data());
  EXPECT(all(x, -3));
  generic<int, 16, int><<<1, 32>>>(x.data(), 5);
  EXPECT(all(x, 21));
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, generic<int, 16, int>));
  EXPECT(attributes.maxThreadsPerBlock == 32);
  generic<int, 16, int><<<1, 64>>>(x.data(), 5);
  EXPECT(cudaGetLastError() == cudaErrorLaunchOutOfResources);
}

template <class F>
__global__ void call(int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}
struct Add {
  int* x;
  int value;
  __device__ void operator()(int i) const { x[i] += value; }
};
CASE(functors_and_lambdas_as_arguments) {
  Array<int> x(100);
  int* data = x.data();
  call<<<4, 32>>>(100, Add{data, 5});
  int two = 2;
  call<<<4, 32>>>(100, [=] __device__(int i) { data[i] *= two; });
  auto third = [data] __host__ __device__(int i) { data[i] += 1; };
  call<<<4, 32>>>(100, third);
  DONE();
  EXPECT(all(x, 11));
}

#define LAUNCH(kernel, blocks, ...)                                       \
  do {                                                                    \
    const dim3 grid_(blocks);                                             \
    kernel<<<grid_, [&] { return 32u; }(), 0, nullptr>>>(__VA_ARGS__);    \
  } while (0)
#define DISPATCH(flag, ...) [&] { if (flag) { using T = int; return __VA_ARGS__(); } }()
CASE(launches_inside_macros_and_lambdas) {
  Array<int> x(64);
  LAUNCH(fill, 2, x.data(), 12);
  EXPECT(all(x, 12));
  DISPATCH(true, [&] {
    generic<T, 32><<<2, 32>>>(x.data(), T(1));
    fill<<<
        2,
        32
    >>>(x.data(),
        13);
  });
  EXPECT(all(x, 13));
  DONE();
}

struct Big {
  float values[60];
  int count;
};
__global__ void by_value(Big big, float* out, const Big* pointer) {
  float sum = 0;
  for (int i = 0; i < big.count; ++i) sum += big.values[i];
  big.values[0] = 1000;
  out[threadIdx.x] = sum + pointer->count;
}
CASE(structures_by_value) {
  Big big{};
  big.count = 60;
  for (int i = 0; i < 60; ++i) big.values[i] = i;
  Array<Big> device(1, big);
  Array<float> out(10);
  by_value<<<1, 10>>>(big, out.data(), device.data());
  DONE();
  for (float v : out.get()) EXPECT(v == 59 * 30 + 60);
}

__global__ void jacobi(float* a, float* b, int n, int rounds) {
  auto grid = cooperative_groups::this_grid();
  for (int r = 0; r < rounds; ++r) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
      b[i] = i == 0 || i == n - 1 ? a[i] : 0.5f * (a[i - 1] + a[i + 1]);
    }
    grid.sync();
    float* c = a;
    a = b;
    b = c;
  }
}
CASE(cooperative_launch_with_grid_sync) {
  const int n = 500;
  int rounds = 6, count = n;
  auto a = Array<float>::of(n, [](size_t i) { return float(i % 10); });
  Array<float> b(n);
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i % 10;
  for (int r = 0; r < rounds; ++r) {
    for (int i = 0; i < n; ++i) y[i] = i == 0 || i == n - 1 ? x[i] : 0.5f * (x[i - 1] + x[i + 1]);
    std::swap(x, y);
  }
  float *pa = a.data(), *pb = b.data();
  void* arguments[] = {&pa, &pb, &count, &rounds};
  CUDA(cudaLaunchCooperativeKernel((void*)jacobi, dim3(8), dim3(32), arguments, 0, 0));
  EXPECT(a.get() == x);
  EXPECT(cudaLaunchCooperativeKernel((void*)jacobi, dim3(1 << 20), dim3(32), arguments, 0, 0) ==
         cudaErrorCooperativeLaunchTooLarge);
  cudaGetLastError();
}

CASE(impossible_launches_fail_and_the_device_goes_on) {
  Array<int> x(32);
  fill<<<1, 1025>>>(x.data(), 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  fill<<<0, 32>>>(x.data(), 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  fill<<<dim3(1, 70000), 32>>>(x.data(), 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  fill<<<1, 32, 1 << 20>>>(x.data(), 1);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  fill<<<1, 32>>>(x.data(), 2);
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT(all(x, 2));
}

CASE(occupancy_of_a_kernel) {
  int blocks = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
  EXPECT(blocks == 8);
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 1024, 0));
  EXPECT(blocks == 2);
}

CASE(names_and_parameters_of_a_kernel) {
  const char* name = nullptr;
  CUDA(cudaFuncGetName(&name, fill_c));
  EXPECT(name != nullptr && std::string(name) == "fill_c");
  const size_t offsets[] = {0, 8, 16, 24}, sizes[] = {8, 2, 8, 1};
  for (size_t i = 0; i < 4; ++i) {
    size_t offset = 99, size = 0;
    CUDA(cudaFuncGetParamInfo(fill_c, i, &offset, &size));
    EXPECT(offset == offsets[i] && size == sizes[i]);
  }
  size_t offset = 0;
  EXPECT(cudaFuncGetParamInfo(fill_c, 4, &offset, nullptr) == cudaErrorInvalidValue);
  cudaGetLastError();
}
