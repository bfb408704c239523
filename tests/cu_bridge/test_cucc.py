"""cucc and the execution of kernels: every feature in every schedule, wrong kernels, the command line."""

import pathlib
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, Optional

import pytest
from compiling import Cucc, clean_environment, make_cucc, run_program

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE / "kernels"
CASES = {
    path.stem: re.findall(r"^CASE\((\w+)\)", path.read_text(encoding="utf-8"), re.MULTILINE)
    for path in sorted(KERNELS.glob("*.cu"))
}
FILES = [stem for stem, cases in CASES.items() if cases]
# Files that are programs of their own and count their failures.
PROGRAMS = [stem for stem, cases in CASES.items() if not cases]
SCHEDULES = ("forward", "reverse", "random:1", "random:2")


@pytest.fixture(scope="session")
def cucc(sdk: pathlib.Path) -> Cucc:
    """Return a function that runs the installed cucc."""
    return make_cucc(sdk)


@pytest.fixture(scope="session")
def cases(cucc: Cucc, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the program that all files of kernels/ make together."""
    folder = tmp_path_factory.mktemp("kernels")

    def compile_file(path: pathlib.Path) -> pathlib.Path:
        output = folder / (path.name + ".o")
        cucc("-std=c++17", "-O1", "--extended-lambda", "-c", path, "-o", output)
        return output

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_file, [KERNELS / "main.cpp", *(KERNELS / f"{stem}.cu" for stem in FILES)]))
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


@pytest.mark.parametrize("stem", PROGRAMS)
def test_programs_of_the_device_library_find_no_failure(cucc: Cucc, stem: str, tmp_path: pathlib.Path) -> None:
    program = tmp_path / stem
    cucc("-std=c++17", "-O1", "--extended-lambda", KERNELS / f"{stem}.cu", "-o", program)
    for schedule in SCHEDULES[:3]:
        environment = clean_environment(MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(tmp_path))
        done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{schedule}: {done.stdout}\n{done.stderr}\nexit status {done.returncode}"


def test_at_least_sixty_features_have_a_kernel_of_their_own() -> None:
    assert sum(map(len, CASES.values())) >= 60


def test_kernels_become_phases_where_that_is_right_and_only_there(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    """Speed hangs on the first, results on the second; their values are checked with the other kernels."""
    cucc("--keep", "--keep-dir", tmp_path, "-c", KERNELS / "phases.cu", "-o", tmp_path / "phases.o")
    text = (tmp_path / "phases.device.ii").read_text(encoding="utf-8")
    kernels = re.findall(r" void ((?:fits|keeps)_\w+)\(.*?decltype\(__mxmaca_body\)[^,;]*(,?)", text, re.DOTALL)
    assert len(kernels) == 16
    assert {name: bool(comma) for name, comma in kernels} == {name: name.startswith("fits_") for name, _ in kernels}
    cucc("-G", "--keep", "--keep-dir", tmp_path, "-c", KERNELS / "phases.cu", "-o", tmp_path / "phases.o")
    assert "__mxmaca_phases" not in (tmp_path / "phases.device.ii").read_text(encoding="utf-8")


# ---- Wrong kernels ---------------------------------------------------------------------------------------------------

WRONG = """
#include <cuda_runtime.h>
#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
volatile std::sig_atomic_t heard = 0;
__global__ void missing_barrier(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x + 1000 * blockIdx.x;
  out[threadIdx.x] = s[63 - threadIdx.x];

}
__global__ void divergent_barrier(int* out) {
  if (threadIdx.x < 10) {
    __syncthreads();  // line of the first
    out[0] = 1;
  } else {
    __syncthreads();  // line of the second
  }
}
__global__ void stuck(int* out) {
  if (threadIdx.x == 0) __syncthreads();
  else *out = __shfl_sync(0xffffffffu, 1, 0);
}
__global__ void wrong_mask(int* out) { *out = __shfl_sync(1u, 1, 0); }
__global__ void out_of_bounds(int* out) { out[1ULL << 44] = 1; }
__global__ void null_pointer(int*) { *(volatile int*)nullptr = 1; }
__global__ void beyond_dynamic_shared(int* out) {
  extern __shared__ int s[];
  s[threadIdx.x + 64] = 1;
  *out = s[0];
}
__global__ void asserts(int* out) { assert(threadIdx.x < 5 && "five"); *out = 1; }
__global__ void traps(int*) { __trap(); }
__global__ void overflows(int* out) {
  volatile char frame[1 << 20];
  frame[threadIdx.x] = 1;
  for (int i = 0; i < (1 << 20); i += 4096) frame[i] = 1;
  *out = frame[5];
}
__global__ void no_grid(int*) { mxmaca::grid_sync(); }
__global__ void race(int* out) { out[0] = threadIdx.x; }
__global__ void runs_away(int* out) { while (*(volatile int*)out == 0) {} }
__global__ void meets_for_ever(int* out) { while (*(volatile int*)out == 0) __syncthreads(); }
__global__ void divides(int* out) { *out = 100 / *out; }
__global__ void aborts(int* out) { if (*out == 0) abort(); }
__global__ void exits(int* out) { if (*out == 0) exit(0); }
__global__ void different_shuffles(int* out) {
  int v = threadIdx.x;
  if (v < 16) v = __shfl_xor_sync(0xffffffffu, v, 1);
  else v = __shfl_down_sync(0xffffffffu, v, 1);
  out[threadIdx.x] = v;
}
__global__ void different_votes(int* out) {
  int v = threadIdx.x;
  if (v < 16) v = __any_sync(0xffffffffu, v == 3);
  else v = __all_sync(0xffffffffu, v == 3);
  out[threadIdx.x] = v;
}
__global__ void stuck_in_a_loop(int* out) {
  for (int i = threadIdx.x; i < 48; i += 32)
    out[threadIdx.x] = __shfl_sync(0xffffffffu, i, 0);  // half of the warp comes twice
  __syncthreads();
}
__global__ void two_masks(int* out) {
  if (threadIdx.x < 16) out[0] = __shfl_sync(0xffffffffu, 1, 0);
  else out[1] = __shfl_sync(0xfffffff0u, 1, 16);
}
int main(int count, char** arguments) {
  int* out;
  if (count > 2) {
    std::signal(SIGINT, [](int) { heard = 1; });
    std::puts("ready");
    std::fflush(stdout);
  }
  cudaMalloc(&out, 256);
  cudaMemset(out, 0, 256);
#define RUN(kernel, threads, bytes) if (!std::strcmp(arguments[1], #kernel)) kernel<<<2, threads, bytes>>>(out)
  RUN(missing_barrier, 64, 0);
  RUN(divergent_barrier, 64, 0);
  RUN(stuck, 32, 0);
  RUN(wrong_mask, 2, 0);
  RUN(out_of_bounds, 1, 0);
  RUN(null_pointer, 1, 0);
  RUN(beyond_dynamic_shared, 64, 256);
  RUN(asserts, 6, 0);
  RUN(traps, 1, 0);
  RUN(overflows, 2, 0);
  RUN(no_grid, 2, 0);
  RUN(race, 64, 0);
  RUN(divides, 1, 0);
  RUN(aborts, 1, 0);
  RUN(exits, 1, 0);
  RUN(different_shuffles, 32, 0);
  RUN(different_votes, 32, 0);
  RUN(stuck_in_a_loop, 32, 0);
  RUN(two_masks, 32, 0);
  RUN(runs_away, 1024, 0);
  RUN(meets_for_ever, 64, 0);
  if (count > 2) std::printf("heard %d\\n", heard);
  cudaError_t error = cudaGetLastError();
  std::printf("%s|%s\\n", cudaGetErrorName(error), cudaGetErrorString(error));
  std::printf("sticky %d\\n", cudaDeviceSynchronize() == error);
  int host[64] = {};
  if (cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess)
    for (int i = 0; i < 64; ++i) std::printf("%d ", host[i]);
}
"""


@pytest.fixture(scope="session")
def wrong_program(cucc: Cucc, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the program that launches the wrong kernel of a name."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "wrong.cu").write_text(WRONG, encoding="utf-8")
    cucc("-std=c++17", folder / "wrong.cu", "-o", folder / "wrong")
    return folder / "wrong"


@pytest.fixture(scope="session")
def wrong(wrong_program: pathlib.Path) -> Callable[..., str]:
    """Return a function that runs one of the wrong kernels and returns what the program says of it."""
    folder = wrong_program.parent

    def run(kernel: str, schedule: str = "forward", **variables: str) -> str:
        environment = clean_environment(MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(folder), **variables)
        done = subprocess.run([str(wrong_program), kernel], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"the program did not survive: {done}"
        return done.stdout

    return run


@pytest.mark.parametrize(
    ("kernel", "error", "words"),
    [
        ("divergent_barrier", "cudaErrorLaunchFailure", ["divergent", "wrong.cu:17", "wrong.cu:20", "block (0, 0, 0)"]),
        (
            "stuck",
            "cudaErrorLaunchFailure",
            ["wait for each other", "__syncthreads()", "mask 0xffffffff", "names thread"],
        ),
        ("different_shuffles", "cudaErrorLaunchFailure", ["different warp operations", "(0, 0, 0)", "(16, 0, 0)"]),
        ("different_votes", "cudaErrorLaunchFailure", ["different warp operations", "(0, 0, 0)", "(16, 0, 0)"]),
        (
            "stuck_in_a_loop",
            "cudaErrorLaunchFailure",
            ["wait for each other", "0xffffffff", "names thread (16, 0, 0)"],
        ),
        ("two_masks", "cudaErrorLaunchFailure", ["wait for each other", "0xffffffff", "names thread (16, 0, 0)"]),
        ("wrong_mask", "cudaErrorLaunchFailure", ["mask 0x00000001", "thread (1, 0, 0)"]),
        ("out_of_bounds", "cudaErrorIllegalAddress", []),
        ("null_pointer", "cudaErrorIllegalAddress", ["address (nil)"]),
        ("beyond_dynamic_shared", "cudaErrorIllegalAddress", []),
        ("asserts", "cudaErrorAssert", ["threadIdx.x < 5", "wrong.cu"]),
        ("traps", "cudaErrorLaunchFailure", ["__trap()"]),
        ("overflows", "cudaErrorIllegalAddress", []),
        ("no_grid", "cudaErrorLaunchFailure", ["not launched cooperatively"]),
        ("divides", "cudaErrorLaunchFailure", ["division of an integer by zero"]),
        ("aborts", "cudaErrorLaunchFailure", ["abort()"]),
        ("exits", "cudaErrorLaunchFailure", ["exit()"]),
    ],
)
def test_a_wrong_kernel_gives_a_lasting_error_with_its_name(
    wrong: Callable[..., str], kernel: str, error: str, words: List[str]
) -> None:
    first, second = wrong(kernel).splitlines()[:2]
    assert first.startswith(error + "|") and f"kernel {kernel}(int*)" in first, first
    assert second == "sticky 1"
    for word in words:
        assert word in first


# ---- Warp operations for lanes that take no part ---------------------------------------------------------------------

# Each kernel with a shape of its block and how the line begins that it is warned about at.
ABSENT_LANES = r"""
#include <cmath>
#include <cstdio>
#include <cstring>
// A reduction over rows by groups of four lanes, as matrix products for training have it: with two or six rows some
// lanes leave the inner loop before others.
__global__ void rows_by_fours(int* out, int rows) {
  __shared__ float partial[8][8][8];
  for (int k = 0; k < 8; ++k) partial[k][threadIdx.z][threadIdx.y] = 1;
  __syncthreads();
  for (int k = threadIdx.z; k < 8; k += blockDim.z) {
    float sum = 0;
    for (int r = threadIdx.x; r < rows; r += 4) {
      float v = partial[k][r][threadIdx.y];
      v += __shfl_down_sync(0xffffffffu, v, 1, 4);
      v += __shfl_down_sync(0xffffffffu, v, 2, 4);
      sum += v;
    }
    if (threadIdx.x == 0) out[k] = sum == rows ? 1 : std::isnan(sum) ? 2 : 3;
  }
}
__global__ void ended_lane(int* out, int n) {
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = __shfl_sync(0xffffffffu, int(threadIdx.x), 31);
}
__global__ void lane_beyond_the_block(int* out, int) {  // in phases, if it had whole warps
  int v = threadIdx.x;
  v = __shfl_xor_sync(0xffffffffu, v, 16);
  out[threadIdx.x] = v;
}
__global__ void lane_of_no_mask(int* out, int) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, int(threadIdx.x), 20);
}
__global__ void other_branch(int* out, int) {
  int v = threadIdx.x;
  if (v % 2)
    v = __shfl_xor_sync(0xffffffffu, v, 1);
  else
    v = __shfl_xor_sync(0xffffffffu, v + 100, 1);
  out[threadIdx.x] = v;
}
__global__ void votes_in_a_loop(int* out, int n) {
  for (int i = threadIdx.x; i < n; i += 32) out[i] = __ballot_sync(0xffffffffu, i % 2);
}
__global__ void early_return(int* out, int n) {  // right: lanes that have ended do not count
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = __popc(__ballot_sync(0xffffffffu, 1)) + __shfl_sync(0xffffffffu, 5, 3);
}
__global__ void own_mask(int* out, int n) {  // right
  const unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x < n);
  if (threadIdx.x < n) {
    for (int i = 0; i < 3; ++i) out[threadIdx.x] = __shfl_xor_sync(mask, int(threadIdx.x), 1);
  } else {
    __syncwarp(~mask);
  }
  __syncwarp();
}
__global__ void two_places_of_syncwarp(int* out, int) {  // right
  if (threadIdx.x % 2) {
    out[threadIdx.x] = 1;
    __syncwarp();
  } else {
    __syncwarp();
    out[threadIdx.x] = out[threadIdx.x + 1];
  }
}
int main(int, char** arguments) {
  int* out;
  cudaMallocManaged(&out, 4096);
#define RUN(kernel, shape, n) \
  if (!std::strcmp(arguments[1], #kernel)) for (int i = 0; i < 3; ++i) kernel<<<2, shape>>>(out, n)
  if (!std::strcmp(arguments[1], "rows_by_fours_2")) rows_by_fours<<<1, dim3(4, 8, 2)>>>(out, 2);
  if (!std::strcmp(arguments[1], "rows_by_fours_6")) rows_by_fours<<<1, dim3(4, 8, 6)>>>(out, 6);
  if (!std::strcmp(arguments[1], "rows_by_fours_8")) rows_by_fours<<<1, dim3(4, 8, 8)>>>(out, 8);
  RUN(ended_lane, 32, 20);
  RUN(lane_beyond_the_block, 40, 0);
  RUN(lane_of_no_mask, 32, 0);
  RUN(other_branch, 32, 0);
  RUN(votes_in_a_loop, 32, 40);
  RUN(early_return, 32, 20);
  RUN(own_mask, 32, 20);
  RUN(two_places_of_syncwarp, 32, 0);
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s", cudaGetErrorName(error));
  for (int i = 0; i < 40; ++i) std::printf(" %d", out[i]);
}
"""
LINE = {
    word: ABSENT_LANES[: ABSENT_LANES.index(word)].count("\n") + 1
    for word in ("v, 1, 4)", "v, 2, 4)", ", 31);", "v, 16);", ", 20);", "v + 100", "i % 2)")
}


@pytest.fixture(scope="session")
def absent_lanes(cucc: Cucc, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the program of ABSENT_LANES."""
    folder = tmp_path_factory.mktemp("absent")
    (folder / "lanes.cu").write_text(ABSENT_LANES, encoding="utf-8")
    cucc("-std=c++17", folder / "lanes.cu", "-o", folder / "lanes")
    return folder / "lanes"


@pytest.mark.parametrize("schedule", SCHEDULES[:3])
@pytest.mark.parametrize(
    ("kernel", "name", "lines", "values"),
    [
        ("rows_by_fours_2", "rows_by_fours", ["v, 1, 4)", "v, 2, 4)"], [2] * 8),
        ("rows_by_fours_6", "rows_by_fours", ["v, 1, 4)", "v, 2, 4)"], None),
        ("rows_by_fours_8", "rows_by_fours", [], [1] * 8),
        ("ended_lane", "ended_lane", [", 31);"], [-1] * 20),
        ("lane_beyond_the_block", "lane_beyond_the_block", ["v, 16);"], [*range(16, 32), *range(16), *[-1] * 8]),
        ("lane_of_no_mask", "lane_of_no_mask", [", 20);"], [-1] * 16),
        ("other_branch", "other_branch", ["v + 100"], [v + 1 if v % 2 == 0 else v + 99 for v in range(32)]),
        ("votes_in_a_loop", "votes_in_a_loop", ["i % 2)"], None),
        ("early_return", "early_return", [], [25] * 20),
        ("own_mask", "own_mask", [], [v ^ 1 for v in range(20)]),
        ("two_places_of_syncwarp", "two_places_of_syncwarp", [], [1] * 32),
    ],
)  # fmt: skip
def test_a_warp_operation_for_lanes_that_take_no_part_is_said_once_and_right_ones_are_not(
    absent_lanes: pathlib.Path, kernel: str, name: str, lines: List[str], values: Optional[List[int]], schedule: str
) -> None:
    done = run_program(absent_lanes, kernel, MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(absent_lanes.parent))
    error, *numbers = done.stdout.split()
    assert done.returncode == 0 and error == "cudaSuccess", done
    assert done.stderr.count("\n") == (1 if lines else 0), done.stderr
    if lines:
        places = [f"lanes.cu:{LINE[word]}" for word in lines]
        assert f"kernel {name}(int*, int), block (" in done.stderr and any(place in done.stderr for place in places)
    if values is not None:
        assert [int(number) for number in numbers[: len(values)]] == values


@pytest.mark.parametrize("kernel", ["runs_away", "meets_for_ever"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_kernel_that_runs_away_is_ended_at_the_limit(wrong: Callable[..., str], kernel: str, threads: str) -> None:
    first, second = wrong(kernel, MACA_KERNEL_TIMEOUT="0.3", MACA_NUM_THREADS=threads).splitlines()[:2]
    assert first.startswith("cudaErrorLaunchTimeout|") and f"kernel {kernel}(int*)" in first, first
    assert "0.3 seconds" in first and second == "sticky 1"


def test_a_limit_that_is_no_number_is_said(wrong_program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    environment = clean_environment(MACA_STATE_DIR=str(tmp_path), MACA_KERNEL_TIMEOUT="soon")
    done = subprocess.run([str(wrong_program), "race"], env=environment, capture_output=True, text=True, timeout=60)
    assert "MACA_KERNEL_TIMEOUT is 'soon'" in done.stderr and "cudaSuccess" in done.stdout


def test_ctrl_c_ends_a_kernel_that_goes_on_for_long(wrong_program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The program's own handler runs as well."""
    environment = clean_environment(MACA_STATE_DIR=str(tmp_path))
    with subprocess.Popen(
        [str(wrong_program), "runs_away", "interrupted"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(2)  # a short kernel is left alone
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=30)
    assert text.startswith("heard 1\ncudaErrorLaunchTimeout|") and "it was interrupted" in text, text


@pytest.mark.parametrize("kernel", ["missing_barrier", "race"])
def test_a_missing_barrier_and_a_race_show_between_schedules(wrong: Callable[..., str], kernel: str) -> None:
    assert len({wrong(kernel, schedule) for schedule in SCHEDULES}) > 1


def test_a_schedule_that_is_none_is_refused(wrong: Callable[..., str]) -> None:
    assert "MACA_SCHEDULE is 'backwards'" in wrong("race", "backwards")


def test_the_address_sanitizer_points_at_the_kernels_line(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "heap.cu"
    source.write_text(
        "#include <cstdlib>\n"
        "__global__ void writes(int* p, int n) {\n"
        "  __syncthreads();\n"
        "  p[threadIdx.x + n] = 1;\n"
        "}\n"
        "int main() {\n"
        "  int* p = (int*)malloc(64 * 4);\n"
        "  writes<<<1, 64>>>(p, 0);\n"
        "  if (cudaDeviceSynchronize() != cudaSuccess) return 3;\n"
        "  writes<<<1, 64>>>(p, 1);\n"
        "}\n"
    )
    cucc("-g", "-Xcompiler", "-fsanitize=address", source, "-o", tmp_path / "heap")
    done = subprocess.run([str(tmp_path / "heap")], env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode not in (0, 3)
    assert "heap-buffer-overflow" in done.stderr and "heap.cu:4" in done.stderr, done.stderr


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


def test_a_launch_from_device_code_is_refused(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "nested.cu"
    source.write_text("__global__ void k(int* x) {\n  if (*x)\n    k<<<1, 1>>>(x);\n}\nint main() {}\n")
    done = cucc("-c", source, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and "nested.cu:3: error: a launch from device code" in done.stderr, done.stderr
    # In a function it is only known when it runs.
    source.write_text(
        "#include <cstdio>\n__global__ void k(int* x) { *x = 1; }\n__device__ void f(int* x) { k<<<1, 1>>>(x); }\n"
        "__global__ void outer(int* x) { f(x); }\n"
        "int main() { int* x; cudaMalloc(&x, 4); outer<<<1, 1>>>(x);\n"
        '  std::printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize())); }\n'
    )
    cucc(source, "-o", tmp_path / "program")
    done = subprocess.run(
        [str(tmp_path / "program")], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert "outer(int*)" in done.stdout and "launch from device code" in done.stdout, done


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


def test_unsupported_ptx_is_an_error_that_names_the_instruction(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "ptx.cu"
    source.write_text(
        '__global__ void k() {\n  asm volatile("wgmma.fence.sync.aligned;\\n");\n}\nint main() { k<<<1, 1>>>(); }\n'
    )
    done = cucc("-c", source, "-o", tmp_path / "out.o", check=False)
    assert done.returncode != 0 and "wgmma.fence.sync.aligned" in done.stderr and "ptx.cu:2" in done.stderr


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
