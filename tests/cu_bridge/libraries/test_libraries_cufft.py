"""cuFFT transforms as numpy does in double: lengths, ranks, batches, layouts, types, in place."""

import ctypes
import pathlib
import subprocess
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy
import pytest
from compiling import Cucc
from library_calls import Library, close, random_array

C2C, R2C, C2R, Z2Z, D2Z, Z2D = 0x29, 0x2A, 0x2C, 0x69, 0x6A, 0x6C
R16F, C16F, C32F = 2, 6, 4
INVALID_PLAN, INVALID_TYPE, INVALID_VALUE, INVALID_SIZE = 1, 3, 4, 8
FORWARD, INVERSE = -1, 1
PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs" / "libraries"
GENERATOR = numpy.random.default_rng(3)


class Fft(Library):
    """cuFFT on arrays in C order."""

    def __init__(self, sdk: pathlib.Path) -> None:
        super().__init__(sdk, 13, "libcufft")

    def store(self, array: numpy.ndarray) -> numpy.ndarray:
        return self.device(array.reshape(-1)).reshape(array.shape)

    def many(self, n: Sequence[int], kind: int, batch: int = 1, input: Any = None, output: Any = None) -> ctypes.c_int:
        """Make a plan; `input` and `output` are (embed, stride, distance)."""
        plan = ctypes.c_int()
        sides: List[Any] = []
        for side in (input, output):
            embed, stride, distance = side or (None, 1, 0)
            sides += [None if embed is None else (ctypes.c_int * len(embed))(*embed), stride, distance]
        lengths = (ctypes.c_int * len(n))(*n)
        self.call("cufftPlanMany", ctypes.byref(plan), len(n), lengths, *sides, kind, batch)
        return plan


@pytest.fixture(scope="module")
def fft(sdk: pathlib.Path) -> Iterator[Fft]:
    yield Fft(sdk)


LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 30, 49, 61, 64, 67, 97, 121, 128, 143, 360, 1000, 1009, 1024, 2 * 1009, 4096]


