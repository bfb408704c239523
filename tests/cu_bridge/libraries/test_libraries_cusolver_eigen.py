"""cuSOLVER's eigenvalues of a range, and the reductions to two diagonals, as NumPy has them, in every type."""

import ctypes
import itertools
import pathlib
from typing import Any, Iterator, List

import numpy
import pytest
from library_calls import TYPES, close, random_array, wide
from solver_calls import CODES, GENERATOR, INVALID, LOWER, UPPER, Solver, hermitian, positive, real_of

ALL, BY_NUMBER, BY_VALUE = 1001, 1002, 1003
LEFT, RIGHT = 0, 1


@pytest.fixture(scope="module")
def solver(sdk: pathlib.Path) -> Iterator[Solver]:
    yield Solver(sdk)


def prefix(letter: str, real: str, complex_: str) -> str:
    return letter + (real if letter in "SD" else complex_)


def limits(letter: str, values: numpy.ndarray, kind: int) -> List[Any]:
    """vl, vu, il, iu: the second to the fourth value by number, the third to the fifth by value (low < w <= high)."""
    number = ctypes.c_float if letter in "SC" else ctypes.c_double
    low, high = (values[1] + values[2]) / 2, (values[4] + values[5]) / 2
    return [number(low), number(high), 2, 4] if kind != ALL else [number(0), number(0), 0, 0]


TAKEN = {ALL: slice(0, 7), BY_NUMBER: slice(1, 4), BY_VALUE: slice(2, 5)}


@pytest.mark.parametrize("letter, uplo, kind", itertools.product("SDCZ", [LOWER, UPPER], TAKEN))
def test_eigenvalues_of_a_range(solver: Solver, letter: str, uplo: int, kind: int) -> None:
    dtype, n = TYPES[letter], 7
    matrix, second = hermitian(dtype, n), positive(dtype, n)
    values = numpy.linalg.eigvalsh(matrix.astype(complex))
    half = numpy.linalg.inv(numpy.linalg.cholesky(second.astype(complex)))
    pairs = numpy.linalg.eigvalsh(half @ matrix.astype(complex) @ half.conj().T)
    for vectors in (0, 1):
        found, size = ctypes.c_int(-1), ctypes.c_int()
        A, W = solver.device(matrix), solver.zeros(real_of(dtype), n)
        name, ends = prefix(letter, "syevdx", "heevdx"), limits(letter, values, kind)
        count = ctypes.byref(found)
        solver.run(name + "_bufferSize", vectors, kind, uplo, n, A, n, *ends, count, W, ctypes.byref(size))
        solver.run(name, vectors, kind, uplo, n, A, n, *ends, count, W, solver.work, size, solver.info)
        expected = values[TAKEN[kind]]
        assert solver.info[0] == 0 and found.value == len(expected)
        close(W[: found.value], expected)
        if vectors:
            columns = wide(A)[:, : found.value]
            close((wide(matrix) @ columns).astype(dtype), columns * wide(W)[: found.value])

        A, B, W = solver.device(matrix), solver.device(second), solver.zeros(real_of(dtype), n)
        name, ends = prefix(letter, "sygvdx", "hegvdx"), limits(letter, pairs, kind)
        arguments = (1, vectors, kind, uplo, n, A, n, B, n, *ends, count, W)
        solver.run(name + "_bufferSize", *arguments, ctypes.byref(size))
        solver.run(name, *arguments, solver.work, size, solver.info)
        expected = pairs[TAKEN[kind]]
        assert solver.info[0] == 0 and found.value == len(expected)
        close(W[: found.value], expected, 1e4)
        if vectors:
            columns = wide(A)[:, : found.value]
            close((wide(matrix) @ columns).astype(dtype), wide(second) @ columns * wide(W)[: found.value], 1e4)


@pytest.mark.parametrize("letter", "SDCZ")
def test_ranges_of_types_chosen_at_run_time(solver: Solver, letter: str) -> None:
    dtype, code, n = TYPES[letter], CODES[letter], 7
    real, long = CODES["S" if letter in "SC" else "D"], ctypes.c_int64
    parameters = ctypes.c_void_p()
    solver.call("cusolverDnCreateParams", ctypes.byref(parameters))
    matrix = hermitian(dtype, n)
    values = numpy.linalg.eigvalsh(matrix.astype(complex))
    low, high, _, _ = limits(letter, values, BY_VALUE)
    A, W, found = solver.device(matrix), solver.zeros(real_of(dtype), n), ctypes.c_int64(-1)
    ends = ctypes.byref(low), ctypes.byref(high), long(0), long(0)
    head = (parameters, 1, BY_VALUE, LOWER, long(n), code, A, long(n), *ends, ctypes.byref(found), real, W, code)
    device, host = ctypes.c_size_t(9), ctypes.c_size_t(9)
    solver.run("Xsyevdx_bufferSize", *head, ctypes.byref(device), ctypes.byref(host))
    solver.run("Xsyevdx", *head, None, ctypes.c_size_t(0), None, ctypes.c_size_t(0), solver.info)
    assert found.value == 3 and solver.info[0] == 0
    close(W[:3], values[2:5])
    close((wide(matrix) @ wide(A)[:, :3]).astype(dtype), wide(A)[:, :3] * wide(W)[:3])


