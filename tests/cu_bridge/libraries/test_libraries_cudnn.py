"""cuDNN's descriptors interface computes as its definitions say; gradients agree with differences."""

import ctypes
import itertools
import pathlib
from typing import Any, Callable, Iterator, List, Optional, Sequence

import numpy
import pytest
from library_calls import Library, close, random_array

NOT_INITIALIZED, BAD_PARAM, NOT_SUPPORTED = 1001, 2000, 3000
FLOAT, DOUBLE, HALF, BFLOAT16 = 0, 1, 2, 9
KINDS = {FLOAT: numpy.float32, DOUBLE: numpy.float64, HALF: numpy.float16}
CODES = {numpy.dtype(kind): code for code, kind in KINDS.items()}
NCHW, NHWC = 0, 1
GENERATOR = numpy.random.default_rng(13)


def integers(values: Sequence[int]) -> Any:
    return (ctypes.c_int * len(values))(*values)


class Dnn(Library):
    """cuDNN with one handle. Arrays are in C order; descriptors have their sizes and strides."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcudnn")
        self.handle = ctypes.c_void_p()
        self.call("cudnnCreate", ctypes.byref(self.handle))

    def made(self, name: str, setter: str = "", *arguments: Any) -> ctypes.c_void_p:
        descriptor = ctypes.c_void_p()
        self.call(f"cudnnCreate{name}Descriptor", ctypes.byref(descriptor))
        if setter:
            self.call("cudnnSet" + setter, descriptor, *arguments)
        return descriptor

    def store(self, array: numpy.ndarray, order: Optional[Sequence[int]] = None) -> numpy.ndarray:
        """In memory of the device, with the axes from slowest to fastest in `order`."""
        order = order or range(array.ndim)
        flat = self.device(array.transpose(order).reshape(-1))
        return flat.reshape([array.shape[i] for i in order]).transpose(numpy.argsort(order))

    def tensor(self, array: numpy.ndarray) -> ctypes.c_void_p:
        strides = [stride // array.itemsize for stride in array.strides]
        sizes = integers(array.shape), integers(strides)
        return self.made("Tensor", "TensorNdDescriptor", CODES[array.dtype], array.ndim, *sizes)

    def filter(self, array: numpy.ndarray, format_: int = NCHW) -> ctypes.c_void_p:
        return self.made("Filter", "FilterNdDescriptor", CODES[array.dtype], format_, array.ndim, integers(array.shape))

    def run(self, name: str, *arguments: Any) -> None:
        self.call("cudnn" + name, self.handle, *arguments)

    def scale(self, array: numpy.ndarray, value: float) -> numpy.ndarray:
        return numpy.array([value], numpy.float64 if array.dtype == numpy.float64 else numpy.float32)


@pytest.fixture(scope="module")
def dnn(sdk: pathlib.Path) -> Iterator[Dnn]:
    yield Dnn(sdk)


def convolve(x: numpy.ndarray, w: numpy.ndarray, pad: Any, stride: Any, dilation: Any, groups: int) -> numpy.ndarray:
    """Cross-correlation by its definition, in double."""
    x, w = x.astype(float), w.astype(float)
    padded = numpy.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    out = [(i - (k - 1) * d - 1) // s + 1 for i, k, d, s in zip(padded.shape[2:], w.shape[2:], dilation, stride)]
    y = numpy.zeros((x.shape[0], w.shape[0], *out))
    per_out, per_in = w.shape[0] // groups, w.shape[1]
    for group in range(groups):
        outputs, inputs = slice(group * per_out, (group + 1) * per_out), slice(group * per_in, (group + 1) * per_in)
        for tap in itertools.product(*map(range, w.shape[2:])):
            window = tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, out, stride))
            part = padded[(slice(None), inputs, *window)]
            y[:, outputs] += numpy.einsum("nc...,kc->nk...", part, w[(outputs, slice(None), *tap)])
    return y


CONVOLUTIONS = [
    # x, w, padding, stride, dilation, groups
    ((2, 3, 7), (4, 3, 3), (1,), (2,), (1,), 1),
    ((2, 3, 6, 7), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 9, 8), (6, 2, 3, 2), (2, 0), (2, 3), (2, 1), 2),
    ((1, 4, 5, 5), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((2, 2, 4, 5, 6), (3, 2, 2, 3, 2), (0, 1, 1), (1, 2, 1), (1, 1, 2), 1),
]


@pytest.mark.parametrize("code", [FLOAT, DOUBLE, HALF])
@pytest.mark.parametrize("layout", [NCHW, NHWC])
@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_convolutions_forward_and_backward(dnn: Dnn, case: int, layout: int, code: int) -> None:
    shape_x, shape_w, pad, stride, dilation, groups = CONVOLUTIONS[case]
    kind, axes = KINDS[code], len(pad)
    order = None if layout == NCHW else [0, *range(2, axes + 2), 1]
    x, w = (
        dnn.store(random_array(GENERATOR, kind, *shape_x), order),
        dnn.store(random_array(GENERATOR, kind, *shape_w), order),
    )
    conv = dnn.made(
        "Convolution", "ConvolutionNdDescriptor", axes, integers(pad), integers(stride), integers(dilation), 1, 0
    )
    dnn.call("cudnnSetConvolutionGroupCount", conv, groups)
    X, W = dnn.tensor(x), dnn.filter(w, layout)
    expected = convolve(x, w, pad, stride, dilation, groups)
    sizes = integers([0] * (axes + 2))
    dnn.call("cudnnGetConvolutionNdForwardOutputDim", conv, X, W, axes + 2, sizes)
    assert tuple(sizes) == expected.shape
    y = dnn.store(random_array(GENERATOR, kind, *expected.shape), order)
    Y, before = dnn.tensor(y), y.astype(float)
    alpha, beta = dnn.scale(y, 1.5), dnn.scale(y, 0.5)
    dnn.run("ConvolutionForward", alpha, X, x, W, w, conv, 0, None, ctypes.c_size_t(0), beta, Y, y)
    close(y, 1.5 * expected + 0.5 * before, 20)

    one, zero = dnn.scale(y, 1), dnn.scale(y, 0)
    dy = dnn.store(random_array(GENERATOR, kind, *expected.shape), order)
    dx, dw = dnn.store(numpy.full_like(x, numpy.nan), order), dnn.store(numpy.full_like(w, numpy.nan), order)
    tail = conv, 1, None, ctypes.c_size_t(0), zero
    dnn.run("ConvolutionBackwardData", one, W, w, Y, dy, *tail, X, dx)
    dnn.run("ConvolutionBackwardFilter", one, X, x, Y, dy, *tail, W, dw)
    # <conv(x, w), dy> is linear in each: its gradients are found from unit steps in a few places.
    for array, found in ((x, dx), (w, dw)):
        for place in GENERATOR.integers(0, array.size, 12):
            index = numpy.unravel_index(place, array.shape)
            unit = numpy.zeros(array.shape)
            unit[index] = 1
            inputs = (unit, w) if array is x else (x, unit)
            gradient = (convolve(*inputs, pad, stride, dilation, groups) * dy.astype(float)).sum()
            assert abs(float(found[index]) - gradient) <= 30 * numpy.finfo(kind).eps * (1 + abs(gradient)), index
    assert numpy.isfinite(dx.astype(float)).all() and numpy.isfinite(dw.astype(float)).all()
    db = dnn.store(numpy.zeros((1, y.shape[1], *([1] * axes)), kind))
    dnn.run("ConvolutionBackwardBias", one, Y, dy, zero, dnn.tensor(db), db)
    close(db.reshape(-1), dy.astype(float).sum((0, *range(2, axes + 2))))


def test_true_convolution_turns_the_window(dnn: Dnn) -> None:
    x, w = dnn.store(random_array(GENERATOR, float, 1, 2, 5, 6)), dnn.store(random_array(GENERATOR, float, 3, 2, 2, 3))
    expected = convolve(x, w[:, :, ::-1, ::-1], (0, 0), (1, 1), (1, 1), 1)
    y = dnn.store(numpy.zeros(expected.shape))
    conv = dnn.made("Convolution", "Convolution2dDescriptor", 0, 0, 1, 1, 1, 1, 0, 1)
    one, zero = dnn.scale(y, 1), dnn.scale(y, 0)
    tail = conv, 0, None, ctypes.c_size_t(0), zero, dnn.tensor(y), y
    dnn.run("ConvolutionForward", one, dnn.tensor(x), x, dnn.filter(w), w, *tail)
    close(y, expected)


def test_convolution_with_bias_and_activation(dnn: Dnn) -> None:
    x, w = (dnn.store(random_array(GENERATOR, numpy.float32, *s)) for s in ((2, 3, 5, 5), (4, 3, 3, 3)))
    bias = dnn.store(random_array(GENERATOR, numpy.float32, 1, 4, 1, 1))
    expected = convolve(x, w, (1, 1), (1, 1), (1, 1), 1)
    z, y = (dnn.store(random_array(GENERATOR, numpy.float32, *expected.shape)) for _ in range(2))
    conv = dnn.made("Convolution", "Convolution2dDescriptor", 1, 1, 1, 1, 1, 1, 1, 0)
    relu = dnn.made("Activation", "ActivationDescriptor", 1, 0, ctypes.c_double(0))
    one, half = dnn.scale(y, 1), dnn.scale(y, 0.5)
    middle = conv, 1, None, ctypes.c_size_t(0), half, dnn.tensor(z), z, dnn.tensor(bias), bias
    dnn.run(
        "ConvolutionBiasActivationForward", one, dnn.tensor(x), x, dnn.filter(w), w, *middle, relu, dnn.tensor(y), y
    )
    close(y, numpy.maximum(expected + 0.5 * z.astype(float) + bias, 0))


def test_algorithms_are_found_for_shapes_that_fit(dnn: Dnn) -> None:
    x, w = numpy.zeros((2, 3, 5, 5), numpy.float32), numpy.zeros((4, 3, 3, 3), numpy.float32)
    y = numpy.zeros((2, 4, 3, 3), numpy.float32)
    conv = dnn.made("Convolution", "Convolution2dDescriptor", 0, 0, 1, 1, 1, 1, 1, 0)
    result, count = (ctypes.c_char * 256)(), ctypes.c_int()
    arguments = dnn.tensor(x), dnn.filter(w), conv, dnn.tensor(y)
    dnn.run("GetConvolutionForwardAlgorithm_v7", *arguments, 5, ctypes.byref(count), result)
    assert count.value == 1
    size = ctypes.c_size_t(9)
    dnn.run("GetConvolutionForwardWorkspaceSize", *arguments, 0, ctypes.byref(size))
    assert size.value == 0
    wrong = dnn.tensor(x), dnn.filter(w), conv, dnn.tensor(x)
    status = dnn.status("cudnnGetConvolutionForwardAlgorithm_v7", dnn.handle, *wrong, 5, ctypes.byref(count), result)
    assert status == BAD_PARAM


def slope(function: Callable[[numpy.ndarray], numpy.ndarray], x: numpy.ndarray) -> numpy.ndarray:
    return (function(x + 1e-6) - function(x - 1e-6)) / 2e-6


ACTIVATIONS = [
    (0, 0.0, lambda x: 1 / (1 + numpy.exp(-x))),
    (1, 0.0, lambda x: numpy.maximum(x, 0)),
    (2, 0.0, numpy.tanh),
    (3, 0.7, lambda x: numpy.clip(x, 0, 0.7)),
    (4, 1.3, lambda x: numpy.where(x > 0, x, 1.3 * numpy.expm1(x))),
    (5, 0.0, lambda x: x),
    (6, 0.0, lambda x: x / (1 + numpy.exp(-1.5 * x))),
]


@pytest.mark.parametrize("mode, coefficient, function", ACTIVATIONS)
def test_activations(dnn: Dnn, mode: int, coefficient: float, function: Any) -> None:
    x = dnn.store(random_array(GENERATOR, float, 2, 3, 4, 5))
    y, dy, dx = (dnn.store(random_array(GENERATOR, float, 2, 3, 4, 5)) for _ in range(3))
    descriptor = dnn.made("Activation", "ActivationDescriptor", mode, 0, ctypes.c_double(coefficient))
    dnn.call("cudnnSetActivationDescriptorSwishBeta", descriptor, ctypes.c_double(1.5))
    T, one, zero = dnn.tensor(x), dnn.scale(x, 1), dnn.scale(x, 0)
    dnn.run("ActivationForward", descriptor, one, T, x, zero, T, y)
    close(y, function(x))
    dnn.run("ActivationBackward", descriptor, one, T, y, T, dy, T, x, zero, T, dx)
    assert numpy.allclose(dx, dy * slope(function, x), atol=1e-8)


def softmax(x: numpy.ndarray, axes: Any) -> numpy.ndarray:
    e = numpy.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


@pytest.mark.parametrize("algorithm", [0, 1, 2])
@pytest.mark.parametrize("mode, axes", [(0, (1, 2, 3)), (1, (1,))])
def test_softmax(dnn: Dnn, algorithm: int, mode: int, axes: Any) -> None:
    x = dnn.store(1000 + 3 * random_array(GENERATOR, float, 2, 3, 4, 5), [0, 2, 3, 1])  # exp() alone overflows
    y, dx = (dnn.store(numpy.zeros(x.shape)) for _ in range(2))
    dy = dnn.store(random_array(GENERATOR, float, *x.shape))
    X, Y, one, zero = dnn.tensor(x), dnn.tensor(y), dnn.scale(x, 1), dnn.scale(x, 0)
    dnn.run("SoftmaxForward", algorithm, mode, one, X, x, zero, Y, y)
    p = softmax(x, axes)
    close(y, numpy.log(p) if algorithm == 2 else p)
    dnn.run("SoftmaxBackward", algorithm, mode, one, Y, y, Y, dy, zero, Y, dx)
    if algorithm == 2:
        close(dx, dy - p * dy.sum(axes, keepdims=True))
    else:
        close(dx, p * (dy - (p * dy).sum(axes, keepdims=True)))


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("axes", [2, 3])
def test_pooling(dnn: Dnn, mode: int, axes: int) -> None:
    window, pad, stride = (3, 2, 2)[:axes], (1, 0, 1)[:axes], (2, 1, 2)[:axes]
    x = dnn.store(random_array(GENERATOR, float, 2, 3, *(7, 6, 5)[:axes]))
    pool = dnn.made("Pooling", "PoolingNdDescriptor", mode, 0, axes, integers(window), integers(pad), integers(stride))
    sizes = integers([0] * (axes + 2))
    dnn.call("cudnnGetPoolingNdForwardOutputDim", pool, dnn.tensor(x), axes + 2, sizes)
    out = [(i + 2 * p - w) // s + 1 for i, p, w, s in zip(x.shape[2:], pad, window, stride)]
    assert list(sizes) == [2, 3, *out]
    y, dx = dnn.store(numpy.zeros(sizes)), dnn.store(numpy.zeros(x.shape))
    dy = dnn.store(random_array(GENERATOR, float, *sizes))
    expected, gradient = numpy.zeros(list(sizes)), numpy.zeros(x.shape)
    for place in itertools.product(*map(range, sizes)):
        starts = [o * s - p for o, s, p in zip(place[2:], stride, pad)]
        inside = tuple(slice(max(a, 0), min(a + w, i)) for a, w, i in zip(starts, window, x.shape[2:]))
        view, back = x[(place[0], place[1], *inside)], gradient[(place[0], place[1], *inside)]
        if mode in (0, 3):
            expected[place] = view.max()
            back[numpy.unravel_index(view.argmax(), view.shape)] += dy[place]
        else:
            count = view.size if mode == 2 else numpy.prod(window)
            expected[place] = view.sum() / count
            back += dy[place] / count
    X, Y, one, zero = dnn.tensor(x), dnn.tensor(y), dnn.scale(x, 1), dnn.scale(x, 0)
    dnn.run("PoolingForward", pool, one, X, x, zero, Y, y)
    close(y, expected)
    dnn.run("PoolingBackward", pool, one, Y, y, Y, dy, X, x, zero, X, dx)
    close(dx, gradient)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("code", [FLOAT, DOUBLE, HALF])
def test_batch_normalisation(dnn: Dnn, mode: int, code: int) -> None:
    kind, shape, epsilon, factor = KINDS[code], (4, 3, 5, 2), 1e-3, 0.25
    axes = (0,) if mode == 0 else (0, 2, 3)
    x = dnn.store((3 + 2 * random_array(GENERATOR, float, *shape)).astype(kind))
    y, dx = dnn.store(numpy.zeros(shape, kind)), dnn.store(numpy.zeros(shape, kind))
    parameter = numpy.float64 if code == DOUBLE else numpy.float32
    X, Y = dnn.tensor(x), dnn.tensor(y)
    derived = dnn.made("Tensor")
    dnn.call("cudnnDeriveBNTensorDescriptor", derived, X, mode)
    reserved = ctypes.c_size_t(7)
    dnn.run("GetBatchNormalizationTrainingExReserveSpaceSize", mode, 0, None, X, ctypes.byref(reserved))
    assert reserved.value == 0, "the backward pass needs the saved statistics alone"
    small = x.astype(float).mean(axes, keepdims=True).shape
    scale, bias, running_mean, running_variance = (
        dnn.store((1 + random_array(GENERATOR, float, *small) ** 2).astype(parameter)) for _ in range(4)
    )
    saved_mean, saved_inverse = dnn.store(numpy.zeros(small, parameter)), dnn.store(numpy.zeros(small, parameter))
    old_mean, old_variance = running_mean.astype(float), running_variance.astype(float)
    one, zero = dnn.scale(x, 1), dnn.scale(x, 0)
    double = ctypes.c_double
    head = mode, one, zero, X, x, Y, y, derived, scale, bias
    running = double(factor), running_mean, running_variance, double(epsilon), saved_mean, saved_inverse
    dnn.run("BatchNormalizationForwardTraining", *head, *running)
    values = x.astype(float)
    mean, variance = values.mean(axes, keepdims=True), values.var(axes, keepdims=True)
    inverse = 1 / numpy.sqrt(variance + epsilon)
    normal = (values - mean) * inverse
    close(y, normal * scale + bias, 10)
    count = values.size / mean.size
    close(running_mean, 0.75 * old_mean + 0.25 * mean)
    close(running_variance, 0.75 * old_variance + 0.25 * variance * count / (count - 1))
    close(saved_inverse, inverse)
    dnn.run("BatchNormalizationForwardInference", *head, running_mean, running_variance, double(epsilon))
    spread = numpy.sqrt(running_variance.astype(float) + epsilon)
    close(y, (values - running_mean) / spread * scale + bias, 10)
    dy = dnn.store(random_array(GENERATOR, kind, *shape))
    d_scale, d_bias = dnn.store(numpy.zeros(small, parameter)), dnn.store(numpy.zeros(small, parameter))
    for saved in ((saved_mean, saved_inverse), (None, None)):
        dnn.run(
            "BatchNormalizationBackward",
            *(mode, one, zero, one, zero, X, x, Y, dy, X, dx, derived, scale, d_scale, d_bias, double(epsilon), *saved),
        )
        g = dy.astype(float)
        sums, products = g.sum(axes, keepdims=True), (g * normal).sum(axes, keepdims=True)
        close(d_bias, sums, 1000)
        close(d_scale, products, 1000)
        close(dx, scale * inverse * (g - (sums + normal * products) / count), 50)


@pytest.mark.parametrize("n", [1, 4, 5])
def test_local_response_normalisation(dnn: Dnn, n: int) -> None:
    x = dnn.store(random_array(GENERATOR, float, 2, 7, 3, 2))
    y, dx = dnn.store(numpy.zeros(x.shape)), dnn.store(numpy.zeros(x.shape))
    dy = dnn.store(random_array(GENERATOR, float, *x.shape))
    a, b, k = 0.3, 0.75, 1.5
    lrn = dnn.made("LRN", "LRNDescriptor", n, *(ctypes.c_double(each) for each in (a, b, k)))

    def forward(values: numpy.ndarray) -> numpy.ndarray:
        before = (n - 1) // 2
        sums = numpy.zeros_like(values)
        for channel in range(7):
            window = values[:, max(channel - before, 0) : channel + n - before]
            sums[:, channel] = (window**2).sum(1)
        return values / (k + a / n * sums) ** b

    T, one, zero = dnn.tensor(x), dnn.scale(x, 1), dnn.scale(x, 0)
    dnn.run("LRNCrossChannelForward", lrn, 0, one, T, x, zero, T, y)
    close(y, forward(x))
    dnn.run("LRNCrossChannelBackward", lrn, 0, one, T, y, T, dy, T, x, zero, T, dx)
    for place in GENERATOR.integers(0, x.size, 10):
        unit = numpy.zeros(x.size)
        unit[place] = 1e-6
        unit = unit.reshape(x.shape)
        expected = ((forward(x + unit) - forward(x - unit)) * dy).sum() / 2e-6
        assert abs(dx.reshape(-1)[place] - expected) < 1e-7


def test_dropout_keeps_its_share_and_its_mask(dnn: Dnn) -> None:
    x = dnn.store(numpy.ones((4, 1, 100, 100), numpy.float32))
    y, again, dx = (dnn.store(numpy.zeros_like(x)) for _ in range(3))
    T = dnn.tensor(x)
    size = ctypes.c_size_t()
    dnn.run("DropoutGetStatesSize", ctypes.byref(size))
    states = dnn.device(numpy.zeros(size.value, numpy.uint8))
    dnn.call("cudnnDropoutGetReserveSpaceSize", T, ctypes.byref(size))
    reserve = dnn.device(numpy.zeros(size.value, numpy.uint8))
    dropout = dnn.made("Dropout")
    arguments = dnn.handle, ctypes.c_float(0.3), states, ctypes.c_size_t(len(states)), ctypes.c_ulonglong(5)
    dnn.call("cudnnSetDropoutDescriptor", dropout, *arguments)
    dnn.run("DropoutForward", dropout, T, x, T, y, reserve, size)
    kept = y != 0
    assert abs(kept.mean() - 0.7) < 0.01
    close(y[kept], numpy.full(kept.sum(), 1 / 0.7))
    dnn.run("DropoutBackward", dropout, T, x, T, dx, reserve, size)
    assert (dx == y).all()
    dnn.run("DropoutForward", dropout, T, x, T, again, reserve, size)
    assert ((again != 0) != kept).mean() > 0.3  # another mask
    dnn.call("cudnnSetDropoutDescriptor", dropout, *arguments)
    dnn.run("DropoutForward", dropout, T, x, T, again, reserve, size)
    assert (again == y).all()  # the seed repeats


def test_tensors_are_combined_with_broadcasting(dnn: Dnn) -> None:
    a = dnn.store(abs(random_array(GENERATOR, float, 2, 3, 4, 5)))
    b, c = dnn.store(random_array(GENERATOR, float, 1, 3, 1, 5)), dnn.store(random_array(GENERATOR, float, 2, 3, 4, 5))
    functions: List[Any] = [numpy.add, numpy.multiply, numpy.minimum, numpy.maximum]
    functions += [lambda u, v: numpy.sqrt(u), lambda u, v: 1 - u]
    A, B, C = dnn.tensor(a), dnn.tensor(b), dnn.tensor(c)
    for op, function in enumerate(functions):
        descriptor = dnn.made("OpTensor", "OpTensorDescriptor", op, DOUBLE, 0)
        before = c.copy()
        scales = dnn.scale(a, 2), dnn.scale(a, -1), dnn.scale(a, 0.5)
        dnn.run("OpTensor", descriptor, scales[0], A, a, scales[1], B, b, scales[2], C, c)
        close(c, function(2 * a, -b) + 0.5 * before)
    before = c.copy()
    dnn.run("AddTensor", dnn.scale(a, 3), B, b, dnn.scale(a, 1), C, c)
    close(c, 3 * b + before)
    half = dnn.store(random_array(GENERATOR, numpy.float16, 2, 3, 4, 5), [0, 2, 3, 1])
    out = dnn.store(numpy.zeros((2, 3, 4, 5), numpy.float32))
    dnn.run("TransformTensor", dnn.scale(out, 2), dnn.tensor(half), half, dnn.scale(out, 0), dnn.tensor(out), out)
    assert (out == 2 * half.astype(numpy.float32)).all()
    dnn.run("SetTensor", dnn.tensor(out), out, numpy.array([1.5], numpy.float32))
    dnn.run("ScaleTensor", dnn.tensor(out), out, numpy.array([2], numpy.float32))
    assert (out == 3).all()


def test_tensors_are_reduced(dnn: Dnn) -> None:
    a = dnn.store(random_array(GENERATOR, float, 2, 3, 4, 5))
    a[0, 0, 0, 0] = 0
    functions: List[Any] = [numpy.sum, numpy.prod, numpy.min, numpy.max]
    functions += [lambda v, **k: numpy.max(abs(v), **k), numpy.mean, lambda v, **k: numpy.sum(abs(v), **k)]
    functions += [
        lambda v, **k: numpy.sqrt(numpy.sum(v**2, **k)),
        lambda v, **k: numpy.prod(numpy.where(v == 0, 1, v), **k),
    ]
    for op, function in enumerate(functions):
        for axes in ((0, 2, 3), (1,), (0, 1, 2, 3)):
            expected = function(a, axis=axes, keepdims=True)
            c = dnn.store(numpy.ones(expected.shape))
            descriptor = dnn.made("ReduceTensor", "ReduceTensorDescriptor", op, DOUBLE, 0, 0, 0)
            nothing = None, ctypes.c_size_t(0), None, ctypes.c_size_t(0)
            tail = dnn.scale(a, 2), dnn.tensor(a), a, dnn.scale(a, 1), dnn.tensor(c), c
            dnn.run("ReduceTensor", descriptor, *nothing, *tail)
            close(c, 2 * expected + 1)


def test_what_cannot_be_done_says_so(dnn: Dnn) -> None:
    x = numpy.zeros((2, 3, 4, 4), numpy.float32)
    T, U, one = dnn.tensor(x), dnn.tensor(x.astype(numpy.float64)), dnn.scale(x, 1)
    descriptor = dnn.made("Tensor")
    assert dnn.status("cudnnSetTensor4dDescriptor", descriptor, 2, 0, 1, 4, 1, 1) == NOT_SUPPORTED
    assert dnn.status("cudnnSetTensor4dDescriptor", descriptor, 0, 0, 0, 4, 1, 1) == BAD_PARAM
    relu = dnn.made("Activation", "ActivationDescriptor", 1, 0, ctypes.c_double(0))
    assert dnn.status("cudnnActivationForward", dnn.handle, relu, one, T, x, one, U, x) == NOT_SUPPORTED
    assert dnn.status("cudnnActivationForward", None, relu, one, T, x, one, T, x) == NOT_INITIALIZED
    assert dnn.status("cudnnRNNForward", dnn.handle) == NOT_SUPPORTED
    assert dnn.status("cudnnBackendExecute", dnn.handle) == NOT_SUPPORTED
