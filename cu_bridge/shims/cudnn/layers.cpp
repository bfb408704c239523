// Activation, softmax, dropout.

#include <cmath>

#include "curand_kernel.h"
#include "tensors.h"

using namespace mxmaca;
using namespace mxmaca::cudnn;

namespace {

template <class T>
T slope(const cudnnActivationStruct& activation, T x, T y) {
  const T coefficient = static_cast<T>(activation.coefficient);
  switch (activation.mode) {
    case CUDNN_ACTIVATION_SIGMOID: return y * (T(1) - y);
    case CUDNN_ACTIVATION_RELU: return x > T(0) ? T(1) : T(0);
    case CUDNN_ACTIVATION_TANH: return T(1) - y * y;
    case CUDNN_ACTIVATION_CLIPPED_RELU: return x > T(0) && x < coefficient ? T(1) : T(0);
    case CUDNN_ACTIVATION_ELU: return x > T(0) ? T(1) : y + coefficient;
    case CUDNN_ACTIVATION_SWISH: {
      const T beta = static_cast<T>(activation.swishBeta);
      const T sigmoid = T(1) / (T(1) + std::exp(-beta * x));
      return sigmoid + beta * x * sigmoid * (T(1) - sigmoid);
    }
    default: return T(1);
  }
}

// Calls `work` with the start, the count and the step of each line that is normalised.
template <class Work>
void eachLine(const Tensor& tensor, cudnnSoftmaxMode_t mode, Work&& work) {
  const int64_t images = tensor.sizes[0];
  const int64_t channels = tensor.sizes.size() > 1 ? tensor.sizes[1] : 1;
  const int64_t inner = product(tensor.sizes, 2);
  for (int64_t n = 0; n < images; ++n) {
    if (mode == CUDNN_SOFTMAX_MODE_INSTANCE) {
      work(n * channels * inner, channels * inner, 1);
    } else {
      for (int64_t i = 0; i < inner; ++i) work(n * channels * inner + i, channels, inner);
    }
  }
}

}  // namespace

