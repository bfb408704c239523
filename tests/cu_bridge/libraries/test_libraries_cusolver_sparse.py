"""cuSOLVER's sparse solvers: residuals of Poisson and random unsymmetric systems, orders, factors step by step."""

import ctypes
import itertools
import pathlib
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy
import pytest
import scipy.sparse
from library_calls import TYPES, Library, close, random_array, wide

INVALID, WRONG_TYPE = 3, 8
GENERATOR = numpy.random.default_rng(9)
INFORMATIONS = {"lu": "CsrluInfoHost", "qr": "CsrqrInfo", "qrHost": "CsrqrInfoHost"}
INFORMATIONS.update({"chol": "CsrcholInfo", "cholHost": "CsrcholInfoHost"})


class Sparse(Library):
    """cuSOLVER's sparse part with one handle, and descriptions from cuSPARSE."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcusolver")
        self.sparse = Library(sdk, 13, "libcusparse")
        self.handle = ctypes.c_void_p()
        self.call("cusolverSpCreate", ctypes.byref(self.handle))
        self.descriptions: Dict[int, ctypes.c_void_p] = {}
        for base in (0, 1):
            self.descriptions[base] = ctypes.c_void_p()
            self.sparse.call("cusparseCreateMatDescr", ctypes.byref(self.descriptions[base]))
            self.sparse.call("cusparseSetMatIndexBase", self.descriptions[base], base)

    def run(self, name: str, *arguments: Any) -> None:
        self.call("cusolverSp" + name, self.handle, *arguments)

    def info(self, kind: str) -> ctypes.c_void_p:
        info = ctypes.c_void_p()
        self.call("cusolverSpCreate" + INFORMATIONS[kind], ctypes.byref(info))
        return info

    def csr(self, matrix: Any, base: int = 0) -> Tuple[Any, ...]:
        """A matrix as nnz, description, values, row offsets and columns."""
        matrix = scipy.sparse.csr_matrix(matrix)
        offsets, columns = (self.device(each.astype(numpy.int32) + base) for each in (matrix.indptr, matrix.indices))
        return matrix.nnz, self.descriptions[base], self.device(matrix.data), offsets, columns

    def pattern(self, matrix: Any, base: int = 0) -> Tuple[Any, ...]:
        nnz, description, _, offsets, columns = self.csr(matrix, base)
        return nnz, description, offsets, columns

    def zeros(self, kind: Any, *shape: int) -> numpy.ndarray:
        return self.device(numpy.zeros(shape, kind))

    def number(self) -> numpy.ndarray:
        return self.device(numpy.full(1, -9, numpy.int32))


@pytest.fixture(scope="module")
def solver(sdk: pathlib.Path) -> Iterator[Sparse]:
    yield Sparse(sdk)


def real(kind: Any, value: float) -> Any:
    single = numpy.dtype(kind).char in "fF"
    return ctypes.c_float(value) if single else ctypes.c_double(value)


class Pair(ctypes.Structure):
    _fields_ = [("real", ctypes.c_double), ("imaginary", ctypes.c_double)]


class SinglePair(ctypes.Structure):
    _fields_ = [("real", ctypes.c_float), ("imaginary", ctypes.c_float)]


def scalar(kind: Any, value: complex) -> Any:
    """A number of a type, by value."""
    if numpy.dtype(kind).char in "fd":
        return real(kind, value.real)
    return (SinglePair if numpy.dtype(kind).char == "F" else Pair)(value.real, value.imag)


def poisson(kind: Any, side: int, axes: int = 2) -> Any:
    """The Laplacian on a grid; Hermitian with phases if the type is complex."""
    line = scipy.sparse.diags([-1, 2, -1], [-1, 0, 1], (side, side))
    matrix = line
    for _ in range(axes - 1):
        eye = scipy.sparse.identity(matrix.shape[0])
        matrix = scipy.sparse.kron(scipy.sparse.identity(side), matrix) + scipy.sparse.kron(line, eye)
    matrix = scipy.sparse.csr_matrix(matrix)
    if numpy.issubdtype(kind, numpy.complexfloating):
        phases = scipy.sparse.diags(numpy.exp(1j * numpy.arange(matrix.shape[0])))
        matrix = phases @ matrix @ phases.conj()
    return scipy.sparse.csr_matrix(matrix.astype(kind))


def unsymmetric(kind: Any, n: int, seed: int = 1) -> Any:
    """A random matrix of full rank whose diagonal is mostly zero: rows have to be exchanged."""
    generator = numpy.random.default_rng(seed)
    places = scipy.sparse.random(n, n, 3 / n, random_state=generator, data_rvs=generator.standard_normal)
    order = generator.permutation(n)
    strong = scipy.sparse.csr_matrix((generator.uniform(1, 2, n), (numpy.arange(n), order)), (n, n))
    matrix = scipy.sparse.csr_matrix(places + strong).astype(kind)
    if numpy.issubdtype(kind, numpy.complexfloating):
        matrix.data = matrix.data * numpy.exp(1j * generator.uniform(0, 6, matrix.nnz)).astype(kind)
    matrix.sort_indices()
    return matrix


def residual(matrix: Any, x: numpy.ndarray, b: numpy.ndarray) -> float:
    """|b - A x| beside |A| |x| + |b|, in units of the type's last place."""
    exact = matrix.astype(numpy.complex128)
    rest = numpy.abs(b - exact @ x.astype(numpy.complex128)).max()
    scale = scipy.sparse.linalg.norm(exact, numpy.inf) * numpy.abs(x).max() + numpy.abs(b).max()
    return float(rest / scale / numpy.finfo(x.dtype).eps)


