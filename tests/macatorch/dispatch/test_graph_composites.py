"""CUDA graphs of sparse, nested and quantised tensors: a launch reads what their members hold then, and leaves its
results where the capture had them; what has to count elements ends the capture, as on CUDA."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
from typing import Any, Callable, Dict, List, Tuple

import pytest
import release_facts
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.filterwarnings("ignore")

COMPRESSED = {torch.sparse_csr: "csr", torch.sparse_csc: "csc", torch.sparse_bsr: "bsr", torch.sparse_bsc: "bsc"}


def captured(function: Callable[[], Any]) -> Tuple[torch.cuda.CUDAGraph, Any]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


def warm_up(function: Callable[[], object]) -> None:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
        function()
    torch.cuda.current_stream().wait_stream(stream)


def data(tensor: torch.Tensor) -> torch.Tensor:
    """The member that a program writes new values to."""
    if tensor.layout == torch.sparse_coo:
        return tensor._values()
    return tensor.values() if tensor.layout != torch.strided or tensor.is_nested else tensor


def members(result: Any) -> List[torch.Tensor]:
    if isinstance(result, (list, tuple)):
        return [member for tensor in result for member in members(tensor)]
    if result.is_nested:
        return [result.values()]
    if result.is_quantized:
        scales = (
            [result.q_per_channel_scales(), result.q_per_channel_zero_points()]
            if result.qscheme() == torch.per_channel_affine
            else []
        )
        return [result.int_repr(), result.dequantize(), *scales]
    if result.layout == torch.sparse_coo:
        return [result._indices(), result._values()]
    if result.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [result.crow_indices(), result.col_indices(), result.values()]
    if result.layout in COMPRESSED:
        return [result.ccol_indices(), result.row_indices(), result.values()]
    return [result]


def dense() -> torch.Tensor:
    return torch.randn(6, 4, device="cuda")


def mask() -> torch.Tensor:
    return torch.arange(24, device="cuda").view(6, 4) % 3 == 0


def coordinates() -> torch.Tensor:
    return (dense() * mask()).to_sparse()


def duplicates() -> torch.Tensor:
    indices = torch.tensor([[0, 1, 1, 0, 5], [2, 3, 3, 2, 1]], device="cuda")
    return torch.sparse_coo_tensor(indices, torch.randn(5, device="cuda"), (6, 4))


def rows() -> torch.Tensor:
    return (dense() * mask()).to_sparse_csr()


def blocks() -> torch.Tensor:
    return dense().to_sparse_bsr((2, 2))


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], device="cuda")


def bounds() -> Dict[str, int]:
    """The least and the greatest length of the jagged tensors here, for releases that take them."""
    return {"min_seqlen": 2, "max_seqlen": 3} if release_facts.has("jagged_rows_have_bounds") else {}


def jagged() -> torch.Tensor:
    release_facts.need("jagged_layout")
    offsets = torch.tensor([0, 2, 5], device="cuda")
    return torch.nested.nested_tensor_from_jagged(torch.randn(5, 4, device="cuda"), offsets, **bounds())


def quantized(x: torch.Tensor) -> torch.Tensor:
    return torch.quantize_per_tensor(x, 0.05, 64, torch.quint8)


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(shape, device="cuda")


def scales() -> torch.Tensor:
    return torch.arange(1, 7, device="cuda") / 40


CASES: Dict[str, Tuple[Callable[[], torch.Tensor], Callable[[torch.Tensor], Any]]] = {
    "coo product": (coordinates, lambda s: torch.sparse.mm(s, ones(4, 3))),
    "coo addmm": (coordinates, lambda s: torch.sparse.addmm(ones(6, 3), s, ones(4, 3), alpha=2)),
    "coo to dense": (coordinates, lambda s: s.to_dense()),
    "coo with duplicates to dense": (duplicates, lambda s: s.to_dense()),
    "coo sum of two": (duplicates, lambda s: s + s),
    "coo times number": (duplicates, lambda s: s * 2),
    "coo times coo": (coordinates, lambda s: s * s),
    "coo functions": (coordinates, lambda s: s.relu().sin()),
    "coo and dense": (coordinates, lambda s: ones(6, 4) + s),
    "coo added in place": (coordinates, lambda s: ones(6, 4).add_(s, alpha=3)),
    "coo transposed": (coordinates, lambda s: s.t().to_dense()),
    "coo sum": (coordinates, lambda s: torch.sparse.sum(s)),
    "coo as mask": (coordinates, lambda s: ones(6, 4).mul(3).sparse_mask(s)),
    "coo concatenated": (coordinates, lambda s: torch.cat([s, s])),
    "coo in place": (coordinates, lambda s: s.clone().mul_(3)),
    "coo grows in place": (duplicates, lambda s: s.clone().add_(s)),
    "coo to csr": (coordinates, lambda s: s.to_sparse_csr()),
    "coo of dense members": (
        dense,
        lambda x: torch.sparse_coo_tensor(torch.arange(6, device="cuda")[None], x, (6, 4)).to_dense(),
    ),
    "csr product": (rows, lambda s: torch.sparse.mm(s, ones(4, 3))),
    "csr addmm": (rows, lambda s: torch.addmm(ones(6, 3), s, ones(4, 3), alpha=2)),
    "csr to dense": (rows, lambda s: s.to_dense()),
    "csr to coo": (rows, lambda s: s.to_sparse()),
    "csr to csc": (rows, lambda s: s.to_sparse_csc()),
    "csr functions": (rows, lambda s: s.relu() * 2),
    "csr in place": (rows, lambda s: s.clone().mul_(3)),
    "csr and dense": (rows, lambda s: ones(6, 4) + s),
    "csr sampled product": (rows, lambda s: torch.sparse.sampled_addmm(s, ones(6, 5), ones(5, 4))),
    "csr sum": (rows, lambda s: s.sum()),
    "bsr product": (blocks, lambda s: s @ ones(4, 3)),
    "nested layer": (nested, lambda s: F.linear(s, ones(3, 4), ones(3))),
    "nested functions": (nested, lambda s: torch.softmax(s.relu(), -1)),
    "nested sum": (nested, lambda s: s + s * 2),
    "nested parts": (nested, lambda s: [part * 2 for part in s.unbind()]),
    "nested norm": (nested, lambda s: F.layer_norm(s, (4,), ones(4), ones(4))),
    "nested of parts": (dense, lambda x: torch.nested.as_nested_tensor([x[:2], x[2:]]) * 2),
    "jagged layer": (jagged, lambda s: F.linear(s, ones(3, 4), ones(3))),
    "jagged functions": (jagged, lambda s: torch.softmax(s * s + 1, -1)),
    "jagged sum": (jagged, lambda s: s.sum(1)),
    "jagged padded": (jagged, lambda s: s.to_padded_tensor(7.0)),
    "quantised": (dense, quantized),
    "quantised channels": (
        dense,
        lambda x: torch.quantize_per_channel(x, scales(), torch.arange(6, device="cuda"), 0, torch.qint8),
    ),
    "quantised and back": (dense, lambda x: quantized(x).dequantize() * 2),
    "quantised functions": (dense, lambda x: quantized(x)[1:5].t().relu()),
    "quantised sum": (dense, lambda x: torch.ops.quantized.add(quantized(x), quantized(x), 0.1, 60)),
}


# What jagged tensors came to do later than the layout.
SINCE = {"jagged sum": "jagged_sums_and_padding", "jagged padded": "jagged_sums_and_padding"}


@pytest.mark.parametrize("name", CASES)
def test_a_launch_computes_what_the_function_computes(name: str) -> None:
    make, function = CASES[name]
    if name in SINCE:
        release_facts.need(SINCE[name])
    given = make()
    function(given)
    before = [member.clone() for member in members(given)]
    graph, result = captured(lambda: function(given))
    assert all(torch.equal(now, then) for now, then in zip(members(given), before))
    for _ in range(2):
        data(given).copy_(torch.randn_like(data(given)))
        graph.replay()
        left, expected = [member.clone() for member in members(result)], members(function(given))
        assert len(left) == len(expected)
        assert all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(left, expected))


@release_facts.wants("jagged_sums_and_padding")
def test_scales_and_offsets_are_read_at_each_launch() -> None:
    x, step, zero = dense(), scales().double(), torch.zeros(6, dtype=torch.long, device="cuda")
    values, offsets = torch.randn(5, 4, device="cuda"), torch.tensor([0, 2, 5], device="cuda")

    def function() -> List[torch.Tensor]:
        channels = torch.quantize_per_channel(x, step, zero, 0, torch.qint8)
        return [channels, torch.nested.nested_tensor_from_jagged(values, offsets, **bounds()).sum(1)]

    graph, result = captured(function)
    for number in (1, 3):
        step.uniform_(0.01, 1)
        zero.fill_(number)
        offsets[1] = number + 1 if number == 1 else number
        graph.replay()
        assert all(torch.equal(a, b) for a, b in zip(members(result), members(function())))


def test_packed_weights_are_those_of_the_capture() -> None:
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("the processor has no engine for quantised layers")
    torch.backends.quantized.engine = "fbgemm"
    weight, x = torch.quantize_per_tensor(dense(), 0.05, 0, torch.qint8), torch.randn(3, 4, device="cuda")
    packed = torch.ops.quantized.linear_prepack(weight, ones(6))
    given = quantized(x)
    graph, result = captured(lambda: torch.ops.quantized.linear(given, packed, 0.1, 60))
    for _ in range(2):
        given.copy_(quantized(x.normal_()))
        graph.replay()
        assert torch.equal(result.int_repr(), torch.ops.quantized.linear(given, packed, 0.1, 60).int_repr())


def test_a_tensor_that_is_written_has_not_changed_at_the_capture_and_does_at_each_launch() -> None:
    matrix, parts = rows(), nested()
    target = quantized(torch.zeros(6, 4, device="cuda"))
    written = [matrix.values(), parts.values(), target.int_repr()]
    before = [tensor.clone() for tensor in written]
    x = dense()

    def work() -> None:
        matrix.mul_(2)
        parts.mul_(2)
        target.copy_(x)

    graph, _ = captured(work)
    assert torch.equal(matrix.values(), before[0]) and torch.equal(parts.values(), before[1])
    assert torch.equal(target.int_repr(), before[2])
    graph.replay()
    graph.replay()
    assert torch.equal(matrix.values(), before[0] * 4) and torch.equal(parts.values(), before[1] * 4)
    assert torch.equal(target.int_repr(), quantized(x).int_repr())


def test_a_tensor_that_gets_other_members_reads_its_old_ones_at_each_launch() -> None:
    """As on CUDA: the graph knows the memory from before the capture, and leaves its sum where the tensor is now."""
    tensor = torch.sparse_coo_tensor(torch.tensor([[0, 1]], device="cuda"), ones(2), (4,))
    other = torch.sparse_coo_tensor(torch.tensor([[2]], device="cuda"), ones(1), (4,))
    old = tensor._indices(), tensor._values()  # who owns what a graph reads has to keep it
    graph, _ = captured(lambda: tensor.add_(other))
    for value in (1.0, 5.0):
        old[1].fill_(value)
        other._values().fill_(value + 2)
        graph.replay()
        assert tensor.to_dense().tolist() == [value, value, value + 2, 0]


def test_results_go_where_out_says() -> None:
    source, target = coordinates(), coordinates()
    matrix, functions = rows(), rows()

    def work() -> None:
        torch.mul(source, 2, out=target)
        torch.sin(matrix, out=functions)

    graph, _ = captured(work)
    source._values().fill_(7)
    matrix.values().fill_(2)
    graph.replay()
    assert torch.equal(target.to_dense(), source.to_dense() * 2)
    assert torch.equal(functions.values(), matrix.values().sin())


def trained(step: Callable[[nn.Module, torch.optim.Optimizer], torch.Tensor], model: nn.Module, inputs: Any) -> None:
    """Steps from a graph are steps without one: losses, parameters, gradients."""
    model, reference = model.cuda(), copy.deepcopy(model).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reference_optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    start = copy.deepcopy(model.state_dict())
    warm_up(lambda: step(model, optimizer))
    model.load_state_dict(start)
    optimizer.zero_grad(set_to_none=True)
    graph, loss = captured(lambda: step(model, optimizer))
    assert all(torch.equal(parameter, start[name]) for name, parameter in model.named_parameters())
    for _ in range(3):
        inputs()
        graph.replay()
        assert torch.equal(loss, step(reference, reference_optimizer))
        for parameter, expected in zip(model.parameters(), reference.parameters()):
            assert torch.equal(parameter, expected)
            assert all(torch.equal(a, b) for a, b in zip(members(parameter.grad), members(expected.grad)))


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_training_with_sparse_gradients(kind: Any) -> None:
    torch.manual_seed(0)
    index = torch.tensor([[1, 2], [1, 7]], device="cuda")

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = model(index).square().sum()
        loss.backward()
        model(index).sum().backward()  # a second gradient is added to the first
        optimizer.step()
        return loss

    options = {} if kind is nn.Embedding else {"mode": "sum"}
    trained(step, kind(10, 4, sparse=True, **options), lambda: index.copy_(torch.randint(0, 10, (2, 2))))


@pytest.mark.parametrize(
    "layout", ["strided", pytest.param("jagged", marks=release_facts.wants("jagged_values_have_gradients"))]
)
def test_training_on_nested_tensors(layout: str) -> None:
    torch.manual_seed(0)
    values, offsets = torch.randn(5, 4, device="cuda"), torch.tensor([0, 2, 5], device="cuda")

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        if layout == "jagged":
            result = model(torch.nested.nested_tensor_from_jagged(values, offsets))
            loss = result.values().square().sum()
        else:
            result = model(torch.nested.as_nested_tensor([values[:2], values[2:]]))
            loss = sum(part.square().sum() for part in result.unbind())
        loss.backward()
        optimizer.step()
        return loss

    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
    trained(step, model, values.normal_)


def test_training_through_a_sparse_matrix() -> None:
    torch.manual_seed(0)
    matrix, x = rows(), torch.randn(3, 4, device="cuda")

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = torch.sparse.mm(matrix, model(x).t()).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    trained(step, nn.Linear(4, 4), matrix.values().normal_)


class Wrapper(torch.Tensor):
    """A tensor in a tensor."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapper:
        wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        wrapper.inner = inner
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        plain = [value.inner if isinstance(value, Wrapper) else value for value in arguments]
        return Wrapper(function(*plain, **(options or {})))


class Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: List[str] = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.seen.append(str(function))
        return function(*arguments, **(options or {}))


def test_what_a_subclass_and_a_mode_call_is_captured() -> None:
    x, mode = dense(), Names()

    def function() -> Tuple[torch.Tensor, torch.Tensor]:
        with mode:
            product = x * 2
        return product, (Wrapper(x) * 3 + 1).inner

    graph, (product, wrapped) = captured(function)
    assert mode.seen == ["aten.mul.Tensor"]
    for _ in range(2):
        x.normal_()
        graph.replay()
        assert torch.equal(product, x * 2) and torch.equal(wrapped, x * 3 + 1)
    assert mode.seen == ["aten.mul.Tensor"]


def test_graphs_give_the_memory_of_members_back() -> None:
    given = [coordinates(), rows(), nested()]
    x = dense()

    def work() -> List[torch.Tensor]:
        return [given[0] * 2, given[0] + given[0], given[1].relu(), given[2] * 2, quantized(x), given[0].to_dense()]

    def memory() -> Tuple[int, int]:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()

    def use() -> None:
        graph, results = captured(work)
        graph.replay()
        during = torch.cuda.memory_allocated()
        for _ in range(20):
            graph.replay()
        assert torch.cuda.memory_allocated() == during and len(results) == 6

    use()
    before = memory()
    for _ in range(3):
        use()
    assert memory() == before


