"""cuBLAS computes right values: every family, type, operation, layout; wrong arguments get their status."""

import ctypes
import itertools
from typing import Any

import numpy
import pytest
from cublas_calls import COMPUTE_32F, GENERATOR, INVALID, LEFT, LOWER, NOT_INITIALIZED, R32F, R64F, RIGHT, UPPER, Blas
from library_calls import TYPES, close, operation, random_array, wide


def triangle(uplo: int, matrix: numpy.ndarray, unit: bool = False) -> numpy.ndarray:
    result = numpy.tril(matrix) if uplo == LOWER else numpy.triu(matrix)
    if unit:
        result = result - numpy.diag(numpy.diag(result)) + numpy.eye(len(result))
    return result


def mirror(uplo: int, matrix: numpy.ndarray, hermitian: bool = False) -> numpy.ndarray:
    half = triangle(uplo, matrix)
    other = half.conj().T if hermitian else half.T
    result = half + other
    numpy.fill_diagonal(result, numpy.diag(matrix).real if hermitian else numpy.diag(matrix))
    return result


def walk(array: numpy.ndarray, count: int, increment: int) -> numpy.ndarray:
    """The `count` elements that BLAS visits, in its order."""
    picked = array[: (count - 1) * abs(increment) + 1 : abs(increment)]
    return picked if increment > 0 else picked[::-1]


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("incx, incy", [(1, 1), (2, 3), (-1, 2), (-2, -1)])
def test_vectors_are_combined_with_any_increment(blas: Blas, letter: str, incx: int, incy: int) -> None:
    kind, n = TYPES[letter], 13
    for suffix in ("", "_64"):
        size: Any = ctypes.c_int64 if suffix else int
        count, stepx, stepy = size(n), size(incx), size(incy)
        alpha = blas.scalar(kind, 1.5 - 0.5j)
        x, y = blas.random(kind, 60), blas.random(kind, 60)
        vx, vy = wide(walk(x, n, incx)), wide(walk(y, n, incy))
        expected = alpha[0] * vx + vy
        blas.run(f"{letter}axpy_v2{suffix}", count, alpha, x, stepx, y, stepy)
        close(walk(y, n, incy), expected)
        result = numpy.zeros(1, kind)
        for name, left in (("dot", vx), ("dotu", vx), ("dotc", vx.conj())):
            if (name == "dot") != (letter in "SD"):
                continue
            blas.run(f"{letter}{name}_v2{suffix}", count, x, stepx, y, stepy, result)
            close(result, (left * wide(walk(y, n, incy))).sum(), 1000)
        blas.run(f"{letter}copy_v2{suffix}", count, x, stepx, y, stepy)
        assert (walk(y, n, incy) == walk(x, n, incx)).all()
        z = blas.random(kind, 60)
        before = walk(z, n, incy).copy()
        blas.run(f"{letter}swap_v2{suffix}", count, x, stepx, z, stepy)
        assert (walk(x, n, incx) == before).all() and (walk(z, n, incy) == walk(y, n, incy)).all()


@pytest.mark.parametrize("letter", "SDCZ")
def test_vectors_are_reduced_and_scaled(blas: Blas, letter: str) -> None:
    kind, n, inc = TYPES[letter], 17, 3
    x = blas.random(kind, 60)
    v = wide(x[: n * inc : inc])
    real = numpy.zeros(1, x.real.dtype)
    prefix = {"S": "S", "D": "D", "C": "Sc", "Z": "Dz"}[letter]
    blas.run(prefix + "nrm2_v2", n, x, inc, real)
    close(real, numpy.sqrt((abs(v) ** 2).sum()))
    blas.run(prefix + "asum_v2", n, x, inc, real)
    close(real, (abs(v.real) + abs(v.imag)).sum())
    index = numpy.zeros(1, numpy.int64)
    size = abs(v.real) + abs(v.imag)
    blas.run(f"I{letter.lower()}amax_v2_64", ctypes.c_int64(n), x, ctypes.c_int64(inc), index)
    assert index[0] == size.argmax() + 1
    blas.run(f"I{letter.lower()}amin_v2", n, x, inc, index)
    assert index[0] == size.argmin() + 1
    blas.run(f"I{letter.lower()}amin_v2", 0, x, inc, index)
    assert index[0] == 0
    untouched = x.copy()
    alpha = blas.scalar(kind, 2 + 1j)
    blas.run(letter + "scal_v2", n, alpha, x, inc)
    close(x[: n * inc : inc], alpha[0] * v)
    assert (x[1::3] == untouched[1::3]).all()
    if letter in "CZ":
        half = numpy.array([0.5], real.dtype)
        blas.run({"C": "Csscal_v2", "Z": "Zdscal_v2"}[letter], n, half, x, inc)
        close(x[: n * inc : inc], 0.5 * alpha[0] * v)