METHODS = ["lsvluHost", "lsvqr", "lsvqrHost", "lsvchol", "lsvcholHost"]


@pytest.mark.parametrize("letter, method, order", itertools.product("SDCZ", METHODS, [0, 1, 2, 3]))
def test_one_call_solves(solver: Sparse, letter: str, method: str, order: int) -> None:
    kind = TYPES[letter]
    base = order % 2
    matrix = poisson(kind, 12) if "chol" in method else unsymmetric(kind, 150)
    n = matrix.shape[0]
    b, x, singularity = solver.device(random_array(GENERATOR, kind, n)), solver.zeros(kind, n), solver.number()
    given = matrix
    if "chol" in method:  # whatever stands above the diagonal is ignored
        given = scipy.sparse.tril(matrix) + scipy.sparse.triu(7 * abs(matrix), 1)
    solver.run(
        letter + "csr" + method, n, *solver.csr(given.astype(kind), base), b, real(kind, 0), order, x, singularity
    )
    assert singularity[0] == -1
    assert residual(matrix, x, b) < 50


@pytest.mark.parametrize("method, axes", [("lsvluHost", 2), ("lsvqr", 2), ("lsvchol", 2), ("lsvchol", 3)])
def test_a_grid_is_solved_in_reverse_cuthill_mckee_order(solver: Sparse, method: str, axes: int) -> None:
    matrix = poisson(numpy.float64, 60 if axes == 2 else 14, axes)
    n = matrix.shape[0]
    b, x, singularity = solver.device(numpy.ones(n)), solver.zeros(numpy.float64, n), solver.number()
    solver.run("Dcsr" + method, n, *solver.csr(matrix), b, real(numpy.float64, 0), 1, x, singularity)
    assert singularity[0] == -1
    close(x, scipy.sparse.linalg.spsolve(matrix.tocsc(), numpy.ones(n)), 1e5)


@pytest.mark.parametrize("letter, method", itertools.product("SDCZ", METHODS))
def test_a_singular_matrix_is_reported_with_its_place(solver: Sparse, letter: str, method: str) -> None:
    kind, n = TYPES[letter], 8
    matrix = numpy.diag(numpy.arange(1, n + 1)).astype(kind)
    matrix[5, 5] = 0
    b, x, singularity = solver.device(numpy.ones(n, kind)), solver.device(numpy.full(n, 7, kind)), solver.number()
    solver.run(letter + "csr" + method, n, *solver.csr(matrix), b, real(kind, 1e-6), 0, x, singularity)
    assert singularity[0] == 5 and (x == 7).all()
    matrix[5, 5] = 1e-3
    solver.run(letter + "csr" + method, n, *solver.csr(matrix), b, real(kind, 1e-1), 0, x, singularity)
    assert singularity[0] == 5
    solver.run(letter + "csr" + method, n, *solver.csr(matrix), b, real(kind, 1e-5), 0, x, singularity)
    assert singularity[0] == -1 and residual(scipy.sparse.csr_matrix(matrix), x, b) < 50


