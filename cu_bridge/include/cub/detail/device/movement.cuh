// Histograms, loops and copies on a device.
#pragma once

#include "common.cuh"
#include "sums.cuh"

CUB_NAMESPACE_BEGIN

struct DeviceHistogram {
  template <class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t HistogramEven(MXMACA_STORAGE, Samples samples, Counter* histogram, int levels,
                                                        Level lower, Level upper, Offset count, MXMACA_STREAM) {
    return MXMACA_TASK({
      for (int bin = 0; bin + 1 < levels; ++bin) histogram[bin] = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i)
        even(samples[i], histogram, levels, lower, upper);
    });
  }
  template <class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t HistogramRange(MXMACA_STORAGE, Samples samples, Counter* histogram,
                                                         int levels, const Level* edges, Offset count, MXMACA_STREAM) {
    return MXMACA_TASK({
      for (int bin = 0; bin + 1 < levels; ++bin) histogram[bin] = 0;
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) range(samples[i], histogram, levels, edges);
    });
  }
  template <int Channels, int Active, class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t MultiHistogramEven(MXMACA_STORAGE, Samples samples,
                                                             Counter* (&histogram)[Active], const int (&levels)[Active],
                                                             const Level (&lower)[Active], const Level (&upper)[Active],
                                                             Offset pixels, MXMACA_STREAM) {
    PerChannel<Active, Counter, Level> all;
    for (int c = 0; c < Active; ++c) all.channel[c] = {histogram[c], levels[c], lower[c], upper[c], nullptr};
    return MXMACA_TASK({
      for (int c = 0; c < Active; ++c) {
        for (int bin = 0; bin + 1 < all.channel[c].levels; ++bin) all.channel[c].histogram[bin] = 0;
        for (detail::Size i = 0; i < static_cast<detail::Size>(pixels); ++i) {
          even(samples[i * Channels + c], all.channel[c].histogram, all.channel[c].levels, all.channel[c].lower,
               all.channel[c].upper);
        }
      }
    });
  }
  template <int Channels, int Active, class Samples, class Counter, class Level, class Offset>
  CUB_RUNTIME_FUNCTION static cudaError_t MultiHistogramRange(MXMACA_STORAGE, Samples samples,
                                                              Counter* (&histogram)[Active],
                                                              const int (&levels)[Active],
                                                              const Level* const (&edges)[Active], Offset pixels,
                                                              MXMACA_STREAM) {
    PerChannel<Active, Counter, Level> all;
    for (int c = 0; c < Active; ++c) all.channel[c] = {histogram[c], levels[c], Level(), Level(), edges[c]};
    return MXMACA_TASK({
      for (int c = 0; c < Active; ++c) {
        for (int bin = 0; bin + 1 < all.channel[c].levels; ++bin) all.channel[c].histogram[bin] = 0;
        for (detail::Size i = 0; i < static_cast<detail::Size>(pixels); ++i) {
          range(samples[i * Channels + c], all.channel[c].histogram, all.channel[c].levels, all.channel[c].edges);
        }
      }
    });
  }

 private:
  template <int Active, class Counter, class Level>
  struct PerChannel {
    struct {
      Counter* histogram;
      int levels;
      Level lower, upper;
      const Level* edges;
    } channel[Active];
  };
  // Bins are half open; what lies outside is not counted.
  template <class Sample, class Counter, class Level>
  __host__ __device__ static void even(const Sample& sample, Counter* histogram, int levels, Level lower, Level upper) {
    using T = std::common_type_t<Sample, Level>;
    const T value = static_cast<T>(sample);
    if (!(value >= static_cast<T>(lower) && value < static_cast<T>(upper))) return;
    const int bins = levels - 1;
    int bin;
    if constexpr (std::is_integral<T>::value) {
      // The product of two 64-bit numbers does not fit one.
      bin =
          static_cast<int>(static_cast<unsigned __int128>(value - static_cast<T>(lower)) * static_cast<unsigned>(bins) /
                           static_cast<unsigned __int128>(static_cast<T>(upper) - static_cast<T>(lower)));
    } else {
      bin = static_cast<int>((value - static_cast<T>(lower)) *
                             (static_cast<T>(bins) / (static_cast<T>(upper) - static_cast<T>(lower))));
    }
    ++histogram[bin < bins ? bin : bins - 1];
  }
  template <class Sample, class Counter, class Level>
  __host__ __device__ static void range(const Sample& sample, Counter* histogram, int levels, const Level* edges) {
    const detail::Size above = std::upper_bound(edges, edges + levels, sample) - edges;
    if (above > 0 && above < levels) ++histogram[above - 1];
  }
};

