// Ten kernels as CUDA's textbooks have them, each beside a loop over the same values as a programmer writes it for the
// host with OpenMP. Prints, for each round, `name kernel-seconds loop-seconds`; the results of both are compared first.
//
//   familiar ROUNDS [NAME…]
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <vector>

namespace cg = cooperative_groups;
using std::vector;

// Processor time: it is the same whatever else the machine does.
static double now() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
#define DONE()                                                                                \
  do {                                                                                        \
    const cudaError_t error_ = cudaDeviceSynchronize();                                       \
    if (error_ != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error_)), std::exit(1); \
  } while (0)

template <class T>
static T* managed(size_t count) {
  T* pointer = nullptr;
  if (cudaMallocManaged(&pointer, count * sizeof(T)) != cudaSuccess) std::exit(2);
  return pointer;
}
static float sample(size_t i) { return static_cast<float>((i * 2654435761u >> 8) % 1000) / 1000; }
static float* samples(size_t count) {
  float* made = managed<float>(count);
  for (size_t i = 0; i < count; ++i) made[i] = sample(i);
  return made;
}

// ---- Product of matrices by tiles -----------------------------------------------------------------------------------
template <int kTile>
__global__ void product(float* c, const float* a, const float* b, int n) {
  const int tx = threadIdx.x, ty = threadIdx.y, first = n * kTile * blockIdx.y, last = first + n - 1;
  float sum = 0;
  for (int i = first, j = kTile * blockIdx.x; i <= last; i += kTile, j += kTile * n) {
    __shared__ float left[kTile][kTile];
    __shared__ float right[kTile][kTile];
    left[ty][tx] = a[i + n * ty + tx];
    right[ty][tx] = b[j + n * ty + tx];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[ty][k] * right[k][tx];
    __syncthreads();
  }
  c[n * kTile * blockIdx.y + kTile * blockIdx.x + n * ty + tx] = sum;
}

