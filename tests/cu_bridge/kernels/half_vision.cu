// Kernels as detection networks have them, in half precision: pooling of regions with bilinear samples (its gradient by
// atomic additions), and the columns of a deformable convolution. Positions and values are multiples of powers of two that
// halves hold exactly, so each result must be what a plain loop in double computes.
#include <cuda_fp16.h>

#include <cmath>

#include "case.h"

#define EACH(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

struct Shape {
  int channels, height, width;
};

// ---- Samples ------------------------------------------------------------------------------------------------------------
template <class T>
struct Corners {
  int low_y, low_x, high_y, high_x;
  T w1, w2, w3, w4;
};
template <class T>
__host__ __device__ bool corners(T y, T x, int height, int width, Corners<T>* found) {
  if (y < T(-1.0f) || y > T(float(height)) || x < T(-1.0f) || x > T(float(width))) return false;
  if (y <= T(0.0f)) y = T(0.0f);
  if (x <= T(0.0f)) x = T(0.0f);
  found->low_y = static_cast<int>(static_cast<float>(y));
  found->low_x = static_cast<int>(static_cast<float>(x));
  found->high_y = found->low_y + 1;
  found->high_x = found->low_x + 1;
  if (found->low_y >= height - 1) y = T(float(found->low_y = found->high_y = height - 1));
  if (found->low_x >= width - 1) x = T(float(found->low_x = found->high_x = width - 1));
  const T ly = y - T(float(found->low_y)), lx = x - T(float(found->low_x)), hy = T(1.0f) - ly, hx = T(1.0f) - lx;
  found->w1 = hy * hx;
  found->w2 = hy * lx;
  found->w3 = ly * hx;
  found->w4 = ly * lx;
  return true;
}

// ---- Regions --------------------------------------------------------------------------------------------------------------
// A row of 8 halves, read as one word: batch, four corners, padding.
template <class T>
struct alignas(16) Region {
  T values[8];
};

template <class T>
__host__ __device__ void sample_place(const T* region, int ph, int pw, int iy, int ix, int pooled, int samples, T* y, T* x) {
  const T half = T(0.5f);
  const T start_x = region[1] * half - half, start_y = region[2] * half - half;
  const T width = region[3] * half - half - start_x, height = region[4] * half - half - start_y;
  const T bin_y = height / T(float(pooled)), bin_x = width / T(float(pooled));
  *y = start_y + T(float(ph)) * bin_y + T(float(iy) + 0.5f) * bin_y / T(float(samples));
  *x = start_x + T(float(pw)) * bin_x + T(float(ix) + 0.5f) * bin_x / T(float(samples));
}

__global__ void regions_forward(const __half* in, const __half* regions, __half* out, int count, Shape s, int pooled,
                                int samples) {
  EACH(i, count) {
    const int pw = i % pooled, ph = i / pooled % pooled, c = i / pooled / pooled % s.channels;
    const int n = i / pooled / pooled / s.channels;
    Region<__half> region;
    *reinterpret_cast<uint4*>(&region) = reinterpret_cast<const uint4*>(regions)[n];
    const __half* plane = in + (static_cast<int>(__half2float(region.values[0])) * s.channels + c) * s.height * s.width;
    __half sum = __float2half(0.0f);
    for (int iy = 0; iy < samples; ++iy) {
      for (int ix = 0; ix < samples; ++ix) {
        __half y, x;
        sample_place(region.values, ph, pw, iy, ix, pooled, samples, &y, &x);
        Corners<__half> at;
        if (!corners(y, x, s.height, s.width, &at)) continue;
        sum += at.w1 * plane[at.low_y * s.width + at.low_x] + at.w2 * plane[at.low_y * s.width + at.high_x] +
               at.w3 * plane[at.high_y * s.width + at.low_x] + at.w4 * plane[at.high_y * s.width + at.high_x];
      }
    }
    out[i] = sum / __float2half(float(samples * samples));
  }
}

// One addition of an element, or of the pair that it lies in, as torch's fastAtomicAdd has it.
__device__ void add(__half* place, __half value, bool by_pairs) {
  if (!by_pairs) {
    atomicAdd(place, value);
    return;
  }
  const bool upper = reinterpret_cast<unsigned long long>(place) % sizeof(__half2) != 0;
  __half2 pair = __halves2half2(__float2half(0.0f), __float2half(0.0f));
  reinterpret_cast<__half*>(&pair)[upper] = value;
  atomicAdd(reinterpret_cast<__half2*>(place - upper), pair);
}

