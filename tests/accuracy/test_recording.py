"""What is recorded, under which name, and that the run does not notice."""

import re
from pathlib import Path
from typing import Any

import pytest
import release_facts
import torch
from torch import nn, relu

from maca_tools import accuracy

from .conftest import load


class _Manual(nn.Module):  # type: ignore[misc]
    """The network of the product's manual: Conv1d on a (256, 1, 3600) half input."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 7, stride=4)
        self.act = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool1d(8)

    def forward(self, x: Any) -> Any:
        return self.pool(self.act(self.conv(x)))


@pytest.mark.parametrize(
    "options",
    [{}, {"skip": 10}, {"op_range": ["torch.nn.Conv1d.0.fwd", "torch.nn.AdaptiveAvgPool1d.2.fwd"]}],
    ids=["all", "skip", "range"],
)
def test_the_example_of_the_manual(options: Any, device: str, tmp_path: Path, operators: Any) -> None:
    model = _Manual().to(device).half()
    x = torch.randn(256, 1, 3600).to(device).half()
    accuracy.start_record(output_dir=str(tmp_path), **options)
    model(x).float().sum().backward()
    accuracy.record_switch(False)
    accuracy.start_record(enabled=False)
    forward = [name for name in operators(tmp_path) if name.endswith("fwd")]
    whole = [
        "torch.nn.Conv1d.0.fwd",
        "torch.nn.ReLU.1.fwd",
        "torch.nn.AdaptiveAvgPool1d.2.fwd",
        "torch.Tensor.float.3.fwd",
        "torch.Tensor.sum.4.fwd",
    ]
    expected = {"skip": whole[:1], "op_range": whole[:2]}
    assert forward == (expected[next(iter(options))] if options else whole)
    assert (tmp_path / "torch.nn.Conv1d.0.fwd.input.pt").exists() and (
        tmp_path / "torch.nn.Conv1d.0.fwd.output.pt"
    ).exists()
    if not options:
        grads = load(tmp_path / "torch.nn.Conv1d.0.bwd.output.pt")["values"]["grad_in"]
        assert torch.equal(grads["params.weight"], model.conv.weight.grad.cpu())


def test_nothing_that_python_can_call_is_missed(device: str, tmp_path: Path, operators: Any) -> None:
    x = torch.ones(4, 4, device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        relu(x)
        y = x + x
        _ = y[0]
        y[0] = 7.0
        y += 1
        torch.zeros(2, device=device)
        y.sum()
        torch._foreach_add_([y, y.clone()], 1.0)
        nn.functional.gelu(y)
        _ = x.T
        y.sum().item()
        torch.chunk(y, 2)
    found = [".".join(name.split(".")[:-2]) for name in operators(tmp_path)]
    indexing = ["torch.Tensor.__getitem__"] if release_facts.has("function_modes_see_one_index") else []
    wanted = ["torch.relu", *indexing, "torch.Tensor.__setitem__", "torch.zeros",
              "torch.Tensor.sum", "torch.Tensor.clone", "torch._foreach_add_", "torch.nn.functional.gelu",
              "torch.Tensor.T", "torch.Tensor.item", "torch.chunk"]  # fmt: skip
    assert [name for name in wanted if name not in found] == []
    assert len(found) == 13 + len(indexing)


def test_an_in_place_operator_has_its_value_before_and_after(device: str, tmp_path: Path) -> None:
    x = torch.ones(3, device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        x.add_(1)
        x[0] = 9
    assert load(tmp_path / "torch.Tensor.add_.0.fwd.input.pt")["values"]["args"][0].tolist() == [1, 1, 1]
    assert load(tmp_path / "torch.Tensor.add_.0.fwd.output.pt")["values"]["result"].tolist() == [2, 2, 2]
    after = load(tmp_path / "torch.Tensor.__setitem__.1.fwd.output.pt")["values"]["after"]
    assert after["args[0]"].tolist() == [9, 2, 2]


def test_backward_has_the_operators_own_gradients(device: str, tmp_path: Path) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path)):
        a = x * 2
        b = x * 5
        (a + b).sum().backward()
    # x.grad is the sum of both; each operator is recorded with its own share.
    assert load(tmp_path / "torch.Tensor.mul.0.bwd.output.pt")["values"]["grad_in"]["args[0]"].tolist() == [2, 2, 2]
    assert load(tmp_path / "torch.Tensor.mul.1.bwd.output.pt")["values"]["grad_in"]["args[0]"].tolist() == [5, 5, 5]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_recording_does_not_change_the_run(level: int, device: str, tmp_path: Path) -> None:
    def run() -> Any:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 2)).to(
            device
        )
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.rand(6, 5, device=device)).pow(2).sum().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()] + [torch.rand(3), torch.rand(3, device=device).cpu()]

    plain = run()
    with accuracy.record(output_dir=str(tmp_path), record_level=level):
        recorded = run()
    assert all(torch.equal(a, b) for a, b in zip(plain, recorded))


def test_op_list_takes_a_class_or_full_names(device: str, tmp_path: Path, operators: Any) -> None:
    x = torch.ones(3, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path), op_list=["relu", "torch.Tensor.sum.4.fwd"]):
        y = torch.relu(nn.functional.relu(nn.ReLU()(x * 1)))
        y.sum().backward()
    assert operators(tmp_path) == [
        "torch.nn.ReLU.1.fwd", "torch.nn.functional.relu.2.fwd", "torch.relu.3.fwd", "torch.Tensor.sum.4.fwd",
        "torch.relu.3.bwd", "torch.nn.functional.relu.2.bwd", "torch.nn.ReLU.1.bwd",
    ]  # fmt: skip


def test_unusual_tensors_are_recorded_as_plain_data_with_their_values(tmp_path: Path, operators: Any) -> None:
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    with accuracy.record(output_dir=str(tmp_path)):
        dense.to_sparse() * 2
        dense.to_sparse_csr()
        torch.quantize_per_tensor(dense, 0.5, 1, torch.qint8)
        torch.nested.nested_tensor([dense, dense[:1]]) - 1
    found = {".".join(name.split(".")[:-2]): name for name in operators(tmp_path)}

    def result(api: str) -> Any:
        return load(tmp_path / f"{found[api]}.output.pt")["values"]["result"]

    sparse = result("torch.Tensor.mul")
    assert sparse["indices"].tolist() == [[0, 1], [1, 0]] and sparse["values"].tolist() == [4, 6]
    assert result("torch.Tensor.to_sparse_csr")["crow"].tolist() == [0, 1, 2]
    quantised = result("torch.quantize_per_tensor")
    assert quantised["int"].tolist() == [[1, 5], [7, 1]] and (quantised["scale"], quantised["zero_point"]) == (0.5, 1)
    assert [part.tolist() for part in result("torch.Tensor.sub")["parts"]] == [[[-1, 1], [2, -1]], [[-1, 1]]]
    made = result("torch.nested.nested_tensor")["parts"]
    assert [part.tolist() for part in made] == [[[0, 2], [3, 0]], [[0, 2]]]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_what_only_stands_for_a_tensor_does_not_end_the_record(
    level: int, device: str, tmp_path: Path, operators: Any
) -> None:
    if not hasattr(torch, "func"):
        pytest.skip("this torch has no torch.func")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(5000)
    x = torch.ones(3, 2000, device=device)
    with accuracy.record(output_dir=str(tmp_path), record_level=level):
        mapped = torch.vmap(lambda row: torch.sin(row) * 2)(x)
        grad = torch.func.grad(lambda row: torch.sin(row).sum())(x[0])
        torch.sin(fake)
        torch.cos(x)
    assert torch.equal(mapped, torch.sin(x) * 2) and torch.equal(grad, torch.cos(x[0]))
    if level:
        forward = [name.rsplit(".", 2)[0] for name in operators(tmp_path) if name.endswith(".fwd")]
        assert forward.count("torch.sin") == 3 and forward[-1] == "torch.cos"


def test_foreach_has_its_tensors_before_and_after(device: str, tmp_path: Path) -> None:
    pair = [torch.ones(2, device=device), torch.zeros(2, device=device)]
    with accuracy.record(output_dir=str(tmp_path)):
        torch._foreach_add_(pair, 1.5)
    before = load(tmp_path / "torch._foreach_add_.0.fwd.input.pt")["values"]["args"][0]
    after = load(tmp_path / "torch._foreach_add_.0.fwd.output.pt")["values"]
    assert [part.tolist() for part in before] == [[1, 1], [0, 0]]
    written = list(after["after"].values()) if "after" in after else after["result"]
    assert [part.tolist() for part in written] == [[2.5, 2.5], [1.5, 1.5]]


def test_an_optimizers_step_is_one_operator_with_gradients_and_state(
    device: str, tmp_path: Path, operators: Any
) -> None:
    weight = nn.Parameter(torch.ones(2, device=device))
    optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
    weight.grad = torch.tensor([1.0, 2.0], device=device)
    with accuracy.record(output_dir=str(tmp_path)):
        optimizer.step()
    assert operators(tmp_path) == ["torch.optim.SGD.0.fwd"]
    before, after = (load(tmp_path / f"torch.optim.SGD.0.fwd.{part}.pt")["values"] for part in ("input", "output"))
    assert (before["params"][0].tolist(), before["grads"][0].tolist()) == ([1, 1], [1, 2])
    assert after["params"][0].tolist() == [0.5, 0.0] and after["state"][0]["momentum_buffer"].tolist() == [1, 2]


def test_backward_of_an_operator_with_several_outputs_has_each_gradient(device: str, tmp_path: Path) -> None:
    x = torch.arange(6.0, device=device).requires_grad_()
    with accuracy.record(output_dir=str(tmp_path)):
        a, b, c = torch.split(x, 2)
        (a * 2 + c * 5).sum().backward()
        values, places = torch.sort(x * 1, descending=True)
        values[:2].sum().backward()
    grads = load(tmp_path / "torch.split.0.bwd.input.pt")["values"]["grad_out"]
    assert {path: grad.tolist() for path, grad in grads.items() if grad.any()} == {
        "result[0]": [2, 2],
        "result[2]": [5, 5],
    }
    out = load(tmp_path / "torch.split.0.bwd.output.pt")["values"]["grad_in"]
    assert out["args[0]"].tolist() == [2, 2, 0, 0, 5, 5]
    sort = next(tmp_path.glob("torch.sort.*.bwd.output.pt"))
    assert load(sort)["values"]["grad_in"]["args[0]"].tolist() == [0, 0, 0, 0, 1, 1]


def test_a_scripted_module_is_one_operator(tmp_path: Path, operators: Any) -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    with accuracy.record(output_dir=str(tmp_path)):
        scripted(torch.ones(1, 2))
    assert operators(tmp_path) == ["torch.ones.0.fwd", "torch.jit.ScriptModule.1.fwd"]
    found = load(tmp_path / "torch.jit.ScriptModule.1.fwd.output.pt")["values"]["result"]
    assert torch.equal(found, scripted(torch.ones(1, 2)).detach())


def test_checkpointed_forwards_are_seen_when_they_run_again(device: str, tmp_path: Path, operators: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to(device)
    x = torch.ones(1, 2, device=device, requires_grad=True)
    with accuracy.record(output_dir=str(tmp_path)):
        checkpoint(layers, x, use_reentrant=False).sum().backward()
    # torch stops the second forward inside the last layer, as soon as all that backward needs is there.
    assert len([name for name in operators(tmp_path) if "torch.nn.Linear" in name and name.endswith("fwd")]) == 3


def test_a_wrong_option_is_named(tmp_path: Path) -> None:
    for wrong in (
        {"record_level": 3},
        {"skip": -1},
        {"op_range": ["a"]},
        {"op_range": ["nonsense", None]},
        {"op_list": "relu"},
        {"ranks": [0]},
    ):
        with pytest.raises(accuracy.AccuracyError, match=next(iter(wrong))):
            accuracy.start_record(output_dir=str(tmp_path / "r"), **wrong)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_trace_holds_nothing_of_the_recorder(level: int, device: str, tmp_path: Path, operators: Any) -> None:
    def double(x: Any) -> Any:
        return torch.relu(x + 1) * 2

    model = nn.Sequential(nn.Linear(10, 3), nn.ReLU()).to(device)
    x = torch.randn(400, 10, device=device)
    plain = [str(torch.jit.trace(what, x).graph) for what in (double, model)]
    with accuracy.record(output_dir=str(tmp_path), record_level=level):
        traced = [torch.jit.trace(what, x) for what in (double, model)]
        torch.zeros(1)
    strip = re.compile(r"#.*|%[\w.]+|___torch_mangle_\d+\.").sub
    assert [strip("", str(found.graph)) for found in traced] == [strip("", graph) for graph in plain]
    assert torch.equal(traced[0](x * 3), double(x * 3)) and torch.equal(traced[1](x * 3), model(x * 3))
    # After the traces it records again.
    if level:
        assert operators(tmp_path)[-1].startswith("torch.zeros.")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_torch_compile_works_while_a_record_runs(backend: str, tmp_path: Path, operators: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.ones(2, 4)
    expected = model(x)
    compiled = torch.compile(model, backend=backend)
    with accuracy.record(output_dir=str(tmp_path)):
        found = compiled(x)
        found.sum().backward()
    assert torch.equal(found, expected)
    names = operators(tmp_path)
    assert names[0] == "torch.compile.OptimizedModule.0.fwd" and names[-1].endswith(".bwd")
