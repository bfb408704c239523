"""cuSPARSE's incomplete factorizations and matrices in blocks, against dense matrices."""

import ctypes
import itertools
import pathlib
from typing import Any, Iterator, List, Optional, Tuple

import numpy
import pytest
import scipy.sparse
from cusparse_calls import GENERATOR, INVALID, NOT_SUPPORTED, Sparse, scalar
from library_calls import TYPES, close, operation, random_array, wide

TYPE_NOT_SUPPORTED, ZERO_PIVOT = 8, 9
ROWS, COLUMNS = 0, 1
NO_LEVEL, USE_LEVEL = 0, 1


@pytest.fixture(scope="module")
def sparse(sdk: pathlib.Path) -> Iterator[Sparse]:
    yield Sparse(sdk)


def described(sparse: Sparse, base: int = 0, fill: int = 0, unit: int = 0) -> ctypes.c_void_p:
    result = ctypes.c_void_p()
    sparse.call("cusparseCreateMatDescr", ctypes.byref(result))
    sparse.call("cusparseSetMatIndexBase", result, base)
    sparse.call("cusparseSetMatFillMode", result, fill)
    sparse.call("cusparseSetMatDiagType", result, unit)
    return result


class Matrix:
    """A dense matrix as cuSPARSE's plain arrays: in blocks of `dim`, or in CSR where `dim` is 0."""

    def __init__(
        self, sparse: Sparse, dense: numpy.ndarray, dim: int = 0, direction: int = ROWS, base: int = 0
    ) -> None:
        self.shape, self.dim, self.direction, self.base = dense.shape, dim, direction, base
        side = dim or 1
        grid = dense.reshape(dense.shape[0] // side, side, dense.shape[1] // side, side).transpose(0, 2, 1, 3)
        pressed = scipy.sparse.csr_matrix((grid != 0).any(axis=(2, 3)))
        rows = numpy.repeat(numpy.arange(grid.shape[0]), numpy.diff(pressed.indptr))
        blocks = grid[rows, pressed.indices]
        if direction == COLUMNS:
            blocks = blocks.transpose(0, 2, 1)
        self.rows, self.columns = grid.shape[:2]
        self.places, self.nnz = (rows, pressed.indices), pressed.nnz
        self.values = sparse.device(blocks.astype(dense.dtype).reshape(-1))
        self.offsets, self.inner = (
            sparse.device((each + base).astype(numpy.int32)) for each in (pressed.indptr, pressed.indices)
        )

    def arguments(self, description: ctypes.c_void_p) -> Tuple[Any, ...]:
        head: List[Any] = [self.direction] if self.dim else []
        tail = [self.dim] if self.dim else []
        return (*head, self.rows, self.nnz, description, self.values, self.offsets, self.inner, *tail)

    def dense(self) -> numpy.ndarray:
        side = self.dim or 1
        blocks = self.values.reshape(-1, side, side)
        grid = numpy.zeros((self.rows, self.columns, side, side), self.values.dtype)
        grid[self.places] = blocks if self.direction == ROWS else blocks.transpose(0, 2, 1)
        return grid.transpose(0, 2, 1, 3).reshape(self.shape)


class Steps:
    """An info, and the steps of the family of functions that it belongs to."""

    def __init__(self, sparse: Sparse, family: str, letter: str) -> None:
        self.sparse, self.family, self.letter = sparse, family, letter
        self.info = ctypes.c_void_p()
        sparse.call(f"cusparseCreate{family.capitalize()}Info", ctypes.byref(self.info))
        self.room = sparse.device(numpy.zeros(256, numpy.uint8))

    def status(self, step: str, *arguments: Any) -> int:
        return self.sparse.status(f"cusparse{self.letter}{self.family}{step}", self.sparse.handle, *arguments)

    def prepare(self, *arguments: Any, policy: int = USE_LEVEL) -> None:
        small, large = ctypes.c_int(), ctypes.c_size_t()
        assert self.status("_bufferSize", *arguments, self.info, ctypes.byref(small)) == 0
        assert self.status("_bufferSizeExt", *arguments, self.info, ctypes.byref(large)) == 0
        assert 0 < small.value == large.value
        assert self.status("_analysis", *arguments, self.info, policy, self.room) == 0

    def pivot(self) -> Optional[int]:
        position = ctypes.c_int(77)
        name = f"cusparseX{self.family}_zeroPivot"
        status = self.sparse.status(name, self.sparse.handle, self.info, ctypes.byref(position))
        assert status == (0 if position.value == -1 else ZERO_PIVOT)
        return None if status == 0 else position.value

    def factorize(self, *arguments: Any, policy: int = USE_LEVEL) -> None:
        assert self.status("", *arguments, self.info, policy, self.room) == 0


def dominant(kind: Any, n: int, dim: int = 1) -> numpy.ndarray:
    """A sparse matrix of blocks, the diagonal large enough for every factorization."""
    blocks = n // dim
    pattern = numpy.kron(
        (GENERATOR.random((blocks, blocks)) < 0.4) | numpy.eye(blocks, dtype=bool), numpy.ones((dim, dim))
    )
    return ((random_array(GENERATOR, kind, n, n) + 3 * n * numpy.eye(n)) * pattern).astype(kind)


def incomplete_lu(matrix: numpy.ndarray, dim: int) -> numpy.ndarray:
    """Eliminate with whole blocks, in the blocks that are there alone; both factors in one matrix."""
    a, n = wide(matrix).astype(complex), len(matrix) // dim
    parts = [[(slice(i * dim, i * dim + dim), slice(j * dim, j * dim + dim)) for j in range(n)] for i in range(n)]
    there = [[bool(a[parts[i][j]].any()) for j in range(n)] for i in range(n)]
    factors = a.copy()
    for i in range(n):
        for k in range(i):
            if there[i][k]:
                a[parts[i][k]] = a[parts[i][k]] @ numpy.linalg.inv(a[parts[k][k]])
                for j in range(k + 1, n):
                    if there[i][j] and there[k][j]:
                        a[parts[i][j]] -= a[parts[i][k]] @ a[parts[k][j]]
    for i in range(n):  # the blocks of the diagonal as triangles
        block = a[parts[i][i]].copy()
        for k in range(dim):
            for row in range(k + 1, dim):
                block[row, k] /= block[k, k]
                block[row, k + 1 :] -= block[row, k] * block[k, k + 1 :]
        lower = numpy.tril(block, -1) + numpy.eye(dim)
        factors[parts[i][i]] = block
        for j in range(i + 1, n):
            factors[parts[i][j]] = numpy.linalg.inv(lower) @ a[parts[i][j]]
            factors[parts[j][i]] = a[parts[j][i]] @ lower
    return factors


def incomplete_cholesky(matrix: numpy.ndarray, dim: int) -> numpy.ndarray:
    """The lower triangle's factor in the blocks that are there alone, above it the matrix as it was."""
    a = wide(matrix).astype(complex)
    there = numpy.kron(abs(a).reshape(len(a) // dim, dim, -1, dim).any(axis=(1, 3)), numpy.ones((dim, dim))) != 0
    for i in range(len(a)):
        for k in range(i + 1):
            if there[i, k]:
                rest = a[i, k] - sum(a[i, j] * a[k, j].conj() for j in range(k) if there[i, j] and there[k, j])
                a[i, k] = numpy.sqrt(rest) if i == k else rest / a[k, k]
    return a


FORMS = [(0, ROWS, 0), (0, ROWS, 1), (1, ROWS, 0), (2, ROWS, 1), (3, COLUMNS, 0)]


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("dim, direction, base", FORMS)
def test_incomplete_lu_is_that_of_whole_blocks(
    sparse: Sparse, letter: str, dim: int, direction: int, base: int
) -> None:
    matrix = dominant(TYPES[letter], 12, dim or 1)
    arrays = Matrix(sparse, matrix, dim, direction, base)
    arguments = arrays.arguments(described(sparse, base))
    steps = Steps(sparse, "bsrilu02" if dim else "csrilu02", letter)
    steps.prepare(*arguments)
    assert steps.pivot() is None
    steps.factorize(*arguments)
    assert steps.pivot() is None
    close(arrays.dense(), incomplete_lu(matrix, dim or 1))
    sparse.call(f"cusparseDestroy{steps.family.capitalize()}Info", steps.info)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("dim, direction, base", FORMS)
def test_incomplete_cholesky_is_written_below_the_diagonal(
    sparse: Sparse, letter: str, dim: int, direction: int, base: int
) -> None:
    half = dominant(TYPES[letter], 12, dim or 1)
    matrix = half + half.conj().T
    arrays = Matrix(sparse, matrix, dim, direction, base)
    arguments = arrays.arguments(described(sparse, base))
    steps = Steps(sparse, "bsric02" if dim else "csric02", letter)
    steps.prepare(*arguments)
    steps.factorize(*arguments)
    assert steps.pivot() is None
    close(arrays.dense(), incomplete_cholesky(matrix, dim or 1))
    sparse.call(f"cusparseDestroy{steps.family.capitalize()}Info", steps.info)


@pytest.mark.parametrize("family", ["csrilu02", "csric02", "bsrilu02", "bsric02"])
@pytest.mark.parametrize("base", [0, 1])
def test_the_first_zero_pivot_is_reported(sparse: Sparse, family: str, base: int) -> None:
    dim = 2 if family.startswith("bsr") else 0
    matrix = numpy.kron(numpy.diag([4.0, 3, 2, 1, 2]), numpy.eye(dim or 1))
    matrix[0, -1] = matrix[-1, 0] = 1
    rows = slice(2 * (dim or 1), 3 * (dim or 1))
    gone, zero = matrix.copy(), matrix.copy()
    gone[rows, rows] = 0  # nothing is stored in the third place of the diagonal
    arrays = Matrix(sparse, gone, dim, ROWS, base)
    steps = Steps(sparse, family, "D")
    arguments = arrays.arguments(described(sparse, base))
    assert steps.pivot() is None  # nothing was looked at yet
    steps.prepare(*arguments)
    assert steps.pivot() == 2 + base
    steps.factorize(*arguments)
    assert steps.pivot() == 2 + base
    arrays = Matrix(sparse, zero, dim, ROWS, base)
    arguments = arrays.arguments(described(sparse, base))
    steps.prepare(*arguments)
    assert steps.pivot() is None
    where = int(numpy.flatnonzero(arrays.places[0] == 3)[0]) * (dim or 1) ** 2
    arrays.values[where] = 0
    steps.factorize(*arguments)
    assert steps.pivot() == 3 + base
    position = sparse.device(numpy.zeros(1, numpy.int32))
    sparse.call("cusparseSetPointerMode", sparse.handle, 1)
    name = f"cusparseX{family}_zeroPivot"
    assert sparse.status(name, sparse.handle, steps.info, position) == ZERO_PIVOT and position[0] == 3 + base
    sparse.call("cusparseSetPointerMode", sparse.handle, 0)


def test_a_matrix_that_is_not_positive_has_a_zero_pivot_for_cholesky(sparse: Sparse) -> None:
    arrays = Matrix(sparse, numpy.array([[4.0, 2], [2, -1]]))
    arguments = arrays.arguments(described(sparse))
    steps = Steps(sparse, "csric02", "D")
    steps.prepare(*arguments)
    steps.factorize(*arguments)
    assert steps.pivot() == 1


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("on_device", [False, True])
def test_a_small_pivot_is_replaced_where_that_is_asked_for(sparse: Sparse, letter: str, on_device: bool) -> None:
    kind = TYPES[letter]
    matrix = numpy.array([[2, 4, 0], [1, 2, 1], [0, 3, 5]], kind)  # the second pivot is 0
    tolerance, value = numpy.array([1e-3]), scalar(kind, 0.5 + 0.25j)
    if on_device:
        tolerance, value = sparse.device(tolerance), sparse.device(value)
    arrays = Matrix(sparse, matrix)
    arguments = arrays.arguments(described(sparse))
    steps = Steps(sparse, "csrilu02", letter)
    steps.prepare(*arguments)
    sparse.call("cusparseSetPointerMode", sparse.handle, int(on_device))
    assert steps.status("_numericBoost", steps.info, 1, tolerance, value) == 0
    steps.factorize(*arguments)
    sparse.call("cusparseSetPointerMode", sparse.handle, 0)
    assert steps.pivot() is None
    expected = numpy.array([[2, 4, 0], [0.5, value[0], 1], [0, 3 / value[0], 5 - 3 / value[0]]])
    close(arrays.dense(), expected)
    arrays = Matrix(sparse, matrix)
    arguments = arrays.arguments(described(sparse))
    assert steps.status("_numericBoost", steps.info, 0, None, None) == 0
    steps.factorize(*arguments)
    assert steps.pivot() == 1


@pytest.mark.parametrize("family", ["csrilu02", "csric02", "bsrilu02", "bsric02"])
def test_factorizations_ask_for_an_analysis_and_an_aligned_buffer(sparse: Sparse, family: str) -> None:
    dim = 2 if family.startswith("bsr") else 0
    arrays = Matrix(sparse, 3 * numpy.eye(4), dim)
    arguments = arrays.arguments(described(sparse))
    steps = Steps(sparse, family, "D")
    assert steps.status("", *arguments, steps.info, NO_LEVEL, steps.room) == INVALID
    assert steps.status("_analysis", *arguments, steps.info, NO_LEVEL, steps.room[8:]) == INVALID
    steps.prepare(*arguments, policy=NO_LEVEL)
    assert steps.status("", *arguments, steps.info, USE_LEVEL, steps.room) == INVALID
    assert steps.status("", *arguments, steps.info, NO_LEVEL, steps.room[8:]) == INVALID
    assert steps.status("", *arguments, steps.info, NO_LEVEL, steps.room) == 0
    symmetric = described(sparse)
    sparse.call("cusparseSetMatType", symmetric, 1)
    assert steps.status("", *arrays.arguments(symmetric), steps.info, NO_LEVEL, steps.room) == TYPE_NOT_SUPPORTED


def blocky(kind: Any, rows: int, columns: int, dim: int) -> numpy.ndarray:
    keep = GENERATOR.random((rows, columns)) < 0.6
    return random_array(GENERATOR, kind, rows * dim, columns * dim) * numpy.kron(keep, numpy.ones((dim, dim))).astype(
        kind
    )


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("dim, direction, base", FORMS[2:])
def test_products_of_matrices_in_blocks(sparse: Sparse, letter: str, dim: int, direction: int, base: int) -> None:
    kind = TYPES[letter]
    matrix = blocky(kind, 4, 3, dim)
    arrays = Matrix(sparse, matrix, dim, direction, base)
    description = described(sparse, base)
    alpha, beta = scalar(kind, 1.5 + 1j), scalar(kind, -0.5 + 0.25j)
    x, y = (sparse.device(random_array(GENERATOR, kind, size)) for size in matrix.shape[::-1])
    expected = alpha[0] * wide(matrix) @ wide(x) + beta[0] * wide(y)
    parts = description, arrays.values, arrays.offsets, arrays.inner, dim
    sparse.run(letter + "bsrmv", direction, 0, 4, 3, arrays.nnz, alpha, *parts, x, beta, y)
    close(y, expected)
    y[:] = numpy.nan  # beta 0 must not read it
    sparse.run(letter + "bsrmv", direction, 0, 4, 3, arrays.nnz, alpha, *parts, x, scalar(kind, 0), y)
    close(y, alpha[0] * wide(matrix) @ wide(x))
    name = f"cusparse{letter}bsrmv"
    arguments = direction, 1, 4, 3, arrays.nnz, alpha, *parts, x, beta, y
    assert sparse.status(name, sparse.handle, *arguments) == NOT_SUPPORTED
    for op in (0, 1):
        b = sparse.device(random_array(GENERATOR, kind, *((3 * dim, 5) if op == 0 else (5, 3 * dim))))
        c = sparse.device(random_array(GENERATOR, kind, 4 * dim, 5))
        expected = alpha[0] * wide(matrix) @ operation(op, wide(b)) + beta[0] * wide(c)
        sizes = 4, 5, 3, arrays.nnz
        sparse.run(letter + "bsrmm", direction, 0, op, *sizes, alpha, *parts, b, len(b), beta, c, 4 * dim)
        close(c, expected)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("dim, direction, base", FORMS[3:])
@pytest.mark.parametrize("fill, unit, op", itertools.product([0, 1], [0, 1], [0, 1, 2]))
def test_triangular_solves_in_blocks(
    sparse: Sparse, letter: str, dim: int, direction: int, base: int, fill: int, unit: int, op: int
) -> None:
    kind, n = TYPES[letter], 12
    full = dominant(kind, n, dim)
    full /= kind(n)
    triangle = wide(numpy.triu(full) if fill else numpy.tril(full))
    if unit:
        numpy.fill_diagonal(triangle, 1)
    arrays = Matrix(sparse, full, dim, direction, base)
    head, (*middle, _dim) = (direction, op), arrays.arguments(described(sparse, base, fill, unit))[1:]
    rows, nnz, *parts = middle
    alpha = scalar(kind, 0.5 + 1j)
    steps = Steps(sparse, "bsrsv2", letter)
    steps.prepare(*head, rows, nnz, *parts, dim)
    f, x = sparse.device(random_array(GENERATOR, kind, n)), sparse.device(numpy.zeros(n, kind))
    tail = steps.info, f, x, USE_LEVEL, steps.room
    assert steps.status("_solve", *head, rows, nnz, alpha, *parts, dim, *tail) == 0
    assert steps.pivot() is None
    close((operation(op, triangle) @ wide(x)).astype(kind), alpha[0] * wide(f), 1e3)
    steps = Steps(sparse, "bsrsm2", letter)
    for turned in (0, 1):
        sizes = (n, 3) if turned == 0 else (3, n)
        b, c = sparse.device(random_array(GENERATOR, kind, *sizes)), sparse.device(numpy.zeros(sizes, kind))
        steps.prepare(*head, turned, rows, 3, nnz, *parts, dim)
        tail = steps.info, b, len(b), c, len(c), USE_LEVEL, steps.room
        assert steps.status("_solve", *head, turned, rows, 3, nnz, alpha, *parts, dim, *tail) == 0
        found, right = (each if turned == 0 else each.T for each in (wide(c), wide(b)))
        close((operation(op, triangle) @ found).astype(kind), alpha[0] * right, 1e3)


def test_an_ilu_preconditioner_shortens_conjugate_gradients(sparse: Sparse) -> None:
    side = 12
    line = scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (side, side))
    laplacian = scipy.sparse.kronsum(line, line).toarray()
    n = side * side
    factors = Matrix(sparse, laplacian)
    steps = Steps(sparse, "csrilu02", "D")
    arguments = factors.arguments(described(sparse))
    steps.prepare(*arguments)
    steps.factorize(*arguments)
    triangles = []
    for fill, unit in ((0, 1), (1, 0)):
        head = ctypes.c_int64(n), ctypes.c_int64(n), ctypes.c_int64(factors.nnz)
        triangle = sparse.made("Csr", *head, factors.offsets, factors.inner, factors.values, 2, 2, 0, 1)
        for attribute, value in ((0, fill), (1, unit)):
            word = ctypes.c_int(value)
            sparse.call("cusparseSpMatSetAttribute", triangle, attribute, ctypes.byref(word), ctypes.c_size_t(4))
        plan = ctypes.c_void_p()
        sparse.call("cusparseSpSV_createDescr", ctypes.byref(plan))
        triangles.append((triangle, plan))
    one = numpy.ones(1)
    residual, between, result = (sparse.device(numpy.zeros(n)) for _ in range(3))
    R, T, Z = (sparse.vector(each) for each in (residual, between, result))

    def precondition(vector: numpy.ndarray) -> numpy.ndarray:
        residual[:] = vector
        for (triangle, plan), source, target in zip(triangles, (R, T), (T, Z)):
            call = 0, one, triangle, source, target, 1, 0, plan
            sparse.run("SpSV_analysis", *call, sparse.room)
            sparse.run("SpSV_solve", *call)
        return result.copy()

    right = GENERATOR.standard_normal(n)
    counts = []
    for inverse in (numpy.copy, precondition):
        x, r = numpy.zeros(n), right.copy()
        z = inverse(r)
        p, rho, count = z.copy(), r @ z, 0
        while numpy.linalg.norm(r) > 1e-10 and count < 200:
            q = laplacian @ p
            step = rho / (p @ q)
            x, r = x + step * p, r - step * q
            z = inverse(r)
            rho, before = r @ z, rho
            p, count = z + rho / before * p, count + 1
        counts.append(count)
        close(laplacian @ x, right, 1e7)
    assert counts[1] < 0.7 * counts[0]


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("direction", [ROWS, COLUMNS])
@pytest.mark.parametrize(("m", "n", "dim", "bases"), [(6, 8, 2, (0, 1)), (7, 5, 3, (1, 0)), (4, 4, 1, (0, 0))])
def test_rows_become_blocks_and_blocks_rows(
    sparse: Sparse, letter: str, direction: int, m: int, n: int, dim: int, bases: Tuple[int, int]
) -> None:
    dense = random_array(GENERATOR, TYPES[letter], m, n) * (GENERATOR.random((m, n)) < 0.3)
    dense = dense.astype(TYPES[letter])
    csr = scipy.sparse.csr_matrix(dense)
    plain, blocked = (described(sparse, base) for base in bases)
    offsets, columns = (sparse.device((each + bases[0]).astype(numpy.int32)) for each in (csr.indptr, csr.indices))
    rows, across = -(-m // dim), -(-n // dim)
    padded = numpy.zeros((rows * dim, across * dim), dense.dtype)
    padded[:m, :n] = dense
    wanted = Matrix(sparse, padded, dim, direction, bases[1])
    block_offsets, count = sparse.device(numpy.zeros(rows + 1, numpy.int32)), ctypes.c_int(-1)
    head = (direction, m, n, plain)
    sparse.run("Xcsr2bsrNnz", *head, offsets, columns, dim, blocked, block_offsets, ctypes.byref(count))
    assert count.value == wanted.nnz and (block_offsets == wanted.offsets).all()
    values = sparse.device(numpy.full(max(count.value * dim * dim, 1), numpy.nan, dense.dtype))
    inner = sparse.device(numpy.zeros(max(count.value, 1), numpy.int32))
    data = sparse.device(csr.data.astype(dense.dtype))
    sparse.run(f"{letter}csr2bsr", *head, data, offsets, columns, dim, blocked, values, block_offsets, inner)
    assert (inner[: count.value] == wanted.inner).all() and (values[: len(wanted.values)] == wanted.values).all()
    back = [sparse.device(numpy.zeros(wanted.nnz * dim * dim, kind)) for kind in (dense.dtype, numpy.int32)]
    back_offsets = sparse.device(numpy.zeros(rows * dim + 1, numpy.int32))
    tail = (dim, plain, back[0], back_offsets, back[1])
    sparse.run(f"{letter}bsr2csr", direction, rows, across, blocked, values, block_offsets, inner, *tail)
    arrays = (back[0], back[1] - bases[0], back_offsets - bases[0])
    assert (scipy.sparse.csr_matrix(arrays, shape=padded.shape).toarray() == padded).all()
    assert all((numpy.diff(row) > 0).all() for row in numpy.split(back[1], back_offsets[1:-1] - bases[0]))


@pytest.mark.parametrize("letter", "SDCZ")
def test_elements_are_counted_and_a_sparse_vector_multiplied(sparse: Sparse, letter: str) -> None:
    kind, m, n = TYPES[letter], 5, 7
    dense = (random_array(GENERATOR, kind, m, n) * (GENERATOR.random((m, n)) < 0.4)).astype(kind)
    stored = numpy.zeros((m + 2, n), kind)
    stored[:m] = dense
    a, total = sparse.device(stored), ctypes.c_int(-1)
    for direction, axis in ((ROWS, 1), (COLUMNS, 0)):
        counts = sparse.device(numpy.full(n, -1, numpy.int32))
        sparse.run(f"{letter}nnz", direction, m, n, described(sparse), a, m + 2, counts, ctypes.byref(total))
        expected = (dense != 0).sum(axis=axis)
        assert (counts[: len(expected)] == expected).all() and total.value == expected.sum()
    alpha, beta = random_array(GENERATOR, kind, 1), random_array(GENERATOR, kind, 1)
    for op in (0, 1, 2) if letter in "CZ" else (0, 1):
        matrix = operation(op, wide(dense))
        size, bytes_ = matrix.shape[1], ctypes.c_int()
        indices = GENERATOR.permutation(size)[:3]
        x, y = random_array(GENERATOR, kind, 3), random_array(GENERATOR, kind, matrix.shape[0])
        spread = numpy.zeros(size, wide(x).dtype)
        spread[indices] = x
        result = sparse.device(y.copy())
        sparse.run(f"{letter}gemvi_bufferSize", op, m, n, 3, ctypes.byref(bytes_))
        room = sparse.device(numpy.zeros(bytes_.value, numpy.uint8))
        tail = (sparse.device(x), sparse.device((indices + 1).astype(numpy.int32)), sparse.keep(beta), result, 1, room)
        sparse.run(f"{letter}gemvi", op, m, n, sparse.keep(alpha), a, m + 2, 3, *tail)
        close(result, wide(alpha) * (matrix @ spread) + wide(beta) * wide(y))
