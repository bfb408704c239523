// The execution of a plan: rows are read, transformed along each axis and written.

#include <algorithm>

#include "numbers.h"
#include "plan.h"

namespace mxmaca {
namespace {

// Place of the first element of each row of one transform.
template <class Visit>
void eachRow(const std::vector<int64_t>& lengths, const std::vector<int64_t>& embed, int64_t stride, Visit&& visit) {
  const size_t rank = lengths.size();
  const int64_t outer = rank > 2 ? lengths[rank - 3] : 1;
  const int64_t middle = rank > 1 ? lengths[rank - 2] : 1;
  int64_t row = 0;
  for (int64_t i = 0; i < outer; ++i) {
    for (int64_t j = 0; j < middle; ++j) {
      const int64_t line = rank > 2 ? i * embed[rank - 2] + j : j;
      visit(row++, line * (rank > 1 ? embed[rank - 1] : 0) * stride);
    }
  }
}

template <class T>
std::complex<T> readMemory(const void* data, cudaDataType type, int64_t index) {
  if constexpr (sizeof(T) == 4) {
    if (type == CUDA_C_32F) return static_cast<const std::complex<float>*>(data)[index];
    if (type == CUDA_R_32F) return static_cast<const float*>(data)[index];
  } else {
    if (type == CUDA_C_64F) return static_cast<const std::complex<double>*>(data)[index];
    if (type == CUDA_R_64F) return static_cast<const double*>(data)[index];
  }
  return std::complex<T>(mxmaca::readElement(data, type, index));
}
template <class T>
void writeMemory(void* data, cudaDataType type, int64_t index, std::complex<T> value) {
  if constexpr (sizeof(T) == 4) {
    if (type == CUDA_C_32F) return void(static_cast<std::complex<float>*>(data)[index] = value);
    if (type == CUDA_R_32F) return void(static_cast<float*>(data)[index] = value.real());
  } else {
    if (type == CUDA_C_64F) return void(static_cast<std::complex<double>*>(data)[index] = value);
    if (type == CUDA_R_64F) return void(static_cast<double*>(data)[index] = value.real());
  }
  mxmaca::writeElement(data, type, index, std::complex<double>(value));
}

template <class T>
struct CallbackTypes;
template <>
struct CallbackTypes<float> {
  using Real = cufftReal;
  using Complex = cufftComplex;
  using LoadReal = cufftCallbackLoadR;
  using LoadComplex = cufftCallbackLoadC;
  using StoreReal = cufftCallbackStoreR;
  using StoreComplex = cufftCallbackStoreC;
};
template <>
struct CallbackTypes<double> {
  using Real = cufftDoubleReal;
  using Complex = cufftDoubleComplex;
  using LoadReal = cufftCallbackLoadD;
  using LoadComplex = cufftCallbackLoadZ;
  using StoreReal = cufftCallbackStoreD;
  using StoreComplex = cufftCallbackStoreZ;
};

// One side of a transform: memory, or what the program's callback makes of it.
template <class T>
class Side {
 public:
  using Types = CallbackTypes<T>;
  Side(void* data, cudaDataType type, const Callback& callback)
      : data_(data),
        type_(type),
        real_(!mxmaca::isComplex(type)),
        callback_(callback),
        shared_(callback.function == nullptr ? 0 : callback.sharedBytes) {}

  std::complex<T> read(int64_t index) {
    if (callback_.function == nullptr) return readMemory<T>(data_, type_, index);
    const auto offset = static_cast<size_t>(index);
    if (real_) {
      return (*reinterpret_cast<typename Types::LoadReal>(callback_.function))(data_, offset, callback_.information,
                                                                               shared_.data());
    }
    const auto value = (*reinterpret_cast<typename Types::LoadComplex>(callback_.function))(
        data_, offset, callback_.information, shared_.data());
    return {value.x, value.y};
  }
  void write(int64_t index, std::complex<T> value) {
    if (callback_.function == nullptr) return writeMemory<T>(data_, type_, index, value);
    const auto offset = static_cast<size_t>(index);
    if (real_) {
      return (*reinterpret_cast<typename Types::StoreReal>(callback_.function))(data_, offset, value.real(),
                                                                                callback_.information, shared_.data());
    }
    (*reinterpret_cast<typename Types::StoreComplex>(callback_.function))(
        data_, offset, typename Types::Complex{value.real(), value.imag()}, callback_.information, shared_.data());
  }

