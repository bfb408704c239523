// Tensors, filters, and what acts on them element by element.

#include "tensors.h"

using namespace mxmaca;
using namespace mxmaca::cudnn;

namespace mxmaca {
namespace cudnn {

cudaDataType libraryType(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT: return CUDA_R_32F;
    case CUDNN_DATA_DOUBLE: return CUDA_R_64F;
    case CUDNN_DATA_HALF: return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16: return CUDA_R_16BF;
    case CUDNN_DATA_INT8: return CUDA_R_8I;
    case CUDNN_DATA_UINT8: return CUDA_R_8U;
    case CUDNN_DATA_INT32: return CUDA_R_32I;
    case CUDNN_DATA_FP8_E4M3: return CUDA_R_8F_E4M3;
    case CUDNN_DATA_FP8_E5M2: return CUDA_R_8F_E5M2;
    default: return static_cast<cudaDataType>(-1);
  }
}

}  // namespace cudnn
}  // namespace mxmaca

namespace {

constexpr int64_t kMostElements = (int64_t{1} << 31) - 1;  // cuDNN's own limit

// Strides of a dense tensor; with NHWC the channels lie together.
Dimensions denseStrides(const Dimensions& sizes, cudnnTensorFormat_t format) {
  Dimensions strides(sizes.size());
  int64_t step = 1;
  const bool channelsLast = format == CUDNN_TENSOR_NHWC && sizes.size() > 2;
  if (channelsLast) {
    strides[1] = 1;
    step = sizes[1];
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    if (channelsLast && i == 1) continue;
    strides[i] = step;
    step *= sizes[i];
  }
  return strides;
}

// `tensor` is a descriptor's own, and where there is none null.
Status set(Tensor* tensor, cudnnDataType_t type, const Dimensions& sizes, const Dimensions& strides) {
  MXMACA_REQUIRE(tensor != nullptr && valid(type) && sizes.size() >= 1 && sizes.size() <= CUDNN_DIM_MAX);
  int64_t count = 1;
  for (const int64_t size : sizes) {
    MXMACA_REQUIRE(size >= 1);
    if (size > kMostElements / count) return CUDNN_STATUS_NOT_SUPPORTED;
    count *= size;
  }
  tensor->type = type;
  tensor->sizes = sizes;
  tensor->strides = strides;
  return CUDNN_STATUS_SUCCESS;
}
Status setDense(Tensor* tensor, cudnnTensorFormat_t format, cudnnDataType_t type, const Dimensions& sizes) {
  if (format == CUDNN_TENSOR_NCHW_VECT_C) return CUDNN_STATUS_NOT_SUPPORTED;
  MXMACA_REQUIRE(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC);
  return set(tensor, type, sizes, denseStrides(sizes, format));
}
Tensor* inside(cudnnTensorDescriptor_t tensor) { return live(tensor) ? tensor : nullptr; }
Status bytesOf(const Tensor& tensor, size_t* bytes) {
  MXMACA_REQUIRE(bytes != nullptr && !tensor.sizes.empty());
  int64_t last = 0;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) last += (tensor.sizes[i] - 1) * tensor.strides[i];
  const size_t element = elementBytes(libraryType(tensor.type));
  if (element == 0) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = static_cast<size_t>(last + 1) * element;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

MXMACA_EXPORT Status cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) { return create(tensor); }
MXMACA_EXPORT Status cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) { return destroy(tensor); }
MXMACA_EXPORT Status cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                                cudnnDataType_t type, int n, int c, int h, int w) {
  return setDense(inside(tensor), format, type, {n, c, h, w});
}
MXMACA_EXPORT Status cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int n, int c,
                                                  int h, int w, int nStride, int cStride, int hStride, int wStride) {
  return set(inside(tensor), type, {n, c, h, w}, {nStride, cStride, hStride, wStride});
}
MXMACA_EXPORT Status cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensor, cudnnDataType_t* type, int* n,
                                                int* c, int* h, int* w, int* nStride, int* cStride, int* hStride,
                                                int* wStride) {
  MXMACA_REQUIRE(usable(tensor) && tensor->sizes.size() == 4 && type != nullptr);
  int* const sizes[] = {n, c, h, w};
  int* const strides[] = {nStride, cStride, hStride, wStride};
  for (size_t i = 0; i < 4; ++i) MXMACA_REQUIRE(sizes[i] != nullptr && strides[i] != nullptr);
  *type = tensor->type;
  for (size_t i = 0; i < 4; ++i) {
    *sizes[i] = static_cast<int>(tensor->sizes[i]);
    *strides[i] = static_cast<int>(tensor->strides[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int rank,
                                                const int* sizes, const int* strides) {
  MXMACA_REQUIRE(rank >= 1 && rank <= CUDNN_DIM_MAX && sizes != nullptr && strides != nullptr);
  return set(inside(tensor), type, Dimensions(sizes, sizes + rank), Dimensions(strides, strides + rank));
}
MXMACA_EXPORT Status cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                                  cudnnDataType_t type, int rank, const int* sizes) {
  MXMACA_REQUIRE(rank >= 1 && rank <= CUDNN_DIM_MAX && sizes != nullptr);
  return setDense(inside(tensor), format, type, Dimensions(sizes, sizes + rank));
}
MXMACA_EXPORT Status cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int wanted, cudnnDataType_t* type,
                                                int* rank, int* sizes, int* strides) {
  MXMACA_REQUIRE(usable(tensor) && wanted >= 0 && wanted <= CUDNN_DIM_MAX && type != nullptr && rank != nullptr);
  MXMACA_REQUIRE(wanted == 0 || (sizes != nullptr && strides != nullptr));
  *type = tensor->type;
  *rank = static_cast<int>(tensor->sizes.size());
  for (int i = 0; i < std::min(wanted, *rank); ++i) {
    sizes[i] = static_cast<int>(tensor->sizes[static_cast<size_t>(i)]);
    strides[i] = static_cast<int>(tensor->strides[static_cast<size_t>(i)]);
  }
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensor, size_t* bytes) {
  MXMACA_REQUIRE(usable(tensor));
  return bytesOf(*tensor, bytes);
}

MXMACA_EXPORT Status cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) { return create(filter); }
MXMACA_EXPORT Status cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) { return destroy(filter); }
MXMACA_EXPORT Status cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                                cudnnTensorFormat_t format, int rank, const int* sizes) {
  MXMACA_REQUIRE(live(filter) && rank >= 3 && rank <= CUDNN_DIM_MAX && sizes != nullptr);
  const Status status = setDense(&filter->tensor, format, type, Dimensions(sizes, sizes + rank));
  if (status == CUDNN_STATUS_SUCCESS) filter->format = format;
  return status;
}
MXMACA_EXPORT Status cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                                cudnnTensorFormat_t format, int k, int c, int h, int w) {
  const int sizes[] = {k, c, h, w};
  return cudnnSetFilterNdDescriptor(filter, type, format, 4, sizes);
}
MXMACA_EXPORT Status cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int wanted, cudnnDataType_t* type,
                                                cudnnTensorFormat_t* format, int* rank, int* sizes) {
  MXMACA_REQUIRE(usable(filter) && wanted >= 0 && type != nullptr && format != nullptr && rank != nullptr);
  MXMACA_REQUIRE(wanted == 0 || sizes != nullptr);
  *type = filter->tensor.type;
  *format = filter->format;
  *rank = static_cast<int>(filter->tensor.sizes.size());
  for (int i = 0; i < std::min(wanted, *rank); ++i) {
    sizes[i] = static_cast<int>(filter->tensor.sizes[static_cast<size_t>(i)]);
  }
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filter, cudnnDataType_t* type,
                                                cudnnTensorFormat_t* format, int* k, int* c, int* h, int* w) {
  MXMACA_REQUIRE(k != nullptr && c != nullptr && h != nullptr && w != nullptr);
  int rank = 0;
  int sizes[4];
  const Status status = cudnnGetFilterNdDescriptor(filter, 4, type, format, &rank, sizes);
  if (status != CUDNN_STATUS_SUCCESS || rank != 4) return CUDNN_STATUS_BAD_PARAM;
  *k = sizes[0];
  *c = sizes[1];
  *h = sizes[2];
  *w = sizes[3];
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filter, size_t* bytes) {
  MXMACA_REQUIRE(usable(filter));
  return bytesOf(filter->tensor, bytes);
}

