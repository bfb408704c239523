"""The shims stand in for NVIDIA's libraries: every symbol, every layout, every status."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from typing import Callable, Dict, Set

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
SHIMS = REPOSITORY / "cu_bridge" / "shims"
CUDA_HEADERS = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"


def load_scan_symbols() -> "object":
    """Import shims/scan_symbols.py."""
    spec = importlib.util.spec_from_file_location("scan_symbols", SHIMS / "scan_symbols.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["scan_symbols"] = module
    spec.loader.exec_module(module)
    return module


def provided_symbols(library: pathlib.Path) -> Set[str]:
    """Symbols that a library defines, as `name` or `name@node`."""
    text = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return {line.split()[-1].replace("@@", "@") for line in text.splitlines()}


def test_every_symbol_that_upstream_needs_is_provided_under_its_version(sdk: pathlib.Path, major: int) -> None:
    scan = load_scan_symbols()
    for library in scan.read_libraries():  # type: ignore[attr-defined]
        if library.major != major:
            continue
        path = sdk / "lib" / f"cuda{major}" / library.soname
        suffix = "" if library.node == "-" else "@" + library.node
        needed = {name + suffix for name in scan.read_symbols(library)}  # type: ignore[attr-defined]
        assert needed <= provided_symbols(path), library.soname


def test_shims_have_their_sonames_and_find_the_runtime_beside_them(sdk: pathlib.Path, major: int) -> None:
    for path in (sdk / "lib" / f"cuda{major}").iterdir():
        text = subprocess.run(["readelf", "-dW", str(path)], check=True, stdout=subprocess.PIPE, text=True).stdout
        if "(FILTER)" in text:
            # A name without a version: whoever is linked with it wants the library that it is a name of.
            found = re.search(r"soname: \[(.*?)\][^$]*Filter library: \[\$ORIGIN/\.\./\.\./lib/(\w+)/(.*?)\]", text)
            assert found is not None and found.groups()[::2] == (found[1], found[1])
            assert found[2] == path.parent.name and (path.parent / found[1]).is_file()
            continue
        assert f"Library soname: [{path.name}]" in text
        # The second is for the links in cuda12/lib64 and cuda13/lib64.
        assert re.search(r"\(RPATH\).*\$ORIGIN/\.\.:\$ORIGIN/\.\./\.\./lib(:\$ORIGIN)?\]", text)
        assert "libstdc++" not in text and "libgcc" not in text


def test_libraries_load_on_glibc_2_28(sdk: pathlib.Path) -> None:
    for path in [sdk / "lib" / "libmcruntime.so", *(sdk / "lib").glob("cuda*/*")]:
        text = subprocess.run(["readelf", "-VW", str(path)], check=True, stdout=subprocess.PIPE, text=True).stdout
        versions = [tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_([\d.]+)", text)]
        # A library that is only another name asks nothing of glibc.
        assert versions or path.suffix == ".so"
        assert max(versions, default=(0,)) <= (2, 28), path.name


def test_little_is_taken_of_the_block_for_variables_of_threads(sdk: pathlib.Path, major: int) -> None:
    """glibc keeps 1,664 bytes of static TLS for all that a process loads late, torch and others among them."""
    taken = {}
    for path in [sdk / "lib" / "libmcruntime.so", *(sdk / "lib" / f"cuda{major}").iterdir()]:
        text = subprocess.run(["readelf", "-ldW", str(path)], check=True, stdout=subprocess.PIPE, text=True).stdout
        if "STATIC_TLS" in text:
            taken[path.name] = int(re.findall(r"^ +TLS(?: +0x\w+){4} +(0x\w+)", text, re.MULTILINE)[0], 16)
    assert "libmcruntime.so" in taken and sum(taken.values()) <= 800, taken


def test_the_runtime_knows_no_cuda_name(sdk: pathlib.Path) -> None:
    names = provided_symbols(sdk / "lib" / "libmcruntime.so")
    assert {name for name in names if not name.startswith(("mc", "MC_"))} == set()


HEADERS = ["cuda", "cuda_runtime", "nvrtc", "nvml", "nccl", "cublasLt", "cublasXt", "cudnn", "cufftXt", "curand"]
HEADERS += ["cusolverDn", "cusolverRf", "cusolverSp", "cusparse"]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("language", ["c", "c++"])
def test_headers_compile_alone(sdk: pathlib.Path, major: int, header: str, language: str) -> None:
    command = ["g++" if language == "c++" else "gcc", "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command += [f"-DMXMACA_CUDA_MAJOR={major}", f"-I{sdk / 'include'}", "-include", f"{header}.h", "/dev/null"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


LAYOUT = """
#include <cstddef>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <library_types.h>
#define SIZE(type) std::printf(#type " %zu\\n", sizeof(type));
#define PLACE(type, field) std::printf(#type "." #field " %zu\\n", offsetof(type, field));
#define VALUE(name) std::printf(#name " %d\\n", (int)name);
int main() {
  SIZE(cudaDeviceProp) SIZE(cudaPointerAttributes) SIZE(cudaFuncAttributes) SIZE(cudaMemPoolProps)
  SIZE(cudaLaunchConfig_t) SIZE(cudaLaunchAttribute) SIZE(cudaIpcMemHandle_t) SIZE(cudaGraphEdgeData)
  SIZE(cudaMemAccessDesc) SIZE(CUmemAllocationProp) SIZE(CUmemAccessDesc) SIZE(CUdevResource) SIZE(dim3)
  SIZE(CUmulticastObjectProp) SIZE(CUtensorMap) SIZE(float4) SIZE(double2) SIZE(uchar4)
  PLACE(cudaDeviceProp, totalGlobalMem) PLACE(cudaDeviceProp, major) PLACE(cudaDeviceProp, multiProcessorCount)
  PLACE(cudaDeviceProp, pciBusID) PLACE(cudaDeviceProp, l2CacheSize) PLACE(cudaDeviceProp, sharedMemPerBlockOptin)
  PLACE(cudaDeviceProp, maxThreadsPerMultiProcessor) PLACE(cudaDeviceProp, regsPerMultiprocessor)
  PLACE(cudaDeviceProp, unifiedFunctionPointers) PLACE(cudaDeviceProp, clusterLaunch)
  PLACE(cudaPointerAttributes, hostPointer) PLACE(cudaFuncAttributes, maxDynamicSharedSizeBytes)
  PLACE(cudaLaunchConfig_t, attrs) PLACE(CUmemAllocationProp, allocFlags)
  VALUE(cudaErrorMemoryAllocation) VALUE(cudaErrorNoKernelImageForDevice) VALUE(cudaErrorStreamCaptureUnsupported)
  VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU) VALUE(cudaDevAttrMaxSharedMemoryPerBlockOptin) VALUE(CUDA_R_8F_E5M2)
  VALUE(cudaMemPoolAttrReleaseThreshold) VALUE(cudaLimitStackSize) VALUE(cudaFuncAttributeMaxDynamicSharedMemorySize)
  VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) VALUE(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)
}
"""


def layout(tmp_path: pathlib.Path, *options: str) -> str:
    """Compile and run the program that prints sizes, offsets and values."""
    source = tmp_path / "layout.cpp"
    source.write_text(LAYOUT, encoding="utf-8")
    program = tmp_path / "layout"
    subprocess.run(["g++", "-std=c++17", *options, str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.skipif(not (CUDA_HEADERS / "cuda_runtime_api.h").exists(), reason="needs the CUDA toolkit's headers")
def test_layouts_and_values_are_those_of_the_cuda_toolkit(sdk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    text = (CUDA_HEADERS / "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
    version = re.search(r"#define CUDART_VERSION\s+(\d+)", text)
    assert version
    major = int(version.group(1)) // 1000
    if major not in (12, 13):
        pytest.skip(f"the toolkit is CUDA {major}")
    ours = layout(tmp_path, f"-DMXMACA_CUDA_MAJOR={major}", f"-I{sdk / 'include'}")
    assert ours == layout(tmp_path, f"-I{CUDA_HEADERS}")


def test_the_device_properties_have_each_releases_size(sdk: pathlib.Path, tmp_path: pathlib.Path, major: int) -> None:
    text = layout(tmp_path, f"-DMXMACA_CUDA_MAJOR={major}", f"-I{sdk / 'include'}")
    assert ("cudaDeviceProp %d\n" % {12: 1032, 13: 1008}[major]) in text  # noqa: UP031
    assert ("cudaPointerAttributes %d\n" % {12: 24, 13: 88}[major]) in text  # noqa: UP031


VERSIONS = """
import ctypes, sys
major, folder = int(sys.argv[1]), sys.argv[2]
def load(pattern):
    import pathlib
    return ctypes.CDLL(str(next(pathlib.Path(folder).glob(pattern))))