 private:
  void* data_;
  cudaDataType type_;
  bool real_;
  Callback callback_;
  std::vector<char> shared_;
};

// Along an axis that is not the last: lines of `count` numbers, `step` apart.
template <class T>
void transformAxis(const Fft<T>& fft, std::complex<T>* data, int64_t outer, int64_t step, bool forward) {
  const int64_t count = fft.length();
  std::vector<std::complex<T>> line(static_cast<size_t>(count));
  std::vector<std::complex<T>> scratch(static_cast<size_t>(count));
  for (int64_t block = 0; block < outer; ++block) {
    for (int64_t start = 0; start < step; ++start) {
      std::complex<T>* const first = data + block * count * step + start;
      for (int64_t i = 0; i < count; ++i) line[static_cast<size_t>(i)] = first[i * step];
      fft.transform(line.data(), scratch.data(), forward);
      for (int64_t i = 0; i < count; ++i) first[i * step] = line[static_cast<size_t>(i)];
    }
  }
}

template <class T>
void transform(const Plan& plan, const std::vector<std::shared_ptr<Fft<T>>>& ffts, const Callbacks& callbacks,
               const void* input, void* output, bool forward) {
  const std::vector<int64_t>& n = plan.lengths;
  const size_t rank = n.size();
  const int64_t last = n.back();
  // Between both sides, numbers lie densely; a transform of real numbers keeps half of the last axis.
  const int64_t width = plan.realIn || plan.realOut ? last / 2 + 1 : last;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < rank; ++i) rows *= n[i];
  std::vector<std::complex<T>> work(static_cast<size_t>(rows * width));
  std::vector<std::complex<T>> line(static_cast<size_t>(last));
  std::vector<std::complex<T>> scratch(static_cast<size_t>(last));

  Layout in = plan.in;
  Layout out = plan.out;
  if (plan.basic && input == output) {  // rows of real numbers have room for their spectrum
    Layout* const real = plan.realIn ? &in : plan.realOut ? &out : nullptr;
    if (real != nullptr) {
      real->embed.back() = 2 * (last / 2 + 1);
      real->distance = 1;
      for (const int64_t length : real->embed) real->distance *= length;
    }
  }

  constexpr bool wide = sizeof(T) == sizeof(double);
  const cufftXtCallbackType loads = plan.realIn ? (wide ? CUFFT_CB_LD_REAL_DOUBLE : CUFFT_CB_LD_REAL)
                                                : (wide ? CUFFT_CB_LD_COMPLEX_DOUBLE : CUFFT_CB_LD_COMPLEX);
  const cufftXtCallbackType stores = plan.realOut ? (wide ? CUFFT_CB_ST_REAL_DOUBLE : CUFFT_CB_ST_REAL)
                                                  : (wide ? CUFFT_CB_ST_COMPLEX_DOUBLE : CUFFT_CB_ST_COMPLEX);
  Side<T> from(const_cast<void*>(input), in.type, callbacks.of(loads));
  Side<T> to(output, out.type, callbacks.of(stores));

  const auto otherAxes = [&] {
    int64_t step = width;
    for (size_t axis = rank - 1; axis-- > 0; step *= n[axis]) {
      transformAxis(*ffts[axis], work.data(), static_cast<int64_t>(work.size()) / (n[axis] * step), step, forward);
    }
  };
  for (int64_t b = 0; b < plan.batch; ++b) {
    eachRow(n, in.embed, in.stride, [&](int64_t row, int64_t start) {
      const int64_t first = b * in.distance + start;
      std::complex<T>* const spectrum = work.data() + row * width;
      if (plan.realOut) {
        for (int64_t i = 0; i < width; ++i) spectrum[i] = from.read(first + i * in.stride);
        return;
      }
      for (int64_t i = 0; i < last; ++i) line[static_cast<size_t>(i)] = from.read(first + i * in.stride);
      ffts.back()->transform(line.data(), scratch.data(), forward);
      std::copy(line.begin(), line.begin() + width, spectrum);
    });
    otherAxes();
    eachRow(n, out.embed, out.stride, [&](int64_t row, int64_t start) {
      const int64_t first = b * out.distance + start;
      const std::complex<T>* const spectrum = work.data() + row * width;
      if (!plan.realOut) {
        for (int64_t i = 0; i < width; ++i) to.write(first + i * out.stride, spectrum[i]);
        return;
      }
      // The other half is the conjugate of this one; what must be real counts as real.
      line[0] = spectrum[0].real();
      for (int64_t i = 1; i < width; ++i) {
        const bool alone = 2 * i == last;
        line[static_cast<size_t>(i)] = alone ? std::complex<T>(spectrum[i].real()) : spectrum[i];
        if (!alone) line[static_cast<size_t>(last - i)] = std::conj(spectrum[i]);
      }
      ffts.back()->transform(line.data(), scratch.data(), false);
      for (int64_t i = 0; i < last; ++i) to.write(first + i * out.stride, line[static_cast<size_t>(i)]);
    });
  }
}

}  // namespace

void execute(const Plan& plan, const Callbacks& callbacks, const void* input, void* output, bool forward) {
  plan.wide ? transform<double>(plan, plan.twice, callbacks, input, output, forward)
            : transform<float>(plan, plan.single, callbacks, input, output, forward);
}

}  // namespace mxmaca
