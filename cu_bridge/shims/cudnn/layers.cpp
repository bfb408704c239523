// Activation, softmax, pooling, normalisation, dropout.

#include <cmath>
#include <cstring>
#include <limits>

#include "curand_kernel.h"
#include "tensors.h"

using namespace mxmaca;
using namespace mxmaca::cudnn;

namespace {

bool sameKind(const Tensor* a, const Tensor* b) {
  return usable(a) && usable(b) && a->sizes == b->sizes && a->type == b->type;
}
// The usual four arguments of a layer: alpha, beta, and tensors of one shape and type.
#define REQUIRE_SAME(a, b)                                                                                     \
  do {                                                                                                         \
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && usable(a) && usable(b) && (a)->sizes == (b)->sizes); \
    if (!sameKind(a, b)) return CUDNN_STATUS_NOT_SUPPORTED;                                                    \
  } while (false)

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

// ---- Activation -------------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc, cudnnActivationMode_t mode,
                                                  cudnnNanPropagation_t nan, double coefficient) {
  MXMACA_REQUIRE(usable(desc) && mode >= CUDNN_ACTIVATION_SIGMOID && mode <= CUDNN_ACTIVATION_SWISH && valid(nan));
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

// ---- Softmax ----------------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                         cudnnSoftmaxMode_t mode, const void* alpha,
                                         const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                         const cudnnTensorDescriptor_t yDesc, void* y) {
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

// ---- Pooling ----------------------------------------------------------------------------------------------------------------
namespace {

Status setPooling(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan, int axes,
                  const int* window, const int* padding, const int* stride) {
  MXMACA_REQUIRE(live(desc) && within(mode, CUDNN_POOLING_MAX, CUDNN_POOLING_MAX_DETERMINISTIC) && valid(nan));
  MXMACA_REQUIRE(axes >= 1 && axes <= CUDNN_DIM_MAX - 2);
  for (int i = 0; i < axes; ++i) MXMACA_REQUIRE(window[i] >= 1 && padding[i] >= 0 && stride[i] >= 1);
  desc->mode = mode;
  desc->nan = nan;
  desc->window.assign(window, window + axes);
  desc->padding.assign(padding, padding + axes);
  desc->stride.assign(stride, stride + axes);
  return CUDNN_STATUS_SUCCESS;
}
Status pooledSizes(const cudnnPoolingStruct* desc, const Tensor* x, Dimensions* sizes) {
  MXMACA_REQUIRE(usable(desc) && usable(x) && x->sizes.size() == desc->window.size() + 2);
  *sizes = x->sizes;
  for (size_t i = 0; i < desc->window.size(); ++i) {
    (*sizes)[i + 2] = (x->sizes[i + 2] + 2 * desc->padding[i] - desc->window[i]) / desc->stride[i] + 1;
  }
  return CUDNN_STATUS_SUCCESS;
}
Status checkPooling(const cudnnPoolingStruct* desc, const Tensor* x, const Tensor* y) {
  Dimensions sizes;
  const Status status = pooledSizes(desc, x, &sizes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  MXMACA_REQUIRE(usable(y) && y->sizes == sizes);
  if (x->type != y->type || desc->window.size() > 3) return CUDNN_STATUS_NOT_SUPPORTED;
  return CUDNN_STATUS_SUCCESS;
}

// For each output: its number, and the input elements under its window.
template <class Visit>
void eachWindow(const cudnnPoolingStruct& desc, const Dimensions& in, const Dimensions& out, Visit&& visit) {
  const size_t axes = desc.window.size();
  const int64_t planes = in[0] * in[1];
  const int64_t inSize = product(in, 2);
  const int64_t outSize = product(out, 2);
  std::vector<int64_t> under;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t position = 0; position < outSize; ++position) {
      under.assign(1, 0);
      int64_t rest = position;
      std::array<int64_t, 3> at{};
      for (size_t axis = axes; axis-- > 0; rest /= out[axis + 2]) at[axis] = rest % out[axis + 2];
      for (size_t axis = 0; axis < axes; ++axis) {
        const int64_t start = at[axis] * desc.stride[axis] - desc.padding[axis];
        const int64_t low = std::max<int64_t>(start, 0);
        const int64_t high = std::min(start + desc.window[axis], in[axis + 2]);
        std::vector<int64_t> next;
        for (const int64_t base : under) {
          for (int64_t i = low; i < high; ++i) next.push_back(base * in[axis + 2] + i);
        }
        under.swap(next);
      }
      for (int64_t& place : under) place += plane * inSize;
      visit(plane * outSize + position, under);
    }
  }
}
// The place of the greatest element; a NaN is greater than all where it is to be seen, and less otherwise.
template <class T>
int64_t greatest(const std::vector<T>& values, const std::vector<int64_t>& under, bool nanCounts) {
  int64_t best = -1;
  for (const int64_t place : under) {
    const T value = values[static_cast<size_t>(place)];
    if (value != value) {
      if (nanCounts) return place;
      continue;
    }
    if (best < 0 || value > values[static_cast<size_t>(best)]) best = place;
  }
  return best;
}
bool isMax(const cudnnPoolingStruct& desc) {
  return desc.mode == CUDNN_POOLING_MAX || desc.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}
int64_t divisor(const cudnnPoolingStruct& desc, size_t inside) {
  if (desc.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING) return product(desc.window);
  return static_cast<int64_t>(std::max<size_t>(inside, 1));
}

}  // namespace

