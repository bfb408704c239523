"""Level 0: operators, backward passes and steps that are compared with the CPU at once."""

import json
import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import release_facts
import torch
from torch import nn

from maca_tools import accuracy


def test_level_0_logs_a_wrong_operator_forward_and_backward(
    planted: Any, device: str, tmp_path: Path, capfd: Any
) -> None:
    for where in ("", "fwd:7", "bwd:7"):
        model = planted.build(device, torch.float32, where, layers=2)
        with accuracy.record(output_dir=str(tmp_path), record_level=0):
            planted.train(model)
        text = capfd.readouterr().err
        assert ("is off by" in text) == bool(where), (where, text)


def test_level_0_passes_over_what_has_no_double_precision_form(device: str, tmp_path: Path, capfd: Any) -> None:
    dense = torch.eye(3, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path), record_level=0):
        nested = torch.nested.nested_tensor([torch.ones(2, 3, device=device), torch.ones(1, 3, device=device)])
        (nested * 2).to_padded_tensor(0.0)
        (dense.to_sparse() * 2).to_dense().sum().backward()
        torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.qint8).dequantize()
    assert "is off by" not in capfd.readouterr().err


def test_level_0_checks_each_backward_over_a_graph_that_is_kept(device: str, tmp_path: Path, capfd: Any) -> None:
    if device == "cpu":
        pytest.skip("needs a device beside the CPU")

    class Wrong(torch.autograd.Function):
        factor = 1.0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            # A kernel of the device that is wrong; what level 0 compares with is right.
            return grad * Wrong.factor if grad.device.type == device else grad

    class Module(nn.Softplus):
        def forward(self, x: Any) -> Any:
            return Wrong.apply(super().forward(x))

    Module.__module__, Module.__name__ = "torch.nn.modules.activation", "Softplus"
    x = torch.rand(100, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path), record_level=0):
        y = Module()(x).sum()
        y.backward(retain_graph=True)
        assert "is off by" not in capfd.readouterr().err
        Wrong.factor = 1.01
        y.backward()
    assert "Softplus.0#2.bwd" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("kind", "options"),
    [("SGD", {"momentum": 0.9}), ("AdamW", {}), ("Rprop", {}), ("Adadelta", {"lr": 1.0}), ("Adafactor", {})],
)
def test_level_0_checks_an_optimizers_step(kind: str, options: Any, device: str, tmp_path: Path, capfd: Any) -> None:
    make = getattr(torch.optim, kind, None)
    if make is None:
        pytest.skip(f"this torch has no {kind}")
    # More elements than one piece, and fewer.
    params = [nn.Parameter(torch.randn(size, device=device)) for size in ((400, 500), (7,))]
    optimizer = make(params, **{"lr": 0.01, **options})
    for number in range(4):
        for param in params:
            param.grad = torch.randn_like(param)
        before = params[0].detach().clone()

        def spoil(*_: Any, number: int = number, before: Any = before) -> None:
            # One percent of the change of a parameter is missing, or something in the state is one percent too large.
            if number == 2:
                params[0].data.lerp_(before, 0.01)
            if number == 3:
                state = optimizer.state[params[1]]
                next(value for value in state.values() if torch.is_tensor(value) and value.dim()).mul_(1.01)

        handle = optimizer.register_step_post_hook(spoil)
        with accuracy.record(output_dir=str(tmp_path / str(number)), record_level=0):
            optimizer.step()
        handle.remove()
        text = capfd.readouterr().err
        wanted = {0: "", 1: "", 2: f"torch.optim.{kind}.0.fwd params[0] is off by 1.0", 3: "state[1]."}[number]
        assert wanted in text and ("is off by" in text) == bool(wanted), (number, text)


def _steps(optimizer: Any, params: Any, scaler: Any, values: Any) -> None:
    for value in values:
        for param in params:
            param.grad = torch.full_like(param, value)
        scaler.scale(torch.ones(1, device=params[0].device))
        scaler.step(optimizer)
        scaler.update()


