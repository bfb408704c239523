"""cuSPARSE computes as scipy does: formats, operations, batches, orders, conversions."""

import ctypes
import itertools
import pathlib
from typing import Any, Iterator, Optional

import numpy
import pytest
import scipy.sparse
from cusparse_calls import CODES, COLUMN, GENERATOR, INVALID, NOT_SUPPORTED, ROW, Sparse, long, random_sparse, scalar
from library_calls import TYPES, close, operation, random_array, wide


@pytest.fixture(scope="module")
def sparse(sdk: pathlib.Path) -> Iterator[Sparse]:
    yield Sparse(sdk)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize(
    "format_, index, base", [("Csr", "i4", 0), ("Csr", "i8", 1), ("Coo", "i4", 1), ("Csc", "i4", 0)]
)
@pytest.mark.parametrize("op", [0, 1, 2])
def test_sparse_matrix_times_vector(sparse: Sparse, letter: str, format_: str, index: str, base: int, op: int) -> None:
    kind = TYPES[letter]
    matrix = random_sparse(kind, 7, 5)
    rows, columns = (7, 5) if op == 0 else (5, 7)
    x, y = (sparse.device(random_array(GENERATOR, kind, size)) for size in (columns, rows))
    alpha, beta = scalar(kind, 1.5 + 1j), scalar(kind, -0.5 + 0.25j)
    expected = alpha[0] * operation(op, wide(matrix)) @ wide(x) + beta[0] * wide(y)
    A, X, Y = sparse.matrix(matrix, format_, index, base), sparse.vector(x), sparse.vector(y)
    arguments = op, alpha, A, X, beta, Y, CODES[numpy.dtype(kind)], 0
    sparse.run("SpMV", *arguments, sparse.buffer("SpMV", *arguments))
    close(y, expected)
    zero = scalar(kind, 0)
    y[:] = numpy.nan  # beta 0 must not read it
    sparse.run("SpMV", op, alpha, A, X, zero, Y, CODES[numpy.dtype(kind)], 0, sparse.room)
    close(y, alpha[0] * operation(op, wide(matrix)) @ wide(x))


@pytest.mark.parametrize("letter", "SZ")
@pytest.mark.parametrize("opa, opb", itertools.product([0, 1, 2], repeat=2))
@pytest.mark.parametrize("order_b, order_c", itertools.product([COLUMN, ROW], repeat=2))
def test_sparse_matrix_times_dense(sparse: Sparse, letter: str, opa: int, opb: int, order_b: int, order_c: int) -> None:
    kind, m, n, k = TYPES[letter], 6, 4, 5
    matrix = random_sparse(kind, *((m, k) if opa == 0 else (k, m)))
    b = random_array(GENERATOR, kind, *((k, n) if opb == 0 else (n, k)))
    c = random_array(GENERATOR, kind, m, n)
    B, C = (sparse.device(each if order == COLUMN else each.T) for each, order in ((b, order_b), (c, order_c)))
    alpha, beta = scalar(kind, 1.5 + 1j), scalar(kind, -0.5 + 0.25j)
    arguments = opa, opb, alpha, sparse.matrix(matrix), sparse.dense(B, order_b), beta, sparse.dense(C, order_c)
    arguments += CODES[numpy.dtype(kind)], 0
    sparse.run("SpMM", *arguments, sparse.buffer("SpMM", *arguments))
    expected = alpha[0] * operation(opa, wide(matrix)) @ operation(opb, wide(b)) + beta[0] * wide(c)
    close(C if order_c == COLUMN else C.T, expected)


def test_batches_of_sparse_and_dense(sparse: Sparse) -> None:
    m, n, k, batch = 4, 3, 5, 3
    one, zero = scalar(float, 1), scalar(float, 0)
    pattern = random_sparse(numpy.float64, m, k) != 0
    matrices = [pattern * GENERATOR.standard_normal((m, k)) for _ in range(batch)]
    pressed = [scipy.sparse.csr_matrix(each) for each in matrices]
    offsets = sparse.keep(numpy.concatenate([each.indptr for each in pressed]).astype(numpy.int32))
    columns = sparse.keep(numpy.concatenate([each.indices for each in pressed]).astype(numpy.int32))
    values = sparse.keep(numpy.concatenate([each.data for each in pressed]))
    nnz = pressed[0].nnz
    A = sparse.made("Csr", long(m), long(k), long(nnz), offsets, columns, values, 2, 2, 0, 1)
    sparse.call("cusparseCsrSetStridedBatch", A, batch, long(m + 1), long(nnz))
    b, c = sparse.device(GENERATOR.standard_normal((k, n, batch))), sparse.device(numpy.zeros((m, n, batch)))
    B, C = (sparse.made("DnMat", long(e.shape[0]), long(n), long(e.shape[0]), e, 1, COLUMN) for e in (b, c))
    for descriptor, array in ((B, b), (C, c)):
        sparse.call("cusparseDnMatSetStridedBatch", descriptor, batch, long(array.shape[0] * n))
    sparse.run("SpMM", 0, 0, one, A, B, zero, C, 1, 0, sparse.room)
    for i in range(batch):
        close(c[..., i], matrices[i] @ b[..., i])


