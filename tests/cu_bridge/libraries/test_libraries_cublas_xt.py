"""cuBLASXt computes on matrices of the host and of the device; its handles keep their settings."""

import ctypes
import itertools
import pathlib
import subprocess
from typing import Any, Callable, Dict, Iterator

import numpy
import pytest
from cublas_calls import GENERATOR, INVALID, LEFT, LOWER, NOT_INITIALIZED, NOT_SUPPORTED, UPPER
from library_calls import TYPES, Library, close, find_openblas, operation, random_array, wide

GEMM, SYRK, MOST_OPERATIONS = 0, 1, 12


def size(value: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(value)


class BlasXt(Library):
    """cuBLASXt with one handle."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcublas")
        self.handle = ctypes.c_void_p()
        self.call("cublasXtCreate", ctypes.byref(self.handle))
        self.run("DeviceSelect", 1, numpy.zeros(1, numpy.int32))

    def run(self, name: str, *arguments: Any) -> None:
        self.call("cublasXt" + name, self.handle, *arguments)

    def fails(self, name: str, *arguments: Any) -> int:
        return self.status("cublasXt" + name, self.handle, *arguments)

    def random(self, where: str, kind: Any, rows: int, columns: int) -> numpy.ndarray:
        """A matrix in memory of the host or of the device, one of its rows unused."""
        array = numpy.asfortranarray(random_array(GENERATOR, kind, rows + 1, columns))
        return array if where == "host" else self.device(array)


@pytest.fixture(scope="module")
def xt(sdk: pathlib.Path) -> Iterator[BlasXt]:
    """Return cuBLASXt with a handle."""
    yield BlasXt(sdk)


def scalar(kind: Any, value: complex) -> numpy.ndarray:
    return numpy.array([value if numpy.dtype(kind).kind == "c" else value.real]).astype(kind)


def real(kind: Any, value: float) -> numpy.ndarray:
    return numpy.array([value]).astype(numpy.zeros(0, kind).real.dtype)


def triangle(uplo: int, matrix: numpy.ndarray, unit: bool = False) -> numpy.ndarray:
    result = numpy.tril(matrix) if uplo == LOWER else numpy.triu(matrix)
    if unit:
        numpy.fill_diagonal(result, 1)
    return result


def mirror(uplo: int, matrix: numpy.ndarray, hermitian: bool) -> numpy.ndarray:
    half = triangle(uplo, matrix)
    result = half + (half.conj().T if hermitian else half.T)
    numpy.fill_diagonal(result, numpy.diag(matrix).real if hermitian else numpy.diag(matrix))
    return result


def kinds(real_too: bool) -> str:
    return "SDCZ" if real_too else "CZ"


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("opa, opb", itertools.product([0, 1, 2], repeat=2))
def test_products(xt: BlasXt, letter: str, where: str, opa: int, opb: int) -> None:
    kind, m, n, k = TYPES[letter], 6, 5, 4
    a = xt.random(where, kind, *((m, k) if opa == 0 else (k, m)))
    b = xt.random(where, kind, *((k, n) if opb == 0 else (n, k)))
    c = xt.random(where, kind, m, n)
    alpha, beta = scalar(kind, 1.5 + 1j), scalar(kind, -0.5 + 0.25j)
    left, right = operation(opa, wide(a[:-1])), operation(opb, wide(b[:-1]))
    expected = alpha[0] * left @ right + beta[0] * wide(c[:-1])
    sizes = [size(each) for each in (m, n, k)]
    xt.run(letter + "gemm", opa, opb, *sizes, alpha, a, size(len(a)), b, size(len(b)), beta, c, size(len(c)))
    close(c[:-1], expected)


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("name, letter", [(n, t) for n in ("symm", "hemm", "spmm") for t in kinds(n != "hemm")])
@pytest.mark.parametrize("side, uplo", itertools.product([0, 1], repeat=2))
def test_products_with_a_symmetric_matrix(xt: BlasXt, name: str, letter: str, where: str, side: int, uplo: int) -> None:
    kind, m, n = TYPES[letter], 5, 4
    order = m if side == LEFT else n
    a, b, c = xt.random(where, kind, order, order), xt.random(where, kind, m, n), xt.random(where, kind, m, n)
    alpha, beta = scalar(kind, 1.5 + 1j), scalar(kind, -0.5 + 0.25j)
    full = mirror(uplo, wide(a[:-1]), name == "hemm")
    product = full @ wide(b[:-1]) if side == LEFT else wide(b[:-1]) @ full
    expected = alpha[0] * product + beta[0] * wide(c[:-1])
    matrix: Any = (a, size(len(a)))
    if name == "spmm":
        rows = [numpy.arange(j, order) if uplo == LOWER else numpy.arange(j + 1) for j in range(order)]
        packed = numpy.concatenate([a[rows[j], j] for j in range(order)])
        matrix = (packed if where == "host" else xt.device(packed),)
    xt.run(letter + name, side, uplo, size(m), size(n), alpha, *matrix, b, size(len(b)), beta, c, size(len(c)))
    close(c[:-1], expected)


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("name", ["syrk", "herk", "syr2k", "her2k", "syrkx", "herkx"])
@pytest.mark.parametrize("uplo, trans", itertools.product([0, 1], repeat=2))
def test_rank_updates(xt: BlasXt, name: str, where: str, uplo: int, trans: int) -> None:
    n, k, hermitian = 5, 3, name.startswith("he")
    for letter in kinds(not hermitian):
        kind = TYPES[letter]
        op = trans * (2 if hermitian else 1)
        a, b = (xt.random(where, kind, *((n, k) if op == 0 else (k, n))) for _ in range(2))
        if name.endswith("kx"):
            b[...] = a  # the product has to be symmetric
        c = xt.random(where, kind, n, n)
        alpha = real(kind, 1.5) if name == "herk" else scalar(kind, 1.5 + (0 if name == "herkx" else 1j))
        beta = real(kind, -0.5) if hermitian else scalar(kind, -0.5 + 0.25j)
        left, right = operation(op, wide(a[:-1])), operation(op, wide(b[:-1]))
        turn = numpy.conj if hermitian else numpy.array
        if name.endswith("r2k"):
            product = alpha[0] * left @ turn(right).T + turn(alpha)[0] * right @ turn(left).T
        else:
            product = alpha[0] * left @ turn(left if name.endswith("rk") else right).T
        before = wide(c[:-1])
        expected = product + beta[0] * (mirror(uplo, before, True) if hermitian else before)
        second = () if name.endswith("rk") else (b, size(len(b)))
        xt.run(letter + name, uplo, op, size(n), size(k), alpha, a, size(len(a)), *second, beta, c, size(len(c)))
        close(triangle(uplo, c[:-1]), triangle(uplo, expected))
        assert (triangle(1 - uplo, c[:-1]) - triangle(1 - uplo, before))[~numpy.eye(n, dtype=bool)].any() == 0


@pytest.mark.parametrize("letter", "SDCZ")
@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("side, uplo, trans, unit", itertools.product([0, 1], [0, 1], [0, 1, 2], [0, 1]))
def test_triangular_products_and_solves(
    xt: BlasXt, letter: str, where: str, side: int, uplo: int, trans: int, unit: int
) -> None:
    kind, m, n = TYPES[letter], 5, 4
    order = m if side == LEFT else n
    a, b, c = xt.random(where, kind, order, order), xt.random(where, kind, m, n), xt.random(where, kind, m, n)
    a[:-1] += 3 * numpy.eye(order, dtype=kind)
    alpha = scalar(kind, 1.5 + 1j)
    matrix = operation(trans, triangle(uplo, wide(a[:-1]), bool(unit)))
    head = side, uplo, trans, unit, size(m), size(n), alpha, a, size(len(a))
    xt.run(letter + "trmm", *head, b, size(len(b)), c, size(len(c)))
    before = wide(b[:-1])
    close(c[:-1], alpha[0] * (matrix @ before if side == LEFT else before @ matrix))
    xt.run(letter + "trsm", *head, b, size(len(b)))
    found = wide(b[:-1])
    close((matrix @ found if side == LEFT else found @ matrix).astype(kind), alpha[0] * before, 1e4)


def test_a_handle_keeps_its_settings(xt: BlasXt) -> None:
    value = ctypes.c_int()
    xt.run("GetBlockDim", ctypes.byref(value))
    assert value.value > 0
    xt.run("SetBlockDim", 512)
    xt.run("GetBlockDim", ctypes.byref(value))
    assert value.value == 512
    assert xt.fails("SetBlockDim", 0) == INVALID
    xt.run("SetPinningMemMode", 1)
    xt.run("GetPinningMemMode", ctypes.byref(value))
    assert value.value == 1
    assert xt.fails("DeviceSelect", 1, numpy.full(1, 99, numpy.int32)) == INVALID
    assert xt.fails("DeviceSelect", 2, numpy.zeros(2, numpy.int32)) == INVALID  # one device twice
    xt.run("SetCpuRoutine", GEMM, 0, None)
    xt.run("SetCpuRatio", GEMM, 0, ctypes.c_float(0.25))
    assert xt.fails("SetCpuRatio", GEMM, 0, ctypes.c_float(1.5)) == INVALID
    assert xt.fails("SetCpuRoutine", SYRK, 0, None) == NOT_SUPPORTED
    assert xt.fails("SetCpuRoutine", MOST_OPERATIONS, 0, None) == INVALID
    second = ctypes.c_void_p()
    xt.call("cublasXtCreate", ctypes.byref(second))
    xt.call("cublasXtDestroy", second)
    assert xt.status("cublasXtDestroy", second) == NOT_INITIALIZED
    assert xt.fails("Sgemm", 0, UPPER, *[size(0)] * 3, None, None, size(0)) == INVALID


PROGRAM = """
#include <cublasXt.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main() {
  cublasXtHandle_t handle;
  if (cublasXtCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 1;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return 2;
  std::vector<int> devices;
  for (int i = 0; i < count; ++i) devices.push_back(i);
  if (cublasXtDeviceSelect(handle, count, devices.data()) != CUBLAS_STATUS_SUCCESS) return 3;
  const int n = 64;
  std::vector<float> a(n * n), b(n * n), c(n * n), wanted(n * n);
  for (int i = 0; i < n * n; ++i) { a[i] = rand() % 7; b[i] = rand() % 5; c[i] = wanted[i] = rand() % 3; }
  const float alpha = 1, beta = 2;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[k * n + i] * b[j * n + k];
      wanted[j * n + i] = alpha * sum + beta * wanted[j * n + i];
    }
  }
  if (cublasXtSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, a.data(), n, b.data(), n, &beta, c.data(), n))
    return 4;
  if (cublasXtDestroy(handle) != CUBLAS_STATUS_SUCCESS) return 5;
  puts(c == wanted ? "equal" : "different");
  return count == 2 ? 0 : 6;
}
"""


def test_a_program_of_several_devices_multiplies_matrices_of_the_host(
    cucc: Callable[..., Any], tmp_path: pathlib.Path, environment: Dict[str, str], major: int
) -> None:
    source = tmp_path / "program.cu"
    source.write_text(PROGRAM, encoding="utf-8")
    program = tmp_path / "program"
    cucc(source, "-o", program, "-lcublas", CUCC_CUDA_MAJOR=str(major))
    variables = {**environment, "MACA_DEVICE_COUNT": "2", "MACA_BLAS_LIBRARY": find_openblas()}
    done = subprocess.run([str(program)], env=variables, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stdout + done.stderr
