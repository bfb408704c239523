"""What the tests of the CUDA libraries share: loading them, memory of the device, calls that must succeed."""

import ctypes
import importlib.util
import os
import pathlib
from typing import Any, Tuple

import numpy

TYPES = {"S": numpy.float32, "D": numpy.float64, "C": numpy.complex64, "Z": numpy.complex128}


def find_openblas() -> str:
    """Path of OpenBLAS, for an SDK that does not lie in site-packages; empty where the package is missing."""
    spec = importlib.util.find_spec("scipy_openblas64")
    if spec is None or spec.origin is None:
        return ""
    return str(pathlib.Path(spec.origin).parent / "lib" / "libscipy_openblas64_.so")


class Library:
    """A library of the SDK, whose functions must return `success` (0) unless the call says otherwise."""

    def __init__(self, sdk: pathlib.Path, major: int, name: str) -> None:
        if find_openblas():
            os.environ.setdefault("MACA_BLAS_LIBRARY", find_openblas())
        folder = sdk / "lib" / f"cuda{major}"
        self.library = ctypes.CDLL(str(max(folder.glob(f"{name}.so.*"))))
        self.runtime = ctypes.CDLL(str(next(folder.glob("libcudart.so.*"))))

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function and return its status."""
        function = getattr(self.library, name)
        function.restype = ctypes.c_int
        return int(function(*(self.pass_on(argument) for argument in arguments)))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that must succeed."""
        status = self.status(name, *arguments)
        assert status == 0, f"{name} returned {status}"

    @staticmethod
    def pass_on(argument: Any) -> Any:
        """Arrays by their address; Python numbers as int, or as they are if they fit no int."""
        if isinstance(argument, numpy.ndarray):
            return ctypes.c_void_p(argument.ctypes.data)
        if isinstance(argument, int) and not -(2**31) <= argument < 2**31:
            return ctypes.c_int64(argument)
        return argument

    def device(self, array: Any) -> numpy.ndarray:
        """Copy an array, column-major if it is a matrix, into memory of the device."""
        array = numpy.asarray(array)
        pointer = ctypes.c_void_p()
        bytes_ = max(array.nbytes, 1)
        assert self.runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(bytes_)) == 0
        memory = (ctypes.c_char * bytes_).from_address(pointer.value)  # type: ignore[arg-type]
        result: numpy.ndarray = numpy.frombuffer(memory, array.dtype, array.size).reshape(array.shape, order="F")
        result[...] = array
        return result

    def pointers(self, *arrays: numpy.ndarray) -> numpy.ndarray:
        """An array of addresses, in memory of the device."""
        return self.device(numpy.array([array.ctypes.data for array in arrays], numpy.uint64))


def random_array(generator: numpy.random.Generator, kind: Any, *shape: int) -> numpy.ndarray:
    """Standard normal numbers of a real or complex type."""
    values = generator.standard_normal(shape)
    if numpy.issubdtype(kind, numpy.complexfloating):
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(kind)


def wide(array: numpy.ndarray) -> numpy.ndarray:
    """The same numbers in twice the precision, for a reference."""
    kinds = {"f": numpy.float64, "d": numpy.longdouble, "F": numpy.complex128, "D": numpy.clongdouble}
    return array.astype(kinds[array.dtype.char])


def close(found: numpy.ndarray, expected: Any, factor: float = 100) -> None:
    """Compare with a reference: within `factor` units of the type's last place, of the greatest element."""
    expected = numpy.asarray(expected)
    assert numpy.isfinite(numpy.asarray(found)).all()
    scale = max(float(numpy.abs(expected).max(initial=0)), 1e-30)
    error = float(numpy.abs(numpy.asarray(found) - expected).max(initial=0)) / scale
    limit = factor * float(numpy.finfo(found.dtype).eps)
    assert error <= limit, f"relative error {error:.3g}, allowed {limit:.3g}"


def operation(op: int, matrix: numpy.ndarray) -> numpy.ndarray:
    """Apply cuBLAS's operation N, T or C."""
    return (matrix, matrix.T, matrix.conj().T)[op]


Shape = Tuple[int, ...]
