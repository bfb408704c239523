// The functions of `libbitsandbytes_cuda*.so` that bitsandbytes' Python calls through ctypes, for the simulated device.
// `python -m mxmaca bitsandbytes` compiles this file into the installed package. Names and parameters are those of
// its backends/cuda/ops.py. A thread owns a whole block of values, so no kernel waits for another thread.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

namespace {

constexpr int kThreads = 64;
// States of the 8-bit optimizers share one scale in so many values.
constexpr int kStateBlock = 256;
// Values that one thread adds up for the norm of an update.
constexpr int kNormChunk = 4096;

// Quantiles of the normal distribution, as the paper of QLoRA gives them.
__device__ const float kNormalFloat[16] = {-1.0f,
                                           -0.6961928009986877f,
                                           -0.5250730514526367f,
                                           -0.39491748809814453f,
                                           -0.28444138169288635f,
                                           -0.18477343022823334f,
                                           -0.09105003625154495f,
                                           0.0f,
                                           0.07958029955625534f,
                                           0.16093020141124725f,
                                           0.24611230194568634f,
                                           0.33791524171829224f,
                                           0.44070982933044434f,
                                           0.5626170039176941f,
                                           0.7229568362236023f,
                                           1.0f};
// A sign, two bits of exponent and one of mantissa: twelfths, with 0.0625 for the subnormal one.
__device__ const float kFloat4[16] = {0.0f,       0.0625f / 12, 8.0f / 12,  1.0f,          4.0f / 12,  6.0f / 12,
                                      2.0f / 12,  3.0f / 12,    -0.0f,      -0.0625f / 12, -8.0f / 12, -1.0f,
                                      -4.0f / 12, -6.0f / 12,   -2.0f / 12, -3.0f / 12};
// Codes of kFloat4 without their sign, in the order of their values.
__device__ const unsigned char kFloat4Order[8] = {0, 1, 6, 7, 4, 5, 2, 3};

enum Kind { kTable = 0, kFp4 = 1, kNf4 = 2 };
enum Optimizer { kMomentum, kRmsprop, kAdagrad, kAdam, kLion, kAdemamix };

__device__ float wide(float value) { return value; }
__device__ float wide(__half value) { return __half2float(value); }
__device__ float wide(__nv_bfloat16 value) { return __bfloat162float(value); }
template <typename T>
__device__ T narrow(float value);
template <>
__device__ float narrow<float>(float value) {
  return value;
}
template <>
__device__ __half narrow<__half>(float value) {
  return __float2half(value);
}
template <>
__device__ __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}

