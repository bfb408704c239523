"""NVRTC and the driver interface's modules: compiled by cucc, kept by content, loaded from memory."""

import ctypes
import pathlib
import struct
from ctypes import byref, c_char_p, c_size_t, c_void_p
from typing import Any, List, NamedTuple, Tuple

import pytest

SOURCE = """
template <typename T>
__global__ void scale(const T* x, T* y, T factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}
__constant__ int offsets[3];
extern "C" __global__ void shift(char first, double* out, int index) { *out = first + offsets[index]; }
extern "C" __global__ void fill(int* out) { out[threadIdx.x] = VALUE + threadIdx.x; }
"""
COMPILATION, INVALID_OPTION, NOT_FOUND = 6, 5, 500
INVALID_IMAGE, INVALID_PTX, NO_BINARY, FILE_NOT_FOUND, NOT_SUPPORTED = 200, 218, 209, 301, 801


class Libraries(NamedTuple):
    rtc: Any
    driver: Any


@pytest.fixture(scope="module")
def libraries(sdk: pathlib.Path) -> Libraries:
    """Return the two libraries of CUDA 13."""
    folder = sdk / "lib" / "cuda13"
    loaded = Libraries(ctypes.CDLL(str(folder / "libnvrtc.so.13")), ctypes.CDLL(str(folder / "libcuda.so.1")))
    assert loaded.driver.cuInit(0) == 0
    return loaded


@pytest.fixture()
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a cache folder of the test's own."""
    monkeypatch.setenv("MACA_CACHE_DIR", str(tmp_path))
    return tmp_path / "nvrtc"


class Program:
    """A program of NVRTC, compiled."""

    def __init__(
        self,
        libraries: Libraries,
        source: str,
        options: Tuple[str, ...] = (),
        names: Tuple[str, ...] = (),
        **headers: str,
    ) -> None:
        self.rtc, self.handle = libraries.rtc, c_void_p()
        texts = (c_char_p * len(headers))(*[text.encode() for text in headers.values()])
        includes = (c_char_p * len(headers))(*[f"{name}.h".encode() for name in headers])
        created = self.rtc.nvrtcCreateProgram(
            byref(self.handle), source.encode(), b"my_program.cu", len(headers), texts, includes
        )
        assert created == 0
        for name in names:
            assert self.rtc.nvrtcAddNameExpression(self.handle, name.encode()) == 0
        words = (c_char_p * len(options))(*[option.encode() for option in options])
        self.status = self.rtc.nvrtcCompileProgram(self.handle, len(options), words)

    def text(self, what: str) -> bytes:
        size = c_size_t()
        assert getattr(self.rtc, f"nvrtcGet{what}Size")(self.handle, byref(size)) == 0
        buffer = ctypes.create_string_buffer(size.value)
        assert getattr(self.rtc, f"nvrtcGet{what}")(self.handle, buffer) == 0
        return buffer.raw

    @property
    def log(self) -> str:
        return self.text("ProgramLog").rstrip(b"\0").decode()

    def lowered(self, name: str) -> bytes:
        found = c_char_p()
        assert self.rtc.nvrtcGetLoweredName(self.handle, name.encode(), byref(found)) == 0
        assert found.value is not None
        return found.value


def load(libraries: Libraries, image: bytes) -> Tuple[int, c_void_p]:
    module = c_void_p()
    return libraries.driver.cuModuleLoadData(byref(module), image + b"\0" * 64), module


def launch(libraries: Libraries, module: c_void_p, name: bytes, threads: int, *arguments: Any) -> None:
    function = c_void_p()
    assert libraries.driver.cuModuleGetFunction(byref(function), module, name) == 0
    places = (c_void_p * len(arguments))(*[ctypes.cast(ctypes.pointer(a), c_void_p) for a in arguments])
    assert libraries.driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, places, None) == 0


def filled(libraries: Libraries, module: c_void_p) -> List[int]:
    """What the kernel `fill` writes."""
    memory, numbers = c_void_p(), (ctypes.c_int * 4)()
    assert libraries.driver.cuMemAlloc_v2(byref(memory), c_size_t(16)) == 0
    launch(libraries, module, b"fill", 4, memory)
    assert libraries.driver.cuMemcpyDtoH_v2(numbers, memory, c_size_t(16)) == 0
    assert libraries.driver.cuMemFree_v2(memory) == 0
    return list(numbers)


def shifted(libraries: Libraries, module: c_void_p) -> float:
    """What the kernel `shift` writes, its arguments packed into one buffer, its variable set through the module."""
    driver, place, bytes_, memory = libraries.driver, c_void_p(), c_size_t(), c_void_p()
    assert driver.cuModuleGetGlobal_v2(byref(place), byref(bytes_), module, b"offsets") == 0 and bytes_.value == 12
    assert driver.cuMemcpyHtoD_v2(place, (ctypes.c_int * 3)(1, 2, 100), c_size_t(12)) == 0
    assert driver.cuMemAlloc_v2(byref(memory), c_size_t(8)) == 0
    packed = ctypes.create_string_buffer(struct.pack("@bPi", 5, memory.value, 2))
    length, function = c_size_t(len(packed) - 1), c_void_p()
    extra = (c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(length), 0)
    assert driver.cuModuleGetFunction(byref(function), module, b"shift") == 0
    assert driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, extra) == 0
    result = ctypes.c_double()
    assert driver.cuMemcpyDtoH_v2(byref(result), memory, c_size_t(8)) == 0
    return result.value


