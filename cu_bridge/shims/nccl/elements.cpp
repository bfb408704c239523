#include "elements.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace nccl {
namespace {

float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct Bfloat16 {
  uint16_t bits;
  explicit operator float() const { return bitsToFloat(static_cast<uint32_t>(bits) << 16); }
  static Bfloat16 from(float value) {
    const uint32_t wide = floatToBits(value);
    if (std::isnan(value)) return {static_cast<uint16_t>((wide >> 16) | 0x40)};
    return {static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16)};  // to nearest, ties to even
  }
};

struct Half {
  uint16_t bits;
  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t exponent = (bits >> 10) & 31;
    const uint32_t fraction = bits & 0x3ff;
    if (exponent == 31) return bitsToFloat(sign | 0x7f800000 | (fraction << 13));
    if (exponent != 0) return bitsToFloat(sign | ((exponent + 112) << 23) | (fraction << 13));
    const float tiny = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -tiny : tiny;
  }
  static Half from(float value) {
    const uint32_t wide = floatToBits(value);
    const auto sign = static_cast<uint16_t>((wide >> 16) & 0x8000);
    const float size = std::fabs(value);
    if (std::isnan(value)) return {static_cast<uint16_t>(sign | 0x7e00)};
    if (size >= 65520.0F) return {static_cast<uint16_t>(sign | 0x7c00)};
    if (size < 6.103515625e-05F) {  // below the smallest normal number: a multiple of 2^-24, rounded to even
      return {static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 24))))};
    }
    const uint32_t magnitude = floatToBits(size);
    const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return {static_cast<uint16_t>(sign | ((rounded - (112U << 23)) >> 13))};
  }
};

// In which type to compute, and how to come back.
template <class Element>
struct Compute {
  using Type = Element;
  static Element store(Element value) { return value; }
};
template <>
struct Compute<Half> {
  using Type = float;
  static Half store(float value) { return Half::from(value); }
};
template <>
struct Compute<Bfloat16> {
  using Type = float;
  static Bfloat16 store(float value) { return Bfloat16::from(value); }
};

template <class Element>
void reduceElements(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, size_t count,
                    const Reduction& reduction) {
  using Value = typename Compute<Element>::Type;
  const size_t ranks = inputs.size();
  const auto load = [&](size_t rank, size_t i) {
    Value value = static_cast<Value>(static_cast<const Element*>(inputs[rank])[i]);
    if (reduction.kind == kScaledSum) value = static_cast<Value>(value * static_cast<Value>(reduction.factors[rank]));
    return value;
  };
  for (size_t i = 0; i < count; ++i) {
    Value result = load(0, i);
    for (size_t rank = 1; rank < ranks; ++rank) {
      const Value value = load(rank, i);
      switch (reduction.kind) {
        case kProduct: result = static_cast<Value>(result * value); break;
        case kMax: result = value > result || value != value ? value : result; break;
        case kMin: result = value < result || value != value ? value : result; break;
        default: result = static_cast<Value>(result + value);
      }
    }
    if (reduction.kind == kAverage) result = static_cast<Value>(result / static_cast<Value>(ranks));
    const Element stored = Compute<Element>::store(result);
    for (void* const output : outputs) static_cast<Element*>(output)[i] = stored;
  }
}

}  // namespace

size_t elementBytes(int type) {
  constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type >= kInt8 && type <= kBfloat16 ? kBytes[type] : 0;
}

bool readNumber(const void* number, int type, double* value) {
  switch (type) {
    case kInt8: *value = *static_cast<const int8_t*>(number); return true;
    case kUint8: *value = *static_cast<const uint8_t*>(number); return true;
    case kInt32: *value = *static_cast<const int32_t*>(number); return true;
    case kUint32: *value = *static_cast<const uint32_t*>(number); return true;
    case kInt64: *value = static_cast<double>(*static_cast<const int64_t*>(number)); return true;
    case kUint64: *value = static_cast<double>(*static_cast<const uint64_t*>(number)); return true;
    case kFloat16: *value = static_cast<float>(*static_cast<const Half*>(number)); return true;
    case kFloat32: *value = *static_cast<const float*>(number); return true;
    case kFloat64: *value = *static_cast<const double*>(number); return true;
    case kBfloat16: *value = static_cast<float>(*static_cast<const Bfloat16*>(number)); return true;
    default: return false;
  }
}

void reduce(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, size_t count, int type,
            const Reduction& reduction) {
  switch (type) {
    case kInt8: return reduceElements<int8_t>(inputs, outputs, count, reduction);
    case kUint8: return reduceElements<uint8_t>(inputs, outputs, count, reduction);
    case kInt32: return reduceElements<int32_t>(inputs, outputs, count, reduction);
    case kUint32: return reduceElements<uint32_t>(inputs, outputs, count, reduction);
    case kInt64: return reduceElements<int64_t>(inputs, outputs, count, reduction);
    case kUint64: return reduceElements<uint64_t>(inputs, outputs, count, reduction);
    case kFloat16: return reduceElements<Half>(inputs, outputs, count, reduction);
    case kFloat32: return reduceElements<float>(inputs, outputs, count, reduction);
    case kFloat64: return reduceElements<double>(inputs, outputs, count, reduction);
    case kBfloat16: return reduceElements<Bfloat16>(inputs, outputs, count, reduction);
    default: return;
  }
}

}  // namespace nccl
