"""Sparse and nested tensors compute on the device what they compute on the CPU."""

from __future__ import annotations

from typing import Callable

import pytest
import torch


def sparse_matrix() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(6, 6).relu()


OPERATORS = {
    "add": lambda s, d: s + s,
    "mul": lambda s, d: s * s,
    "scale": lambda s, d: s * 2,
    "matmul dense": lambda s, d: s @ d,
    "matmul sparse": lambda s, d: s @ s,
    "addmm": lambda s, d: torch.addmm(d, s, d),
    "to_dense": lambda s, d: s.to_dense(),
    "transpose": lambda s, d: s.t(),
}


def dense(value: torch.Tensor) -> torch.Tensor:
    return (value if value.layout == torch.strided else value.to_dense()).cpu()


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_sparse_operator_equals_the_cpus(name: str, layout: torch.layout) -> None:
    operator: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = OPERATORS[name]
    x = sparse_matrix()
    want = operator(x.to_sparse(layout=layout), x)
    got = operator(x.cuda().to_sparse(layout=layout), x.cuda())
    assert got.is_cuda and got.layout == want.layout
    torch.testing.assert_close(dense(got), dense(want))


def test_inplace_sparse_operator_changes_its_tensor() -> None:
    x = sparse_matrix()
    s = x.cuda().to_sparse()
    alias = s
    s.add_(s)
    s.mul_(2)
    assert alias is s
    torch.testing.assert_close(dense(s), 4 * x)


def test_gradient_goes_through_a_sparse_product() -> None:
    x = sparse_matrix()
    grads = []
    for device in ("cpu", "cuda"):
        w = x.to(device).clone().requires_grad_()
        torch.sparse.mm(x.to(device).to_sparse(), w).square().sum().backward()
        grads.append(w.grad.cpu())
    torch.testing.assert_close(grads[0], grads[1])


def test_sparse_embedding_gradient_trains() -> None:
    losses = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        table = torch.nn.Embedding(10, 4, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = table(torch.tensor([1, 2, 2], device=device)).square().sum()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1])


def test_nested_tensor_operators() -> None:
    parts = [torch.randn(2, 4), torch.randn(5, 4)]
    nested = torch.nested.nested_tensor(parts, device="cuda")
    assert nested.is_nested and nested.is_cuda
    want = torch.nn.utils.rnn.pad_sequence([torch.softmax(p, -1) for p in parts], batch_first=True)
    torch.testing.assert_close(torch.nested.to_padded_tensor(torch.softmax(nested, -1), 0.0).cpu(), want)


@pytest.mark.parametrize("masked", [False, True], ids=["dense", "padded"])
def test_transformer_encoder_fast_path(masked: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(2, 5, 16)
    mask = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]).bool() if masked else None
    with torch.no_grad():
        want = model(x, src_key_padding_mask=mask)
        got = model.cuda()(x.cuda(), src_key_padding_mask=None if mask is None else mask.cuda())
    torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