@pytest.mark.parametrize("options", [{}, {"fused": True}], ids=["plain", "fused"])
def test_level_0_checks_a_step_with_a_scaler_inside(options: Any, device: str, tmp_path: Path, capfd: Any) -> None:
    if device == "cpu":
        pytest.skip("needs a device")
    params = [nn.Parameter(torch.randn(size, device=device)) for size in (200_000, 7)]
    optimizer = torch.optim.AdamW(params, lr=0.1, **options)
    scaler = release_facts.grad_scaler()
    with accuracy.record(output_dir=str(tmp_path / "right"), record_level=0):
        # The second one is passed over, since the gradients are not finite.
        _steps(optimizer, params, scaler, (3.0, float("inf"), 5.0))
    assert "accuracy" not in capfd.readouterr().err
    for value, in_state in ((3.0, False), (3.0, True), (float("inf"), False)):
        before = params[0].detach().clone()

        def spoil(*_: Any, before: Any = before, in_state: bool = in_state, value: float = value) -> None:
            if in_state:
                optimizer.state[params[1]]["exp_avg_sq"].mul_(1.01)
            elif value == 3.0:
                params[0].data.lerp_(before, 0.01)
            else:
                params[0].data.mul_(1.01)

        handle = optimizer.register_step_post_hook(spoil)
        with accuracy.record(output_dir=str(tmp_path / f"wrong{value}{in_state}"), record_level=0):
            _steps(optimizer, params, scaler, (value,))
        handle.remove()
        text = capfd.readouterr().err
        if value == 3.0 or options:
            # A plain optimizer's step is not even called where gradients are not finite.
            path = "state[1].exp_avg_sq" if in_state else "params[0]"
            assert f".fwd {path} is off by" in text and "torch.optim.AdamW." in text, text


def test_level_0_says_which_steps_it_does_not_check(device: str, tmp_path: Path, capfd: Any, monkeypatch: Any) -> None:

    from maca_tools.accuracy.recorder import step_check

    class Own(torch.optim.SGD):
        pass

    params = [nn.Parameter(torch.ones(size, device=device)) for size in (3, 5)]
    for param in params:
        param.grad = torch.ones_like(param)
    closure, own, plain = torch.optim.LBFGS(params), Own(params, lr=0.1), torch.optim.SGD(params, lr=0.1)
    compared = step_check._compared

    def fails(optimizer: Any, found: Any, entry: Any, *others: Any) -> Any:
        if entry.original is params[1]:
            raise NotImplementedError("no such form\non the CPU")
        return compared(optimizer, found, entry, *others)

    monkeypatch.setattr(step_check, "_compared", fails)
    with accuracy.record(output_dir=str(tmp_path), record_level=0):
        closure.step(lambda: sum((param * param).sum() for param in params))
        own.step()
        for _ in range(3):
            plain.step()
    text = capfd.readouterr().err
    said = [
        "torch.optim.LBFGS: up to 2 of 2 parameters, such as params[0] (its closure computes new gradients",
        "torch.optim.Own: up to 2 of 2 parameters, such as params[0] (it is no optimizer of torch.optim",
        "torch.optim.SGD: up to 1 of 2 parameters, such as params[1] (NotImplementedError: no such form)",
    ]
    assert [line for line in said if line not in text] == [], text
    assert "in 3 steps of torch.optim.SGD" in text
    # Once at the first step, once at the end.
    assert text.count("NotImplementedError") == 2
    with open(tmp_path / "check.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [(line["not_checked"], line["of"], line["first"]) for line in lines][-3:] == [(1, 2, "params[1]")] * 3


@pytest.mark.skipif(not hasattr(os, "sysconf") or platform.libc_ver()[0] != "glibc", reason="glibc's settings")
def test_level_0_keeps_memory_only_while_it_records(tmp_path: Path) -> None:
    # A piece of 64 MB is mapped by itself before and after; meanwhile it comes from the heap, and stays there.
    code = f"""
        import ctypes, torch
        from maca_tools import accuracy
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        def mapped():
            address = libc.malloc(64 << 20)
            with open("/proc/self/maps") as file:
                heap = next(line for line in file if line.rstrip().endswith("[heap]")).split()[0]
            libc.free(address)
            low, high = (int(end, 16) for end in heap.split("-"))
            return not low <= address < high
        found = [mapped()]
        with accuracy.record(output_dir={str(tmp_path)!r}, record_level=0):
            found.append(mapped())
            torch.ones(3)
        found.append(mapped())
        print(found)
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    for extra, expected in (({}, [True, False, True]), ({"MALLOC_TOP_PAD_": "1"}, [True, True, True])):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env={**clean, **extra}, stdout=subprocess.PIPE, text=True
        )
        assert done.stdout.strip() == str(expected), extra
