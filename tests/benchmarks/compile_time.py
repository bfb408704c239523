"""Compile time of a kernel file of 200 lines with torch's headers, beside g++ on an equally long C++ file.

    python tests/benchmarks/compile_time.py [rounds]

Both files hold the same operators, once as kernels, once as loops. Prints each compilation as it ends, then seconds by
the clock and of processors, their ratios, and cucc's phases. A round takes about two minutes of one processor; without
a number there is one. The target of docs/cu_bridge.md is 1.5.
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from typing import Dict, List, Tuple

import torch
from torch.utils import cpp_extension

import mxmaca

# Name, expression of a and b.
OPERATORS = {
    "add": "a + b",
    "scaled": "a * T(2) + b",
    "relu": "a > b ? a : T(0)",
    "square": "a * a - b * b",
    "blend": "a * T(0.25) + b * T(0.75)",
    "clamp": "a < T(-1) ? T(-1) : (a > T(1) ? T(1) : a + b)",
    "cubic": "a * a * a + b * a + b",
    "hinge": "T(1) - a * b > T(0) ? T(1) - a * b : T(0)",
}
KERNEL = """
// {name}: one thread for each element, and a sum over each block.
template <typename T>
__global__ void {name}_kernel(const T* x, const T* y, T* out, float* sums, int64_t n) {{
  __shared__ float partial[256];
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  T value = T(0);
  if (i < n) {{
    const T a = x[i], b = y[i];
    value = {expression};
    out[i] = value;
  }}
  partial[threadIdx.x] = static_cast<float>(value);
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {{
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }}
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}}"""
LOOP = """
// {name}: one turn for each element, and a sum over each block of 256.
template <typename T>
void {name}_loop(const T* x, const T* y, T* out, float* sums, int64_t n) {{
  for (int64_t block = 0; block * 256 < n; ++block) {{
    float sum = 0;
    for (int64_t i = block * 256; i < n && i < block * 256 + 256; ++i) {{
      const T a = x[i], b = y[i];
      const T value = {expression};
      out[i] = value;
      sum += static_cast<float>(value);
    }}
    sums[block] = sum;
  }}
}}





"""
LAUNCH = """
torch::Tensor {name}(const torch::Tensor& x, const torch::Tensor& y) {{
  auto out = torch::empty_like(x);
  auto sums = torch::empty({{(x.numel() + 255) / 256}}, x.options().dtype(torch::kFloat));
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "{name}", [&] {{
    {call}(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), sums.data_ptr<float>(), x.numel());
  }});
  return out;
}}
"""
CUDA_CALL = "{name}_kernel<scalar_t><<<(x.numel() + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>"


def source(cuda: bool) -> str:
    """The file, in CUDA C++ or in C++."""
    headers = ["torch/extension.h"] + (["ATen/cuda/CUDAContext.h", "c10/cuda/CUDAGuard.h"] if cuda else [])
    parts = [f"#include <{name}>\n" for name in headers]
    for name, expression in OPERATORS.items():
        call = CUDA_CALL.format(name=name) if cuda else f"{name}_loop<scalar_t>"
        parts.append((KERNEL if cuda else LOOP).format(name=name, expression=expression))
        parts.append(LAUNCH.format(name=name, call=call))
    bindings = "".join(f'  m.def("{name}", &{name});\n' for name in OPERATORS)
    return "".join(parts) + "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n" + bindings + "}\n"


def timed(command: List[str]) -> Tuple[float, float]:
    """Seconds by the clock and of processors."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.monotonic() - begin, used


def main() -> None:
    """Print a line for each compiler and the ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    standard = "-std=c++20" if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 10) else "-std=c++17"
    flags = [
        "-O2",
        standard,
        "-DTORCH_EXTENSION_NAME=timed",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
    ]
    for folder in [*cpp_extension.include_paths(), sysconfig.get_paths()["include"]]:
        flags += ["-isystem", folder]
    compiler = os.environ.get("CXX", "g++")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "kernels.cu").write_text(source(cuda=True), encoding="utf-8")
        (folder / "loops.cpp").write_text(source(cuda=False), encoding="utf-8")
        for file in ("kernels.cu", "loops.cpp"):
            print(f"{file}: {len((folder / file).read_text().splitlines())} lines", flush=True)
        phases = folder / "phases.csv"
        cucc = [sys.executable, str(mxmaca.root() / "bin" / "cucc"), "-ccbin", compiler, "-time", str(phases)]
        commands = {
            "g++": [compiler, *flags, "-fPIC", "-c", str(folder / "loops.cpp"), "-o", str(folder / "loops.o")],
            "cucc": [*cucc, *flags, "-Xcompiler", "-fPIC", "-c", str(folder / "kernels.cu"), "-o", str(folder / "k.o")],
        }
        seconds: Dict[str, List[Tuple[float, float]]] = {key: [] for key in commands}
        for number in range(rounds):
            for key, command in commands.items():
                clock_seconds, used_seconds = timed(command)
                seconds[key].append((clock_seconds, used_seconds))
                line = f"{key} {clock_seconds:.1f} s by the clock, {used_seconds:.1f} s of processors"
                print(f"round {number + 1} of {rounds}: {line}", flush=True)
        rows = [line.split(",") for line in phases.read_text(encoding="utf-8").splitlines()[1:]]
    print(f"{'':<6} {'clock':>8} {'processor':>10}   seconds, medians of {rounds}")
    clock = {key: statistics.median(value[0] for value in values) for key, values in seconds.items()}
    used = {key: statistics.median(value[1] for value in values) for key, values in seconds.items()}
    for key in commands:
        print(f"{key:<6} {clock[key]:>8.2f} {used[key]:>10.2f}")
    print(f"{'ratio':<6} {clock['cucc'] / clock['g++']:>8.2f} {used['cucc'] / used['g++']:>10.2f}   target 1.5")
    for phase in dict.fromkeys(row[1].strip() for row in rows):
        total = sum(float(row[6]) for row in rows if row[1].strip() == phase) / 1000 / rounds
        if total > 0.05:
            print(f"  {phase:<22} {total:6.2f} s")


if __name__ == "__main__":
    main()