@pytest.mark.parametrize("letter", "SDCZ")
def test_least_squares(solver: Sparse, letter: str) -> None:
    kind, m, n = TYPES[letter], 40, 12
    dense = random_array(GENERATOR, kind, m, n) * (GENERATOR.random((m, n)) < 0.3)
    dense[:n] += numpy.eye(n, dtype=kind)
    b = random_array(GENERATOR, kind, m)
    for dependent in ((), (4, 9)):
        for column in dependent:
            dense[:, column] = 2 * dense[:, column - 1] - dense[:, 0]
        rank, x, p = solver.number(), solver.zeros(kind, n), solver.zeros(numpy.int32, n)
        least = solver.zeros(numpy.zeros(1, kind).real.dtype, 1)
        tolerance = real(kind, 1e-3)
        solver.run(
            letter + "csrlsqvqrHost", m, n, *solver.csr(dense, 1), solver.device(b), tolerance, rank, x, p, least
        )
        expected = numpy.linalg.lstsq(wide(dense).astype(complex), b, rcond=1e-5)
        assert rank[0] == n - len(dependent) == expected[2]
        assert sorted(p) == list(range(n)) and tuple(p[n - len(dependent) :]) == dependent
        wanted = numpy.linalg.norm(b - dense.astype(complex) @ expected[0])
        close(least, [wanted], 1e3)
        close(numpy.array([numpy.linalg.norm(wide(b) - wide(dense) @ x)], least.dtype), [wanted], 1e3)
        if not dependent:
            close(x, expected[0], 1e3)


@pytest.mark.parametrize("letter, suffix", itertools.product("SDCZ", ["", "Host"]))
def test_inverse_iteration_finds_the_nearest_eigenvalue(solver: Sparse, letter: str, suffix: str) -> None:
    kind = TYPES[letter]
    matrix = poisson(kind, 6)
    n = matrix.shape[0]
    values = numpy.linalg.eigvalsh(matrix.toarray().astype(complex))
    for target in (values[0] - 0.01, values[-1] + 0.01, 2.9):
        mu, x = solver.zeros(kind, 1), solver.zeros(kind, n)
        start = solver.device(random_array(GENERATOR, kind, n))
        shift = scalar(kind, target)
        tolerance = real(kind, 1e-4 if letter in "SC" else 1e-9)
        solver.run(letter + "csreigvsi" + suffix, n, *solver.csr(matrix), shift, start, 500, tolerance, mu, x)
        nearest = values[numpy.abs(values - target).argmin()]
        assert abs(mu[0] - nearest) < (1e-4 if letter in "SC" else 1e-9)
        assert numpy.abs(matrix @ x - mu[0] * x).max() < (2e-4 if letter in "SC" else 1e-8)


def test_a_shift_at_an_eigenvalue_is_no_obstacle(solver: Sparse) -> None:
    matrix = scipy.sparse.diags([1.0, 2.0, 3.0, 4.0])
    mu, x = solver.zeros(numpy.float64, 1), solver.zeros(numpy.float64, 4)
    arguments = ctypes.c_double(3.0), solver.device(numpy.ones(4)), 20, ctypes.c_double(1e-12), mu, x
    solver.run("Dcsreigvsi", 4, *solver.csr(matrix), *arguments)
    assert mu[0] == 3 and abs(abs(x[2]) - 1) < 1e-12


@pytest.mark.parametrize("letter", "SDCZ")
def test_eigenvalues_in_a_box_are_counted(solver: Sparse, letter: str) -> None:
    kind = TYPES[letter]
    matrix = unsymmetric(kind, 30)
    values = numpy.linalg.eigvals(matrix.toarray().astype(complex))
    pair = SinglePair if letter in "SC" else Pair
    for low, high in ((-0.5 - 0.5j, 0.7 + 0.9j), (-9 - 9j, 9 + 9j), (8 + 8j, 9 + 9j)):
        found = solver.number()
        corners = pair(low.real, low.imag), pair(high.real, high.imag)
        solver.run(letter + "csreigsHost", 30, *solver.csr(matrix), *corners, found)
        inside = (values.real >= low.real) & (values.real <= high.real)
        assert found[0] == (inside & (values.imag >= low.imag) & (values.imag <= high.imag)).sum()


def fill(matrix: Any, order: numpy.ndarray) -> int:
    """Elements of the Cholesky factor of A(order, order)."""
    pattern = abs(matrix) + abs(matrix.T) + scipy.sparse.identity(matrix.shape[0])
    dense = (pattern[order][:, order] != 0).toarray()
    for j in range(len(order)):
        below = numpy.nonzero(dense[j + 1 :, j])[0] + j + 1
        dense[numpy.ix_(below, below)] = True
    return int(numpy.tril(dense).sum())