def test_narrow_values_are_computed_in_float(sparse: Sparse) -> None:
    matrix = random_sparse(numpy.float32, 6, 5).astype(numpy.float16)
    x, y = sparse.device(random_array(GENERATOR, numpy.float16, 5)), sparse.device(numpy.zeros(6, numpy.float32))
    one, zero = scalar(numpy.float32, 1), scalar(numpy.float32, 0)
    A = sparse.matrix(matrix)
    sparse.run("SpMV", 0, one, A, sparse.vector(x), zero, sparse.vector(y), 0, 0, sparse.room)
    close(y, matrix.astype(float) @ x.astype(float))
    matrix = GENERATOR.integers(-128, 128, (5, 4)).astype(numpy.int8)
    x, y = (
        sparse.device(GENERATOR.integers(-128, 128, 4).astype(numpy.int8)),
        sparse.device(numpy.zeros(5, numpy.int32)),
    )
    one, zero = scalar(numpy.int32, 1), scalar(numpy.int32, 0)
    A = sparse.matrix(matrix)
    sparse.run("SpMV", 0, one, A, sparse.vector(x), zero, sparse.vector(y), 10, 0, sparse.room)
    assert (y == matrix.astype(int) @ x.astype(int)).all()


@pytest.mark.parametrize("letter", "SDCZ")
def test_sparse_times_sparse(sparse: Sparse, letter: str) -> None:
    kind, m, n, k = TYPES[letter], 6, 7, 5
    a, b = random_sparse(kind, m, k), random_sparse(kind, k, n)
    code = CODES[numpy.dtype(kind)]
    alpha, beta = scalar(kind, 1.5 + 1j), scalar(kind, 0)
    offsets = sparse.device(numpy.zeros(m + 1, numpy.int32))
    C = sparse.made("Csr", long(m), long(n), long(0), offsets, None, None, 2, 2, 0, code)
    plan = ctypes.c_void_p()
    sparse.call("cusparseSpGEMM_createDescr", ctypes.byref(plan))
    common = 0, 0, alpha, sparse.matrix(a, base=1), sparse.matrix(b), beta, C, code, 0, plan
    size = ctypes.c_size_t()
    for name in ("workEstimation", "compute"):
        sparse.run("SpGEMM_" + name, *common, ctypes.byref(size), None)
        sparse.run("SpGEMM_" + name, *common, ctypes.byref(size), sparse.keep(numpy.zeros(size.value, numpy.uint8)))
    rows, columns, nnz = (ctypes.c_int64() for _ in range(3))
    sparse.call("cusparseSpMatGetSize", C, ctypes.byref(rows), ctypes.byref(columns), ctypes.byref(nnz))
    expected = scipy.sparse.csr_matrix(a) @ scipy.sparse.csr_matrix(b)
    expected.sort_indices()
    assert (rows.value, columns.value, nnz.value) == (m, n, expected.nnz)
    indices = sparse.device(numpy.zeros(nnz.value, numpy.int32))
    values = sparse.device(numpy.zeros(nnz.value, kind))
    sparse.call("cusparseCsrSetPointers", C, offsets, indices, values)
    sparse.run("SpGEMM_copy", *common)
    assert (offsets == expected.indptr).all() and (indices == expected.indices).all()
    product = alpha[0] * wide(a) @ wide(b)
    close(values, product[expected.nonzero()] if expected.nnz else values)
    sparse.call("cusparseSpGEMM_destroyDescr", plan)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("format_, opb, order", [("Csr", 0, COLUMN), ("Coo", 1, ROW), ("Csr", 2, ROW)])
