"""What the tests of cuSOLVER share: the library with a handle, and matrices of each kind."""

import ctypes
import pathlib
from typing import Any

import numpy
from library_calls import Library, random_array

INVALID, NOT_SUPPORTED = 3, 9
LOWER, UPPER = 0, 1
CODES = {"S": 0, "D": 1, "C": 4, "Z": 5}
GENERATOR = numpy.random.default_rng(5)


class Solver(Library):
    """cuSOLVER with one handle; what LAPACK reports is in `info`."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcusolver")
        self.handle = ctypes.c_void_p()
        self.call("cusolverDnCreate", ctypes.byref(self.handle))
        self.info = self.device(numpy.full(8, -9, numpy.int32))
        self.work = self.device(numpy.zeros(8))

    def run(self, name: str, *arguments: Any) -> None:
        self.call("cusolverDn" + name, self.handle, *arguments)

    def sized(self, name: str, *arguments: Any) -> int:
        """Ask a _bufferSize function."""
        size = ctypes.c_int(-1)
        self.run(name + "_bufferSize", *arguments, ctypes.byref(size))
        assert size.value > 0
        return size.value

    def random(self, kind: Any, *shape: int) -> numpy.ndarray:
        return self.device(random_array(GENERATOR, kind, *shape))

    def zeros(self, kind: Any, *shape: int) -> numpy.ndarray:
        return self.device(numpy.zeros(shape, kind))


def positive(kind: Any, n: int) -> numpy.ndarray:
    half = random_array(GENERATOR, kind, n, n)
    return (half @ half.conj().T + n * numpy.eye(n)).astype(kind)


def real_of(kind: Any) -> Any:
    return numpy.zeros(1, kind).real.dtype


def hermitian(kind: Any, n: int) -> numpy.ndarray:
    half = random_array(GENERATOR, kind, n, n)
    return half + half.conj().T
