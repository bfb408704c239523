"""The wheels for aarch64, where wheels/ has them: the install check, operators with gradients, a training."""

from pathlib import Path
from typing import Callable

import pytest

Run = Callable[..., object]

# Each on the device and on the CPU, from the same numbers, with gradients where there are any.
OPERATORS = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
a, b = torch.randn(6, 5), torch.randn(6, 5)
image, kernel = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
q = torch.randn(2, 4, 6, 8)
index = torch.tensor([0, 2, 4, 1, 3, 0])
cases = {
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "div": lambda x, y: x / (y.abs() + 1),
    "matmul": lambda x, y: x @ y.t(), "exp": lambda x, y: x.exp() + y.sin(), "gelu": lambda x, y: F.gelu(x) * y.tanh(),
    "softmax": lambda x, y: F.softmax(x, 1) * y, "layer_norm": lambda x, y: F.layer_norm(x, (5,)) + y,
    "sum": lambda x, y: x.sum(0) + y.mean(1).sum(), "sort": lambda x, y: x.sort(1).values * y,
    "cumsum": lambda x, y: x.cumsum(0) * y, "where": lambda x, y: torch.where(x > 0, x, y),
    "gather": lambda x, y: x.gather(0, index.to(x.device)[:, None].expand(6, 5)) * y,
    "logsumexp": lambda x, y: x.logsumexp(1) + y.std(1), "norm": lambda x, y: x.norm() * y.norm(),
    "cross_entropy": lambda x, y: F.cross_entropy(x, index.to(x.device) % 5) + y.sum(),
    "hypot": lambda x, y: torch.hypot(x, y).log(), "solve": lambda x, y: torch.linalg.solve(x[:5], y[:5]),
    "half": lambda x, y: (x.half() @ y.half().t()).float(),
    "bfloat16": lambda x, y: (x.bfloat16() * y.bfloat16()).float(),
}
def results(device, function, *tensors):
    leaves = [tensor.to(device).detach().requires_grad_() for tensor in tensors]
    value = function(*leaves)
    value.sum().backward()
    return [value.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves)]
def check(name, function, *tensors):
    for mine, wanted in zip(results("cuda", function, *tensors), results("cpu", function, *tensors)):
        torch.testing.assert_close(mine, wanted, rtol=2e-3 if name in ("half", "bfloat16") else 1e-4, atol=1e-4)
for name, function in cases.items():
    check(name, function, a, b)
check("convolution", lambda x, w: F.conv2d(x, w, padding=1), image, kernel)
check("attention", lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), q)
assert torch.equal(torch.arange(7, device="cuda").char().sub(3).cpu(), torch.arange(7).char().sub(3))
print("checked", len(cases) + 3)
"""

TRAINING = """
import torch
def train(device):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = torch.randn(64, 8, generator=torch.Generator().manual_seed(2)).to(device)
    labels = (data.sum(1) > 0).long() + (data[:, 0] > 1).long()
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
mine, wanted = train("cuda"), train("cpu")
assert mine[-1] < mine[0]
torch.testing.assert_close(torch.tensor(mine), torch.tensor(wanted), rtol=1e-4, atol=1e-5)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    x = torch.ones(1000, device="cuda") * 3
stream.synchronize()
assert x.sum().item() == 3000
print("trained", mine[0], mine[-1])
"""

TRITON = """
import pathlib, sys, torch, triton, triton.language as tl
sys.path.insert(0, str(pathlib.Path({folder!r})))
from kernels import softmax
x = torch.randn(7, 100, device="cuda")
out = torch.empty_like(x)
softmax[(7,)](x, out, 100, BLOCK=128)
torch.testing.assert_close(out.cpu(), torch.softmax(x.cpu(), 1), rtol=1e-5, atol=1e-6)
print("compiled")
"""
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def softmax(source, target, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(target + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)
"""


def test_the_install_check_says_what_it_says_everywhere(site: Path, run_python: Run) -> None:
    done = run_python(site, "import torch; print(torch.ones(2).cuda())")
    assert done.stdout == "tensor([1., 1.], device='cuda:0')\n"  # type: ignore[attr-defined]


def test_operators_and_their_gradients_are_those_of_the_cpu(site: Path, run_python: Run) -> None:
    assert "checked" in run_python(site, OPERATORS).stdout  # type: ignore[attr-defined]


def test_a_training_on_the_device_is_that_on_the_cpu(site: Path, run_python: Run) -> None:
    assert "trained" in run_python(site, TRAINING).stdout  # type: ignore[attr-defined]


def test_a_triton_kernel_is_compiled_to_machine_code_of_arm(site: Path, run_python: Run, tmp_path: Path) -> None:
    if not (site / "triton").is_dir():
        pytest.skip("no wheel of triton for aarch64 beside torch's")
    (tmp_path / "kernels.py").write_text(KERNEL, encoding="utf-8")
    code = TRITON.format(folder=str(tmp_path))
    assert "compiled" in run_python(site, code, TRITON_CACHE_DIR=str(tmp_path / "cache")).stdout  # type: ignore[attr-defined]