def test_sampled_dense_product(sparse: Sparse, letter: str, format_: str, opb: int, order: int) -> None:
    kind, m, n, k = TYPES[letter], 5, 6, 4
    pattern = random_sparse(kind, m, n)
    a, b = random_array(GENERATOR, kind, m, k), random_array(GENERATOR, kind, *((k, n) if opb == 0 else (n, k)))
    A, B = (sparse.device(each if order == COLUMN else each.T) for each in (a, b))
    C = sparse.matrix(pattern, format_)
    alpha, beta = scalar(kind, 1.5 + 1j), scalar(kind, 0.5)
    arguments = 0, opb, alpha, sparse.dense(A, order), sparse.dense(B, order), beta, C, CODES[numpy.dtype(kind)], 0
    sparse.run("SDDMM", *arguments, sparse.buffer("SDDMM", *arguments))
    out = sparse.device(numpy.zeros((m, n), kind))
    sparse.run("SparseToDense", C, sparse.dense(out), 0, sparse.room)
    expected = (alpha[0] * wide(a) @ operation(opb, wide(b)) + 0.5 * wide(pattern)) * (pattern != 0)
    close(out, expected)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("lower, unit, op", itertools.product([0, 1], [0, 1], [0, 1, 2]))
def test_triangular_solves(sparse: Sparse, letter: str, lower: int, unit: int, op: int) -> None:
    kind, n = TYPES[letter], 6
    code = CODES[numpy.dtype(kind)]
    full = random_sparse(kind, n, n) + 4 * numpy.eye(n, dtype=kind)  # the other triangle must not count
    triangle = numpy.tril(wide(full)) if lower else numpy.triu(wide(full))
    if unit:
        numpy.fill_diagonal(triangle, 1)
    A = sparse.matrix(full)
    for attribute, value in ((0, 0 if lower else 1), (1, unit)):
        word = ctypes.c_int(value)
        sparse.call("cusparseSpMatSetAttribute", A, attribute, ctypes.byref(word), ctypes.c_size_t(4))
    alpha = scalar(kind, 0.5 + 1j)
    x, y = sparse.device(random_array(GENERATOR, kind, n)), sparse.device(numpy.zeros(n, kind))
    plan = ctypes.c_void_p()
    sparse.call("cusparseSpSV_createDescr", ctypes.byref(plan))
    arguments = op, alpha, A, sparse.vector(x), sparse.vector(y), code, 0, plan
    assert sparse.status("cusparseSpSV_solve", sparse.handle, *arguments) == INVALID  # not analysed
    sparse.run("SpSV_analysis", *arguments, sparse.buffer("SpSV", *arguments))
    sparse.run("SpSV_solve", *arguments)
    close((operation(op, triangle) @ wide(y)).astype(kind), alpha[0] * wide(x), 1e3)
    b, c = sparse.device(random_array(GENERATOR, kind, 3, n)), sparse.device(numpy.zeros((n, 3), kind))
    sparse.call("cusparseSpSM_createDescr", ctypes.byref(plan))
    arguments = op, 1, alpha, A, sparse.dense(b), sparse.dense(c), code, 0, plan
    sparse.run("SpSM_analysis", *arguments, sparse.room)
    sparse.run("SpSM_solve", *arguments)
    close((operation(op, triangle) @ wide(c)).astype(kind), alpha[0] * wide(b).T, 1e3)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("solver, op", [("SpSV", 0), ("SpSV", 2), ("SpSM", 0), ("SpSM", 1)])
