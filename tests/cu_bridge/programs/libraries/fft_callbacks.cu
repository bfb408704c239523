// Transforms whose elements callbacks read and write: values, layouts, which element a callback is asked for, and what
// becomes of it later.
#include <cufftXt.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>

namespace {

int failures = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition)
#define OK(call) expect((call) == 0, #call)

struct Window {
  int period;
  float scale;
};

// 16-bit samples, windowed: what callbacks are used for most, since no pass over the memory is needed.
__device__ cufftReal load_samples(void* data, size_t offset, void* information, void*) {
  const auto* const window = static_cast<const Window*>(information);
  const float weight = static_cast<float>(offset % window->period + 1) / window->period;
  return static_cast<const short*>(data)[offset] * weight;
}
__device__ void store_scaled(void* data, size_t offset, cufftComplex value, void* information, void*) {
  const float scale = static_cast<const Window*>(information)->scale;
  static_cast<cufftComplex*>(data)[offset] = make_cuComplex(value.x * scale, -value.y * scale);
}
__device__ cufftDoubleComplex load_conjugate(void* data, size_t offset, void*, void* shared) {
  static_cast<char*>(shared)[1023] = 1;  // ours alone
  return cuConj(static_cast<const cufftDoubleComplex*>(data)[offset]);
}
__device__ int stored;
__device__ void store_double(void* data, size_t offset, cufftDoubleReal value, void*, void*) {
  atomicAdd(&stored, 1);
  static_cast<float*>(data)[offset] = static_cast<float>(value);
}

__device__ cufftCallbackLoadR loadSamples = load_samples;
__device__ cufftCallbackStoreC storeScaled = store_scaled;
__device__ cufftCallbackLoadZ loadConjugate = load_conjugate;
__device__ cufftCallbackStoreD storeDouble = store_double;

template <class Function>
void* onHost(const Function& symbol) {
  Function function = nullptr;
  OK(cudaMemcpyFromSymbol(&function, symbol, sizeof(function)));
  return reinterpret_cast<void*>(function);
}
template <class T>
T* onDevice(const std::vector<T>& values) {
  T* memory = nullptr;
  OK(cudaMalloc(&memory, values.size() * sizeof(T)));
  OK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

std::complex<double> turn(double turns) { return std::polar(1.0, -2 * 3.14159265358979323846 * turns); }

void realsOfSixteenBits(int n, int batch, cudaStream_t stream) {
  std::vector<short> samples(n * batch);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<short>((i * 7919) % 2001) - 1000;
  short* const input = onDevice(samples);
  cufftComplex* output = nullptr;
  const int half = n / 2 + 1;
  OK(cudaMalloc(&output, sizeof(cufftComplex) * half * batch));
  Window* const window = onDevice(std::vector<Window>{{n, 0.5f}});

  cufftHandle plan;
  OK(cufftPlan1d(&plan, n, CUFFT_R2C, batch));
  OK(cufftSetStream(plan, stream));
  void* load = onHost(loadSamples);
  void* store = onHost(storeScaled);
  void* information = window;
  OK(cufftXtSetCallback(plan, &load, CUFFT_CB_LD_REAL, &information));
  OK(cufftXtSetCallback(plan, &store, CUFFT_CB_ST_COMPLEX, &information));
  OK(cufftExecR2C(plan, reinterpret_cast<cufftReal*>(input), output));
  // The execution has the callbacks of its call.
  OK(cufftXtClearCallback(plan, CUFFT_CB_ST_COMPLEX));
  OK(cudaStreamSynchronize(stream));
  std::vector<cufftComplex> found(half * batch), plain(half * batch);
  OK(cudaMemcpy(found.data(), output, sizeof(cufftComplex) * found.size(), cudaMemcpyDeviceToHost));
  OK(cufftExecR2C(plan, reinterpret_cast<cufftReal*>(input), output));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(plain.data(), output, sizeof(cufftComplex) * plain.size(), cudaMemcpyDeviceToHost));

  double worst = 0, worstPlain = 0;
  for (int b = 0; b < batch; ++b) {
    for (int k = 0; k < half; ++k) {
      std::complex<double> sum = 0;
      for (int i = 0; i < n; ++i) {
        const double weight = static_cast<double>((b * n + i) % n + 1) / n;
        sum += samples[b * n + i] * weight * turn(static_cast<double>(i) * k / n);
      }
      const cufftComplex value = found[b * half + k], left = plain[b * half + k];
      worst = std::max(worst, std::abs(std::complex<double>(value.x, value.y) - 0.5 * std::conj(sum)));
      worstPlain = std::max(worstPlain, std::abs(std::complex<double>(left.x, left.y) - sum));
    }
  }
  EXPECT(worst < 1e-6 * 1000 * n);
  EXPECT(worstPlain < 1e-6 * 1000 * n);
  OK(cufftDestroy(plan));
  OK(cudaFree(input));
  OK(cudaFree(output));
  OK(cudaFree(window));
}

