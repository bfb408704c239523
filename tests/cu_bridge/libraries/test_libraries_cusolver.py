"""cuSOLVER factors and solves: each method's defining equation holds, in every type."""

import ctypes
import itertools
import pathlib
from typing import Iterator

import numpy
import pytest
from library_calls import TYPES, close, operation, random_array, wide
from solver_calls import CODES, GENERATOR, INVALID, LOWER, NOT_SUPPORTED, UPPER, Solver, hermitian, positive, real_of


@pytest.fixture(scope="module")
def solver(sdk: pathlib.Path) -> Iterator[Solver]:
    yield Solver(sdk)


@pytest.mark.parametrize("letter, uplo", itertools.product("SDCZ", [LOWER, UPPER]))
def test_cholesky(solver: Solver, letter: str, uplo: int) -> None:
    kind, n = TYPES[letter], 6
    matrix = positive(kind, n)
    A = solver.device(numpy.vstack([matrix, numpy.ones((2, n), kind)]))
    size = solver.sized(letter + "potrf", uplo, n, A, n + 2)
    solver.run(letter + "potrf", uplo, n, A, n + 2, solver.zeros(kind, size), size, solver.info)
    assert solver.info[0] == 0 and (A[n:] == 1).all()
    half = numpy.tril(wide(A[:n])) if uplo == LOWER else numpy.triu(wide(A[:n])).conj().T
    close((half @ half.conj().T).astype(kind), matrix)
    right = random_array(GENERATOR, kind, n, 3)
    B = solver.device(right)
    solver.run(letter + "potrs", uplo, n, 3, A, n + 2, B, n, solver.info)
    close((wide(matrix) @ wide(B)).astype(kind), right, 1e3)

    batch, rights = [solver.device(positive(kind, n)) for _ in range(3)], [solver.random(kind, n, 1) for _ in range(3)]
    before = [wide(each) for each in batch], [wide(each) for each in rights]
    solver.run(letter + "potrfBatched", uplo, n, solver.pointers(*batch), n, solver.info, 3)
    assert (solver.info[:3] == 0).all()
    solver.run(
        letter + "potrsBatched", uplo, n, 1, solver.pointers(*batch), n, solver.pointers(*rights), n, solver.info, 3
    )
    for matrix_, right_, solution in zip(*before, rights):
        close((matrix_ @ wide(solution)).astype(kind), right_, 1e3)
    inverse = A[:n].copy(order="F")
    inverse = solver.device(inverse)
    solver.run(letter + "potri", uplo, n, inverse, n, solver.work, 1, solver.info)
    half = numpy.tril(inverse) if uplo == LOWER else numpy.triu(inverse)
    full = half + half.conj().T - numpy.diag(numpy.diag(half).real)
    close((wide(matrix) @ wide(full)).astype(kind), numpy.eye(n), 1e4)
    bad = solver.device(-numpy.eye(n, dtype=kind))
    solver.run(letter + "potrf", uplo, n, bad, n, solver.work, 1, solver.info)
    assert solver.info[0] == 1  # not positive definite, from the first column on


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("m, n", [(6, 6), (7, 4), (4, 7)])
def test_lu(solver: Solver, letter: str, m: int, n: int) -> None:
    kind = TYPES[letter]
    matrix = random_array(GENERATOR, kind, m, n)
    A = solver.device(matrix)
    pivots = solver.zeros(numpy.int32, min(m, n))
    size = solver.sized(letter + "getrf", m, n, A, m)
    solver.run(letter + "getrf", m, n, A, m, solver.zeros(kind, size), pivots, solver.info)
    assert solver.info[0] == 0
    rows = list(range(m))
    for j, pivot in enumerate(pivots - 1):
        rows[j], rows[pivot] = rows[pivot], rows[j]
    rank = min(m, n)
    lower = numpy.tril(wide(A[:, :rank]), -1) + numpy.eye(m, rank)
    close((lower @ numpy.triu(wide(A[:rank]))).astype(kind), matrix[rows])
    if m != n:
        return
    for op in (0, 1, 2):
        right = random_array(GENERATOR, kind, n, 2)
        B = solver.device(right)
        solver.run(letter + "getrs", op, n, 2, A, n, pivots, B, n, solver.info)
        close((operation(op, wide(matrix)) @ wide(B)).astype(kind), right, 1e4)
    A = solver.device(matrix + 10 * numpy.eye(n, dtype=kind))
    before = wide(A)
    solver.run(letter + "getrf", n, n, A, n, solver.work, None, solver.info)
    lower = numpy.tril(wide(A), -1) + numpy.eye(n)
    close((lower @ numpy.triu(wide(A))).astype(kind), before)