def test_an_analysed_triangle_takes_new_values(sparse: Sparse, letter: str, solver: str, op: int) -> None:
    kind, n = TYPES[letter], 6
    code = CODES[numpy.dtype(kind)]
    full = random_sparse(kind, n, n) + 4 * numpy.eye(n, dtype=kind)
    A, alpha, plan = sparse.matrix(full), scalar(kind, 1), ctypes.c_void_p()
    sparse.call(f"cusparse{solver}_createDescr", ctypes.byref(plan))
    if solver == "SpSV":
        x, y = sparse.device(random_array(GENERATOR, kind, n)), sparse.device(numpy.zeros(n, kind))
        arguments = op, alpha, A, sparse.vector(x), sparse.vector(y), code, 0, plan
    else:
        x, y = sparse.device(random_array(GENERATOR, kind, 3, n)), sparse.device(numpy.zeros((n, 3), kind))
        arguments = op, 1, alpha, A, sparse.dense(x), sparse.dense(y), code, 0, plan
    assert sparse.status(f"cusparse{solver}_updateMatrix", sparse.handle, plan, x.ctypes.data, 0) == INVALID

    def solves(triangle: numpy.ndarray) -> None:
        sparse.run(f"{solver}_solve", *arguments)
        close((operation(op, triangle) @ wide(y)).astype(kind), wide(x).T, 1e3)

    sparse.run(f"{solver}_analysis", *arguments, sparse.room)
    solves(numpy.tril(wide(full)))
    other = full * numpy.asarray(1.5 if letter in "SD" else 1 + 0.5j, kind) + 2 * numpy.eye(n, dtype=kind)
    values = sparse.device(other[full != 0])
    sparse.run(f"{solver}_updateMatrix", plan, values.ctypes.data, 0)
    values[:] = 0  # they have been copied
    solves(numpy.tril(wide(other)))
    diagonal = sparse.device((random_array(GENERATOR, kind, n) + 8).astype(kind))
    sparse.run(f"{solver}_updateMatrix", plan, diagonal.ctypes.data, 1)
    solves(numpy.tril(wide(other), -1) + numpy.diag(wide(diagonal)))
    sparse.run(f"{solver}_updateMatrix", plan, sparse.device(full[full != 0]).ctypes.data, 0)
    solves(numpy.tril(wide(full)))
    sparse.run(f"{solver}_updateMatrix", plan, diagonal.ctypes.data, 1)
    sparse.run(f"{solver}_analysis", *arguments, sparse.room)  # begins anew
    solves(numpy.tril(wide(full)))


@pytest.mark.parametrize("format_", ["Csr", "Csc", "Coo"])
def test_dense_to_sparse_and_back(sparse: Sparse, format_: str) -> None:
    dense = sparse.device(random_sparse(numpy.float64, 6, 5))
    lines = {"Csr": 7, "Csc": 6, "Coo": 0}[format_]
    outer = sparse.device(numpy.zeros(lines or 30, numpy.int64))
    head = long(6), long(5), long(0), outer, None, None
    types: Any = (3, 3, 1, 1) if lines else (3, 1, 1)
    B = sparse.made(format_, *head, *types)
    A = sparse.dense(dense)
    sparse.run("DenseToSparse_analysis", A, B, 0, sparse.buffer("DenseToSparse", A, B, 0))
    sizes = [ctypes.c_int64() for _ in range(3)]
    sparse.call("cusparseSpMatGetSize", B, *(ctypes.byref(each) for each in sizes))
    nnz = numpy.count_nonzero(dense)
    assert sizes[2].value == nnz
    inner, values = sparse.device(numpy.zeros(nnz, numpy.int64)), sparse.device(numpy.zeros(nnz))
    sparse.call(f"cusparse{format_}SetPointers", B, outer, inner, values)
    sparse.run("DenseToSparse_convert", A, B, 0, sparse.room)
    if format_ != "Coo":
        pressed = getattr(scipy.sparse, format_.lower() + "_matrix")(dense)
        assert (outer - 1 == pressed.indptr).all() and (inner - 1 == pressed.indices).all()
    out = sparse.device(numpy.full((5, 6), numpy.nan))
    sparse.run("SparseToDense", B, sparse.dense(out, ROW), 0, sparse.room)
    assert (dense == out.T).all()


def test_sparse_vectors(sparse: Sparse) -> None:
    n = 9
    y = sparse.device(random_array(GENERATOR, numpy.complex128, n))
    indices, values = (
        sparse.device(numpy.array([2, 5, 9], numpy.int32)),
        sparse.device(random_array(GENERATOR, complex, 3)),
    )
    X, Y = sparse.made("SpVec", long(n), long(3), indices, values, 2, 1, 5), sparse.vector(y)
    spread = numpy.zeros(n, complex)
    spread[indices - 1] = values
    result = numpy.zeros(1, complex)
    sparse.run("SpVV", 2, X, Y, result, 5, sparse.room)
    close(result, (spread.conj() * y).sum())
    expected = (2 + 1j) * spread + 3 * y
    sparse.run("Axpby", scalar(complex, 2 + 1j), X, scalar(complex, 3), Y)
    close(y, expected)
    sparse.run("Gather", Y, X)
    assert (values == y[indices - 1]).all()
    before, kept = y.copy(), values.copy()
    sparse.run("Rot", scalar(complex, 0.6), scalar(complex, 0.8), X, Y)
    close(values, 0.6 * kept + 0.8 * before[indices - 1])
    close(y[indices - 1], 0.6 * before[indices - 1] - 0.8 * kept)
    assert (numpy.delete(y, indices - 1) == numpy.delete(before, indices - 1)).all()
    y[:] = 0
    sparse.run("Scatter", X, Y)
    close(y[indices - 1], values)
    assert numpy.count_nonzero(y) == 3


