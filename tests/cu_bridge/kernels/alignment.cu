// Variables of the device's begin where vectors may be read from them, whatever their own type asks for.
#include <cuda_fp16.h>

#include "case.h"

__device__ char device_byte = 1;
__device__ float device_table[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
__device__ char device_more = 2;
__constant__ short constant_table[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static __device__ unsigned char device_bytes[48];
__device__ constexpr float constexpr_table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__managed__ char managed_byte;
__managed__ float managed_table[6] = {0, 1, 2, 3, 4, 5};
__shared__ char outside_byte;
__shared__ float outside_table[5];

template <class T>
__device__ bool fits(const T* place, unsigned alignment) {
  return reinterpret_cast<unsigned long long>(place) % alignment == 0;
}

__global__ void where(int* out) {
  __shared__ char first;
  __shared__ float floats[33];
  __shared__ char second;
  __shared__ __half halves[7][9];
  __shared__ unsigned char bytes[3], more_bytes[5];
  volatile __shared__ short words[5];
  static __shared__ float fixed[3];
  __shared__ __align__(256) float asked[4];
  __shared__ float2 pair;
  __shared__ struct { char c[20]; } object;
  const bool all[] = {
      fits(&first, 16), fits(floats, 128), fits(&second, 16), fits(&halves[0][0], 128), fits(bytes, 128),
      fits(more_bytes, 128), fits(const_cast<const short*>(words), 128), fits(fixed, 128), fits(asked, 256),
      fits(&pair, 16), fits(&object, 16), fits(device_table, 128), fits(constant_table, 128), fits(device_bytes, 128),
      fits(constexpr_table, 16), fits(managed_table, 128), fits(outside_table, 128), fits(&outside_byte, 16)};
  const int count = sizeof all / sizeof all[0];
  if (threadIdx.x == 0) {
    first = second = outside_byte = char(threadIdx.x);
    bytes[0] = more_bytes[0] = device_byte;
    outside_table[0] = device_more + managed_byte;
    out[31] = count + int(outside_table[0]) * 0;
  }
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = all[i];
}
CASE(variables_begin_where_vectors_may_be_read) {
  Array<int> out(32);
  where<<<1, 4>>>(out.data());
  DONE();
  EXPECT(out.get()[31] == 18);
  for (int i = 0; i < 18; ++i) {
    if (out.get()[i] != 1) std::printf("  variable %d\n", i);
    EXPECT(out.get()[i] == 1);
  }
}

// The use: loads and stores of 16 bytes, which the processor refuses at another place. One barrier keeps threads on
// stacks, the other kernel runs in phases.
template <bool kStacks>
__device__ void tile_sum(const float* in, float* out) {
  __shared__ char shift;
  __shared__ float tile[36];
  const int t = threadIdx.x;
  if (t == 0) shift = 1;
  if (t < 9) reinterpret_cast<float4*>(tile)[t] = reinterpret_cast<const float4*>(in)[t];
  __syncthreads();
  if (t < 9) {
    const float4 four = reinterpret_cast<const float4*>(tile)[8 - t];
    out[t] = four.x + four.y + four.z + four.w + shift;
  }
}
__global__ void tile_on_stacks(const float* in, float* out) { tile_sum<true>(in, out); }
__global__ void tile_in_phases(const float* in, float* out) {
  __shared__ char shift;
  __shared__ float tile[36];
  const int t = threadIdx.x;
  if (t == 0) shift = 1;
  if (t < 9) reinterpret_cast<float4*>(tile)[t] = reinterpret_cast<const float4*>(in)[t];
  __syncthreads();
  if (t < 9) {
    out[t] = shift;
    out[t] += reinterpret_cast<const float4*>(tile)[8 - t].x + reinterpret_cast<const float4*>(tile)[8 - t].y;
    out[t] += reinterpret_cast<const float4*>(tile)[8 - t].z + reinterpret_cast<const float4*>(tile)[8 - t].w;
  }
}
CASE(vectors_are_read_from_shared_floats) {
  auto in = Array<float>::of(36, [](size_t i) { return float(i); });
  for (auto kernel : {tile_on_stacks, tile_in_phases}) {
    Array<float> out(9);
    kernel<<<1, 32>>>(in.data(), out.data());
    DONE();
    for (int t = 0; t < 9; ++t) EXPECT(out.get()[t] == 4 * (4 * (8 - t)) + 6 + 1);
  }
}

extern __shared__ char dynamic_outside[];
__global__ void dynamic_places(int* out) {
  extern __shared__ char inside[];
  out[0] = fits(inside, 128) && fits(static_cast<char*>(dynamic_outside), 128);
  out[1] = inside == static_cast<char*>(dynamic_outside);
  inside[0] = 1;
}
CASE(dynamic_shared_memory_begins_at_a_line_whatever_its_length) {
  for (int bytes : {1, 7, 16, 100, 127, 129, 1000, 48 << 10}) {
    Array<int> out(2);
    dynamic_places<<<2, 1, bytes>>>(out.data());
    DONE();
    EXPECT(out.get()[0] == 1 && out.get()[1] == 1);
  }
}

__global__ void vectors_of_tables(float4* out) {
  out[0] = reinterpret_cast<const float4*>(device_table)[1];
  out[1] = reinterpret_cast<const float4*>(constexpr_table)[1];
  out[2] = reinterpret_cast<const float4*>(managed_table)[0];
  *reinterpret_cast<int4*>(&out[3]) = reinterpret_cast<const int4*>(constant_table)[1];
}
CASE(vectors_are_read_from_tables) {
  Array<float4> out(4);
  vectors_of_tables<<<1, 1>>>(out.data());
  DONE();
  auto& v = out.get();
  EXPECT(v[0].x == 4 && v[0].w == 7 && v[1].x == 5 && v[1].w == 8 && v[2].y == 1 && v[2].w == 3);
  short words[8];
  std::memcpy(words, &v[3], sizeof words);
  for (int i = 0; i < 8; ++i) EXPECT(words[i] == 8 + i);
}