// The nearest of `count` ascending codes; of two equally near ones the lower.
__device__ int nearest(const float* codes, int count, float value) {
  int low = 0, high = count - 1;
  while (low < high) {
    int middle = (low + high) / 2;
    if (value > (codes[middle] + codes[middle + 1]) / 2)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__device__ int nearest_float4(float value) {
  int at = 0;
  while (at < 7 && fabsf(value) > (kFloat4[kFloat4Order[at]] + kFloat4[kFloat4Order[at + 1]]) / 2) at++;
  return kFloat4Order[at] | (value < 0 ? 8 : 0);
}

__device__ float of_four_bits(int kind, int code) { return kind == kFp4 ? kFloat4[code] : kNormalFloat[code]; }

template <typename T>
__global__ void quantize(int kind, const float* code, const T* values, float* absmax, unsigned char* out, int block,
                         int64_t count) {
  int64_t index = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, begin = index * block;
  if (begin >= count) return;
  int64_t end = begin + block < count ? begin + block : count;
  float largest = 0;
  for (int64_t i = begin; i < end; i++) largest = fmaxf(largest, fabsf(wide(values[i])));
  absmax[index] = largest;
  float scale = 1.0f / fmaxf(largest, 1e-38f);
  if (kind == kTable) {
    for (int64_t i = begin; i < end; i++)
      out[i] = nearest(code, 256, fminf(fmaxf(wide(values[i]) * scale, -1.0f), 1.0f));
    return;
  }
  for (int64_t i = begin; i < end; i += 2) {
    int both[2];
    for (int half = 0; half < 2; half++) {
      float value = i + half < end ? fminf(fmaxf(wide(values[i + half]) * scale, -1.0f), 1.0f) : 0.0f;
      both[half] = kind == kFp4 ? nearest_float4(value) : nearest(kNormalFloat, 16, value);
    }
    out[i / 2] = both[0] << 4 | both[1];
  }
}

template <typename T>
__global__ void dequantize(int kind, const float* code, const unsigned char* values, const float* absmax, T* out,
                           int block, int64_t count) {
  int64_t index = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, begin = index * block;
  if (begin >= count) return;
  int64_t end = begin + block < count ? begin + block : count;
  for (int64_t i = begin; i < end; i++) {
    float value =
        kind == kTable ? code[values[i]] : of_four_bits(kind, i % 2 ? values[i / 2] & 15 : values[i / 2] >> 4);
    out[i] = narrow<T>(value * absmax[index]);
  }
}

// out[m, n] = sum over k of a[m, k] * weight[n, k], a thread for each n. Weights are rounded to T, as a linear layer of
// dequantized ones has them. `code` stands for the table of `kind` where it is given.
template <typename T>
__global__ void multiply_four_bits(int kind, const float* code, const T* a, const unsigned char* b, const float* absmax,
                                   const unsigned char* absmax8, const float* absmax_code, const float* offset, T* out,
                                   const T* bias, int rows, int columns, int depth, int stride, int block) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= columns) return;
  for (int m = 0; m < rows; m++) {
    float sum = 0;
    for (int k = 0; k < depth; k++) {
      int64_t at = int64_t(n) * stride + k;
      int bits = at % 2 ? b[at / 2] & 15 : b[at / 2] >> 4;
      int64_t of = at / block;
      float scale = absmax8 ? absmax_code[absmax8[of]] * absmax[of / 256] + *offset : absmax[of];
      sum += wide(a[int64_t(m) * depth + k]) * wide(narrow<T>((code ? code[bits] : of_four_bits(kind, bits)) * scale));
    }
    out[int64_t(m) * columns + n] = narrow<T>(sum + (bias ? wide(bias[n]) : 0.0f));
  }
}

__global__ void quantize_rows(const __half* values, signed char* out, float* stats, float threshold, int rows,
                              int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const __half* mine = values + int64_t(row) * columns;
  float largest = 0;
  for (int i = 0; i < columns; i++) {
    float size = fabsf(wide(mine[i]));
    if (threshold <= 0 || size < threshold) largest = fmaxf(largest, size);
  }
  stats[row] = largest;
  float scale = largest > 0 ? 127.0f / largest : 0.0f;
  for (int i = 0; i < columns; i++) {
    float value = wide(mine[i]);
    bool outlier = threshold > 0 && fabsf(value) >= threshold;
    out[int64_t(row) * columns + i] = outlier ? 0 : static_cast<signed char>(rintf(value * scale));
  }
}

__global__ void dequantize_product(const int* values, const float* rows, const float* columns, __half* out,
                                   const __half* bias, int height, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= height) return;
  for (int i = 0; i < width; i++) {
    int64_t at = int64_t(row) * width + i;
    float value = values[at] * (rows[row] * columns[i]) * (1.0f / (127.0f * 127.0f));
    out[at] = narrow<__half>(value + (bias ? wide(bias[i]) : 0.0f));
  }
}

// c[j, i] = sum over k of a[i, k] * b[j, k], exactly, for m values of i and n of j.
__global__ void multiply_int8(int m, int n, int k, const signed char* a, const signed char* b, int* c, int lda, int ldb,
                              int ldc) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  for (int j = 0; j < n; j++) {
    int sum = 0;
    for (int at = 0; at < k; at++) sum += a[int64_t(i) * lda + at] * b[int64_t(j) * ldb + at];
    c[int64_t(j) * ldc + i] = sum;
  }
}