// ---- Activation -----------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc, cudnnActivationMode_t mode,
                                                  cudnnNanPropagation_t nan, double coefficient) {
  MXMACA_REQUIRE(usable(desc) && valid(mode) && valid(nan));
  desc->mode = mode;
  desc->nan = nan;
  desc->coefficient = coefficient;
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t desc, double beta) {
  MXMACA_REQUIRE(usable(desc));
  desc->swishBeta = beta;
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t desc, const void* alpha,
                                            const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                            const cudnnTensorDescriptor_t yDesc, void* y) {
  MXMACA_LATER(Status, cudnnActivationForward, handle, desc, scalars(handle, alpha), xDesc, x, scalars(handle, beta),
               yDesc, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc));
    REQUIRE_SAME(xDesc, yDesc);
    return MXMACA_COMPUTE_IN(xDesc->type, {
      std::vector<T> values = read<T>(*xDesc, x);
      for (T& value : values) value = activate(*desc, value);
      blend<T>(*yDesc, y, values, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t desc, const void* alpha,
                                             const cudnnTensorDescriptor_t yDesc, const void* y,
                                             const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                             const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                             const cudnnTensorDescriptor_t dxDesc, void* dx) {
  MXMACA_LATER(Status, cudnnActivationBackward, handle, desc, scalars(handle, alpha), yDesc, y, dyDesc, dy, xDesc, x,
               scalars(handle, beta), dxDesc, dx);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc));
    REQUIRE_SAME(xDesc, yDesc);
    REQUIRE_SAME(dyDesc, dxDesc);
    REQUIRE_SAME(xDesc, dxDesc);
    return MXMACA_COMPUTE_IN(xDesc->type, {
      const std::vector<T> input = read<T>(*xDesc, x), output = read<T>(*yDesc, y);
      std::vector<T> gradient = read<T>(*dyDesc, dy);
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] *= slope(*desc, input[i], output[i]);
      blend<T>(*dxDesc, dx, gradient, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}

// ---- Softmax --------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                         cudnnSoftmaxMode_t mode, const void* alpha,
                                         const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                         const cudnnTensorDescriptor_t yDesc, void* y) {
  MXMACA_LATER(Status, cudnnSoftmaxForward, handle, algorithm, mode, scalars(handle, alpha), xDesc, x,
               scalars(handle, beta), yDesc, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && valid(mode));
    REQUIRE_SAME(xDesc, yDesc);
    return MXMACA_COMPUTE_IN(xDesc->type, {
      std::vector<T> values = read<T>(*xDesc, x);
      eachLine(*xDesc, mode, [&](int64_t start, int64_t count, int64_t step) {
        T* const line = values.data() + start;
        T greatest = line[0];
        for (int64_t i = 1; i < count; ++i) greatest = std::max(greatest, line[i * step]);
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(line[i * step] - greatest));
        for (int64_t i = 0; i < count; ++i) {
          const auto shifted = static_cast<double>(line[i * step] - greatest);
          line[i * step] =
              static_cast<T>(algorithm == CUDNN_SOFTMAX_LOG ? shifted - std::log(sum) : std::exp(shifted) / sum);
        }
      });
      blend<T>(*yDesc, y, values, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                          cudnnSoftmaxMode_t mode, const void* alpha,
                                          const cudnnTensorDescriptor_t yDesc, const void* y,
                                          const cudnnTensorDescriptor_t dyDesc, const void* dy, const void* beta,
                                          const cudnnTensorDescriptor_t dxDesc, void* dx) {
  MXMACA_LATER(Status, cudnnSoftmaxBackward, handle, algorithm, mode, scalars(handle, alpha), yDesc, y, dyDesc, dy,
               scalars(handle, beta), dxDesc, dx);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && valid(mode));
    REQUIRE_SAME(yDesc, dyDesc);
    REQUIRE_SAME(yDesc, dxDesc);
    return MXMACA_COMPUTE_IN(yDesc->type, {
      const std::vector<T> output = read<T>(*yDesc, y);
      std::vector<T> gradient = read<T>(*dyDesc, dy);
      eachLine(*yDesc, mode, [&](int64_t start, int64_t count, int64_t step) {
        const T* const out = output.data() + start;
        T* const line = gradient.data() + start;
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) {
          sum += static_cast<double>(line[i * step]) *
                 (algorithm == CUDNN_SOFTMAX_LOG ? 1.0 : static_cast<double>(out[i * step]));
        }
        for (int64_t i = 0; i < count; ++i) {
          const auto value = static_cast<double>(out[i * step]);
          const auto from = static_cast<double>(line[i * step]);
          line[i * step] =
              static_cast<T>(algorithm == CUDNN_SOFTMAX_LOG ? from - std::exp(value) * sum : value * (from - sum));
        }
      });
      blend<T>(*dxDesc, dx, gradient, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}

// ---- Dropout --------------------------------------------------------------------------------------------------------
namespace {
// What lies in the caller's memory of states: it makes the next mask another one.
struct DropoutState {
  unsigned long long seed, used;
};
}  // namespace

MXMACA_EXPORT Status cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(bytes != nullptr);
    *bytes = sizeof(DropoutState);
    return CUDNN_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x, size_t* bytes) {
  MXMACA_REQUIRE(usable(x) && bytes != nullptr);
  *bytes = static_cast<size_t>(product(x->sizes));
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
                                                   float probability, void* states, size_t bytes, unsigned long long) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && probability >= 0 && probability <= 1);
    MXMACA_REQUIRE(states == nullptr || bytes >= sizeof(DropoutState));
    *desc = {probability, states};
    return CUDNN_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle, float probability,
                                               void* states, size_t bytes, unsigned long long seed) {
  const Status status = cudnnRestoreDropoutDescriptor(desc, handle, probability, states, bytes, seed);
  if (status == CUDNN_STATUS_SUCCESS && states != nullptr) *static_cast<DropoutState*>(states) = {seed, 0};
  return status;
}
MXMACA_EXPORT Status cudnnDropoutForward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t desc,
                                         const cudnnTensorDescriptor_t xDesc, const void* x,
                                         const cudnnTensorDescriptor_t yDesc, void* y, void* reserve, size_t bytes) {
  MXMACA_LATER(Status, cudnnDropoutForward, handle, desc, xDesc, x, yDesc, y, reserve, bytes);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && desc->states != nullptr && reserve != nullptr && sameKind(xDesc, yDesc));
    MXMACA_REQUIRE(bytes >= static_cast<size_t>(product(xDesc->sizes)));
    return MXMACA_COMPUTE_IN(xDesc->type, {
      std::vector<T> values = read<T>(*xDesc, x);
      auto& state = *static_cast<DropoutState*>(desc->states);
      curandStatePhilox4_32_10_t generator;
      curand_init(state.seed, 0, state.used, &generator);
      state.used += values.size();
      auto* const kept = static_cast<unsigned char*>(reserve);
      const T scale = desc->probability < 1 ? T(1) / (T(1) - static_cast<T>(desc->probability)) : T(0);
      for (size_t i = 0; i < values.size(); ++i) {
        kept[i] = curand_uniform(&generator) > desc->probability ? 1 : 0;
        values[i] = kept[i] != 0 ? values[i] * scale : T(0);
      }
      blend<T>(*yDesc, y, values, T(1), T(0));
    });
  });
}
MXMACA_EXPORT Status cudnnDropoutBackward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t desc,
                                          const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                          const cudnnTensorDescriptor_t dxDesc, void* dx, void* reserve, size_t bytes) {
  MXMACA_LATER(Status, cudnnDropoutBackward, handle, desc, dyDesc, dy, dxDesc, dx, reserve, bytes);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && reserve != nullptr && sameKind(dyDesc, dxDesc));
    MXMACA_REQUIRE(bytes >= static_cast<size_t>(product(dyDesc->sizes)));
    return MXMACA_COMPUTE_IN(dyDesc->type, {
      std::vector<T> values = read<T>(*dyDesc, dy);
      const auto* const kept = static_cast<const unsigned char*>(reserve);
      const T scale = desc->probability < 1 ? T(1) / (T(1) - static_cast<T>(desc->probability)) : T(0);
      for (size_t i = 0; i < values.size(); ++i) values[i] = kept[i] != 0 ? values[i] * scale : T(0);
      blend<T>(*dxDesc, dx, values, T(1), T(0));
    });
  });
}
