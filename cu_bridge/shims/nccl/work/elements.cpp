#include "work/elements.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "numbers.h"

namespace nccl {
namespace {

using mxmaca::BFloat16;
using mxmaca::Half;

struct E4M3 {
  uint8_t bits;
};
struct E5M2 {
  uint8_t bits;
};

// A code of 8 bits is decoded by table: it is far cheaper than taking it apart.
template <float (*decode)(uint8_t)>
float decoded(uint8_t code) {
  static const auto values = [] {
    std::array<float, 256> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = decode(static_cast<uint8_t>(i));
    return all;
  }();
  return values[code];
}

// In which type to compute, and how to get there and back.
template <class T>
struct Compute {
  using Type = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};
template <>
struct Compute<Half> {
  using Type = float;
  static float widen(Half value) { return mxmaca::toFloat(value); }
  static Half narrow(float value) { return mxmaca::toHalf(value); }
};
template <>
struct Compute<BFloat16> {
  using Type = float;
  static float widen(BFloat16 value) { return mxmaca::toFloat(value); }
  static BFloat16 narrow(float value) { return mxmaca::toBFloat16(value); }
};
template <>
struct Compute<E4M3> {
  using Type = float;
  static float widen(E4M3 value) { return decoded<mxmaca::fromE4M3>(value.bits); }
  static E4M3 narrow(float value) { return {mxmaca::toE4M3(value)}; }
};
template <>
struct Compute<E5M2> {
  using Type = float;
  static float widen(E5M2 value) { return decoded<mxmaca::fromE5M2>(value.bits); }
  static E5M2 narrow(float value) { return {mxmaca::toE5M2(value)}; }
};

template <class T>
struct Kernels {
  using Value = typename Compute<T>::Type;

  static Value factorOf(int kind, const void* factor) {
    if (kind != kScaledSum) return Value{1};
    T number;
    std::memcpy(&number, factor, sizeof number);
    return Compute<T>::widen(number);
  }

  static void load(void* accumulator, const void* input, size_t count, int kind, const void* factor) {
    auto* const to = static_cast<Value*>(accumulator);
    const auto* const from = static_cast<const T*>(input);
    if (kind == kScaledSum) {
      const Value scale = factorOf(kind, factor);
      for (size_t i = 0; i < count; ++i) to[i] = static_cast<Value>(Compute<T>::widen(from[i]) * scale);
      return;
    }
    for (size_t i = 0; i < count; ++i) to[i] = Compute<T>::widen(from[i]);
  }

  template <class Function>
  static void each(void* accumulator, const void* input, size_t count, const Function& function) {
    auto* __restrict const to = static_cast<Value*>(accumulator);
    const auto* __restrict const from = static_cast<const T*>(input);
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<Value>(function(to[i], Compute<T>::widen(from[i])));
  }

  static void combine(void* accumulator, const void* input, size_t count, int kind, const void* factor) {
    switch (kind) {
      case kProduct: return each(accumulator, input, count, [](Value a, Value b) { return a * b; });
      // Not a number wins, as in upstream's reductions.
      case kMax: return each(accumulator, input, count, [](Value a, Value b) { return b > a || b != b ? b : a; });
      case kMin: return each(accumulator, input, count, [](Value a, Value b) { return b < a || b != b ? b : a; });
      case kScaledSum: {
        const Value scale = factorOf(kind, factor);
        return each(accumulator, input, count, [scale](Value a, Value b) { return a + static_cast<Value>(b * scale); });
      }
      default: return each(accumulator, input, count, [](Value a, Value b) { return a + b; });
    }
  }

  static void store(void* output, void* accumulator, size_t count, int kind, int ranks) {
    auto* const to = static_cast<T*>(output);
    const auto* const from = static_cast<const Value*>(accumulator);
    if (kind == kAverage) {
      // Integers of 8 bits are divided as int: they need not hold the number of ranks.
      using Wide = std::common_type_t<Value, int>;
      const auto number = static_cast<Wide>(ranks);
      for (size_t i = 0; i < count; ++i) to[i] = Compute<T>::narrow(static_cast<Value>(from[i] / number));
      return;
    }
    for (size_t i = 0; i < count; ++i) to[i] = Compute<T>::narrow(from[i]);
  }

  static constexpr Element element(const char* name) { return {name, sizeof(T), sizeof(Value), load, combine, store}; }
};

}  // namespace

const Element* findElement(int type) {
  static constexpr Element kElements[] = {
      Kernels<int8_t>::element("int8"),      Kernels<uint8_t>::element("uint8"),
      Kernels<int32_t>::element("int32"),    Kernels<uint32_t>::element("uint32"),
      Kernels<int64_t>::element("int64"),    Kernels<uint64_t>::element("uint64"),
      Kernels<Half>::element("float16"),     Kernels<float>::element("float32"),
      Kernels<double>::element("float64"),   Kernels<BFloat16>::element("bfloat16"),
      Kernels<E4M3>::element("float8_e4m3"), Kernels<E5M2>::element("float8_e5m2"),
  };
  return type >= kInt8 && type <= kFloat8e5m2 ? &kElements[type] : nullptr;
}

const char* reductionName(int kind) {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg", "premulsum"};
  return kind >= kSum && kind <= kScaledSum ? kNames[kind] : "none";
}

}  // namespace nccl