struct Settings {
  float max_norm, parameter_norm, beta1, beta2, beta3, alpha, eps, decay;
  int step;
  float rate, scale;
  bool skip_zeros;
};

// The states behind gradient `g`, and the update that an optimizer with them makes; decay of Adam, Lion and AdEMAMix
// is not in it.
__device__ float advance(int kind, const Settings& s, float g, float& first, float& second, float& slow) {
  float one = 1.0f - powf(s.beta1, s.step), two = sqrtf(1.0f - powf(s.beta2, s.step));
  switch (kind) {
    case kMomentum: first = s.step == 1 ? g : first * s.beta1 + g; return -s.rate * first;
    case kRmsprop: first = first * s.beta1 + (1.0f - s.beta1) * g * g; return -s.rate * g / (sqrtf(first) + s.eps);
    case kAdagrad: first = first + g * g; return -s.rate * g / (sqrtf(first) + s.eps);
    case kLion: {
      float mixed = first * s.beta1 + (1.0f - s.beta1) * g;
      first = first * s.beta2 + (1.0f - s.beta2) * g;
      return mixed > 0 ? -s.rate : mixed < 0 ? s.rate : 0.0f;
    }
    case kAdam:
      first = first * s.beta1 + (1.0f - s.beta1) * g;
      second = second * s.beta2 + (1.0f - s.beta2) * g * g;
      return -s.rate * two / one * (first / (sqrtf(second) + s.eps * two));
    default:
      first = first * s.beta1 + (1.0f - s.beta1) * g;
      slow = slow * s.beta3 + (1.0f - s.beta3) * g;
      second = second * s.beta2 + (1.0f - s.beta2) * g * g;
      return -s.rate * ((first / one + s.alpha * slow) / (sqrtf(second) / two + s.eps));
  }
}

__device__ bool coupled(int kind) { return kind == kMomentum || kind == kRmsprop || kind == kAdagrad; }

// Adds the square of what an update would be to *norm: what LAMB and LARS compare with the parameter's norm.
template <typename T>
__global__ void update_norm(int kind, Settings s, const T* gradient, const float* first, const float* second,
                            float* norm, int64_t count) {
  int64_t begin = (blockIdx.x * int64_t(blockDim.x) + threadIdx.x) * kNormChunk;
  if (begin >= count) return;
  int64_t end = begin + kNormChunk < count ? begin + kNormChunk : count;
  float sum = 0;
  for (int64_t i = begin; i < end; i++) {
    float g = s.scale * wide(gradient[i]), one = first[i], two = second ? second[i] : 0.0f;
    if (kind == kAdam) {
      one = (one * s.beta1 + (1.0f - s.beta1) * g) / (1.0f - powf(s.beta1, s.step));
      two = (two * s.beta2 + (1.0f - s.beta2) * g * g) / (1.0f - powf(s.beta2, s.step));
      one = one / (sqrtf(two) + s.eps);
      sum += one * one;
    } else if (kind == kMomentum) {
      one = s.step == 1 ? g : one * s.beta1 + g;
      sum += one * one;
    } else if (kind == kLion) {
      sum += one * s.beta2 + (1.0f - s.beta2) * g;
    } else if (kind == kAdemamix) {
      sum += one;
    } else {
      one = kind == kRmsprop ? one * s.beta1 + (1.0f - s.beta1) * g * g : one + g * g;
      one = g / (sqrtf(one) + s.eps);
      sum += one * one;
    }
  }
  atomicAdd(norm, sum);
}

