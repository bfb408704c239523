"""The options of cucc: each of nvcc's acts, has no effect for a reason that is said, or is refused by name."""

import csv
import importlib
import pathlib
import re
import sys
from types import ModuleType
from typing import List

import pytest
from compiling import Cucc, run_program

HERE = pathlib.Path(__file__).resolve().parents[1]
LINES = (HERE / "data" / "nvcc_options.txt").read_text(encoding="utf-8").splitlines()
NVCC = [line.split() for line in LINES if not line.startswith("#")]
DOCUMENT = HERE.parent.parent / "docs" / "cu_bridge.md"


@pytest.fixture(scope="session")
def table(sdk: pathlib.Path) -> ModuleType:
    """Return the installed module of the options."""
    sys.path.insert(0, str(sdk.parent))
    try:
        return importlib.import_module("mxmaca.cucc.options")
    finally:
        sys.path.pop(0)


@pytest.fixture()
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "small.cu"
    path.write_text(
        "__global__ void twice(int* x) { x[threadIdx.x] *= 2; }\nint main() { twice<<<1, 1>>>(nullptr); }\n"
    )
    return path


# ---- The table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("long", "short", "arity"), NVCC, ids=[line[0] for line in NVCC])
def test_every_option_of_nvcc_is_in_the_table(table: ModuleType, long: str, short: str, arity: str) -> None:
    option = table.BY_SPELLING[long]
    assert option is table.BY_SPELLING[short]
    if option.kind != table.REFUSED:
        assert (option.kind in (table.FLAG, table.NOTHING)) == (arity == "flag")


def test_an_option_acts_or_says_why_it_does_not(table: ModuleType, sdk: pathlib.Path) -> None:
    files = [path for path in (sdk / "cucc").glob("*.py") if path.name != "options.py"]
    asking = "".join(path.read_text(encoding="utf-8") for path in files)
    parsing = (sdk / "cucc" / "options.py").read_text(encoding="utf-8").partition("VALUES = ")[2]
    for option in table.TABLE:
        if option.kind in (table.NOTHING, table.NOTHING_VALUE, table.REFUSED):
            assert len(option.why) > 15, option
        elif option.name not in ("link", "machine", "machine64"):  # what happens without them anyway
            assert f'"{option.name}"' in asking + parsing, f"{option.spellings[0]} is taken and nobody asks for it"


def test_the_document_names_what_has_no_effect_and_what_is_refused(table: ModuleType) -> None:
    words = set(re.findall(r"`([^`]+)`", DOCUMENT.read_text(encoding="utf-8")))
    for option in table.TABLE:
        if option.why:
            assert words.intersection(option.spellings), option.spellings


def test_help_says_what_each_option_does(cucc: Cucc) -> None:
    text = cucc("--help").stdout
    for long, short, _ in NVCC:
        assert re.search(rf"(?<![\w-]){long}\b", text) and re.search(rf"(?<![\w-]){short}\b", text)
    assert "denormals are kept" in text


