"""Blocks of kernels run on the threads of a program's own team, where it gives one."""

import pathlib

import pytest
from compiling import Cucc, run_program

# The team counts its threads, and says how many it was asked for. Blocks count how often each has run.
PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <mc_runtime.h>
#include <thread>
#include <vector>

__global__ void count(int* ran) { atomicAdd(&ran[blockIdx.x * blockDim.x + threadIdx.x], 1); }

int calls = 0, most = 0;
unsigned size() { return 3; }
void run(unsigned threads, void (*body)(void*), void* data) {
  ++calls;
  most = (int)threads > most ? (int)threads : most;
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(body, data);
  body(data);
  for (auto& other : others) other.join();
}
const mcTeam team{&size, &run};

int* ran;
void launch(int blocks, int threads, cudaStream_t stream = nullptr) {
  std::vector<int> counts(blocks * threads);
  cudaMemset(ran, 0, counts.size() * sizeof(int));
  calls = most = 0;
  count<<<blocks, threads, 0, stream>>>(ran);
  cudaDeviceSynchronize();
  cudaMemcpy(counts.data(), ran, counts.size() * sizeof(int), cudaMemcpyDeviceToHost);
  for (const int each : counts) {
    if (each != 1) std::exit(3);
  }
  std::printf("%d of %d\\n", calls, most);
}

int main() {
  cudaMalloc(&ran, 1 << 20);
  launch(64, 256);
  mcKernelTeam(&team);
  launch(64, 256);
  launch(1, 1024);  // nothing to share
  launch(2, 1024);  // too little
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaLaunchHostFunc(stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }, nullptr);
  launch(64, 256, stream);  // on a thread of the runtime
  mcKernelTeam(nullptr);
  launch(64, 256);
}
"""


@pytest.fixture(scope="module")
def program(cucc: Cucc, sdk: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the compiled program."""
    folder = tmp_path_factory.mktemp("teams")
    source, program = folder / "teams.cu", folder / "teams"
    source.write_text(PROGRAM, encoding="utf-8")
    runtime = sdk / "lib"
    cucc(source, "-O2", f"-L{runtime}", "-lmcruntime", "-Xlinker", f"-rpath={runtime}", "-o", program)
    return program


def test_blocks_run_on_the_team_of_the_program(program: pathlib.Path) -> None:
    done = run_program(program)
    assert (done.returncode, done.stderr) == (0, "")
    none = "0 of 0"
    assert done.stdout.split("\n")[:-1] == [none, "1 of 3", none, none, none, none]


def test_a_number_of_threads_for_kernels_alone_keeps_them_apart(program: pathlib.Path) -> None:
    done = run_program(program, MACA_NUM_THREADS="2")
    assert (done.returncode, set(done.stdout.split("\n"))) == (0, {"0 of 0", ""})