template <typename T>
__global__ void step_wide(int kind, Settings s, const T* gradient, T* parameter, float* first, float* second,
                          const float* norm, int64_t count) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  float g = s.scale * wide(gradient[i]), p = wide(parameter[i]);
  if (s.skip_zeros && g == 0.0f) return;
  float shrink = 1.0f;
  if (s.max_norm > 0.0f) {
    float allowed = s.max_norm * s.parameter_norm + (kind == kAdam || kind == kAdemamix ? 0.0f : s.eps);
    if (sqrtf(*norm) > allowed) shrink = allowed / sqrtf(*norm);
  }
  // Neither AdEMAMix nor Adagrad takes part in it.
  if (kind == kAdemamix || kind == kAdagrad) shrink = 1.0f;
  if (s.decay > 0.0f) {
    if (coupled(kind))
      g += p * s.decay;
    else
      p *= 1.0f - s.rate * s.decay;
  }
  // AdEMAMix has both its averages in one state of twice the length.
  float two = second ? second[i] : 0.0f, slow = kind == kAdemamix ? first[count + i] : 0.0f;
  p += shrink * advance(kind, s, g, first[i], two, slow);
  if (second) second[i] = two;
  if (kind == kAdemamix) first[count + i] = slow;
  parameter[i] = narrow<T>(p);
}

// The code of a state, on the same side of 0 as the state.
__device__ int code_of(const float* codes, float value) {
  int code = nearest(codes, 256, value);
  if (signbit(codes[code]) != signbit(value)) code += value > 0 ? (code < 255) : -(code > 0);
  return code;
}

template <typename T>
__global__ void step_8bit(int kind, Settings s, T* parameter, const T* gradient, unsigned char* first,
                          unsigned char* second, const float* codes1, const float* codes2, float* absmax1,
                          float* absmax2, int64_t count) {
  int64_t index = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, begin = index * kStateBlock;
  if (begin >= count) return;
  int length = count - begin < kStateBlock ? count - begin : kStateBlock;
  int64_t blocks = (count + kStateBlock - 1) / kStateBlock;
  float one[kStateBlock], two[kStateBlock], slow[kStateBlock];
  float most1 = 0, most2 = 0, most3 = 0;
  for (int i = 0; i < length; i++) {
    int64_t at = begin + i;
    float g = wide(gradient[at]), p = wide(parameter[at]);
    one[i] = codes1[first[at]] * absmax1[index];
    two[i] = second ? codes2[second[at]] * absmax2[index] : 0.0f;
    slow[i] = kind == kAdemamix ? codes1[first[count + at]] * absmax1[blocks + index] : 0.0f;
    bool number = !isnan(g) && !isinf(g);
    if (!number) {
      one[i] = two[i] = slow[i] = 0.0f;
    } else if (!s.skip_zeros || g != 0.0f) {
      g *= s.scale;
      if (s.decay > 0.0f) {
        if (coupled(kind))
          g += p * s.decay;
        else
          p *= 1.0f - s.rate * s.decay;
      }
      p += advance(kind, s, g, one[i], two[i], slow[i]);
      parameter[at] = narrow<T>(p);
    }
    most1 = fmaxf(most1, fabsf(one[i]));
    most2 = fmaxf(most2, fabsf(two[i]));
    most3 = fmaxf(most3, fabsf(slow[i]));
  }
  absmax1[index] = most1;
  if (second) absmax2[index] = most2;
  if (kind == kAdemamix) absmax1[blocks + index] = most3;
  for (int i = 0; i < length; i++) {
    int64_t at = begin + i;
    first[at] = code_of(codes1, most1 > 0 ? one[i] / most1 : 0.0f);
    if (second) second[at] = nearest(codes2, 256, most2 > 0 ? two[i] / most2 : 0.0f);
    if (kind == kAdemamix) first[count + at] = code_of(codes1, most3 > 0 ? slow[i] / most3 : 0.0f);
  }
}

template <typename T>
__global__ void elementwise(int what, T* a, const T* b, T value, int64_t count) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < count) a[i] = what == 0 ? value : what == 1 ? T(i) : a[i] * b[i];
}

int grid(int64_t threads) { return static_cast<int>((threads + kThreads - 1) / kThreads); }