number = ctypes.c_int()
runtime = load("libcudart.so.*")
assert runtime.cudaRuntimeGetVersion(ctypes.byref(number)) == 0 and number.value // 1000 == major
assert runtime.cudaDriverGetVersion(ctypes.byref(number)) == 0 and number.value // 1000 == major
cudnn = load("libcudnn.so.9")
cudnn.cudnnGetVersion.restype = ctypes.c_size_t
assert 92000 <= cudnn.cudnnGetVersion() < 100000
assert load("libnccl.so.2").ncclGetVersion(ctypes.byref(number)) == 0 and number.value >= 22105
driver = load("libcuda.so.1")
assert driver.cuDeviceGetCount(ctypes.byref(number)) == 3 and driver.cuDeviceGet(ctypes.byref(number), 0) == 3
assert driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(number)) == 0 and number.value == 1
active, flags = ctypes.c_int(), ctypes.c_uint()
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0 and active.value == 0
assert runtime.cudaSetDevice(0) == 0
assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0 and active.value == 1
entry = ctypes.c_void_p()
def find(name):
    return driver.cuGetProcAddress_v2(name, ctypes.byref(entry), 12000, ctypes.c_ulonglong(0), None)
for name in (b"cuMemCreate", b"cuMemGetAddressRange", b"cuStreamWriteValue32"):
    assert find(name) == 0 and entry.value
