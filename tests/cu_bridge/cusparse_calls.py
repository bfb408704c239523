"""cuSPARSE with a handle, its descriptors and its numbers, for the tests of it."""

import ctypes
import pathlib
from typing import Any, List

import numpy
import scipy.sparse
from library_calls import Library, random_array

INVALID, NOT_SUPPORTED = 3, 10
CODES = {numpy.dtype(numpy.float32): 0, numpy.dtype(numpy.float64): 1, numpy.dtype(numpy.float16): 2}
CODES.update({numpy.dtype(numpy.complex64): 4, numpy.dtype(numpy.complex128): 5, numpy.dtype(numpy.int8): 3})
CODES[numpy.dtype(numpy.int32)] = 10
INDICES = {numpy.dtype(numpy.int32): 2, numpy.dtype(numpy.int64): 3}
COLUMN, ROW = 1, 2
GENERATOR = numpy.random.default_rng(9)


def long(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


class Sparse(Library):
    """cuSPARSE with one handle; descriptors of arrays."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcusparse")
        self.handle = ctypes.c_void_p()
        self.call("cusparseCreate", ctypes.byref(self.handle))
        self.kept: List[Any] = []
        self.room = self.device(numpy.zeros(64, numpy.uint8))  # for functions whose buffer has no size to ask for

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        descriptor = ctypes.c_void_p()
        self.call("cusparseCreate" + name, ctypes.byref(descriptor), *arguments)
        return descriptor

    def keep(self, array: numpy.ndarray) -> numpy.ndarray:
        self.kept.append(self.device(array))
        return self.kept[-1]

    def matrix(
        self, dense: numpy.ndarray, kind: str = "Csr", index: Any = numpy.int32, base: int = 0
    ) -> ctypes.c_void_p:
        sizes = [long(each) for each in dense.shape]
        code, index_code = CODES[dense.dtype], INDICES[numpy.dtype(index)]
        if kind == "Coo":
            coo = scipy.sparse.coo_matrix(dense.astype(complex))
            order = GENERATOR.permutation(coo.nnz)  # any order will do
            rows, columns = coo.row[order], coo.col[order]
            arrays = [(rows + base).astype(index), (columns + base).astype(index), dense[rows, columns]]
            tail = index_code, base, code
        else:
            pressed = getattr(scipy.sparse, kind.lower() + "_matrix")(dense.astype(complex))
            values = pressed.data if numpy.iscomplexobj(dense) else pressed.data.real
            arrays = [(pressed.indptr + base).astype(index), (pressed.indices + base).astype(index)]
            arrays.append(values.astype(dense.dtype))
            tail = index_code, index_code, base, code
        nnz = long(len(arrays[2]))
        return self.made(kind, *sizes, nnz, *(self.keep(each) for each in arrays), *tail)

    def dense(self, array: numpy.ndarray, order: int = COLUMN) -> ctypes.c_void_p:
        rows, columns = array.shape if order == COLUMN else array.shape[::-1]
        return self.made("DnMat", long(rows), long(columns), long(array.shape[0]), array, CODES[array.dtype], order)

    def vector(self, array: numpy.ndarray) -> ctypes.c_void_p:
        return self.made("DnVec", long(len(array)), array, CODES[array.dtype])

    def run(self, name: str, *arguments: Any) -> None:
        self.call("cusparse" + name, self.handle, *arguments)

    def buffer(self, name: str, *arguments: Any) -> numpy.ndarray:
        size = ctypes.c_size_t()
        self.run(name + "_bufferSize", *arguments, ctypes.byref(size))
        return self.device(numpy.zeros(size.value, numpy.uint8))


def random_sparse(kind: Any, *shape: int) -> numpy.ndarray:
    result = random_array(GENERATOR, kind, *shape)
    result[GENERATOR.random(shape) < 0.6] = 0
    return result


def scalar(kind: Any, value: complex) -> numpy.ndarray:
    return numpy.array([value if numpy.dtype(kind).kind == "c" else value.real]).astype(kind)
