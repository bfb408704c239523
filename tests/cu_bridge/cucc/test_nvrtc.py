"""NVRTC and the driver interface's modules: compiled by cucc, kept by content, loaded from memory."""

import ctypes
import hashlib
import hmac
import os
import pathlib
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_char_p, c_size_t, c_void_p
from typing import Any, Callable, List, NamedTuple, Tuple

import pytest
from compiling import Cucc

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
INVALID_IMAGE, INVALID_PTX, NO_BINARY, FILE_NOT_FOUND = 200, 218, 209, 301


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
    """Return a cache folder of the test's own, which has a key of its own."""
    monkeypatch.setenv("MACA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))
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
    (made,) = cache.iterdir()
    before = made.stat().st_ino, made.stat().st_mtime_ns
    assert value() == 1 and (made.stat().st_ino, made.stat().st_mtime_ns) == before
    header.write_text("#define VALUE 22\n")
    assert value() == 22
    # The same length and the same time, as an unpacked archive has them: it is another file all the same.
    times = header.stat()
    header.write_text("#define VALUE 33\n")
    os.utime(header, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert value() == 33


def test_kernels_may_read_memory_through_other_types(libraries: Libraries, cache: pathlib.Path) -> None:
    source = """
extern "C" __global__ void copy(const float* in, float* out) {
  uint4 words = reinterpret_cast<const uint4*>(in)[threadIdx.x];
  const float* const values = reinterpret_cast<float*>(&words);
  for (int k = 0; k < 4; ++k) out[4 * threadIdx.x + k] = values[k];
}
"""
    program = Program(libraries, source, ("--std=c++17",))
    assert program.status == 0, program.log
    _, module = load(libraries, program.text("CUBIN"))
    memory, numbers = c_void_p(), (ctypes.c_float * 256)(*range(128), *[-1] * 128)
    assert libraries.driver.cuMemAlloc_v2(byref(memory), c_size_t(1024)) == 0
    assert libraries.driver.cuMemcpyHtoD_v2(memory, numbers, c_size_t(1024)) == 0
    launch(libraries, module, b"copy", 32, memory, c_void_p((memory.value or 0) + 512))
    assert libraries.driver.cuMemcpyDtoH_v2(numbers, memory, c_size_t(1024)) == 0
    assert list(numbers[128:]) == list(range(128))


def test_programs_may_fill_namespace_std(libraries: Libraries, cache: pathlib.Path) -> None:
    source = """
    #include <math.h>
    namespace mine {
    template <class A, class B> struct pair { A first; B second; };
    template <class T> struct numeric_limits { static constexpr int found = 1; };
    template <class T> T&& declval() noexcept;
    template <class T> struct only_here { static constexpr int value = 20; };
    struct box { int kept; };
    template <int place> int get(box b) { return b.kept + place; }
    }
    #include <limits>
    #include <utility>
    namespace std {
      using mine::pair;
      using mine::numeric_limits; using ::mine::declval;
      using mine::only_here;
      using mine::get;
    }
    namespace other { using mine::pair; }
    extern "C" __global__ void fill(int* out) {
      const std::pair<int, float> p{1, 2.5f};
      const other::pair<int, int> q{3, 4};
      out[0] = p.first + static_cast<int>(std::is_same<decltype(std::declval<int>()), int&&>::value);
      out[1] = std::only_here<int>::value + q.second;
      out[2] = std::numeric_limits<int>::max() == 2147483647 ? 5 : 0;
      out[3] = std::get<2>(mine::box{40});
    }
    """
    program = Program(libraries, source, ("--std=c++17",))
    assert program.status == 0, program.log
    _, module = load(libraries, program.text("CUBIN"))
    assert filled(libraries, module) == [2, 24, 5, 42]


@pytest.mark.parametrize("file", ["driver.py", "rewriting/phases.py", "rewriting/assembly/memory.py"])
def test_another_compiler_compiles_anew(
    libraries: Libraries, cache: pathlib.Path, sdk: pathlib.Path, file: str
) -> None:
    def inode() -> int:
        assert Program(libraries, "__global__ void nothing() {}").status == 0
        (made,) = cache.iterdir()
        return made.stat().st_ino

    first = inode()
    assert inode() == first
    part = sdk / "cucc" / file
    os.utime(part, ns=(part.stat().st_atime_ns, part.stat().st_mtime_ns))  # as a copy over it would, but harmless
    assert inode() != first


# ---- Who may write to the cache --------------------------------------------------------------------------------------

COMPILE = """
import ctypes
rtc, cuda = (ctypes.CDLL({folder!r} + name) for name in ("/libnvrtc.so.13", "/libcuda.so.1"))
handle, size = ctypes.c_void_p(), ctypes.c_size_t()
source = b"extern {linkage} __global__ void fill(int* out) {{ *out = {number}; }}"
assert rtc.nvrtcCreateProgram(ctypes.byref(handle), source, None, 0, None, None) == 0
assert rtc.nvrtcCompileProgram(handle, 0, None) == 0
assert rtc.nvrtcGetCUBINSize(handle, ctypes.byref(size)) == 0
image = ctypes.create_string_buffer(size.value + 64)
assert rtc.nvrtcGetCUBIN(handle, image) == 0
place, module, function, result = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(-1)
assert cuda.cuInit(0) == 0 and cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fill") == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(4)) == 0
arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(place), ctypes.c_void_p))
assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == 0
assert cuda.cuMemcpyDtoH_v2(ctypes.byref(result), place, ctypes.c_size_t(4)) == 0
print(result.value)
"""
OTHER_USER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
Compile = Callable[..., List[str]]


@pytest.fixture()
def compiled(run_python: Callable[..., str], sdk: pathlib.Path, cache: pathlib.Path) -> Compile:
    """Return a function that compiles a program in a process of its own and returns what it says and its result."""

    def run(number: int = 5, **variables: str) -> List[str]:
        code = COMPILE.format(folder=str(sdk / "lib" / "cuda13"), linkage='\\"C\\"', number=number)
        own = {"MACA_CACHE_DIR": str(cache.parent), "XDG_STATE_HOME": str(cache.parent / "state-home")}
        return run_python(code, **{**own, **variables}).splitlines()

    return run


def _cut(entry: pathlib.Path) -> None:
    entry.write_bytes(entry.read_bytes()[:-100])


def _empty(entry: pathlib.Path) -> None:
    entry.write_bytes(b"")


def _flip(entry: pathlib.Path) -> None:
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)


def _seal_with_another_key(entry: pathlib.Path) -> None:
    """What someone writes who knows the form, but cannot read the key."""
    form, content = entry.read_bytes().split(b"\n", 1)
    content = content[32:].replace(b"fill", b"kill")
    message = entry.name.encode() + b"\n" + content
    entry.write_bytes(form + b"\n" + hmac.new(b"k" * 32, message, hashlib.sha256).digest() + content)


def _another_program(entry: pathlib.Path) -> None:
    other = max(entry.parent.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert other != entry
    shutil.copyfile(other, entry)


def _link(entry: pathlib.Path) -> None:
    entry.rename(entry.parent.parent / "elsewhere")
    entry.symlink_to(entry.parent.parent / "elsewhere")


def _open_to_others(entry: pathlib.Path) -> None:
    entry.chmod(0o666)


def _of_another_user(entry: pathlib.Path) -> None:
    os.chown(entry, OTHER_USER, -1)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (_cut, "damaged"),
        (_empty, "damaged"),
        (_flip, "damaged"),
        (_seal_with_another_key, "damaged"),
        (_another_program, "damaged"),
        (_link, "symbolic link"),
        (_open_to_others, "mode 0666"),
        pytest.param(_of_another_user, f"user {OTHER_USER}", marks=needs_root),
    ],
)
def test_a_module_that_this_user_did_not_leave_so_is_compiled_anew(
    compiled: Compile, cache: pathlib.Path, change: Callable[[pathlib.Path], None], word: str
) -> None:
    assert compiled() == ["5"]
    (entry,) = cache.iterdir()
    assert compiled(6) == ["6"]
    change(entry)
    said = compiled()
    assert said[-1] == "5" and len(said) == 2 and word in said[0] and str(entry) in said[0] and "anew" in said[0]
    # It is replaced by a right one.
    assert not entry.is_symlink() and entry.stat().st_mode & 0o777 == 0o600 and entry.stat().st_uid == os.geteuid()
    before = entry.stat().st_ino
    assert compiled() == ["5"] and entry.stat().st_ino == before


