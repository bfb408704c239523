"""Products of large matrices by oneDNN, where it is chosen, and by MKL, where that is: the values are the same ones."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any, Dict, Optional

import pytest
import release_facts
import torch

FAST_PART = "ONEDNN"
# oneDNN writes a line for each primitive that it runs; a mark on both sides tells which product it was.
PROGRAM = """
    import json, sys, torch

    def close(got, want):
        torch.testing.assert_close(got.detach().cpu().double(), want.detach(), rtol=1e-4, atol=1e-3)

    def matrix(*sizes, transposed=False):
        if transposed:
            *batch, rows, columns = sizes
            return torch.randn(*batch, columns, rows, device="cuda").mT
        return torch.randn(*sizes, device="cuda")

    torch.manual_seed(0)
    a, b, out = matrix(300, 257), matrix(257, 301), torch.full((300, 301), torch.nan, device="cuda")
    p, q, outs = matrix(3, 300, 130), matrix(3, 130, 301), torch.full((3, 300, 301), torch.nan, device="cuda")
    row, column, full, cube = matrix(301), matrix(300, 1), matrix(300, 301), matrix(3, 1, 301)
    nothing = torch.full((301,), torch.nan, device="cuda")
    A, B, P, Q = (t.cpu().double() for t in (a, b, p, q))
    wide, wider = matrix(400, 600), matrix(257, 10_000)
    layer, x = torch.nn.Linear(257, 301, device="cuda"), matrix(2, 200, 257)
    reference = torch.nn.Linear(257, 301, dtype=torch.float64)
    reference.load_state_dict(layer.state_dict())

    def gradients():
        grad = matrix(2, 200, 301)
        got = torch.autograd.grad(layer(x), list(layer.parameters()), grad)
        want = torch.autograd.grad(reference(x.cpu().double()), list(reference.parameters()), grad.cpu().double())
        for one, other in zip(got, want):
            close(one, other)

    def captured():
        given, graph = torch.zeros(300, 257, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            product = given @ b
        for _ in range(2):
            given.copy_(matrix(300, 257))
            graph.replay()
            close(product, given.cpu().double() @ B)

    def without_oneDNN():
        with torch.backends.mkldnn.flags(enabled=False):
            close(a @ b, A @ B)

    def rounded_once(got, want, dtype):
        # Half a unit in the last place, and what adding up in single precision costs.
        assert got.dtype == dtype
        allowed = want.abs() * torch.finfo(dtype).eps * 0.5 + 2e-4
        assert ((got.cpu().double() - want).abs() <= allowed * 1.01).all()

    def low(dtype):
        left, right = a.to(dtype), b.to(dtype)
        rounded_once(left @ right, left.cpu().double() @ right.cpu().double(), dtype)
        left, right = p.to(dtype), q.to(dtype)
        rounded_once(torch.bmm(left, right), left.cpu().double() @ right.cpu().double(), dtype)

    def low_into(dtype):
        left, right, added = a.to(dtype), b.to(dtype), row.to(dtype)
        want = added.cpu().double() + left.cpu().double() @ right.cpu().double()
        rounded_once(torch.addmm(added, left, right), want, dtype)
        target = torch.full((300, 301), torch.nan, device="cuda", dtype=dtype)
        torch.addmm(added, left, right, out=target)
        rounded_once(target, want, dtype)

    products = {
        "mm": lambda: close(a @ b, A @ B),
        "mm of transposed": lambda: close(
            torch.mm((left := matrix(300, 257, transposed=True)), (right := matrix(257, 301, transposed=True))),
            left.cpu().double() @ right.cpu().double()),
        "mm of columns of one matrix": lambda: close(
            wide[:, :300].T @ wide[:, 300:], wide.cpu().double()[:, :300].T @ wide.cpu().double()[:, 300:]),
        "mm of an expanded row": lambda: close(
            wide[:1].expand(300, 600) @ wide.T, wide.cpu().double()[:1].expand(300, 600) @ wide.cpu().double().T),
        "mm(out=)": lambda: (torch.mm(a, b, out=out), close(out, A @ B)),
        "addmm of a row": lambda: close(torch.addmm(row, a, b), row.cpu().double() + A @ B),
        "addmm of a column": lambda: close(torch.addmm(column, a, b), column.cpu().double() + A @ B),
        "addmm of a number": lambda: close(torch.addmm(row[0], a, b), row[0].cpu().double() + A @ B),
        "addmm that adds nothing": lambda: close(torch.addmm(nothing, a, b, beta=0), A @ B),
        "addmm(out=)": lambda: (torch.addmm(full, a, b, out=out), close(out, full.cpu().double() + A @ B)),
        "addmm(out=) that adds nothing": lambda: (
            torch.addmm(nothing, a, b, beta=0, out=out.fill_(torch.nan)), close(out, A @ B)),
        "bmm": lambda: close(torch.bmm(p, q), P @ Q),
        "bmm of transposed": lambda: close(
            torch.bmm((left := matrix(3, 300, 130, transposed=True)), (right := matrix(3, 130, 301, transposed=True))),
            left.cpu().double() @ right.cpu().double()),
        "bmm(out=)": lambda: (torch.bmm(p, q, out=outs), close(outs, P @ Q)),
        "baddbmm": lambda: close(torch.baddbmm(cube, p, q), cube.cpu().double() + P @ Q),
        "baddbmm(out=)": lambda: (torch.baddbmm(cube, p, q, out=outs), close(outs, cube.cpu().double() + P @ Q)),
        "Linear and its gradients": gradients,
        "in a graph": captured,
        "mm of halves": lambda: low(torch.float16),
        "mm of bfloat16": lambda: low(torch.bfloat16),
        "addmm(out=) of halves": lambda: low_into(torch.float16),
        "addmm(out=) of bfloat16": lambda: low_into(torch.bfloat16),
        # What stays with MKL:
        "addmm with factors": lambda: close(
            torch.addmm(row, a, b, beta=0.5, alpha=-2), 0.5 * row.cpu().double() - 2 * (A @ B)),
        "mm that is small": lambda: close(a[:200] @ b, A[:200] @ B),
        "mm of few rows": lambda: close(a[:7] @ wider, A[:7] @ wider.cpu().double()),
        "mm of doubles": lambda: close(a.double() @ b.double(), A @ B),
        "mm(out=) of columns": lambda: (
            torch.mm(a, b, out=(columns := torch.empty(301, 300, device="cuda").T)), close(columns, A @ B)),
        "mm without oneDNN": without_oneDNN,
    }
    for name, product in products.items():
        print("begin", name, flush=True)
        product()
        print("end", flush=True)
    same = a @ b
    assert all(torch.equal(a @ b, same) for _ in range(5))
    assert torch.isnan(torch.mm(a.clone().fill_(torch.nan), b)).all()
    for product, *sizes in [(torch.bmm, (300, 300), (300, 300)), (torch.mm, (3, 300, 300), (3, 300, 300)),
                            (torch.mm, (300, 301), (300, 300)), (torch.bmm, (3, 300, 300), (2, 300, 300)),
                            (torch.mm, (3000, 3000), (3000, 3001, 1))]:
        try:
            product(*(torch.ones(s, device="cuda") for s in sizes))
        except RuntimeError:
            continue
        raise AssertionError((product, sizes))
"""
MKLS = [
    "addmm with factors",
    "mm that is small",
    "mm of few rows",
    "mm of doubles",
    "mm(out=) of columns",
    "mm without oneDNN",
]


def run(choice: Optional[str], program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MACA_ONEDNN_PRODUCTS"}
    environment["ONEDNN_VERBOSE"] = "1"
    if choice is not None:
        environment["MACA_ONEDNN_PRODUCTS"] = choice
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def by_onednn(choice: Optional[str]) -> Dict[str, int]:
    """How many products oneDNN computed, for each case of the program; the program itself compares the values."""
    ran = run(choice)
    assert ran.returncode == 0, ran.stderr
    found: Dict[str, Any] = {}
    name = ""
    for line in ran.stdout.splitlines():
        if line.startswith("begin "):
            name = line[len("begin ") :]
            found[name] = 0
        elif name and "exec,cpu" in line and ",matmul," in line:
            found[name] += 1
        elif line == "end":
            name = ""
    return found


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="oneDNN has no bfloat16 products on this processor"
)
@release_facts.wants("onednn_multiplies_floats")
def test_large_products_are_onednns_and_right() -> None:
    found = by_onednn("1")
    none = [name for name, count in found.items() if count == 0]
    assert none == MKLS
    assert found["Linear and its gradients"] == 2  # the layer and its weight's gradient; x needs none
    assert found["in a graph"] == 3  # at the capture and at each replay


def test_products_are_mkls_where_that_is_chosen_and_right() -> None:
    assert set(by_onednn("0").values()) == {0}


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="oneDNN has no bfloat16 products on this processor"
)
def test_the_processor_chooses_for_all_products_alike() -> None:
    found, with_mkl, with_onednn = by_onednn(None), by_onednn("0"), by_onednn("1")
    for bfloat16 in (False, True):  # a processor may be faster in one of them
        names = [name for name in found if ("bfloat16" in name) == bfloat16]
        assert [found[name] for name in names] in [[one[name] for name in names] for one in (with_mkl, with_onednn)]


@pytest.mark.parametrize("choice", ["2", "yes"])
def test_another_choice_is_refused_in_words(choice: str) -> None:
    ran = run(choice, 'import torch; x = torch.ones(2, 2, device="cuda"); x @ x')
    assert ran.returncode != 0
    assert f"MACA_ONEDNN_PRODUCTS is '{choice}'; it can be 1" in ran.stderr