MXMACA_EXPORT Status cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode,
                                                 cudnnNanPropagation_t nan, int windowH, int windowW, int padH,
                                                 int padW, int strideH, int strideW) {
  const int window[] = {windowH, windowW}, padding[] = {padH, padW}, stride[] = {strideH, strideW};
  return setPooling(desc, mode, nan, 2, window, padding, stride);
}
MXMACA_EXPORT Status cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t desc, const cudnnPoolingMode_t mode,
                                                 const cudnnNanPropagation_t nan, int axes, const int* window,
                                                 const int* padding, const int* stride) {
  MXMACA_REQUIRE(window != nullptr && padding != nullptr && stride != nullptr);
  return setPooling(desc, mode, nan, axes, window, padding, stride);
}
MXMACA_EXPORT Status cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t desc,
                                                       const cudnnTensorDescriptor_t x, int rank, int* sizes) {
  Dimensions found;
  const Status status = pooledSizes(desc, x, &found);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  MXMACA_REQUIRE(sizes != nullptr && static_cast<size_t>(rank) == found.size());
  for (size_t i = 0; i < found.size(); ++i) sizes[i] = static_cast<int>(found[i]);
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t desc,
                                                       const cudnnTensorDescriptor_t x, int* n, int* c, int* h,
                                                       int* w) {
  MXMACA_REQUIRE(n != nullptr && c != nullptr && h != nullptr && w != nullptr);
  int sizes[4];
  const Status status = cudnnGetPoolingNdForwardOutputDim(desc, x, 4, sizes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  *n = sizes[0];
  *c = sizes[1];
  *h = sizes[2];
  *w = sizes[3];
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t desc, const void* alpha,
                                         const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                         const cudnnTensorDescriptor_t yDesc, void* y) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
    const Status status = checkPooling(desc, xDesc, yDesc);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return MXMACA_COMPUTE_IN(xDesc->type, {
      const std::vector<T> values = read<T>(*xDesc, x);
      std::vector<T> result(static_cast<size_t>(product(yDesc->sizes)));
      eachWindow(*desc, xDesc->sizes, yDesc->sizes, [&](int64_t number, const std::vector<int64_t>& under) {
        T& out = result[static_cast<size_t>(number)];
        if (isMax(*desc)) {
          const int64_t place = greatest(values, under, desc->nan == CUDNN_PROPAGATE_NAN);
          out = place < 0 ? -std::numeric_limits<T>::infinity() : values[static_cast<size_t>(place)];
        } else {
          double sum = 0;
          for (const int64_t place : under) sum += static_cast<double>(values[static_cast<size_t>(place)]);
          out = static_cast<T>(sum / static_cast<double>(divisor(*desc, under.size())));
        }
      });
      blend<T>(*yDesc, y, result, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t desc, const void* alpha,
                                          const cudnnTensorDescriptor_t yDesc, const void* y,
                                          const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                          const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                          const cudnnTensorDescriptor_t dxDesc, void* dx) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(y != nullptr);
    REQUIRE_SAME(yDesc, dyDesc);
    REQUIRE_SAME(xDesc, dxDesc);
    const Status status = checkPooling(desc, xDesc, yDesc);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return MXMACA_COMPUTE_IN(xDesc->type, {
      const std::vector<T> values = isMax(*desc) ? read<T>(*xDesc, x) : std::vector<T>();
      const std::vector<T> gradient = read<T>(*dyDesc, dy);
      std::vector<T> result(static_cast<size_t>(product(dxDesc->sizes)), T(0));
      eachWindow(*desc, xDesc->sizes, yDesc->sizes, [&](int64_t number, const std::vector<int64_t>& under) {
        const T from = gradient[static_cast<size_t>(number)];
        if (isMax(*desc)) {  // the first of several equal ones
          const int64_t place = greatest(values, under, desc->nan == CUDNN_PROPAGATE_NAN);
          if (place >= 0) result[static_cast<size_t>(place)] += from;
        } else {
          const T share = from / static_cast<T>(divisor(*desc, under.size()));
          for (const int64_t place : under) result[static_cast<size_t>(place)] += share;
        }
      });
      blend<T>(*dxDesc, dx, result, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}

// ---- Batch normalisation ----------------------------------------------------------------------------------------------------
namespace {

// The parameters' type for a tensor's type.
cudnnDataType_t parameterType(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}
Dimensions parameterSizes(const Dimensions& sizes, cudnnBatchNormMode_t mode) {
  Dimensions result = sizes;
  result[0] = 1;
  for (size_t i = 2; i < sizes.size() && mode != CUDNN_BATCHNORM_PER_ACTIVATION; ++i) result[i] = 1;
  return result;
}
Status checkBatchNorm(const Tensor* x, const Tensor* y, const Tensor* parameters, cudnnBatchNormMode_t mode) {
  MXMACA_REQUIRE(usable(x) && usable(y) && usable(parameters) && x->sizes == y->sizes && x->sizes.size() >= 4);
  MXMACA_REQUIRE(valid(mode));
  MXMACA_REQUIRE(parameters->sizes == parameterSizes(x->sizes, mode));
  return x->type == y->type && parameters->type == parameterType(x->type) ? CUDNN_STATUS_SUCCESS
                                                                          : CUDNN_STATUS_NOT_SUPPORTED;
}
// Which parameter an element belongs to.
struct Groups {
  int64_t count, size;  // parameters, and elements of each
  int64_t features, inner;
  Groups(const Dimensions& sizes, cudnnBatchNormMode_t mode) {
    const bool perActivation = mode == CUDNN_BATCHNORM_PER_ACTIVATION;
    inner = perActivation ? 1 : product(sizes, 2);
    features = perActivation ? product(sizes, 1) : sizes[1];
    count = features;
    size = sizes[0] * inner;
  }
  size_t of(size_t number) const { return static_cast<size_t>(static_cast<int64_t>(number) / inner % features); }
};
template <class T>
void moments(const std::vector<T>& values, const Groups& groups, std::vector<double>* mean,
             std::vector<double>* variance) {
  mean->assign(static_cast<size_t>(groups.count), 0);
  variance->assign(static_cast<size_t>(groups.count), 0);
  for (size_t i = 0; i < values.size(); ++i) (*mean)[groups.of(i)] += static_cast<double>(values[i]);
  for (double& each : *mean) each /= static_cast<double>(groups.size);
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - (*mean)[groups.of(i)];
    (*variance)[groups.of(i)] += difference * difference;
  }
  for (double& each : *variance) each /= static_cast<double>(groups.size);
}

}  // namespace

MXMACA_EXPORT Status cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived, const cudnnTensorDescriptor_t x,
                                                   cudnnBatchNormMode_t mode) {
  MXMACA_REQUIRE(live(derived) && usable(x) && x->sizes.size() >= 4 && valid(mode));
  const Dimensions sizes = parameterSizes(x->sizes, mode);
  const std::vector<int> plain(sizes.begin(), sizes.end());
  return cudnnSetTensorNdDescriptorEx(derived, CUDNN_TENSOR_NCHW, parameterType(x->type),
                                      static_cast<int>(plain.size()), plain.data());
}
MXMACA_EXPORT Status cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnTensorDescriptor_t yDesc, void* y,
    const cudnnTensorDescriptor_t parameters, const void* scale, const void* bias, double factor, void* runningMean,
    void* runningVariance, double epsilon, void* savedMean, void* savedInverse) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && scale != nullptr && bias != nullptr && epsilon >= 0);
    MXMACA_REQUIRE((runningMean == nullptr) == (runningVariance == nullptr));
    MXMACA_REQUIRE((savedMean == nullptr) == (savedInverse == nullptr));
    const Status status = checkBatchNorm(xDesc, yDesc, parameters, mode);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return MXMACA_COMPUTE_IN(xDesc->type, {
      std::vector<T> values = read<T>(*xDesc, x);
      const Groups groups(xDesc->sizes, mode);
      std::vector<double> mean, variance;
      moments(values, groups, &mean, &variance);
      const auto* const gamma = static_cast<const T*>(scale);
      const auto* const shift = static_cast<const T*>(bias);
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t g = groups.of(i);
        values[i] = static_cast<T>((static_cast<double>(values[i]) - mean[g]) / std::sqrt(variance[g] + epsilon) *
                                       static_cast<double>(gamma[g]) +
                                   static_cast<double>(shift[g]));
      }
      blend<T>(*yDesc, y, values, scalar<T>(alpha), scalar<T>(beta));
      const auto size = static_cast<double>(groups.size);
      for (size_t g = 0; g < mean.size(); ++g) {
        if (runningMean != nullptr) {
          T& average = static_cast<T*>(runningMean)[g];
          T& spread = static_cast<T*>(runningVariance)[g];
          const double unbiased = groups.size > 1 ? variance[g] * size / (size - 1) : variance[g];
          average = static_cast<T>((1 - factor) * (factor == 1 ? 0 : static_cast<double>(average)) + factor * mean[g]);
          spread = static_cast<T>((1 - factor) * (factor == 1 ? 0 : static_cast<double>(spread)) + factor * unbiased);
        }
        if (savedMean != nullptr) {
          static_cast<T*>(savedMean)[g] = static_cast<T>(mean[g]);
          static_cast<T*>(savedInverse)[g] = static_cast<T>(1 / std::sqrt(variance[g] + epsilon));
        }
      }
    });
  });
}
/// What the forward pass would leave for the backward pass beside the saved statistics: nothing.
MXMACA_EXPORT Status cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x, size_t* bytes) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(x) && bytes != nullptr && valid(mode) && liveOrNull(activation));
    MXMACA_REQUIRE(within(operations, CUDNN_BATCHNORM_OPS_BN, CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION));
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                                                             const void* alpha, const void* beta,
                                                             const cudnnTensorDescriptor_t xDesc, const void* x,
                                                             const cudnnTensorDescriptor_t yDesc, void* y,
                                                             const cudnnTensorDescriptor_t parameters,
                                                             const void* scale, const void* bias, const void* mean,
                                                             const void* variance, double epsilon) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && scale != nullptr && bias != nullptr && mean != nullptr &&
                   variance != nullptr && epsilon >= 0);
    const Status status = checkBatchNorm(xDesc, yDesc, parameters, mode);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return MXMACA_COMPUTE_IN(xDesc->type, {
      std::vector<T> values = read<T>(*xDesc, x);
      const Groups groups(xDesc->sizes, mode);
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t g = groups.of(i);
        const double spread = std::sqrt(static_cast<double>(static_cast<const T*>(variance)[g]) + epsilon);
        const double centred = static_cast<double>(values[i]) - static_cast<double>(static_cast<const T*>(mean)[g]);
        values[i] = static_cast<T>(centred / spread * static_cast<double>(static_cast<const T*>(scale)[g]) +
                                   static_cast<double>(static_cast<const T*>(bias)[g]));
      }
      blend<T>(*yDesc, y, values, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha,
                                                     const void* beta, const void* alphaParameters,
                                                     const void* betaParameters, const cudnnTensorDescriptor_t xDesc,
                                                     const void* x, const cudnnTensorDescriptor_t dyDesc,
                                                     const void* dy, const cudnnTensorDescriptor_t dxDesc, void* dx,
                                                     const cudnnTensorDescriptor_t parameters, const void* scale,
                                                     void* dScale, void* dBias, double epsilon, const void* savedMean,
                                                     const void* savedInverse) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && alphaParameters != nullptr && betaParameters != nullptr);
    MXMACA_REQUIRE(dx != nullptr && scale != nullptr && dScale != nullptr && dBias != nullptr && usable(dyDesc));
    MXMACA_REQUIRE((savedMean == nullptr) == (savedInverse == nullptr) && epsilon >= 0);
    const Status status = checkBatchNorm(xDesc, dxDesc, parameters, mode);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (!sameKind(xDesc, dyDesc)) return CUDNN_STATUS_BAD_PARAM;
    return MXMACA_COMPUTE_IN(xDesc->type, {
      const std::vector<T> values = read<T>(*xDesc, x);
      std::vector<T> gradient = read<T>(*dyDesc, dy);
      const Groups groups(xDesc->sizes, mode);
      std::vector<double> mean, inverse;
      if (savedMean != nullptr) {
        const auto* const means = static_cast<const T*>(savedMean);
        const auto* const inverses = static_cast<const T*>(savedInverse);
        mean.assign(means, means + groups.count);
        inverse.assign(inverses, inverses + groups.count);
      } else {
        moments(values, groups, &mean, &inverse);
        for (double& each : inverse) each = 1 / std::sqrt(each + epsilon);
      }
      std::vector<double> sums(mean.size(), 0), products(mean.size(), 0);
      const auto normal = [&](size_t i, size_t g) { return (static_cast<double>(values[i]) - mean[g]) * inverse[g]; };
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t g = groups.of(i);
        sums[g] += static_cast<double>(gradient[i]);
        products[g] += static_cast<double>(gradient[i]) * normal(i, g);
      }
      const auto size = static_cast<double>(groups.size);
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t g = groups.of(i);
        const double centred = static_cast<double>(gradient[i]) - (sums[g] + normal(i, g) * products[g]) / size;
        gradient[i] = static_cast<T>(static_cast<double>(static_cast<const T*>(scale)[g]) * inverse[g] * centred);
      }
      blend<T>(*dxDesc, dx, gradient, scalar<T>(alpha), scalar<T>(beta));
      const std::vector<T> scales(products.begin(), products.end()), biases(sums.begin(), sums.end());
      blend<T>(*parameters, dScale, scales, scalar<T>(alphaParameters), scalar<T>(betaParameters));
      blend<T>(*parameters, dBias, biases, scalar<T>(alphaParameters), scalar<T>(betaParameters));
    });
  });
}

