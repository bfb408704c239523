"""cuSOLVER's solvers with iterative refinement, and its other ways to singular values."""

import ctypes
import pathlib
from typing import Any, Iterator, Tuple

import numpy
import pytest
from library_calls import TYPES, close, random_array, wide
from solver_calls import CODES, GENERATOR, INVALID, NOT_SUPPORTED, Solver, real_of

LOWER_TYPES = {"S": "SHBX", "D": "DSHBX", "C": "CKEY", "Z": "ZCKEY"}
NAMES = [letter + low for letter, lows in LOWER_TYPES.items() for low in lows]
PRECISIONS = {"D": 1203, "S": 1204, "H": 1205, "Z": 1213, "C": 1214, "K": 1215}
NO_REFINEMENT, CLASSICAL, GMRES = 1101, 1102, 1104
PARAMS_INVALID_PREC, PARAMS_INVALID_REFINE, IRS_NOT_SUPPORTED, INVALID_WORKSPACE = 14, 15, 21, 31


@pytest.fixture(scope="module")
def solver(sdk: pathlib.Path) -> Iterator[Solver]:
    yield Solver(sdk)


def well_conditioned(kind: Any, n: int) -> numpy.ndarray:
    return (random_array(GENERATOR, kind, n, n) + 4 * numpy.eye(n)).astype(kind)


def hilbert(n: int) -> numpy.ndarray:
    """A matrix that float cannot tell from a singular one, and double can, for n of 8."""
    index = numpy.arange(n)
    return 1.0 / (index[:, None] + index[None, :] + 1)


class Refined:
    """Parameters and information of a call by the interface whose types are chosen at run time."""

    def __init__(self, solver: Solver, main: str, lowest: str, method: int = CLASSICAL) -> None:
        self.solver, self.params, self.infos = solver, ctypes.c_void_p(), ctypes.c_void_p()
        solver.call("cusolverDnIRSParamsCreate", ctypes.byref(self.params))
        solver.call("cusolverDnIRSInfosCreate", ctypes.byref(self.infos))
        solver.call("cusolverDnIRSParamsSetSolverPrecisions", self.params, PRECISIONS[main], PRECISIONS[lowest])
        solver.call("cusolverDnIRSParamsSetRefinementSolver", self.params, method)

    def number(self, name: str) -> int:
        value = ctypes.c_int(-99)
        self.solver.call("cusolverDnIRSInfos" + name, self.infos, ctypes.byref(value))
        return value.value

    def history(self, kind: Any, rows: int) -> numpy.ndarray:
        address = ctypes.c_void_p()
        self.solver.call("cusolverDnIRSInfosGetResidualHistory", self.infos, ctypes.byref(address))
        assert address.value
        element = ctypes.c_double if real_of(kind) == numpy.float64 else ctypes.c_float
        return numpy.ctypeslib.as_array((element * (2 * rows)).from_address(address.value)).reshape(2, rows)

    def solve(self, A: numpy.ndarray, B: numpy.ndarray, X: numpy.ndarray, status: int = 0) -> int:
        n, right, iterations, bytes_ = len(A), B.shape[1], ctypes.c_int(-99), ctypes.c_size_t(0)
        function = self.solver.library.cusolverDnIRSXgesv
        if status == 0:
            self.solver.run("IRSXgesv_bufferSize", self.params, n, right, ctypes.byref(bytes_))
            assert bytes_.value > 0
        call = (self.params, self.infos, n, right, A, n, B, n, X, n, self.solver.work, bytes_)
        if status == 0:
            self.solver.run("IRSXgesv", *call, ctypes.byref(iterations), self.solver.info)
        else:
            arguments = [each.ctypes.data_as(ctypes.c_void_p) if hasattr(each, "ctypes") else each for each in call]
            info = self.solver.info.ctypes.data_as(ctypes.c_void_p)
            assert function(self.solver.handle, *arguments, ctypes.byref(iterations), info) == status
        return iterations.value