// A layout with gaps: a callback is told where an element lies in the caller's memory.
void realsOfAPlane() {
  const int n[] = {6, 5}, half[] = {6, 4}, wide[] = {6, 7};
  std::vector<cufftDoubleComplex> spectrum(6 * 4 * 2, make_cuDoubleComplex(9e9, 9e9));
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 3; ++j) spectrum[(i * 4 + j) * 2] = make_cuDoubleComplex(i + 0.25 * j, j == 0 ? 0 : i - j);
  }
  // A spectrum of real numbers: its first column is its own mirror image.
  for (int i = 1; i < 3; ++i) spectrum[(6 - i) * 4 * 2] = cuConj(spectrum[i * 4 * 2]);
  cufftDoubleComplex* const input = onDevice(spectrum);
  std::vector<float> nothing(6 * 7, -1.0f);
  float* const output = onDevice(nothing);
  cufftHandle plan;
  OK(cufftPlanMany(&plan, 2, const_cast<int*>(n), const_cast<int*>(half), 2, 1, const_cast<int*>(wide), 1, 1,
                   CUFFT_Z2D, 1));
  void* load = onHost(loadConjugate);
  void* store = onHost(storeDouble);
  OK(cufftXtSetCallback(plan, &load, CUFFT_CB_LD_COMPLEX_DOUBLE, nullptr));
  OK(cufftXtSetCallbackSharedSize(plan, CUFFT_CB_LD_COMPLEX_DOUBLE, 1024));
  OK(cufftXtSetCallback(plan, &store, CUFFT_CB_ST_REAL_DOUBLE, nullptr));
  OK(cufftExecZ2D(plan, input, reinterpret_cast<cufftDoubleReal*>(output)));
  OK(cudaDeviceSynchronize());
  std::vector<float> found(6 * 7);
  OK(cudaMemcpy(found.data(), output, sizeof(float) * found.size(), cudaMemcpyDeviceToHost));
  double worst = 0;
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 5; ++x) {
      std::complex<double> sum = 0;
      for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 5; ++j) {
          const int row = j < 3 ? i : (6 - i) % 6, column = j < 3 ? j : 5 - j;
          const cufftDoubleComplex given = spectrum[(row * 4 + column) * 2];
          const std::complex<double> value(given.x, j < 3 ? -given.y : given.y);
          sum += value * std::conj(turn(i * y / 6.0 + j * x / 5.0));
        }
      }
      worst = std::max(worst, std::abs(sum.real() - found[y * 7 + x]));
    }
    EXPECT(found[y * 7 + 5] == -1.0f && found[y * 7 + 6] == -1.0f);
  }
  EXPECT(worst < 1e-4);
  int count = 0;
  OK(cudaMemcpyFromSymbol(&count, stored, sizeof(count)));
  EXPECT(count == 30);
  OK(cufftDestroy(plan));
  OK(cudaFree(input));
  OK(cudaFree(output));
}

// A pending stream, and a graph: their transforms keep the callbacks of the call.
void later() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaLaunchHostFunc(stream, [](void*) {}, nullptr));
  realsOfSixteenBits(12, 2, stream);
  OK(cudaStreamDestroy(stream));
}

void refusals() {
  cufftHandle plan, blank;
  OK(cufftPlan1d(&plan, 8, CUFFT_C2C, 1));
  OK(cufftCreate(&blank));
  void* load = onHost(loadSamples);
  void* none = nullptr;
  EXPECT(cufftXtSetCallback(blank, &load, CUFFT_CB_LD_COMPLEX, nullptr) == CUFFT_INVALID_PLAN);
  EXPECT(cufftXtSetCallback(plan, &load, CUFFT_CB_LD_REAL, nullptr) == CUFFT_INVALID_TYPE);
  EXPECT(cufftXtSetCallback(plan, &load, CUFFT_CB_ST_COMPLEX_DOUBLE, nullptr) == CUFFT_INVALID_TYPE);
  EXPECT(cufftXtSetCallback(plan, &load, CUFFT_CB_UNDEFINED, nullptr) == CUFFT_INVALID_TYPE);
  EXPECT(cufftXtSetCallback(plan, nullptr, CUFFT_CB_LD_COMPLEX, nullptr) == CUFFT_INVALID_VALUE);
  EXPECT(cufftXtSetCallback(plan, &none, CUFFT_CB_LD_COMPLEX, nullptr) == CUFFT_INVALID_VALUE);
  EXPECT(cufftXtSetCallbackSharedSize(plan, CUFFT_CB_LD_COMPLEX, 1 << 20) == CUFFT_INVALID_VALUE);
  OK(cufftDestroy(plan));
  OK(cufftDestroy(blank));
}

}  // namespace

int main() {
  for (const int n : {1, 2, 7, 16, 60}) realsOfSixteenBits(n, 3, nullptr);
  realsOfAPlane();
  later();
  refusals();
  return failures == 0 ? 0 : 1;
}
