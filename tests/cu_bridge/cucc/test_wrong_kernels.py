"""Wrong kernels: a lasting error with the kernel's name, limits, schedules that show races, the address sanitizer."""

import pathlib
import signal
import subprocess
import time
from typing import Callable, List, Optional

import pytest
from compiling import SCHEDULES, Cucc, clean_environment, run_program

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
__global__ void misaligned(int* out) { *reinterpret_cast<uint4*>(out + 16) = reinterpret_cast<uint4*>(out + 1)[*out]; }
__global__ void misaligned_store(int* out) { reinterpret_cast<uint4*>(out + 2)[*out] = make_uint4(1, 2, 3, 4); }
__global__ void no_address(int* out) { *out = *(volatile int*)(0x1234567812345678ull + *out); }
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
__device__ void meet(int barrier, int threads) { asm volatile("bar.sync %0, %1;" :: "r"(barrier), "r"(threads)); }
__global__ void stuck_at_a_barrier(int* out) {
  if (threadIdx.x < 32) meet(3, 64);
  out[threadIdx.x] = 1;
}
__global__ void barrier_of_40(int*) { meet(1, 40); }
__global__ void barrier_16(int*) { meet(threadIdx.x / 2, 64); }
__global__ void barrier_of_two_numbers(int*) { meet(5, threadIdx.x < 32 ? 64 : 32); }
__global__ void arrives_twice(int*) {
  for (int i = 0; i < 2; ++i) asm volatile("bar.arrive 1, 64;");
}
// What cucc makes of a loop that waits, if the threads were not to count alike.
__global__ void disagrees(int* out) {
  mxmaca::Agreed asked;
  for (int i = 0; i < 2; ++i) asked.say(i == 1);
  *out = asked.yes();
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
  RUN(misaligned, 1, 0);
  RUN(misaligned_store, 1, 0);
  RUN(no_address, 1, 0);
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
  RUN(stuck_at_a_barrier, 64, 0);
  RUN(barrier_of_40, 64, 0);
  RUN(barrier_16, 64, 0);
  RUN(barrier_of_two_numbers, 64, 0);
  RUN(arrives_twice, 32, 0);
  RUN(disagrees, 1, 0);
  RUN(runs_away, 1024, 0);
  RUN(meets_for_ever, 64, 0);
  cudaDeviceSynchronize();  // the launch of a kernel that may wait for the host has returned at once
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
        (
            "stuck_at_a_barrier",
            "cudaErrorLaunchFailure",
            ["wait for each other", "thread (0, 0, 0)", "barrier 3, to which 32 of 64 threads have come"],
        ),
        ("barrier_of_40", "cudaErrorLaunchFailure", ["barrier 1 for 40 threads", "a multiple of 32"]),
        ("barrier_16", "cudaErrorLaunchFailure", ["barrier 16 for 64 threads", "barriers 0 to 15"]),
        ("barrier_of_two_numbers", "cudaErrorLaunchFailure", ["for 32 threads, where others have come for 64"]),
        ("arrives_twice", "cudaErrorLaunchFailure", ["thread (0, 0, 0)", "barrier 1", "again"]),
        ("disagrees", "cudaErrorLaunchFailure", ["not the same for all threads"]),
        ("wrong_mask", "cudaErrorLaunchFailure", ["mask 0x00000001", "thread (1, 0, 0)"]),
        ("out_of_bounds", "cudaErrorIllegalAddress", []),
        ("null_pointer", "cudaErrorIllegalAddress", ["address (nil)"]),
        ("misaligned", "cudaErrorMisalignedAddress", ["a vector at address 0x", "no multiple of its size"]),
        ("misaligned_store", "cudaErrorMisalignedAddress", ["a vector at address 0x", "no multiple of its size"]),
        ("no_address", "cudaErrorIllegalAddress", ["address 0x1234567812345678"]),
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
__global__ void barriers_of_warps(int* out, int n) {  // what works: warps that part have barriers of their own
  __shared__ int words[64], sum;
  if (threadIdx.x < 32) {
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();  // of the first warp
    if (n > 0) __syncthreads();
    out[threadIdx.x] = n > 0 ? sum : words[threadIdx.x];
    return;
  }
  words[threadIdx.x] = threadIdx.x;
  __syncthreads();  // of the second warp
  if (threadIdx.x == 32) {
    sum = 0;
    for (int i = 0; i < 64; ++i) sum += words[i];
  }
  __syncthreads();
  out[threadIdx.x] = sum;
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
  if (!std::strcmp(arguments[1], "barriers_of_warps_0")) barriers_of_warps<<<2, 64>>>(out, 0);
  if (!std::strcmp(arguments[1], "barriers_of_warps_1")) barriers_of_warps<<<2, 64>>>(out, 1);
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s", cudaGetErrorName(error));
  for (int i = 0; i < 40; ++i) std::printf(" %d", out[i]);
}
"""
LINE = {
    word: ABSENT_LANES[: ABSENT_LANES.index(word)].count("\n") + 1
    for word in ("v, 1, 4)", "v, 2, 4)", ", 31);", "v, 16);", ", 20);", "v + 100", "i % 2)", "the first", "the second")
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


@pytest.mark.parametrize("schedule", SCHEDULES[:3])
@pytest.mark.parametrize(("kernel", "first"), [("barriers_of_warps_0", 5), ("barriers_of_warps_1", 2016)])
def test_warps_that_part_meet_at_barriers_of_different_lines_and_it_is_said(
    absent_lanes: pathlib.Path, kernel: str, first: int, schedule: str
) -> None:
    done = run_program(absent_lanes, kernel, MACA_SCHEDULE=schedule, MACA_STATE_DIR=str(absent_lanes.parent))
    error, *numbers = done.stdout.split()
    assert done.returncode == 0 and error == "cudaSuccess", done
    assert numbers[5] == str(first) and numbers[33] == "2016"
    assert done.stderr.count("\n") == 1 and "barriers of different places" in done.stderr, done.stderr
    assert all(f"lanes.cu:{LINE[word]}" in done.stderr for word in ("the first", "the second"))


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
