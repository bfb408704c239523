"""The tracer, the profiler and dispatch modes see an operator of the device, and nothing of how it is computed."""

from __future__ import annotations

import warnings
from typing import Any, List

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode


class Network(nn.Module):
    """Layers whose operators upstream's tracer treats each in its own way."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.up = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ConvTranspose2d(4, 2, 2)
        self.line, self.depthwise = nn.Conv1d(2, 3, 3), nn.Conv2d(4, 4, 3, groups=4)
        self.attention, self.out = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 5)
        self.embed, self.lstm = nn.Embedding(7, 8), nn.LSTM(8, 8, batch_first=True)

    def forward(self, image: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        y = self.up(self.depthwise(torch.relu(self.norm(self.conv(image)))))
        y = self.line(y.mean(-1)).sum()
        z = self.lstm(self.embed(words))[0]
        return self.out(self.attention(z, z, z)[0]) * y


def nodes(traced: Any) -> List[str]:
    return [node.kind() for node in traced.inlined_graph.nodes() if node.kind().startswith("aten::")]


@pytest.mark.parametrize("training", [True, False])
def test_traced_models_run_on_the_device_and_train(training: bool) -> None:
    torch.manual_seed(0)
    models = {device: Network().to(device).train(training) for device in ("cpu", "cuda")}
    models["cuda"].load_state_dict(models["cpu"].state_dict())
    given = torch.randn(2, 4, 6, 6), torch.randint(7, (2, 3))
    traced = {}
    for device, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = [x.to(device) for x in given]
            traced[device] = torch.jit.trace(model, inputs, check_trace=False)
    # Every operator of the program is in the graph, and no constant tensor of what it was traced with.
    kinds = {device: set(nodes(graph)) for device, graph in traced.items()}
    assert "aten::_convolution" in kinds["cuda"] and kinds["cuda"] == kinds["cpu"]
    for graph in traced.values():
        constants = [node for node in graph.inlined_graph.nodes() if node.kind() == "prim::Constant"]
        tensors = [node.t("value") for node in constants if node.hasAttribute("value") and node.kindOf("value") == "t"]
        assert all(tensor.dim() == 0 for tensor in tensors)
    other = [torch.randn(2, 4, 6, 6), torch.randint(7, (2, 3))]
    results = {}
    for device, graph in traced.items():
        y = graph(*[x.to(device) for x in other])
        assert y.device.type == device and y.grad_fn is not None
        results[device] = [y.detach().cpu()]
        if training:  # cuDNN's recurrent layers have no other backward pass
            y.square().sum().backward()
            results[device] += [p.grad.cpu() for p in models[device].parameters()]
        assert torch.equal(y, models[device](*[x.to(device) for x in other]))
    for got, want in zip(results["cuda"], results["cpu"]):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float, torch.half, torch.bfloat16], ids=str)
def test_traced_convolutions_are_convolutions(dims: int, transposed: bool, dtype: torch.dtype) -> None:
    kind = getattr(nn, f"Conv{'Transpose' if transposed else ''}{dims}d")
    layer = kind(4, 4, 3, stride=2, padding=1, groups=2).cuda().to(dtype)
    x = torch.randn(2, 4, *[7] * dims, device="cuda", dtype=dtype)
    traced = torch.jit.trace(layer, x)
    fresh = torch.randn_like(x)
    assert torch.equal(traced(fresh), layer(fresh)) and nodes(traced) == ["aten::_convolution"]


def calls() -> List[Any]:
    x = torch.randn(2, 4, 6, 6, device="cuda")
    flat, h = torch.randn(5, 6, device="cuda"), torch.randn(5, 6, device="cuda").half()
    weight = torch.randn(4, 4, 3, 3, device="cuda")
    return [
        ("aten::convolution", lambda: torch.convolution(x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)),
        ("aten::add", lambda: flat + flat), ("aten::mm", lambda: flat @ flat.t()), ("aten::sum", lambda: flat.sum(0)),
        ("aten::_softmax", lambda: torch._softmax(flat, 1, False)), ("aten::sort", lambda: flat.sort()),
        ("aten::mm", lambda: h @ h.t()), ("aten::div", lambda: h / 1j), ("aten::median", lambda: flat.median()),
        ("aten::native_layer_norm", lambda: torch.native_layer_norm(flat, [6], None, None, 1e-5)),
        ("aten::linalg_qr", lambda: torch.linalg.qr(flat)), ("aten::_fft_r2c", lambda: torch.fft.rfft(flat)),
        ("aten::index", lambda: flat[torch.tensor([1, 2], device="cuda")]), ("aten::cumsum", lambda: h.cumsum(0)),
        ("aten::_foreach_add", lambda: torch._foreach_add([flat, flat], 1.0)), ("aten::topk", lambda: flat.topk(2)),
        ("aten::nonzero", lambda: flat.nonzero()), ("aten::cat", lambda: torch.cat([flat, flat])),
    ]  # fmt: skip


def test_the_profiler_sees_the_operator_alone() -> None:
    for name, call in calls():
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            call()
        inside = [
            event.name
            for event in recorded.events()
            if event.cpu_parent is not None and event.cpu_parent.name == name and event.name.startswith("aten::")
        ]
        assert any(event.name == name for event in recorded.events()), name
        assert not inside, f"{name}: {inside}"


def test_a_dispatch_mode_sees_the_operator_alone() -> None:
    class Names(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: List[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append("aten::" + func.name().split("::")[1].split(".")[0])
            return func(*args, **(kwargs or {}))

    for name, call in calls():
        with Names() as outer, Names() as inner:
            call()
        views = {"aten::t", "aten::transpose", "aten::lift_fresh"}
        assert [seen for seen in inner.seen if seen not in views] == [name]
        assert inner.seen == outer.seen
