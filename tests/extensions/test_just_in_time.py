"""torch.utils.cpp_extension.load and load_inline build CUDA sources at run time, and say what is wrong with them."""

import inspect
import subprocess
import sys
from pathlib import Path

import release_facts
import torch
from building import HERE, build_folder, run
from torch.utils import cpp_extension

KERNEL = """
__global__ void add_one(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
// Through words of another type: what type-based aliasing would break.
__global__ void copy_words(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 words = reinterpret_cast<const uint4*>(x)[i];
  const float* const values = reinterpret_cast<float*>(&words);
  for (int k = 0; k < 4; ++k) y[4 * i + k] = values[k];
}
torch::Tensor copied(torch::Tensor x) {
  auto y = torch::empty_like(x);
  copy_words<<<x.numel() / 128, 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
torch::Tensor plus_one(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  add_one<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
# No header of torch: what is wrong shows in a second.
WRONG = """
__global__ void half_done(float* x) {
  x[threadIdx.x] = no_such_name;
}
"""


def test_the_toolkit_is_found_without_any_variable(tmp_path):
    other = tmp_path / "bin" / "nvcc"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    other.chmod(0o755)
    code = "from torch.utils.cpp_extension import CUDA_HOME, _check_cuda_version as check, TorchVersion\n"
    code += "check('g++', TorchVersion('99.0')); print(CUDA_HOME)"
    import os

    done = run([sys.executable, "-c", code], tmp_path, PATH=f"{other.parent}{os.pathsep}{os.environ['PATH']}")
    import mxmaca

    assert done.stdout.strip() == str(mxmaca.root() / f"cuda{torch.version.cuda.split('.')[0]}")


def test_load_builds_files(tmp_path):
    sources = HERE / "just_in_time"
    folder = build_folder("load", sources)
    module = cpp_extension.load(
        "scale_module",
        [str(sources / "scale.cpp"), str(sources / "scale.cu")],
        build_directory=str(folder),
        extra_cflags=["-O0"],
        extra_cuda_cflags=["-O1"],
    )
    (folder / ".complete").touch()
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(100, device="cuda", dtype=dtype)
        assert torch.equal(module.scale(x, 2.5), x * 2.5)


def test_load_inline_builds_a_string(tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text(KERNEL)
    folder = build_folder("inline", source)
    module = cpp_extension.load_inline(
        "inline_module",
        cpp_sources="torch::Tensor plus_one(torch::Tensor x); torch::Tensor copied(torch::Tensor x);",
        cuda_sources=KERNEL,
        functions=["plus_one", "copied"],
        build_directory=str(folder),
        extra_cflags=["-O0"],
        extra_cuda_cflags=["-O1"],
    )
    (folder / ".complete").touch()
    x = torch.randn(1000, device="cuda")
    assert torch.equal(module.plus_one(x), x + 1)
    x = torch.randn(1024, device="cuda")
    assert torch.equal(module.copied(x), x)


def test_operators_with_objects_among_their_arguments_are_exported(tmp_path):
    """While a program is traced, such an object has a stand-in, which knows no kernel of C++."""
    release_facts.need("classes_have_stand_ins")
    sources = HERE / "just_in_time" / "counter.cpp"
    folder = build_folder("counter", sources)
    cpp_extension.load(
        "counter", [str(sources)], build_directory=str(folder), extra_cflags=["-O0"], is_python_module=False
    )
    (folder / ".complete").touch()

    @torch._library.register_fake_class("maca_tests::Counter")
    class StandIn:
        def __init__(self, count):
            self.count = count

        @classmethod
        def __obj_unflatten__(cls, flattened):
            return cls(**dict(flattened))

        def added_to(self, x):
            return x + self.count

    torch.ops.maca_tests.add_count.default.py_impl(torch._C.DispatchKey.Meta)(lambda counter, x: counter.added_to(x))

    class Adds(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.counter = torch.classes.maca_tests.Counter(3)

        def forward(self, x):
            return torch.ops.maca_tests.add_count(self.counter, x) * 2

    x = torch.randn(5, device="cuda")
    exported = torch.export.export(Adds(), (x,), strict=False)
    assert "add_count" in exported.graph_module.code
    assert torch.equal(exported.module()(x), (x + 3) * 2)
    assert torch.equal(Adds()(x), (x + 3) * 2)


def test_an_error_in_the_source_is_shown_at_its_file_and_line(tmp_path):
    # Torch's own headers, which say nothing here, take half a minute; 2.6 knows no way to leave them out.
    known = inspect.signature(cpp_extension.load_inline).parameters
    bare = ", no_implicit_headers=True" if "no_implicit_headers" in known else ""
    code = f"""
from torch.utils import cpp_extension
cpp_extension.load_inline("wrong", cpp_sources="", cuda_sources={WRONG!r}, build_directory={str(tmp_path)!r}{bare})
"""
    done = run([sys.executable, "-c", code], tmp_path)
    # The line in cuda.cu, which load_inline wrote.
    written = (tmp_path / "cuda.cu").read_text().splitlines()
    line = next(i for i, text in enumerate(written, 1) if "no_such_name" in text)
    assert done.returncode != 0 and f"{tmp_path}/cuda.cu:{line}:" in done.stdout and "no_such_name" in done.stdout
    assert not list(Path(tmp_path).glob("*.so"))


def test_an_error_in_a_file_is_shown_at_its_file_and_line(tmp_path):
    source = tmp_path / "wrong.cu"
    source.write_text("#include <cuda_runtime.h>\n" + WRONG)
    compiler = Path(cpp_extension.CUDA_HOME) / "bin" / "nvcc"
    done = subprocess.run([str(compiler), "-c", str(source)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "wrong.cu:4:" in done.stderr + done.stdout