// ---- Element by element ---------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t desc, void* y,
                                    const void* value) {
  MXMACA_LATER(Status, cudnnSetTensor, handle, desc, y, scalars(handle, value));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && y != nullptr && value != nullptr);
    const cudaDataType type = libraryType(desc->type);  // the value has the tensor's own type
    if (elementBytes(type) == 0) return CUDNN_STATUS_NOT_SUPPORTED;
    const std::complex<double> number = readElement(value, type, 0);
    reachData();
    eachElement(*desc, [&](int64_t, int64_t place) { writeElement(y, type, place, number); });
    return CUDNN_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t desc, void* y,
                                      const void* alpha) {
  MXMACA_LATER(Status, cudnnScaleTensor, handle, desc, y, scalars(handle, alpha));
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && y != nullptr && alpha != nullptr);
    return MXMACA_COMPUTE_IN(desc->type, blend<T>(*desc, y, read<T>(*desc, y), scalar<T>(alpha), T(0)););
  });
}
MXMACA_EXPORT Status cudnnTransformTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xDesc,
                                          const void* x, const void* beta, const cudnnTensorDescriptor_t yDesc,
                                          void* y) {
  MXMACA_LATER(Status, cudnnTransformTensor, handle, scalars(handle, alpha), xDesc, x, scalars(handle, beta), yDesc, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(xDesc) && usable(yDesc) && alpha != nullptr && beta != nullptr);
    MXMACA_REQUIRE(xDesc->sizes == yDesc->sizes);
    if ((xDesc->type == CUDNN_DATA_DOUBLE) != (yDesc->type == CUDNN_DATA_DOUBLE)) return CUDNN_STATUS_NOT_SUPPORTED;
    return MXMACA_COMPUTE_IN(yDesc->type, blend<T>(*yDesc, y, read<T>(*xDesc, x), scalar<T>(alpha), scalar<T>(beta)););
  });
}
MXMACA_EXPORT Status cudnnAddTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t aDesc,
                                    const void* A, const void* beta, const cudnnTensorDescriptor_t cDesc, void* C) {
  MXMACA_LATER(Status, cudnnAddTensor, handle, scalars(handle, alpha), aDesc, A, scalars(handle, beta), cDesc, C);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(aDesc) && usable(cDesc) && alpha != nullptr && beta != nullptr);
    MXMACA_REQUIRE(broadcasts(aDesc->sizes, cDesc->sizes));
    if (aDesc->type != cDesc->type) return CUDNN_STATUS_NOT_SUPPORTED;
    return MXMACA_COMPUTE_IN(
        cDesc->type, blend<T>(*cDesc, C, broadcast<T>(*aDesc, A, cDesc->sizes), scalar<T>(alpha), scalar<T>(beta)););
  });
}

