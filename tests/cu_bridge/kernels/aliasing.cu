// Kernels that read memory through other types than it was written with, as CUDA code does everywhere.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <new>

#include "case.h"

__global__ void copy_out_of_words(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 words = reinterpret_cast<const uint4*>(in)[i];
  const float* const values = reinterpret_cast<float*>(&words);
  for (int k = 0; k < 4; ++k) out[4 * i + k] = values[k];
}
__global__ void copy_into_words(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 words = ((const uint4*)in)[i], copied;
  for (int k = 0; k < 4; ++k) ((float*)&copied)[k] = ((float*)&words)[k];
  ((uint4*)out)[i] = copied;
}
__global__ void copy_through_an_array(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  alignas(16) float values[4];
  *reinterpret_cast<uint4*>(values) = *reinterpret_cast<const uint4*>(in + 4 * i);
  for (int k = 0; k < 4; ++k) out[4 * i + k] = values[k];
}
CASE(a_vector_is_copied_by_words) {
  const int n = 1024;
  for (auto kernel : {copy_out_of_words, copy_into_words, copy_through_an_array}) {
    auto in = Array<float>::of(n, [](size_t i) { return float(i); });
    Array<float> out(n, -1);
    kernel<<<2, n / 8>>>(in.data(), out.data());
    DONE();
    for (int i = 0; i < n; ++i) EXPECT(out.get()[i] == float(i));
  }
}

// A row of halves is normalised, eight of them at a time as one word of 16 bytes.
template <class Half>
struct alignas(16) Eight {
  Half values[8];
};
template <class Half>
__device__ float widened(Half x);
template <>
__device__ float widened(__half x) { return __half2float(x); }
template <>
__device__ float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class Half>
__device__ Half narrowed(float x);
template <>
__device__ __half narrowed(float x) { return __float2half(x); }
template <>
__device__ __nv_bfloat16 narrowed(float x) { return __float2bfloat16(x); }

template <class Half>
__global__ void normalise(const Half* in, Half* out, int columns) {
  const uint4* const from = reinterpret_cast<const uint4*>(in + size_t(blockIdx.x) * columns);
  uint4* const to = reinterpret_cast<uint4*>(out + size_t(blockIdx.x) * columns);
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < columns / 8; i += 32) {
    uint4 word = from[i];
    const Half* const halves = reinterpret_cast<const Half*>(&word);
    for (int k = 0; k < 8; ++k) {
      const float v = widened(halves[k]);
      sum += v;
      squares += v * v;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  }
  const float mean = sum / columns, scale = rsqrtf(squares / columns - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < columns / 8; i += 32) {
    uint4 word = from[i];
    Half* const halves = reinterpret_cast<Half*>(&word);
    Eight<Half> result;
    for (int k = 0; k < 8; ++k) result.values[k] = narrowed<Half>((widened(halves[k]) - mean) * scale);
    to[i] = *reinterpret_cast<uint4*>(&result);
  }
}
template <class Half>
void check_normalise(Half (*narrow)(float), float (*widen)(Half), float tolerance) {
  const int rows = 5, columns = 512;
  auto in = Array<Half>::of(rows * columns, [&](size_t i) { return narrow(float(i * 37 % 101) / 16 - 3); });
  Array<Half> out(rows * columns, narrow(-7));
  normalise<<<rows, 32>>>(in.data(), out.data(), columns);
  DONE();
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int c = 0; c < columns; ++c) mean += widen(in[r * columns + c]) / columns;
    for (int c = 0; c < columns; ++c) variance += std::pow(widen(in[r * columns + c]) - mean, 2) / columns;
    for (int c = 0; c < columns; ++c) {
      const double wanted = (widen(in[r * columns + c]) - mean) / std::sqrt(variance + 1e-5);
      EXPECT(std::fabs(widen(out.get()[r * columns + c]) - wanted) < tolerance);
    }
  }
}
CASE(rows_of_halves_are_normalised_by_words) {
  check_normalise<__half>([](float x) { return __float2half(x); }, [](__half x) { return __half2float(x); }, 2e-3f);
}
CASE(rows_of_bfloat16_are_normalised_by_words) {
  check_normalise<__nv_bfloat16>([](float x) { return __float2bfloat16(x); },
                                 [](__nv_bfloat16 x) { return __bfloat162float(x); }, 2e-2f);
}

// Pairs: a half2 put together of two shorts, taken apart as an int; both ways, several times over the same bytes.
__global__ void pairs(const short* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half2 pair;
  reinterpret_cast<short*>(&pair)[0] = in[2 * i];
  reinterpret_cast<short*>(&pair)[1] = in[2 * i + 1];
  pair = __hadd2(pair, pair);
  int word = *reinterpret_cast<int*>(&pair);
  *reinterpret_cast<__half*>(&word) = __float2half(1.5f);
  out[i] = *(int*)&word;
}
CASE(halves_are_put_together_and_taken_apart) {
  const int n = 333;
  const auto bits = [](float x) {
    const __half half = __float2half(x);
    short word;
    std::memcpy(&word, &half, 2);
    return word;
  };
  auto in = Array<short>::of(2 * n, [&](size_t i) { return bits(float(i) / 4); });
  Array<int> out(n);
  pairs<<<(n + 63) / 64, 64>>>(in.data(), out.data(), n);
  DONE();
  for (int i = 0; i < n; ++i) {
    const unsigned high = static_cast<unsigned short>(bits(float(2 * i + 1) / 2));
    EXPECT(static_cast<unsigned>(out.get()[i]) == (high << 16 | static_cast<unsigned short>(bits(1.5f))));
  }
}

