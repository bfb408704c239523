"""The device pass without the host's function bodies (cucc/rewriting/bodies.py): nothing changes but the time."""

import pathlib
import re

import pytest
from compiling import Cucc, run_program

# A header as torch's are: what stands in it is the host's unless it is marked.
HEADER = """
#pragma once
#include <string>
#include <vector>
namespace host {
inline int plain(int x = 3) { const char* brace = "{"; char other = '}'; return brace[0] == other ? x : 1'000 + x; }
static inline int kept_static(int x) { return x + 1; }
constexpr int constant(int x) { return x * 2; }
inline auto deduced(int x) { return x * 3L; }
template <class T> T generic(T x) { return x * T(4); }
__host__ __device__ inline int both(int x) { return x * 5; }
class Holder {
 public:
  Holder(int x, int y) : values_{x, y}, name_("}") {}
  explicit Holder(int x) noexcept : Holder(x, 0) { values_.push_back(6); }
  ~Holder() {}
  int first() const { return values_[0]; }
  operator bool() const { return !values_.empty(); }
  inline int second() const&;
  __device__ int marked() const { return 7; }
  virtual int called(int x) const { return x; }
  struct Inner { int deep() { return 8; } };
  friend int of(const Holder& h) { return h.first(); }

 private:
  std::vector<int> values_;
  std::string name_;
};
inline int Holder::second() const& { return values_[1]; }
inline int
    spread(
        int x)
{
  return x;
}
struct Point {
  int x, y;
  Point(int a, int b) : x(a), y(b) {}
  int sum() const { return x + y; }
};
const int table[] = {1, 2, 3};
auto lambda = [](int x) { return x + table[0]; };
}  // namespace host
extern "C" {
inline int with_c_linkage(int x) { return x * 9; }
}
"""
PROGRAM = """
#include <cstdio>
#include <cuda_runtime.h>
#include <torch/include/host.h>
template <class T> __global__ void k(T* out) { *out = T(KERNEL); }
void pybind11_init_module(int& m) { m = 1; REGISTERED }
static int used() {
  host::Holder h(4, 5);
  return h.first() + h.second() + host::plain() + host::spread(2) + host::kept_static(1) + host::constant(1) +
         host::deduced(1) + host::generic(1) + of(h) + host::lambda(1) + host::Point(1, 2).sum() + with_c_linkage(1) +
         host::Holder::Inner().deep();
}
int main() {
  int* out;
  cudaMallocManaged(&out, sizeof *out);
  k<int><<<1, 1>>>(out);
  int m = 0;
  pybind11_init_module(m);
  cudaError_t error = cudaDeviceSynchronize();
  std::printf("%d %d %d %s\\n", *out, used(), m, cudaGetErrorName(error));
}
"""
USED = 4 + 5 + 1003 + 2 + 2 + 2 + 3 + 4 + 4 + 2 + 3 + 9 + 8


def build(cucc: Cucc, folder: pathlib.Path, kernel: str, registered: str = "") -> str:
    """What the program prints; its passes are kept in the folder."""
    (folder / "torch" / "include").mkdir(parents=True)
    (folder / "torch" / "include" / "host.h").write_text(HEADER, encoding="utf-8")
    source = folder / "program.cu"
    source.write_text(PROGRAM.replace("KERNEL", kernel).replace("REGISTERED", registered), encoding="utf-8")
    warnings = ["-Xcompiler", "-Wall,-Wextra"]
    program = folder / "program"
    done = cucc("-keep", "-keep-dir", folder, *warnings, f"-I{folder}", source, "-o", program)
    assert (done.returncode, done.stderr) == (0, "")
    return run_program(program).stdout.strip()


@pytest.mark.parametrize("kernel, value", [("host::both(2) + host::constant(1) + host::generic(1)", 16), ("12", 12)])
def test_the_device_pass_is_not_shown_the_hosts_functions(
    cucc: Cucc, tmp_path: pathlib.Path, kernel: str, value: int
) -> None:
    assert build(cucc, tmp_path, kernel) == f"{value} {USED} 1 cudaSuccess"
    host, device = ((tmp_path / f"program.{name}.ii").read_text() for name in ("host", "device"))
    for body in ("return x * 3L;", "return x * T(4);", "return x * 9;", "{ return x + 1; }"):
        assert body in host and body in device
    for body in ("1'000 + x", "values_{x, y}", "return values_[0]", "return values_[1]", "return x + y", "{ m = 1;"):
        assert body in host and body not in device
    # No line has moved.
    begin, end = 'torch/include/host.h" 1', "int main()"
    shown = [text[text.index(begin) : text.index(end)] for text in (host, device)]
    where = [re.findall(r'^# \d+ ".*"', text, re.MULTILINE)[-1] for text in shown]
    behind = [text[text.rindex(marker) :].count("\n") for text, marker in zip(shown, where)]
    assert where[0] == where[1] and behind[0] == behind[1]


@pytest.mark.parametrize("kernel", ["host::plain(2)", "host::Point(1, 2).sum()", "host::Holder(3).first()"])
def test_a_kernel_may_reach_a_function_of_the_hosts(cucc: Cucc, tmp_path: pathlib.Path, kernel: str) -> None:
    value = {"host::plain(2)": 1002}.get(kernel, 3)
    assert build(cucc, tmp_path, kernel) == f"{value} {USED} 1 cudaSuccess"
    assert "1'000 + x" in (tmp_path / "program.device.ii").read_text()


def test_a_kernel_that_only_the_registration_launches_is_there(cucc: Cucc, tmp_path: pathlib.Path) -> None:
    launch = "double* d; cudaMallocManaged(&d, 8); k<double><<<1, 1>>>(d); cudaDeviceSynchronize(); m = int(*d);"
    assert build(cucc, tmp_path, "12", launch) == f"12 {USED} 12 cudaSuccess"


@pytest.mark.parametrize(
    "text, passes",
    [("__global__ void k(int* p) {\n  *p = nothing;\n}\n", 2), ("void f(int* p) {\n  *p = nothing;\n}\n", 1)],
)
def test_a_mistake_is_told_of_the_whole_text(cucc: Cucc, tmp_path: pathlib.Path, text: str, passes: int) -> None:
    (tmp_path / "torch" / "include").mkdir(parents=True)
    (tmp_path / "torch" / "include" / "host.h").write_text(HEADER, encoding="utf-8")
    source = tmp_path / "wrong.cu"
    source.write_text("#include <torch/include/host.h>\n" + text)
    done = cucc("-c", "-v", f"-I{tmp_path}", source, "-o", tmp_path / "wrong.o", check=False)
    # Where both passes name it, the device pass does not run again.
    assert len(re.findall(r"^#\$ .* -c .*device\.ii", done.stderr, re.MULTILINE)) == passes
    assert done.returncode != 0
    assert re.findall(r"wrong\.cu:3:\d+: error: .*nothing", done.stderr) and done.stderr.count("error:") == 1