@pytest.mark.parametrize("letter", "SDCZ")
def test_plane_rotations_rotate(blas: Blas, letter: str) -> None:
    kind, n = TYPES[letter], 9
    x, y = blas.random(kind, n), blas.random(kind, n)
    c = numpy.array([0.6], x.real.dtype)
    s = blas.scalar(kind, 0.8j) if letter in "CZ" else blas.scalar(kind, 0.8)
    vx, vy = wide(x), wide(y)
    blas.run(letter + "rot_v2", n, x, 1, y, 1, c, s)
    close(x, c[0] * vx + s[0] * vy)
    close(y, c[0] * vy - s[0].conj() * vx)
    a, b = blas.random(kind, 1), blas.random(kind, 1)
    a0, b0 = wide(a)[0], wide(b)[0]
    blas.run(letter + "rotg_v2", a, b, c, s)
    close(a, wide(c)[0] * a0 + wide(s)[0] * b0)
    assert abs(wide(c)[0] * b0 - wide(s)[0].conj() * a0) < 1e-5
    if letter in "SD":
        d1, d2, x1, y1 = (numpy.array([value], kind) for value in (2.0, 3.0, 1.0, 0.5))
        parameters = numpy.zeros(5, kind)
        blas.run(letter + "rotmg_v2", d1, d2, x1, y1, parameters)
        u, v = blas.random(kind, n), blas.random(kind, n)
        assert parameters[0] == 0  # h11 and h22 are 1
        expected = wide(u) + parameters[3] * wide(v), parameters[2] * wide(u) + wide(v)
        blas.run(letter + "rotm_v2", n, u, 1, v, 1, parameters)
        close(u, expected[0])
        close(v, expected[1])


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("op", [0, 1, 2])
def test_matrix_times_vector(blas: Blas, letter: str, op: int) -> None:
    kind, m, n, lda = TYPES[letter], 7, 5, 9
    alpha, beta = blas.scalar(kind, 1.5 + 1j), blas.scalar(kind, -0.5 + 0.25j)
    A = blas.random(kind, lda, n)
    matrix = operation(op, wide(A[:m]))
    rows, columns = matrix.shape
    for incx, incy in ((1, 1), (-2, 3)):
        x, y = blas.random(kind, 40), blas.random(kind, 40)
        expected = alpha[0] * matrix @ wide(walk(x, columns, incx)) + beta[0] * wide(walk(y, rows, incy))
        blas.run(letter + "gemv_v2", op, m, n, alpha, A, lda, x, incx, beta, y, incy)
        close(walk(y, rows, incy), expected)
    kl, ku = 2, 1
    band = blas.device(numpy.zeros((kl + ku + 1, n), kind))
    full = numpy.zeros((m, n), wide(A).dtype)
    for i, j in itertools.product(range(m), range(n)):
        if -ku <= i - j <= kl:
            full[i, j] = A[i, j]
            band[ku + i - j, j] = A[i, j]
    x, y = blas.random(kind, columns), blas.random(kind, rows)
    expected = alpha[0] * operation(op, full) @ wide(x) + beta[0] * wide(y)
    blas.run(letter + "gbmv_v2", op, m, n, kl, ku, alpha, band, kl + ku + 1, x, 1, beta, y, 1)
    close(y, expected)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("uplo", [LOWER, UPPER])
