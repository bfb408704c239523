// What cuDNN's descriptors hold, and tensors as dense arrays to compute with.
#pragma once

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "gemm.h"
#include "library.h"
#include "numbers.h"

#pragma GCC visibility push(default)
#include "cudnn.h"
#pragma GCC visibility pop

using Dimensions = std::vector<int64_t>;

struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Dimensions sizes, strides;
};
// Sizes are K, C, and the window; strides follow from the format.
struct cudnnFilterStruct {
  cudnnTensorStruct tensor;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
};
struct cudnnConvolutionStruct {
  std::vector<int64_t> padding, stride, dilation;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  cudnnDataType_t computeType = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
};
struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  std::vector<int64_t> window, padding, stride;
};
struct cudnnActivationStruct {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0;
  double swishBeta = 1;
};
struct cudnnLRNStruct {
  unsigned n = 5;
  double alpha = 1e-4, beta = 0.75, k = 2;
};
struct cudnnDropoutStruct {
  float probability = 0;
  void* states = nullptr;
};
struct cudnnOpTensorStruct {
  cudnnOpTensorOp_t op = CUDNN_OP_TENSOR_ADD;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};
struct cudnnReduceTensorStruct {
  cudnnReduceTensorOp_t op = CUDNN_REDUCE_TENSOR_ADD;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  cudnnReduceTensorIndices_t indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
};

MXMACA_OBJECT(cudnnContext, Cudnn);
MXMACA_OBJECT(cudnnTensorStruct, CudnnTensor);
MXMACA_OBJECT(cudnnFilterStruct, CudnnFilter);
MXMACA_OBJECT(cudnnConvolutionStruct, CudnnConvolution);
MXMACA_OBJECT(cudnnPoolingStruct, CudnnPooling);
MXMACA_OBJECT(cudnnActivationStruct, CudnnActivation);
MXMACA_OBJECT(cudnnLRNStruct, CudnnLrn);
MXMACA_OBJECT(cudnnDropoutStruct, CudnnDropout);
MXMACA_OBJECT(cudnnOpTensorStruct, CudnnOpTensor);
MXMACA_OBJECT(cudnnReduceTensorStruct, CudnnReduceTensor);

MXMACA_ANSWERS(cudnnStatus_t, CUDNN_STATUS_SUCCESS, CUDNN_STATUS_NOT_INITIALIZED, CUDNN_STATUS_BAD_PARAM,
               CUDNN_STATUS_INTERNAL_ERROR, CUDNN_STATUS_EXECUTION_FAILED);
MXMACA_RANGE(cudnnNanPropagation_t, CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN);
MXMACA_RANGE(cudnnDataType_t, CUDNN_DATA_FLOAT, CUDNN_DATA_FP8_E5M2);
MXMACA_RANGE(cudnnBatchNormMode_t, CUDNN_BATCHNORM_PER_ACTIVATION, CUDNN_BATCHNORM_SPATIAL_PERSISTENT);
MXMACA_RANGE(cudnnSoftmaxAlgorithm_t, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_LOG);
MXMACA_RANGE(cudnnSoftmaxMode_t, CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL);
MXMACA_RANGE(cudnnConvolutionFwdAlgo_t, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
             CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED);
MXMACA_RANGE(cudnnConvolutionBwdDataAlgo_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
             CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED);
MXMACA_RANGE(cudnnConvolutionBwdFilterAlgo_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
             CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING);
MXMACA_RANGE(cudnnConvolutionMode_t, CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION);
MXMACA_RANGE(cudnnMathType_t, CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH);
MXMACA_RANGE(cudnnActivationMode_t, CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_SWISH);
MXMACA_RANGE(cudnnPoolingMode_t, CUDNN_POOLING_MAX, CUDNN_POOLING_MAX_DETERMINISTIC);
MXMACA_RANGE(cudnnReduceTensorIndices_t, CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES);
MXMACA_RANGE(cudnnIndicesType_t, CUDNN_32BIT_INDICES, CUDNN_8BIT_INDICES);
MXMACA_RANGE(cudnnBatchNormOps_t, CUDNN_BATCHNORM_OPS_BN, CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION);

