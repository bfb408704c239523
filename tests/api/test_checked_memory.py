"""MACA_CHECK=memory in PyTorch: operators that leave their memory are named, with the lines of the program."""

import re
import signal
import subprocess
from typing import Callable, Dict, Tuple

import pytest

Process = Callable[..., "subprocess.CompletedProcess[str]"]
PROLOGUE = """
import ctypes, torch

class Foreign:  # what another library hands over: an address and a size
    def __init__(self, address, count):
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<f4", "data": (address, False), "version": 3, "strides": None
        }

x = torch.ones(1001, device="cuda")
"""
BLOCK = r"an allocation of 4004 bytes, made at <string>:10"
# A program, and what is said of it.
MISTAKES: Dict[str, Tuple[str, str]] = {
    "an operator reads behind a tensor": (
        "torch.as_tensor(Foreign(x.data_ptr(), 1005), device='cuda') + 1",
        rf"aten::add read \d+ bytes behind the end of {BLOCK}",
    ),
    "an operator writes behind a tensor": (
        "torch.as_tensor(Foreign(x.data_ptr(), 1003), device='cuda').mul_(2)",
        rf"aten::mul_ wrote \d+ bytes behind the end of {BLOCK}",
    ),
    "an operator reads what was freed": (
        "y = torch.as_tensor(Foreign(x.data_ptr(), 1001), device='cuda')\ndel x\ny.sum()",
        rf"aten::sum read byte \d+ of {BLOCK} and freed at <string>:12.*; at <string>:13",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_operator_that_leaves_its_memory_is_named(process: Process, mistake: str) -> None:
    body, said = MISTAKES[mistake]
    done = process(PROLOGUE + body + "\ntorch.cuda.synchronize()\n", env={"MACA_CHECK": "memory"}, check=False)
    assert re.search("MACA_CHECK=memory: " + said, done.stderr), done.stderr
    assert done.returncode == 1 and "an illegal memory access was encountered" in done.stderr


def test_python_code_that_reads_through_an_address_is_named(process: Process) -> None:
    code = PROLOGUE + "print(ctypes.c_float.from_address(x.data_ptr()).value)"
    assert process(code).stdout.strip() == "1.0"
    done = process(code, env={"MACA_CHECK": "memory"}, check=False)
    assert done.returncode == -signal.SIGSEGV and done.stdout == ""
    assert re.search(rf"the host reads byte 0 of {BLOCK}, in .*; at <string>:11", done.stderr), done.stderr


RIGHT = """
import faulthandler, torch
faulthandler.enable()  # a handler of the program's own for the same signals
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, y = torch.randn(16, 3, 8, 8).pin_memory(), torch.randint(4, (16,))
side = torch.cuda.Stream()
for _ in range(5):
    with torch.cuda.stream(side):
        batch, target = x.to("cuda", non_blocking=True), y.cuda()
    torch.cuda.current_stream().wait_stream(side)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item(), x.copy_(batch, non_blocking=True)
side.synchronize()
spectrum = torch.fft.rfft(torch.randn(64, device="cuda"))
solved = torch.linalg.solve(torch.eye(4, device="cuda"), torch.ones(4, 1, device="cuda"))
print(f"{loss.item():.6f}", spectrum.abs().sum().item() > 0, solved.sum().item())
"""


def test_a_right_program_gives_the_same_values_and_no_report(process: Process) -> None:
    plain, checked = process(RIGHT), process(RIGHT, env={"MACA_CHECK": "memory"})
    assert checked.stdout == plain.stdout and checked.stderr == plain.stderr


def test_a_capture_is_refused_by_name(process: Process) -> None:
    code = """
import torch
x = torch.zeros(4, device="cuda")
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x += 1
except RuntimeError as error:
    print(error.__context__)
print(x.sum().item())
"""
    said = process(code, env={"MACA_CHECK": "memory"}).stdout
    assert "aten::add_.Tensor cannot be captured under MACA_CHECK=memory" in said and said.strip().endswith("0.0")