def test_symmetric_and_hermitian_matrices_use_one_triangle(blas: Blas, letter: str, uplo: int) -> None:
    kind, n, lda = TYPES[letter], 6, 8
    alpha, beta = blas.scalar(kind, 1.5 + 1j), blas.scalar(kind, -0.5 + 0.25j)
    real_alpha = numpy.array([0.75], blas.random(kind, 1).real.dtype)
    hermitian_kinds = [False, True] if letter in "CZ" else [False]
    for hermitian in hermitian_kinds:
        name = "he" if hermitian else "sy"
        A = blas.random(kind, lda, n)
        full = mirror(uplo, wide(A[:n]), hermitian)
        x, y = blas.random(kind, 2 * n), blas.random(kind, n)
        expected = alpha[0] * full @ wide(x[::2]) + beta[0] * wide(y)
        blas.run(f"{letter}{name}mv_v2", uplo, n, alpha, A, lda, x, 2, beta, y, 1)
        close(y, expected)

        factor = real_alpha if hermitian else alpha
        before = A.copy()
        blas.run(f"{letter}{name}r_v2", uplo, n, factor, x, 2, A, lda)
        v = wide(x[::2])
        expected = full + factor[0] * numpy.outer(v, v.conj() if hermitian else v)
        close(triangle(uplo, A[:n]), triangle(uplo, expected))
        other = UPPER if uplo == LOWER else LOWER
        strict = triangle(other, numpy.ones((n, n))) - numpy.eye(n) > 0
        assert (A[:n][strict] == before[:n][strict]).all() and (A[n:] == before[n:]).all()

        w = wide(y)
        full = mirror(uplo, wide(A[:n]), hermitian)
        second = numpy.conj(alpha[0]) if hermitian else alpha[0]
        left, right = (v.conj(), w.conj()) if hermitian else (v, w)
        expected = full + alpha[0] * numpy.outer(v, right) + second * numpy.outer(w, left)
        blas.run(f"{letter}{name}r2_v2", uplo, n, alpha, x, 2, y, 1, A, lda)
        close(triangle(uplo, A[:n]), triangle(uplo, expected))

    hermitian = letter in "CZ"  # packed and band forms exist for one of the two
    name = "h" if hermitian else "s"
    A = random_array(GENERATOR, kind, n, n)
    full = mirror(uplo, wide(A), hermitian)
    packed = blas.device(numpy.concatenate([A[j:, j] if uplo == LOWER else A[: j + 1, j] for j in range(n)]))
    x, y = blas.random(kind, n), blas.random(kind, n)
    expected = alpha[0] * full @ wide(x) + beta[0] * wide(y)
    blas.run(f"{letter}{name}pmv_v2", uplo, n, alpha, packed, x, 1, beta, y, 1)
    close(y, expected)
    unpacked = blas.device(numpy.zeros((n, n), kind))
    blas.run(f"{letter}pr_v2".replace("pr", name + "pr"), uplo, n, real_alpha, x, 1, packed)
    blas.run(f"{letter}tpttr", uplo, n, packed, unpacked, n)
    v = wide(x)
    expected = full + real_alpha[0] * numpy.outer(v, v.conj() if hermitian else v)
    close(triangle(uplo, unpacked), triangle(uplo, expected))
    again = blas.device(numpy.zeros_like(packed))
    blas.run(f"{letter}trttp", uplo, n, unpacked, n, again)
    assert (again == packed).all()
    k = 2
    band = blas.device(numpy.zeros((k + 1, n), kind))
    near = numpy.array([[full[i, j] if abs(i - j) <= k else 0 for j in range(n)] for i in range(n)])
    for i, j in itertools.product(range(n), range(n)):
        if 0 <= (i - j if uplo == LOWER else j - i) <= k:
            band[i - j if uplo == LOWER else k + i - j, j] = A[i, j]
    y = blas.random(kind, n)
    expected = alpha[0] * near @ wide(x) + beta[0] * wide(y)
    blas.run(f"{letter}{name}bmv_v2", uplo, n, k, alpha, band, k + 1, x, 1, beta, y, 1)
    close(y, expected)


@pytest.mark.parametrize("letter", "SDCZ")
def test_outer_products(blas: Blas, letter: str) -> None:
    kind, m, n = TYPES[letter], 5, 4
    alpha = blas.scalar(kind, 1.5 + 1j)
    for name in ("ger",) if letter in "SD" else ("geru", "gerc"):
        A, x, y = blas.random(kind, m + 2, n), blas.random(kind, m), blas.random(kind, 2 * n)
        v = walk(y, n, -2)
        expected = wide(A[:m]) + alpha[0] * numpy.outer(wide(x), wide(v.conj() if name == "gerc" else v))
        blas.run(f"{letter}{name}_v2", m, n, alpha, x, 1, y, -2, A, m + 2)
        close(A[:m], expected)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("uplo, op, unit", itertools.product([LOWER, UPPER], [0, 1, 2], [0, 1]))
