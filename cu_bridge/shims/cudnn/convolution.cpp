// Convolutions, as matrix products of unfolded images.

#include "tensors.h"

using namespace mxmaca;
using namespace mxmaca::cudnn;

namespace {

// A convolution with three spatial axes; missing ones have size one.
struct Shape {
  int64_t images, channels, outputs;  // of all groups
  int groups;
  std::array<int64_t, 3> in, window, out, padding, stride, dilation;
  bool flipped;

  int64_t inSize() const { return in[0] * in[1] * in[2]; }
  int64_t outSize() const { return out[0] * out[1] * out[2]; }
  int64_t windowSize() const { return window[0] * window[1] * window[2]; }
};

int64_t outputSize(const cudnnConvolutionStruct& conv, size_t axis, int64_t in, int64_t window) {
  return (in + 2 * conv.padding[axis] - ((window - 1) * conv.dilation[axis] + 1)) / conv.stride[axis] + 1;
}

Status shapeOf(const cudnnConvolutionStruct* conv, const Tensor* x, const cudnnFilterStruct* filter, const Tensor* y,
               Shape* shape) {
  MXMACA_REQUIRE(usable(conv) && usable(x) && usable(filter) && usable(y));
  const Tensor& w = filter->tensor;
  const size_t rank = x->sizes.size();
  const size_t axes = conv->padding.size();
  MXMACA_REQUIRE(axes >= 1 && rank == axes + 2 && w.sizes.size() == rank && y->sizes.size() == rank);
  if (axes > 3) return CUDNN_STATUS_NOT_SUPPORTED;
  MXMACA_REQUIRE(x->sizes[1] == w.sizes[1] * conv->groups && w.sizes[0] % conv->groups == 0);
  MXMACA_REQUIRE(y->sizes[0] == x->sizes[0] && y->sizes[1] == w.sizes[0]);
  if (x->type != y->type || x->type != w.type) return CUDNN_STATUS_NOT_SUPPORTED;
  shape->images = x->sizes[0];
  shape->channels = x->sizes[1];
  shape->outputs = w.sizes[0];
  shape->groups = conv->groups;
  shape->flipped = conv->mode == CUDNN_CONVOLUTION;
  for (size_t i = 0; i < 3; ++i) {
    shape->in[i] = shape->window[i] = shape->out[i] = shape->stride[i] = shape->dilation[i] = 1;
    shape->padding[i] = 0;
    if (i + axes < 3) continue;
    const size_t axis = i + axes - 3;
    shape->in[i] = x->sizes[axis + 2];
    shape->window[i] = w.sizes[axis + 2];
    shape->out[i] = y->sizes[axis + 2];
    shape->padding[i] = conv->padding[axis];
    shape->stride[i] = conv->stride[axis];
    shape->dilation[i] = conv->dilation[axis];
    MXMACA_REQUIRE(shape->out[i] == outputSize(*conv, axis, shape->in[i], shape->window[i]));
  }
  return CUDNN_STATUS_SUCCESS;
}

// For each element of the window and each output position in [first, last): the input element under it, or -1.
// Called as visit(row, position - first, place in the group's channels).
template <class Visit>
void unfold(const Shape& s, int64_t channels, int64_t first, int64_t last, Visit&& visit) {
  int64_t row = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t a = 0; a < s.window[0]; ++a) {
      for (int64_t b = 0; b < s.window[1]; ++b) {
        for (int64_t e = 0; e < s.window[2]; ++e, ++row) {
          const int64_t tap[] = {s.flipped ? s.window[0] - 1 - a : a, s.flipped ? s.window[1] - 1 - b : b,
                                 s.flipped ? s.window[2] - 1 - e : e};
          for (int64_t position = first; position < last; ++position) {
            const int64_t at[] = {position / (s.out[1] * s.out[2]), position / s.out[2] % s.out[1],
                                  position % s.out[2]};
            int64_t place = c;
            bool inside = true;
            for (size_t i = 0; i < 3; ++i) {
              const int64_t index = at[i] * s.stride[i] - s.padding[i] + tap[i] * s.dilation[i];
              inside = inside && index >= 0 && index < s.in[i];
              place = place * s.in[i] + index;
            }
            visit(row, position - first, inside ? place : -1);
          }
        }
      }
    }
  }
}