REFUSED = """
import os, sys, torch, warnings
from torch import nn
warnings.simplefilter("ignore")

dense = torch.eye(6, device="cuda")
coo, csr = dense.to_sparse(), dense.to_sparse_csr()
twice = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1]], device="cuda"), torch.ones(3, device="cuda"), (4,))
matrix = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]], device="cuda"), torch.ones(2, device="cuda"), (6, 6))
nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], device="cuda")
jagged = torch.nested.nested_tensor_from_jagged(torch.ones(5, 4, device="cuda"), torch.tensor([0, 2, 5], device="cuda"))
scale, zero = torch.tensor(0.1, device="cuda"), torch.tensor(3, device="cuda")
embedding = nn.Embedding(6, 4, sparse=True).cuda()
adam = torch.optim.SparseAdam(embedding.parameters())
weight = torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8)

def adam_step():
    embedding(index).sum().backward()
    adam.step()

index = torch.tensor([1, 1, 2], device="cuda")
cases = {
    "coalesce": lambda: twice.coalesce(),
    "function of duplicates": lambda: twice.sin(),
    "product of duplicates": lambda: torch.sparse.mm(matrix, dense),
    "product of two": lambda: torch.sparse.mm(coo, coo),
    "softmax": lambda: torch.sparse.softmax(coo, 1),
    "sum along rows": lambda: torch.sparse.sum(coo, 0),
    "index_select": lambda: coo.index_select(0, index),
    "to_sparse": lambda: dense.to_sparse(),
    "to_sparse_csr": lambda: dense.to_sparse_csr(),
    "size from indices": lambda: torch.sparse_coo_tensor(index[None], dense[:3]),
    "sum of compressed": lambda: csr + csr,
    "product of compressed": lambda: csr @ csr,
    "sparse adam": adam_step,
    "padded": lambda: torch.nested.to_padded_tensor(nested, 0.0),
    "jagged parts": lambda: jagged.unbind(),
    "scale as tensor": lambda: torch.quantize_per_tensor(dense, scale, zero, torch.quint8),
    "dynamic scale": lambda: torch.quantize_per_tensor_dynamic(dense, torch.quint8, False),
    "packed weights": lambda: torch.ops.quantized.linear_prepack(weight, None),
}
for name, work in cases.items():
    sys.stdout.flush()
    print("== " + name)
    with torch.cuda.stream(torch.cuda.Stream()):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        try:
            work()
        except RuntimeError as problem:
            print("work:", problem)
        try:
            graph.capture_end()
        except RuntimeError as problem:
            print("end:", problem)
    print("after:", (scale + 1).item() > 1, flush=True)
"""
CANNOT = "work: CUDA error: operation not permitted when stream is capturing"
COUNTED = [line.split('"')[1] for line in REFUSED.splitlines() if line.startswith('    "')]


@pytest.fixture(scope="module")
def refusals() -> Dict[str, str]:
    code = REFUSED
    if not release_facts.has("jagged_layout"):
        code = "\n".join(line for line in code.splitlines() if "jagged" not in line)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return {part.split("\n")[0]: part for part in done.stdout.split("== ")[1:]}


@pytest.mark.parametrize("case", COUNTED)
def test_what_has_to_be_known_on_the_host_ends_the_capture(refusals: Dict[str, str], case: str) -> None:
    if "jagged" in case:
        release_facts.need("jagged_layout")
    said = refusals[case]
    if case == "size from indices" and tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 12):
        # The size is copied to memory that is not pinned, which later releases refuse before CUDA hears of it.
        assert "work: Cannot copy between CPU and CUDA tensors" in said and "end:" not in said, said
        return
    words = "work: quantized::linear_prepack makes an object" if case == "packed weights" else CANNOT
    assert words in said and "end: CUDA error: operation failed due to a previous error during capture" in said, said
    assert "after: True" in said, said