@pytest.mark.parametrize("base", [0, 1])
def test_orders_keep_factors_sparse(solver: Sparse, base: int) -> None:
    grid = poisson(numpy.float64, 18)
    shuffle = GENERATOR.permutation(grid.shape[0])
    apart = scipy.sparse.block_diag([grid[shuffle][:, shuffle], scipy.sparse.identity(5), poisson(numpy.float64, 3)])
    matrix = scipy.sparse.csr_matrix(apart)
    n = matrix.shape[0]
    natural = fill(matrix, numpy.arange(n))
    limits = {"symrcm": 0.65, "symmdq": 0.36, "symamd": 0.36, "metisnd": 0.45}
    for name, limit in limits.items():
        p = solver.device(numpy.full(n, -1, numpy.int32))
        options = (None,) if name == "metisnd" else ()
        solver.run(f"Xcsr{name}Host", n, *solver.pattern(matrix, base), *options, p)
        assert sorted(p) == list(range(n))
        assert fill(matrix, p) < limit * natural, name
    p = solver.zeros(numpy.int32, n)
    solver.run("XcsrsymrcmHost", n, *solver.pattern(matrix, base), p)
    band = matrix[p][:, p].tocoo()
    assert abs(band.row - band.col).max() < 1.5 * 18


def test_orders_of_difficult_graphs(solver: Sparse) -> None:
    n = 300
    star = scipy.sparse.lil_matrix((n, n))
    star[0, :] = star[:, 0] = 1
    full = numpy.ones((70, 70))
    empty = scipy.sparse.csr_matrix((n, n))
    for matrix in (star, full, empty, scipy.sparse.identity(200), unsymmetric(numpy.float64, 200)):
        size = matrix.shape[0]
        for name in ("symrcm", "symmdq", "symamd", "metisnd"):
            p = solver.device(numpy.full(size, -1, numpy.int32))
            options = (None,) if name == "metisnd" else ()
            solver.run(f"Xcsr{name}Host", size, *solver.pattern(matrix), *options, p)
            assert sorted(p) == list(range(size))
            if matrix is star and name in ("symmdq", "symamd"):
                assert 0 in p[-2:]


@pytest.mark.parametrize("letter", "SDCZ")
def test_the_diagonal_is_freed_of_zeros(solver: Sparse, letter: str) -> None:
    kind, n = TYPES[letter], 120
    matrix = unsymmetric(kind, n, seed=4)
    p, found = solver.zeros(numpy.int32, n), solver.number()
    solver.run(letter + "csrzfdHost", n, *solver.csr(matrix, 1), p, found)
    assert found[0] == n and (matrix[p].diagonal() != 0).all() and sorted(p) == list(range(n))
    matrix = matrix.tolil()
    matrix[:, 5] = 0
    matrix = matrix.tocsr()
    solver.run(letter + "csrzfdHost", n, *solver.csr(matrix), p, found)
    assert found[0] == n - 1 and (matrix[p].diagonal() != 0).sum() == n - 1 and sorted(p) == list(range(n))


@pytest.mark.parametrize("base", [0, 1])
def test_a_matrix_is_permuted_with_its_map(solver: Sparse, base: int) -> None:
    m, n = 30, 20
    matrix = scipy.sparse.random(m, n, 0.2, "csr", random_state=3)
    nnz, description, values, offsets, columns = solver.csr(matrix, base)
    p, q = (solver.device(GENERATOR.permutation(each).astype(numpy.int32)) for each in (m, n))
    size, places = ctypes.c_size_t(), solver.device(numpy.arange(nnz, dtype=numpy.int32))
    solver.run("Xcsrperm_bufferSizeHost", m, n, nnz, description, offsets, columns, p, q, ctypes.byref(size))
    buffer = solver.zeros(numpy.uint8, size.value)
    solver.run("XcsrpermHost", m, n, nnz, description, offsets, columns, p, q, places, buffer)
    found = scipy.sparse.csr_matrix((values[places], columns - base, offsets - base), (m, n))
    assert (found != matrix[p][:, q]).nnz == 0 and found.has_sorted_indices


def test_symmetry_of_patterns(solver: Sparse) -> None:
    for matrix, expected in ((poisson(numpy.float64, 5), 1), (numpy.triu(numpy.ones((4, 4))), 0)):
        nnz, description, offsets, columns = solver.pattern(matrix)
        ends, found = solver.device(offsets[1:]), solver.number()
        solver.run("XcsrissymHost", len(ends), nnz, description, offsets, ends, columns, found)
        assert found[0] == expected


