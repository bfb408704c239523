"""More threads that wait than the system maps guard pages for (the note in fiber.h)."""

import pathlib

from compiling import Cucc, run_program

# 40 blocks of 1024 threads: each of them meets all the others, and some use more than their stacks hold.
SOURCE = """
#include <cooperative_groups.h>
#include <cstdio>
__device__ int deeper(int levels, volatile int* out) {
  volatile char frame[8192];
  for (int i = 0; i < 8192; i += 1024) frame[i] = static_cast<char>(levels);
  return levels == 0 ? frame[1024] : deeper(levels - 1, out) + frame[0];
}
__global__ void meet(int* counts, int* out, int levels, int block) {
  const auto grid = cooperative_groups::this_grid();
  atomicAdd(counts, 1);
  grid.sync();
  if (static_cast<int>(blockIdx.x) == block && threadIdx.x == 1000) *out = deeper(levels, out);
  grid.sync();
  if (counts[0] == static_cast<int>(gridDim.x * blockDim.x) && threadIdx.x == 0) atomicAdd(counts + 1, 1);
}
int main(int, char** arguments) {
  int levels = std::atoi(arguments[1]);
  int *counts, *out;
  cudaMallocManaged(&counts, 8);
  cudaMallocManaged(&out, 4);
  for (int block : {std::atoi(arguments[2]), 39}) {
    counts[0] = counts[1] = 0;
    void* list[] = {&counts, &out, &levels, &block};
    cudaLaunchCooperativeKernel(reinterpret_cast<void*>(meet), dim3(40), dim3(1024), list);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) return std::printf("%s\\n", cudaGetErrorName(error)), 0;
    std::printf("%d ", counts[1]);
  }
}
"""


def test_a_cooperative_launch_has_stacks_for_all_its_threads(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    source, program = tmp_path / "many.cu", tmp_path / "many"
    source.write_text(SOURCE, encoding="utf-8")
    cucc("-O1", source, "-o", program)
    done = run_program(program, "10", "0", MACA_STATE_DIR=str(tmp_path))
    assert done.stdout == "40 40 ", done.stdout + done.stderr
    # 40 * 8 KiB are more than a stack has. The first blocks' guard pages fault, the last ones' are looked at.
    for block in ("0", "39"):
        done = run_program(program, "40", block, MACA_STATE_DIR=str(tmp_path))
        assert done.stdout == "cudaErrorIllegalAddress\n", block + done.stdout + done.stderr
