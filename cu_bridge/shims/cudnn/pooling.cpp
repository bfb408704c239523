// Pooling.

#include <limits>

#include "tensors.h"

using namespace mxmaca;
using namespace mxmaca::cudnn;

namespace {

Status setPooling(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan, int axes,
                  const int* window, const int* padding, const int* stride) {
  MXMACA_REQUIRE(live(desc) && valid(mode) && valid(nan));
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
  MXMACA_RETURN_IF_FAILED(pooledSizes(desc, x, &sizes));
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
  MXMACA_RETURN_IF_FAILED(pooledSizes(desc, x, &found));
  MXMACA_REQUIRE(sizes != nullptr && static_cast<size_t>(rank) == found.size());
  for (size_t i = 0; i < found.size(); ++i) sizes[i] = static_cast<int>(found[i]);
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t desc,
                                                       const cudnnTensorDescriptor_t x, int* n, int* c, int* h,
                                                       int* w) {
  MXMACA_REQUIRE(n != nullptr && c != nullptr && h != nullptr && w != nullptr);
  int sizes[4];
  MXMACA_RETURN_IF_FAILED(cudnnGetPoolingNdForwardOutputDim(desc, x, 4, sizes));
  *n = sizes[0];
  *c = sizes[1];
  *h = sizes[2];
  *w = sizes[3];
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t desc, const void* alpha,
                                         const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                         const cudnnTensorDescriptor_t yDesc, void* y) {
  MXMACA_LATER(Status, cudnnPoolingForward, handle, desc, scalars(handle, alpha), xDesc, x, scalars(handle, beta),
               yDesc, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr);
    MXMACA_RETURN_IF_FAILED(checkPooling(desc, xDesc, yDesc));
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
  MXMACA_LATER(Status, cudnnPoolingBackward, handle, desc, scalars(handle, alpha), yDesc, y, dyDesc, dy, xDesc, x,
               scalars(handle, beta), dxDesc, dx);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(y != nullptr);
    REQUIRE_SAME(yDesc, dyDesc);
    REQUIRE_SAME(xDesc, dxDesc);
    MXMACA_RETURN_IF_FAILED(checkPooling(desc, xDesc, yDesc));
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