// Calls `work` for each group of each image and each piece of the output that fits into memory.
template <class T, class Work>
void eachPiece(const Shape& s, Work&& work) {
  const int64_t rows = s.channels / s.groups * s.windowSize();
  const int64_t positions = s.outSize();
  const int64_t piece = std::max<int64_t>(1, std::min(positions, (int64_t{1} << 22) / std::max<int64_t>(rows, 1)));
  std::vector<T> columns(static_cast<size_t>(rows * piece));
  for (int64_t image = 0; image < s.images; ++image) {
    for (int64_t group = 0; group < s.groups; ++group) {
      for (int64_t first = 0; first < positions; first += piece) {
        work(image, group, first, std::min(piece, positions - first), rows, columns);
      }
    }
  }
}
// The unfolded piece, row after row.
template <class T>
void fill(const Shape& s, const T* from, int64_t first, int64_t count, std::vector<T>& columns) {
  unfold(s, s.channels / s.groups, first, first + count, [&](int64_t row, int64_t position, int64_t place) {
    columns[static_cast<size_t>(row * count + position)] = place < 0 ? T(0) : from[place];
  });
}

template <class T>
std::vector<T> forward(const Shape& s, const std::vector<T>& x, const std::vector<T>& w) {
  std::vector<T> y(static_cast<size_t>(s.images * s.outputs * s.outSize()));
  const int64_t perGroup = s.outputs / s.groups;
  eachPiece<T>(s, [&](int64_t image, int64_t group, int64_t first, int64_t count, int64_t rows, std::vector<T>& cols) {
    fill(s, x.data() + (image * s.channels + group * (s.channels / s.groups)) * s.inSize(), first, count, cols);
    // Column-major eyes see each of these matrices transposed.
    T* const to = y.data() + (image * s.outputs + group * perGroup) * s.outSize() + first;
    gemm<T>('N', 'N', count, perGroup, rows, T(1), cols.data(), count, w.data() + group * perGroup * rows, rows, T(0),
            to, s.outSize());
  });
  return y;
}
template <class T>
std::vector<T> backwardData(const Shape& s, const std::vector<T>& w, const std::vector<T>& dy) {
  std::vector<T> dx(static_cast<size_t>(s.images * s.channels * s.inSize()), T(0));
  const int64_t perGroup = s.outputs / s.groups;
  eachPiece<T>(s, [&](int64_t image, int64_t group, int64_t first, int64_t count, int64_t rows, std::vector<T>& cols) {
    const T* const from = dy.data() + (image * s.outputs + group * perGroup) * s.outSize() + first;
    gemm<T>('N', 'T', count, rows, perGroup, T(1), from, s.outSize(), w.data() + group * perGroup * rows, rows, T(0),
            cols.data(), count);
    T* const to = dx.data() + (image * s.channels + group * (s.channels / s.groups)) * s.inSize();
    unfold(s, s.channels / s.groups, first, first + count, [&](int64_t row, int64_t position, int64_t place) {
      if (place >= 0) to[place] += cols[static_cast<size_t>(row * count + position)];
    });
  });
  return dx;
}
template <class T>
std::vector<T> backwardFilter(const Shape& s, const std::vector<T>& x, const std::vector<T>& dy) {
  std::vector<T> dw(static_cast<size_t>(s.outputs * (s.channels / s.groups) * s.windowSize()), T(0));
  const int64_t perGroup = s.outputs / s.groups;
  eachPiece<T>(s, [&](int64_t image, int64_t group, int64_t first, int64_t count, int64_t rows, std::vector<T>& cols) {
    fill(s, x.data() + (image * s.channels + group * (s.channels / s.groups)) * s.inSize(), first, count, cols);
    const T* const from = dy.data() + (image * s.outputs + group * perGroup) * s.outSize() + first;
    gemm<T>('T', 'N', rows, perGroup, count, T(1), cols.data(), count, from, s.outSize(), T(1),
            dw.data() + group * perGroup * rows, rows);
  });
  return dw;
}

