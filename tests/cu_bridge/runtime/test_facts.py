"""cu_bridge/facts is the one place of limits, attributes and versions: libraries, headers and cucc say what it says."""

import pathlib
import re
import subprocess
import sys
from typing import Callable, Dict, List

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
SDK = REPOSITORY / "cu_bridge"
SOURCES = (".h", ".cpp", ".cuh", ".inc", ".py")


def table(name: str) -> List[List[str]]:
    lines = (SDK / "facts" / name).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")] for line in lines if not line.startswith("#")]


def limits() -> Dict[str, int]:
    return {name: int(text[:-3]) << 10 if text.endswith("KiB") else int(text) for name, text, _ in table("limits.txt")}


def numbers(major: int) -> Dict[str, int]:
    """The version numbers of a CUDA release by their macros."""
    found = {}
    for row in table("versions.txt"):
        parts = zip(row[4 if major == 12 else 5].split("."), row[3].split())
        found[row[2]] = sum(int(part) * int(factor) for part, factor in parts)
    return found


VERSIONS = """
import ctypes, pathlib, sys
folder = pathlib.Path(sys.argv[1])
number = ctypes.c_int()
def load(name):
    return ctypes.CDLL(str(max(folder.glob(name if ".so" in name else name + ".so*"))))
def ask(library, function, *first):
    assert getattr(load(library), function)(*first, ctypes.byref(number)) == 0
    return number.value
def returned(library, function):
    call = getattr(load(library), function)
    call.restype = ctypes.c_size_t
    return call()
older = sorted(path.name for path in folder.glob("libcudnn.so.*"))[:-1]
print({
    **{"CUDNN" + name[-1] + "_VERSION": returned(name, "cudnnGetVersion") for name in older},
    "CUDART_VERSION": ask("libcudart", "cudaRuntimeGetVersion"),
    "CUDNN_VERSION": returned("libcudnn", "cudnnGetVersion"),
    "CUBLAS_VERSION": returned("libcublasLt", "cublasLtGetVersion"),
    "CUFFT_VERSION": ask("libcufft", "cufftGetVersion"),
    "CURAND_VERSION": ask("libcurand", "curandGetVersion"),
    "CUSOLVER_VERSION": ask("libcusolver", "cusolverGetVersion"),
    "CUSPARSELT_VERSION": ask("libcusparseLt", "cusparseLtGetVersion", ctypes.byref(number)),
    "NCCL_VERSION_CODE": ask("libnccl", "ncclGetVersion"),
})
"""


def test_libraries_say_the_versions_of_the_table(sdk: pathlib.Path, major: int, environment: Dict[str, str]) -> None:
    folder = sdk / "lib" / f"cuda{major}"
    command = [sys.executable, "-c", VERSIONS, str(folder)]
    said = eval(subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout)
    wanted = numbers(major)
    assert said == {name: wanted[name] for name in said} and len(said) == (9 if major == 12 else 8)


def test_attributes_have_the_values_of_the_table(sdk: pathlib.Path, major: int, run_python: Callable[..., str]) -> None:
    code = f"""
import ctypes
folder = {str(sdk / "lib" / f"cuda{major}")!r}
runtime, driver = ctypes.CDLL(folder + "/libcudart.so.{major}"), ctypes.CDLL(folder + "/libcuda.so.1")
properties = ffi.new("mcDeviceProperties *")
assert lib.mcGetDeviceProperties(properties, 0) == 0 and driver.cuInit(0) == 0
value = ctypes.c_int()
for number, value_here in {[(int(row[0]), row[3]) for row in table("attributes.txt")]!r}:
    known = {limits()!r}.get(value_here)
    if known is None:
        known = getattr(properties, value_here) if value_here.isidentifier() else int(value_here)
    for get in (runtime.cudaDeviceGetAttribute, driver.cuDeviceGetAttribute):
        assert get(ctypes.byref(value), number, 0) == 0 and value.value == known, (number, value.value, known)
print("checked")
"""
    assert run_python(code).strip() == "checked"


def test_cucc_names_the_release_and_the_capability_of_the_table(sdk: pathlib.Path) -> None:
    row = next(row for row in table("versions.txt") if row[0] == "mxmaca_cuda_version.h")
    for major, version in zip((12, 13), row[4:]):
        nvcc = str(sdk / f"cuda{major}" / "bin" / "nvcc")
        said = subprocess.run([nvcc, "--version"], stdout=subprocess.PIPE, text=True).stdout
        assert f"release {version.rpartition('.')[0]}, V{version}" in said
        codes = subprocess.run([nvcc, "--list-gpu-code"], stdout=subprocess.PIPE, text=True).stdout
        assert codes.split() == [f"sm_{limits()['kCapability']}"]


def test_no_source_repeats_a_version_or_a_limit_of_shared_memory() -> None:
    versions = {str(number) for major in (12, 13) for number in numbers(major).values() if number > 1000}
    shared = [value for name, value in limits().items() if name.startswith("kShared") and value > 1024]
    words = versions | {str(value) for value in shared} | {f"{value >> 10} << 10" for value in shared}
    repeated = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(words)))})(?![\w.])")
    found = [
        f"{path.relative_to(REPOSITORY)}: {match.group()}"
        for path in sorted(SDK.rglob("*"))
        if path.suffix in SOURCES
        for match in repeated.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