MXMACA_EXPORT Status cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t desc, cudnnOpTensorOp_t op,
                                                cudnnDataType_t type, cudnnNanPropagation_t nan) {
  MXMACA_REQUIRE(usable(desc) && op >= CUDNN_OP_TENSOR_ADD && op <= CUDNN_OP_TENSOR_NOT && valid(type) && valid(nan));
  *desc = {op, type, nan};
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t desc, const void* alpha1,
                                   const cudnnTensorDescriptor_t aDesc, const void* A, const void* alpha2,
                                   const cudnnTensorDescriptor_t bDesc, const void* B, const void* beta,
                                   const cudnnTensorDescriptor_t cDesc, void* C) {
  MXMACA_LATER(Status, cudnnOpTensor, handle, desc, scalars(handle, alpha1), aDesc, A, scalars(handle, alpha2), bDesc,
               B, scalars(handle, beta), cDesc, C);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && usable(aDesc) && usable(cDesc) && alpha1 != nullptr && beta != nullptr);
    const bool unary = desc->op == CUDNN_OP_TENSOR_SQRT || desc->op == CUDNN_OP_TENSOR_NOT;
    MXMACA_REQUIRE(aDesc->sizes == cDesc->sizes);
    MXMACA_REQUIRE(unary || (usable(bDesc) && alpha2 != nullptr && broadcasts(bDesc->sizes, cDesc->sizes)));
    if (aDesc->type != cDesc->type || (!unary && bDesc->type != cDesc->type)) return CUDNN_STATUS_NOT_SUPPORTED;
    return MXMACA_COMPUTE_IN(cDesc->type, {
      std::vector<T> a = read<T>(*aDesc, A);
      const std::vector<T> b = unary ? std::vector<T>() : broadcast<T>(*bDesc, B, cDesc->sizes);
      const T scaleA = scalar<T>(alpha1);
      const T scaleB = unary ? T(0) : scalar<T>(alpha2);
      for (size_t i = 0; i < a.size(); ++i) {
        const T left = scaleA * a[i];
        const T right = unary ? T(0) : scaleB * b[i];
        const bool nan = left != left || right != right;
        const bool keepsNan = nan && desc->nan == CUDNN_PROPAGATE_NAN;
        switch (desc->op) {
          case CUDNN_OP_TENSOR_ADD: a[i] = left + right; break;
          case CUDNN_OP_TENSOR_MUL: a[i] = left * right; break;
          case CUDNN_OP_TENSOR_MIN: a[i] = keepsNan ? left + right : std::fmin(left, right); break;
          case CUDNN_OP_TENSOR_MAX: a[i] = keepsNan ? left + right : std::fmax(left, right); break;
          case CUDNN_OP_TENSOR_SQRT: a[i] = std::sqrt(left); break;
          case CUDNN_OP_TENSOR_NOT: a[i] = T(1) - left; break;
        }
      }
      blend<T>(*cDesc, C, a, T(1), scalar<T>(beta));
    });
  });
}