def sized(solver: Sparse, name: str, *arguments: Any) -> numpy.ndarray:
    """Ask for the sizes of buffers; return the workspace."""
    internal, workspace = ctypes.c_size_t(), ctypes.c_size_t()
    solver.run(name, *arguments, ctypes.byref(internal), ctypes.byref(workspace))
    return solver.zeros(numpy.uint8, max(internal.value, workspace.value))


@pytest.mark.parametrize("letter, base", itertools.product("SDCZ", [0, 1]))
def test_lu_step_by_step(solver: Sparse, letter: str, base: int) -> None:
    kind, n = TYPES[letter], 130
    matrix = unsymmetric(kind, n, seed=7)
    info = solver.info("lu")
    solver.run("XcsrluAnalysisHost", n, *solver.pattern(matrix, base), info)
    buffer = sized(solver, letter + "csrluBufferInfoHost", n, *solver.csr(matrix, base), info)
    solver.run(letter + "csrluFactorHost", n, *solver.csr(matrix, base), info, real(kind, 1), buffer)
    position = solver.number()
    solver.run(letter + "csrluZeroPivotHost", info, real(kind, 0), position)
    assert position[0] == -1
    b, x = solver.device(random_array(GENERATOR, kind, n)), solver.zeros(kind, n)
    solver.run(letter + "csrluSolveHost", n, b, x, info, buffer)
    assert residual(matrix, x, b) < 50
    counts = solver.number(), solver.number()
    solver.run("XcsrluNnzHost", *counts, info)
    P, Q = solver.zeros(numpy.int32, n), solver.zeros(numpy.int32, n)
    factors = []
    parts: List[Any] = []
    for count in counts:
        arrays = solver.zeros(kind, count[0]), solver.zeros(numpy.int32, n + 1), solver.zeros(numpy.int32, count[0])
        parts += [solver.descriptions[base], *arrays]
        factors.append(arrays)
    solver.run(letter + "csrluExtractHost", P, Q, *parts, info, buffer)
    L, U = (scipy.sparse.csr_matrix((v, c - base, o - base), (n, n)) for v, o, c in factors)
    product = (L.toarray().astype(complex) + numpy.eye(n)) @ U.toarray()
    close(product.astype(kind), matrix[P][:, Q].toarray(), 1e3)
    assert numpy.abs(L.data).max(initial=0) <= 1.001 and numpy.triu(L.toarray()).any() == numpy.False_


@pytest.mark.parametrize("letter, host", itertools.product("SDCZ", ["", "Host"]))
def test_qr_step_by_step(solver: Sparse, letter: str, host: str) -> None:
    kind, n = TYPES[letter], 90
    matrix, shift = unsymmetric(kind, n, seed=11), 0.5
    info = solver.info("qr" + host)
    solver.run("XcsrqrAnalysis" + host, n, n, *solver.pattern(matrix, 1), info)
    buffer = sized(solver, letter + "csrqrBufferInfo" + host, n, n, *solver.csr(matrix, 1), info)
    for mu in (0.0, shift):
        solver.run(letter + "csrqrSetup" + host, n, n, *solver.csr(matrix, 1), scalar(kind, mu), info)
        solver.run(letter + "csrqrFactor" + host, n, n, matrix.nnz, None, None, info, buffer)
        position = solver.number()
        solver.run(letter + "csrqrZeroPivot" + host, info, real(kind, 1e-7), position)
        assert position[0] == -1
        b, x = solver.device(random_array(GENERATOR, kind, n)), solver.zeros(kind, n)
        solver.run(letter + "csrqrSolve" + host, n, n, b, x, info, buffer)
        moved = scipy.sparse.csr_matrix(matrix - mu * scipy.sparse.identity(n))
        assert residual(moved, x, b) < 50
        again = solver.zeros(kind, n)
        solver.run(letter + "csrqrFactor" + host, n, n, matrix.nnz, b, again, info, buffer)
        assert (again == x).all()