# ---- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-such-option"], "Unknown option '--no-such-option'"),
        (["-ltoir"], "'-ltoir' is not supported: there is no such code"),
        (["--sanitize", "memcheck"], "'--sanitize' is not supported: -fsanitize"),
        (["-Werror", "everything"], "Value 'everything' is not defined for option 'Werror'"),
        (["-rdc=maybe"], "Value 'maybe' is not defined for option 'relocatable-device-code'"),
        (["-ftz=1"], "Value '1' is not defined"),
        (["-cudart", "dynamic"], "Value 'dynamic' is not defined for option 'cudart'"),
        (["-arch=sm_8x"], "Unsupported gpu architecture 'sm_8x'"),
        (["-gencode", "arch=compute_80,code=sm80"], "Unsupported gpu architecture 'sm80'"),
        (["-lineinfo=yes"], "no argument expected after '-lineinfo'"),
        (["-MF"], "'-MF' wants a value"),
        (["-Wno-such-thing-at-all", "-fno-such-option"], "-fno-such-option"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_named(
    cucc: Cucc, source: pathlib.Path, tmp_path: pathlib.Path, arguments: List[str], message: str
) -> None:
    done = cucc("-c", source, "-o", tmp_path / "out.o", *arguments, check=False)
    assert done.returncode != 0 and message in done.stderr, done.stderr
    assert not (tmp_path / "out.o").exists()


# ---- What options change ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "device", "host"),
    [
        (["-O1"], ["-O3"], ["-O1"]),
        (["-Ofc", "max"], ["-O0"], []),
        (["-Ofc=mid"], ["-O1"], []),
        (["-G"], ["-O0", "-g"], ["-g"]),
        (["-G", "-dopt=on"], ["-O3", "-g1"], ["-g"]),
        (["-lineinfo"], ["-g1"], []),
        (["-noeh"], ["-fno-exceptions"], ["-fno-exceptions"]),
        (["-ftemplate-depth", "99"], ["-ftemplate-depth=99"], ["-ftemplate-depth=99"]),
        (["-ftemplate-backtrace-limit=3"], ["-ftemplate-backtrace-limit=3"], ["-ftemplate-backtrace-limit=3"]),
        (["-frandom-seed", "x"], ["-frandom-seed=x"], ["-frandom-seed=x"]),
        (["-fmad=false"], ["-ffp-contract=off"], []),
        (["-device-stack-protector=true"], ["-fstack-protector-strong"], []),
        (["-Wreorder"], ["-Wreorder"], ["-Wreorder"]),
        (["-Werror", "reorder"], ["-Werror=reorder"], ["-Werror=reorder"]),
        (["-Werror=deprecated-declarations"], ["-Werror=deprecated-declarations"], ["-Werror=deprecated-declarations"]),
        (["-Werror", "all-warnings"], ["-Werror"], ["-Werror"]),
        (["-Wno-deprecated-declarations"], ["-Wno-deprecated-declarations"], ["-Wno-deprecated-declarations"]),
        (["-w"], ["-w"], ["-w"]),
        (["-Wshadow", "-fwrapv"], ["-Wshadow", "-fwrapv"], ["-Wshadow", "-fwrapv"]),
        (["-forward-unknown-to-host-compiler", "--weird"], ["--weird"], ["--weird"]),
        (["--weird", "-forward-unknown-opts"], ["--weird"], ["--weird"]),
    ],
    ids=" ".join,
)
def test_options_reach_the_passes(
    cucc: Cucc, source: pathlib.Path, arguments: List[str], device: List[str], host: List[str]
) -> None:
    lines = cucc("--dryrun", *arguments, "-c", source).stderr.splitlines()
    commands = {line.split()[-1]: line.split() for line in lines if " -c " in line}
    for file, wanted in (("device.ii", device), ("host.ii", host)):
        assert not set(wanted) - set(commands[file]), commands[file]


def test_unknown_options_go_to_the_linker_on_demand(cucc: Cucc, source: pathlib.Path) -> None:
    done = cucc("--dryrun", "-forward-unknown-to-host-linker", "--weird", source)
    assert "-Xlinker --weird" in done.stderr.splitlines()[-1]