def test_triangles_multiply_and_solve(blas: Blas, letter: str, uplo: int, op: int, unit: int) -> None:
    kind, n, m, lda = TYPES[letter], 5, 4, 7
    A = blas.device(random_array(GENERATOR, kind, lda, lda) + 4 * numpy.eye(lda, dtype=kind))
    x = blas.random(kind, 2 * n)
    matrix = operation(op, triangle(uplo, wide(A[:n, :n]), bool(unit)))
    v = wide(walk(x, n, -2)).copy()
    blas.run(letter + "trmv_v2", uplo, op, unit, n, A, lda, x, -2)
    close(walk(x, n, -2), matrix @ v)
    blas.run(letter + "trsv_v2", uplo, op, unit, n, A, lda, x, -2)
    close(walk(x, n, -2), v, 1e4)
    packed = blas.device(numpy.concatenate([A[j:n, j] if uplo == LOWER else A[: j + 1, j] for j in range(n)]))
    x = blas.random(kind, n)
    v = wide(x)
    blas.run(letter + "tpmv_v2", uplo, op, unit, n, packed, x, 1)
    close(x, matrix @ v)
    blas.run(letter + "tpsv_v2", uplo, op, unit, n, packed, x, 1)
    close(x, v, 1e4)

    alpha = blas.scalar(kind, 0.5 + 1j)
    for side in (LEFT, RIGHT):
        size = m if side == LEFT else n
        matrix = operation(op, triangle(uplo, wide(A[:size, :size]), bool(unit)))
        B, C = blas.random(kind, m + 1, n), blas.random(kind, m + 2, n)
        original = B.copy()
        b = wide(B[:m])
        blas.run(letter + "trmm_v2", side, uplo, op, unit, m, n, alpha, A, lda, B, m + 1, C, m + 2)
        close(C[:m], alpha[0] * (matrix @ b if side == LEFT else b @ matrix))
        assert (original == B).all()
        one = blas.scalar(kind, 1)
        blas.run(letter + "trsm_v2", side, uplo, op, unit, m, n, one, A, lda, C, m + 2)
        close(C[:m], alpha[0] * b, 1e4)
        batch = [blas.device(C), blas.device(2 * C)]
        inputs = [wide(c[:m]) for c in batch]
        blas.run(
            letter + "trsmBatched",
            *(side, uplo, op, unit, m, n, alpha, blas.pointers(A, A), lda, blas.pointers(*batch), m + 2, 2),
        )
        for c, b in zip(batch, inputs):
            product = matrix @ wide(c[:m]) if side == LEFT else wide(c[:m]) @ matrix
            close(product.astype(kind), alpha[0] * b, 1e4)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("opa, opb", itertools.product([0, 1, 2], [0, 1, 2]))
def test_matrix_products(blas: Blas, letter: str, opa: int, opb: int) -> None:
    kind, m, n, k = TYPES[letter], 6, 5, 7
    alpha, beta = blas.scalar(kind, 1.5 + 1j), blas.scalar(kind, -0.5 + 0.25j)
    shape_a, shape_b = ((m + 1, k) if opa == 0 else (k + 1, m)), ((k + 2, n) if opb == 0 else (n + 2, k))
    A, B, C = blas.random(kind, *shape_a), blas.random(kind, *shape_b), blas.random(kind, m + 3, n)
    a, b = operation(opa, wide(A[:-1])), operation(opb, wide(B[:-2]))
    expected = alpha[0] * a @ b + beta[0] * wide(C[:m])
    rest = C[m:].copy()
    blas.run(letter + "gemm_v2", opa, opb, m, n, k, alpha, A, len(A), B, len(B), beta, C, m + 3)
    close(C[:m], expected)
    assert (C[m:] == rest).all()

    zero, one = blas.scalar(kind, 0), blas.scalar(kind, 1)
    outputs = [blas.device(numpy.full((m, n), numpy.nan, kind)) for _ in range(3)]  # beta 0 must not read them
    pointers = blas.pointers(A, A, A), len(A), blas.pointers(B, B, B), len(B)
    blas.run(letter + "gemmBatched", opa, opb, m, n, k, one, *pointers, zero, blas.pointers(*outputs), m, 3)
    for output in outputs:
        close(output, a @ b)
    stack_a, stack_b = blas.random(kind, A.size, 3), blas.random(kind, B.size, 3)
    out = blas.device(numpy.full((m * n, 3), numpy.nan, kind))
    stride_a, stride_b, stride_c = (ctypes.c_longlong(len(each)) for each in (stack_a, stack_b, out))
    blas.run(
        letter + "gemmStridedBatched",
        *(opa, opb, m, n, k, one, stack_a, len(A), stride_a, stack_b, len(B), stride_b, zero, out, m, stride_c, 3),
    )
    for i in range(3):
        a = operation(opa, wide(stack_a[:, i].reshape(A.shape, order="F")[:-1]))
        b = operation(opb, wide(stack_b[:, i].reshape(B.shape, order="F")[:-2]))
        close(out[:, i].reshape((m, n), order="F"), a @ b)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("uplo", [LOWER, UPPER])