@pytest.mark.parametrize("letter", "SDCZ")
def test_a_batch_of_one_pattern(solver: Sparse, letter: str) -> None:
    kind, m, n, batch = TYPES[letter], 50, 30, 4
    pattern = scipy.sparse.random(m, n, 0.1, "csr", random_state=5) + scipy.sparse.eye(m, n)
    pattern = scipy.sparse.csr_matrix(pattern)
    nnz, description, _, offsets, columns = solver.csr(pattern)
    values = solver.device(random_array(GENERATOR, kind, nnz, batch))
    b, x = solver.device(random_array(GENERATOR, kind, m, batch)), solver.zeros(kind, n, batch)
    info = solver.info("qr")
    solver.run("XcsrqrAnalysisBatched", m, n, nnz, description, offsets, columns, info)
    buffer = sized(
        solver, letter + "csrqrBufferInfoBatched", m, n, nnz, description, values, offsets, columns, batch, info
    )
    arguments = m, n, nnz, description, values, offsets, columns, b, x, batch, info, buffer
    solver.run(letter + "csrqrsvBatched", *arguments)
    for i in range(batch):
        dense = scipy.sparse.csr_matrix((values[:, i], columns, offsets), (m, n)).toarray()
        expected = numpy.linalg.lstsq(dense.astype(complex), b[:, i], rcond=None)[0]
        condition = numpy.linalg.cond(dense)
        close(x[:, i].copy(), expected, 10 * condition)


@pytest.mark.parametrize("letter, host", itertools.product("SDCZ", ["", "Host"]))
def test_cholesky_step_by_step(solver: Sparse, letter: str, host: str) -> None:
    kind = TYPES[letter]
    matrix = poisson(kind, 9)
    n = matrix.shape[0]
    info = solver.info("chol" + host)
    solver.run("XcsrcholAnalysis" + host, n, *solver.pattern(matrix), info)
    buffer = sized(solver, letter + "csrcholBufferInfo" + host, n, *solver.csr(matrix), info)
    solver.run(letter + "csrcholFactor" + host, n, *solver.csr(matrix), info, buffer)
    position = solver.number()
    solver.run(letter + "csrcholZeroPivot" + host, info, real(kind, 0), position)
    assert position[0] == -1
    b, x = solver.device(random_array(GENERATOR, kind, n)), solver.zeros(kind, n)
    solver.run(letter + "csrcholSolve" + host, n, b, x, info, buffer)
    assert residual(matrix, x, b) < 50
    if not host:
        diagonal = solver.zeros(numpy.zeros(1, kind).real.dtype, n)
        solver.run(letter + "csrcholDiag", info, diagonal)
        close(diagonal, numpy.linalg.cholesky(matrix.toarray().astype(complex)).diagonal().real)
    negative = matrix.tolil()
    negative[40, 40] = -1
    solver.run(letter + "csrcholFactor" + host, n, *solver.csr(negative), info, buffer)
    solver.run(letter + "csrcholZeroPivot" + host, info, real(kind, 0), position)
    assert position[0] == 40
    name = f"cusolverSp{letter}csrcholSolve{host}"
    assert solver.status(name, solver.handle, n, b, x, info, buffer) == INVALID


class Factors:
    """A matrix with the LU factors that a refactorisation starts from, as arrays of the host."""

    def __init__(self, solver: Sparse, matrix: Any) -> None:
        self.n = n = matrix.shape[0]
        info = solver.info("lu")
        solver.run("XcsrluAnalysisHost", n, *solver.pattern(matrix), info)
        solver.run("DcsrluFactorHost", n, *solver.csr(matrix), info, ctypes.c_double(1), solver.zeros(numpy.uint8, 16))
        counts = solver.number(), solver.number()
        solver.run("XcsrluNnzHost", *counts, info)
        self.P, self.Q = solver.zeros(numpy.int32, n), solver.zeros(numpy.int32, n)
        self.parts = []
        arguments: List[Any] = []
        for count in counts:
            arrays = (
                solver.zeros(numpy.float64, count[0]),
                solver.zeros(numpy.int32, n + 1),
                solver.zeros(numpy.int32, count[0]),
            )
            arguments += [solver.descriptions[0], *arrays]
            self.parts.append((int(count[0]), arrays[1], arrays[2], arrays[0]))
        solver.run("DcsrluExtractHost", self.P, self.Q, *arguments, info, solver.zeros(numpy.uint8, 16))

    def changed(self, solver: Sparse, by_column: bool, diagonal: int) -> List[Any]:
        """L and U in a form of cuSOLVER's: by columns, with the diagonal of ones in either factor, stored or not."""
        L, U = (scipy.sparse.csr_matrix((v, c, o), (self.n, self.n)) for _, o, c, v in self.parts)
        pivots = U.diagonal()
        if diagonal in (1, 3):  # ones in U
            U = scipy.sparse.diags(1 / pivots) @ U
            L = (L + scipy.sparse.identity(self.n)) @ scipy.sparse.diags(pivots)
            U = scipy.sparse.triu(U, 1 if diagonal == 3 else 0)
        elif diagonal == 0:
            L = L + scipy.sparse.identity(self.n)
        arguments: List[Any] = []
        for factor in (L, U):
            factor = (scipy.sparse.csc_matrix if by_column else scipy.sparse.csr_matrix)(factor)
            arguments += [factor.nnz]
            arguments += [solver.device(each.astype(numpy.int32)) for each in (factor.indptr, factor.indices)]
            arguments += [solver.device(factor.data)]
        return arguments


