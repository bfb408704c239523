"""cucc and the execution of kernels: every feature in every schedule, wrong kernels, the command line."""

import pathlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from compiling import SCHEDULES, Cucc, clean_environment, run_program

HERE = pathlib.Path(__file__).resolve().parents[1]
KERNELS = HERE / "kernels"
# Kernels that become loops between their waits, and others that look like them.
PHASES = KERNELS / "phases"
FILES = {path.stem: path for path in sorted([*KERNELS.glob("*.cu"), *PHASES.glob("*.cu")])}
CASES = {
    stem: re.findall(r"^CASE\((\w+)\)", path.read_text(encoding="utf-8"), re.MULTILINE) for stem, path in FILES.items()
}
# Programs of their own, which count their failures.
PROGRAMS = KERNELS / "programs"


@pytest.fixture(scope="session")
def cases(cucc: Cucc, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the program that all files of kernels/ make together."""
    folder = tmp_path_factory.mktemp("kernels")

    def compile_file(path: pathlib.Path) -> pathlib.Path:
        output = folder / (path.name + ".o")
        cucc("-std=c++17", "-O1", "--extended-lambda", "-c", path, "-o", output)
        return output

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_file, [KERNELS / "main.cpp", *FILES.values()]))
    program = folder / "cases"
    cucc(*objects, "-o", program)
    return program


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stem", FILES)
def test_kernels_compute_what_a_loop_on_the_host_computes(
    cases: pathlib.Path, stem: str, schedule: str, tmp_path: pathlib.Path
) -> None:
    environment = clean_environment(MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(tmp_path))
    done = subprocess.run([str(cases), *CASES[stem]], env=environment, capture_output=True, text=True, timeout=120)
    passed = re.findall(r"^ok (\w+)$", done.stdout, re.MULTILINE)
    assert sorted(passed) == sorted(CASES[stem]), f"{done.stdout}\n{done.stderr}\nexit status {done.returncode}"


@pytest.mark.parametrize("source", sorted(PROGRAMS.rglob("*.cu")), ids=lambda path: path.stem)
def test_programs_of_the_device_library_find_no_failure(
    cucc: Cucc, source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    program = tmp_path / source.stem
    cucc("-std=c++17", "-O1", "--extended-lambda", source, "-o", program)
    for schedule in SCHEDULES[:3]:
        environment = clean_environment(MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(tmp_path))
        done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{schedule}: {done.stdout}\n{done.stderr}\nexit status {done.returncode}"


def test_at_least_sixty_features_have_a_kernel_of_their_own() -> None:
    assert sum(map(len, CASES.values())) >= 60 and all(CASES.values())


def test_kernels_become_phases_where_that_is_right_and_only_there(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """Speed hangs on the first, results on the second; their values are checked with the other kernels."""
    counts = {"phases": 27, "phase_calls": 21, "phase_functions": 28, "phase_groups": 7, "phase_arrays": 14}
    for stem, count in counts.items():
        done = cucc("-Wstacks", "--keep", "--keep-dir", tmp_path, "-c", PHASES / f"{stem}.cu", "-o", tmp_path / "x.o")
        text = (tmp_path / f"{stem}.device.ii").read_text(encoding="utf-8")
        kernels = re.findall(r" void ((?:fits|keeps)_\w+)\(.*?decltype\(__mxmaca_body\)[^,;]*(,?)", text, re.DOTALL)
        assert len(kernels) == count
        assert {name: bool(comma) for name, comma in kernels} == {name: name.startswith("fits_") for name, _ in kernels}
        # -Wstacks says so of each that keeps its stacks, and why.
        said = re.findall(
            rf"{stem}\.cu:\d+: warning: the threads of kernel '(\w+)' run on stacks of their own: \S", done.stderr
        )
        assert sorted(said) == sorted(name for name, comma in kernels if not comma)
    cucc("-G", "--keep", "--keep-dir", tmp_path, "-c", PHASES / "phases.cu", "-o", tmp_path / "phases.o")
    assert "__mxmaca_phases" not in (tmp_path / "phases.device.ii").read_text(encoding="utf-8")


FALLS_BACK = """#include <type_traits>
struct Box { int v; };
template <class T> __device__ int plain_or_member(T v) {
  __syncthreads();
  if constexpr (std::is_same<T, int>::value) return v * 2; else return v.v;
}
__global__ void k(int* o) { int t = threadIdx.x; o[t] = plain_or_member(t); }
int main() {
  int* o;
  cudaMallocManaged(&o, 256);
  k<<<1, 64>>>(o);
  return cudaDeviceSynchronize() != cudaSuccess || o[5] != 10;
}
"""


def test_what_does_not_compile_with_its_functions_compiles_without_them(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "box.cu").write_text(FALLS_BACK, encoding="utf-8")
    done = cucc("-Wstacks", tmp_path / "box.cu", "-o", tmp_path / "box")
    assert "error" not in done.stderr
    assert "'plain_or_member' waits, and what the kernel becomes with it does not compile" in done.stderr
    assert run_program(tmp_path / "box", MACA_STATE_DIR=str(tmp_path)).returncode == 0


# ---- Wrong kernels ---------------------------------------------------------------------------------------------------


def test_a_grid_of_more_than_two_to_the_31_threads_runs_each_of_them_once(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """The index of the loop over threads is an int, and a block of 768 lies on both sides of its largest value."""
    (tmp_path / "large.cu").write_text(
        "#include <cstdio>\n"
        "const unsigned start = 0x7ffffe00u, threads = 768, blocks = 2796203;\n"
        "__global__ void mark(unsigned* out) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i >= (int)start || i < 0) out[(unsigned)i - start] += 1 + blockIdx.x * threads + threadIdx.x;\n"
        "}\n"
        "int main() {\n"
        "  unsigned* out; cudaMallocManaged(&out, 4096 * 4); cudaMemset(out, 0, 4096 * 4);\n"
        "  mark<<<blocks, threads>>>(out);\n"
        "  if (cudaDeviceSynchronize() != cudaSuccess) return 2;\n"
        "  unsigned wrong = 0;\n"
        "  for (unsigned i = 0; i < 4096; ++i) wrong += out[i] != (start + i < threads * blocks ? start + i + 1 : 0);\n"
        '  std::printf("%u wrong\\n", wrong);\n'
        "}\n"
    )
    cucc(tmp_path / "large.cu", "-o", tmp_path / "large")
    done = subprocess.run(
        [str(tmp_path / "large")], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "0 wrong\n", done


# ---- The command line ------------------------------------------------------------------------------------------------

SMALL = "__global__ void twice(int* x) { x[threadIdx.x] *= 2; }\n"


@pytest.fixture()
def small(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "small.cu"
    path.write_text(SMALL + '#include <cstdio>\nint main() { twice<<<1, 1>>>((int*)nullptr); std::puts("done"); }\n')
    return path


def test_an_unknown_option_is_refused_by_name(cucc: Cucc, small: pathlib.Path) -> None:
    done = cucc("--no-such-option", "-c", small, check=False)
    assert done.returncode != 0 and "Unknown option '--no-such-option'" in done.stderr


def test_the_version_names_the_cuda_release(cucc: Cucc) -> None:
    for major, release in (("12", "12.4"), ("13", "13.0")):
        text = cucc("--version", CUCC_CUDA_MAJOR=major).stdout
        assert re.search(rf"release {release}, V{release}\.\d+", text)
    done = cucc("--version", CUCC_CUDA_MAJOR="11", check=False)
    assert done.returncode != 0 and "CUCC_CUDA_MAJOR is '11'" in done.stderr


def test_mistakes_are_reported_at_the_users_line(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "mistake.cu"
    source.write_text("#include <cstdio>\n__global__ void k(int* x) {\n  int y = 1;\n  x[0] = y + undeclared;\n}\n")
    done = cucc("-c", source, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and "mistake.cu:4:" in done.stderr and "undeclared" in done.stderr
    assert done.stderr.count("was not declared") == 1, "each mistake is said once"
    assert not (tmp_path / "out.o").exists()
    source.write_text("__global__ void k(int* x) {}\nint main() {\n\n  k<<<1>>>(nullptr);\n}\n")
    done = cucc("-c", source, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and "mistake.cu:4: error: a launch has 2 to 4 values" in done.stderr


@pytest.mark.parametrize("compiler", ["g++", "clang++", "g++ of release 9"])
def test_a_device_variable_that_needs_code_to_start_with_is_an_error(
    cucc: Cucc, tmp_path: pathlib.Path, compiler: str
) -> None:
    """Release 9 cannot be asked for that, and so its object is looked at."""
    if shutil.which(compiler.split()[0]) is None:
        pytest.skip(f"needs {compiler}")
    options = [f"-ccbin={compiler.split()[0]}"]
    # Without the word by which a compiler says that it can be asked.
    options += ["-Dhas_constinit=cannot_be_asked"] if compiler.endswith("9") else []
    source = tmp_path / "dynamic.cu"
    for optimise in ("-O2", "-G"):
        source.write_text("int f();\n__device__ int x = f();\n__global__ void k(int* p) { *p = x; }\n")
        done = cucc(*options, optimise, "-c", source, "-o", tmp_path / "out.o", check=False)
        assert done.returncode != 0 and "dynamic.cu" in done.stderr and "x" in done.stderr, done.stderr
        source.write_text(
            "__device__ int x = 5, y[3] = {1, 2};\nstatic __constant__ float z = 2.0f * 3;\n"
            "__global__ void k(int* p) { *p = x + y[*p] + z; }\n"
        )
        cucc(*options, optimise, "-c", source, "-o", tmp_path / "out.o")


def test_more_static_shared_memory_than_there_is_is_an_error_with_the_kernels_name(
    cucc: Cucc, tmp_path: pathlib.Path
) -> None:
    source = tmp_path / "big.cu"
    text = (
        "template <int N> __global__ void big(int* x) { __shared__ int s[N], more[4]; s[*x] = more[*x]; *x = s[1]; }\n"
    )
    source.write_text(text + "int main() { big<12289><<<1, 1>>>((int*)nullptr); }\n")
    done = cucc("-c", source, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and "kernel void big<12289>(int*) uses 49172 bytes of static shared" in done.stderr
    source.write_text(
        text + "#include <cstdio>\nint main() {\n"
        "  cudaFuncAttributes a; int* x; cudaMallocManaged(&x, 4); *x = 1;\n"
        '  cudaFuncGetAttributes(&a, big<12284>); std::printf("%zu ", a.sharedSizeBytes);\n'
        '  big<12284><<<1, 1, 16>>>(x); std::printf("%s ", cudaGetErrorName(cudaGetLastError()));\n'
        '  big<12284><<<1, 1>>>(x); std::printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));\n}\n'
    )
    cucc(source, "-o", tmp_path / "program")
    done = subprocess.run(
        [str(tmp_path / "program")], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "49152 cudaErrorInvalidValue cudaSuccess\n", done


def test_a_forked_child_that_launches_gets_an_error(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """The child has none of the threads that run blocks, and waits for none."""
    (tmp_path / "fork.cu").write_text(
        "#include <cstdio>\n#include <sys/wait.h>\n#include <unistd.h>\n"
        "__global__ void k(int* x) { atomicAdd(x, 1); }\n"
        "int main() {\n  int* x; cudaMallocManaged(&x, 4); *x = 0;\n  k<<<64, 128>>>(x);\n"
        "  cudaDeviceSynchronize();\n  if (fork() == 0) {\n    k<<<64, 128>>>(x);\n"
        "    _exit(cudaGetLastError() == cudaSuccess ? 0 : 7);\n  }\n"
        "  int status; wait(&status); k<<<64, 128>>>(x);\n"
        '  std::printf("%d %d %d\\n", WEXITSTATUS(status), cudaDeviceSynchronize(), *x);\n}\n'
    )
    cucc(tmp_path / "fork.cu", "-o", tmp_path / "fork")
    environment = clean_environment(MACA_NUM_THREADS="2")
    done = subprocess.run([str(tmp_path / "fork")], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "7 0 16384\n", done


@pytest.mark.parametrize(
    "name, operands",
    [
        ("wgmma.fence.sync.aligned", ""),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", " {a, a, a, a}, {a, a, a, a}, {a, a, a, a}, a, a, 0"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.s8.s8.f32", " {a, a, a, a}, {a, a, a, a}, {a, a}, {a, a, a, a}"),
        ("bar.arrive", " 1"),
        ("cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes", " [a], [a, {a}], [a]"),
        ("add.rn.f32x2", " a, a, a"),
        ("ld.global.L3::sometimes.u32", " a, [a]"),
    ],
)
def test_unsupported_ptx_is_an_error_that_names_the_instruction(
    cucc: Cucc, name: str, operands: str, tmp_path: pathlib.Path
) -> None:
    source = tmp_path / "ptx.cu"
    source.write_text(
        f'__global__ void k() {{\n  asm volatile("{{ .reg .b32 a; {name}{operands}; }}\\n");\n}}\n'
        "int main() { k<<<1, 1>>>(); }\n"
    )
    done = cucc("-c", source, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and name in done.stderr and "ptx.cu:2" in done.stderr


def test_options_as_build_systems_pass_them(cucc: Cucc, small: pathlib.Path, tmp_path: pathlib.Path) -> None:
    response = tmp_path / "options.rsp"
    response.write_text('-DFROM_FILE=1 -I"/nonexistent folder"\n')
    output, depends = tmp_path / "small.o", tmp_path / "small.o.d"
    cucc(
        "--generate-dependencies-with-compile",
        "--dependency-output",
        depends,
        "-I/usr/include",
        "-D__CUDA_NO_HALF_OPERATORS__",
        "--expt-relaxed-constexpr",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_80,code=compute_80",
        "--compiler-options",
        "'-fPIC'",
        "-Xcompiler=-Wall,-fno-strict-aliasing",
        "-Xptxas",
        "-v",
        "-std=c++17",
        "-lineinfo",
        "-use_fast_math",
        "-fmad=false",
        "--default-stream=per-thread",
        "-t=2",
        "--threads",
        "4",
        "-diag-suppress=20012",
        "--options-file",
        response,
        "-x",
        "cu",
        "-c",
        "-o",
        output,
        small,
    )
    assert output.stat().st_size > 0
    text = depends.read_text()
    assert text.startswith(str(output) + ":") and str(small) in text and "cuda_runtime.h" in text


def test_relocatable_builds_link_as_nvcc_does_it(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """Kernels of one file call device functions and use device variables of another."""
    (tmp_path / "a.cu").write_text(
        "extern __device__ int shared_counter;\nextern __constant__ int factor;\n__device__ int scaled(int x);\n"
        "__global__ void k(int* out) { atomicAdd(&shared_counter, 1); *out = scaled(7) * factor; }\n"
        "#include <cstdio>\nvoid set();\nint counted();\n"
        "int main() { int* p; cudaMallocManaged(&p, 4); set(); k<<<2, 3>>>(p);\n"
        '  std::printf("%d %d\\n", *p, counted()); }\n'
    )
    (tmp_path / "b.cu").write_text(
        "__device__ int shared_counter;\n__constant__ int factor;\n"
        "__device__ int scaled(int x) { return x * 3 + (threadIdx.x > 5); }\n"
        "void set() { int two = 2; cudaMemcpyToSymbol(factor, &two, 4); }\n"
        "int counted() { int n; cudaMemcpyFromSymbol(&n, shared_counter, 4); return n; }\n"
    )
    for name in "ab":
        cucc("-dc", tmp_path / f"{name}.cu", "-o", tmp_path / f"{name}.o")
    cucc("-dlink", tmp_path / "a.o", tmp_path / "b.o", "-o", tmp_path / "link.o")
    cucc(tmp_path / "a.o", tmp_path / "b.o", tmp_path / "link.o", "-o", tmp_path / "program")
    done = subprocess.run(
        [str(tmp_path / "program")], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "42 6\n", done


def test_relocatable_device_code_calls_the_devices_version_of_other_files_functions(
    cucc: Cucc, tmp_path: pathlib.Path
) -> None:
    """A __host__ __device__ function has two versions; each side calls its own, whichever file it is in."""
    (tmp_path / "h.cuh").write_text(
        "namespace n {\n__host__ __device__ int side(int);\n"
        "struct S { int v; __device__ __host__ int twice() const; };\n}\n"
        'extern "C" __host__ __device__ int plain(int);\n'
    )
    (tmp_path / "a.cu").write_text(
        '#include "h.cuh"\n#include <cstdio>\n'
        "__global__ void k(int* out) { out[0] = n::side(1); out[1] = n::S{5}.twice(); out[2] = plain(7); }\n"
        "int main() { int* p; cudaMallocManaged(&p, 12); k<<<1, 1>>>(p); cudaDeviceSynchronize();\n"
        '  std::printf("%d %d %d, %d %d %d\\n", p[0], p[1], p[2], n::side(1), n::S{5}.twice(), plain(7)); }\n'
    )
    (tmp_path / "b.cu").write_text(
        '#include "h.cuh"\n'
        "#ifdef __CUDA_ARCH__\n#define SIDE 100\n#else\n#define SIDE 200\n#endif\n"
        "namespace n {\n__host__ __device__ int side(int x) { return SIDE + x; }\n"
        "__device__ __host__ int S::twice() const { return side(v) * 2; }\n}\n"
        'extern "C" __host__ __device__ int plain(int x) { return SIDE + x; }\n'
    )
    for name in "ab":
        cucc("-rdc=true", "-c", tmp_path / f"{name}.cu", "-o", tmp_path / f"{name}.o")
    cucc(tmp_path / "a.o", tmp_path / "b.o", "-o", tmp_path / "program")
    done = subprocess.run(
        [str(tmp_path / "program")], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "101 210 107, 201 410 207\n", done
    # Where only the host has it, the device's version is missing by name.
    (tmp_path / "host.cpp").write_text(
        "namespace n { int side(int x) { return x; } struct S { int v; int twice() const; }; }\n"
        'int n::S::twice() const { return 0; }\nextern "C" int plain(int x) { return x; }\n'
    )
    done = cucc(tmp_path / "a.o", tmp_path / "host.cpp", "-o", tmp_path / "program", check=False)
    assert done.returncode != 0 and "n::side(int) [clone .device]" in done.stderr, done.stderr


def test_device_functions_of_the_same_name_in_two_files_do_not_clash(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.cu").write_text(
            f"__device__ int helper() {{ return {value}; }}\n__device__ int stored = {value};\n"
            f"template <class T> __global__ void same(T* x) {{ *x = helper() * 10 + stored; }}\n"
            f"static __global__ void own(int* x) {{ *x = helper() * 10 + stored; }}\n"
            f"void run_{name}(int* x) {{ own<<<1, 1>>>(x); }}\n"
        )
    (tmp_path / "main.cu").write_text(
        "#include <cstdio>\nvoid run_a(int*);\nvoid run_b(int*);\n"
        "int main() { int* x; cudaMallocManaged(&x, 4); run_a(x);\n"
        '  std::printf("%d ", *x); run_b(x); std::printf("%d\\n", *x); }\n'
    )
    cucc(*(tmp_path / f"{name}.cu" for name in ("a", "b", "main")), "-o", tmp_path / "program")
    done = subprocess.run(
        [str(tmp_path / "program")], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "11 22\n", done


def test_templates_of_variables_are_a_files_own_or_those_of_all_its_objects(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    (tmp_path / "table.h").write_text(
        "namespace n { template <class T, int N> __constant__ T table[N]; }\n"
        "template <class T> __device__ T plain;\n"
        "#ifdef __CUDACC_RDC__\nstatic __device__ short more = 40;\n"
        "#else\ntemplate <> __device__ short plain<short> = 40;\n#define more plain<short>\n#endif\n"
        "template <class T> static __global__ void sum(T* out) { *out = n::table<T, 2>[1] + plain<T> + more; }\n"
        "template <class T> static void put(T* out, T value) {\n"
        "  T both[2] = {0, value};\n"
        "  if (cudaMemcpyToSymbol(n::table<T, 2>, both, sizeof both)) *out = -1;\n"
        "  if (cudaMemcpyToSymbol(plain<T>, &value, sizeof value)) *out = -2;\n"
        "}\n"
    )
    for name, value in (("a", 1), ("b", 200)):
        (tmp_path / f"{name}.cu").write_text(
            f'#include "table.h"\nvoid put_{name}(int* x) {{ put<int>(x, {value}); put<float>((float*)x, 7); }}\n'
            f"void sum_{name}(int* x) {{ sum<int><<<1, 1>>>(x); cudaDeviceSynchronize(); }}\n"
        )
    (tmp_path / "main.cu").write_text(
        "#include <cstdio>\nvoid put_a(int*); void put_b(int*); void sum_a(int*); void sum_b(int*);\n"
        "int main() { int* x; cudaMallocManaged(&x, 4); put_a(x); put_b(x);\n"
        '  sum_a(x); std::printf("%d ", *x); sum_b(x); std::printf("%d\\n", *x); }\n'
    )
    for flags, expected in ((["-std=c++17"], "42 440\n"), (["-std=c++17", "-rdc=true"], "440 440\n")):
        cucc(*flags, *(tmp_path / f"{name}.cu" for name in ("a", "b", "main")), "-o", tmp_path / "program")
        done = run_program(tmp_path / "program")
        assert done.stdout == expected, done