def test_structured_products_and_rank_updates(blas: Blas, letter: str, uplo: int) -> None:
    kind, m, n, k = TYPES[letter], 4, 5, 6
    alpha, beta = blas.scalar(kind, 1.5 + 1j), blas.scalar(kind, -0.5 + 0.25j)
    real = numpy.array([0.75, -0.5], blas.random(kind, 1).real.dtype)
    for hermitian in [False, True] if letter in "CZ" else [False]:
        name = "he" if hermitian else "sy"
        for side in (LEFT, RIGHT):
            size = m if side == LEFT else n
            A, B, C = blas.random(kind, size + 1, size), blas.random(kind, m, n), blas.random(kind, m, n)
            full = mirror(uplo, wide(A[:size]), hermitian)
            product = full @ wide(B) if side == LEFT else wide(B) @ full
            expected = alpha[0] * product + beta[0] * wide(C)
            blas.run(f"{letter}{name}mm_v2", side, uplo, m, n, alpha, A, size + 1, B, m, beta, C, m)
            close(C, expected)
        for op in (0, 2 if hermitian else 1):
            shape = (n, k) if op == 0 else (k, n)
            A, B, C = blas.random(kind, *shape), blas.random(kind, *shape), blas.random(kind, n, n)
            a, b = (wide(each) if op == 0 else operation(op, wide(each)) for each in (A, B))
            at, bt = (a.conj().T, b.conj().T) if hermitian else (a.T, b.T)
            c = mirror(uplo, wide(C), hermitian)
            scale, rest = (real[:1], real[1:]) if hermitian else (alpha, beta)
            blas.run(f"{letter}{name}rk_v2", uplo, op, n, k, scale, A, len(A), rest, C, n)
            expected = scale[0] * a @ at + rest[0] * c
            close(triangle(uplo, C), triangle(uplo, expected))
            c = mirror(uplo, wide(C), hermitian)
            blas.run(f"{letter}{name}r2k_v2", uplo, op, n, k, alpha, A, len(A), B, len(A), rest, C, n)
            second = numpy.conj(alpha[0]) if hermitian else alpha[0]
            expected = alpha[0] * a @ bt + second * b @ at + rest[0] * c
            close(triangle(uplo, C), triangle(uplo, expected))
            c = mirror(uplo, wide(C), hermitian)
            blas.run(f"{letter}{name}rkx", uplo, op, n, k, alpha, A, len(A), B, len(A), rest, C, n)
            expected = alpha[0] * a @ bt + rest[0] * c
            if hermitian:
                numpy.fill_diagonal(expected, numpy.diag(expected).real)
            close(triangle(uplo, C), triangle(uplo, expected))


@pytest.mark.parametrize("letter", "SDCZ")
def test_matrices_are_added_and_scaled_by_diagonals(blas: Blas, letter: str) -> None:
    kind, m, n = TYPES[letter], 4, 6
    alpha, beta = blas.scalar(kind, 1.5 + 1j), blas.scalar(kind, -0.5 + 0.25j)
    for opa, opb in itertools.product(range(3), range(3)):
        A = blas.random(kind, *((m, n) if opa == 0 else (n, m)))
        B = blas.random(kind, *((m, n) if opb == 0 else (n, m)))
        C = blas.device(numpy.zeros((m + 1, n), kind))
        blas.run(letter + "geam", opa, opb, m, n, alpha, A, len(A), beta, B, len(B), C, m + 1)
        close(C[:m], alpha[0] * operation(opa, wide(A)) + beta[0] * operation(opb, wide(B)))
    A, C = blas.random(kind, m, n), blas.random(kind, m, n)
    x = blas.random(kind, 2 * n)
    blas.run(letter + "dgmm", RIGHT, m, n, A, m, x, 2, C, m)
    close(C, wide(A) * wide(x[::2]))
    blas.run(letter + "dgmm", LEFT, m, n, A, m, x, 1, C, m)
    close(C, wide(A) * wide(x[:m, None]))


