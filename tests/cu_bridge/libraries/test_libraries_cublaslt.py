"""cuBLASLt computes right products: layouts, batches, epilogues, scales, narrow types."""

import ctypes
import itertools
import pathlib
from typing import Any, Dict, Iterator, Optional

import numpy
import pytest
from library_calls import Library, close, random_array

INVALID, NOT_SUPPORTED = 7, 15
R32F, R64F, R16F, R8I, C32F, R32I, R16BF, E4M3, E5M2 = 0, 1, 2, 3, 4, 10, 14, 28, 29
KINDS = {R32F: numpy.float32, R64F: numpy.float64, R16F: numpy.float16, R8I: numpy.int8, C32F: numpy.complex64}
KINDS.update({R32I: numpy.int32, E4M3: numpy.uint8, E5M2: numpy.uint8})
COMPUTE = {"32F": 68, "64F": 70, "32I": 72, "16F": 64}
COLUMN, ROW = 0, 1
DEFAULT, RELU, BIAS, RELU_BIAS, GELU, GELU_BIAS, GELU_AUX_BIAS = 1, 2, 4, 6, 32, 36, 164
RELU_AUX_BIAS, DRELU, DRELU_BGRAD, DGELU, DGELU_BGRAD, BGRADA, BGRADB = 134, 136, 152, 192, 208, 256, 512
GENERATOR = numpy.random.default_rng(11)