def test_coordinates_are_sorted_and_compressed(sparse: Sparse) -> None:
    m, n = 5, 6
    coo = scipy.sparse.coo_matrix(random_sparse(numpy.float64, m, n))
    order = GENERATOR.permutation(coo.nnz)
    rows, columns = (sparse.device(each[order].astype(numpy.int32)) for each in (coo.row, coo.col))
    permutation = sparse.device(numpy.zeros(coo.nnz, numpy.int32))
    sparse.run("CreateIdentityPermutation", coo.nnz, permutation)
    sparse.run("XcoosortByRow", m, n, coo.nnz, rows, columns, permutation, sparse.room)
    csr = coo.tocsr()
    assert (columns == csr.indices).all()
    assert (coo.data[order][permutation] == csr.data).all()
    offsets = sparse.device(numpy.zeros(m + 1, numpy.int32))
    sparse.run("Xcoo2csr", rows, coo.nnz, m, offsets, 0)
    assert (offsets == csr.indptr).all()
    again = sparse.device(numpy.zeros(coo.nnz, numpy.int32))
    sparse.run("Xcsr2coo", offsets, coo.nnz, m, again, 0)
    assert (again == rows).all()
    values, out = sparse.device(csr.data), sparse.device(numpy.zeros(coo.nnz))
    column_offsets = sparse.device(numpy.zeros(n + 1, numpy.int32))
    arguments = m, n, coo.nnz, values, offsets, columns, out, column_offsets, again, 1, 1, 0, 1
    sparse.run("Csr2cscEx2", *arguments, sparse.buffer("Csr2cscEx2", *arguments))
    csc = coo.tocsc()
    assert (column_offsets == csc.indptr).all() and (again == csc.indices).all() and (out == csc.data).all()


def test_rows_within_columns_are_sorted(sparse: Sparse) -> None:
    m, n = 5, 6
    csc = scipy.sparse.csc_matrix(random_sparse(numpy.float64, m, n))
    orders = [begin + GENERATOR.permutation(end - begin) for begin, end in zip(csc.indptr, csc.indptr[1:])]
    order = numpy.concatenate(orders)
    offsets, rows = (sparse.device(each.astype(numpy.int32)) for each in (csc.indptr + 1, csc.indices[order] + 1))
    description = ctypes.c_void_p()
    sparse.call("cusparseCreateMatDescr", ctypes.byref(description))
    sparse.call("cusparseSetMatIndexBase", description, 1)
    size = ctypes.c_size_t()
    sparse.run("Xcscsort_bufferSizeExt", m, n, csc.nnz, offsets, rows, ctypes.byref(size))
    permutation = sparse.device(numpy.arange(csc.nnz, dtype=numpy.int32))
    room = sparse.device(numpy.zeros(size.value, numpy.uint8))
    sparse.run("Xcscsort", m, n, csc.nnz, description, offsets, rows, permutation, room)
    assert (rows == csc.indices + 1).all() and (order[permutation] == numpy.arange(csc.nnz)).all()


class SingleComplex(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_float)]


class DoubleComplex(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double), ("y", ctypes.c_double)]


TOLERANCES = {
    "S": ctypes.c_float(0.75),
    "D": ctypes.c_double(0.75),
    "C": SingleComplex(0.75, 9),
    "Z": DoubleComplex(0.75, 9),
}