Status setConvolution(cudnnConvolutionDescriptor_t conv, int axes, const int* padding, const int* stride,
                      const int* dilation, cudnnConvolutionMode_t mode, cudnnDataType_t type) {
  MXMACA_REQUIRE(live(conv) && axes >= 1 && axes <= CUDNN_DIM_MAX - 2 && padding != nullptr && stride != nullptr &&
                 dilation != nullptr);
  MXMACA_REQUIRE(valid(mode) && valid(type));
  for (int i = 0; i < axes; ++i) MXMACA_REQUIRE(padding[i] >= 0 && stride[i] >= 1 && dilation[i] >= 1);
  conv->padding.assign(padding, padding + axes);
  conv->stride.assign(stride, stride + axes);
  conv->dilation.assign(dilation, dilation + axes);
  conv->mode = mode;
  conv->computeType = type;
  return CUDNN_STATUS_SUCCESS;
}

// There is one algorithm, under the number that the device's most general one has.
template <class Result, class Algorithm>
Status oneAlgorithm(cudnnHandle_t handle, const cudnnConvolutionStruct* conv, const Tensor* x,
                    const cudnnFilterStruct* w, const Tensor* y, Algorithm algorithm, int wanted, int* found,
                    Result* results) {
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(wanted >= 1 && found != nullptr && results != nullptr);
    Shape shape;
    MXMACA_RETURN_IF_FAILED(shapeOf(conv, x, w, y, &shape));
    *results = Result();
    results->algo = algorithm;
    results->status = CUDNN_STATUS_SUCCESS;
    results->determinism = CUDNN_DETERMINISTIC;
    results->mathType = conv->math;
    *found = 1;
    return CUDNN_STATUS_SUCCESS;
  });
}
template <class Algorithm>
Status noWorkspace(cudnnHandle_t handle, Algorithm algorithm, const cudnnConvolutionStruct* conv, const Tensor* x,
                   const cudnnFilterStruct* w, const Tensor* y, size_t* bytes) {
  return described(handle, [&]() -> Status {
    MXMACA_REQUIRE(bytes != nullptr && valid(algorithm));
    Shape shape;
    MXMACA_RETURN_IF_FAILED(shapeOf(conv, x, w, y, &shape));
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
  });
}
// What the device finds out by trying waits for it.
Status waits(cudnnHandle_t handle) {
  return guarded(handle, [] { return CUDNN_STATUS_SUCCESS; });
}
Status one(cudnnHandle_t handle, int* count) {
  if (!live(handle)) return CUDNN_STATUS_NOT_INITIALIZED;
  MXMACA_REQUIRE(count != nullptr);
  *count = 1;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

MXMACA_EXPORT Status cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* conv) { return create(conv); }
MXMACA_EXPORT Status cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t conv) { return destroy(conv); }
MXMACA_EXPORT Status cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int padH, int padW, int u,
                                                     int v, int dilationH, int dilationW, cudnnConvolutionMode_t mode,
                                                     cudnnDataType_t type) {
  const int padding[] = {padH, padW}, stride[] = {u, v}, dilation[] = {dilationH, dilationW};
  return setConvolution(conv, 2, padding, stride, dilation, mode, type);
}
MXMACA_EXPORT Status cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t conv, int axes, const int* padding,
                                                     const int* stride, const int* dilation,
                                                     cudnnConvolutionMode_t mode, cudnnDataType_t type) {
  return setConvolution(conv, axes, padding, stride, dilation, mode, type);
}
MXMACA_EXPORT Status cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups) {
  MXMACA_REQUIRE(live(conv) && groups >= 1);
  conv->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int* groups) {
  MXMACA_REQUIRE(live(conv) && groups != nullptr);
  *groups = conv->groups;
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math) {
  MXMACA_REQUIRE(live(conv) && valid(math));
  conv->math = math;
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t* math) {
  MXMACA_REQUIRE(live(conv) && math != nullptr);
  *math = conv->math;
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t x,
                                                           const cudnnFilterDescriptor_t filter, int rank, int* sizes) {
  MXMACA_REQUIRE(usable(conv) && usable(x) && usable(filter) && sizes != nullptr);
  const size_t axes = conv->padding.size();
  MXMACA_REQUIRE(static_cast<size_t>(rank) == axes + 2 && x->sizes.size() == axes + 2);
  MXMACA_REQUIRE(filter->tensor.sizes.size() == axes + 2);
  MXMACA_REQUIRE(x->sizes[1] == filter->tensor.sizes[1] * conv->groups);
  sizes[0] = static_cast<int>(x->sizes[0]);
  sizes[1] = static_cast<int>(filter->tensor.sizes[0]);
  for (size_t i = 0; i < axes; ++i) {
    sizes[i + 2] = static_cast<int>(outputSize(*conv, i, x->sizes[i + 2], filter->tensor.sizes[i + 2]));
  }
  return CUDNN_STATUS_SUCCESS;
}
MXMACA_EXPORT Status cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t x,
                                                           const cudnnFilterDescriptor_t filter, int* n, int* c, int* h,
                                                           int* w) {
  MXMACA_REQUIRE(n != nullptr && c != nullptr && h != nullptr && w != nullptr);
  int sizes[4];
  MXMACA_RETURN_IF_FAILED(cudnnGetConvolutionNdForwardOutputDim(conv, x, filter, 4, sizes));
  *n = sizes[0];
  *c = sizes[1];
  *h = sizes[2];
  *w = sizes[3];
  return CUDNN_STATUS_SUCCESS;
}