def _writable(folder: pathlib.Path) -> None:
    folder.chmod(0o777)


def _writable_by_the_group(folder: pathlib.Path) -> None:
    folder.chmod(0o770)


def _writable_above(folder: pathlib.Path) -> None:
    folder.chmod(0o700)
    folder.parent.chmod(0o777)


def _linked(folder: pathlib.Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


def _a_file(folder: pathlib.Path) -> None:
    folder.rmdir()
    folder.write_text("no folder")


def _of_another_users(folder: pathlib.Path) -> None:
    os.chown(folder, OTHER_USER, -1)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (_writable, "mode 0777"),
        (_writable_by_the_group, "mode 0770"),
        (_writable_above, "everybody"),
        (_linked, ""),
        (_a_file, ""),
        pytest.param(_of_another_users, f"user {OTHER_USER}", marks=needs_root),
    ],
)
def test_a_cache_folder_that_others_can_fill_is_not_used(
    compiled: Compile, cache: pathlib.Path, change: Callable[[pathlib.Path], None], word: str
) -> None:
    assert cache.parent.stat().st_mode & 0o022 == 0
    cache.mkdir()
    change(cache)
    for _ in range(2):
        said = compiled()
        assert said[-1] == "5" and len(said) == 2 and word in said[0] and "MACA_CACHE_DIR" in said[0]
        assert str(cache.parent) in said[0] and not (cache.is_dir() and list(cache.iterdir()))


