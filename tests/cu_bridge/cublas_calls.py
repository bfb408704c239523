"""cuBLAS with a handle, and its numbers, for the tests of it."""

import ctypes
import pathlib
from typing import Any

import numpy
from library_calls import Library, random_array

INVALID, NOT_SUPPORTED, NOT_INITIALIZED = 7, 15, 1
LOWER, UPPER = 0, 1
LEFT, RIGHT = 0, 1
R32F, R64F, R16F, R8I, C32F, C64F, R32I, R16BF = 0, 1, 2, 3, 4, 5, 10, 14
COMPUTE_16F, COMPUTE_32F, COMPUTE_64F, COMPUTE_32I = 64, 68, 70, 72
GENERATOR = numpy.random.default_rng(7)


class Blas(Library):
    """cuBLAS with one handle."""

    def __init__(self, sdk: pathlib.Path, major: int = 13) -> None:
        super().__init__(sdk, major, "libcublas")
        self.handle = ctypes.c_void_p()
        assert self.library.cublasCreate_v2(ctypes.byref(self.handle)) == 0

    def run(self, name: str, *arguments: Any) -> None:
        self.call("cublas" + name, self.handle, *arguments)

    def fails(self, name: str, *arguments: Any) -> int:
        return self.status("cublas" + name, self.handle, *arguments)

    def random(self, kind: Any, *shape: int) -> numpy.ndarray:
        return self.device(random_array(GENERATOR, kind, *shape))

    def scalar(self, kind: Any, value: complex) -> numpy.ndarray:
        kind = numpy.dtype(kind)
        return numpy.array([value if kind.kind == "c" else value.real]).astype(kind)
