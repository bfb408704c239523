"""Products of dense matrices: large ones in panels are the CPU's, and deterministic algorithms have their condition."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Optional, Tuple

import pytest
import release_facts
import torch

# (rows, inner, columns): one panel and several, in both directions; results with few rows and with aligned rows.
SHAPES = [
    (700, 9, 1003),
    (1100, 5, 2001),
    (33, 4, 65_537),
    (2, 3, 1_048_577),
    (512, 8, 2050),
    (512, 8, 2048),
    (5000, 3, 1001),
    (70_001, 2, 65),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)  # of which the first is taken in panels
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_product_in_panels_is_the_cpus(
    shape: Tuple[int, int, int], transposed: Tuple[bool, bool], dtype: torch.dtype
) -> None:
    rows, inner, columns = shape
    left = torch.randn(inner, rows, dtype=dtype).t() if transposed[0] else torch.randn(rows, inner, dtype=dtype)
    right = torch.randn(columns, inner, dtype=dtype).t() if transposed[1] else torch.randn(inner, columns, dtype=dtype)
    want = left @ right
    got = left.cuda() @ right.cuda()
    assert got.is_cuda and got.stride() == want.stride()
    torch.testing.assert_close(got.cpu(), want)
    out = torch.full_like(got, torch.nan)
    assert torch.mm(left.cuda(), right.cuda(), out=out) is out
    torch.testing.assert_close(out, got)
    # Rows that are further apart: what lies between them stays.
    wide = torch.full((rows, columns + 3), 7, dtype=dtype, device="cuda")
    torch.mm(left.cuda(), right.cuda(), out=wide[:, :columns])
    torch.testing.assert_close(wide[:, :columns].cpu(), want)
    assert (wide[:, columns:] == 7).all()


@pytest.mark.parametrize("start", [(1003,), (700, 1), (1, 1003), (700, 1003), ()], ids=str)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, -2), (0, 1)])
def test_a_sum_with_a_product_in_panels_is_the_cpus(start: Tuple[int, ...], beta: float, alpha: float) -> None:
    added, left, right = torch.randn(start), torch.randn(700, 9), torch.randn(9, 1003)
    if beta == 0:
        added.fill_(torch.nan)  # which counts for nothing
    want = torch.addmm(added, left, right, beta=beta, alpha=alpha)
    got = torch.addmm(added.cuda(), left.cuda(), right.cuda(), beta=beta, alpha=alpha)
    torch.testing.assert_close(got.cpu(), want)
    out = torch.full_like(got, torch.nan)
    torch.addmm(added.cuda(), left.cuda(), right.cuda(), beta=beta, alpha=alpha, out=out)
    torch.testing.assert_close(out, got)
    if added.shape == out.shape:
        start = added.cuda()
        torch.addmm(start, left.cuda(), right.cuda(), beta=beta, alpha=alpha, out=start)
        torch.testing.assert_close(start.cpu(), want)


def test_a_product_into_columns_or_another_shape_is_the_cpus() -> None:
    left, right = torch.randn(801, 31), torch.randn(31, 801)
    columns, small = torch.empty(801, 801, device="cuda").t(), torch.empty(3, 3, device="cuda")
    torch.mm(left.cuda(), right.cuda(), out=columns)
    with pytest.warns(UserWarning, match="resized"):
        torch.mm(left.cuda(), right.cuda(), out=small)
    for got in (columns, small):
        torch.testing.assert_close(got.cpu(), left @ right)


def test_a_layer_whose_product_takes_panels_has_its_gradients() -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(8, 1003), torch.randn(2, 300, 8)
    grad = torch.randn(2, 300, 1003)
    wanted = torch.autograd.grad(layer(x), list(layer.parameters()), grad)
    layer.cuda()
    for got, want in zip(torch.autograd.grad(layer(x.cuda()), list(layer.parameters()), grad.cuda()), wanted):
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("start", "left", "right", "words"),
    [
        (None, (700, 9), (8, 1003), r"cannot be multiplied \(700x9 and 8x1003\)"),
        ((5,), (700, 9), (9, 1003), "must match the existing size"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_as_ever(start: Optional[Tuple[int]], left, right, words: str) -> None:
    a, b = torch.ones(left, device="cuda"), torch.ones(right, device="cuda")
    with pytest.raises(RuntimeError, match=words):
        torch.mm(a, b) if start is None else torch.addmm(torch.ones(start, device="cuda"), a, b)


def test_operands_of_two_dtypes_or_devices_are_refused_as_ever() -> None:
    a, b = torch.ones(700, 9, device="cuda"), torch.ones(9, 1003, device="cuda")
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(a, b.double())
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.mm(a, b.cpu())


@pytest.mark.skipif(not hasattr(torch.Tensor, "refine_names"), reason="this release has no named tensors")
@pytest.mark.filterwarnings("ignore:Named tensors")
def test_names_are_carried_on() -> None:
    a, b = torch.ones(700, 9, names=("N", "K"), device="cuda"), torch.ones(9, 1003, names=("K", "M"), device="cuda")
    assert torch.mm(a, b).names == ("N", "M")
    bias = torch.ones(1003, names=("M",), device="cuda")
    assert torch.addmm(bias, a, b).names == ("N", "M")
    assert torch.addmm(bias, a.rename(None), b.rename(None)).names == (None, "M")


@pytest.mark.parametrize(("rows", "columns", "panel"), [(512, 20_001, 512 * 2048), (100_000, 65, 2048 * 72)])
def test_a_product_in_panels_takes_the_memory_of_its_result_and_one_panel(
    rows: int, columns: int, panel: int, fast_parts: str
) -> None:
    if "PANELS" not in fast_parts:
        pytest.skip("built without MACATORCH_FAST_PANELS")
    # One term each: the work is too little for oneDNN, on any processor.
    a, b = torch.ones(rows, 1, device="cuda"), torch.ones(1, columns, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    product = a @ b
    needed = product.numel() * 4
    assert needed <= torch.cuda.memory_allocated() - before < needed + (1 << 20)
    beside = panel * 4
    if release_facts.has("workspaces_of_one_product"):  # it is taken and given back before the panel is
        beside = max(beside, torch.backends.cuda.cublas_workspace_size())
    assert needed + panel * 4 <= torch.cuda.max_memory_allocated() - before < needed + beside + (1 << 20)


def test_a_captured_product_in_panels_is_computed_at_each_launch() -> None:
    a, b = torch.zeros(512, 4, device="cuda"), torch.ones(4, 2001, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        product = a @ b
    for value in (1, 3):
        a.fill_(value)
        graph.replay()
        assert (product == 4 * value).all()


PRODUCTS_OF_CUBLAS = """
    import json, torch, warnings
    a, b, v = torch.rand(3, 4, device="cuda"), torch.rand(4, 5, device="cuda"), torch.rand(4, device="cuda")
    bias, table = torch.rand(5, device="cuda"), torch.rand(3, 5, device="cuda")
    one, few = torch.rand(1, 3, 4, device="cuda"), torch.rand(2, 3, 4, device="cuda")
    cube, weight = torch.rand(2, 3, 3, device="cuda"), b.t().clone().requires_grad_()
    products = {
        "mm": lambda: a @ b,
        "mm of halves": lambda: a.half() @ b.half(),
        "mm(out=)": lambda: torch.mm(a, b, out=table.clone()),
        "mv": lambda: a @ v,
        "bmm": lambda: few @ few.mT,
        "bmm of one": lambda: one @ one.mT,
        "baddbmm": lambda: torch.baddbmm(cube, few, few.mT),
        "addmm": lambda: torch.addmm(table, a, b),
        "addmm_": lambda: table.clone().addmm_(a, b),
        "addmv": lambda: torch.addmv(a.select(1, 0), a, v),
        "bias, half of it": lambda: torch.addmm(bias, a, b, beta=0.5),
        "bias of complex numbers": lambda: torch.addmm(bias.cfloat(), a.cfloat(), b.cfloat()),
        "bias, one column": lambda: torch.addmm(bias[:1], a, b[:, :1]),
        "linear without bias": lambda: torch.nn.functional.linear(a, b.t()),
        "gradient of linear": lambda: torch.nn.functional.linear(a, weight, bias).sum().backward(),
        "bias": lambda: torch.addmm(bias, a, b),
        "bias(out=)": lambda: torch.addmm(bias, a, b, out=table.clone()),
        "linear": lambda: torch.nn.functional.linear(a, b.t(), bias),
        "dot": lambda: v @ v,
        "no terms": lambda: a[:, :0] @ b[:0],
        "no results": lambda: a[:0] @ b,
        "on the cpu": lambda: a.cpu() @ b.cpu(),
    }
    refused = []
    torch.use_deterministic_algorithms(True)
    for name, product in products.items():
        try:
            product()
        except RuntimeError as error:
            assert "because it uses CuBLAS and you have CUDA >= 10.2" in str(error), error
            refused.append(name)
    try:
        a @ a
    except RuntimeError as error:
        assert "cannot be multiplied" in str(error), error
    torch.use_deterministic_algorithms(True, warn_only=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.equal((a @ b).cpu(), a.cpu() @ b.cpu())
    names = list(products)
    print(json.dumps([refused, names[: names.index("bias")], ["CuBLAS" in str(w.message) for w in caught]]))
    """


@pytest.mark.parametrize("config", [None, "garbage", ":4096:8", ":16:8"])
def test_deterministic_algorithms_want_a_workspace_of_cublas_where_upstream_does(config: Optional[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CUBLAS_WORKSPACE_CONFIG"}
    if config is not None:
        environment["CUBLAS_WORKSPACE_CONFIG"] = config
    program = [sys.executable, "-c", textwrap.dedent(PRODUCTS_OF_CUBLAS)]
    done = subprocess.run(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    refused, all_of_cublas, warned = json.loads(done.stdout)
    wants = not release_facts.has("products_without_workspace_rule") and config not in (":4096:8", ":16:8")
    assert refused == (all_of_cublas if wants else [])
    # Old releases also warn of a setting that they cannot read.
    assert [is_of_cublas for is_of_cublas in warned if is_of_cublas] == ([True] if wants else [])