class Lt(Library):
    """cuBLASLt with one handle."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcublasLt")
        self.handle = ctypes.c_void_p()
        self.call("cublasLtCreate", ctypes.byref(self.handle))

    def layout(self, kind: int, rows: int, columns: int, ld: int, order: int = COLUMN, batch: int = 1, stride: int = 0):
        layout = ctypes.c_void_p()
        sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(ld)
        self.call("cublasLtMatrixLayoutCreate", ctypes.byref(layout), kind, *sizes)
        for attribute, value in ((1, ctypes.c_int32(order)), (5, ctypes.c_int32(batch)), (6, ctypes.c_int64(stride))):
            size = ctypes.c_size_t(ctypes.sizeof(value))
            self.call("cublasLtMatrixLayoutSetAttribute", layout, attribute, ctypes.byref(value), size)
        return layout

    def operation(self, compute: int, scale: int, attributes: Optional[Dict[int, Any]] = None) -> ctypes.c_void_p:
        operation = ctypes.c_void_p()
        self.call("cublasLtMatmulDescCreate", ctypes.byref(operation), compute, scale)
        for attribute, value in (attributes or {}).items():
            if isinstance(value, numpy.ndarray):
                value = ctypes.c_void_p(value.ctypes.data)
            elif isinstance(value, int):
                value = ctypes.c_int64(value) if attribute in (10, 12, 13, 14) else ctypes.c_int32(value)
            size = ctypes.c_size_t(ctypes.sizeof(value))
            self.call("cublasLtMatmulDescSetAttribute", operation, attribute, ctypes.byref(value), size)
        return operation

    def matmul(self, operation: Any, alpha: Any, A: Any, B: Any, beta: Any, C: Any, D: Any) -> int:
        """Each of A, B, C and D is an array and its layout."""
        arguments = [operation, alpha, *A, *B, beta, *C, *D, None, None, ctypes.c_size_t(0), None]
        return self.status("cublasLtMatmul", self.handle, *arguments)


@pytest.fixture(scope="module")
def lt(sdk: pathlib.Path) -> Iterator[Lt]:
    yield Lt(sdk)


def scalar(value: complex, kind: Any = numpy.float32) -> numpy.ndarray:
    return numpy.array([value]).astype(kind)


def ordered(lt: Lt, matrix: numpy.ndarray, order: int) -> numpy.ndarray:
    """A matrix in memory of the device, in that order."""
    return lt.device(matrix if order == COLUMN else matrix.T)


@pytest.mark.parametrize("orders", list(itertools.product([COLUMN, ROW], repeat=3)))
@pytest.mark.parametrize("opa, opb", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("kind", [R32F, R64F, C32F])
def test_products_in_every_order(lt: Lt, orders: Any, opa: int, opb: int, kind: int) -> None:
    m, n, k = 5, 4, 6
    dtype = KINDS[kind]
    a, b = random_array(GENERATOR, dtype, m, k), random_array(GENERATOR, dtype, k, n)
    c = random_array(GENERATOR, dtype, m, n)
    stored_a, stored_b = a.T if opa else a, b.T if opb else b

    def place(matrix: numpy.ndarray, order: int) -> Any:
        rows, columns = matrix.shape
        layout = lt.layout(kind, rows, columns, rows if order == COLUMN else columns, order)
        return ordered(lt, matrix, order), layout

    D = place(numpy.full((m, n), numpy.nan, dtype), orders[2])
    operation = lt.operation(COMPUTE["64F" if kind == R64F else "32F"], kind, {3: opa, 4: opb})
    alpha, beta = scalar(1.5, dtype), scalar(-0.5, dtype)
    C = place(c, orders[2])
    assert lt.matmul(operation, alpha, place(stored_a, orders[0]), place(stored_b, orders[1]), beta, C, D) == 0
    found = D[0] if orders[2] == COLUMN else D[0].T
    close(found, 1.5 * a.astype(complex) @ b - 0.5 * c)


def test_batches_go_by_their_strides(lt: Lt) -> None:
    m, n, k, batch = 3, 4, 5, 3
    A, B = (lt.device(random_array(GENERATOR, numpy.float32, s, batch)) for s in (m * k + 2, k * n + 1))
    D = lt.device(numpy.full((m * n, batch), numpy.nan, numpy.float32))
    layouts = [
        lt.layout(R32F, rows, columns, rows, COLUMN, batch, len(data))
        for rows, columns, data in ((m, k, A), (k, n, B), (m, n, D))
    ]
    operation = lt.operation(COMPUTE["32F"], R32F)
    outputs = (D, layouts[2])
    assert lt.matmul(operation, scalar(1), (A, layouts[0]), (B, layouts[1]), scalar(0), outputs, outputs) == 0
    for i in range(batch):
        a, b = A[: m * k, i].reshape((m, k), order="F"), B[: k * n, i].reshape((k, n), order="F")
        close(D[:, i].reshape((m, n), order="F"), a.astype(float) @ b)


def gelu(x: numpy.ndarray) -> numpy.ndarray:
    return 0.5 * x * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x: numpy.ndarray) -> numpy.ndarray:
    step = 1e-6
    return (gelu(x + step) - gelu(x - step)) / (2 * step)


@pytest.fixture()
def simple(lt: Lt) -> Any:
    """A product of float matrices, and a function that runs it with an epilogue."""
    m, n, k = 8, 5, 6
    A, B = (
        lt.device(random_array(GENERATOR, numpy.float32, m, k)),
        lt.device(random_array(GENERATOR, numpy.float32, k, n)),
    )
    D = lt.device(numpy.zeros((m, n), numpy.float32))
    layouts = [lt.layout(R32F, rows, columns, rows) for rows, columns in ((m, k), (k, n), (m, n))]

    def run(epilogue: int, **attributes: Any) -> numpy.ndarray:
        numbers = {"bias": 8, "aux": 11, "aux_ld": 12}
        operation = lt.operation(COMPUTE["32F"], R32F, {7: epilogue, **{numbers[k]: v for k, v in attributes.items()}})
        out = (D, layouts[2])
        assert lt.matmul(operation, scalar(1), (A, layouts[0]), (B, layouts[1]), scalar(0), out, out) == 0
        return D

    return run, A, B, A.astype(float) @ B.astype(float)


def test_epilogues_forward(lt: Lt, simple: Any) -> None:
    run, _, _, product = simple
    m, n = product.shape
    bias = lt.device(random_array(GENERATOR, numpy.float32, m))
    biased = product + bias.astype(float)[:, None]
    close(run(RELU), numpy.maximum(product, 0))
    close(run(BIAS, bias=bias), biased)
    close(run(RELU_BIAS, bias=bias), numpy.maximum(biased, 0))
    close(run(GELU), gelu(product))
    close(run(GELU_BIAS, bias=bias), gelu(biased))
    aux = lt.device(numpy.zeros((m, n), numpy.float32))
    close(run(GELU_AUX_BIAS, bias=bias, aux=aux, aux_ld=m), gelu(biased))
    close(aux, biased)


def test_epilogues_backward(lt: Lt, simple: Any) -> None:
    run, A, B, product = simple
    m, n = product.shape
    bias = lt.device(random_array(GENERATOR, numpy.float32, m))
    mask = lt.device(numpy.zeros(128 * n // 8, numpy.uint8))
    biased = product + bias.astype(float)[:, None]
    run(RELU_AUX_BIAS, bias=bias, aux=mask, aux_ld=128)
    close(run(DRELU, aux=mask, aux_ld=128), product * (biased > 0))
    gradient = lt.device(numpy.zeros(m, numpy.float32))
    close(run(DRELU_BGRAD, aux=mask, aux_ld=128, bias=gradient), product * (biased > 0))
    close(gradient, (product * (biased > 0)).sum(1))
    before = lt.device(random_array(GENERATOR, numpy.float32, m, n))
    expected = product * gelu_slope(before.astype(float))
    close(run(DGELU, aux=before, aux_ld=m), expected)
    close(run(DGELU_BGRAD, aux=before, aux_ld=m, bias=gradient), expected)
    close(gradient, expected.sum(1))
    close(run(BGRADA, bias=gradient), product)
    close(gradient, A.astype(float).sum(1))
    columns = lt.device(numpy.zeros(n, numpy.float32))
    run(BGRADB, bias=columns)
    close(columns, B.astype(float).sum(0))


def test_half_with_float_bias_rounds_once(lt: Lt) -> None:
    m, n, k = 7, 6, 40
    A, B = (lt.device(random_array(GENERATOR, numpy.float16, *s)) for s in ((m, k), (k, n)))
    bias = lt.device(random_array(GENERATOR, numpy.float32, m))
    D = lt.device(numpy.zeros((m, n), numpy.float16))
    layouts = [lt.layout(R16F, rows, columns, rows) for rows, columns in ((m, k), (k, n), (m, n))]
    operation = lt.operation(COMPUTE["32F"], R32F, {7: BIAS, 8: bias, 26: R32F})
    out = (D, layouts[2])
    assert lt.matmul(operation, scalar(1), (A, layouts[0]), (B, layouts[1]), scalar(0), out, out) == 0
    expected = A.astype(float) @ B.astype(float) + bias.astype(float)[:, None]
    assert (abs(D - expected) <= 2.0**-11 * abs(expected) + 1e-5).all()


def test_integers_are_exact_and_saturate(lt: Lt) -> None:
    m, n, k = 4, 5, 64
    A, B = (lt.device(GENERATOR.integers(-128, 128, s).astype(numpy.int8)) for s in ((m, k), (k, n)))
    exact = A.astype(numpy.int64) @ B.astype(numpy.int64)
    D = lt.device(numpy.zeros((m, n), numpy.int32))
    inputs = (A, lt.layout(R8I, m, k, m)), (B, lt.layout(R8I, k, n, k))
    out = (D, lt.layout(R32I, m, n, m))
    operation = lt.operation(COMPUTE["32I"], R32I)
    assert lt.matmul(operation, scalar(2, numpy.int32), *inputs, scalar(0, numpy.int32), out, out) == 0
    assert (2 * exact == D).all()
    narrow = lt.device(numpy.zeros((m, n), numpy.int8))
    out = (narrow, lt.layout(R8I, m, n, m))
    operation = lt.operation(COMPUTE["32I"], R32F)
    assert lt.matmul(operation, scalar(1 / 256), *inputs, scalar(0), out, out) == 0
    assert (narrow == numpy.clip(numpy.rint(exact / 256), -128, 127)).all()


def fp8_values(code: int) -> numpy.ndarray:
    """All 256 numbers of a format, from its definition: sign, exponent, mantissa."""
    mantissa_bits, bias = (3, 7) if code == E4M3 else (2, 15)
    values = numpy.zeros(256)
    for number in range(256):
        exponent = (number & 127) >> mantissa_bits
        fraction = (number & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
        value = (1 + fraction) * 2.0 ** (exponent - bias) if exponent else fraction * 2.0 ** (1 - bias)
        if code == E4M3 and number & 127 == 127:
            value = numpy.nan
        if code == E5M2 and exponent == 31:
            value = numpy.nan if fraction else numpy.inf
        values[number] = -value if number & 128 else value
    return values


@pytest.mark.parametrize("kind_a, kind_b", [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3)])
def test_fp8_products_with_scales(lt: Lt, kind_a: int, kind_b: int) -> None:
    m, n, k = 16, 8, 32
    codes_a, codes_b = GENERATOR.integers(0, 120, (k, m)), GENERATOR.integers(128, 248, (k, n))
    values_a, values_b = fp8_values(kind_a)[codes_a], fp8_values(kind_b)[codes_b]
    A, B = lt.device(codes_a.astype(numpy.uint8)), lt.device(codes_b.astype(numpy.uint8))
    scale_a, scale_b = lt.device(scalar(0.125)), lt.device(scalar(0.25))
    D = lt.device(numpy.zeros((m, n), numpy.float32))
    inputs = (A, lt.layout(kind_a, k, m, k)), (B, lt.layout(kind_b, k, n, k))
    out = (D, lt.layout(R32F, m, n, m))
    operation = lt.operation(COMPUTE["32F"], R32F, {3: 1, 17: scale_a, 18: scale_b})
    assert lt.matmul(operation, scalar(1), *inputs, scalar(0), out, out) == 0
    expected = values_a.T @ values_b / 32
    close(D, expected)

    narrow = lt.device(numpy.zeros((m, n), numpy.uint8))
    scale_d, greatest = lt.device(scalar(448 / abs(expected).max() * 1.5)), lt.device(scalar(0))
    operation = lt.operation(COMPUTE["32F"], R32F, {3: 1, 17: scale_a, 18: scale_b, 20: scale_d, 21: greatest})
    source = (lt.device(numpy.zeros((m, n), numpy.float16)), lt.layout(R16F, m, n, m))
    out = (narrow, lt.layout(E4M3, m, n, m))
    assert lt.matmul(operation, scalar(1), *inputs, scalar(0), source, out) == 0
    close(greatest, abs(expected).max())
    wanted = numpy.clip(expected * float(scale_d[0]), -448, 448)  # saturates, by the scale above
    numbers = fp8_values(E4M3)
    found = numbers[narrow]
    nearest = abs(numbers[None, None, :] - wanted[:, :, None])
    assert (abs(found - wanted) <= numpy.nanmin(nearest, axis=2) * (1 + 1e-4) + 1e-7).all()
    assert abs(found).max() == 448

    rows, columns = (
        lt.device(GENERATOR.random(m).astype(numpy.float32)),
        lt.device(GENERATOR.random(n).astype(numpy.float32)),
    )
    operation = lt.operation(COMPUTE["32F"], R32F, {3: 1, 17: rows, 18: columns, 31: 3, 32: 3})
    out = (D, lt.layout(R32F, m, n, m))
    assert lt.matmul(operation, scalar(1), *inputs, scalar(0), out, out) == 0
    close(D, values_a.T @ values_b * rows.astype(float)[:, None] * columns.astype(float))


def test_heuristics_find_what_can_be_computed_and_nothing_else(lt: Lt) -> None:
    preference = ctypes.c_void_p()
    lt.call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
    results, count = (ctypes.c_char * (96 * 4))(), ctypes.c_int(-1)

    def search(*layouts: Any, compute: int = COMPUTE["32F"], attributes: Any = None) -> int:
        operation = lt.operation(compute, R32F, attributes)
        tail = preference, 4, results, ctypes.byref(count)
        return lt.status("cublasLtMatmulAlgoGetHeuristic", lt.handle, operation, *layouts, *tail)

    a, b, c = lt.layout(R32F, 3, 4, 3), lt.layout(R32F, 4, 5, 4), lt.layout(R32F, 3, 5, 3)
    assert search(a, b, c, c) == 0 and count.value == 1
    assert search(a, a, c, c) == INVALID and count.value == 0
    assert search(a, b, c, lt.layout(R16F, 3, 5, 3)) == NOT_SUPPORTED and count.value == 0
    assert search(a, b, c, c, attributes={31: 2}) == NOT_SUPPORTED  # block scales
    assert search(a, b, c, lt.layout(R32F, 3, 5, 3, 2)) == NOT_SUPPORTED  # COL32


def test_attributes_are_read_back(lt: Lt) -> None:
    operation = lt.operation(COMPUTE["32F"], R32F, {7: GELU})
    value, written = ctypes.c_int32(), ctypes.c_size_t()
    size = ctypes.c_size_t(4)
    arguments = operation, 7, ctypes.byref(value), size, ctypes.byref(written)
    lt.call("cublasLtMatmulDescGetAttribute", *arguments)
    assert value.value == GELU and written.value == 4
    assert lt.status("cublasLtMatmulDescSetAttribute", operation, 99, ctypes.byref(value), size) == INVALID
    assert lt.status("cublasLtMatmulDescSetAttribute", operation, 7, ctypes.byref(value), ctypes.c_size_t(2)) == INVALID


def test_matrices_change_order_and_type(lt: Lt) -> None:
    transform = ctypes.c_void_p()
    lt.call("cublasLtMatrixTransformDescCreate", ctypes.byref(transform), R32F)
    A = lt.device(random_array(GENERATOR, numpy.float32, 4, 6))
    C = lt.device(numpy.zeros((6, 4), numpy.float16))  # the same matrix, row-major
    layouts = lt.layout(R32F, 4, 6, 4), lt.layout(R16F, 4, 6, 6, ROW)
    arguments = scalar(2), A, layouts[0], scalar(0), None, None, C, layouts[1], None
    lt.call("cublasLtMatrixTransform", lt.handle, transform, *arguments)
    assert ((2 * A).astype(numpy.float16) == C.T).all()


def test_an_algorithm_is_found_configured_and_computes(lt: Lt) -> None:
    algorithm, ids, count = numpy.zeros(8, numpy.uint64), numpy.full(4, -1, numpy.int32), ctypes.c_int()
    kinds = (COMPUTE["32F"], R32F, R32F, R32F, R32F, R32F)
    lt.call("cublasLtMatmulAlgoGetIds", lt.handle, *kinds, 4, ctypes.c_void_p(ids.ctypes.data), ctypes.byref(count))
    assert count.value == 1 and list(ids[:2]) == [0, -1]
    wrong = (COMPUTE["32F"], R32F, R32F, R64F, R32F, R32F)
    place = ctypes.c_void_p(algorithm.ctypes.data)
    assert lt.status("cublasLtMatmulAlgoInit", lt.handle, *wrong, 0, place) == NOT_SUPPORTED
    lt.call("cublasLtMatmulAlgoInit", lt.handle, *kinds, 21, place)  # a number that some GPU has
    value, written = ctypes.c_uint32(), ctypes.c_size_t()
    for attribute, put in ((1, 20), (2, 3), (3, 1), (4, 1), (5, 7), (6, 12)):
        value.value = put
        lt.call("cublasLtMatmulAlgoConfigSetAttribute", place, attribute, ctypes.byref(value), ctypes.c_size_t(4))
    for attribute, put in ((0, 21), (1, 20), (2, 3), (3, 1), (4, 1), (5, 7), (6, 12)):
        arguments = (place, attribute, ctypes.byref(value), ctypes.c_size_t(4), ctypes.byref(written))
        lt.call("cublasLtMatmulAlgoConfigGetAttribute", *arguments)
        assert (value.value, written.value) == (put, 4), attribute
    lt.call("cublasLtMatmulAlgoCapGetAttribute", place, 6, None, ctypes.c_size_t(0), ctypes.byref(written))
    assert written.value == 4  # one tile
    lt.call("cublasLtMatmulAlgoCapGetAttribute", place, 12, ctypes.byref(value), ctypes.c_size_t(4), None)
    assert all(value.value & epilogue == epilogue for epilogue in (DEFAULT, RELU_BIAS, GELU_AUX_BIAS, DGELU_BGRAD))

    a, b = random_array(GENERATOR, numpy.float32, 5, 7), random_array(GENERATOR, numpy.float32, 7, 3)
    one, zero = numpy.float32([1]), numpy.float32([0])
    layouts = [lt.layout(R32F, 5, 7, 5), lt.layout(R32F, 7, 3, 7), lt.layout(R32F, 5, 3, 5)]
    stored = [lt.device(array) for array in (a, b, numpy.zeros((5, 3), numpy.float32))]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*stored, one, zero)]
    operation = lt.operation(COMPUTE["32F"], R32F)
    arguments = (pointers[0], layouts[0], pointers[1], layouts[1], pointers[4], pointers[2], layouts[2])
    lt.call("cublasLtMatmul", lt.handle, operation, pointers[3], *arguments, pointers[2], layouts[2], place, None,
            ctypes.c_size_t(0), None)  # fmt: skip
    close(stored[2], a @ b)