@pytest.mark.parametrize("letter", "SDCZ")
def test_qr(solver: Solver, letter: str) -> None:
    kind, m, n = TYPES[letter], 8, 5
    name = "or" if letter in "SD" else "un"
    matrix = random_array(GENERATOR, kind, m, n)
    A, tau = solver.device(matrix), solver.zeros(kind, n)
    size = solver.sized(letter + "geqrf", m, n, A, m)
    solver.run(letter + "geqrf", m, n, A, m, tau, solver.zeros(kind, size), size, solver.info)
    factored = solver.device(A)
    upper = numpy.triu(wide(A[:n]))
    solver.sized(f"{letter}{name}gqr", m, n, n, A, m, tau)
    solver.run(f"{letter}{name}gqr", m, n, n, A, m, tau, solver.work, 1, solver.info)
    Q = wide(A)
    close((Q @ upper).astype(kind), matrix)
    close((Q.conj().T @ Q).astype(kind), numpy.eye(n))
    C = solver.random(kind, m, 3)
    before = wide(C)
    trans = 1 if letter in "SD" else 2
    solver.sized(f"{letter}{name}mqr", 0, trans, m, 3, n, factored, m, tau, C, m)
    solver.run(f"{letter}{name}mqr", 0, trans, m, 3, n, factored, m, tau, C, m, solver.work, 1, solver.info)
    close(C[:n].copy(), Q.conj().T @ before)
    D = solver.random(kind, 3, m)
    before = wide(D)
    solver.run(f"{letter}{name}mqr", 1, 0, 3, m, n, factored, m, tau, D, 3, solver.work, 1, solver.info)
    close(D[:, :n].copy(), before @ Q)
    if letter in "CZ":
        arguments = 0, 1, m, 3, n, factored, m, tau, C, m, solver.work, 1, solver.info
        assert solver.status(f"cusolverDn{letter}unmqr", solver.handle, *arguments) == INVALID


