// Threads, blocks and how they are numbered.
#include "case.h"

__global__ void number(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * 2;
}
CASE(one_dimension_with_a_ragged_end) {
  Array<int> out(1003, -1);
  number<<<(1003 + 127) / 128, 128>>>(out.data(), 1000);
  DONE();
  auto& v = out.get();
  for (int i = 0; i < 1003; ++i) EXPECT(v[i] == (i < 1000 ? i * 2 : -1));
}

__global__ void number3(unsigned* out) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}
CASE(three_dimensions_of_blocks_and_threads) {
  dim3 grid(3, 2, 4), block(4, 3, 5);
  Array<unsigned> out(24 * 60);
  number3<<<grid, block>>>(out.data());
  DONE();
  auto& v = out.get();
  for (unsigned b = 0; b < 24; ++b)
    for (unsigned t = 0; t < 60; ++t) EXPECT(v[b * 60 + t] == b * 1000 + t);
}

__global__ void stride(float* x, int n, float a) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) x[i] *= a;
}
CASE(grid_stride_loop) {
  auto x = Array<float>::of(10007, [](size_t i) { return float(i); });
  stride<<<7, 96>>>(x.data(), 10007, 0.5f);
  DONE();
  auto& v = x.get();
  for (int i = 0; i < 10007; ++i) EXPECT(v[i] == i * 0.5f);
}

__global__ void transpose(const float* in, float* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) out[x * h + y] = in[y * w + x];
}
CASE(two_dimensions_with_ragged_ends) {
  const int w = 37, h = 53;
  auto in = Array<float>::of(w * h, [](size_t i) { return float(i); });
  Array<float> out(w * h);
  transpose<<<dim3((w + 15) / 16, (h + 7) / 8), dim3(16, 8)>>>(in.data(), out.data(), w, h);
  DONE();
  auto& v = out.get();
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) EXPECT(v[x * h + y] == y * w + x);
}

__device__ unsigned rank() { return threadIdx.x + blockIdx.x * blockDim.x; }
__device__ __noinline__ unsigned far_rank(unsigned* seen) {
  *seen = warpSize;
  return rank();
}
__global__ void from_functions(unsigned* out) {
  unsigned warp;
  unsigned r = far_rank(&warp);
  out[r] = r + warp;
}
CASE(indices_in_device_functions) {
  Array<unsigned> out(300);
  from_functions<<<3, 100>>>(out.data());
  DONE();
  auto& v = out.get();
  for (unsigned i = 0; i < 300; ++i) EXPECT(v[i] == i + 32);
}

__global__ void own_copies(int n, int* p, int* out) {
  n += threadIdx.x;
  p += threadIdx.x;
  *p = n;
  out[threadIdx.x] = n;
}
CASE(parameters_are_each_threads_own) {
  Array<int> p(64), out(64);
  own_copies<<<1, 64>>>(10, p.data(), out.data());
  DONE();
  auto& a = p.get();
  auto& b = out.get();
  for (int i = 0; i < 64; ++i) EXPECT(a[i] == 10 + i && b[i] == 10 + i);
}

__global__ void early(int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  for (int k = 0;; ++k) {
    if (k == i) {
      out[i] = k;
      return;
    }
  }
}
CASE(threads_return_early) {
  Array<int> out(128, -1);
  early<<<1, 128>>>(out.data(), 77);
  DONE();
  auto& v = out.get();
  for (int i = 0; i < 128; ++i) EXPECT(v[i] == (i < 77 ? i : -1));
}

__global__ void large_grid(unsigned char* out) { out[blockIdx.x] = static_cast<unsigned char>(blockIdx.x % 251); }
CASE(many_blocks_of_one_thread) {
  Array<unsigned char> out(100000);
  large_grid<<<100000, 1>>>(out.data());
  DONE();
  auto& v = out.get();
  for (int i = 0; i < 100000; ++i) EXPECT(v[i] == i % 251);
}