namespace mxmaca {
namespace cudnn {

using Status = cudnnStatus_t;
using Tensor = cudnnTensorStruct;

// Whether a descriptor is one, and has been set.
template <class Descriptor>
bool usable(const Descriptor* descriptor) {
  return live(descriptor);
}
inline bool usable(const Tensor* tensor) { return live(tensor) && !tensor->sizes.empty(); }
inline bool usable(const cudnnFilterStruct* filter) { return live(filter) && !filter->tensor.sizes.empty(); }
inline bool usable(const cudnnConvolutionStruct* convolution) {
  return live(convolution) && !convolution->padding.empty();
}
inline bool usable(const cudnnPoolingStruct* pooling) { return live(pooling) && !pooling->window.empty(); }

template <class Descriptor>
Status create(Descriptor** descriptor) {
  return createDescriptor<Status>(descriptor);
}
// cuDNN documents that there is nothing to do for a null pointer.
template <class Descriptor>
Status destroy(Descriptor* descriptor) {
  return descriptor == nullptr ? CUDNN_STATUS_SUCCESS : destroyDescriptor<Status>(descriptor);
}

inline bool sameKind(const Tensor* a, const Tensor* b) {
  return usable(a) && usable(b) && a->sizes == b->sizes && a->type == b->type;
}
// The usual four arguments of a layer: alpha, beta, and tensors of one shape and type.
#define REQUIRE_SAME(a, b)                                                                                     \
  do {                                                                                                         \
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && usable(a) && usable(b) && (a)->sizes == (b)->sizes); \
    if (!sameKind(a, b)) return CUDNN_STATUS_NOT_SUPPORTED;                                                    \
  } while (false)

// CUDA's name of an element type that is computed with; -1 for others.
cudaDataType libraryType(cudnnDataType_t type);

inline int64_t product(const Dimensions& sizes, size_t first = 0) {
  int64_t result = 1;
  for (size_t i = first; i < sizes.size(); ++i) result *= sizes[i];
  return result;
}

// Calls `work` with double for double tensors, and float for those of 32 and 16 bits.
template <class Work>
Status withType(cudnnDataType_t type, Work&& work) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return work(Typed<float>());
    case CUDNN_DATA_DOUBLE: return work(Typed<double>());
    default: return CUDNN_STATUS_NOT_SUPPORTED;
  }
}
#define MXMACA_COMPUTE_IN(type, ...) MXMACA_WITH_TYPE(withType, type, T, __VA_ARGS__)

// Visits the elements in the order of their indices: number and place in memory.
template <class Visit>
void eachElement(const Tensor& tensor, Visit&& visit) {
  const int64_t count = product(tensor.sizes);
  if (count == 0) return;
  const size_t rank = tensor.sizes.size();
  const int64_t inner = tensor.sizes[rank - 1];
  const int64_t step = tensor.strides[rank - 1];
  std::vector<int64_t> index(rank, 0);
  int64_t base = 0;
  for (int64_t number = 0; number < count; number += inner) {
    for (int64_t i = 0; i < inner; ++i) visit(number + i, base + i * step);
    for (size_t axis = rank - 1; axis-- > 0;) {
      base += tensor.strides[axis];
      if (++index[axis] < tensor.sizes[axis]) break;
      base -= tensor.strides[axis] * tensor.sizes[axis];
      index[axis] = 0;
    }
  }
}

// All elements in the order of their indices.
template <class T>
std::vector<T> read(const Tensor& tensor, const void* data) {
  std::vector<T> values(static_cast<size_t>(product(tensor.sizes)));
  const cudaDataType type = libraryType(tensor.type);
  const bool same = type == (sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F);
  there(data);
  reachData();
  eachElement(tensor, [&](int64_t number, int64_t place) {
    values[static_cast<size_t>(number)] =
        same ? static_cast<const T*>(data)[place] : static_cast<T>(readElement(data, type, place).real());
  });
  return values;
}

// data = alpha * values + beta * data, where beta 0 does not read.
template <class T>
void blend(const Tensor& tensor, void* data, const std::vector<T>& values, T alpha, T beta) {
  const cudaDataType type = libraryType(tensor.type);
  const bool same = type == (sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F);
  there(data);
  reachData();
  eachElement(tensor, [&](int64_t number, int64_t place) {
    T value = alpha * values[static_cast<size_t>(number)];
    if (beta != T(0)) {
      value +=
          beta * (same ? static_cast<const T*>(data)[place] : static_cast<T>(readElement(data, type, place).real()));
    }
    if (same) {
      static_cast<T*>(data)[place] = value;
    } else {
      writeElement(data, type, place, static_cast<double>(value));
    }
  });
}

// alpha and beta are float, or double where the tensor is.
template <class T>
T scalar(const void* pointer) {
  return *static_cast<const T*>(there(pointer));
}

// Values of a tensor repeated along the axes where it has one element.
template <class T>
std::vector<T> broadcast(const Tensor& tensor, const void* data, const Dimensions& sizes) {
  Tensor wide = tensor;
  wide.sizes = sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (tensor.sizes[i] == 1) wide.strides[i] = 0;
  }
  return read<T>(wide, data);
}
inline bool broadcasts(const Dimensions& from, const Dimensions& to) {
  if (from.size() != to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[i] && from[i] != 1) return false;
  }
  return true;
}

template <class T>
T activate(const cudnnActivationStruct& activation, T x) {
  const T coefficient = static_cast<T>(activation.coefficient);
  const bool keepsNan = activation.nan == CUDNN_PROPAGATE_NAN && x != x;
  switch (activation.mode) {
    case CUDNN_ACTIVATION_SIGMOID: return T(1) / (T(1) + std::exp(-x));
    case CUDNN_ACTIVATION_RELU: return keepsNan ? x : x > T(0) ? x : T(0);
    case CUDNN_ACTIVATION_TANH: return std::tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return keepsNan ? x : x > T(0) ? std::min(x, coefficient) : T(0);
    case CUDNN_ACTIVATION_ELU: return x > T(0) ? x : coefficient * std::expm1(x);
    case CUDNN_ACTIVATION_SWISH: return x / (T(1) + std::exp(-static_cast<T>(activation.swishBeta) * x));
    default: return x;
  }
}

}  // namespace cudnn
}  // namespace mxmaca
