"""As on hardware, the first product on a stream leaves a workspace of cuBLAS in the memory statistics."""

from typing import Callable, Dict, Iterator

import pytest
import release_facts
import torch

WORKSPACE = 8519680  # bytes: 4096 KiB twice and 16 KiB eight times, as upstream chooses for capability 8.0


def taken_by(work: Callable[[], object]) -> int:
    before = torch.cuda.memory_allocated()
    work()
    return torch.cuda.memory_allocated() - before


@pytest.fixture
def no_workspace() -> Iterator[None]:
    torch._C._cuda_clearCublasWorkspaces()
    yield
    torch._C._cuda_clearCublasWorkspaces()


X, V = torch.ones(4, 4, device="cuda"), torch.ones(4, device="cuda")
PRODUCTS: Dict[str, Callable[[torch.Tensor], object]] = {
    "mm": lambda out: torch.mm(X, X, out=out),
    "addmm": lambda out: torch.addmm(V, X, X, out=out),
    "mv": lambda out: torch.mv(X, V, out=out[0]),
    "dot": lambda out: torch.dot(V, V, out=out[0, 0]),
    "bmm": lambda out: torch.bmm(X[None], X[None], out=out[None]),
}


@release_facts.wants("workspaces_of_one_product")
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_takes_a_workspace_and_gives_it_back(name: str) -> None:
    out, product = torch.zeros(4, 4, device="cuda"), PRODUCTS[name]
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    assert [taken_by(lambda: product(out)) for _ in range(3)] == [0, 0, 0]
    # dot has no form that writes into a given tensor: its result is there beside the workspace.
    assert torch.cuda.max_memory_allocated() - before == WORKSPACE + (512 if name == "dot" else 0)


@pytest.mark.skipif(release_facts.has("workspaces_of_one_product"), reason="since torch 2.15 none is kept")
@pytest.mark.usefixtures("no_workspace")
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_first_product_of_a_stream_takes_a_workspace(name: str) -> None:
    out, product = torch.zeros(4, 4, device="cuda"), PRODUCTS[name]
    assert [taken_by(lambda: product(out)) for _ in range(3)] == [WORKSPACE, 0, 0]
    with torch.cuda.stream(torch.cuda.Stream()):
        assert [taken_by(lambda: product(out)) for _ in range(2)] == [WORKSPACE, 0]
    assert taken_by(lambda: product(out)) == 0
    assert taken_by(torch._C._cuda_clearCublasWorkspaces) == -2 * WORKSPACE
    assert taken_by(lambda: product(out)) == WORKSPACE


@pytest.mark.usefixtures("no_workspace")
def test_what_is_no_product_takes_none() -> None:
    out = torch.zeros(4, 4, device="cuda")
    assert taken_by(lambda: torch.add(X, X, out=out)) == 0
    assert taken_by(lambda: torch.mm(X[:0], X)) == 0
    with pytest.raises(RuntimeError):
        torch.mm(X, V)
    assert taken_by(lambda: None) == 0


@pytest.mark.usefixtures("no_workspace")
def test_products_in_a_graph_take_none() -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = X @ X
    assert taken_by(graph.replay) == 0 and y.tolist() == [[4.0] * 4] * 4
