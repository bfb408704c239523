"""cuBLAS with narrow and mixed types: what is read, summed in and rounded to."""

import ctypes
from typing import Any, List

import numpy
import pytest
from cublas_calls import (
    C32F,
    C64F,
    COMPUTE_16F,
    COMPUTE_32F,
    COMPUTE_32I,
    COMPUTE_64F,
    GENERATOR,
    NOT_SUPPORTED,
    R8I,
    R16BF,
    R16F,
    R32F,
    R32I,
    Blas,
)
from library_calls import close, operation, random_array


def to_bfloat16(values: numpy.ndarray) -> numpy.ndarray:
    """Round float32 to bfloat16, ties to even."""
    bits = values.astype(numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)


def from_bfloat16(values: numpy.ndarray) -> numpy.ndarray:
    return (values.astype(numpy.uint32) << 16).view(numpy.float32)


@pytest.mark.parametrize("output", ["same", "float"])
@pytest.mark.parametrize("name", ["half", "bfloat16"])
def test_16_bit_products_are_summed_in_float_and_rounded_once(blas: Blas, name: str, output: str) -> None:
    m, n, k = 9, 7, 33
    values = [random_array(GENERATOR, numpy.float32, *shape) for shape in ((m, k), (k, n), (m, n))]
    code = R16F if name == "half" else R16BF
    encode = (lambda v: v.astype(numpy.float16)) if name == "half" else to_bfloat16
    decode = (lambda v: v.astype(numpy.float64)) if name == "half" else (lambda v: from_bfloat16(v).astype(float))
    A, B = (blas.device(encode(v)) for v in values[:2])
    C = blas.device(encode(values[2]) if output == "same" else values[2])
    alpha, beta = numpy.array([1.25], numpy.float32), numpy.array([0.5], numpy.float32)
    old = decode(C) if output == "same" else C.astype(float)
    expected = 1.25 * decode(A) @ decode(B) + 0.5 * old
    arguments = 0, 0, m, n, k, alpha, A, code, m, B, code, k, beta, C
    blas.run("GemmEx", *arguments, code if output == "same" else R32F, m, COMPUTE_32F, -1)
    found = decode(C) if output == "same" else C
    last_place = {"half": 2.0**-11, "bfloat16": 2.0**-8}[name] if output == "same" else 1e-6
    assert (abs(found - expected) <= last_place * abs(expected) + 1e-6 * abs(expected).max()).all()


def test_half_precision_gemm_takes_half_scalars(blas: Blas) -> None:
    m = n = k = 8
    A, B, C = (blas.device(random_array(GENERATOR, numpy.float32, m, n).astype(numpy.float16)) for _ in range(3))
    alpha, beta = numpy.array([0.5], numpy.float16), numpy.array([2], numpy.float16)
    expected = 0.5 * A.astype(float).T @ B.astype(float) + 2 * C.astype(float)
    blas.run("Hgemm", 1, 0, m, n, k, alpha, A, m, B, k, beta, C, m)
    close(C, expected, 3)
    blas.run("GemmEx", 0, 0, m, n, k, alpha, A, R16F, m, B, R16F, k, beta, C, R16F, m, COMPUTE_16F, -1)


def test_every_half_is_read_and_written_and_rounding_is_to_even(blas: Blas) -> None:
    one, zero = numpy.array([1], numpy.float32), numpy.array([0], numpy.float32)
    identity = blas.device(numpy.array([1], numpy.float16))
    every = numpy.arange(1 << 16, dtype=numpy.uint32).astype(numpy.uint16).view(numpy.float16)
    every = blas.device(every[numpy.isfinite(every)].reshape(1, -1))
    out = blas.device(numpy.zeros(every.shape, numpy.float32))
    arguments = 0, 0, 1, every.size, 1, one, identity, R16F, 1, every, R16F, 1, zero
    blas.run("GemmEx", *arguments, out, R32F, 1, COMPUTE_32F, -1)
    assert (out == every.astype(numpy.float32)).all()
    for factor in (1, 1.0003, 0.9998, 1.00048828125, 0.5, 2):  # between halves, halfway, subnormal, overflowing
        alpha = numpy.array([factor], numpy.float32)
        back = blas.device(numpy.zeros_like(every))
        arguments = 0, 0, 1, every.size, 1, alpha, identity, R16F, 1, every, R16F, 1, zero
        blas.run("GemmEx", *arguments, back, R16F, 1, COMPUTE_32F, -1)
        with numpy.errstate(over="ignore"):
            assert (back == (every.astype(numpy.float32) * alpha).astype(numpy.float16)).all(), factor