__global__ void regions_backward(const __half* gradient, const __half* regions, __half* in, int count, Shape s, int pooled,
                                 int samples, bool by_pairs) {
  EACH(i, count) {
    const int pw = i % pooled, ph = i / pooled % pooled, c = i / pooled / pooled % s.channels;
    const int n = i / pooled / pooled / s.channels;
    uint4 word = reinterpret_cast<const uint4*>(regions)[n];
    const __half* const region = reinterpret_cast<const __half*>(&word);
    __half* plane = in + (static_cast<int>(__half2float(region[0])) * s.channels + c) * s.height * s.width;
    const __half each = gradient[i] / __float2half(float(samples * samples));
    for (int iy = 0; iy < samples; ++iy) {
      for (int ix = 0; ix < samples; ++ix) {
        __half y, x;
        sample_place(region, ph, pw, iy, ix, pooled, samples, &y, &x);
        Corners<__half> at;
        if (!corners(y, x, s.height, s.width, &at)) continue;
        add(plane + at.low_y * s.width + at.low_x, each * at.w1, by_pairs);
        add(plane + at.low_y * s.width + at.high_x, each * at.w2, by_pairs);
        add(plane + at.high_y * s.width + at.low_x, each * at.w3, by_pairs);
        add(plane + at.high_y * s.width + at.high_x, each * at.w4, by_pairs);
      }
    }
  }
}

const Shape kImage = {3, 12, 10};
const int kBatch = 2, kRegions = 5, kPooled = 2, kSamples = 2;
const float kCorners[kRegions][5] = {{0, 1, 1, 17, 17}, {1, 3, 5, 11, 21}, {0, 9, 1, 17, 9}, {1, -7, -3, 9, 13}, {0, 13, 17, 29, 25}};

static Array<__half> region_rows() {
  return Array<__half>::of(kRegions * 8, [](size_t i) { return __float2half(i % 8 < 5 ? kCorners[i / 8][i % 8] : 77.0f); });
}
static Array<__half> small_halves(size_t count, int step) {
  return Array<__half>::of(count, [&](size_t i) { return __float2half(float(int(i * step % 17) - 8)); });
}
// For each sample: which region, channel, bin, and the corners in double.
template <class Use>
static void each_sample(Use use) {
  for (int n = 0; n < kRegions; ++n) {
    double region[5];
    for (int k = 0; k < 5; ++k) region[k] = kCorners[n][k];
    for (int c = 0; c < kImage.channels; ++c) {
      const int plane = (int(region[0]) * kImage.channels + c) * kImage.height * kImage.width;
      for (int bin = 0; bin < kPooled * kPooled; ++bin) {
        for (int sample = 0; sample < kSamples * kSamples; ++sample) {
          double y, x;
          sample_place(region, bin / kPooled, bin % kPooled, sample / kSamples, sample % kSamples, kPooled, kSamples, &y, &x);
          Corners<double> at;
          if (!corners(y, x, kImage.height, kImage.width, &at)) continue;
          const int row1 = plane + at.low_y * kImage.width, row2 = plane + at.high_y * kImage.width;
          const int places[] = {row1 + at.low_x, row1 + at.high_x, row2 + at.low_x, row2 + at.high_x};
          const double weights[] = {at.w1, at.w2, at.w3, at.w4};
          use((n * kImage.channels + c) * kPooled * kPooled + bin, places, weights);
        }
      }
    }
  }
}
const int kBins = kRegions * 3 * kPooled * kPooled, kPixels = kBatch * 3 * 12 * 10;

CASE(regions_of_halves_are_pooled) {
  auto in = small_halves(kPixels, 5), regions = region_rows();
  Array<__half> out(kBins);
  regions_forward<<<2, 32>>>(in.data(), regions.data(), out.data(), kBins, kImage, kPooled, kSamples);
  DONE();
  std::vector<double> wanted(kBins);
  each_sample([&](int bin, const int* places, const double* weights) {
    for (int k = 0; k < 4; ++k) wanted[bin] += weights[k] * __half2float(in[places[k]]) / (kSamples * kSamples);
  });
  int some = 0;
  for (int i = 0; i < kBins; ++i) {
    EXPECT(__half2float(out.get()[i]) == wanted[i]);
    some += wanted[i] != 0;
  }
  EXPECT(some > kBins / 2);
}
CASE(gradients_of_regions_are_added_atomically) {
  auto gradient = small_halves(kBins, 7), regions = region_rows();
  std::vector<double> wanted(kPixels);
  each_sample([&](int bin, const int* places, const double* weights) {
    for (int k = 0; k < 4; ++k) wanted[places[k]] += weights[k] * __half2float(gradient[bin]) / (kSamples * kSamples);
  });
  for (bool by_pairs : {false, true}) {
    Array<__half> in(kPixels);
    regions_backward<<<5, 32>>>(gradient.data(), regions.data(), in.data(), kBins, kImage, kPooled, kSamples, by_pairs);
    DONE();
    int some = 0;
    for (int i = 0; i < kPixels; ++i) {
      EXPECT(__half2float(in.get()[i]) == wanted[i]);
      some += wanted[i] != 0;
    }
    EXPECT(some > kPixels / 4);
  }
}

