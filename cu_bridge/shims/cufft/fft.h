// Fourier transforms of one line of complex numbers, of any length.
//
// Lengths whose prime factors are small go through Stockham's mixed-radix passes, which need no bit reversal; others
// through Bluestein's convolution of a power of two, in double so that its longer sums cost no accuracy.
// No package on the index offers a Fourier transform as a C library under a permissive licence, and header-only ones
// come as source archives that pip cannot fetch without building them; so this is written here.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace mxmaca {

template <class T>
class Fft {
 public:
  using Complex = std::complex<T>;

  explicit Fft(int64_t length) : length_(length) {
    int64_t rest = length;
    for (int64_t factor : {4, 2, 3, 5}) {
      for (; rest % factor == 0; rest /= factor) factors_.push_back(factor);
    }
    for (int64_t factor = 7; factor <= kLargestFactor; factor += 2) {
      for (; rest % factor == 0; rest /= factor) factors_.push_back(factor);
    }
    if (rest > 1) {
      factors_.clear();
      makeChirp();
    } else {
      roots_ = roots<T>(length);
    }
  }

  int64_t length() const { return length_; }

  // In place; `scratch` has room for `length` numbers. Forward is the negative exponent; neither direction scales.
  void transform(Complex* data, Complex* scratch, bool forward) const {
    if (!forward) conjugate(data);
    if (chirp_.empty()) {
      passes(data, scratch);
    } else {
      convolve(data);
    }
    if (!forward) conjugate(data);
  }

 private:
  static constexpr int64_t kLargestFactor = 61;

  template <class U>
  static std::vector<std::complex<U>> roots(int64_t count) {
    std::vector<std::complex<U>> result(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) result[static_cast<size_t>(i)] = std::complex<U>(root(i, count));
    return result;
  }
  // exp(-2 pi i index / count), by its first octant: exact where it has to be.
  static std::complex<double> root(int64_t index, int64_t count) {
    const int64_t eighth = 8 * index / count;
    const auto angle = [count](int64_t numerator) {
      return 6.283185307179586476925 * static_cast<double>(numerator) / static_cast<double>(8 * count);
    };
    const int64_t x = 8 * index;
    switch (eighth) {
      case 0: return {std::cos(angle(x)), -std::sin(angle(x))};
      case 1: return {std::sin(angle(2 * count - x)), -std::cos(angle(2 * count - x))};
      case 2: return {-std::sin(angle(x - 2 * count)), -std::cos(angle(x - 2 * count))};
      case 3: return {-std::cos(angle(4 * count - x)), -std::sin(angle(4 * count - x))};
      case 4: return {-std::cos(angle(x - 4 * count)), std::sin(angle(x - 4 * count))};
      case 5: return {-std::sin(angle(6 * count - x)), std::cos(angle(6 * count - x))};
      case 6: return {std::sin(angle(x - 6 * count)), std::cos(angle(x - 6 * count))};
      default: return {std::cos(angle(8 * count - x)), std::sin(angle(8 * count - x))};
    }
  }

  void conjugate(Complex* data) const {
    for (int64_t i = 0; i < length_; ++i) data[i] = std::conj(data[i]);
  }
  // The compiler's product of complex numbers asks for NaN first; this one does not.
  static Complex times(Complex a, Complex b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  static Complex turned(Complex a) { return {a.imag(), -a.real()}; }  // times -i

  void passes(Complex* data, Complex* scratch) const {
    Complex* from = data;
    Complex* to = scratch;
    int64_t rest = length_;
    int64_t stride = 1;
    for (const int64_t radix : factors_) {
      pass(from, to, radix, rest / radix, stride);
      rest /= radix;
      stride *= radix;
      std::swap(from, to);
    }
    if (from != data) std::copy(from, from + length_, data);
  }

  // `stride` interleaved transforms of length radix * m.
  void pass(const Complex* x, Complex* y, int64_t radix, int64_t m, int64_t stride) const {
    std::vector<Complex> in(static_cast<size_t>(radix));
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t k = 0; k < stride; ++k) {
        const Complex* const a = x + k + stride * j;
        Complex* const b = y + k + stride * radix * j;
        const int64_t step = stride * m;
        const auto twiddle = [&](int64_t q) { return roots_[static_cast<size_t>(j * q * stride)]; };
        switch (radix) {
          case 2:
            b[0] = a[0] + a[step];
            b[stride] = times(a[0] - a[step], twiddle(1));
            break;
          case 3: {
            const Complex sum = a[step] + a[2 * step];
            const Complex middle = a[0] - sum * T(0.5);
            const Complex turn = turned((a[step] - a[2 * step]) * T(0.86602540378443864676));
            b[0] = a[0] + sum;
            b[stride] = times(middle + turn, twiddle(1));
            b[2 * stride] = times(middle - turn, twiddle(2));
            break;
          }
          case 4: {
            const Complex even = a[0] + a[2 * step];
            const Complex odd = a[step] + a[3 * step];
            const Complex evenDifference = a[0] - a[2 * step];
            const Complex oddDifference = turned(a[step] - a[3 * step]);
            b[0] = even + odd;
            b[stride] = times(evenDifference + oddDifference, twiddle(1));
            b[2 * stride] = times(even - odd, twiddle(2));
            b[3 * stride] = times(evenDifference - oddDifference, twiddle(3));
            break;
          }
          default:
            for (int64_t r = 0; r < radix; ++r) in[static_cast<size_t>(r)] = a[r * step];
            for (int64_t q = 0; q < radix; ++q) {
              Complex sum = in[0];
              for (int64_t r = 1; r < radix; ++r) {
                sum +=
                    times(in[static_cast<size_t>(r)], roots_[static_cast<size_t>(q * r % radix * (length_ / radix))]);
              }
              b[q * stride] = times(sum, twiddle(q));
            }
        }
      }
    }
  }

  // ---- Bluestein ----------------------------------------------------------------------------------------------------
  void makeChirp() {
    int64_t size = 1;
    while (size < 2 * length_ - 1) size *= 2;
    convolution_ = std::make_unique<Fft<double>>(size);
    chirp_.resize(static_cast<size_t>(length_));
    spectrum_.assign(static_cast<size_t>(size), 0);
    for (int64_t i = 0; i < length_; ++i) {
      // i^2 modulo 2 * length, without overflow for the lengths that fit into memory
      const std::complex<double> w = root(i * i % (2 * length_), 2 * length_);
      chirp_[static_cast<size_t>(i)] = w;
      spectrum_[static_cast<size_t>(i)] = std::conj(w);
      if (i > 0) spectrum_[static_cast<size_t>(size - i)] = std::conj(w);
    }
    std::vector<std::complex<double>> scratch(static_cast<size_t>(size));
    convolution_->transform(spectrum_.data(), scratch.data(), true);
  }
  void convolve(Complex* data) const {
    const auto size = static_cast<size_t>(convolution_->length());
    std::vector<std::complex<double>> line(size);
    std::vector<std::complex<double>> scratch(size);
    for (size_t i = 0; i < chirp_.size(); ++i) line[i] = std::complex<double>(data[i]) * chirp_[i];
    convolution_->transform(line.data(), scratch.data(), true);
    for (size_t i = 0; i < size; ++i) line[i] *= spectrum_[i] / static_cast<double>(size);
    convolution_->transform(line.data(), scratch.data(), false);
    for (size_t i = 0; i < chirp_.size(); ++i) data[i] = Complex(line[i] * chirp_[i]);
  }

  int64_t length_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_;
  std::vector<std::complex<double>> chirp_, spectrum_;
  std::unique_ptr<Fft<double>> convolution_;
};

}  // namespace mxmaca