@pytest.mark.parametrize("transposed", [0, 1])
def test_int8_products_are_exact_in_int32(blas: Blas, transposed: int) -> None:
    m, n, k = 5, 6, 1000
    A = blas.device(GENERATOR.integers(-128, 128, (m, k) if not transposed else (k, m)).astype(numpy.int8))
    B = blas.device(GENERATOR.integers(-128, 128, (k, n)).astype(numpy.int8))
    C = blas.device(GENERATOR.integers(-1000, 1000, (m, n)).astype(numpy.int32))
    alpha, beta = numpy.array([3], numpy.int32), numpy.array([-2], numpy.int32)
    expected = 3 * operation(transposed, A.astype(numpy.int64)) @ B.astype(numpy.int64) - 2 * C.astype(numpy.int64)
    arguments = transposed, 0, m, n, k, alpha, A, R8I, len(A), B, R8I, k, beta
    blas.run("GemmEx", *arguments, C, R32I, m, COMPUTE_32I, -1)
    assert (expected == C).all()
    out = blas.device(numpy.zeros((m, n), numpy.float32))
    one, zero = numpy.array([1], numpy.float32), numpy.array([0], numpy.float32)
    arguments = transposed, 0, m, n, k, one, A, R8I, len(A), B, R8I, k, zero
    blas.run("GemmEx", *arguments, out, R32F, m, COMPUTE_32F, -1)
    assert (out == operation(transposed, A.astype(numpy.int64)) @ B.astype(numpy.int64)).all()


def test_batched_ex_products_agree_with_single_ones(blas: Blas) -> None:
    m, n, k, batch = 4, 3, 5, 3
    alpha, beta = numpy.array([2], numpy.complex128), numpy.array([0], numpy.complex128)
    A, B = blas.random(numpy.complex128, m * k, batch), blas.random(numpy.complex128, k * n, batch)
    expected = [2 * A[:, i].reshape((m, k), order="F") @ B[:, i].reshape((k, n), order="F") for i in range(batch)]
    C = blas.device(numpy.zeros((m * n, batch), numpy.complex128))
    stride = [ctypes.c_longlong(len(each)) for each in (A, B, C)]
    blas.run(
        "GemmStridedBatchedEx",
        *(0, 0, m, n, k, alpha, A, C64F, m, stride[0], B, C64F, k, stride[1], beta, C, C64F, m, stride[2], batch),
        *(COMPUTE_64F, -1),
    )
    for i in range(batch):
        close(C[:, i].reshape((m, n), order="F"), expected[i])
    D = blas.device(numpy.zeros((m * n, batch), numpy.complex128))
    columns = [blas.pointers(*(each[:, i] for i in range(batch))) for each in (A, B, D)]
    blas.run(
        "GemmBatchedEx",
        *(0, 0, m, n, k, alpha, columns[0], C64F, m, columns[1], C64F, k, beta, columns[2], C64F, m, batch),
        *(COMPUTE_64F, -1),
    )
    assert (D == C).all()


@pytest.mark.parametrize("name", ["SgemmGroupedBatched", "DgemmGroupedBatched", "GemmGroupedBatchedEx"])
def test_groups_of_products_have_shapes_and_scalars_of_their_own(blas: Blas, name: str) -> None:
    kind: Any = numpy.float64 if name[0] == "D" else numpy.float32
    stored: Any = numpy.float16 if name.endswith("Ex") else kind
    shapes, sizes = [(4, 3, 5), (2, 6, 1), (1, 1, 7)], numpy.array([2, 0, 3], numpy.int32)
    trans = numpy.array([1, 0, 0], numpy.int32)
    alpha, beta = numpy.array([2, 3, -1], kind), numpy.array([0.5, 1, 0], kind)
    A, B, C, expected = [], [], [], []
    for (m, n, k), size, flip, a, b in zip(shapes, sizes, trans, alpha, beta):
        for _ in range(size):
            A.append(blas.device(random_array(GENERATOR, numpy.float32, *((k, m) if flip else (m, k))).astype(stored)))
            B.append(blas.device(random_array(GENERATOR, numpy.float32, k, n).astype(stored)))
            C.append(blas.device(random_array(GENERATOR, numpy.float32, m, n).astype(stored)))
            left = operation(int(flip), A[-1]).astype(float)
            expected.append(a * left @ B[-1].astype(float) + b * C[-1].astype(float))
    m, n, k = (numpy.array(each, numpy.int32) for each in zip(*shapes))
    lda = numpy.where(trans == 1, k, m).astype(numpy.int32)
    pointers = [blas.pointers(*each) for each in (A, B, C)]
    plain = numpy.zeros(3, numpy.int32)
    kinds = [[R16F]] * 3 if name.endswith("Ex") else [[]] * 3
    end = [COMPUTE_32F] if name.endswith("Ex") else []

    def arguments(ldb: numpy.ndarray) -> List[Any]:
        parts = [trans, plain, m, n, k, alpha, pointers[0], *kinds[0], lda, pointers[1], *kinds[1], ldb]
        return [*parts, beta, pointers[2], *kinds[2], m, 3, sizes, *end]

    assert blas.fails(name, *arguments(plain)) != 0
    blas.run(name, *arguments(k))
    for output, right in zip(C, expected):
        # Rounded once: by half a unit in the last place, which is a share of the value.
        rounding = 2.0**-11 if stored == numpy.float16 else 0.0
        assert numpy.allclose(output.astype(float), right, rtol=rounding + 1e-5, atol=1e-4)