// The same bytes through four types in turn, in global, shared and local memory.
__global__ void several_types(double* data, unsigned* out) {
  __shared__ double shared[64];
  double local[2];
  const int t = threadIdx.x;
  float* const f = reinterpret_cast<float*>(data + t);
  f[0] = 1.0f;
  f[1] = 2.0f;
  reinterpret_cast<int*>(data + t)[0] += 1;
  shared[t] = data[t];
  reinterpret_cast<short*>(shared + t)[2] = 7;
  reinterpret_cast<float2*>(local)[0] = *reinterpret_cast<float2*>(shared + t);
  reinterpret_cast<unsigned char*>(local)[0] = 9;
  reinterpret_cast<unsigned long long*>(local)[1] = *reinterpret_cast<unsigned long long*>(local);
  const uint4 all = *reinterpret_cast<uint4*>(local);
  out[4 * t] = all.x;
  out[4 * t + 1] = all.y;
  out[4 * t + 2] = all.z;
  out[4 * t + 3] = all.w;
}
CASE(bytes_are_read_through_several_types) {
  Array<double> data(64);
  Array<unsigned> out(256);
  several_types<<<1, 64>>>(data.data(), out.data());
  DONE();
  for (int i = 0; i < 256; ++i) EXPECT(out.get()[i] == (i % 2 == 0 ? 0x3f800009u : 0x40000007u));
}

// What a __host__ __device__ function does to its bytes it does on both sides.
__host__ __device__ inline unsigned negated_bits(float x) {
  unsigned bits = 1;
  *reinterpret_cast<float*>(&bits) = x;
  bits ^= 0x80000000u;
  return bits;
}
__host__ __device__ inline void copied_words(const float* in, float* out, int i) {
  uint4 words = reinterpret_cast<const uint4*>(in)[i];
  const float* const values = reinterpret_cast<float*>(&words);
  for (int k = 0; k < 4; ++k) out[4 * i + k] = values[k];
}
__global__ void negated(unsigned* out) { out[threadIdx.x] = negated_bits(float(threadIdx.x)); }
CASE(functions_of_both_sides_read_other_types) {
  alignas(16) float from[256], to[256] = {};
  for (int i = 0; i < 256; ++i) from[i] = float(i);
  for (int i = 0; i < 64; ++i) copied_words(from, to, i);
  for (int i = 0; i < 256; ++i) EXPECT(to[i] == from[i]);
  Array<unsigned> out(64);
  negated<<<1, 64>>>(out.data());
  DONE();
  for (int i = 0; i < 64; ++i) {
    const float wanted = -float(i);
    unsigned bits;
    std::memcpy(&bits, &wanted, 4);
    EXPECT(out.get()[i] == bits);
    EXPECT(negated_bits(float(i)) == bits);
  }
}

// An object that is made where values are already, by a constructor that does nothing, has these values.
struct Vector {
  float x[4];
  __device__ Vector() {}
};
__global__ void made_in_place(float* data, float* out) {
  float4* const words = reinterpret_cast<float4*>(data) + threadIdx.x;
  *words = make_float4(1, 2, 3, 4);
  Vector* const vector = new (words) Vector;
  out[threadIdx.x] = vector->x[0] + vector->x[1] + vector->x[2] + vector->x[3];
}
CASE(an_object_made_over_values_has_them) {
  Array<float> data(64 * 4), out(64);
  made_in_place<<<1, 64>>>(data.data(), out.data());
  DONE();
  for (int i = 0; i < 64; ++i) EXPECT(out.get()[i] == 10.0f);
}

// The union of a loader: stored as an array of words, read as halves, after a barrier.
__global__ void through_shared(const __half* in, float* out, int n) {
  __shared__ uint2 tile[64];
  const int t = threadIdx.x;
  tile[t] = reinterpret_cast<const uint2*>(in)[t];
  __syncthreads();
  const __half* const halves = reinterpret_cast<const __half*>(tile);
  for (int i = t; i < n; i += blockDim.x) out[i] = __half2float(halves[n - 1 - i]);
  __syncthreads();
  reinterpret_cast<float*>(tile)[t] = 2 * out[t];
  __syncthreads();
  if (t < 32) out[n + t] = __uint_as_float(tile[t].x) + __uint_as_float(tile[t].y);
}
CASE(shared_words_are_read_as_halves) {
  const int n = 256;
  auto in = Array<__half>::of(n, [](size_t i) { return __float2half(float(i)); });
  Array<float> out(n + 32);
  through_shared<<<1, 64>>>(in.data(), out.data(), n);
  DONE();
  for (int i = 0; i < n; ++i) EXPECT(out.get()[i] == float(n - 1 - i));
  for (int i = 0; i < 32; ++i) EXPECT(out.get()[n + i] == 2 * float(n - 1 - 2 * i) + 2 * float(n - 2 - 2 * i));
}