@pytest.mark.parametrize("n", LENGTHS)
def test_every_kind_of_length(fft: Fft, n: int) -> None:
    batch = 2
    for complex_, real, forth, to_complex, to_real in (
        (numpy.complex64, numpy.float32, "C2C", "R2C", "C2R"),
        (numpy.complex128, numpy.float64, "Z2Z", "D2Z", "Z2D"),
    ):
        plan = ctypes.c_int()
        codes = {"C2C": C2C, "R2C": R2C, "C2R": C2R, "Z2Z": Z2Z, "D2Z": D2Z, "Z2D": Z2D}
        x = fft.store(random_array(GENERATOR, complex_, batch, n))
        y = fft.store(numpy.zeros((batch, n), complex_))
        fft.call("cufftPlan1d", ctypes.byref(plan), n, codes[forth], batch)
        fft.call("cufftExec" + forth, plan, x, y, FORWARD)
        close(y, numpy.fft.fft(x.astype(numpy.complex128)), 30)
        fft.call("cufftExec" + forth, plan, y, y, INVERSE)  # in place, and not scaled
        close(y, n * x.astype(numpy.complex128), 60)
        fft.call("cufftDestroy", plan)
        r = fft.store(random_array(GENERATOR, real, batch, n))
        half = fft.store(numpy.zeros((batch, n // 2 + 1), complex_))
        fft.call("cufftPlan1d", ctypes.byref(plan), n, codes[to_complex], batch)
        fft.call("cufftExec" + to_complex, plan, r, half)
        close(half, numpy.fft.rfft(r.astype(float)), 30)
        back = fft.store(numpy.zeros((batch, n), real))
        fft.call("cufftPlan1d", ctypes.byref(plan), n, codes[to_real], batch)
        fft.call("cufftExec" + to_real, plan, half, back)
        close(back, n * r.astype(float), 60)


@pytest.mark.parametrize("n", [(4, 6), (5, 7), (8, 9), (3, 4, 5), (4, 1, 6), (7, 5, 2)])
def test_two_and_three_dimensions(fft: Fft, n: Any) -> None:
    plan = ctypes.c_int()
    name = f"cufftPlan{len(n)}d"
    x = fft.store(random_array(GENERATOR, numpy.complex128, *n))
    y = fft.store(numpy.zeros(n, complex))
    fft.call(name, ctypes.byref(plan), *n, Z2Z)
    fft.call("cufftExecZ2Z", plan, x, y, FORWARD)
    close(y, numpy.fft.fftn(x))
    fft.call("cufftExecZ2Z", plan, x, y, INVERSE)
    close(y, numpy.fft.ifftn(x) * x.size)
    r = fft.store(random_array(GENERATOR, numpy.float64, *n))
    half = fft.store(numpy.zeros((*n[:-1], n[-1] // 2 + 1), complex))
    fft.call(name, ctypes.byref(plan), *n, D2Z)
    fft.call("cufftExecD2Z", plan, r, half)
    close(half, numpy.fft.rfftn(r))
    fft.call(name, ctypes.byref(plan), *n, Z2D)
    fft.call("cufftExecZ2D", plan, half, r)
    close(r, numpy.fft.irfftn(half, n, axes=range(len(n))) * r.size)


def test_strided_batches(fft: Fft) -> None:
    n, batch = (4, 6), 3
    source = fft.store(random_array(GENERATOR, numpy.complex64, 5, 8, 3))  # numbers 3 apart, embedded in 5 x 8
    target = fft.store(numpy.zeros((batch, 4, 7), numpy.complex64))
    plan = fft.many(n, C2C, batch, ((5, 8), 3, 1), ((4, 7), 1, 28))
    fft.call("cufftExecC2C", plan, source, target, FORWARD)
    for b in range(batch):
        close(target[b, :, :6], numpy.fft.fft2(source[:4, :6, b].astype(complex)))
    assert (target[:, :, 6] == 0).all()
    cube = (2, 3, 4)
    source = fft.store(random_array(GENERATOR, numpy.float32, 2, 2, 5, 6))
    target = fft.store(numpy.zeros((2, 2, 3, 4), numpy.complex64))
    plan = fft.many(cube, R2C, 2, ((2, 5, 6), 1, 60), ((2, 3, 4), 1, 24))
    fft.call("cufftExecR2C", plan, source, target)
    for b in range(2):
        close(target[b, :, :, :3], numpy.fft.rfftn(source[b, :, :3, :4].astype(float)))


@pytest.mark.parametrize("n", [(6,), (7,), (4, 6), (3, 4, 5)])
def test_real_rows_are_padded_in_place(fft: Fft, n: Any) -> None:
    batch = 2
    room = n[-1] // 2 + 1
    data = fft.store(numpy.zeros((batch, *n[:-1], 2 * room)))
    values = random_array(GENERATOR, numpy.float64, batch, *n)
    data[..., : n[-1]] = values
    fft.call("cufftExecD2Z", fft.many(n, D2Z, batch), data, data)
    axes = range(1, len(n) + 1)
    close(data.view(complex), numpy.fft.rfftn(values, axes=axes))
    fft.call("cufftExecZ2D", fft.many(n, Z2D, batch), data, data)
    close(data[..., : n[-1]].copy(), values * numpy.prod(n))


def xt_plan(fft: Fft, n: Sequence[int], kinds: Sequence[int], batch: int = 1) -> Optional[ctypes.c_int]:
    plan, size = ctypes.c_int(), ctypes.c_size_t(99)
    fft.call("cufftCreate", ctypes.byref(plan))
    lengths = (ctypes.c_longlong * len(n))(*n)
    one, none, many = ctypes.c_longlong(1), ctypes.c_longlong(0), ctypes.c_longlong(batch)
    side = None, one, none
    arguments = *side, kinds[0], *side, kinds[1], many, ctypes.byref(size), kinds[2]
    fft.call("cufftXtMakePlanMany", plan, len(n), lengths, *arguments)
    assert size.value == 0
    return plan


def test_types_chosen_at_run_time(fft: Fft) -> None:
    x = fft.store(random_array(GENERATOR, numpy.complex64, 3, 8))
    y = fft.store(numpy.zeros((3, 8), numpy.complex64))
    plan = xt_plan(fft, (8,), (C32F, C32F, C32F), 3)
    fft.call("cufftXtExec", plan, x, y, INVERSE)
    close(y, numpy.fft.ifft(x.astype(complex)) * 8)
    r = fft.store(random_array(GENERATOR, numpy.float16, 16))
    half = fft.store(numpy.zeros(18, numpy.float16))
    fft.call("cufftXtExec", xt_plan(fft, (16,), (R16F, C16F, C16F)), r, half, FORWARD)
    found = half.astype(float)
    close((found[::2] + 1j * found[1::2]).astype(numpy.complex64), numpy.fft.rfft(r.astype(float)), 1e4)


def test_what_cannot_be_done_says_so(fft: Fft) -> None:
    plan = ctypes.c_int()
    assert fft.status("cufftPlan1d", ctypes.byref(plan), 0, C2C, 1) == INVALID_SIZE
    assert fft.status("cufftPlan1d", ctypes.byref(plan), 8, 5, 1) == INVALID_TYPE
    assert fft.status("cufftPlan1d", ctypes.byref(plan), 8, C2C, 0) == INVALID_VALUE
    fft.call("cufftPlan1d", ctypes.byref(plan), 8, C2C, 1)
    data = fft.store(numpy.zeros(8, complex))
    assert fft.status("cufftExecZ2Z", plan, data, data, FORWARD) == INVALID_TYPE
    assert fft.status("cufftExecC2C", plan, data, data, 3) == INVALID_VALUE
    fft.call("cufftDestroy", plan)
    assert fft.status("cufftExecC2C", plan, data, data, FORWARD) == INVALID_PLAN
    assert fft.status("cufftDestroy", plan) == INVALID_PLAN


@pytest.mark.parametrize("libraries", [["-lcufft"], ["-lcufft_static", "-lculibos"]], ids=["shared", "static"])
def test_callbacks_read_and_write_the_elements(
    cucc: Cucc, environment: Dict[str, str], tmp_path: pathlib.Path, libraries: List[str]
) -> None:
    program = tmp_path / "fft_callbacks"
    cucc("-std=c++17", PROGRAMS / "fft_callbacks.cu", "-o", program, *libraries)
    done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