@pytest.mark.parametrize("name", NAMES)
def test_solutions_are_of_the_datas_precision(solver: Solver, name: str) -> None:
    kind, n, right = TYPES[name[0]], 30, 3
    matrix, sides = well_conditioned(kind, n), random_array(GENERATOR, kind, n, right)
    A, B, X = solver.device(matrix), solver.device(sides), solver.zeros(kind, n + 1, right)
    pivots, bytes_, iterations = solver.zeros(numpy.int32, n), ctypes.c_size_t(0), ctypes.c_int(-99)
    places = (n, right, A, n, pivots, B, n, X, n + 1)
    solver.run(name + "gesv_bufferSize", *places, None, ctypes.byref(bytes_))
    assert bytes_.value > 0
    solver.run(name + "gesv", *places, solver.work, bytes_, ctypes.byref(iterations), solver.info)
    assert solver.info[0] == 0
    # Factors of a lower precision need at least one correction.
    assert (iterations.value >= 1) if name in ("DS", "DH", "ZC", "ZK") else (iterations.value >= 0)
    assert (matrix == A).all() and (sides == B).all() and (X[n] == 0).all()
    assert sorted(pivots) != [0] * n and (pivots >= numpy.arange(1, n + 1)).all()
    close((wide(matrix) @ wide(X[:n])).astype(kind), sides, 1e3)


@pytest.mark.parametrize("name", NAMES)
def test_least_squares(solver: Solver, name: str) -> None:
    kind, m, n, right = TYPES[name[0]], 12, 5, 2
    matrix, sides = random_array(GENERATOR, kind, m, n), random_array(GENERATOR, kind, m, right)
    A, B, X = solver.device(matrix), solver.device(sides), solver.zeros(kind, n, right)
    bytes_, iterations = ctypes.c_size_t(0), ctypes.c_int(-99)
    places = (m, n, right, A, m, B, m, X, n)
    solver.run(name + "gels_bufferSize", *places, None, ctypes.byref(bytes_))
    solver.run(name + "gels", *places, solver.work, bytes_, ctypes.byref(iterations), solver.info)
    assert solver.info[0] == 0 and iterations.value == 0 and (matrix == A).all() and (sides == B).all()
    # What is left is at a right angle to every column.
    columns = wide(matrix).conj().T
    close((columns @ (wide(matrix) @ wide(X))).astype(kind), (columns @ wide(sides)).astype(kind), 1e3)


@pytest.mark.parametrize("main, lowest", ["DS", "DD", "SS", "SH", "ZC", "ZZ", "CC", "CK"])
def test_history_of_the_residual(solver: Solver, main: str, lowest: str) -> None:
    kind, n = TYPES[main], 24
    matrix, sides = well_conditioned(kind, n), random_array(GENERATOR, kind, n, 2)
    refined = Refined(solver, main, lowest)
    solver.call("cusolverDnIRSInfosRequestResidual", refined.infos)
    solver.call("cusolverDnIRSParamsSetMaxIters", refined.params, 20)
    A, B, X = solver.device(matrix), solver.device(sides), solver.zeros(kind, n, 2)
    iterations = refined.solve(A, B, X)
    assert iterations == refined.number("GetNiters") == refined.number("GetOuterNiters") >= 0
    assert refined.number("GetMaxIters") == 20
    close((wide(matrix) @ wide(X)).astype(kind), sides, 1e3)
    numbers, norms = refined.history(kind, 21)
    assert list(numbers[: iterations + 1]) == list(range(iterations + 1))
    left = numpy.abs(wide(sides) - wide(matrix) @ wide(X)).max()
    assert abs(norms[iterations] - left) <= 1e-5 + 0.5 * left and (norms[iterations + 1 :] == 0).all()
    if lowest == "S" and main == "D":
        assert iterations >= 1 and norms[iterations] < 1e-6 * norms[0]