// ---- Transposition --------------------------------------------------------------------------------------------------
__global__ void transpose(float* out, const float* in, int n) {
  cg::thread_block block = cg::this_thread_block();
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * n + x];
  cg::sync(block);
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) out[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

// ---- Sum --------------------------------------------------------------------------------------------------------------
__global__ void reduction(float* out, const float* in, int n) {
  __shared__ float s[256];
  const int t = threadIdx.x, i = blockIdx.x * 512 + t;
  s[t] = (i < n ? in[i] : 0) + (i + 256 < n ? in[i + 256] : 0);
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// ---- Prefix sums of blocks (Hillis and Steele) --------------------------------------------------------------------
__global__ void scan(int* out, const int* in) {
  __shared__ int s[2][256];
  const int t = threadIdx.x;
  int from = 0;
  s[0][t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 1; k < 256; k <<= 1) {
    s[1 - from][t] = s[from][t] + (t >= k ? s[from][t - k] : 0);
    from = 1 - from;
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = s[from][t];
}

// ---- Histogram of bytes -------------------------------------------------------------------------------------------
__global__ void histogram(unsigned* bins, const unsigned char* in, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&s[in[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

// ---- Rows of a separable convolution ------------------------------------------------------------------------------
constexpr int kRadius = 8;
__constant__ float weights[2 * kRadius + 1];
__global__ void convolution(float* out, const float* in, int width) {
  __shared__ float s[4][64 + 2 * kRadius];
  const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
  s[threadIdx.y][threadIdx.x + kRadius] = in[y * width + x];
  if (threadIdx.x < kRadius) {
    s[threadIdx.y][threadIdx.x] = x >= kRadius ? in[y * width + x - kRadius] : 0;
    s[threadIdx.y][threadIdx.x + 64 + kRadius] = x + 64 < width ? in[y * width + x + 64] : 0;
  }
  __syncthreads();
  float sum = 0;
  for (int k = -kRadius; k <= kRadius; ++k) sum += weights[kRadius - k] * s[threadIdx.y][threadIdx.x + kRadius + k];
  out[y * width + x] = sum;
}

// ---- Forces between bodies ----------------------------------------------------------------------------------------
__device__ inline float4 pull(float4 sum, float4 one, float4 other) {
  const float x = other.x - one.x, y = other.y - one.y, z = other.z - one.z;
  const float squared = x * x + y * y + z * z + 0.01f, inverse = 1 / sqrtf(squared);
  const float factor = other.w * inverse * inverse * inverse;
  return make_float4(sum.x + x * factor, sum.y + y * factor, sum.z + z * factor, 0);
}
__global__ void bodies(float4* out, const float4* in, int n) {
  __shared__ float4 s[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 own = in[i];
  float4 sum = make_float4(0, 0, 0, 0);
  for (int tile = 0; tile < n; tile += 256) {
    s[threadIdx.x] = in[tile + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 256; ++k) sum = pull(sum, own, s[k]);
    __syncthreads();
  }
  out[i] = sum;
}

// ---- Prices of options -----------------------------------------------------------------------------------------------------
__host__ __device__ inline float normal(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__host__ __device__ inline float price(float stock, float strike, float years) {
  const float root = sqrtf(years), d = (logf(stock / strike) + 0.065f * years) / (0.3f * root);
  return stock * normal(d) - strike * expf(-0.02f * years) * normal(d - 0.3f * root);
}
__global__ void options(float* out, const float* stock, const float* strike, const float* years, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = price(stock[i] + 5, strike[i] + 5, years[i] + 0.2f);
}

// ---- Sorting of blocks by merging ---------------------------------------------------------------------------------
__device__ inline int below(int value, const int* list, int count, bool equal) {
  int first = 0, last = count;
  while (first < last) {
    const int middle = (first + last) / 2;
    if (list[middle] < value || (equal && list[middle] == value)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}
__global__ void merge_sort(int* data) {
  __shared__ int s[512];
  data += blockIdx.x * 512 + threadIdx.x;
  s[threadIdx.x] = data[0];
  s[threadIdx.x + 256] = data[256];
  for (int stride = 1; stride < 512; stride <<= 1) {
    const int place = threadIdx.x & (stride - 1);
    int* list = s + 2 * (threadIdx.x - place);
    __syncthreads();
    const int a = list[place], b = list[place + stride];
    const int to = below(a, list + stride, stride, false) + place, and_to = below(b, list, stride, true) + place;
    __syncthreads();
    list[to] = a;
    list[and_to] = b;
  }
  __syncthreads();
  data[0] = s[threadIdx.x];
  data[256] = s[threadIdx.x + 256];
}

// ---- Values of paths -------------------------------------------------------------------------------------------------------
__host__ __device__ inline unsigned stepped(unsigned state) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^ state << 5;
}
__global__ void paths(float* out, int count) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  unsigned state = (blockIdx.x * 256 + t) * 2654435761u + 1;
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    state = stepped(state);
    const float end = expf((state >> 8) * (1.0f / 16777216) - 0.5f);
    sum += end > 1 ? end - 1 : 0;
  }
  s[t] = sum;
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// ---- The loops --------------------------------------------------------------------------------------------------------------
// Their arrays lie apart, and they are told so.
#define APART __restrict__
static void loop_product(float* APART c, const float* APART a, const float* APART b, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  }
}
static void loop_transpose(float* APART out, const float* APART in, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i += 32)
    for (int j = 0; j < n; j += 32)
      for (int y = i; y < i + 32; ++y)
        for (int x = j; x < j + 32; ++x) out[x * n + y] = in[y * n + x];
}
static double loop_sum(const float* in, int n) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += in[i];
  return sum;
}
static void loop_scan(int* APART out, const int* APART in, int n) {
#pragma omp parallel for
  for (int block = 0; block < n; block += 256) {
    int sum = 0;
    for (int i = block; i < block + 256; ++i) out[i] = sum += in[i];
  }
}
static void loop_histogram(unsigned* APART bins, const unsigned char* APART in, int n) {
  unsigned total[256] = {};
#pragma omp parallel for reduction(+ : total[ : 256])
  for (int i = 0; i < n; ++i) ++total[in[i]];
  std::copy(total, total + 256, bins);
}
static void loop_convolution(float* APART out, const float* APART in, const float* APART kernel, int width,
                             int height) {
#pragma omp parallel for
  for (int y = 0; y < height; ++y) {
    vector<float> padded(width + 2 * kRadius);
    std::copy(in + y * width, in + (y + 1) * width, padded.begin() + kRadius);
    const float* APART row = padded.data();
    float* APART to = out + y * width;
    for (int x = 0; x < width; ++x) to[x] = 0;
    for (int k = 0; k <= 2 * kRadius; ++k)
      for (int x = 0; x < width; ++x) to[x] += kernel[2 * kRadius - k] * row[x + k];
  }
}
static void loop_bodies(float4* APART out, const float* APART x, const float* APART y, const float* APART z,
                        const float* APART w, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
    float sx = 0, sy = 0, sz = 0;
#pragma omp simd reduction(+ : sx, sy, sz)
    for (int j = 0; j < n; ++j) {
      const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
      const float inverse = 1 / std::sqrt(dx * dx + dy * dy + dz * dz + 0.01f);
      const float factor = w[j] * inverse * inverse * inverse;
      sx += dx * factor, sy += dy * factor, sz += dz * factor;
    }
    out[i] = make_float4(sx, sy, sz, 0);
  }
}
static void loop_options(float* APART out, const float* APART stock, const float* APART strike,
                         const float* APART years, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) out[i] = price(stock[i] + 5, strike[i] + 5, years[i] + 0.2f);
}
static void loop_paths(float* APART out, int blocks, int count) {
#pragma omp parallel for
  for (int block = 0; block < blocks; ++block) {
    float total = 0;
    for (int t = 0; t < 256; ++t) {
      unsigned state = (block * 256 + t) * 2654435761u + 1;
      for (int i = 0; i < count; ++i) {
        state = stepped(state);
        const float end = expf((state >> 8) * (1.0f / 16777216) - 0.5f);
        total += end > 1 ? end - 1 : 0;
      }
    }
    out[block] = total;
  }
}
static void loop_merge_sort(int* APART data, int n) {
#pragma omp parallel for
  for (int block = 0; block < n; block += 512) {
    int buffer[512], *from = data + block, *to = buffer;
    for (int stride = 1; stride < 512; stride *= 2) {
      for (int i = 0; i < 512; i += 2 * stride) {
        std::merge(from + i, from + i + stride, from + i + stride, from + i + 2 * stride, to + i);
      }
      std::swap(from, to);
    }
    if (from == buffer) std::copy(buffer, buffer + 512, data + block);
  }
}

// ---- The rounds ---------------------------------------------------------------------------------------------------------------
static int rounds;
static vector<const char*> wanted;

// `same` says whether the results of the two agree; it is asked once, before anything is measured.
static void measure(const char* name, const std::function<void()>& kernel, const std::function<void()>& loop,
                    const std::function<bool()>& same) {
  const auto named = [&](const char* one) { return std::strcmp(one, name) == 0; };
  if (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), named)) return;
  kernel();
  loop();
  if (!same()) std::printf("%s: the kernel and the loop differ\n", name), std::exit(1);
  for (int round = 0; round < rounds; ++round) {
    double times[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (round + turn) % 2;  // each is first in half of the rounds
      const double start = now();
      which == 0 ? kernel() : loop();
      times[which] = now() - start;
    }
    std::printf("%s %.9f %.9f\n", name, times[0], times[1]);
  }
}
static bool close(const float* a, const float* b, size_t count, double most = 1e-3) {
  for (size_t i = 0; i < count; ++i)
    if (!(std::fabs(a[i] - b[i]) <= most * (1 + std::fabs(b[i])))) return false;
  return true;
}

static void matrices() {
  constexpr int n = 512;
  float *a = samples(n * n), *b = samples(n * n), *c = managed<float>(n * n);
  vector<float> expected(n * n);
  measure(
      "matrixMul",
      [&] {
        product<32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(c, a, b, n);
        DONE();
      },
      [&] { loop_product(expected.data(), a, b, n); }, [&] { return close(c, expected.data(), expected.size()); });
  constexpr int m = 2048;
  float *in = samples(m * m), *out = managed<float>(m * m);
  vector<float> turned(m * m);
  measure(
      "transpose",
      [&] {
        transpose<<<dim3(m / 32, m / 32), dim3(32, 8)>>>(out, in, m);
        DONE();
      },
      [&] { loop_transpose(turned.data(), in, m); }, [&] { return close(out, turned.data(), turned.size(), 0); });
}

static void sums() {
  constexpr int n = 1 << 22, blocks = n / 512;
  float *in = samples(n), *out = managed<float>(blocks);
  double total = 0, expected = 0;
  measure(
      "reduction",
      [&] {
        reduction<<<blocks, 256>>>(out, in, n);
        DONE();
        total = std::accumulate(out, out + blocks, 0.0);
      },
      [&] { expected = loop_sum(in, n); }, [&] { return std::fabs(total - expected) < 1e-4 * expected; });
  int *numbers = managed<int>(n), *prefix = managed<int>(n);
  for (int i = 0; i < n; ++i) numbers[i] = i * 7 % 13;
  vector<int> sequential(n);
  measure(
      "scan",
      [&] {
        scan<<<n / 256, 256>>>(prefix, numbers);
        DONE();
      },
      [&] { loop_scan(sequential.data(), numbers, n); },
      [&] { return std::equal(sequential.begin(), sequential.end(), prefix); });
}

static void counts() {
  constexpr int n = 1 << 22;
  auto* in = managed<unsigned char>(n);
  for (int i = 0; i < n; ++i) in[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  unsigned* bins = managed<unsigned>(256);
  vector<unsigned> expected(256);
  measure(
      "histogram",
      [&] {
        std::memset(bins, 0, 1024);
        histogram<<<n / 256 / 16, 256>>>(bins, in, n);
        DONE();
      },
      [&] { loop_histogram(expected.data(), in, n); },
      [&] { return std::equal(expected.begin(), expected.end(), bins); });
}

static void images() {
  constexpr int width = 2048, height = 1024;
  float *in = samples(width * height), *out = managed<float>(width * height), kernel[2 * kRadius + 1];
  for (int k = 0; k <= 2 * kRadius; ++k) kernel[k] = 1.0f / (k + 2);
  cudaMemcpyToSymbol(weights, kernel, sizeof kernel);
  vector<float> expected(width * height);
  measure(
      "convolutionSeparable",
      [&] {
        convolution<<<dim3(width / 64, height / 4), dim3(64, 4)>>>(out, in, width);
        DONE();
      },
      [&] { loop_convolution(expected.data(), in, kernel, width, height); },
      [&] { return close(out, expected.data(), expected.size()); });
}

static void particles() {
  constexpr int n = 2048;
  auto *in = managed<float4>(n), *out = managed<float4>(n);
  for (int i = 0; i < n; ++i) in[i] = make_float4(sample(i), sample(i + n), sample(i + 2 * n), sample(i + 3 * n));
  vector<float> x(n), y(n), z(n), w(n);
  for (int i = 0; i < n; ++i) x[i] = in[i].x, y[i] = in[i].y, z[i] = in[i].z, w[i] = in[i].w;
  vector<float4> expected(n);
  measure(
      "nbody",
      [&] {
        bodies<<<n / 256, 256>>>(out, in, n);
        DONE();
      },
      [&] { loop_bodies(expected.data(), x.data(), y.data(), z.data(), w.data(), n); },
      [&] { return close(&out->x, &expected[0].x, 4 * n, 1e-2); });
}

static void finance() {
  constexpr int n = 1 << 20;
  float *stock = samples(n), *strike = samples(n), *years = samples(n), *out = managed<float>(n);
  vector<float> expected(n);
  measure(
      "BlackScholes",
      [&] {
        options<<<n / 256, 256>>>(out, stock, strike, years, n);
        DONE();
      },
      [&] { loop_options(expected.data(), stock, strike, years, n); }, [&] { return close(out, expected.data(), n); });
  constexpr int blocks = 64, count = 64;
  float* sums = managed<float>(blocks);
  vector<float> loops(blocks);
  measure(
      "MonteCarlo",
      [&] {
        paths<<<blocks, 256>>>(sums, count);
        DONE();
      },
      [&] { loop_paths(loops.data(), blocks, count); }, [&] { return close(sums, loops.data(), blocks, 1e-2); });
}

static void sorting() {
  constexpr int n = 1 << 20;
  int *data = managed<int>(n), *unsorted = managed<int>(n);
  for (int i = 0; i < n; ++i) unsorted[i] = static_cast<int>(i * 2654435761u >> 9);
  vector<int> expected(n);
  measure(
      "mergeSort",
      [&] {
        std::copy(unsorted, unsorted + n, data);
        merge_sort<<<n / 512, 256>>>(data);
        DONE();
      },
      [&] {
        std::copy(unsorted, unsorted + n, expected.begin());
        loop_merge_sort(expected.data(), n);
      },
      [&] { return std::equal(expected.begin(), expected.end(), data); });
}

int main(int count, char** words) {
  rounds = count > 1 ? std::atoi(words[1]) : 5;
  for (int i = 2; i < count; ++i) wanted.push_back(words[i]);
  matrices();
  sums();
  counts();
  images();
  particles();
  finance();
  sorting();
}