// ---- Reductions -----------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* desc) { return create(desc); }
MXMACA_EXPORT Status cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t desc) { return destroy(desc); }
MXMACA_EXPORT Status cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t desc, cudnnReduceTensorOp_t op,
                                                    cudnnDataType_t type, cudnnNanPropagation_t nan,
                                                    cudnnReduceTensorIndices_t indices, cudnnIndicesType_t indexType) {
  MXMACA_REQUIRE(usable(desc) && op >= CUDNN_REDUCE_TENSOR_ADD && op <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS);
  MXMACA_REQUIRE(valid(type) && valid(nan));
  MXMACA_REQUIRE(valid(indices));
  MXMACA_REQUIRE(valid(indexType));
  if (indices != CUDNN_REDUCE_TENSOR_NO_INDICES) return CUDNN_STATUS_NOT_SUPPORTED;
  *desc = {op, type, nan, indices};
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetReductionIndicesSize(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t desc,
                                                  const cudnnTensorDescriptor_t a, const cudnnTensorDescriptor_t c,
                                                  size_t* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && usable(a) && usable(c) && bytes != nullptr);
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
  });
}
MXMACA_EXPORT Status cudnnGetReductionWorkspaceSize(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t desc,
                                                    const cudnnTensorDescriptor_t a, const cudnnTensorDescriptor_t c,
                                                    size_t* bytes) {
  return cudnnGetReductionIndicesSize(handle, desc, a, c, bytes);
}
MXMACA_EXPORT Status cudnnReduceTensor(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t desc, void* indices,
                                       size_t indicesBytes, void* workspace, size_t workspaceBytes, const void* alpha,
                                       const cudnnTensorDescriptor_t aDesc, const void* A, const void* beta,
                                       const cudnnTensorDescriptor_t cDesc, void* C) {
  MXMACA_LATER(Status, cudnnReduceTensor, handle, desc, unread(indices), indicesBytes, unread(workspace),
               workspaceBytes, scalars(handle, alpha), aDesc, A, scalars(handle, beta), cDesc, C);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(desc) && usable(aDesc) && usable(cDesc) && alpha != nullptr && beta != nullptr);
    MXMACA_REQUIRE(broadcasts(cDesc->sizes, aDesc->sizes));
    if (aDesc->type != cDesc->type) return CUDNN_STATUS_NOT_SUPPORTED;
    return MXMACA_COMPUTE_IN(cDesc->type, {
      // Which number of the result each element goes to: that of a dense tensor of the result's sizes, broadcast.
      Tensor target{aDesc->type, aDesc->sizes, denseStrides(cDesc->sizes, CUDNN_TENSOR_NCHW)};
      for (size_t i = 0; i < target.sizes.size(); ++i) {
        if (cDesc->sizes[i] == 1) target.strides[i] = 0;
      }
      const std::vector<T> a = read<T>(*aDesc, A);
      const bool multiplies = desc->op == CUDNN_REDUCE_TENSOR_MUL || desc->op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
      const bool extreme = desc->op == CUDNN_REDUCE_TENSOR_MIN || desc->op == CUDNN_REDUCE_TENSOR_MAX ||
                           desc->op == CUDNN_REDUCE_TENSOR_AMAX;
      const auto count = static_cast<size_t>(product(cDesc->sizes));
      std::vector<double> sums(count, multiplies ? 1 : 0);  // in double: longer sums than a tree's round more
      std::vector<char> seen(count, 0);
      eachElement(target, [&](int64_t number, int64_t place) {
        const auto value = static_cast<double>(a[static_cast<size_t>(number)]);
        double& sum = sums[static_cast<size_t>(place)];
        char& any = seen[static_cast<size_t>(place)];
        const double candidate = desc->op == CUDNN_REDUCE_TENSOR_AMAX ? std::fabs(value) : value;
        if (extreme) {
          const bool nan = candidate != candidate;
          const bool replaces = desc->op == CUDNN_REDUCE_TENSOR_MIN ? candidate < sum : candidate > sum;
          if (any == 0 || sum != sum ? any == 0 || desc->nan == CUDNN_NOT_PROPAGATE_NAN
                                     : replaces || (nan && desc->nan == CUDNN_PROPAGATE_NAN)) {
            sum = candidate;
          }
        } else if (multiplies) {
          if (desc->op == CUDNN_REDUCE_TENSOR_MUL || value != 0) sum *= value;
        } else if (desc->op == CUDNN_REDUCE_TENSOR_NORM1) {
          sum += std::fabs(value);
        } else {
          sum += desc->op == CUDNN_REDUCE_TENSOR_NORM2 ? value * value : value;
        }
        any = 1;
      });
      std::vector<T> result(count);
      const auto size = static_cast<double>(a.size() / count);
      for (size_t i = 0; i < count; ++i) {
        const double sum = sums[i];
        result[i] = static_cast<T>(desc->op == CUDNN_REDUCE_TENSOR_AVG     ? sum / size
                                   : desc->op == CUDNN_REDUCE_TENSOR_NORM2 ? std::sqrt(sum)
                                                                           : sum);
      }
      blend<T>(*cDesc, C, result, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