// ---- Algorithms -----------------------------------------------------------------------------------------------------
// The questions about the algorithms of one direction. `A a, B b, C c` are the descriptors as its functions have them,
// and x, w, y the input, filter and output among them.
#define ALGORITHMS(Way, Kind, number, A, a, B, b, C, c, x, w, y)                                       \
  MXMACA_EXPORT Status cudnnGetConvolution##Way##AlgorithmMaxCount(cudnnHandle_t handle, int* count) { \
    return one(handle, count);                                                                         \
  }                                                                                                    \
  MXMACA_EXPORT Status cudnnGetConvolution##Way##Algorithm_v7(                                         \
      cudnnHandle_t handle, const A a, const B b, const cudnnConvolutionDescriptor_t conv, const C c,  \
      const int wanted, int* found, cudnnConvolution##Kind##AlgoPerf_t* results) {                     \
    return oneAlgorithm(handle, conv, x, w, y, CUDNN_CONVOLUTION_##number, wanted, found, results);    \
  }                                                                                                    \
  MXMACA_EXPORT Status cudnnFindConvolution##Way##AlgorithmEx(                                         \
      cudnnHandle_t handle, const A a, const void* aData, const B b, const void* bData,                \
      const cudnnConvolutionDescriptor_t conv, const C c, void* cData, const int wanted, int* found,   \
      cudnnConvolution##Kind##AlgoPerf_t* results, void*, size_t) {                                    \
    MXMACA_REQUIRE(aData != nullptr && bData != nullptr && cData != nullptr);                          \
    MXMACA_RETURN_IF_FAILED(waits(handle));                                                            \
    return oneAlgorithm(handle, conv, x, w, y, CUDNN_CONVOLUTION_##number, wanted, found, results);    \
  }                                                                                                    \
  MXMACA_EXPORT Status cudnnGetConvolution##Way##WorkspaceSize(                                        \
      cudnnHandle_t handle, const A a, const B b, const cudnnConvolutionDescriptor_t conv, const C c,  \
      cudnnConvolution##Kind##Algo_t algorithm, size_t* bytes) {                                       \
    return noWorkspace(handle, algorithm, conv, x, w, y, bytes);                                       \
  }