// These functions return nothing: an error of a launch stays the device's, and the next call of torch raises it.
template <typename T>
void run_wide(int kind, const T* g, T* p, float* first, float* second, float* norm, const Settings& s, int count) {
  if (count == 0) return;
  bool before = kind != kLion;
  for (int turn = 0; turn < 2; turn++) {
    if ((turn == 0) != before) {
      step_wide<T><<<grid(count), kThreads>>>(kind, s, g, p, first, second, norm, count);
    } else if (s.max_norm > 0.0f) {
      cudaMemsetAsync(norm, 0, sizeof(float), nullptr);
      update_norm<T><<<grid((count + kNormChunk - 1) / kNormChunk), kThreads>>>(kind, s, g, first, second, norm, count);
    }
  }
}

}  // namespace

#define QUANTIZE(T, type, suffix, kind)                                                                             \
  void cquantize_blockwise_##type##suffix(float* code, T* a, float* absmax, unsigned char* out, int block, int n) { \
    if (n) quantize<T><<<grid((int64_t(n) + block - 1) / block), kThreads>>>(kind, code, a, absmax, out, block, n); \
  }                                                                                                                 \
  void cdequantize_blockwise_##type##suffix(float* code, unsigned char* a, float* absmax, T* out, int block, int n, \
                                            cudaStream_t stream) {                                                  \
    if (n)                                                                                                          \
      dequantize<T>                                                                                                 \
          <<<grid((int64_t(n) + block - 1) / block), kThreads, 0, stream>>>(kind, code, a, absmax, out, block, n);  \
  }

#define OF_TYPE(T, type)                                                                                               \
  QUANTIZE(T, type, , kTable)                                                                                          \
  QUANTIZE(T, type, _fp4, kFp4)                                                                                        \
  QUANTIZE(T, type, _nf4, kNf4)                                                                                        \
  void cgemm_4bit_inference_naive_##type(int m, int n, int k, T* a, unsigned char* b, float* absmax, float* code,      \
                                         T* out, int lda, int ldb, int ldc, int block, cudaStream_t stream) {          \
    (void)n, (void)lda, (void)ldc;                                                                                     \
    multiply_four_bits<T><<<grid(m), kThreads, 0, stream>>>(kTable, code, a, b, absmax, nullptr, nullptr, nullptr,     \
                                                            out, nullptr, 1, m, k, 2 * ldb, block);                    \
  }                                                                                                                    \
  void cgemm_4bit_##type(T* a, unsigned char* b, float* absmax, unsigned char* absmax8, float* absmax_code,            \
                         float* offset, T* out, T* bias, int m, int n, int k, int block, int kind,                     \
                         cudaStream_t stream) {                                                                        \
    multiply_four_bits<T><<<grid(n), kThreads, 0, stream>>>(kind, nullptr, a, b, absmax, absmax8, absmax_code, offset, \
                                                            out, bias, m, n, k, k, block);                             \
  }

#define OPTIMIZER_32(name, kind, type, T)                                                                              \
  void c##name##32bit_grad_##type(T* g, T* p, float* first, float* second, float* norm, float max_norm,                \
                                  float parameter_norm, float beta1, float beta2, float beta3, float alpha, float eps, \
                                  float decay, int step, float rate, float scale, bool skip, int n) {                  \
    run_wide<T>(kind, g, p, first, second, norm,                                                                       \
                {max_norm, parameter_norm, beta1, beta2, beta3, alpha, eps, decay, step, rate, scale, skip}, n);       \
  }

#define OPTIMIZER_8(name, kind, type, T)                                                                               \
  void c##name##_8bit_blockwise_grad_##type(T* p, T* g, unsigned char* first, unsigned char* second, float beta1,      \
                                            float beta2, float beta3, float alpha, float eps, int step, float rate,    \
                                            float* codes1, float* codes2, float* absmax1, float* absmax2, float decay, \
                                            float scale, bool skip, int n) {                                           \
    if (n)                                                                                                             \
      step_8bit<T><<<grid((int64_t(n) + kStateBlock - 1) / kStateBlock), kThreads>>>(                                  \
          kind, {0, 0, beta1, beta2, beta3, alpha, eps, decay, step, rate, scale, skip}, p, g, first, second, codes1,  \
          codes2, absmax1, absmax2, n);                                                                                \
  }