def arrays_of(solver: Sparse, matrix: Any, by_column: bool) -> List[Any]:
    matrix = (scipy.sparse.csc_matrix if by_column else scipy.sparse.csr_matrix)(matrix)
    offsets, indices = (solver.device(each.astype(numpy.int32)) for each in (matrix.indptr, matrix.indices))
    return [matrix.nnz, offsets, indices, solver.device(matrix.data)]


def read(pointer: Any, count: int, kind: Any) -> numpy.ndarray:
    return numpy.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(kind)), (count,)).copy()


@pytest.mark.parametrize("by_column, diagonal", itertools.product([False, True], range(4)))
def test_refactorisation(solver: Sparse, by_column: bool, diagonal: int) -> None:
    matrix = unsymmetric(numpy.float64, 110, seed=21)
    n = matrix.shape[0]
    factors = Factors(solver, matrix)
    handle = ctypes.c_void_p()
    solver.call("cusolverRfCreate", ctypes.byref(handle))
    solver.call("cusolverRfSetMatrixFormat", handle, int(by_column), diagonal)
    solver.call("cusolverRfSetNumericProperties", handle, ctypes.c_double(0), ctypes.c_double(0))
    solver.call("cusolverRfSetAlgs", handle, 0, 1)
    setup = [*arrays_of(solver, matrix, by_column), *factors.changed(solver, by_column, diagonal)]
    solver.call("cusolverRfSetupHost", n, *setup, factors.P, factors.Q, handle)
    assert solver.status("cusolverRfRefactor", handle) == INVALID  # not analysed
    solver.call("cusolverRfAnalyze", handle)
    for scale in (0, 0.05):
        changed = matrix.copy()
        changed.data = changed.data * (1 + scale * GENERATOR.standard_normal(changed.nnz))
        arrays = arrays_of(solver, changed, by_column)
        solver.call("cusolverRfResetValues", n, *arrays, factors.P, factors.Q, handle)
        solver.call("cusolverRfRefactor", handle)
        b = random_array(GENERATOR, numpy.float64, n, 2)
        x, work = solver.device(b), solver.zeros(numpy.float64, n, 2)
        solver.call("cusolverRfSolve", handle, factors.P, factors.Q, 2, work, n, x, n)
        for i in range(2):
            assert residual(changed, x[:, i], b[:, i]) < 1e5  # rows are exchanged for the values that came first
    found = [ctypes.c_int(), *(ctypes.c_void_p() for _ in range(3))]
    pair = [*found, ctypes.c_int(), *(ctypes.c_void_p() for _ in range(3))]
    solver.call("cusolverRfExtractSplitFactorsHost", handle, *map(ctypes.byref, pair))
    whole = []
    for count, offsets, indices, values in (pair[:4], pair[4:]):
        arrays = read(values, count.value, ctypes.c_double), read(indices, count.value, ctypes.c_int)
        form = scipy.sparse.csc_matrix if by_column else scipy.sparse.csr_matrix
        whole.append(form((*arrays, read(offsets, n + 1, ctypes.c_int)), (n, n)).toarray())
    if diagonal >= 2:
        whole[diagonal - 2] += numpy.eye(n)
    assert (whole[0 if diagonal in (0, 2) else 1].diagonal() == 1).all()
    expected = changed[factors.P][:, factors.Q].toarray()
    close(whole[0] @ whole[1], expected, 1e6)
    solver.call("cusolverRfAccessBundledFactorsDevice", handle, *map(ctypes.byref, found))
    assert found[0].value >= scipy.sparse.csr_matrix(whole[0] + whole[1]).nnz
    solver.call("cusolverRfDestroy", handle)