assert find(b"cuNoSuchThing") == 500
"""


def test_versions_and_driver_entry_points(sdk: pathlib.Path, major: int, environment: Dict[str, str]) -> None:
    folder = sdk / "lib" / f"cuda{major}"
    subprocess.run([sys.executable, "-c", VERSIONS, str(major), str(folder)], check=True, env=environment)


def test_management_library_reports_memory_and_processes(
    sdk: pathlib.Path, major: int, run_python: Callable[..., str]
) -> None:
    code = f"""
import ctypes, os
nvml = ctypes.CDLL({str(sdk / "lib" / f"cuda{major}" / "libnvidia-ml.so.1")!r})
block = ffi.new("void **")
runtime.check(lib.mcMalloc(block, 10 << 20))
class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]
device, memory, count = ctypes.c_void_p(), Memory(), ctypes.c_uint(0)
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
assert (memory.used, memory.total) == (10 << 20, 64 << 30)
assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), None) == 7 and count.value == 1
process = Process()
assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), ctypes.byref(process)) == 0
assert (process.pid, process.bytes) == (os.getpid(), 10 << 20)
name = ctypes.create_string_buffer(96)
assert nvml.nvmlDeviceGetName(device, name, 96) == 0 and name.value == b"MXC500"
speed = ctypes.c_uint()
assert nvml.nvmlDeviceGetFanSpeed(device, ctypes.byref(speed)) == 3  # not supported
"""
    run_python(code)


def test_this_file_loads_no_shim_itself() -> None:
    # Their order must not matter. A process of its own: the tests of Triton import torch, which loads them.
    code = "import ctypes, runpy, sys; runpy.run_path(sys.argv[1]); assert not hasattr(ctypes.CDLL(None), 'cudaMalloc')"
    subprocess.run([sys.executable, "-c", code, __file__], check=True)