def test_archives_and_relocatable_links_are_made_as_asked(
    cucc: Cucc, source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    archive = cucc("--dryrun", "-lib", "-arbin", "my-ar", "-Xarchive", "-D", source, "-o", tmp_path / "x.a").stderr
    assert re.search(r"my-ar rcs -D \S*x\.a \S+\.o$", archive.strip())
    (tmp_path / "more.cu").write_text(
        "__global__ void more(int* x) { *x = 1; }\nvoid f() { more<<<1, 1>>>(nullptr); }\n"
    )
    cucc("-r", source, tmp_path / "more.cu", "-o", tmp_path / "both.o")
    cucc(tmp_path / "both.o", "-o", tmp_path / "program")
    assert run_program(tmp_path / "program", MACA_STATE_DIR=str(tmp_path)).returncode == 0


def test_time_writes_a_table_of_the_phases(cucc: Cucc, source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "times.csv"
    for _ in range(2):
        cucc("-time", file, "-c", source, "-o", tmp_path / "out.o")
    with file.open(newline="") as stream:
        rows = [[cell.strip() for cell in row] for row in csv.reader(stream)]
    assert rows[0][:2] == ["source file name", "phase name"] and rows[0] not in rows[1:]
    times = {row[1]: float(row[6]) for row in rows[1:]}
    assert times["compile (device)"] > 1 and times["preprocess (host)"] > 1
    assert "compile (host)" in cucc("-time", "-", "-c", source, "-o", tmp_path / "out.o").stdout


def test_clean_removes_what_the_same_command_makes(cucc: Cucc, source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    before = set(tmp_path.iterdir())
    for arguments in (
        ["-c", source, "-o", tmp_path / "out.o", "-MD", "-keep", "-keep-dir", tmp_path],
        [source, "-o", tmp_path / "program"],
    ):
        cucc(*arguments)
        assert set(tmp_path.iterdir()) > before
        cucc("-clean", *arguments)
        assert set(tmp_path.iterdir()) == before


# ---- Warnings --------------------------------------------------------------------------------------------------------

WARNED = """
__global__ void kernel(int* p, int n) {
  int in_kernel;
  p[0] = 1u < n;
}
__device__ int both(int* p) {
  int in_both;
  return *p;
}
static __device__ int for_kernels() { return 1; }
static int for_nobody() { return 1; }
__global__ void __launch_bounds__(32) bounded(int* p) { *p = for_kernels() + both(p); }
int main() {
  kernel<<<1, 1>>>(nullptr, 1);
  bounded<<<1, 1, 0, 0>>>(nullptr);
  return [](int* p) { return p == nullptr; }(nullptr);
}
"""


@pytest.fixture(scope="session")
def warned(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("warned") / "warned.cu"
    path.write_text(WARNED, encoding="utf-8")
    return path


def test_each_warning_is_said_once_at_the_users_line(cucc: Cucc, warned: pathlib.Path, tmp_path: pathlib.Path) -> None:
    said = cucc("-Xcompiler", "-Wall,-Wextra", "-c", warned, "-o", tmp_path / "out.o").stderr
    found = re.findall(r"warned\.cu:(\d+):\d+: warning: .*?\[-W([\w-]+)", said)
    assert sorted(found) == [
        ("11", "unused-function"),
        ("3", "unused-variable"),
        ("4", "sign-compare"),
        ("7", "unused-variable"),
    ]
    assert "warning" not in cucc("-w", "-Xcompiler", "-Wall", "-c", warned, "-o", tmp_path / "out.o").stderr


def test_launches_without_stream_and_kernels_without_bounds_are_warned_about(
    cucc: Cucc, warned: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    said = cucc("-Wdefault-stream-launch", "-Wmissing-launch-bounds", "-c", warned, "-o", tmp_path / "out.o").stderr
    assert re.findall(r"warned\.cu:(\d+): warning: (?:explicit stream|no __launch)", said) == ["2", "14"]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["-Werror", "all-warnings", "-Xcompiler", "-Wall"], "warned.cu:3:"),
        (["-Werror", "default-stream-launch"], "warned.cu:14: error"),
        (["-Werror=missing-launch-bounds,reorder"], "warned.cu:2: error"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_errors_can_be_made_of_warnings(
    cucc: Cucc, warned: pathlib.Path, tmp_path: pathlib.Path, arguments: List[str], place: str
) -> None:
    done = cucc(*arguments, "-c", warned, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and place in done.stderr, done.stderr
    assert not (tmp_path / "out.o").exists()


def test_calls_of_host_functions_from_kernels_can_be_errors(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "calls.cu"
    text = (
        "int elsewhere();\nstatic int here() { return 4; }\n__device__ int fine(int x) { return x; }\n"
        "template <class T> __host__ __device__ T mixed(T x) { return x CALL1; }\n"
        "__global__ void k(int* p) {\n  p[0] = mixed(3) + fine(2);\n  atomicAdd(p, 1 CALL2);\n}\n"
        "int host() { return here() + elsewhere(); }\n"
    )
    command = ["-Werror", "cross-execution-space-call", "-c", source, "-o", tmp_path / "out.o"]
    source.write_text(text)
    cucc("-DCALL1=", "-DCALL2=", *command)
    done = cucc("-DCALL1=+here()", "-DCALL2=+elsewhere()", *command, check=False)
    assert done.returncode != 0
    assert 'calls.cu:2: error: calling a __host__ function("here()")' in done.stderr
    assert 'calls.cu:7: error: calling a __host__ function("elsewhere()")' in done.stderr


def test_stubs_of_templates_can_belong_to_their_file(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """One template with one name means another kernel in each of two files."""
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.cu").write_text(
            f"template <class T> __global__ void same(T* x) {{ *x = {value}; }}\n"
            f"void run_{name}(int* x) {{ same<<<1, 1>>>(x); }}\n"
        )
    (tmp_path / "main.cu").write_text(
        "#include <cstdio>\nvoid run_a(int*);\nvoid run_b(int*);\n"
        "int main() { int* x; cudaMallocManaged(&x, 4); run_a(x);\n"
        '  std::printf("%d ", *x); run_b(x); std::printf("%d\\n", *x); }\n'
    )
    files = [tmp_path / f"{name}.cu" for name in ("a", "b", "main")]
    cucc("-static-global-template-stub=true", *files, "-o", tmp_path / "program")
    assert run_program(tmp_path / "program", MACA_STATE_DIR=str(tmp_path)).stdout == "1 2\n"


def test_cmake_learns_of_the_toolkit_and_the_architecture(cucc: Cucc, sdk: pathlib.Path) -> None:
    """CMake calls nvcc with a file that is not there, and reads what `-v` says before it fails."""
    said = cucc("-v", "__cmake_determine_cuda", check=False, CUCC_CUDA_MAJOR="13").stderr
    top = re.search(r"^#\$ TOP=(.*)$", said, re.MULTILINE)
    assert top is not None and (pathlib.Path(top.group(1)) / "nvvm" / "libdevice").is_dir(), said
    assert re.search(r"-arch compute_80\b", said), said
    assert re.search(r"-arch compute_75\b", cucc("-v", "-arch=sm_75", "none.cu", check=False).stderr)


@pytest.mark.parametrize("standard", ["c++11", "c++14", "c++20"])
def test_a_file_in_another_c_plus_plus_compiles(cucc: Cucc, tmp_path: pathlib.Path, standard: str) -> None:
    """Device headers are C++17, which older programs are as well; a newer language stays what was asked for."""
    path = tmp_path / "small.cu"
    path.write_text(
        "#include <cooperative_groups.h>\n#include <cuda_fp16.h>\n"
        f"static_assert(__cplusplus {'>' if standard == 'c++20' else '=='} 201703L);\n"
        "__global__ void twice(__half* x) { x[threadIdx.x] = __hadd(x[threadIdx.x], x[threadIdx.x]); }\n"
        "int main() {\n  __half* x;\n  cudaMallocManaged(&x, 2);\n  *x = __float2half(3);\n"
        "  twice<<<1, 1>>>(x);\n  return cudaDeviceSynchronize() != cudaSuccess || __half2float(*x) != 6;\n}\n"
    )
    cucc(f"-std={standard}", path, "-o", tmp_path / "small")
    assert run_program(tmp_path / "small").returncode == 0


# ---- Warnings --------------------------------------------------------------------------------------------------------
CONVERTS = "__global__ void k(int* x, float f) { x[0] = f;\nx[1] += f; }\nint main() { k<<<1, 1>>>(nullptr, 1); }\n"


def test_conversions_that_saturate_are_warned_of_where_that_is_asked_for(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """cucc asks the compiler for these warnings itself, to find the conversions."""
    source = tmp_path / "converts.cu"
    source.write_text(CONVERTS)
    for options, warned in (
        ([], False),
        (["-Werror", "all-warnings"], False),
        (["-Xcompiler", "-Wall,-Wextra,-Werror"], False),
        (["-w"], False),
        (["-Xcompiler", "-Wconversion"], True),
    ):
        done = cucc(*options, "--keep", "--keep-dir", tmp_path, "-c", source, "-o", tmp_path / "converts.o")
        assert done.stderr.count("[-Wfloat-conversion]") == (2 if warned else 0), done.stderr
        assert warned or not done.stderr
        kept = (tmp_path / "converts.device.ii").read_text(encoding="utf-8")
        assert "casts::converting(f)" in kept and "casts::combining(x[1] )+= f" in kept


MISTAKEN = """
template <class N> __device__ int rounded(float x) { return (N)x; }
__global__ void k(int* x, float f) {
  const int N = 4;
  x[0] = (N) - x[1] + rounded<int>(f);
}
int main() { k<<<1, 1>>>(nullptr, 1); }
"""


def test_casts_that_stay_as_they_were_are_warned_of(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """A variable that is taken for a type by its name does not compile as one, and neither stops the file."""
    source = tmp_path / "mistaken.cu"
    for text, warned in ((MISTAKEN, True), (MISTAKEN.replace("(N) -", "N -"), False)):
        source.write_text(text)
        done = cucc("-c", source, "-o", tmp_path / "mistaken.o")
        assert done.returncode == 0, done.stderr
        assert ("do not saturate in this file" in done.stderr) == warned, done.stderr


KEEPS = """
__device__ int length(int x) { return x; }
__device__ int length(const char*) { return 0; }
__global__ void k(int* x, float f) {
  x[0] = f;
  x[1] = length(f);
}
int main() {}
"""


def test_a_conversion_that_does_not_saturate_is_warned_of(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """A number of cucc's could become the pointer as well as the integer, so that the line stays as it was."""
    source = tmp_path / "keeps.cu"
    source.write_text(KEEPS)
    done = cucc("-c", source, "-o", tmp_path / "keeps.o")
    assert done.stderr.startswith(f"{source}:6: warning: a conversion to an integer does not saturate"), done.stderr
    assert done.stderr.count("warning") == 1 and "-Wfloat-conversion" not in done.stderr
    assert not cucc("-w", "-c", source, "-o", tmp_path / "keeps.o").stderr
    refused = cucc("-Werror", "all-warnings", "-c", source, "-o", tmp_path / "refused.o", check=False)
    assert refused.returncode and "-Werror all-warnings" in refused.stderr
    assert not (tmp_path / "refused.o").exists()