def test_the_cache_and_its_key_are_private_whatever_the_mask_says(compiled: Compile, cache: pathlib.Path) -> None:
    old = os.umask(0)
    try:
        cache.parent.chmod(0o700)
        assert compiled() == ["5"]
    finally:
        os.umask(old)
    key = cache.parent / "state-home" / "mxmaca" / "cache.key"
    modes = [path.stat().st_mode & 0o777 for path in (cache, *cache.iterdir(), key.parent, key)]
    assert modes == [0o700, 0o600, 0o700, 0o600]


def test_without_a_key_of_this_users_own_nothing_is_kept(compiled: Compile, cache: pathlib.Path) -> None:
    assert compiled() == ["5"]
    (entry,) = cache.iterdir()
    key = cache.parent / "state-home" / "mxmaca" / "cache.key"
    key.chmod(0o644)
    said = compiled()
    assert said[-1] == "5" and len(said) == 2 and str(key) in said[0] and "XDG_STATE_HOME" in said[0]
    # A lost key: what it sealed is worth nothing. One that was cut short counts as lost.
    for lose in (key.unlink, lambda: key.write_bytes(b"short")):
        lose()
        before = entry.stat().st_ino
        said = compiled()
        assert said[-1] == "5" and len(said) == 2 and str(entry) in said[0] and entry.stat().st_ino != before
        assert len(key.read_bytes()) == 32 and compiled() == ["5"]
    (cache.parent / "no folder").write_text("")
    said = compiled(XDG_STATE_HOME=str(cache.parent / "no folder"))
    assert said[-1] == "5" and len(said) == 2 and str(cache.parent / "no folder") in said[0]


def test_processes_that_start_together_agree_on_the_key(compiled: Compile, cache: pathlib.Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compiled, range(4))) == [[str(number)] for number in range(4)]
    assert len(list(cache.iterdir())) == 4
    assert [compiled(number) for number in range(4)] == [[str(number)] for number in range(4)]


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
    link, ptx = c_void_p(), b".version 7.0\n.target sm_80\n"
    assert libraries.driver.cuLinkCreate_v2(0, None, None, byref(link)) == 0
    assert libraries.driver.cuLinkAddData_v2(link, 1, ptx, c_size_t(len(ptx)), b"", 0, None, None) == INVALID_PTX
    assert libraries.driver.cuLinkDestroy(link) == 0