ALGORITHMS(Forward, Fwd, FWD_ALGO_IMPLICIT_GEMM, cudnnTensorDescriptor_t, x, cudnnFilterDescriptor_t, w,
           cudnnTensorDescriptor_t, y, x, w, y)
ALGORITHMS(BackwardData, BwdData, BWD_DATA_ALGO_1, cudnnFilterDescriptor_t, w, cudnnTensorDescriptor_t, dy,
           cudnnTensorDescriptor_t, dx, dx, w, dy)
ALGORITHMS(BackwardFilter, BwdFilter, BWD_FILTER_ALGO_1, cudnnTensorDescriptor_t, x, cudnnTensorDescriptor_t, dy,
           cudnnFilterDescriptor_t, dw, x, dw, dy)

// ---- Forward --------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t xDesc, const void* x,
                                             const cudnnFilterDescriptor_t wDesc, const void* w,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                             size_t workspaceBytes, const void* beta,
                                             const cudnnTensorDescriptor_t yDesc, void* y) {
  MXMACA_LATER(Status, cudnnConvolutionForward, handle, scalars(handle, alpha), xDesc, x, wDesc, w, conv, algorithm,
               unread(workspace), workspaceBytes, scalars(handle, beta), yDesc, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && (workspace != nullptr || workspaceBytes == 0));
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && x != nullptr && w != nullptr && y != nullptr);
    Shape shape;
    MXMACA_RETURN_IF_FAILED(shapeOf(conv, xDesc, wDesc, yDesc, &shape));
    return MXMACA_COMPUTE_IN(yDesc->type, {
      const std::vector<T> result = forward<T>(shape, read<T>(*xDesc, x), read<T>(wDesc->tensor, w));
      blend<T>(*yDesc, y, result, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t workspaceBytes, const void* alpha2,
    const cudnnTensorDescriptor_t zDesc, const void* z, const cudnnTensorDescriptor_t biasDesc, const void* bias,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t yDesc, void* y) {
  MXMACA_LATER(Status, cudnnConvolutionBiasActivationForward, handle, scalars(handle, alpha1), xDesc, x, wDesc, w, conv,
               algorithm, unread(workspace), workspaceBytes, scalars(handle, alpha2), zDesc, z, biasDesc, bias,
               activation, yDesc, y);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && (workspace != nullptr || workspaceBytes == 0));
    MXMACA_REQUIRE(alpha1 != nullptr && alpha2 != nullptr && usable(biasDesc) && bias != nullptr && usable(activation));
    Shape shape;
    MXMACA_RETURN_IF_FAILED(shapeOf(conv, xDesc, wDesc, yDesc, &shape));
    MXMACA_REQUIRE(broadcasts(biasDesc->sizes, yDesc->sizes));
    if (biasDesc->type != yDesc->type) return CUDNN_STATUS_NOT_SUPPORTED;
    return MXMACA_COMPUTE_IN(yDesc->type, {
      std::vector<T> result = forward<T>(shape, read<T>(*xDesc, x), read<T>(wDesc->tensor, w));
      const T scaleProduct = scalar<T>(alpha1);
      const T scaleOther = scalar<T>(alpha2);
      MXMACA_REQUIRE(scaleOther == T(0) || (usable(zDesc) && z != nullptr && zDesc->sizes == yDesc->sizes));
      const std::vector<T> other = scaleOther == T(0) ? std::vector<T>() : read<T>(*zDesc, z);
      const std::vector<T> added = broadcast<T>(*biasDesc, bias, yDesc->sizes);
      for (size_t i = 0; i < result.size(); ++i) {
        const T value = scaleProduct * result[i] + (scaleOther == T(0) ? T(0) : scaleOther * other[i]) + added[i];
        result[i] = activate(*activation, value);
      }
      blend<T>(*yDesc, y, result, T(1), T(0));
    });
  });
}