@pytest.mark.parametrize("letter", "SDCZ")
def test_singular_values(solver: Solver, letter: str) -> None:
    kind, m, n = TYPES[letter], 7, 4
    matrix = random_array(GENERATOR, kind, m, n)
    expected = numpy.linalg.svd(matrix.astype(complex))[1]
    for jobs in ("AA", "SS", "NN"):
        A, S = solver.device(matrix), solver.zeros(real_of(kind), n)
        U, VT = solver.zeros(kind, m, m), solver.zeros(kind, n, n)
        size = solver.sized(letter + "gesvd", m, n)
        codes = (ctypes.c_char(jobs[0].encode()), ctypes.c_char(jobs[1].encode()))
        solver.run(letter + "gesvd", *codes, m, n, A, m, S, U, m, VT, n, solver.work, size, None, solver.info)
        assert solver.info[0] == 0
        close(S, expected)
        if jobs != "NN":
            close((wide(U[:, :n]) * wide(S) @ wide(VT)).astype(kind), matrix)
        if jobs == "AA":
            close((wide(U).conj().T @ wide(U)).astype(kind), numpy.eye(m))
    parameters = ctypes.c_void_p()
    solver.call("cusolverDnCreateGesvdjInfo", ctypes.byref(parameters))
    for econ, (rows, columns) in itertools.product((0, 1), ((m, n), (n, m))):
        matrix = random_array(GENERATOR, kind, rows, columns)
        A, S = solver.device(matrix), solver.zeros(real_of(kind), n)
        U, V = solver.zeros(kind, rows, rows), solver.zeros(kind, columns, columns)
        size = ctypes.c_int()
        solver.run(
            letter + "gesvdj_bufferSize",
            *(1, econ, rows, columns, A, rows, S, U, rows, V, columns, ctypes.byref(size), parameters),
        )
        solver.run(
            letter + "gesvdj",
            *(1, econ, rows, columns, A, rows, S, U, rows, V, columns, solver.work, size, solver.info, parameters),
        )
        product = wide(U[:, :n]) * wide(S) @ wide(V[:, :n]).conj().T
        close(product.astype(kind), matrix)
        if not econ:
            close((wide(V).conj().T @ wide(V)).astype(kind), numpy.eye(columns))
    batch = 3
    matrices = random_array(GENERATOR, kind, m, n, batch)
    A, S = solver.device(matrices), solver.zeros(real_of(kind), n, batch)
    U, V = solver.zeros(kind, m, m, batch), solver.zeros(kind, n, n, batch)
    solver.run(letter + "gesvdjBatched", 1, m, n, A, m, S, U, m, V, n, solver.work, 1, solver.info, parameters, batch)
    for i in range(batch):
        product = wide(U[:, :n, i]) * wide(S[:, i]) @ wide(V[..., i]).conj().T
        close(product.astype(kind), matrices[..., i])
    rank, A = 2, solver.device(matrices)
    S, U, V = (
        solver.zeros(real_of(kind), rank, batch),
        solver.zeros(kind, m, rank, batch),
        solver.zeros(kind, n, rank, batch),
    )
    residuals = numpy.zeros(batch)
    strides = [ctypes.c_longlong(each) for each in (m * n, rank, m * rank, n * rank)]
    solver.run(
        letter + "gesvdaStridedBatched",
        *(1, rank, m, n, A, m, strides[0], S, strides[1], U, m, strides[2], V, n, strides[3]),
        *(solver.work, 1, solver.info, residuals, batch),
    )
    for i in range(batch):
        values = numpy.linalg.svd(matrices[..., i].astype(complex))[1]
        close(S[:, i].copy(), values[:rank])
        product = wide(U[..., i]) * wide(S[:, i]) @ wide(V[..., i]).conj().T
        missing = numpy.linalg.norm((matrices[..., i] - product).astype(complex))
        assert abs(missing - numpy.linalg.norm(values[rank:])) < 1e-4
        assert abs(residuals[i] - missing) < 1e-4


@pytest.mark.parametrize("letter, uplo", itertools.product("SDCZ", [LOWER, UPPER]))
def test_eigenvalues(solver: Solver, letter: str, uplo: int) -> None:
    kind, n = TYPES[letter], 6
    name = "sy" if letter in "SD" else "he"
    matrix = hermitian(kind, n)
    triangle = numpy.tril(matrix) if uplo == LOWER else numpy.triu(matrix)
    expected = numpy.linalg.eigvalsh(matrix.astype(complex))
    parameters = ctypes.c_void_p()
    solver.call("cusolverDnCreateSyevjInfo", ctypes.byref(parameters))
    solver.call("cusolverDnXsyevjSetTolerance", parameters, ctypes.c_double(1e-7))
    for method, tail in (("evd", ()), ("evj", (parameters,))):
        A, W = solver.device(triangle), solver.zeros(real_of(kind), n)
        size = ctypes.c_int()
        solver.run(f"{letter}{name}{method}_bufferSize", 1, uplo, n, A, n, W, ctypes.byref(size), *tail)
        solver.run(f"{letter}{name}{method}", 1, uplo, n, A, n, W, solver.work, size, solver.info, *tail)
        assert solver.info[0] == 0
        close(W, expected)
        close((wide(matrix) @ wide(A)).astype(kind), wide(A) * wide(W))
    left, sweeps = ctypes.c_double(-1), ctypes.c_int(-1)
    solver.run("XsyevjGetResidual", parameters, ctypes.byref(left))
    solver.run("XsyevjGetSweeps", parameters, ctypes.byref(sweeps))
    assert (left.value, sweeps.value) == (0, 0)  # the method is LAPACK's
    batch = solver.device(numpy.stack([hermitian(kind, n) for _ in range(3)], axis=-1))
    originals, W = batch.copy(order="F"), solver.zeros(real_of(kind), n, 3)
    solver.run(f"{letter}{name}evjBatched", 1, uplo, n, batch, n, W, solver.work, 1, solver.info, parameters, 3)
    for i in range(3):
        close((wide(originals[..., i]) @ wide(batch[..., i])).astype(kind), wide(batch[..., i]) * wide(W[:, i]))
    second = positive(kind, n)
    A, B, W = solver.device(matrix), solver.device(second), solver.zeros(real_of(kind), n)
    solver.run(f"{letter}{name}gvd", 1, 1, uplo, n, A, n, B, n, W, solver.work, 1, solver.info)
    close((wide(matrix) @ wide(A)).astype(kind), wide(second) @ wide(A) * wide(W), 1e4)


