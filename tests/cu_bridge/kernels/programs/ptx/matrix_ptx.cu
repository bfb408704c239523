// ldmatrix, stmatrix, movmatrix and mma.sync in inline PTX, by the layouts that the PTX ISA documents.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../../check.h"

// A is 16 x 16 in rows, B 16 x 8 in rows (so its fragment is loaded transposed), C 16 x 8.
template <bool brain, class T>
__global__ void product(const T* a, const T* b, float* c) {
  __shared__ __align__(16) T left[16 * 16];
  __shared__ __align__(16) T right[16 * 8];
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 256; i += 32) left[i] = a[i];
  for (unsigned i = lane; i < 128; i += 32) right[i] = b[i];
  __syncthreads();
  uint32_t x[4], y[2];
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(&left[lane % 16 * 16 + lane / 16 * 8]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(at));
  // Without a space of memory the address is a plain one.
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.b16 {%0, %1}, [%2];"
               : "=r"(y[0]), "=r"(y[1])
               : "l"(&right[lane % 16 * 8]));
  float d[4] = {1, 1, 1, 1};
  if (brain) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
  for (unsigned i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

template <bool brain, class T, class Convert>
void check(Convert convert) {
  T *a, *b;
  float* c;
  cudaMallocManaged(&a, 256 * sizeof *a);
  cudaMallocManaged(&b, 128 * sizeof *b);
  cudaMallocManaged(&c, 128 * sizeof *c);
  for (int i = 0; i < 256; ++i) a[i] = convert(static_cast<float>(i * 7 % 11 - 5));
  for (int i = 0; i < 128; ++i) b[i] = convert(static_cast<float>(i * 5 % 13 - 6));
  product<brain><<<1, 32>>>(a, b, c);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) {
        sum += static_cast<float>(((row * 16 + k) * 7 % 11 - 5) * ((k * 8 + column) * 5 % 13 - 6));
      }
      CHECK(c[row * 8 + column] == sum);
    }
  }
}

// ---- Products of all shapes ----------------------------------------------------------------------------------------
// Elements are bits of `width` in 32-bit words; A is M x K in rows, B is K x 8 in rows. Registers are filled as the PTX
// ISA says: `each` elements in one, a row's (or a column's) beside each other.
template <int M, int K, int width>
__device__ void fill(const unsigned* a, const unsigned* b, unsigned* x, unsigned* y) {
  constexpr int each = 32 / width;
  const int group = threadIdx.x / 4, place = threadIdx.x % 4;
  for (int i = 0; i < M * K / 32; ++i) {
    const int word = i / each, row = group + (M == 16 ? 8 * (word % 2) : 0);
    const int column = place * each + i % each + (M == 16 ? word / 2 : word) * 4 * each;
    if (i % each == 0) x[word] = 0;
    x[word] |= a[row * K + column] << (width * (i % each) % 32);
  }
  for (int i = 0; i < K / 4; ++i) {
    const int word = i / each, row = place * each + i % each + word * 4 * each;
    if (i % each == 0) y[word] = 0;
    y[word] |= b[row * 8 + group] << (width * (i % each) % 32);
  }
}
template <int M, class T>
__device__ T* element(T* c, int i) {
  return c + (threadIdx.x / 4 + i / 2 * 8) * 8 + threadIdx.x % 4 * 2 + i % 2;
}

#define PRODUCT(name, M, K, width, T, letter, text)                                       \
  __global__ void name(const unsigned* a, const unsigned* b, T* c) {                      \
    unsigned x[4] = {}, y[2] = {};                                                        \
    fill<M, K, width>(a, b, x, y);                                                        \
    T d[4] = {};                                                                          \
    for (int i = 0; i < M / 4; ++i) d[i] = *element<M>(c, i);                             \
    asm volatile(text                                                                     \
                 : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3]) \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));     \
    for (int i = 0; i < M / 4; ++i) *element<M>(c, i) = d[i];                             \
  }
