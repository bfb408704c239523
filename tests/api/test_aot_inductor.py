"""AOTInductor: an exported model as a package of Triton's kernels for the device, loaded by Python and by C++."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import release_facts
import torch

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor compiles its C++ wrapper with g++"),
    release_facts.wants("packages_of_aot_inductor"),
]

MODEL = """
    import torch
    from torch.nn import functional as F

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(24, 40), torch.nn.Linear(40, 6)
            self.norm = torch.nn.LayerNorm(40)

        def forward(self, x):
            hidden = self.norm(F.gelu(self.first(x)))
            return torch.softmax(self.second(hidden), -1), hidden.amax(1)

    torch.manual_seed(0)
    model = Model().cuda().eval()
    inputs = [torch.randn(rows, 24).cuda() for rows in (8, 3, 64)]
"""
PACK = """
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(model, (inputs[0],), dynamic_shapes={{"x": {{0: batch}}}})
    torch._inductor.aoti_compile_and_package(program, package_path={path!r})
    torch.save([inputs, [model(x) for x in inputs]], {path!r} + ".pt")
"""
LOAD = """
    loaded = torch._inductor.aoti_load_package({path!r})
    for x in inputs:
        for got, wanted in zip(loaded(x), model(x)):
            assert got.device == wanted.device and got.shape == wanted.shape
            torch.testing.assert_close(got, wanted)
"""
# None of these is a kernel of Inductor's: its code calls each by a C function.
OPERATORS = """
    import torch
    from torch.nn import functional as F

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(30, 8))

        def forward(self, ids, offsets, x, repeats):
            bags = F.embedding_bag(ids, self.table, offsets, mode="max")
            order = torch.sort(x, dim=1, stable=True)
            return (bags, torch.nonzero(x > 0), torch.masked_select(x, x < 0.5), order.values, order.indices,
                    x.repeat_interleave(repeats, dim=0), torch.cumsum(x, 1), torch.topk(x, 3).values)

    torch.manual_seed(0)
    model = Model().cuda().eval()
    inputs = [torch.randint(30, (12,)).cuda(), torch.tensor([0, 5, 5]).cuda(), torch.randn(4, 6).cuda(),
              torch.tensor([1, 0, 2, 3]).cuda()]
    program = torch.export.export(model, tuple(inputs))
    torch._inductor.aoti_compile_and_package(program, package_path={path!r})
    loaded = torch._inductor.aoti_load_package({path!r})
    with torch.autocast("cuda", torch.bfloat16):  # as upstream's, what is compiled knows nothing of it
        results = loaded(*inputs)
    for got, wanted in zip(results, model(*inputs)):
        assert not got.requires_grad
        torch.testing.assert_close(got, wanted.detach())
"""
CPP = """
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>
#include <iostream>
int main(int, char** arguments) {
  c10::InferenceMode mode;
  torch::inductor::AOTIModelPackageLoader loader(arguments[1]);
  const at::Tensor x = torch::linspace(-2, 2, 5 * 24, torch::kCUDA).view({5, 24});
  std::vector<at::Tensor> inputs{x};
  const std::vector<at::Tensor> results = loader.run(inputs);
  std::cout << results.size() << ' ' << results[0].device() << ' ' << results[0].sum().item<float>() << ' '
            << results[1].sum().item<float>() << std::endl;
}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the package is to lie."""
    return tmp_path_factory.mktemp("aot") / "model.pt2"


@pytest.fixture
def packed(process, package: Path):
    """Return the package, which is made once."""
    if not package.exists():
        folder = {"TORCHINDUCTOR_CACHE_DIR": str(package.parent / "cache")}
        process(MODEL + PACK.format(path=str(package)), {**folder, "TRITON_CACHE_DIR": str(package.parent / "triton")})
    return package


def test_another_process_loads_a_package_and_gets_eagers_values(process, packed: Path, tmp_path: Path) -> None:
    """No compiler and no cache of the process that made it is needed; the sizes that were left open may vary."""
    empty = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "none"), "TRITON_CACHE_DIR": str(tmp_path / "none")}
    process(MODEL + LOAD.format(path=str(packed)), {**empty, "PATH": "/nowhere"})


def test_operators_that_inductor_has_no_kernel_for_are_computed(process, tmp_path: Path) -> None:
    folder = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    process(OPERATORS.format(path=str(tmp_path / "model.pt2")), folder)


def test_a_cpp_program_runs_a_package(process, packed: Path, tmp_path: Path) -> None:
    folder = Path(torch.__file__).parent
    source = tmp_path / "run.cpp"
    source.write_text(CPP)
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    command = ["g++", release_facts.cpp_standard(), "-O0", abi, str(source)]
    command += ["-DUSE_CUDA", f"-I{folder / 'include'}", f"-I{folder / 'include/torch/csrc/api/include'}"]
    command += [f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}", "-Wl,--no-as-needed"]
    command += ["-ltorch", "-ltorch_cuda", "-ltorch_cpu", "-lc10", "-o", str(tmp_path / "run")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    ran = subprocess.run([str(tmp_path / "run"), str(packed)], env=dict(os.environ), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    code = """
    first, second = model(torch.linspace(-2, 2, 5 * 24, device="cuda").view(5, 24))
    print(len((first, second)), first.device, float(first.sum()), float(second.sum()))
"""
    wanted = process(MODEL + code, {}).stdout.split()
    got = ran.stdout.split()
    assert got[:2] == wanted[:2]
    assert [float(word) for word in got[2:]] == pytest.approx([float(word) for word in wanted[2:]], rel=1e-4)
