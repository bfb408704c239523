"""cuSPARSE's solvers of tridiagonal systems, against the equations that they solve."""

import ctypes
import pathlib
from typing import Any, Iterator, Tuple

import numpy
import pytest
from cusparse_calls import GENERATOR, INVALID, Sparse
from library_calls import TYPES, close, random_array, wide


@pytest.fixture(scope="module")
def sparse(sdk: pathlib.Path) -> Iterator[Sparse]:
    yield Sparse(sdk)


def solved(sparse: Sparse, name: str, *arguments: Any) -> None:
    bytes_ = ctypes.c_size_t()
    sparse.run(name + "_bufferSizeExt", *arguments, ctypes.byref(bytes_))
    sparse.run(name, *arguments, sparse.device(numpy.zeros(bytes_.value, numpy.uint8)))


def system(kind: Any, m: int, dominant: bool) -> Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """The three diagonals; what lies outside of the matrix must not be read."""
    lower, middle, upper = (random_array(GENERATOR, kind, m) for _ in range(3))
    middle += 5 * dominant
    lower[0] = upper[-1] = numpy.nan
    return lower, middle, upper


def dense(lower: numpy.ndarray, middle: numpy.ndarray, upper: numpy.ndarray) -> numpy.ndarray:
    return numpy.diag(wide(middle)) + numpy.diag(wide(lower[1:]), -1) + numpy.diag(wide(upper[:-1]), 1)


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("name", ["gtsv2", "gtsv2_nopivot"])
@pytest.mark.parametrize("m", [3, 4, 33])
def test_one_matrix_with_several_right_sides(sparse: Sparse, letter: str, name: str, m: int) -> None:
    kind = TYPES[letter]
    diagonals = system(kind, m, name != "gtsv2")
    if name == "gtsv2":
        diagonals[1][0] = 0  # no elimination without exchanges gets on from here
        diagonals[0][1:] += 2
    b = sparse.device(random_array(GENERATOR, kind, m + 1, 3))
    before = b.copy()
    solved(sparse, letter + name, m, 3, *(sparse.device(each) for each in diagonals), b, m + 1)
    matrix = dense(*diagonals)
    scale = float(numpy.linalg.cond(matrix.astype(complex)))
    close((matrix @ wide(b[:-1])).astype(kind), before[:-1], 100 * scale)
    assert (b[-1] == before[-1]).all()


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("way", ["strided", 0, 1, 2])
def test_batches_of_systems(sparse: Sparse, letter: str, way: Any) -> None:
    kind, m, count, stride = TYPES[letter], 7, 4, 9
    systems = [(*system(kind, m, True), random_array(GENERATOR, kind, m)) for _ in range(count)]
    arrays = []
    for place in range(4):
        if way == "strided":
            filled = numpy.zeros((count, stride), kind)
            filled[:, :m] = [each[place] for each in systems]
        else:
            filled = numpy.stack([each[place] for each in systems], axis=1)
        arrays.append(sparse.device(filled.reshape(-1)))
    if way == "strided":
        solved(sparse, letter + "gtsv2StridedBatch", m, *arrays, count, stride)
        found = arrays[3].reshape(count, stride)[:, :m]
    else:
        solved(sparse, letter + "gtsvInterleavedBatch", way, m, *arrays, count)
        found = arrays[3].reshape(m, count).T
    for (lower, middle, upper, right), x in zip(systems, found):
        close((dense(lower, middle, upper) @ wide(x)).astype(kind), right, 1e3)


def test_systems_are_large_enough_and_buffers_aligned(sparse: Sparse) -> None:
    three = [sparse.device(numpy.ones(4)) for _ in range(4)]
    room = sparse.device(numpy.zeros(256, numpy.uint8))
    assert sparse.status("cusparseDgtsv2", sparse.handle, 2, 1, *three, 4, room) == INVALID
    assert sparse.status("cusparseDgtsv2", sparse.handle, 4, 1, *three, 3, room) == INVALID
    assert sparse.status("cusparseDgtsv2", sparse.handle, 4, 1, *three, 4, room[8:]) == INVALID
    assert sparse.status("cusparseDgtsvInterleavedBatch", sparse.handle, 3, 4, *three, 1, room) == INVALID


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("m", [3, 4, 5, 40])
def test_systems_with_five_diagonals_in_an_interleaved_batch(sparse: Sparse, letter: str, m: int) -> None:
    kind, count = TYPES[letter], 3
    diagonals = {k: random_array(GENERATOR, kind, m, count) for k in (-2, -1, 0, 1, 2)}
    diagonals[0][0] = 0  # no elimination without exchanges gets on from here
    for k, values in diagonals.items():  # what lies outside of the matrix must not be read
        values[: max(-k, 0)] = numpy.nan
        values[m - max(k, 0) :] = numpy.nan
    x = random_array(GENERATOR, kind, m, count)
    right = x.copy()
    arrays = [sparse.device(each.T) for each in (*diagonals.values(), x)]  # the batch runs fastest
    solved(sparse, letter + "gpsvInterleavedBatch", 0, m, *arrays, count)
    for i in range(count):
        matrix = sum(numpy.diag(wide(each[max(-k, 0) : m - max(k, 0), i]), k) for k, each in diagonals.items())
        scale = float(numpy.linalg.cond(matrix.astype(complex)))
        close((matrix @ wide(arrays[-1][i])).astype(kind), right[:, i], 100 * scale)
