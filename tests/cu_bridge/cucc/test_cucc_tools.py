"""Other host compilers than the default one, the sanitizers, and gdb."""

import os
import pathlib
import re
import shutil
import subprocess
from typing import Sequence

import pytest
from compiling import Cucc, clean_environment, run_program

HERE = pathlib.Path(__file__).resolve().parents[1]
COMPILERS = ("g++-9", "g++-10", "g++-11", "clang++")


# ---- Host compilers --------------------------------------------------------------------------------------------------

# Of everything that the rewriting and the joining of objects know something: shared memory, barriers, shuffles, device
# variables, templates, lambdas, constant memory, half precision, atomics, cub.
FEATURES = """
#include <cooperative_groups.h>
#include <cub/cub.cuh>
#include <cuda_fp16.h>
#include <cstdio>
__constant__ int factor[2];
__device__ int counter;
static __device__ int grown(int x) { return x + 1; }
template <class T> __global__ void sum(const T* in, T* out) {
  extern __shared__ unsigned char raw[];
  T* s = reinterpret_cast<T*>(raw);
  __shared__ T total;
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int step = blockDim.x / 2; step >= 32; step /= 2) {
    if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    T value = s[threadIdx.x];
    for (int lane = 16; lane; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
    if (threadIdx.x == 0) total = value;
  }
  __syncthreads();
  if (threadIdx.x == 64) *out = total * factor[1];
  atomicAdd(&counter, grown(0));
}
__global__ void scanned(int* out) {
  using Scan = cub::BlockScan<int, 64>;
  __shared__ typename Scan::TempStorage temporary;
  int value = threadIdx.x;
  Scan(temporary).InclusiveSum(value, value);
  out[threadIdx.x] = __half2int_rn(__hadd(__float2half(0.25f), __float2half(0.5f))) + value;
}
template <class F> __global__ void apply(F f, int* out) { out[threadIdx.x] = f(threadIdx.x); }
int main() {
  float* values; int* ints; int two[2] = {1, 2}, count = 0, wrong = 0;
  cudaMallocManaged(&values, 256 * 4);
  cudaMallocManaged(&ints, 256 * 4);
  for (int i = 0; i < 128; ++i) values[i] = i;
  cudaMemcpyToSymbol(factor, two, sizeof two);
  sum<float><<<1, 128, 128 * sizeof(float)>>>(values, values + 128);
  cudaMemcpyFromSymbol(&count, counter, 4);
  wrong += values[128] != 127 * 128 || count != 128;
  scanned<<<1, 64>>>(ints);
  wrong += ints[63] != 64 * 63 / 2 + 1;
  int offset = 5;
  apply<<<1, 32>>>([=] __device__ (int i) { return i * i + offset; }, ints);
  wrong += ints[31] != 31 * 31 + 5 || cudaDeviceSynchronize() != cudaSuccess;
  std::printf("%d wrong\\n", wrong);
}
"""


