#include "ops/copy/Integers.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>

#include "arguments/Release.h"

namespace macatorch {
namespace {

// Elements that are looked at together. The compiler has vectors for loops of a number of passes that it knows.
constexpr int64_t kBlock = 64;

/// Where the bits of a floating-point format lie.
template <class Number>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
};
template <>
struct Format<at::Half> {
  using Bits = uint16_t;
  static constexpr int kMantissa = 10, kBias = 15;
};
template <>
struct Format<at::BFloat16> {
  using Bits = uint16_t;
  static constexpr int kMantissa = 7, kBias = 127;
};

/// What CUDA converts to before it takes the low bits.
template <class To>
using Between = std::conditional_t<
    std::is_same_v<To, uint8_t>, int64_t,
    std::conditional_t<(sizeof(To) < 4), std::conditional_t<std::is_signed_v<To>, int32_t, uint32_t>, To>>;

/// Of a number's bits: the highest one says whether C++ leaves open what the number becomes. Of the numbers that an
/// integer type holds, its least one alone seems to be such a number.
template <class To, class From>
inline typename Format<From>::Bits openness(typename Format<From>::Bits bits) {
  using F = Format<From>;
  using Bits = typename F::Bits;
  // What is smaller is converted to by way of 32 bits, signed ones.
  constexpr int kIntegerBits = sizeof(To) < 4 ? 31 : 8 * sizeof(To) - (std::is_signed_v<To> ? 1 : 0);
  constexpr int kExponent = std::min(F::kBias + kIntegerBits, 2 * F::kBias + 1);  // at most that of infinity and NaN
  constexpr Bits kLast = static_cast<Bits>((static_cast<Bits>(kExponent) << F::kMantissa) - 1);
  constexpr Bits kSize = static_cast<Bits>(~Bits{0}) >> 1;
  // A negative number is none of an unsigned type. uint8 is converted to by way of a signed one.
  constexpr bool kSigned = std::is_signed_v<To> || std::is_same_v<To, uint8_t>;
  return static_cast<Bits>((kLast - (bits & kSize)) | (kSigned ? Bits{0} : bits));
}

template <class Bits>
constexpr Bits kHighest = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));

/// Whether one of the numbers, which lie side by side, is open.
template <class To, class From>
bool any_is_open(const void* from, int64_t count) {
  using Bits = typename Format<From>::Bits;
  const auto* const bits = static_cast<const Bits*>(from);
  // A register's lanes, each of which looks at numbers of its own.
  constexpr int64_t kLanes = 32 / sizeof(Bits);
  Bits lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int64_t k = 0; k < kBlock; k += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] |= openness<To, From>(bits[i + k + lane]);
      }
    }
  }
  Bits any = 0;
  for (const Bits lane : lanes) {
    any |= lane;
  }
  for (; i < count; ++i) {
    any |= openness<To, From>(bits[i]);
  }
  return (any & kHighest<Bits>) != 0;
}

/// PTX's cvt.rzi to 32 or 64 bits.
template <class Integer, class Number>
Integer nearest(Number number) {
  using Limits = std::numeric_limits<Integer>;
  if (number != number) {
    constexpr bool kWide = sizeof(Number) == 8 || sizeof(Integer) == 8;
    return kWide ? static_cast<Integer>(std::make_unsigned_t<Integer>{1} << (8 * sizeof(Integer) - 1)) : 0;
  }
  // The greatest integer and 1, which a floating-point number is exactly.
  constexpr Number kAbove = static_cast<Number>(Limits::max() / 2 + 1) * 2;
  if (number >= kAbove) {
    return Limits::max();
  }
  return number < static_cast<Number>(Limits::min()) ? Limits::min() : static_cast<Integer>(number);
}

template <class To, class From>
void correct(char** data, const int64_t* strides, int64_t count) {
  using Wide = std::conditional_t<std::is_same_v<From, double>, double, float>;
  for (int64_t i = 0; i < count; ++i) {
    const char* const from = data[1] + i * strides[1];
    const auto bits = *reinterpret_cast<const typename Format<From>::Bits*>(from);
    if ((openness<To, From>(bits) & kHighest<typename Format<From>::Bits>) != 0) {
      const auto number = static_cast<Wide>(*reinterpret_cast<const From*>(from));
      *reinterpret_cast<To*>(data[0] + i * strides[0]) = static_cast<To>(nearest<Between<To>>(number));
    }
  }
}

struct Correction {
  bool (*any_is_open)(const void* from, int64_t count) = nullptr;
  void (*correct)(char** data, const int64_t* strides, int64_t count) = nullptr;
};

template <class From>
Correction correction(at::ScalarType to) {
  switch (to) {
    case at::kByte: return {any_is_open<uint8_t, From>, correct<uint8_t, From>};
    case at::kChar: return {any_is_open<int8_t, From>, correct<int8_t, From>};
    case at::kShort: return {any_is_open<int16_t, From>, correct<int16_t, From>};
    case at::kInt: return {any_is_open<int32_t, From>, correct<int32_t, From>};
    case at::kLong: return {any_is_open<int64_t, From>, correct<int64_t, From>};
#if MACATORCH_TORCH_AT_LEAST(2, 3)
    case at::kUInt16: return {any_is_open<uint16_t, From>, correct<uint16_t, From>};
    case at::kUInt32: return {any_is_open<uint32_t, From>, correct<uint32_t, From>};
    case at::kUInt64: return {any_is_open<uint64_t, From>, correct<uint64_t, From>};
#endif
    default: return {};
  }
}

Correction correction(at::ScalarType from, at::ScalarType to) {
  switch (from) {
    case at::kFloat: return correction<float>(to);
    case at::kDouble: return correction<double>(to);
    case at::kHalf: return correction<at::Half>(to);
    case at::kBFloat16: return correction<at::BFloat16>(to);
    default: return {};
  }
}

}  // namespace

bool becomes_integers(at::ScalarType from, at::ScalarType to) {
  return (at::isFloatingType(from) || at::isComplexType(from)) && correction(at::kFloat, to).correct != nullptr;
}

void correct_integers(const at::Tensor& to, const at::Tensor& from) {
  if (from.is_complex()) {
    return correct_integers(to, at::real(from));
  }
  const Correction known = correction(from.scalar_type(), to.scalar_type());
  if (known.correct == nullptr) {
    return correct_integers(to, from.to(at::kFloat));  // numbers of 8 bits
  }
  if (from.is_neg()) {
    return correct_integers(to, from.resolve_neg());
  }
  if (from.is_non_overlapping_and_dense()) {
    std::atomic<bool> found{false};
    const auto* const numbers = static_cast<const char*>(from.const_data_ptr());
    const auto size = static_cast<int64_t>(from.element_size());
    at::parallel_for(0, from.numel(), at::internal::GRAIN_SIZE, [&](int64_t begin, int64_t end) {
      if (known.any_is_open(numbers + begin * size, end - begin)) {
        found = true;
      }
    });
    if (!found) {
      return;
    }
  }
  auto iterator = at::TensorIteratorConfig()
                      .add_output(to)
                      .add_input(from)
                      .resize_outputs(false)
                      .check_all_same_dtype(false)
                      .build();
  iterator.for_each([&known](char** data, const int64_t* strides, int64_t count, int64_t lines) {
    for (int64_t k = 0; k < lines; ++k) {
      char* line[] = {data[0] + k * strides[2], data[1] + k * strides[3]};
      known.correct(line, strides, count);
    }
  });
}

}  // namespace macatorch