// ---- Backward -------------------------------------------------------------------------------------------------------
MXMACA_EXPORT Status cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                                  const cudnnFilterDescriptor_t wDesc, const void* w,
                                                  const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                  const cudnnConvolutionDescriptor_t conv,
                                                  cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                                  size_t workspaceBytes, const void* beta,
                                                  const cudnnTensorDescriptor_t dxDesc, void* dx) {
  MXMACA_LATER(Status, cudnnConvolutionBackwardData, handle, scalars(handle, alpha), wDesc, w, dyDesc, dy, conv,
               algorithm, unread(workspace), workspaceBytes, scalars(handle, beta), dxDesc, dx);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && (workspace != nullptr || workspaceBytes == 0));
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && w != nullptr && dy != nullptr && dx != nullptr);
    Shape shape;
    MXMACA_RETURN_IF_FAILED(shapeOf(conv, dxDesc, wDesc, dyDesc, &shape));
    return MXMACA_COMPUTE_IN(dxDesc->type, {
      const std::vector<T> result = backwardData<T>(shape, read<T>(wDesc->tensor, w), read<T>(*dyDesc, dy));
      blend<T>(*dxDesc, dx, result, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                                    const cudnnTensorDescriptor_t xDesc, const void* x,
                                                    const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                    const cudnnConvolutionDescriptor_t conv,
                                                    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                                    size_t workspaceBytes, const void* beta,
                                                    const cudnnFilterDescriptor_t dwDesc, void* dw) {
  MXMACA_LATER(Status, cudnnConvolutionBackwardFilter, handle, scalars(handle, alpha), xDesc, x, dyDesc, dy, conv,
               algorithm, unread(workspace), workspaceBytes, scalars(handle, beta), dwDesc, dw);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(valid(algorithm) && (workspace != nullptr || workspaceBytes == 0));
    MXMACA_REQUIRE(alpha != nullptr && beta != nullptr && x != nullptr && dy != nullptr && dw != nullptr);
    Shape shape;
    MXMACA_RETURN_IF_FAILED(shapeOf(conv, xDesc, dwDesc, dyDesc, &shape));
    return MXMACA_COMPUTE_IN(xDesc->type, {
      const std::vector<T> result = backwardFilter<T>(shape, read<T>(*xDesc, x), read<T>(*dyDesc, dy));
      blend<T>(dwDesc->tensor, dw, result, scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
MXMACA_EXPORT Status cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                                  const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                  const void* beta, const cudnnTensorDescriptor_t dbDesc, void* db) {
  MXMACA_LATER(Status, cudnnConvolutionBackwardBias, handle, scalars(handle, alpha), dyDesc, dy, scalars(handle, beta),
               dbDesc, db);
  return guarded(handle, [&]() -> Status {
    MXMACA_REQUIRE(usable(dyDesc) && usable(dbDesc) && alpha != nullptr && beta != nullptr);
    MXMACA_REQUIRE(dyDesc->sizes.size() >= 2 && broadcasts(dbDesc->sizes, dyDesc->sizes));
    MXMACA_REQUIRE(product(dbDesc->sizes) == dyDesc->sizes[1]);
    if (dyDesc->type != dbDesc->type) return CUDNN_STATUS_NOT_SUPPORTED;
    return MXMACA_COMPUTE_IN(dyDesc->type, {
      const std::vector<T> values = read<T>(*dyDesc, dy);
      const int64_t channels = dyDesc->sizes[1];
      const int64_t inner = product(dyDesc->sizes, 2);
      std::vector<double> sums(static_cast<size_t>(channels), 0);
      for (size_t i = 0; i < values.size(); ++i) {
        sums[static_cast<size_t>(static_cast<int64_t>(i) / inner % channels)] += static_cast<double>(values[i]);
      }
      blend<T>(*dbDesc, db, std::vector<T>(sums.begin(), sums.end()), scalar<T>(alpha), scalar<T>(beta));
    });
  });
}