@pytest.mark.parametrize("form", ["CUBIN", "PTX"])
def test_one_module_is_linked_as_it_is(
    libraries: Libraries, sdk: pathlib.Path, tmp_path: pathlib.Path, cache: pathlib.Path, form: str
) -> None:
    linker = ctypes.CDLL(str(sdk / "lib" / "cuda13" / "libnvJitLink.so.13"))
    program = Program(libraries, SOURCE, ("-DVALUE=70", "--gpu-architecture=compute_80"))
    assert program.status == 0, program.log
    image, link, options = program.text(form), c_void_p(), (c_char_p * 2)(b"-arch=sm_80", b"-lto")

    def result(what: str) -> bytes:
        size = c_size_t()
        assert getattr(linker, f"nvJitLinkGet{what}Size")(link, byref(size)) == 0
        buffer = ctypes.create_string_buffer(size.value)
        assert getattr(linker, f"nvJitLinkGet{what}")(link, buffer) == 0
        return buffer.raw

    assert linker.nvJitLinkCreate(byref(link), 2, options) == 0
    assert linker.nvJitLinkAddData(link, 10, b".version 8.0\n.target sm_80\n", c_size_t(28), None) == 4
    assert b"PTX cannot run on this device" in result("ErrorLog")
    file = tmp_path / "module"
    file.write_bytes(image)
    assert linker.nvJitLinkAddFile(link, 10, str(file).encode()) == 0
    assert linker.nvJitLinkAddData(link, 10, image, c_size_t(len(image)), b"second") == 6
    assert b"modules that are linked with each other" in result("ErrorLog")
    assert linker.nvJitLinkComplete(link) == 0
    for linked in result("LinkedCubin"), result("LinkedPtx"):
        status, module = load(libraries, linked)
        assert status == 0
        assert filled(libraries, module) == [70, 71, 72, 73]
    assert linker.nvJitLinkDestroy(byref(link)) == 0 and link.value is None


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


def test_it_compiles_where_no_python_is_on_the_path(run_python: Any, sdk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for tool in ("g++", "as", "ld", "nm", "objcopy", "objdump"):
        (tmp_path / tool).symlink_to(shutil.which(tool))  # type: ignore[arg-type]
    code = f"""
import ctypes
rtc, handle = ctypes.CDLL({str(sdk / "lib" / "cuda13" / "libnvrtc.so.13")!r}), ctypes.c_void_p()
source = b"__global__ void nothing() {{}}"
assert rtc.nvrtcCreateProgram(ctypes.byref(handle), source, None, 0, None, None) == 0
print(rtc.nvrtcCompileProgram(handle, 0, None))
"""
    assert run_python(code, MACA_CACHE_DIR=str(tmp_path / "cache"), PATH=str(tmp_path)).splitlines()[-1] == "0"


FAULT = """
import ctypes
dr = ctypes.CDLL({driver!r})
assert dr.cuInit(0) == 0
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert dr.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and dr.cuCtxSetCurrent(context) == 0
assert dr.cuModuleLoad(ctypes.byref(module), {image!r}) == 0
assert dr.cuModuleGetFunction(ctypes.byref(function), module, b"even") == 0
grid, size = ctypes.c_int(), ctypes.c_int()
occupancy = dr.cuOccupancyMaxPotentialBlockSize
assert occupancy(ctypes.byref(grid), ctypes.byref(size), function, None, ctypes.c_size_t(0), 100) == 0
assert size.value == 64 and grid.value % 32 == 0  # 32 blocks of two warps fill a multiprocessor, 21 of three do not
assert occupancy(ctypes.byref(grid), ctypes.byref(size), function, None, ctypes.c_size_t(0), 0) == 0
assert size.value == 1024
halves = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(lambda threads: 200000 if threads > 512 else 16)
assert occupancy(ctypes.byref(grid), ctypes.byref(size), function, halves, ctypes.c_size_t(0), 0) == 0
assert size.value <= 512
for value, launched, after in ((2, 0, 0), (3, 0, 710), (2, 710, 710)):
    number = ctypes.c_int(value)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(number))
    assert dr.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == launched, value
    assert dr.cuCtxSynchronize() == after, value
"""


def test_what_a_kernel_does_wrong_is_the_error_of_the_next_call(
    cucc: Cucc, sdk: pathlib.Path, tmp_path: pathlib.Path, run_python: Callable[..., str]
) -> None:
    source = tmp_path / "even.cu"
    source.write_text('extern "C" __global__ void even(int n) { assert(n % 2 == 0); }\n', encoding="utf-8")
    cucc("-cubin", source, "-o", tmp_path / "even.cubin")
    code = FAULT.replace("{driver!r}", repr(str(sdk / "lib" / "cuda13" / "libcuda.so.1")))
    run_python(code.replace("{image!r}", repr(str(tmp_path / "even.cubin").encode())))