@pytest.mark.parametrize("letter", "SDCZ")
def test_batches_are_factored_solved_and_inverted(blas: Blas, letter: str) -> None:
    kind, n, batch = TYPES[letter], 6, 3
    originals = [random_array(GENERATOR, kind, n, n) for _ in range(batch)]
    info = blas.device(numpy.full(batch, -9, numpy.int32))
    pivots = blas.device(numpy.zeros((n, batch), numpy.int32))
    A = [blas.device(original) for original in originals]
    inverses = [blas.device(numpy.zeros((n, n), kind)) for _ in range(batch)]
    blas.run(letter + "getrfBatched", n, blas.pointers(*A), n, pivots, info, batch)
    assert (info == 0).all()
    for i, original in enumerate(originals):
        rows = list(range(n))
        for j, pivot in enumerate(pivots[:, i] - 1):
            rows[j], rows[pivot] = rows[pivot], rows[j]
        close((triangle(LOWER, wide(A[i]), True) @ numpy.triu(wide(A[i]))).astype(kind), wide(original)[rows], 1e3)
    blas.run(letter + "getriBatched", n, blas.pointers(*A), n, pivots, blas.pointers(*inverses), n, info, batch)
    for original, inverse in zip(originals, inverses):
        close((wide(original) @ wide(inverse)).astype(kind), numpy.eye(n), 1e4)
    blas.run(
        letter + "matinvBatched",
        n,
        blas.pointers(*map(blas.device, originals)),
        n,
        blas.pointers(*inverses),
        n,
        info,
        batch,
    )
    for original, inverse in zip(originals, inverses):
        close((wide(original) @ wide(inverse)).astype(kind), numpy.eye(n), 1e4)
    host_info = numpy.full(1, -9, numpy.int32)
    for op in (0, 1, 2):
        B = [blas.random(kind, n, 2) for _ in range(batch)]
        right = [wide(b) for b in B]
        blas.run(
            letter + "getrsBatched", op, n, 2, blas.pointers(*A), n, pivots, blas.pointers(*B), n, host_info, batch
        )
        assert host_info[0] == 0
        for original, b, r in zip(originals, B, right):
            close((operation(op, wide(original)) @ wide(b)).astype(kind), r, 1e4)
    assert (
        blas.fails(
            letter + "getrsBatched", 0, -1, 2, blas.pointers(*A), n, pivots, blas.pointers(*B), n, host_info, batch
        )
        == INVALID
    )
    assert host_info[0] == -2

    plain = blas.device(originals[0] + 10 * numpy.eye(n, dtype=kind))  # no row exchange is needed
    before = wide(plain)
    blas.run(letter + "getrfBatched", n, blas.pointers(plain), n, None, info, 1)
    close((triangle(LOWER, wide(plain), True) @ numpy.triu(wide(plain))).astype(kind), before, 1e3)
    singular = blas.device(numpy.zeros((n, n), kind))
    blas.run(letter + "getrfBatched", n, blas.pointers(singular), n, pivots, info, 1)
    assert info[0] == 1
    blas.run(letter + "getriBatched", n, blas.pointers(singular), n, pivots, blas.pointers(inverses[0]), n, info, 1)
    assert info[0] == 1

    m = 8
    tall = [random_array(GENERATOR, kind, m, n) for _ in range(batch)]
    Q, tau = [blas.device(each) for each in tall], [blas.device(numpy.zeros(n, kind)) for _ in range(batch)]
    blas.run(letter + "geqrfBatched", m, n, blas.pointers(*Q), m, blas.pointers(*tau), host_info, batch)
    for original, factored in zip(tall, Q):
        r = numpy.triu(wide(factored)[:n])
        close((r.conj().T @ r).astype(kind), wide(original).conj().T @ wide(original), 1e3)
    right = [random_array(GENERATOR, kind, m, 2) for _ in range(batch)]
    systems, solutions = [blas.device(each) for each in tall], [blas.device(each) for each in right]
    blas.run(
        letter + "gelsBatched",
        *(0, m, n, 2, blas.pointers(*systems), m, blas.pointers(*solutions), m, host_info, info, batch),
    )
    for original, b, solution in zip(tall, right, solutions):
        expected = numpy.linalg.lstsq(original.astype(complex), b.astype(complex), rcond=None)[0]
        close(solution[:n], expected, 1e4)


