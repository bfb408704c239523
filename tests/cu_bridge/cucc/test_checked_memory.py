"""MACA_CHECK=memory: whoever touches memory that is not their own is named, and whose it was."""

import pathlib
import re
import shutil
import signal
from typing import Dict, Tuple

import compiling
import pytest

SOURCE = """
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <unistd.h>

__global__ void addOne(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1;
}

__global__ void hold(volatile int* flag, float* values) {
  while (*flag == 0) values[0] = 1;
}

// The host touches memory while a kernel works with it, and then lets the kernel end.
int meanwhile(float* values, bool touches) {
  int* flag;
  cudaHostAlloc(&flag, sizeof(int), cudaHostAllocDefault);
  *flag = 0;
  hold<<<1, 1>>>(flag, values);
  addOne<<<4, 256>>>(values, 1000);
  for (int i = 0; i < 100; ++i) usleep(1000);
  if (touches) values[5] = 1;
  *flag = 1;
  return cudaDeviceSynchronize();
}

int main(int, char** arguments) {
  float *values, *odd, host[1000] = {};
  cudaMalloc(&values, sizeof host);
  cudaMalloc(&odd, 998 * sizeof(float));
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  switch (std::atoi(arguments[1])) {
    case 0: addOne<<<4, 256>>>(values, 1000); break;
    case 1: addOne<<<5, 256>>>(values, 1001); break;
    case 2: addOne<<<4, 256>>>(odd, 999); break;
    case 3: addOne<<<1, 1>>>(values - 1, 1); break;
    case 4: cudaFree(values); addOne<<<4, 256>>>(values, 1000); break;
    case 5: values[5] = 1; break;
    case 6: std::printf("%g\\n", values[5]); break;
    case 7: cudaFree(values); std::printf("%d\\n", cudaFree(values)); return 0;
    case 8: std::printf("%d\\n", cudaFree(values + 4)); return 0;
    case 10: std::printf("%d\\n", meanwhile(values, false)); break;
    case 11: std::printf("%d\\n", meanwhile(values, true)); break;
    default: {  // many live, many freed: none of them is anybody else's
      for (int round = 0; round < 20000; ++round) {
        float* block;
        if (cudaMalloc(&block, 100) != cudaSuccess) return 1;
        addOne<<<1, 32>>>(block, 25);
        cudaFree(block);
      }
    }
  }
  std::printf("%d\\n", cudaDeviceSynchronize());
  const int copied = cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d %g\\n", copied, host[999]);
}
"""
# Linux names them among the processor's flags when both have them.
HAS_KEYS = " ospke" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
KERNEL = r"kernel addOne\(float\*, int\)"
BLOCK = r"an allocation of 4000 bytes, made at \S.*"
# What a program does (its number), what it prints without the mode and with it, and what is said then.
MISTAKES: Dict[str, Tuple[int, str, str]] = {
    "reads behind the end": (
        1,
        "700\n700 0",
        rf"{KERNEL}, block \(3, 0, 0\): touches 0 bytes behind the end of {BLOCK}",
    ),
    "writes into the slack": (
        2,
        "700\n700 0",
        rf"{KERNEL} wrote 0 bytes behind the end of an allocation of 3992 bytes",
    ),
    "writes before": (3, "700\n700 0", rf"{KERNEL} wrote 4 bytes before {BLOCK}"),
    "uses what was freed": (4, "700\n700 0", rf"{KERNEL}, .* touches byte 0 of {BLOCK} and freed at \S"),
    "frees twice": (7, "1", rf"freed twice: byte 0 of {BLOCK} and freed at \S.*, is freed again; at \S"),
    "frees an inner address": (8, "1", rf"freed, but no start of an allocation: byte 16 of {BLOCK}; at \S"),
}


@pytest.fixture(scope="module")
def program(sdk: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("checked")
    source = folder / "checked.cu"
    source.write_text(SOURCE, encoding="utf-8")
    compiling.make_cucc(sdk)("-g", source, "-o", folder / "checked")
    return folder / "checked"


def test_a_right_program_is_left_alone(program: pathlib.Path) -> None:
    done = compiling.run_program(program, "0", MACA_CHECK="memory")
    assert (done.stdout.split(), done.stderr) == (["0", "0", "1"], "")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_the_places_of_the_memory(program: pathlib.Path, mistake: str) -> None:
    number, printed, said = MISTAKES[mistake]
    done = compiling.run_program(program, str(number), MACA_CHECK="memory")
    assert done.stdout.strip() == printed
    assert re.search("mxmaca: MACA_CHECK=memory: " + said, done.stderr), done.stderr
    if shutil.which("addr2line") is not None:
        assert "checked.cu:" in done.stderr


@pytest.mark.parametrize("number, does", [(5, "writes"), (6, "reads")])
def test_the_host_may_not_touch_the_memory_of_the_device(program: pathlib.Path, number: int, does: str) -> None:
    done = compiling.run_program(program, str(number), MACA_CHECK="memory")
    assert done.returncode == -signal.SIGSEGV
    assert re.search(rf"the host {does} byte 20 of {BLOCK}", done.stderr), done.stderr


def test_a_kernel_that_goes_on_meanwhile_is_left_alone(program: pathlib.Path) -> None:
    done = compiling.run_program(program, "10", MACA_CHECK="memory")
    assert (done.stdout.split(), done.stderr) == (["0", "0", "0", "1"], "")


@pytest.mark.skipif(not HAS_KEYS, reason="the processor or the system has no protection keys")
def test_the_host_is_seen_while_a_kernel_works_with_the_memory(program: pathlib.Path) -> None:
    done = compiling.run_program(program, "11", MACA_CHECK="memory")
    assert done.returncode == -signal.SIGSEGV
    assert re.search(rf"the host writes byte 20 of {BLOCK}", done.stderr), done.stderr


def test_what_was_freed_does_not_use_up_the_addresses(program: pathlib.Path) -> None:
    done = compiling.run_program(program, "9", MACA_CHECK="memory")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["0", "0", "0"], "")


def test_without_the_mode_nothing_is_said(program: pathlib.Path) -> None:
    for number in (1, 2, 3, 5):
        assert compiling.run_program(program, str(number)).stderr == ""


def test_an_unknown_value_is_said(program: pathlib.Path) -> None:
    done = compiling.run_program(program, "0", MACA_CHECK="everything")
    assert "MACA_CHECK is 'everything'" in done.stderr and done.returncode == 0
