// Batch normalization, and local response normalization.

#include <cmath>

#include "tensors.h"

using namespace mxmaca;
using namespace mxmaca::cudnn;

// ---- Batch normalization --------------------------------------------------------------------------------------------
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
  MXMACA_LATER(Status, cudnnBatchNormalizationForwardTraining, handle, mode, scalars(handle, alpha),
               scalars(handle, beta), xDesc, x, yDesc, y, parameters, scale, bias, factor, runningMean, runningVariance,
               epsilon, savedMean, savedInverse);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && scale != nullptr && bias != nullptr && epsilon >= 0);
    MXMACA_REQUIRE((runningMean == nullptr) == (runningVariance == nullptr));
    MXMACA_REQUIRE((savedMean == nullptr) == (savedInverse == nullptr));
    MXMACA_RETURN_IF_FAILED(checkBatchNorm(xDesc, yDesc, parameters, mode));
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
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(x) && bytes != nullptr && valid(mode) && liveOrNull(activation));
    MXMACA_REQUIRE(valid(operations));
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
  MXMACA_LATER(Status, cudnnBatchNormalizationForwardInference, handle, mode, scalars(handle, alpha),
               scalars(handle, beta), xDesc, x, yDesc, y, parameters, scale, bias, mean, variance, epsilon);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && scale != nullptr && bias != nullptr && mean != nullptr &&
                   variance != nullptr && epsilon >= 0);
    MXMACA_RETURN_IF_FAILED(checkBatchNorm(xDesc, yDesc, parameters, mode));
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
  MXMACA_LATER(Status, cudnnBatchNormalizationBackward, handle, mode, scalars(handle, alpha), scalars(handle, beta),
               scalars(handle, alphaParameters), scalars(handle, betaParameters), xDesc, x, dyDesc, dy, dxDesc, dx,
               parameters, scale, dScale, dBias, epsilon, savedMean, savedInverse);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && alphaParameters != nullptr && betaParameters != nullptr);
    MXMACA_REQUIRE(dx != nullptr && scale != nullptr && dScale != nullptr && dBias != nullptr && usable(dyDesc));
    MXMACA_REQUIRE((savedMean == nullptr) == (savedInverse == nullptr) && epsilon >= 0);
    MXMACA_RETURN_IF_FAILED(checkBatchNorm(xDesc, dxDesc, parameters, mode));
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

// ---- Local response normalization -----------------------------------------------------------------------------------
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
  MXMACA_LATER(Status, cudnnLRNCrossChannelForward, handle, desc, mode, scalars(handle, alpha), xDesc, x,
               scalars(handle, beta), yDesc, y);
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
  MXMACA_LATER(Status, cudnnLRNCrossChannelBackward, handle, desc, mode, scalars(handle, alpha), yDesc, y, dyDesc, dy,
               xDesc, x, scalars(handle, beta), dxDesc, dx);
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