def test_refactorisation_of_a_batch(solver: Sparse) -> None:
    matrix, batch = unsymmetric(numpy.float64, 60, seed=23), 3
    n = matrix.shape[0]
    factors = Factors(solver, matrix)
    handle = ctypes.c_void_p()
    solver.call("cusolverRfCreate", ctypes.byref(handle))
    solver.call("cusolverRfSetMatrixFormat", handle, 0, 2)
    nnz, offsets, indices, _ = arrays_of(solver, matrix, False)
    matrices = []
    for _ in range(batch):
        matrices.append(matrix.copy())
        matrices[-1].data = matrix.data * (1 + 0.05 * GENERATOR.standard_normal(nnz))
    values = solver.pointers(*(solver.device(each.data) for each in matrices))
    parts = factors.changed(solver, False, 2)
    solver.call(
        "cusolverRfBatchSetupHost", batch, n, nnz, offsets, indices, values, *parts, factors.P, factors.Q, handle
    )
    solver.call("cusolverRfBatchAnalyze", handle)
    solver.call("cusolverRfBatchResetValues", batch, n, nnz, offsets, indices, values, factors.P, factors.Q, handle)
    solver.call("cusolverRfBatchRefactor", handle)
    positions = solver.zeros(numpy.int32, batch)
    solver.call("cusolverRfBatchZeroPivot", handle, positions)
    assert (positions == -1).all()
    b = [random_array(GENERATOR, numpy.float64, n) for _ in range(batch)]
    x = [solver.device(each) for each in b]
    work = solver.zeros(numpy.float64, 2 * n * batch)
    solver.call("cusolverRfBatchSolve", handle, factors.P, factors.Q, 1, work, n, solver.pointers(*x), n)
    for one, solution, right in zip(matrices, x, b):
        assert residual(one, solution, right) < 1e5
    matrices[1].data[:] = 0
    values = solver.pointers(*(solver.device(each.data) for each in matrices))
    solver.call("cusolverRfBatchResetValues", batch, n, nnz, offsets, indices, values, factors.P, factors.Q, handle)
    solver.call("cusolverRfBatchRefactor", handle)
    assert solver.status("cusolverRfBatchZeroPivot", handle, positions) == 10
    assert list(positions) == [-1, 0, -1]


def test_small_pivots_are_boosted_if_asked(solver: Sparse) -> None:
    matrix = scipy.sparse.csr_matrix(numpy.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]]))
    factors = Factors(solver, matrix)
    handle, report = ctypes.c_void_p(), solver.number()
    solver.call("cusolverRfCreate", ctypes.byref(handle))
    solver.call("cusolverRfSetMatrixFormat", handle, 0, 2)
    solver.call("cusolverRfSetNumericProperties", handle, ctypes.c_double(1e-3), ctypes.c_double(0.5))
    nnz, offsets, indices, values = arrays_of(solver, matrix, False)
    parts = factors.changed(solver, False, 2)
    solver.call("cusolverRfSetupHost", 3, nnz, offsets, indices, values, *parts, factors.P, factors.Q, handle)
    solver.call("cusolverRfAnalyze", handle)
    for first, used in ((4.0, 0), (1e-5, 1)):
        values[0] = first
        solver.call("cusolverRfResetValues", 3, nnz, offsets, indices, values, factors.P, factors.Q, handle)
        solver.call("cusolverRfRefactor", handle)
        solver.call("cusolverRfGetNumericBoostReport", handle, report)
        assert report[0] == used
    solver.call("cusolverRfSetNumericProperties", handle, ctypes.c_double(0), ctypes.c_double(0))
    values[0] = 0
    solver.call("cusolverRfResetValues", 3, nnz, offsets, indices, values, factors.P, factors.Q, handle)
    assert solver.status("cusolverRfRefactor", handle) == 10  # ZERO_PIVOT


def test_wrong_descriptions_get_their_status(solver: Sparse) -> None:
    description = ctypes.c_void_p()
    solver.sparse.call("cusparseCreateMatDescr", ctypes.byref(description))
    solver.sparse.call("cusparseSetMatType", description, 1)
    nnz, _, values, offsets, columns = solver.csr(numpy.eye(3))
    call: Callable[..., int] = solver.status
    arguments = offsets, columns, solver.zeros(numpy.int32, 3)
    assert call("cusolverSpXcsrsymrcmHost", solver.handle, 3, nnz, description, *arguments) == WRONG_TYPE