def test_a_matrix_that_float_cannot_factor_is_solved_in_double(solver: Solver) -> None:
    n = 10
    matrix = hilbert(n)
    sides = matrix @ numpy.ones((n, 1))
    refined = Refined(solver, "D", "S")
    A, B, X = solver.device(matrix), solver.device(sides), solver.zeros(numpy.float64, n, 1)
    assert refined.solve(A, B, X) < 0
    assert solver.info[0] == 0 and numpy.abs(X - 1).max() < 1e-2
    assert not (matrix == A).all()  # its factors
    # Without the second attempt the solution is as far as it came.
    A, X = solver.device(matrix), solver.zeros(numpy.float64, n, 1)
    solver.call("cusolverDnIRSParamsDisableFallback", refined.params)
    assert refined.solve(A, B, X) < 0 and (matrix == A).all()
    solver.call("cusolverDnIRSParamsEnableFallback", refined.params)
    assert refined.solve(A, B, X) < 0 and numpy.abs(X - 1).max() < 1e-2


def test_failures_are_told_by_number(solver: Solver) -> None:
    n = 4
    sides = solver.device(numpy.ones((n, 1)))
    refined = Refined(solver, "D", "S")
    X = solver.zeros(numpy.float64, n, 1)
    # Numbers beyond float's largest: double solves it.
    assert refined.solve(solver.device(1e200 * numpy.eye(n)), sides, X) == -2
    close(X, numpy.full((n, 1), 1e-200))
    singular = numpy.diag([1.0, 2, 0, 4])
    assert refined.solve(solver.device(singular), sides, X) == -3 and solver.info[0] == 3
    # One iteration is not enough for a tolerance that no solution reaches.
    solver.call("cusolverDnIRSParamsSetMaxIters", refined.params, 1)
    solver.call("cusolverDnIRSParamsSetTol", refined.params, ctypes.c_double(1e-300))
    assert refined.solve(solver.device(well_conditioned(numpy.float64, n)), sides, X) == -1


def test_without_refinement_the_solution_is_the_lower_precisions(solver: Solver) -> None:
    n = 24
    matrix, sides = well_conditioned(numpy.float64, n), random_array(GENERATOR, numpy.float64, n, 1)
    X = solver.zeros(numpy.float64, n, 1)
    refined = Refined(solver, "D", "S", NO_REFINEMENT)
    assert refined.solve(solver.device(matrix), solver.device(sides), X) == 0
    left = numpy.abs(sides - matrix @ X).max()
    assert 1e-9 < left < 1e-4


def test_empty_systems_have_solutions(solver: Solver) -> None:
    refined, X = Refined(solver, "D", "S"), solver.zeros(numpy.float64, 1, 1)
    bytes_, iterations = ctypes.c_size_t(8), ctypes.c_int(-99)
    call = (refined.params, refined.infos, 0, 1, None, 1, None, 1, None, 1, solver.work, bytes_)
    solver.run("IRSXgesv", *call, ctypes.byref(iterations), solver.info)
    assert iterations.value == 0 and solver.info[0] == 0 and X[0] == 0


def test_parameters_that_are_not_set_or_do_not_fit(solver: Solver) -> None:
    A, B = solver.device(numpy.eye(2)), solver.device(numpy.ones((2, 2)))
    X = solver.zeros(numpy.float64, 2, 2)
    assert Refined(solver, "D", "S", GMRES).solve(A, B, X, IRS_NOT_SUPPORTED) == -99  # two right-hand sides
    assert Refined(solver, "S", "D").solve(A, B, X, PARAMS_INVALID_PREC) == -99
    assert Refined(solver, "D", "C").solve(A, B, X, PARAMS_INVALID_PREC) == -99
    fresh = Refined(solver, "D", "S")
    solver.call("cusolverDnIRSParamsDestroy", fresh.params)
    solver.call("cusolverDnIRSParamsCreate", ctypes.byref(fresh.params))
    assert fresh.solve(A, B, X, PARAMS_INVALID_PREC) == -99
    solver.call("cusolverDnIRSParamsSetSolverPrecisions", fresh.params, PRECISIONS["D"], PRECISIONS["S"])
    assert fresh.solve(A, B, X, PARAMS_INVALID_REFINE) == -99
    solver.call("cusolverDnIRSParamsSetRefinementSolver", fresh.params, CLASSICAL)
    assert fresh.solve(A, B, X, INVALID_WORKSPACE) == -99
    history = ctypes.c_void_p()
    ask = solver.library.cusolverDnIRSInfosGetResidualHistory
    assert ask(fresh.infos, ctypes.byref(history)) == INVALID  # nobody asked for it to be kept