#define OF_FOUR " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#define OF_TWO " {%0, %1, %2, %3}, {%4, %5}, {%8}, {%0, %1, %2, %3};"
#define OF_ONE " {%0, %1}, {%4}, {%8}, {%0, %1};"
PRODUCT(s8_32, 16, 32, 8, int, "r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" OF_FOUR)
PRODUCT(s8_clamped, 16, 32, 8, int, "r", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32" OF_FOUR)
PRODUCT(s8_clamped_last, 16, 32, 8, int, "r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32.satfinite" OF_FOUR)
PRODUCT(u8_32, 16, 32, 8, int, "r", "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32" OF_FOUR)
PRODUCT(us8_32, 16, 32, 8, int, "r", "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32" OF_FOUR)
PRODUCT(s8_16, 16, 16, 8, int, "r", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32" OF_TWO)
PRODUCT(s8_8, 8, 16, 8, int, "r", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32" OF_ONE)
PRODUCT(s4_64, 16, 64, 4, int, "r", "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32" OF_FOUR)
PRODUCT(u4_32, 16, 32, 4, int, "r", "mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32" OF_TWO)
PRODUCT(s4_8, 8, 32, 4, int, "r", "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32" OF_ONE)
PRODUCT(bits_xor, 16, 256, 1, int, "r", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc" OF_FOUR)
PRODUCT(bits_and, 16, 128, 1, int, "r", "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc" OF_TWO)
PRODUCT(bits_8, 8, 128, 1, int, "r", "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc" OF_ONE)
PRODUCT(tf32_8, 16, 8, 32, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" OF_FOUR)
PRODUCT(tf32_4, 16, 4, 32, float, "f", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32" OF_TWO)
PRODUCT(half_8, 16, 8, 16, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" OF_TWO)
PRODUCT(brain_8, 16, 8, 16, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32" OF_TWO)
PRODUCT(half_16, 16, 16, 16, float, "f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" OF_FOUR)
PRODUCT(e4m3_32, 16, 32, 8, float, "f", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" OF_FOUR)
PRODUCT(e4m3_e5m2, 16, 32, 8, float, "f", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32" OF_FOUR)

// The value of an element by its bits, and bits for all of the values that a test wants.
static unsigned bits_of(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
static int byte(unsigned bits) { return static_cast<signed char>(bits); }
static int nibble(unsigned bits) { return static_cast<int>(bits ^ 8) - 8; }
static int plain(unsigned bits) { return static_cast<int>(bits); }
static float whole(unsigned bits) {
  bits &= 0xffffe000u;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
static float binary16(unsigned bits) { return __half2float(__half(__half_raw{static_cast<unsigned short>(bits)})); }
static float brain(unsigned bits) { return whole(bits << 16); }
// Small powers of two with a fraction: 0x38 is 1 in E4M3, 0x3c is 1 in E5M2.
static float e4m3(unsigned bits) {
  const float size = std::ldexp(1.0f + (bits & 7) / 8.0f, static_cast<int>(bits >> 3 & 15) - 7);
  return bits & 0x80 ? -size : size;
}
static float e5m2(unsigned bits) {
  const float size = std::ldexp(1.0f + (bits & 3) / 4.0f, static_cast<int>(bits >> 2 & 31) - 15);
  return bits & 0x80 ? -size : size;
}

enum Limit { wraps, clamps };
template <int M, int K, class T, class Left, class Right, class Values>
void compare(void (*kernel)(const unsigned*, const unsigned*, T*), Left left, Right right, Values values, T start,
             Limit limit = wraps, bool differing = false) {
  unsigned *a, *b;
  T* c;
  cudaMallocManaged(&a, M * K * sizeof *a);
  cudaMallocManaged(&b, 8 * K * sizeof *b);
  cudaMallocManaged(&c, M * 8 * sizeof *c);
  for (int i = 0; i < M * K; ++i) a[i] = values(i * 7 + i / 13, false);
  for (int i = 0; i < K * 8; ++i) b[i] = values(i * 5 + i / 11, true);
  for (int i = 0; i < M * 8; ++i) c[i] = start + static_cast<T>(i % 3);
  kernel<<<1, 32>>>(a, b, c);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  int wrong = 0;
  for (int row = 0; row < M; ++row) {
    for (int column = 0; column < 8; ++column) {
      double sum = static_cast<double>(start) + (row * 8 + column) % 3;
      for (int k = 0; k < K; ++k) {
        const auto x = left(a[row * K + k]);
        const auto y = right(b[k * 8 + column]);
        sum += differing ? x != y : static_cast<double>(x) * static_cast<double>(y);
      }
      if (limit == clamps) sum = std::min(std::max(sum, -2147483648.0), 2147483647.0);
      const T expected =
          std::is_same<T, int>::value ? static_cast<T>(static_cast<long long>(sum)) : static_cast<T>(sum);
      wrong += c[row * 8 + column] != expected;
    }
  }
  CHECK(wrong == 0);
  if (wrong != 0) std::printf("%d x 8 x %d: %d elements are wrong\n", M, K, wrong);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}

// ---- Doubles, half sums, quarters, stores and transposes -----------------------------------------------------------
__global__ void doubles(const double* a, const double* b, double* c, double* small) {
  const int group = threadIdx.x / 4, place = threadIdx.x % 4;
  double d[4], e[2] = {0.5, -0.5};
  for (int i = 0; i < 4; ++i) d[i] = i;
  // A 16 x 8, B 8 x 8
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[group * 8 + place]), "d"(a[(group + 8) * 8 + place]), "d"(a[group * 8 + place + 4]),
        "d"(a[(group + 8) * 8 + place + 4]), "d"(b[place * 8 + group]), "d"(b[(place + 4) * 8 + group]));
  for (int i = 0; i < 4; ++i) *element<16>(c, i) = d[i];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(e[0]), "+d"(e[1])
               : "d"(a[group * 8 + place]), "d"(b[place * 8 + group]));
  for (int i = 0; i < 2; ++i) *element<8>(small, i) = e[i];
}
void check_doubles() {
  double *a, *b, *c, *small;
  cudaMallocManaged(&a, 128 * sizeof *a);
  cudaMallocManaged(&b, 64 * sizeof *b);
  cudaMallocManaged(&c, 128 * sizeof *c);
  cudaMallocManaged(&small, 64 * sizeof *small);
  for (int i = 0; i < 128; ++i) a[i] = (i * 7 % 11 - 5) * 0.25;
  for (int i = 0; i < 64; ++i) b[i] = (i * 5 % 13 - 6) * 1048577.0;
  doubles<<<1, 32>>>(a, b, c, small);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      double sum = row / 8 * 2 + column % 2, four = column % 2 ? -0.5 : 0.5;
      for (int k = 0; k < 8; ++k) {
        if (k < 4) four += a[row * 8 + k] * b[k * 8 + column];
        sum += a[row * 8 + k] * b[k * 8 + column];
      }
      CHECK(c[row * 8 + column] == sum);
      CHECK(row >= 8 || small[row * 8 + column] == four);
    }
  }
}

// Four products of 8 x 4 by 4 x 8: threads 4 q to 4 q + 3, and those behind 16.
template <bool a_columns, bool b_columns>
__global__ void quarters(const __half* a, const __half* b, float* c) {
  const int own = threadIdx.x, quarter = own % 16 / 4, lower = own < 16 ? 0 : 4;
  unsigned x[2], y[2];
  for (int i = 0; i < 4; ++i) {
    const int row = (a_columns ? i : own % 4) + lower, column = a_columns ? own % 4 : i;
    reinterpret_cast<__half*>(x)[i] = a[quarter * 32 + row * 4 + column];
    const int k = b_columns ? i : own % 4, right = (b_columns ? own % 4 : i) + lower;
    reinterpret_cast<__half*>(y)[i] = b[quarter * 32 + k * 8 + right];
  }
  float d[8] = {2, 2, 2, 2, 2, 2, 2, 2};
#define QUARTERS(left, right)                                                                                   \
  asm volatile("mma.sync.aligned.m8n8k4." left "." right                                                        \
               ".f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, " \
               "%5, %6, %7};"                                                                                   \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) \
               : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]))
  if (a_columns) {
    if (b_columns) {
      QUARTERS("col", "col");
    } else {
      QUARTERS("col", "row");
    }
  } else if (b_columns) {
    QUARTERS("row", "col");
  } else {
    QUARTERS("row", "row");
  }
  for (int i = 0; i < 8; ++i) {
    const int row = (own & 1) + (i & 2) + lower, column = (i & 4) + (own & 2) + (i & 1);
    c[quarter * 64 + row * 8 + column] = d[i];
  }
}
template <bool a_columns, bool b_columns>
void check_quarters() {
  __half *a, *b;
  float* c;
  cudaMallocManaged(&a, 128 * sizeof *a);
  cudaMallocManaged(&b, 128 * sizeof *b);
  cudaMallocManaged(&c, 256 * sizeof *c);
  for (int i = 0; i < 128; ++i) a[i] = __float2half(i * 7 % 11 - 5);
  for (int i = 0; i < 128; ++i) b[i] = __float2half(i * 5 % 13 - 6);
  quarters<a_columns, b_columns><<<1, 32>>>(a, b, c);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 256; ++i) {
    float sum = 2;
    for (int k = 0; k < 4; ++k) {
      sum += __half2float(a[i / 64 * 32 + i % 64 / 8 * 4 + k]) * __half2float(b[i / 64 * 32 + k * 8 + i % 8]);
    }
    CHECK(c[i] == sum);
  }
}

// Sums in half; matrices stored as they were loaded, and transposed.
__global__ void halves_and_stores() {
  __shared__ __align__(16) unsigned short from[4 * 64];
  __shared__ __align__(16) unsigned short to[4 * 64];
  const unsigned i = threadIdx.x;
  for (unsigned k = 0; k < 8; ++k) from[8 * i + k] = static_cast<unsigned short>(1000 + 8 * i + k);
  __syncthreads();
  unsigned w[4], t;
  const unsigned source = static_cast<unsigned>(__cvta_generic_to_shared(&from[8 * i]));
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(&to[8 * i]));
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
               : "r"(source));
  EXPECT(w[2] == ((1000 + 128 + 2 * i) | (1001 + 128 + 2 * i) << 16));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target), "r"(w[3]), "r"(w[2]),
               "r"(w[1]), "r"(w[0])
               : "memory");
  __syncthreads();
  for (unsigned k = 0; k < 8; ++k) EXPECT(to[8 * i + k] == from[(3 - i / 8) * 64 + i % 8 * 8 + k]);
  __syncthreads();
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(target), "r"(w[0]), "r"(w[1])
               : "memory");
  __syncthreads();
  if (i < 16) {
    for (unsigned k = 0; k < 8; ++k) EXPECT(to[8 * i + k] == from[i / 8 * 64 + k * 8 + i % 8]);
  }
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(w[1]));
  const unsigned row = i / 4, column = 2 * (i % 4);
  EXPECT(t == (from[64 + column * 8 + row] | static_cast<unsigned>(from[64 + (column + 1) * 8 + row]) << 16));
  // Every element of A is 3 and of B -2: 16 products, or 8, and c = 1 and 2.
  unsigned d[2];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %2, %2, %2}, {%3, %3}, {%4, %4};"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(0x42004200u), "r"(0xc000c000u), "r"(0x40003c00u));
  EXPECT(d[0] == 0xd5e0d5f0u && d[1] == d[0]);  // -94 above -95
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %2}, {%3}, {%4, %4};"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(0x42004200u), "r"(0xc000c000u), "r"(0x40003c00u));
  EXPECT(d[0] == 0xd1c0d1e0u && d[1] == d[0]);  // -46 above -47
}