def test_a_module_runs_in_both_forms_and_names_its_templates(libraries: Libraries, cache: pathlib.Path) -> None:
    name = "scale<double>"
    program = Program(libraries, SOURCE, ("--gpu-architecture=sm_80", "-DVALUE=7", "-default-device"), (name,))
    assert program.status == 0, program.log
    for form in ("PTX", "CUBIN"):
        status, module = load(libraries, program.text(form))
        assert status == 0 and filled(libraries, module) == [7, 8, 9, 10]
        memory, numbers = c_void_p(), (ctypes.c_double * 3)(1, 2, 3)
        assert libraries.driver.cuMemAlloc_v2(byref(memory), c_size_t(24)) == 0
        assert libraries.driver.cuMemcpyHtoD_v2(memory, numbers, c_size_t(24)) == 0
        launch(libraries, module, program.lowered(name), 32, memory, memory, ctypes.c_double(0.5), ctypes.c_int(3))
        assert libraries.driver.cuMemcpyDtoH_v2(numbers, memory, c_size_t(24)) == 0
        assert list(numbers) == [0.5, 1.0, 1.5]
        assert shifted(libraries, module) == 105.0
        assert libraries.driver.cuModuleGetFunction(byref(c_void_p()), module, b"absent") == NOT_FOUND
        assert libraries.driver.cuModuleUnload(module) == 0


def test_equal_content_is_compiled_once_and_changed_headers_again(libraries: Libraries, cache: pathlib.Path) -> None:
    header = cache.parent / "value.h"

    def value() -> int:
        program = Program(libraries, '#include "value.h"\n' + SOURCE, (f"-I{cache.parent}",))
        assert program.status == 0, program.log
        return filled(libraries, load(libraries, program.text("PTX"))[1])[0]

    header.write_text("#define VALUE 1\n")
    assert value() == 1
    (made,) = cache.glob("*.so")
    before = made.stat().st_mtime_ns
    assert value() == 1 and made.stat().st_mtime_ns == before
    header.write_text("#define VALUE 22\n")
    assert value() == 22
    # A damaged file is made again, and never loaded.
    made.write_bytes(made.read_bytes()[:-100])
    assert value() == 22


def test_headers_that_are_given_as_text_are_found(libraries: Libraries, cache: pathlib.Path) -> None:
    program = Program(libraries, '#include "given.h"\n' + SOURCE, (), (), given="#define VALUE 5\n")
    assert program.status == 0, program.log
    assert filled(libraries, load(libraries, program.text("CUBIN"))[1])[0] == 5


def test_an_error_is_shown_at_the_programs_name_and_line(libraries: Libraries, cache: pathlib.Path) -> None:
    program = Program(libraries, "__global__ void wrong(int* x) {\n  *x = nowhere;\n}\n")
    assert program.status == COMPILATION and "my_program.cu:2:" in program.log and "nowhere" in program.log
    assert libraries.rtc.nvrtcGetPTXSize(program.handle, byref(c_size_t())) != 0
    refused = Program(libraries, SOURCE, ("-dlto",))
    assert refused.status == INVALID_OPTION and "-dlto" in refused.log


def test_what_is_no_module_is_refused_as_what_it_is(libraries: Libraries, tmp_path: pathlib.Path) -> None:
    gpu = b"\x7fELF\x02\x01\x01" + b"\0" * 9 + (2).to_bytes(2, "little") + (190).to_bytes(2, "little") + b"\0" * 64
    for image, status in (
        (b".version 7.0\n.target sm_80\n", INVALID_PTX),
        (gpu, NO_BINARY),
        (b"\x50\xed\x55\xba" + b"\0" * 64, NO_BINARY),
        (b"nothing at all", INVALID_IMAGE),
    ):
        assert load(libraries, image)[0] == status
    assert libraries.driver.cuModuleLoad(byref(c_void_p()), str(tmp_path / "absent").encode()) == FILE_NOT_FOUND
    assert libraries.driver.cuLinkCreate_v2(0, None, None, byref(c_void_p())) == NOT_SUPPORTED


def test_a_cache_that_cannot_be_written_is_said(run_python: Any, sdk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    code = f"""
import ctypes
rtc, handle = ctypes.CDLL({str(sdk / "lib" / "cuda13" / "libnvrtc.so.13")!r}), ctypes.c_void_p()
source = b"__global__ void nothing() {{}}"
assert rtc.nvrtcCreateProgram(ctypes.byref(handle), source, None, 0, None, None) == 0
print(rtc.nvrtcCompileProgram(handle, 0, None))
"""
    said = run_python(code, MACA_CACHE_DIR=str(blocked)).splitlines()
    assert said[-1] == "0" and str(blocked) in said[0] and "MACA_CACHE_DIR" in said[0]