def decomposed(solver: Solver, kind: Any, m: int, n: int) -> Tuple[numpy.ndarray, ...]:
    matrix = random_array(GENERATOR, kind, m, n)
    return matrix, solver.device(matrix), solver.zeros(real_of(kind), min(m, n))


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("m, n", [(7, 4), (4, 7), (5, 5)])
def test_singular_values_by_polar_decomposition(solver: Solver, letter: str, m: int, n: int) -> None:
    kind, code, long, rank = TYPES[letter], CODES[letter], ctypes.c_int64, min(m, n)
    nothing = (None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))
    for econ in (0, 1):
        matrix, A, S = decomposed(solver, kind, m, n)
        U, V = solver.zeros(kind, m, m), solver.zeros(kind, n, n)
        error = ctypes.c_double(-1)
        # No parameters are what programs pass.
        solver.run(
            "Xgesvdp",
            *(None, 1, econ, long(m), long(n), code, A, long(m), code % 4, S, code, U, long(m), code, V, long(n)),
            *(code, *nothing, solver.info, ctypes.byref(error)),
        )
        assert solver.info[0] == 0 and error.value == 0
        close((wide(U[:, :rank]) * wide(S) @ wide(V[:, :rank]).conj().T).astype(kind), matrix)
        if not econ:
            close((wide(U).conj().T @ wide(U)).astype(kind), numpy.eye(m))


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("jobs", ["SS", "SN", "NS", "NN"])
def test_the_largest_singular_values(solver: Solver, letter: str, jobs: str) -> None:
    kind, code, long, m, n, rank = TYPES[letter], CODES[letter], ctypes.c_int64, 9, 6, 3
    matrix, A, S = decomposed(solver, kind, m, n)
    U, V = solver.zeros(kind, m, rank), solver.zeros(kind, n, rank)
    nothing = (None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))

    def call(more: int) -> None:
        solver.run(
            "Xgesvdr",
            *(None, ctypes.c_byte(ord(jobs[0])), ctypes.c_byte(ord(jobs[1])), long(m), long(n), long(rank), long(more)),
            *(long(2), code, A, long(m), code % 4, S, code, U, long(m), code, V, long(n), code, *nothing, solver.info),
        )

    call(3)
    left, values, right = numpy.linalg.svd(matrix.astype(complex))
    close(S[:rank].copy(), values[:rank].astype(real_of(kind)))
    assert (S[rank:] == 0).all()
    product = left[:, :rank] * values[:rank] @ right[:rank]
    if jobs == "SS":
        close((wide(U) * wide(S[:rank]) @ wide(V).conj().T).astype(kind), product.astype(kind), 1e2)
    assert (U == 0).all() == (jobs[0] == "N") and (V == 0).all() == (jobs[1] == "N")


def test_more_singular_values_than_there_are(solver: Solver) -> None:
    long, bytes_ = ctypes.c_int64, (ctypes.c_size_t(0), ctypes.c_size_t(0))
    _, A, S = decomposed(solver, numpy.float64, 5, 4)

    def ask(rank: int, more: int, code: int) -> int:
        function = solver.library.cusolverDnXgesvdr_bufferSize
        job, place = ctypes.c_byte(ord("S")), A.ctypes.data_as(ctypes.c_void_p)
        values = S.ctypes.data_as(ctypes.c_void_p)
        sizes = (long(5), long(4), long(rank), long(more), long(0))
        return function(
            *(solver.handle, None, job, job, *sizes, code, place, long(5), code, values, code, place, long(5)),
            *(code, place, long(4), code, ctypes.byref(bytes_[0]), ctypes.byref(bytes_[1])),
        )

    assert ask(2, 2, 1) == 0 and ask(5, 0, 1) == INVALID and ask(2, 3, 1) == INVALID and ask(2, 1, 3) == NOT_SUPPORTED
