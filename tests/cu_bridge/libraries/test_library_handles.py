"""Handles and descriptors of the CUDA libraries are known by their kind, wherever they lie and whoever asks."""

import ctypes
import pathlib
import subprocess
import sys
import threading
from typing import Dict, List

import numpy
import pytest
from library_calls import Library

NOT_INITIALIZED, INVALID = 1, 7


@pytest.fixture()
def blas(sdk: pathlib.Path, major: int) -> Library:
    """Return cuBLAS."""
    return Library(sdk, major, "libcublas")


@pytest.fixture()
def lt(sdk: pathlib.Path, major: int) -> Library:
    """Return cuBLASLt."""
    return Library(sdk, major, "libcublasLt")


def created(library: Library, function: str) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    library.call(function, ctypes.byref(handle))
    return handle


def square(lt: Library, handle: ctypes.c_void_p, layout: ctypes.c_void_p) -> int:
    """Multiply a 2 x 2 matrix of one layout with itself; the product is right where the status is 0."""
    operation = ctypes.c_void_p()
    lt.call("cublasLtMatmulDescCreate", ctypes.byref(operation), 68, 0)
    a = lt.device(numpy.array([[1, 2], [3, 4]], numpy.float32, order="F"))
    out = lt.device(numpy.zeros((2, 2), numpy.float32))
    one, zero = numpy.ones(1, numpy.float32), numpy.zeros(1, numpy.float32)
    factors = one, a, layout, a, layout, zero, out, layout, out, layout
    status = lt.status("cublasLtMatmul", handle, operation, *factors, None, None, ctypes.c_size_t(0), None)
    lt.call("cublasLtMatmulDescDestroy", operation)
    if status == 0:
        assert (out == a @ a).all()
    return status


def new_layout(lt: Library) -> ctypes.c_void_p:
    layout = ctypes.c_void_p()
    sizes = ctypes.c_uint64(2), ctypes.c_uint64(2), ctypes.c_int64(2)
    lt.call("cublasLtMatrixLayoutCreate", ctypes.byref(layout), 0, *sizes)
    return layout


def test_a_handle_of_cublas_is_one_of_cublaslt_and_not_the_other_way_round(blas: Library, lt: Library) -> None:
    handle, light = created(blas, "cublasCreate_v2"), created(lt, "cublasLtCreate")
    layout = new_layout(lt)
    assert square(lt, light, layout) == square(lt, handle, layout) == 0
    version = ctypes.c_int()
    assert blas.status("cublasGetVersion_v2", light, ctypes.byref(version)) == NOT_INITIALIZED
    assert lt.status("cublasLtDestroy", handle) == NOT_INITIALIZED
    blas.call("cublasDestroy_v2", handle)
    assert square(lt, handle, layout) == NOT_INITIALIZED


def test_a_handle_of_one_library_is_none_of_another(sdk: pathlib.Path, major: int, blas: Library) -> None:
    handle, stream = created(blas, "cublasCreate_v2"), ctypes.c_void_p()
    for name, function, unknown in (
        ("libcusolver", "cusolverDnGetStream", 1),
        ("libcusparse", "cusparseGetStream", 1),
        ("libcudnn", "cudnnGetStream", 1001),
    ):
        assert Library(sdk, major, name).status(function, handle, ctypes.byref(stream)) == unknown


def test_descriptors_may_lie_in_the_callers_memory(lt: Library) -> None:
    handle = created(lt, "cublasLtCreate")
    memory = (ctypes.c_uint64 * 32)()
    here = ctypes.c_void_p(ctypes.addressof(memory))
    sizes = ctypes.c_uint64(2), ctypes.c_uint64(2), ctypes.c_int64(2)
    assert square(lt, handle, here) == INVALID  # memory alone is no descriptor
    lt.call("cublasLtMatrixLayoutInit_internal", here, ctypes.c_size_t(64), 0, *sizes)
    assert square(lt, handle, here) == 0
    lt.call("cublasLtMatmulDescInit_internal", here, ctypes.c_size_t(256), 68, 0)
    assert square(lt, handle, here) == INVALID  # it is one of another kind now


def test_a_destroyed_handle_stays_unknown_while_others_come(blas: Library) -> None:
    old = created(blas, "cublasCreate_v2")
    blas.call("cublasDestroy_v2", old)
    others = [created(blas, "cublasCreate_v2") for _ in range(100)]
    assert blas.status("cublasDestroy_v2", old) == NOT_INITIALIZED
    for handle in others:
        blas.call("cublasDestroy_v2", handle)


def test_threads_that_make_and_destroy_handles_do_not_meet(blas: Library) -> None:
    problems: List[str] = []
    kept = created(blas, "cublasCreate_v2")
    mode = ctypes.c_int()

    def work() -> None:
        for _ in range(500):
            mine = [ctypes.c_void_p() for _ in range(4)]
            found = [blas.library.cublasCreate_v2(ctypes.byref(handle)) for handle in mine]
            found += [blas.library.cublasGetMathMode(handle, ctypes.byref(ctypes.c_int())) for handle in [*mine, kept]]
            found += [blas.library.cublasDestroy_v2(handle) for handle in mine]
            if any(found):
                problems.append(str(found))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    blas.call("cublasGetMathMode", kept, ctypes.byref(mode))


CUDNN_8 = """
import ctypes, sys
old, new = (ctypes.CDLL(f"{sys.argv[1]}/libcudnn.so.{major}") for major in (8, 9))
old.cudnnGetVersion.restype = new.cudnnGetVersion.restype = ctypes.c_size_t
print(old.cudnnGetVersion() // 1000, new.cudnnGetVersion() // 10000)
# A bad argument, and a function that is refused.
print(old.cudnnCreate(None), new.cudnnCreate(None), old.cudnnGetRNNParamsSize())
tensor = ctypes.c_void_p()
print(old.cudnnCreateTensorDescriptor(ctypes.byref(tensor)), tensor.value is not None)
"""


def test_cudnn_8_says_its_own_version_and_statuses(sdk: pathlib.Path, environment: Dict[str, str]) -> None:
    command = [sys.executable, "-c", CUDNN_8, str(sdk / "lib" / "cuda12")]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    assert done.stdout.split("\n")[:3] == ["8 9", "3 2000 9", "0 True"]
    assert "libcudnn.so.8: cudnnGetRNNParamsSize is not implemented" in done.stderr
