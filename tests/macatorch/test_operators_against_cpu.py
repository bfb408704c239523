"""Every OpInfo entry that upstream claims for CUDA gives on the device what it gives on the CPU, with its gradients."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAMPLES = 12
GRADIENTS = 4
EXCEPTIONS: Dict[str, Any] = tomllib.loads((Path(__file__).parent / "opinfo_exceptions.toml").read_text())


def treatment(name: str) -> str:
    return next((kind for kind, entry in EXCEPTIONS.items() if name in entry["names"]), "compare")


def entry_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def to_device(value: Any) -> Any:
    def move(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        keep = {"memory_format": torch.preserve_format} if leaf.layout == torch.strided else {}
        moved = leaf.detach().to("cuda", **keep)
        return moved.requires_grad_(leaf.requires_grad)

    return tree_map(move, value)


def tensors(value: Any) -> List[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def total(values: List[torch.Tensor]) -> torch.Tensor:
    """A scalar whose gradient with respect to each value is about the value: dense, and different everywhere."""
    return sum((v * v.conj()).real.sum() if v.is_complex() else (v * v).sum() for v in values)  # type: ignore[return-value]


ENTRIES = [op for op in op_db if torch.float32 in op.supported_dtypes("cuda")]


@pytest.mark.parametrize("op", ENTRIES, ids=entry_name)
def test_float32_values_and_gradients_equal_those_of_the_cpu(op: Any) -> None:
    warnings.simplefilter("ignore")
    kind = treatment(op.name)
    if kind in ("missing", "upstream"):
        # A process of its own: the refused launch of device code stays an error for the rest of a process.
        run = subprocess.run(
            [sys.executable, __file__, entry_name(op)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert run.returncode == 3, f"expected an error, got:\n{run.stdout}"
        return
    if kind == "sample":
        for sample in list(op.sample_inputs("cuda", torch.float32))[:SAMPLES]:
            op(sample.input, *sample.args, **sample.kwargs)
        return
    compared = 0
    torch.manual_seed(0)
    for index, sample in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)):
        if index >= SAMPLES:
            break
        given = ((sample.input, *sample.args), sample.kwargs)
        moved = to_device(given)
        if "device" in moved[1]:
            moved[1]["device"] = "cuda"
        expected = op(*given[0], **given[1])
        actual = op(*moved[0], **moved[1])
        for want, got in zip(tensors(expected), tensors(actual)):
            assert got.is_cuda
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            if kind != "random":
                assert got.layout == want.layout
                torch.testing.assert_close(got.cpu(), want, equal_nan=True, rtol=1e-4, atol=1e-5)
        compared += 1
        differentiable = [t for t in tensors(expected) if t.requires_grad]
        inputs = [t for t in tensors(given) if t.requires_grad]
        if not differentiable or not inputs or index >= GRADIENTS or kind == "random":
            continue
        want_grads = torch.autograd.grad(total(differentiable), inputs, allow_unused=True)
        got_grads = torch.autograd.grad(
            total([t for t in tensors(actual) if t.requires_grad]),
            [t for t in tensors(moved) if t.requires_grad],
            allow_unused=True,
        )
        for want, got in zip(want_grads, got_grads):
            assert (want is None) == (got is None)
            if want is not None and want.layout == torch.strided:
                torch.testing.assert_close(got.cpu(), want, equal_nan=True, rtol=1e-3, atol=1e-4)
    assert compared > 0


def main() -> int:
    """3 if the entry named on the command line raises for its first samples, 0 if it runs."""
    op = next(op for op in ENTRIES if entry_name(op) == sys.argv[1])
    try:
        for sample in list(op.sample_inputs("cpu", torch.float32))[:SAMPLES]:
            arguments, keywords = to_device(((sample.input, *sample.args), sample.kwargs))
            op(*arguments, **keywords)
        torch.cuda.synchronize()
    except (RuntimeError, NotImplementedError) as error:
        print(type(error).__name__, error)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