// ---- Loops and copies -----------------------------------------------------------------------------------------------
struct DeviceFor {
  template <class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t Bulk(MXMACA_STORAGE, Count count, Op op, cudaStream_t stream = 0) {
    return MXMACA_TASK({
      for (Count i = 0; i < count; ++i) op(i);
    });
  }
  template <class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t Bulk(Count count, Op op, cudaStream_t stream = 0) {
    std::size_t bytes = 1;
    return Bulk(&bytes, bytes, count, op, stream);
  }
  template <class Iterator, class Count, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t ForEachN(Iterator first, Count count, Op op, cudaStream_t stream = 0) {
    std::size_t temp_storage_bytes = 1;
    void* const d_temp_storage = &temp_storage_bytes;
    return MXMACA_TASK({
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) op(first[i]);
    });
  }
  template <class Iterator, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t ForEach(Iterator first, Iterator last, Op op, cudaStream_t stream = 0) {
    return ForEachN(first, last - first, op, stream);
  }
  template <class Iterator, class Op>
  CUB_RUNTIME_FUNCTION static cudaError_t ForEachCopy(Iterator first, Iterator last, Op op, cudaStream_t stream = 0) {
    return ForEachN(first, last - first, op, stream);
  }
};

struct DeviceAdjacentDifference {
  struct Difference {
    template <class T>
    __host__ __device__ auto operator()(const T& a, const T& b) const {
      return a - b;
    }
  };
  template <class In, class Out, class Count, class Op = Difference>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractLeftCopy(MXMACA_STORAGE, In in, Out out, Count count, Op op = {},
                                                           MXMACA_STREAM) {
    return MXMACA_TASK({
      if (count <= 0) return;
      detail::value_of<In> before = in[0];
      out[0] = before;
      for (detail::Size i = 1; i < static_cast<detail::Size>(count); ++i) {
        const detail::value_of<In> value = in[i];
        out[i] = op(value, before);
        before = value;
      }
    });
  }
  template <class In, class Out, class Count, class Op = Difference>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractRightCopy(MXMACA_STORAGE, In in, Out out, Count count, Op op = {},
                                                            MXMACA_STREAM) {
    return MXMACA_TASK({
      for (detail::Size i = 0; i < static_cast<detail::Size>(count); ++i) {
        if (i + 1 < static_cast<detail::Size>(count))
          out[i] = op(in[i], in[i + 1]);
        else
          out[i] = in[i];
      }
    });
  }
  template <class InOut, class Count, class Op = Difference>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractLeft(MXMACA_STORAGE, InOut data, Count count, Op op = {},
                                                       MXMACA_STREAM) {
    return SubtractLeftCopy(d_temp_storage, temp_storage_bytes, data, data, count, op, stream);
  }
  template <class InOut, class Count, class Op = Difference>
  CUB_RUNTIME_FUNCTION static cudaError_t SubtractRight(MXMACA_STORAGE, InOut data, Count count, Op op = {},
                                                        MXMACA_STREAM) {
    return SubtractRightCopy(d_temp_storage, temp_storage_bytes, data, data, count, op, stream);
  }
};

struct DeviceMemcpy {
  template <class From, class To, class Bytes>
  CUB_RUNTIME_FUNCTION static cudaError_t Batched(MXMACA_STORAGE, From from, To to, Bytes bytes, std::int64_t count,
                                                  cudaStream_t stream = 0) {
    return MXMACA_TASK({
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(to[i], from[i], static_cast<std::size_t>(bytes[i]));
    });
  }
};
struct DeviceCopy {
  template <class From, class To, class Sizes>
  CUB_RUNTIME_FUNCTION static cudaError_t Batched(MXMACA_STORAGE, From from, To to, Sizes sizes, std::int64_t count,
                                                  cudaStream_t stream = 0) {
    return MXMACA_TASK({
      for (std::int64_t i = 0; i < count; ++i) {
        auto source = from[i];
        auto target = to[i];
        for (detail::Size k = 0; k < static_cast<detail::Size>(sizes[i]); ++k) target[k] = source[k];
      }
    });
  }
};

CUB_NAMESPACE_END