def test_scalars_may_lie_in_memory_of_the_device(blas: Blas) -> None:
    n = 5
    alpha = blas.device(numpy.array([2.0]))
    result = blas.device(numpy.array([0.0]))
    x, y = blas.random(numpy.float64, n), blas.random(numpy.float64, n)
    blas.run("SetPointerMode_v2", 1)
    mode = ctypes.c_int(-1)
    blas.run("GetPointerMode_v2", ctypes.byref(mode))
    assert mode.value == 1
    expected = 2 * x + y
    blas.run("Daxpy_v2", n, alpha, x, 1, y, 1)
    close(y, expected)
    blas.run("Ddot_v2", n, x, 1, y, 1, result)
    close(result, (x * y).sum())
    blas.run("SetPointerMode_v2", 0)


def test_vectors_and_matrices_are_copied_with_their_strides(blas: Blas) -> None:
    host = numpy.asfortranarray(random_array(GENERATOR, numpy.float64, 7, 5))
    device = blas.device(numpy.zeros((6, 5)))
    blas.call("cublasSetMatrix", 4, 5, 8, host, 7, device, 6)
    assert (device[:4] == host[:4]).all() and (device[4:] == 0).all()
    back = numpy.asfortranarray(numpy.zeros((4, 5)))
    blas.call("cublasGetMatrix", 4, 5, 8, device, 6, back, 4)
    assert (back == host[:4]).all()
    vector = blas.device(numpy.zeros(9))
    blas.call("cublasSetVector", 3, 8, host, 2, vector, 3)
    assert (vector[::3] == host[:6:2, 0]).all() and vector[1] == 0
    assert blas.status("cublasSetMatrix", 4, 5, 8, host, 3, device, 6) == INVALID
    assert blas.status("cublasSetVector", 4, 0, host, 3, device, 6) == INVALID


def test_wrong_arguments_get_their_status_and_nothing_is_written(blas: Blas) -> None:
    A, one = blas.random(numpy.float32, 4, 4), numpy.array([1], numpy.float32)
    before = A.copy()
    good = [0, 0, 4, 4, 4, one, A, 4, A, 4, one, A, 4]
    for place, value in ((0, 7), (1, 3), (2, -1), (3, -1), (4, -1), (7, 3), (9, 3), (12, 3), (5, None), (10, None)):
        wrong = list(good)
        wrong[place] = value
        assert blas.fails("Sgemm_v2", *wrong) == INVALID, place
    assert blas.fails("Sgemv_v2", 0, 4, 4, one, A, 4, A, 0, one, A, 1) == INVALID
    assert blas.fails("Strsm_v2", 2, 0, 0, 0, 4, 4, one, A, 4, A, 4) == INVALID
    assert blas.fails("Ssyrk_v2", 2, 0, 4, 4, one, A, 4, one, A, 4) == INVALID
    assert blas.fails("GemmEx", 0, 0, 4, 4, 4, one, A, R32F, 4, A, R64F, 4, one, A, R32F, 4, COMPUTE_32F, -1) == 15
    assert blas.status("cublasSgemm_v2", None, *good) == NOT_INITIALIZED
    assert (before == A).all()


def test_gemm_with_an_empty_side(blas: Blas) -> None:
    C = blas.device(numpy.full((3, 3), 2.0))
    one, half = numpy.array([1.0]), numpy.array([0.5])
    blas.run("Dgemm_v2", 0, 0, 3, 3, 0, one, C, 3, C, 1, half, C, 3)
    assert (C == 1).all()  # only beta acts
    blas.run("Dgemm_v2", 0, 0, 0, 3, 3, one, C, 1, C, 3, half, C, 1)
    assert (C == 1).all()
