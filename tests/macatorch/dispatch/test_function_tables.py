"""No function table of upstream's (DispatchStub) leads an operator on the device to a kernel that was cut out."""

from __future__ import annotations

import ctypes
import functools
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch

TORCH = Path(torch.__file__).parent
# Tables that no installed header declares.
UNDECLARED = [
    "flatten_indices_stub",
    "mul_sparse_sparse_out_stub",
    "sparse_mask_intersection_out_stub",
    "sparse_mask_projection_out_stub",
]
# Tables whose CUDA entry is upstream's: host code that launches nothing itself.
HOST_CODE = {
    "_fused_sdp_choice_stub": "chooses an attention kernel",
    "copy_stub": "copies are operators of ours; the table is not reached",
    "cudnn_convolution_backward_stub": "calls the operators for input and weight, which are ours",
    "cudnn_convolution_transpose_backward_stub": "calls the operators for input and weight, which are ours",
}


class Place(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


@functools.lru_cache(maxsize=None)
def cuda_entries() -> Dict[str, str]:
    """Every table that has a CUDA entry, with the library that the entry points into."""
    names = set(UNDECLARED)
    declaration = re.compile(r"DECLARE_DISPATCH\(\s*(?:[^()]|\((?:[^()]|\([^()]*\))*\))*?,\s*(\w+)\s*\)")
    for header in (TORCH / "include" / "ATen" / "native").rglob("*.h"):
        names.update(declaration.findall(header.read_text(errors="replace")))
    cpu = ctypes.CDLL(str(TORCH / "lib" / "libtorch_cpu.so"))
    process = ctypes.CDLL(None)
    found = {}
    for name in sorted(names):
        try:
            table = (ctypes.c_void_p * 2).in_dll(cpu, f"_ZN2at6native{len(name)}{name}E")
        except ValueError:
            continue
        place = Place()
        if table[1] and process.dladdr(ctypes.c_void_p(table[1]), ctypes.byref(place)):
            found[name] = Path(place.file.decode()).name
    return found


def test_every_table_leads_to_a_function_of_ours() -> None:
    entries = cuda_entries()
    assert len(entries) > 250
    others = sorted(name for name, library in entries.items() if library != "libmacatorch.so")
    assert others == sorted(set(HOST_CODE) & set(entries)), "and what of them the release has a CUDA entry for"


def make(shape: Tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def conj_in_place(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.complex64).mul(1 + 2j).conj_physical_()


def mode_out(x: torch.Tensor) -> List[torch.Tensor]:
    values, indices = torch.empty(0, device=x.device, dtype=x.dtype), torch.empty(0, device=x.device, dtype=torch.long)
    torch.mode(x.round(), 0, out=(values, indices))
    return [values, indices]


def reduced_out(function: Callable[..., Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    def run(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[0, 0] = float("nan")
        out = torch.empty(0, device=x.device, dtype=x.dtype)
        function(x, dim=1, out=out)
        return out

    return run


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("run", "roundings"),
    [(mode_out, 1), (conj_in_place, 1), (reduced_out(torch.nansum), 1), (reduced_out(torch.nanmean), 2)],
    ids=["mode(out=)", "conj_physical_", "nansum(out=)", "nanmean(out=)"],
)
def test_forms_that_upstream_composes_compute(
    run: Callable[[torch.Tensor], Any], roundings: int, dtype: torch.dtype
) -> None:
    x = make((5, 7), dtype)
    device, host = run(x.cuda()), run(x.double())
    for ours, reference in zip(*(v if isinstance(v, list) else [v] for v in (device, host))):
        assert ours.is_cuda
        if dtype == torch.float32 or not ours.is_floating_point():
            torch.testing.assert_close(ours.cpu(), reference.to(ours.dtype))
        else:
            # Half a unit in the last place for each rounding; a mean is a rounded sum, divided.
            error = (ours.cpu().double() - reference).abs()
            assert (error <= torch.finfo(dtype).eps * 0.501 * roundings * reference.abs() + 1e-12).all()


def nested(*rows: int, width: int, **options: Any) -> torch.Tensor:
    return torch.nested.nested_tensor([make((n, width)) + n for n in rows], **options)


@pytest.mark.parametrize("operator", [torch.add, torch.mul], ids=["add", "mul"])
@pytest.mark.parametrize("width", [128, 256])
def test_nested_with_dense_rows(operator: Callable[..., torch.Tensor], width: int) -> None:
    dense = make((2, 1, width))
    parts = nested(2, 3, width=width)
    result = operator(parts.cuda(), dense.cuda())
    for i, ours in enumerate(result.unbind()):
        assert ours.is_cuda
        torch.testing.assert_close(ours.cpu(), operator(parts[i], dense[i]))


def test_gradient_of_nested_layer_norm() -> None:
    gradients = []
    for device in ("cuda", "cpu"):
        x = nested(2, 3, width=256, device=device, requires_grad=True)
        weight = torch.linspace(0.5, 2, 256, device=device, requires_grad=True)
        bias = torch.zeros(256, device=device, requires_grad=True)
        result = torch.nn.functional.layer_norm(x, (256,), weight, bias)
        cotangent = torch.nested.nested_tensor([make((n, 256)) for n in (2, 3)], device=device)
        result.backward(cotangent)
        gradients.append([*x.grad.unbind(), weight.grad, bias.grad])
    for ours, reference in zip(*gradients):
        assert ours.is_cuda
        torch.testing.assert_close(ours.cpu(), reference)


def test_sparse_forms_that_upstream_composes() -> None:
    indices, values = torch.tensor([[0, 1, 1], [0, 1, 1]]), torch.tensor([1.0, 2.0, 3.0])
    results = []
    for device in ("cuda", "cpu"):
        leaf = values.to(device).requires_grad_()
        coo = torch.sparse_coo_tensor(indices.to(device), leaf, (3, 3))
        dense = coo.to_dense()
        (dense * torch.arange(9.0, device=device).reshape(3, 3)).sum().backward()
        masked = coo.detach().sparse_mask(coo.detach().coalesce())
        csr = dense.detach().to_sparse_csr()
        results.append([leaf.grad, masked.to_dense(), csr.to_sparse_csc().row_indices(), (csr @ csr).to_dense()])
    for ours, reference in zip(*results):
        torch.testing.assert_close(ours.cpu(), reference)