@pytest.mark.parametrize("optimisation", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_other_host_compilers_make_right_programs(
    cucc: Cucc, compiler: str, optimisation: str, tmp_path: pathlib.Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    source = tmp_path / "features.cu"
    source.write_text(FEATURES, encoding="utf-8")
    cucc("-ccbin", compiler, optimisation, "--extended-lambda", source, "-o", tmp_path / "features")
    done = run_program(tmp_path / "features", MACA_STATE_DIR=str(tmp_path))
    assert done.stdout == "0 wrong\n", done


# What could bring type-based aliasing back into device code, and every way in which it is compiled.
ALIASING = [
    ("-O2",),
    ("-O3",),
    ("-Ofc", "mid"),
    ("-O3", "-Xcompiler", "-fstrict-aliasing"),
    ("-O3", "-Xcompiler", "-flto"),
    ("-O3", "-rdc=true"),
    ("-O3", "-dlto"),
    ("-G",),
    *(("-O3", "-ccbin", name) for name in (*COMPILERS, "clang++-14")),
]


@pytest.mark.parametrize("pragma", ["", '#pragma GCC optimize("O3")\n'], ids=["", "pragma"])
@pytest.mark.parametrize("flags", ALIASING, ids=" ".join)
def test_device_code_may_read_memory_through_other_types(
    cucc: Cucc, flags: Sequence[str], pragma: str, tmp_path: pathlib.Path
) -> None:
    if "-ccbin" in flags and shutil.which(flags[-1]) is None:
        pytest.skip(f"needs {flags[-1]}")
    kernels = HERE / "kernels"
    source = tmp_path / "aliasing.cu"
    source.write_text(pragma + (kernels / "aliasing.cu").read_text(encoding="utf-8"), encoding="utf-8")
    cases = re.findall(r"^CASE\((\w+)\)", source.read_text(encoding="utf-8"), re.MULTILINE)
    if "-fstrict-aliasing" in flags:
        cases.remove("functions_of_both_sides_read_other_types")  # of which one is the host's
    cucc("-std=c++17", f"-I{kernels}", *flags, source, kernels / "main.cpp", "-o", tmp_path / "cases")
    done = run_program(tmp_path / "cases", *cases, MACA_STATE_DIR=str(tmp_path))
    assert sorted(re.findall(r"^ok (\w+)$", done.stdout, re.MULTILINE)) == sorted(cases), done


def test_the_host_compiler_is_the_one_that_is_named(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    for name in ("first", "second", "third"):
        (tmp_path / name).symlink_to(shutil.which("g++") or "")
    (tmp_path / "a.cu").write_text("int main() {}\n")
    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))

    def named(*arguments: str, **variables: str) -> str:
        said = cucc("--dryrun", *arguments, tmp_path / "a.cu", **{"CXX": "", **variables}).stderr
        return re.findall(r"^#\$ (\S+) -E ", said, re.MULTILINE)[0]

    assert named("-ccbin", first, NVCC_CCBIN=second, CXX=third) == first
    assert named(NVCC_CCBIN=second, CXX=third) == second
    assert named(CXX=f"launcher {third}") == third
    done = cucc("-ccbin", "no-such-compiler", tmp_path / "a.cu", check=False)
    assert done.returncode != 0 and "no-such-compiler was not found" in done.stderr


def test_the_language_is_cpp17_unless_said_otherwise(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "standard.cu"
    source.write_text("__global__ void k() {}\nstatic_assert(__cplusplus == STANDARD);\n")
    compiler = "clang++" if shutil.which("clang++") else "g++"  # whose own default is older, where it is there
    command = ["-ccbin", compiler, "-c", source, "-o", tmp_path / "out.o"]
    cucc("-DSTANDARD=201703L", *command)
    cucc("-DSTANDARD=202002L", "-std=c++20", *command)


def test_a_kernel_that_only_the_hosts_text_launches_is_refused_by_name(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """Not another kernel in its place."""
    source = tmp_path / "apart.cu"
    source.write_text(
        "#include <cstdio>\ntemplate <class T> __global__ void host_only(T* p) { *p = 1; }\n"
        "__global__ void other(int* p) { *p = 2; }\n"
        "int main() {\n  int* p;\n  cudaMallocManaged(&p, 4);\n  *p = 0;\n#ifndef __CUDA_ARCH__\n"
        "  host_only<<<1, 1>>>(p);\n#endif\n"
        '  std::printf("%s %d\\n", cudaGetErrorString(cudaGetLastError()), *p);\n'
        '  other<<<1, 1>>>(p);\n  std::printf("%d\\n", *p);\n}\n'
    )
    cucc(source, "-o", tmp_path / "apart")
    first, second = run_program(tmp_path / "apart", MACA_STATE_DIR=str(tmp_path)).stdout.splitlines()
    assert first.startswith("invalid device function (kernel void host_only<int>(int*)") and first.endswith(" 0")
    assert second == "2"


# ---- Sanitizers ------------------------------------------------------------------------------------------------------

FAULTY = """
__global__ void device_memory(int* p, int n) {
  p[threadIdx.x + n] = 1;  // line 3
}
__global__ void static_shared(int* p, int n) {
  __shared__ int s[32];
  s[threadIdx.x + n] = 1;  // line 7
  p[threadIdx.x] = s[threadIdx.x];
}
__global__ void dynamic_shared(int* p, int n) {
  extern __shared__ int s[];
  s[threadIdx.x + n] = 1;  // line 12
  p[threadIdx.x] = s[threadIdx.x];
}
__global__ void local_array(int* p, int n) {
  int a[2] = {1, 2};
  __syncthreads();
  p[threadIdx.x] = a[n];  // line 18
}
__global__ void freed(int* p, int n) {
  p[threadIdx.x] = 0x7fffffff + n;  // line 21
}
int main(int, char** arguments) {
  int n = arguments[2][0] - '0';
  int* p;
  cudaMalloc(&p, 32 * sizeof(int));
  switch (arguments[1][0]) {
    case 'd': device_memory<<<1, 32>>>(p, n); break;
    case 's': static_shared<<<1, 32>>>(p, n); break;
    case 'e': dynamic_shared<<<1, 32, 128>>>(p, n); break;
    case 'l': local_array<<<1, 32>>>(p, n); break;
    case 'o': freed<<<1, 32>>>(p, n); break;
  }
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;
}
"""


@pytest.fixture(scope="session", params=["g++", "clang++"])
def faulty(request: pytest.FixtureRequest, cucc: Cucc, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a program with wrong kernels, compiled with both sanitizers."""
    if shutil.which(request.param) is None:
        pytest.skip(f"needs {request.param}")
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faulty.cu").write_text(FAULTY, encoding="utf-8")
    program = folder / "faulty"
    command = ["-ccbin", request.param, "-g", "-fsanitize=address,undefined", folder / "faulty.cu", "-o", program]
    done = cucc(*command, check=False)
    if "cannot find" in done.stderr and "libclang_rt" in done.stderr:
        pytest.skip("needs clang's sanitizer libraries")
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize(
    ("kernel", "report", "line"),
    [
        ("device_memory", "AddressSanitizer: use-after-poison", 3),
        ("static_shared", "index 32 out of bounds for type 'int", 7),
        ("elsewhere in shared memory", "AddressSanitizer", 12),
        ("local_array", "index 3 out of bounds for type 'int", 18),
        ("overflow", "signed integer overflow", 21),
    ],
)
def test_the_sanitizers_report_the_line_in_the_kernel(
    faulty: pathlib.Path, kernel: str, report: str, line: int
) -> None:
    variables = {"MACA_STATE_DIR": str(faulty.parent), "ASAN_OPTIONS": "detect_leaks=0"}
    right = run_program(faulty, kernel, "0", **variables)
    assert right.returncode == 0 and not right.stderr, right
    wrong = run_program(faulty, kernel, "3", **variables)
    assert report in wrong.stderr and f"faulty.cu:{line}" in wrong.stderr, wrong


# ---- gdb -------------------------------------------------------------------------------------------------------------

DEBUGGED = """#include <cstdio>
template <class T>
__device__ T helper(T value) {
  T twice = value * 2;
  return twice;
}
__global__ void scale(float* values, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float before = values[i];
  __syncthreads();
  float after = helper(before) * factor;
  values[i] = after;
}
int main() {
  float* p;
  cudaMallocManaged(&p, 256);
  for (int i = 0; i < 64; ++i) p[i] = i;
  scale<<<2, 32>>>(p, 3.0f);
  cudaDeviceSynchronize();
  std::printf("%g\\n", p[33]);
}
"""


@pytest.fixture(scope="session")
def debugged(cucc: Cucc, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    if shutil.which("gdb") is None:
        pytest.skip("needs gdb")
    folder = tmp_path_factory.mktemp("debugged")
    (folder / "scale.cu").write_text(DEBUGGED, encoding="utf-8")
    cucc("-g", "-G", folder / "scale.cu", "-o", folder / "scale")
    return folder / "scale"


def gdb(program: pathlib.Path, *commands: str) -> str:
    environment = clean_environment(MACA_NUM_THREADS="1", MACA_STATE_DIR=str(program.parent), HOME=os.environ["HOME"])
    line = ["gdb", "-nx", "-q", "-batch", "-ex", "set debuginfod enabled off"]
    for command in commands:
        line += ["-ex", command]
    done = subprocess.run([*line, str(program)], env=environment, capture_output=True, text=True, timeout=120)
    if "ptrace: Operation not permitted" in done.stderr:
        pytest.skip("this system lets nobody debug")
    return done.stdout


def test_gdb_stops_in_a_kernel_by_its_name(debugged: pathlib.Path) -> None:
    """First where it is launched, then where a block begins, then in each thread."""
    said = gdb(debugged, "break scale", "run", "bt 1", "continue", "continue", "info args", "next", "info locals", "bt")
    launch, thread = said.index("scale.cu:7"), said.index("::scale (values=0x")
    assert launch < thread and "factor=3) at" in said[thread:]
    assert re.search(r"^factor = 3$", said[thread:], re.MULTILINE) and re.search(r"^i = 0$", said, re.MULTILINE)
    assert re.search(r"^#\d+ .* scale \(.*scale\.cu:13$", said, re.MULTILINE), said


def test_gdb_stops_at_a_line_of_a_kernel_in_the_thread_asked_for(debugged: pathlib.Path) -> None:
    said = gdb(
        debugged,
        "break scale.cu:12 if i == 33",
        "run",
        "info locals",
        "print threadIdx",
        "print blockIdx",
        "print values[i]",
        "tbreak helper<float>",
        "continue",
        "up",
        "print factor",
    )
    assert "before = 33" in said and "after = 198" in said
    assert "$1 = {x = 1, y = 0, z = 0}" in said and "$2 = {x = 1, y = 0, z = 0}" in said and "$3 = 33" in said
    assert "helper<float> (value=34)" in said and "$4 = 3" in said, said
