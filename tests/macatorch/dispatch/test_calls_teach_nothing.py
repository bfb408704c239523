"""A call gives the same whatever was called before it: nothing is learned at run time."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
import torch

CODEGEN = Path(__file__).resolve().parents[3] / "macatorch" / "codegen" / "cpu_dtypes.py"
LOW = (torch.half, torch.bfloat16, torch.complex32)
BINARY = ["div", "floor_divide", "remainder", "fmod", "copysign", "xlogy", "pow", "atan2", "nextafter", "add", "mul"]


def pairs(device: str) -> List[Tuple[Any, Any]]:
    x = torch.tensor([1.0001, 7e4], device=device)
    half, bfloat = torch.ones(2, device=device).half(), torch.ones(2, device=device).bfloat16()
    number = torch.tensor(2 + 1j, device=device)
    small = torch.tensor(3.0, device=device)
    return [
        (half, 1j), (half, number), (half, x), (x, half), (half, 2.5), (bfloat, half), (half, bfloat), (bfloat, 1j),
        (small.half(), bfloat), (small.bfloat16(), half), (half, half), (bfloat, bfloat), (x, bfloat), (x, number),
    ]  # fmt: skip


def outcome(name: str, a: Any, b: Any) -> Any:
    try:
        return getattr(torch, name)(a, b)
    except (RuntimeError, TypeError):
        return None


@pytest.mark.parametrize("name", BINARY)
def test_result_dtypes_do_not_depend_on_earlier_calls(name: str) -> None:
    first = [outcome(name, *pair) for pair in pairs("cuda")]
    again = [outcome(name, *pair) for pair in pairs("cuda")]
    backwards = [outcome(name, *pair) for pair in reversed(pairs("cuda"))][::-1]
    for one, two, three, cpu in zip(first, again, backwards, (outcome(name, *pair) for pair in pairs("cpu"))):
        for other in (two, three):
            assert (one is None) == (other is None)
            assert one is None or (one.dtype == other.dtype and torch.equal(one, other))
        # Where the CPU has a kernel, its dtype is the promoted one, as CUDA's is.
        if cpu is not None:
            assert one.dtype == cpu.dtype
            torch.testing.assert_close(one.cpu(), cpu, equal_nan=True, atol=0, rtol=2e-2)


def probe_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cpu_dtypes", CODEGEN)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Operators of every kind: arithmetic, reductions, linear algebra, transforms, losses, padding, sorting, windows.
ASKED = (
    r"^(add|div|pow|cumsum|cumprod|sum|mean|prod|mm|addmm|bmm|linalg\.(det|qr|eigh|svd|cross)|fft\.(fft|rfft|irfft)|polar|trace"
    r"|log|exp|sigmoid|gather|scatter|take|flip|median|sort|topk|histogram|cdist|special\.(airy_ai|zeta|erfcx)"
    r"|nn\.functional\.(ctc_loss|multi_margin_loss|avg_pool3d|rrelu|smooth_l1_loss|pad|pixel_shuffle|interpolate))$"
)


def test_the_table_holds_every_dtype_that_a_cpu_kernel_lacks() -> None:
    release = torch.__version__.split("+")[0]
    try:
        import tomllib
    except ModuleNotFoundError:  # Python < 3.11
        import tomli as tomllib  # type: ignore[no-redef]
    table = tomllib.loads((CODEGEN.parents[1] / "cpu_dtypes" / f"{release}.toml").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = probe_module().probe(3, ASKED)
    assert any(found.values()), "nothing was asked"
    missing = {dtype: sorted(names - set(table[dtype])) for dtype, names in found.items()}
    assert not any(missing.values()), "run macatorch/codegen/cpu_dtypes.py --write with this release"


OUT: Dict[str, Callable[[torch.Tensor], Tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] = {
    "shifted": lambda t: (t[1:], t[1:], t[:-1]),
    "expanded": lambda t: (t[1:], t[1:], t[:1].expand(4)),
    "scalar": lambda t: (t[0], t[1:], t[0]),
    "same scalar": lambda t: (t[0], t[1:], t[0:1].view(())),
    "itself": lambda t: (t[:3], t[:3], t[:3]),
    "tail": lambda t: (t[:3], t[2:], t[:3]),
    "small": lambda t: (t, t, t.new_empty(2)),
    "integers": lambda t: (t, t, t.new_empty(5, dtype=torch.int)),
    "reals": lambda t: (t, t, t.new_empty(5, dtype=torch.double)),
    "strided": lambda t: (t[::2], t[::2], t[::2]),
    "between": lambda t: (t[1::2], t[::2][:2], t[::2][:2]),
}
IN_PLACE: Dict[str, Callable[[torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]] = {
    "expanded": lambda t: (t[0].expand(4), t[1:]),
    "grown": lambda t: (t[:2], t[:1].expand(3)),
    "overlapping": lambda t: (t[1:], t[:-1]),
    "itself": lambda t: (t[1:3], t[1:3]),
}
WITH_OUT: Dict[str, Callable[..., torch.Tensor]] = {
    "div": torch.div,
    "pow": torch.pow,
    "mul": torch.mul,
    "sub": torch.sub,
    "fmod": torch.fmod,
    "log": lambda a, b, out: torch.log(a, out=out),
    "cumsum": lambda a, b, out: torch.cumsum(a, 0, out=out),
    "addcdiv": lambda a, b, out: torch.addcdiv(a, b, b, out=out),
}


def aliased(device: str, dtype: torch.dtype) -> Iterator[Tuple[str, Any]]:
    """What is written to in ways that upstream refuses or takes: overlap, shape, dtype, an input as `out`."""

    def attempt(call: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        t = torch.arange(1, 6, device=device).to(dtype)
        try:
            result = call(t)
            return torch.cat([result.flatten().cpu(), t.cpu()])
        except RuntimeError as error:
            return str(error).split("\n")[0]

    def written(function: Callable[..., torch.Tensor], a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> Any:
        return function(a, b, out=out)

    for name, function in WITH_OUT.items():
        for label, pick in OUT.items():
            yield f"{name} {label}", attempt(lambda t, f=function, p=pick: written(f, *p(t)))  # type: ignore[misc]
    for name in ("div_", "pow_", "fmod_", "mul_", "atan2_"):
        for label, choose in IN_PLACE.items():
            yield f"{name} {label}", attempt(lambda t, n=name, c=choose: getattr(c(t)[0], n)(c(t)[1]))  # type: ignore[misc]


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_what_is_written_to_is_checked_also_where_it_is_computed_wider(dtype: torch.dtype) -> None:
    # After these, an operator that learned from its calls would compute halves wider.
    for function in (torch.div, torch.pow, torch.fmod, torch.atan2):
        outcome(function.__name__, torch.ones(2, device="cuda", dtype=torch.half), 1j)
    # The reference has the dtype that the kernels of the CPU all have, with the names that messages give to the other.
    wide = {torch.half: torch.float, torch.bfloat16: torch.float, torch.complex32: torch.complex64}[dtype]
    names = {"Float": {"torch.float16": "Half", "torch.bfloat16": "BFloat16"}.get(str(dtype), "Float")}
    for (what, got), (_, want) in zip(aliased("cuda", dtype), aliased("cpu", wide)):
        if isinstance(want, str):
            assert isinstance(got, str), f"{what}: {got} where {want} is raised"
            if "not implemented" in want:
                continue
            want = want.replace("ComplexFloat", "ComplexHalf").replace("type Float can", f"type {names['Float']} can")
            assert got == want, what
        else:
            assert not isinstance(got, str), f"{what}: {got}"
            torch.testing.assert_close(
                got.to(want.dtype), want, rtol=1e-2, atol=1e-2, msg=lambda m, w=what: f"{w}: {m}"
            )


@pytest.mark.parametrize("dtype", [torch.float, torch.half, torch.long], ids=str)
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_of_expanded_tensors_stay_within_their_memory(name: str, dtype: torch.dtype) -> None:
    t = torch.tensor([[3, 1], [2, 5]], device="cuda").to(dtype)
    if name == "nanmedian" and dtype.is_floating_point:
        t[0, 0] = float("nan")
    for expanded in (t.expand(3, 2, 2), t[:, :1].expand(2, 7), t[:1, :1].expand(9, 9), t.t()[:1].expand(4, 2)):
        plain = expanded.contiguous()
        function = getattr(torch, name)
        assert torch.equal(function(expanded), function(plain)) or bool(function(plain).isnan())
        for dim in range(expanded.dim()):
            got, want = function(expanded, dim), function(plain, dim)
            torch.testing.assert_close(got.values, want.values, equal_nan=True)
            picked = torch.gather(plain, dim, got.indices.unsqueeze(dim)).squeeze(dim)
            torch.testing.assert_close(picked, want.values, equal_nan=True)