// ---- Deformable columns ---------------------------------------------------------------------------------------------------
// Offsets lie as pairs (y, x), read as one half2; a mask weighs each sample. One thread for each column of a channel.
__device__ __half bilinear(const __half* plane, int height, int width, __half y, __half x) {
  Corners<__half> at;
  if (!corners(y, x, height, width, &at)) return __float2half(0.0f);
  // Rows as pairs where they are: an unaligned pair is put together of two halves.
  __half2 low, high;
  reinterpret_cast<__half*>(&low)[0] = plane[at.low_y * width + at.low_x];
  reinterpret_cast<__half*>(&low)[1] = plane[at.low_y * width + at.high_x];
  reinterpret_cast<unsigned short*>(&high)[0] =
      reinterpret_cast<const unsigned short*>(plane)[at.high_y * width + at.low_x];
  reinterpret_cast<unsigned short*>(&high)[1] =
      reinterpret_cast<const unsigned short*>(plane)[at.high_y * width + at.high_x];
  const __half2 sums = __hadd2(__hmul2(low, __halves2half2(at.w1, at.w2)), __hmul2(high, __halves2half2(at.w3, at.w4)));
  return __low2half(sums) + __high2half(sums);
}
__global__ void deform_columns(const __half* in, const __half* offsets, const __half* mask, __half* columns, int count,
                               Shape s, int k) {
  EACH(i, count) {
    const int x = i % s.width, y = i / s.width % s.height, c = i / s.width / s.height;
    const int pixels = s.height * s.width, pixel = i % pixels;
    for (int tap = 0; tap < k * k; ++tap) {
      const __half2 offset = reinterpret_cast<const __half2*>(offsets)[tap * pixels + pixel];
      const __half py = __float2half(float(y - k / 2 + tap / k)) + __low2half(offset);
      const __half px = __float2half(float(x - k / 2 + tap % k)) + __high2half(offset);
      columns[(c * k * k + tap) * pixels + pixel] =
          mask[tap * pixels + pixel] * bilinear(in + c * pixels, s.height, s.width, py, px);
    }
  }
}
__global__ void deform_image(const __half* columns, const __half* offsets, const __half* mask, __half* in, int count,
                             Shape s, int k) {
  EACH(i, count) {
    const int pixels = s.height * s.width, pixel = i % pixels, tap = i / pixels % (k * k), c = i / pixels / (k * k);
    const int x = pixel % s.width, y = pixel / s.width;
    const __half2 offset = reinterpret_cast<const __half2*>(offsets)[tap * pixels + pixel];
    Corners<__half> at;
    if (!corners(__float2half(float(y - k / 2 + tap / k)) + __low2half(offset),
                 __float2half(float(x - k / 2 + tap % k)) + __high2half(offset), s.height, s.width, &at)) {
      continue;
    }
    const __half value = columns[i] * mask[tap * pixels + pixel];
    __half* const plane = in + c * pixels;
    add(plane + at.low_y * s.width + at.low_x, value * at.w1, true);
    add(plane + at.low_y * s.width + at.high_x, value * at.w2, true);
    add(plane + at.high_y * s.width + at.low_x, value * at.w3, true);
    add(plane + at.high_y * s.width + at.high_x, value * at.w4, true);
  }
}
CASE(columns_of_a_deformable_convolution_of_halves) {
  const int k = 3, pixels = kImage.height * kImage.width, count = kImage.channels * k * k * pixels;
  auto in = small_halves(kImage.channels * pixels, 5), gradient = small_halves(count, 3);
  auto offsets = Array<__half>::of(2 * k * k * pixels, [](size_t i) { return __float2half(float(int(i * 13 % 11) - 5) / 4); });
  auto mask = Array<__half>::of(k * k * pixels, [](size_t i) { return __float2half(float(i * 7 % 3) / 2); });
  Array<__half> columns(count, __float2half(99.0f)), image(kImage.channels * pixels);
  deform_columns<<<3, 64>>>(in.data(), offsets.data(), mask.data(), columns.data(), kImage.channels * pixels, kImage, k);
  deform_image<<<7, 64>>>(gradient.data(), offsets.data(), mask.data(), image.data(), count, kImage, k);
  DONE();
  std::vector<double> wanted_image(kImage.channels * pixels);
  int some = 0;
  for (int i = 0; i < count; ++i) {
    const int pixel = i % pixels, tap = i / pixels % (k * k), c = i / pixels / (k * k);
    const double weight = __half2float(mask[tap * pixels + pixel]);
    const double y = pixel / kImage.width - 1 + tap / k + __half2float(offsets[2 * (tap * pixels + pixel)]);
    const double x = pixel % kImage.width - 1 + tap % k + __half2float(offsets[2 * (tap * pixels + pixel) + 1]);
    double wanted = 0;
    Corners<double> at;
    if (corners(y, x, kImage.height, kImage.width, &at)) {
      const int row1 = c * pixels + at.low_y * kImage.width, row2 = c * pixels + at.high_y * kImage.width;
      const int places[] = {row1 + at.low_x, row1 + at.high_x, row2 + at.low_x, row2 + at.high_x};
      const double weights[] = {at.w1, at.w2, at.w3, at.w4};
      for (int j = 0; j < 4; ++j) {
        wanted += weight * weights[j] * __half2float(in[places[j]]);
        wanted_image[places[j]] += weight * weights[j] * __half2float(gradient[i]);
      }
    }
    EXPECT(__half2float(columns.get()[i]) == wanted);
    some += wanted != 0;
  }
  EXPECT(some > count / 2);
  for (int i = 0; i < kImage.channels * pixels; ++i) EXPECT(__half2float(image.get()[i]) == wanted_image[i]);
}
