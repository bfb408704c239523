#include "numbers.h"

#include <algorithm>
#include <limits>

namespace mxmaca {
namespace {

float decode(float value) { return value; }
double decode(double value) { return value; }
float decode(Half value) { return toFloat(value); }
float decode(BFloat16 value) { return toFloat(value); }
template <class Integer>
double decode(Integer value) {
  return static_cast<double>(value);
}

struct E4M3 {
  uint8_t code;
};
struct E5M2 {
  uint8_t code;
};
float decode(E4M3 value) { return fromE4M3(value.code); }
float decode(E5M2 value) { return fromE5M2(value.code); }

void encode(double value, float& out) { out = static_cast<float>(value); }
void encode(double value, double& out) { out = value; }
// Doubles come from float arithmetic or sums of exact products; the way over float is the one rounding of the device.
void encode(double value, Half& out) { out = toHalf(static_cast<float>(value)); }
void encode(double value, BFloat16& out) { out = toBFloat16(static_cast<float>(value)); }
void encode(double value, E4M3& out) { out.code = toE4M3(static_cast<float>(value)); }
void encode(double value, E5M2& out) { out.code = toE5M2(static_cast<float>(value)); }
template <class Integer>
void encode(double value, Integer& out) {
  const double low = static_cast<double>(std::numeric_limits<Integer>::min());
  const double high = static_cast<double>(std::numeric_limits<Integer>::max());
  const double rounded = std::nearbyint(value);
  out = rounded <= low    ? std::numeric_limits<Integer>::min()
        : rounded >= high ? std::numeric_limits<Integer>::max()
                          : static_cast<Integer>(rounded);
}

// Calls `action` with a null pointer to the component type; false for a type that is not known here.
template <class Action>
bool withComponent(cudaDataType type, Action&& action) {
  switch (type) {
    case CUDA_R_32F:
    case CUDA_C_32F: action(static_cast<float*>(nullptr)); return true;
    case CUDA_R_64F:
    case CUDA_C_64F: action(static_cast<double*>(nullptr)); return true;
    case CUDA_R_16F:
    case CUDA_C_16F: action(static_cast<Half*>(nullptr)); return true;
    case CUDA_R_16BF:
    case CUDA_C_16BF: action(static_cast<BFloat16*>(nullptr)); return true;
    case CUDA_R_8I:
    case CUDA_C_8I: action(static_cast<int8_t*>(nullptr)); return true;
    case CUDA_R_8U:
    case CUDA_C_8U: action(static_cast<uint8_t*>(nullptr)); return true;
    case CUDA_R_32I:
    case CUDA_C_32I: action(static_cast<int32_t*>(nullptr)); return true;
    case CUDA_R_8F_E4M3: action(static_cast<E4M3*>(nullptr)); return true;
    case CUDA_R_8F_E5M2: action(static_cast<E5M2*>(nullptr)); return true;
    default: return false;
  }
}

}  // namespace

bool isComplex(cudaDataType type) {
  return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F || type == CUDA_C_16BF || type == CUDA_C_8I ||
         type == CUDA_C_8U || type == CUDA_C_32I;
}

size_t elementBytes(cudaDataType type) {
  size_t bytes = 0;
  withComponent(type, [&](auto* component) { bytes = sizeof *component; });
  return isComplex(type) ? 2 * bytes : bytes;
}

std::complex<double> readElement(const void* data, cudaDataType type, int64_t index) {
  std::complex<double> value;
  withComponent(type, [&](auto* component) {
    const auto* const p = static_cast<decltype(component)>(const_cast<void*>(data));
    if (isComplex(type)) {
      value = {static_cast<double>(decode(p[2 * index])), static_cast<double>(decode(p[2 * index + 1]))};
    } else {
      value = static_cast<double>(decode(p[index]));
    }
  });
  return value;
}

void writeElement(void* data, cudaDataType type, int64_t index, std::complex<double> value) {
  withComponent(type, [&](auto* component) {
    auto* const p = static_cast<decltype(component)>(data);
    if (isComplex(type)) {
      encode(value.real(), p[2 * index]);
      encode(value.imag(), p[2 * index + 1]);
    } else {
      encode(value.real(), p[index]);
    }
  });
}

namespace {
template <class T>
struct Parts {
  using Part = T;
  static constexpr int count = 1;
};
template <class T>
struct Parts<std::complex<T>> {
  using Part = T;
  static constexpr int count = 2;
};
}  // namespace

template <class T>
void readMatrix(const void* data, cudaDataType type, int64_t rows, int64_t columns, int64_t ld, T* out) {
  using Part = typename Parts<T>::Part;
  constexpr int count = Parts<T>::count;
  auto* to = reinterpret_cast<Part*>(out);
  withComponent(type, [&](auto* component) {
    const auto* const from = static_cast<decltype(component)>(const_cast<void*>(data));
    for (int64_t column = 0; column < columns; ++column) {
      const auto* const start = from + column * ld * count;
      for (int64_t i = 0; i < rows * count; ++i) *to++ = static_cast<Part>(decode(start[i]));
    }
  });
}

template <class T>
void writeMatrix(void* data, cudaDataType type, int64_t rows, int64_t columns, int64_t ld, const T* in) {
  using Part = typename Parts<T>::Part;
  constexpr int count = Parts<T>::count;
  const auto* from = reinterpret_cast<const Part*>(in);
  withComponent(type, [&](auto* component) {
    auto* const to = static_cast<decltype(component)>(data);
    for (int64_t column = 0; column < columns; ++column) {
      auto* const start = to + column * ld * count;
      for (int64_t i = 0; i < rows * count; ++i) encode(static_cast<double>(*from++), start[i]);
    }
  });
}

template void readMatrix(const void*, cudaDataType, int64_t, int64_t, int64_t, float*);
template void readMatrix(const void*, cudaDataType, int64_t, int64_t, int64_t, double*);
template void readMatrix(const void*, cudaDataType, int64_t, int64_t, int64_t, std::complex<float>*);
template void readMatrix(const void*, cudaDataType, int64_t, int64_t, int64_t, std::complex<double>*);
template void writeMatrix(void*, cudaDataType, int64_t, int64_t, int64_t, const float*);
template void writeMatrix(void*, cudaDataType, int64_t, int64_t, int64_t, const double*);
template void writeMatrix(void*, cudaDataType, int64_t, int64_t, int64_t, const std::complex<float>*);
template void writeMatrix(void*, cudaDataType, int64_t, int64_t, int64_t, const std::complex<double>*);

}  // namespace mxmaca