@pytest.mark.parametrize("letter", "SDCZ")
def test_small_elements_are_left_out(sparse: Sparse, letter: str) -> None:
    m, n, kind = 17, 19, TYPES[letter]
    csr = scipy.sparse.csr_matrix(random_sparse(kind, m, n))
    csr.data[3] = numpy.nan
    kept = csr.copy()
    kept.data[abs(kept.data) <= 0.75] = 0
    kept.eliminate_zeros()
    assert 0 < kept.nnz < csr.nnz
    description = ctypes.c_void_p()
    sparse.call("cusparseCreateMatDescr", ctypes.byref(description))
    sparse.call("cusparseSetMatIndexBase", description, 1)
    values = sparse.device(csr.data.astype(kind))
    offsets, columns = (sparse.device((each + 1).astype(numpy.int32)) for each in (csr.indptr, csr.indices))
    counts, total = sparse.device(numpy.zeros(m, numpy.int32)), ctypes.c_int()
    tolerance = TOLERANCES[letter]
    sparse.run(f"{letter}nnz_compress", m, description, values, offsets, counts, ctypes.byref(total), tolerance)
    assert total.value == kept.nnz and (counts == numpy.diff(kept.indptr)).all()
    left = sparse.device(numpy.zeros(kept.nnz, kind))
    left_offsets, left_columns = (sparse.device(numpy.zeros(size, numpy.int32)) for size in (m + 1, kept.nnz))
    given = m, n, description, values, columns, offsets, csr.nnz, counts
    sparse.run(f"{letter}csr2csr_compress", *given, left, left_columns, left_offsets, tolerance)
    assert (left_offsets == kept.indptr + 1).all() and (left_columns == kept.indices + 1).all()
    assert numpy.array_equal(left, kept.data.astype(kind), equal_nan=True)


def test_what_a_sparse_vector_was_made_of(sparse: Sparse) -> None:
    indices = sparse.device(numpy.array([1, 3, 8], numpy.int32))
    values = sparse.device(numpy.ones(3))
    vector = sparse.made("SpVec", ctypes.c_int64(9), ctypes.c_int64(3), indices, values, 2, 1, 1)
    size, count = ctypes.c_int64(), ctypes.c_int64()
    places, numbers = ctypes.c_void_p(), ctypes.c_void_p()
    index, base, kind = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    sparse.call("cusparseSpVecGet", vector, *map(ctypes.byref, (size, count, places, numbers, index, base, kind)))
    assert (size.value, count.value, index.value, base.value, kind.value) == (9, 3, 2, 1, 1)
    assert (places.value, numbers.value) == (indices.ctypes.data, values.ctypes.data)
    sparse.call("cusparseSpVecGetIndexBase", vector, ctypes.byref(kind))
    assert kind.value == 1


@pytest.mark.parametrize("letter", "SDCZ")
def test_sums_of_sparse_matrices(sparse: Sparse, letter: str) -> None:
    kind, m, n = TYPES[letter], 5, 6
    a, b = (scipy.sparse.csr_matrix(random_sparse(kind, m, n)) for _ in range(2))
    general = ctypes.c_void_p()
    sparse.call("cusparseCreateMatDescr", ctypes.byref(general))
    sides = []
    for each in (a, b):
        arrays = each.data, each.indptr.astype(numpy.int32), each.indices.astype(numpy.int32)
        sides.append([general, each.nnz, *(sparse.keep(array) for array in arrays)])
    offsets, nnz = sparse.device(numpy.zeros(m + 1, numpy.int32)), ctypes.c_int()
    patterns = [side[:2] + side[3:] for side in sides]
    sparse.run("Xcsrgeam2Nnz", m, n, *patterns[0], *patterns[1], general, offsets, ctypes.byref(nnz), sparse.room)
    columns, values = sparse.device(numpy.zeros(nnz.value, numpy.int32)), sparse.device(numpy.zeros(nnz.value, kind))
    alpha, beta = scalar(kind, 2 + 1j), scalar(kind, -1)
    sparse.run(
        letter + "csrgeam2", m, n, alpha, *sides[0], beta, *sides[1], general, values, offsets, columns, sparse.room
    )
    found = scipy.sparse.csr_matrix((values, columns, offsets), (m, n)).toarray()
    close(found, alpha[0] * wide(a.toarray()) + beta[0] * wide(b.toarray()))


def test_what_cannot_be_done_says_so(sparse: Sparse) -> None:
    A = sparse.matrix(random_sparse(numpy.float32, 4, 4))
    x, y = sparse.vector(sparse.keep(numpy.zeros(5, numpy.float32))), sparse.vector(sparse.keep(numpy.zeros(4, "f8")))
    good = sparse.vector(sparse.keep(numpy.zeros(4, numpy.float32)))
    one = scalar(numpy.float32, 1)

    def product(op: int, left: Optional[Any], right: Any, out: Any) -> int:
        return sparse.status("cusparseSpMV", sparse.handle, op, one, left, right, one, out, 0, 0, sparse.room)

    assert product(0, A, x, good) == INVALID
    assert product(3, A, good, good) == INVALID
    assert product(0, None, good, good) == INVALID
    assert product(0, A, good, y) == NOT_SUPPORTED
    assert sparse.status("cusparseSpMV", None, 0, one, A, good, one, good, 0, 0, None) == 1