// ---- Local response normalisation ---------------------------------------------------------------------------------------------
namespace {
// s = k + alpha / n * (sum of squares of the neighbouring channels), for each element.
template <class T>
std::vector<double> neighbourhood(const cudnnLRNStruct& desc, const Dimensions& sizes, const std::vector<T>& values) {
  const int64_t inner = product(sizes, 2);
  const int64_t before = (static_cast<int64_t>(desc.n) - 1) / 2;
  const int64_t after = static_cast<int64_t>(desc.n) - before - 1;
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / inner % sizes[1];
    double sum = 0;
    for (int64_t c = std::max<int64_t>(channel - before, 0); c <= std::min(channel + after, sizes[1] - 1); ++c) {
      const auto value =
          static_cast<double>(values[static_cast<size_t>(static_cast<int64_t>(i) + (c - channel) * inner)]);
      sum += value * value;
    }
    result[i] = desc.k + desc.alpha / desc.n * sum;
  }
  return result;
}
}  // namespace

MXMACA_EXPORT Status cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnSetLRNDescriptor(cudnnLRNDescriptor_t desc, unsigned n, double alpha, double beta, double k) {
  MXMACA_REQUIRE(usable(desc) && n >= CUDNN_LRN_MIN_N && n <= CUDNN_LRN_MAX_N);
  MXMACA_REQUIRE(k >= CUDNN_LRN_MIN_K && beta >= CUDNN_LRN_MIN_BETA);
  *desc = {n, alpha, beta, k};
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t desc, cudnnLRNMode_t mode,
                                                 const void* alpha, const cudnnTensorDescriptor_t xDesc, const void* x,
                                                 const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && mode == CUDNN_LRN_CROSS_CHANNEL_DIM1);
    REQUIRE_SAME(xDesc, yDesc);
    MXMACA_REQUIRE(xDesc->sizes.size() >= 2);
    return MXMACA_COMPUTE_IN(xDesc->type, {
      std::vector<T> values = read<T>(*xDesc, x);
      const std::vector<double> around = neighbourhood(*desc, xDesc->sizes, values);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<T>(static_cast<double>(values[i]) * std::pow(around[i], -desc->beta));
      }
      blend<T>(*yDesc, y, values, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t desc, cudnnLRNMode_t mode,
                                                  const void* alpha, const cudnnTensorDescriptor_t yDesc, const void* y,
                                                  const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                  const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                                  const cudnnTensorDescriptor_t dxDesc, void* dx) {
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(y != nullptr && usable(desc) && mode == CUDNN_LRN_CROSS_CHANNEL_DIM1);
    REQUIRE_SAME(yDesc, dyDesc);
    REQUIRE_SAME(xDesc, dxDesc);
    REQUIRE_SAME(xDesc, dyDesc);
    MXMACA_REQUIRE(xDesc->sizes.size() >= 2);
    return MXMACA_COMPUTE_IN(xDesc->type, {
      const std::vector<T> values = read<T>(*xDesc, x), gradient = read<T>(*dyDesc, dy);
      const Dimensions& sizes = xDesc->sizes;
      const std::vector<double> around = neighbourhood(*desc, sizes, values);
      const int64_t inner = product(sizes, 2);
      const int64_t before = (static_cast<int64_t>(desc->n) - 1) / 2;
      const int64_t after = static_cast<int64_t>(desc->n) - before - 1;
      std::vector<T> result(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t channel = static_cast<int64_t>(i) / inner % sizes[1];
        double sum = 0;  // over the channels in whose neighbourhood this one lies
        for (int64_t c = std::max<int64_t>(channel - after, 0); c <= std::min(channel + before, sizes[1] - 1); ++c) {
          const auto j = static_cast<size_t>(static_cast<int64_t>(i) + (c - channel) * inner);
          sum +=
              static_cast<double>(gradient[j]) * static_cast<double>(values[j]) * std::pow(around[j], -desc->beta - 1);
        }
        result[i] = static_cast<T>(static_cast<double>(gradient[i]) * std::pow(around[i], -desc->beta) -
                                   2 * desc->alpha * desc->beta / desc->n * static_cast<double>(values[i]) * sum);
      }
      blend<T>(*dxDesc, dx, result, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}

// ---- Dropout ------------------------------------------------------------------------------------------------------------------
namespace {
// What lies in the caller's memory of states: it makes the next mask another one.
struct DropoutState {
  unsigned long long seed, used;
};
}  // namespace

MXMACA_EXPORT Status cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* bytes) {
  return guarded(handle, [&]() -> Status {
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