@pytest.mark.parametrize("letter", "SDCZ")
def test_types_chosen_at_run_time(solver: Solver, letter: str) -> None:
    kind, code, n = TYPES[letter], CODES[letter], 5
    real = CODES["S" if letter in "SC" else "D"]
    long = ctypes.c_int64
    parameters, device, host = ctypes.c_void_p(), ctypes.c_size_t(9), ctypes.c_size_t(9)
    solver.call("cusolverDnCreateParams", ctypes.byref(parameters))
    nothing = None, ctypes.c_size_t(0), None, ctypes.c_size_t(0)
    matrix = positive(kind, n)
    A, right = solver.device(matrix), random_array(GENERATOR, kind, n, 2)
    B = solver.device(right)
    sizes = ctypes.byref(device), ctypes.byref(host)
    solver.run("Xpotrf_bufferSize", parameters, LOWER, long(n), code, A, long(n), code, *sizes)
    solver.run("Xpotrf", parameters, LOWER, long(n), code, A, long(n), code, *nothing, solver.info)
    solver.run("Xpotrs", parameters, LOWER, long(n), long(2), code, A, long(n), code, B, long(n), solver.info)
    close((wide(matrix) @ wide(B)).astype(kind), right, 1e3)
    matrix = random_array(GENERATOR, kind, n, n)
    A, B, pivots = solver.device(matrix), solver.device(right), solver.zeros(numpy.int64, n)
    solver.run("Xgetrf", parameters, long(n), long(n), code, A, long(n), pivots, code, *nothing, solver.info)
    solver.run("Xgetrs", parameters, 1, long(n), long(2), code, A, long(n), pivots, code, B, long(n), solver.info)
    close((wide(matrix).T @ wide(B)).astype(kind), right, 1e4)
    A, tau = solver.device(matrix), solver.zeros(kind, n)
    solver.run("Xgeqrf", parameters, long(n), long(n), code, A, long(n), code, tau, code, *nothing, solver.info)
    r = numpy.triu(wide(A))
    close((r.conj().T @ r).astype(kind), wide(matrix).conj().T @ wide(matrix), 1e3)
    matrix = hermitian(kind, n)
    A, W = solver.device(matrix), solver.zeros(real_of(kind), n)
    solver.run("Xsyevd", parameters, 1, LOWER, long(n), code, A, long(n), real, W, code, *nothing, solver.info)
    close((wide(matrix) @ wide(A)).astype(kind), wide(A) * wide(W))
    matrix = random_array(GENERATOR, kind, n, n)
    A, S = solver.device(matrix), solver.zeros(real_of(kind), n)
    U, VT = solver.zeros(kind, n, n), solver.zeros(kind, n, n)
    jobs = ctypes.c_char(b"S"), ctypes.c_char(b"S")
    solver.run(
        "Xgesvd",
        *(parameters, *jobs, long(n), long(n), code, A, long(n), real, S, code, U, long(n), code, VT, long(n), code),
        *(*nothing, solver.info),
    )
    close((wide(U) * wide(S) @ wide(VT)).astype(kind), matrix)

    symmetric = random_array(GENERATOR, kind, n, n)
    symmetric = symmetric + symmetric.T
    A, B, short = solver.device(symmetric), solver.device(right), solver.zeros(numpy.int32, n)
    solver.run(letter + "sytrf", LOWER, n, A, n, short, solver.work, 1, solver.info)
    pivots = solver.device(short.astype(numpy.int64))
    solver.run("Xsytrs", LOWER, long(n), long(2), code, A, long(n), pivots, code, B, long(n), *nothing, solver.info)
    close((wide(symmetric) @ wide(B)).astype(kind), right, 1e4)
    A = solver.device(numpy.tril(matrix) + 4 * numpy.eye(n, dtype=kind))
    before = wide(A)
    solver.run("Xtrtri", LOWER, 0, long(n), code, A, long(n), *nothing, solver.info)
    close((before @ wide(A)).astype(kind), numpy.eye(n), 1e3)