@pytest.mark.parametrize("letter, uplo", itertools.product("SDCZ", [LOWER, UPPER]))
def test_reduction_of_a_hermitian_matrix(solver: Solver, letter: str, uplo: int) -> None:
    dtype, n = TYPES[letter], 6
    matrix = hermitian(dtype, n)
    A, tau = solver.device(matrix), solver.zeros(dtype, n - 1)
    D, E = solver.zeros(real_of(dtype), n), solver.zeros(real_of(dtype), n - 1)
    name = prefix(letter, "sytrd", "hetrd")
    size = solver.sized(name, uplo, n, A, n, D, E, tau)
    solver.run(name, uplo, n, A, n, D, E, tau, solver.zeros(dtype, size), size, solver.info)
    assert solver.info[0] == 0
    diagonals = numpy.diag(wide(D)) + numpy.diag(wide(E), 1) + numpy.diag(wide(E), -1)
    Q, name = solver.device(A), prefix(letter, "orgtr", "ungtr")
    size = solver.sized(name, uplo, n, Q, n, tau)
    solver.run(name, uplo, n, Q, n, tau, solver.zeros(dtype, size), size, solver.info)
    close((wide(Q) @ diagonals @ wide(Q).conj().T).astype(dtype), matrix, 1e2)
    adjoint, right, name = (
        2 if letter in "CZ" else 1,
        random_array(GENERATOR, dtype, n, 3),
        prefix(letter, "ormtr", "unmtr"),
    )
    for side, trans in itertools.product((LEFT, RIGHT), (0, adjoint)):
        given = right if side == LEFT else numpy.ascontiguousarray(right.T)
        C = solver.device(given)
        m, columns = given.shape
        turned = wide(Q) if trans == 0 else wide(Q).conj().T
        size = solver.sized(name, side, uplo, trans, m, columns, A, n, tau, C, m)
        work = solver.zeros(dtype, size)
        solver.run(name, side, uplo, trans, m, columns, A, n, tau, C, m, work, size, solver.info)
        close(C, turned @ wide(given) if side == LEFT else wide(given) @ turned, 1e2)


@pytest.mark.parametrize("letter", "SDCZ")
def test_reduction_to_a_bidiagonal_matrix(solver: Solver, letter: str) -> None:
    dtype, m, n = TYPES[letter], 7, 4
    matrix = random_array(GENERATOR, dtype, m, n)
    A, D, E = solver.device(matrix), solver.zeros(real_of(dtype), n), solver.zeros(real_of(dtype), n - 1)
    tau_q, tau_p = solver.zeros(dtype, n), solver.zeros(dtype, n)
    size = solver.sized(letter + "gebrd", m, n)
    solver.run(letter + "gebrd", m, n, A, m, D, E, tau_q, tau_p, solver.zeros(dtype, size), size, solver.info)
    assert solver.info[0] == 0
    name, Q, P = prefix(letter, "orgbr", "ungbr"), solver.device(A), solver.device(A[:n])
    size = solver.sized(name, LEFT, m, n, n, Q, m, tau_q)
    solver.run(name, LEFT, m, n, n, Q, m, tau_q, solver.zeros(dtype, size), size, solver.info)
    solver.run(name, RIGHT, n, n, m, P, n, tau_p, solver.zeros(dtype, size), size, solver.info)
    between = numpy.diag(wide(D)) + numpy.diag(wide(E), 1)
    close((wide(Q) @ between @ wide(P)).astype(dtype), matrix, 1e2)
    close((wide(Q).conj().T @ wide(Q)).astype(dtype), numpy.eye(n), 1e2)


@pytest.mark.parametrize("letter", "SDCZ")
def test_pairs_of_matrices_by_rotations(solver: Solver, letter: str) -> None:
    dtype, n = TYPES[letter], 5
    matrix, second, parameters = hermitian(dtype, n), positive(dtype, n), ctypes.c_void_p()
    solver.call("cusolverDnCreateSyevjInfo", ctypes.byref(parameters))
    A, B, W, size = solver.device(matrix), solver.device(second), solver.zeros(real_of(dtype), n), ctypes.c_int()
    name, arguments = prefix(letter, "sygvj", "hegvj"), (1, 1, LOWER, n, A, n, B, n, W)
    solver.run(name + "_bufferSize", *arguments, ctypes.byref(size), parameters)
    solver.run(name, *arguments, solver.work, size, solver.info, parameters)
    close((wide(matrix) @ wide(A)).astype(dtype), wide(second) @ wide(A) * wide(W), 1e4)


def test_wrong_ranges_get_their_status(solver: Solver) -> None:
    A, W, found = solver.zeros(float, 4, 4), solver.zeros(float, 4), ctypes.c_int()
    number = ctypes.c_double
    for kind, ends in (
        (1000, (0, 0, 0, 0)),
        (BY_NUMBER, (0, 0, 0, 2)),
        (BY_NUMBER, (0, 0, 3, 2)),
        (BY_NUMBER, (0, 0, 2, 5)),
        (BY_VALUE, (1, 1, 0, 0)),
    ):
        low, high, first, last = ends
        arguments = (1, kind, LOWER, 4, A, 4, number(low), number(high), first, last, ctypes.byref(found), W)
        name = "cusolverDnDsyevdx"
        assert solver.status(name, solver.handle, *arguments, solver.work, 1, solver.info) == INVALID
        assert solver.status(name + "_bufferSize", solver.handle, *arguments, ctypes.byref(ctypes.c_int())) == INVALID