int main() {
  const auto bytes = [](int i, bool) { return static_cast<unsigned>(i * 37 + 128) & 255; };
  const auto nibbles = [](int i, bool) { return static_cast<unsigned>(i * 11 + 8) & 15; };
  const auto single = [](int i, bool) { return static_cast<unsigned>(i * i / 3) & 1; };
  compare<16, 32>(s8_32, byte, byte, bytes, -7);
  compare<16, 32>(s8_32, byte, byte, bytes, 2147483640);
  compare<16, 32>(s8_clamped, byte, byte, bytes, 2147483640, clamps);
  compare<16, 32>(s8_clamped, byte, byte, bytes, -2147483640, clamps);
  compare<16, 32>(s8_clamped_last, byte, byte, bytes, 2147483640, clamps);
  compare<16, 32>(u8_32, plain, plain, bytes, 3);
  compare<16, 32>(us8_32, plain, byte, bytes, 3);
  compare<16, 16>(s8_16, byte, byte, bytes, -7);
  compare<8, 16>(s8_8, byte, byte, bytes, 9);
  compare<16, 64>(s4_64, nibble, nibble, nibbles, -7);
  compare<16, 32>(u4_32, plain, plain, nibbles, 1);
  compare<8, 32>(s4_8, nibble, nibble, nibbles, 1);
  compare<16, 256>(bits_xor, plain, plain, single, 5, wraps, true);
  compare<16, 128>(bits_and, plain, plain, single, 5);
  compare<8, 128>(bits_8, plain, plain, single, 5, wraps, true);
  // Low bits of the fraction, which no product sees.
  const auto floats = [](int i, bool) { return bits_of(static_cast<float>(i % 17 - 8) * 0.5f) | 0x1fff; };
  compare<16, 8>(tf32_8, whole, whole, floats, 0.5f);
  compare<16, 4>(tf32_4, whole, whole, floats, -0.5f);
  const auto halves = [](int i, bool) {
    return bits_of(static_cast<float>(i % 17 - 8)) == 0 ? 0u : 0x3c00u | (i % 2) << 15 | (i % 5) << 8;
  };
  compare<16, 8>(half_8, binary16, binary16, halves, 0.5f);
  compare<16, 16>(half_16, binary16, binary16, halves, 0.5f);
  const auto brains = [](int i, bool) { return 0x3f80u | (i % 2) << 15 | (i % 5) << 5; };
  compare<16, 8>(brain_8, brain, brain, brains, 0.5f);
  const auto small = [](int i, bool second) { return (second ? 0x3cu : 0x38u) | (i % 2) << 7 | (i % 4); };
  compare<16, 32>(e4m3_32, e4m3, e4m3, [](int i, bool) { return 0x38u | (i % 2) << 7 | (i % 8); }, 0.5f);
  compare<16, 32>(e4m3_e5m2, e4m3, e5m2, small, 0.5f);
  check_doubles();
  check_quarters<false, false>();
  check_quarters<false, true>();
  check_quarters<true, false>();
  check_quarters<true, true>();
  halves_and_stores<<<1, 32>>>();
  check<false, __half>([](float x) { return __float2half(x); });
  check<true, __nv_bfloat16>([](float x) { return __float2bfloat16(x); });
  return summary();
}