@pytest.mark.parametrize("letter", "SDCZ")
def test_eigenvalues_of_general_matrices_and_of_batches(solver: Solver, letter: str) -> None:
    kind, n, batch = TYPES[letter], 7, 3
    code, real, long, parameters = CODES[letter], CODES[letter] % 4, ctypes.c_int64, ctypes.c_void_p()
    solver.call("cusolverDnCreateParams", ctypes.byref(parameters))
    nothing = (None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))
    matrix = random_array(GENERATOR, kind, n, n)
    complex_code = real + 4
    # Complex eigenvalues of either matrix; of a real one also all real parts, then all imaginary ones.
    for value_code in {complex_code, code}:
        A, VR = solver.device(matrix), solver.zeros(kind, n, n)
        W = solver.zeros(numpy.result_type(kind, numpy.complex64), n) if value_code >= 4 else solver.zeros(kind, 2 * n)
        types = (code, A, long(n), value_code, W, code, None, long(n), code, VR, long(n), code)
        sizes = ctypes.c_size_t(9), ctypes.c_size_t(9)
        pointers = [ctypes.byref(size) for size in sizes]
        solver.run("Xgeev_bufferSize", parameters, 0, 1, long(n), *types, *pointers)
        solver.run("Xgeev", parameters, 0, 1, long(n), *types, *nothing, solver.info)
        values = numpy.array(W) if value_code >= 4 else W[:n] + 1j * W[n:]
        vectors = numpy.array(VR).astype(values.dtype)
        if letter in "SD":  # a pair's vectors are a real and an imaginary part
            for j in numpy.flatnonzero(values.imag > 0):
                vectors[:, j] = VR[:, j] + 1j * VR[:, j + 1]
                vectors[:, j + 1] = vectors[:, j].conj()
        product = (wide(matrix) @ wide(vectors)).astype(values.dtype)
        close(product, wide(vectors) * wide(values), 1e3)
        close(numpy.linalg.norm(vectors, axis=0).astype(real_of(kind)), numpy.ones(n), 1e3)
        A = solver.device(matrix)
        again = solver.zeros(values.dtype if value_code >= 4 else kind, len(W))
        types = (code, A, long(n), value_code, again, code, None, long(n), code, None, long(n), code)
        solver.run("Xgeev", parameters, 0, 0, long(n), *types, *nothing, solver.info)
        order = [numpy.sort_complex(each if value_code >= 4 else each[:n] + 1j * each[n:]) for each in (W, again)]
        close(order[0], order[1], 1e4)

    matrices = [hermitian(kind, n) for _ in range(batch)]
    A = solver.device(numpy.concatenate(matrices, axis=1))
    W, info = solver.zeros(real_of(kind), n, batch), solver.device(numpy.full(batch, -1, numpy.int32))
    tail = (long(n), code, A, long(n), real, W, code, *nothing, info, long(batch))
    solver.run("XsyevBatched", parameters, 1, LOWER, *tail)
    assert (info == 0).all()
    for i, each in enumerate(matrices):
        vectors = A[:, i * n : (i + 1) * n]
        close((wide(each) @ wide(vectors)).astype(kind), wide(vectors) * wide(W[:, i]), 1e3)


def test_wrong_arguments_get_their_status(solver: Solver) -> None:
    A = solver.zeros(numpy.float32, 4, 4)
    for arguments in ((2, 4, A, 4), (0, -1, A, 4), (0, 4, A, 3)):
        assert solver.status("cusolverDnSpotrf", solver.handle, *arguments, solver.work, 1, solver.info) == INVALID
    assert solver.status("cusolverDnSpotrf", solver.work, 1, 4, A, 4, solver.work, 1, solver.info) == 1
    jobs = ctypes.c_char(b"A"), ctypes.c_char(b"A")
    arguments = *jobs, 3, 4, A, 4, A, A, 4, A, 4, solver.work, 1, None, solver.info
    assert solver.status("cusolverDnSgesvd", solver.handle, *arguments) == INVALID  # fewer rows than columns
    assert (
        solver.status("cusolverDnSsytrf", solver.handle, 0, 4, A, 4, None, solver.work, 1, solver.info) == NOT_SUPPORTED
    )
