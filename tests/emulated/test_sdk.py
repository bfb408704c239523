"""The SDK for aarch64: streams, graphs, memory, collectives and kernels do what they do on x86-64."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Sequence, Tuple

import compiling
import pytest
from test_object_code import KERNEL, PROLOGUE

from build_scripts.factory import elf
from build_scripts.platforms import oldest_system

Run = Callable[..., object]
PROGRAMS = compiling.pathlib.Path(compiling.__file__).parent / "programs"
KERNELS = PROGRAMS.parent / "kernels"
FILES = {path.stem: path for path in sorted([*KERNELS.glob("*.cu"), *(KERNELS / "phases").glob("*.cu")])}


@pytest.fixture
def compile_for(sdk: Path, cross_compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`compile_for(name, *libraries)`: a C++ program of tests/cu_bridge/programs, compiled for aarch64."""
    monkeypatch.setenv("CXX", cross_compiler)

    def compile_source(name: str, *libraries: str) -> Path:
        return compiling.compile_against(sdk, 13, PROGRAMS / name, libraries or ("libcudart",), tmp_path)

    return compile_source


@pytest.mark.parametrize(
    "name, libraries, arguments, devices",
    [
        ("streams.cpp", (), (), 2),
        ("pending.cpp", (), (), 1),
        ("threads.cpp", (), (), 2),
        ("stress.cpp", (), ("1",), 8),
        ("memory.cpp", (), (), 1),
    ],
)
def test_programs_of_the_runtime(
    compile_for: Callable[..., Path],
    run: Run,
    name: str,
    libraries: Sequence[str],
    arguments: Tuple[str, ...],
    devices: int,
) -> None:
    run(compile_for(name, *libraries), *arguments, MACA_DEVICE_COUNT=str(devices))


def test_a_graph_repeats_what_was_captured(compile_for: Callable[..., Path], run: Run, tmp_path: Path) -> None:
    dot = tmp_path / "graph.dot"
    run(compile_for("graphs.cpp"), str(dot))
    edges = re.findall(r"n(\d) -> n(\d);", dot.read_text(encoding="utf-8"))
    assert sorted(edges) == [("0", "1"), ("0", "2"), ("1", "2")]


def test_a_kernel_that_is_not_there_fails_by_name(compile_for: Callable[..., Path], run: Run) -> None:
    done = run(compile_for("missing_kernel.cpp", "libcudart", "libcuda"), "launch")
    assert "void demo::scale<float>(float*, int)" in done.stdout  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def cases(sdk: Path, cross_compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that all files of kernels/ make together. cucc itself runs on this machine."""
    folder = tmp_path_factory.mktemp("kernels")
    cucc = compiling.make_cucc(sdk)

    def compile_file(source: Path) -> Path:
        output = folder / f"{source.name}.o"
        cucc("-std=c++17", "-O1", "--extended-lambda", "-c", source, "-o", output, CXX=cross_compiler)
        return output

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_file, [KERNELS / "main.cpp", *FILES.values()]))
    cucc(*objects, "-o", folder / "cases", CXX=cross_compiler)
    return folder / "cases"


@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:1"])
@pytest.mark.parametrize("stem", FILES)
def test_kernels_compute_what_a_loop_on_the_host_computes(cases: Path, run: Run, stem: str, schedule: str) -> None:
    names = re.findall(r"^CASE\((\w+)\)", FILES[stem].read_text(encoding="utf-8"), re.MULTILINE)
    done = run(cases, *names, MACA_SCHEDULE=schedule)
    assert sorted(re.findall(r"^ok (\w+)$", done.stdout, re.MULTILINE)) == sorted(names)  # type: ignore[attr-defined]


def test_an_object_file_is_placed_and_run_without_a_linker(
    sdk: Path, cross_compiler: str, run_python: Run, tmp_path: Path
) -> None:
    """It is what Triton's compiler writes: references to itself, to the runtime and to the C library."""
    (tmp_path / "kernel.cpp").write_text(KERNEL, encoding="utf-8")
    command = [cross_compiler, "-std=c++17", "-O2", "-fPIC", "-fno-exceptions", f"-I{sdk / 'include'}", "-c"]
    compiling.subprocess.run([*command, "kernel.cpp", "-o", "kernel.o"], cwd=tmp_path, check=True, timeout=300)
    library = next((sdk / "lib" / "cuda13").glob("libcuda.so.*"))
    code = PROLOGUE.format(library=str(library), object=str(tmp_path / "kernel.o"))
    code += """
assert load(image) == 0, said(load(image))
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"sine") == 0
assert launch(0.5) == 0 and cuda.cuCtxSynchronize() == 0
assert same(values(), expected(0.5)), values()[:4]
print("placed")
"""
    assert "placed" in run_python(sdk.parent, code).stdout  # type: ignore[attr-defined]


def test_python_finds_the_sdk_and_the_driver_its_device(sdk: Path, run_python: Run) -> None:
    code = """
import ctypes, mxmaca
cuda = ctypes.CDLL(str(mxmaca.root() / "lib" / "cuda13" / "libcuda.so.1"))
count, name = ctypes.c_int(), ctypes.create_string_buffer(100)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
assert cuda.cuDeviceGetName(name, 100, 0) == 0
print(count.value, name.value.decode())
"""
    assert run_python(sdk.parent, code, MACA_DEVICE_COUNT="3").stdout.startswith("3 ")  # type: ignore[attr-defined]


def test_every_library_is_for_aarch64_and_loads_on_the_oldest_system(sdk: Path) -> None:
    libraries = [path for path in (sdk / "lib").rglob("lib*.so*") if path.is_file()]
    assert len(libraries) > 20
    for path in libraries:
        with elf.open_elf(path) as library:
            assert library.machine == 183, path.name
            # Systems for Arm have pages of up to 64 KiB.
            loads = [segment for segment in library.segments if segment.type == elf.PT_LOAD]
            assert all(segment.align >= 0x10000 for segment in loads), path.name
            newer = [version for version in library.needed_versions() if not oldest_system().has(version)]
            assert not newer, f"{path.name}: {newer}"
    assert os.access(str(sdk / "bin" / "cucc"), os.X_OK)