#define ALL_TYPES(define, name, kind) \
  define(name, kind, fp32, float) define(name, kind, fp16, __half) define(name, kind, bf16, __nv_bfloat16)
#define OLD_TYPES(name, kind)         \
  OPTIMIZER_32(name, kind, 32, float) \
  OPTIMIZER_32(name, kind, 16, __half)

extern "C" {

OF_TYPE(float, fp32)
OF_TYPE(__half, fp16)
OF_TYPE(__nv_bfloat16, bf16)

ALL_TYPES(OPTIMIZER_32, adam, kAdam)
ALL_TYPES(OPTIMIZER_32, lion, kLion)
ALL_TYPES(OPTIMIZER_32, ademamix, kAdemamix)
OLD_TYPES(momentum, kMomentum)
OLD_TYPES(rmsprop, kRmsprop)
OLD_TYPES(adagrad, kAdagrad)

ALL_TYPES(OPTIMIZER_8, adam, kAdam)
ALL_TYPES(OPTIMIZER_8, lion, kLion)
ALL_TYPES(OPTIMIZER_8, ademamix, kAdemamix)
ALL_TYPES(OPTIMIZER_8, momentum, kMomentum)
ALL_TYPES(OPTIMIZER_8, rmsprop, kRmsprop)
ALL_TYPES(OPTIMIZER_8, adagrad, kAdagrad)

// No product here needs a handle; the Python only hands it back.
void* get_context() {
  static int context;
  return &context;
}

// The package counts inputs by its second number and outputs by its fourth.
int cigemmlt_32(void*, int inputs, int n, int outputs, signed char* a, signed char* b, int* c, float* row_scale,
                int lda, int ldb, int ldc, cudaStream_t stream) {
  if (row_scale) return 100;
  multiply_int8<<<grid(outputs), kThreads, 0, stream>>>(outputs, n, inputs, a, b, c, lda, ldb, ldc);
  return cudaPeekAtLastError() == cudaSuccess ? 0 : 1;
}

void cdequant_mm_int32_fp16(int* a, float* rows, float* columns, __half* out, __half* bias, int height, int width,
                            cudaStream_t stream) {
  dequantize_product<<<grid(height), kThreads, 0, stream>>>(a, rows, columns, out, bias, height, width);
}

void cint8_vector_quant(__half* a, signed char* out, float* stats, float threshold, int rows, int columns,
                        cudaStream_t stream) {
  quantize_rows<<<grid(rows), kThreads, 0, stream>>>(a, out, stats, threshold, rows, columns);
}

void* cget_managed_ptr(size_t size) {
  void* pointer = nullptr;
  if (cudaMallocManaged(&pointer, size, cudaMemAttachGlobal) != cudaSuccess) {
    fprintf(stderr, "bitsandbytes: no %zu bytes of managed memory\n", size);
    return nullptr;
  }
  return pointer;
}

// Managed memory lies where both sides see it.
void cprefetch(void*, size_t, int) {}

void cfill_fp32(float* a, float*, float value, int64_t n) {
  if (n) elementwise<float><<<grid(n), kThreads>>>(0, a, nullptr, value, n);
}
void cfill_uint8(unsigned char* a, unsigned char*, unsigned char value, int64_t n) {
  if (n) elementwise<unsigned char><<<grid(n), kThreads>>>(0, a, nullptr, value, n);
}
void carange_fp32(float* a, float*, float, int64_t n) {
  if (n) elementwise<float><<<grid(n), kThreads>>>(1, a, nullptr, 0.0f, n);
}
void c_mul_fp32(float* a, float* b, float, int64_t n) {
  if (n) elementwise<float><<<grid(n), kThreads>>>(2, a, b, 0.0f, n);
}

}  // extern "C"