def test_vectors_of_any_type_are_reduced_in_float(blas: Blas) -> None:
    n = 1000
    x, y = (blas.device(random_array(GENERATOR, numpy.float32, n).astype(numpy.float16)) for _ in range(2))
    result = numpy.zeros(1, numpy.float32)
    blas.run("DotEx", n, x, R16F, 1, y, R16F, 1, result, R32F, R32F)
    close(result, (x.astype(float) * y.astype(float)).sum())
    blas.run("Nrm2Ex", n, x, R16F, 1, blas.scalar(numpy.float16, 0), R16F, R32F)
    big = blas.device(numpy.full(4, 1e30, numpy.float32))
    blas.run("Nrm2Ex", 4, big, R32F, 1, result, R32F, R32F)
    close(result, 2e30)
    before = x.astype(float)
    blas.run("ScalEx", n, numpy.array([0.5], numpy.float32), R32F, x, R16F, 1, R32F)
    close(x, before / 2, 1)
    assert blas.fails("DotEx", n, x, R16F, 1, big, R32F, 1, result, R32F, R32F) == NOT_SUPPORTED


def test_level_one_takes_its_types_at_run_time(blas: Blas) -> None:
    n = 50
    x, y = (blas.device(random_array(GENERATOR, numpy.complex64, n)) for _ in range(2))
    before = x.copy(), y.copy()
    place, result = numpy.zeros(1, numpy.int32), numpy.zeros(1, numpy.float32)
    magnitudes = abs(x.real) + abs(x.imag)
    blas.run("IamaxEx", n, x, C32F, 1, place)
    assert place[0] == magnitudes.argmax() + 1
    blas.run("IaminEx", n, x, C32F, 1, place)
    assert place[0] == magnitudes.argmin() + 1
    blas.run("AsumEx", n, x, C32F, 1, result, R32F, R32F)
    close(result, magnitudes.sum())
    blas.run("SwapEx", n, x, C32F, 1, y, C32F, -1)
    assert (x == before[1][::-1]).all() and (y == before[0][::-1]).all()
    blas.run("CopyEx", n // 2, y, C32F, 2, x, C32F, 1)
    assert (x[: n // 2] == y[::2]).all()

    before = x.copy(), y.copy()
    sine = numpy.array([0.48 + 0.64j], numpy.complex64)
    blas.run("RotEx", n, x, C32F, 1, y, C32F, 1, blas.scalar(numpy.float32, 0.6), sine, C32F, C32F)
    close(x, 0.6 * before[0] + sine * before[1])
    close(y, 0.6 * before[1] - sine.conj() * before[0])
    blas.run("RotEx", n, *(x, C32F, 1, y, C32F, 1), *(blas.scalar(numpy.float32, v) for v in (0, 1)), R32F, C32F)
    close(x, 0.6 * before[1] - sine.conj() * before[0])

    half = blas.device(numpy.array([1, -7, 3, 7], numpy.float16))
    blas.run("IamaxEx", 4, half, R16F, 1, place)
    assert place[0] == 2  # the first of them
    assert blas.fails("CopyEx", 4, half, R16F, 1, x, C32F, 1) == NOT_SUPPORTED
