"""One program on both devices: what it returns, its losses and its gradients side by side."""

import copy
import math
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
from torch import Tensor

DEVICES = ("cpu", "cuda")
# Norm of the difference over the norm of the CPU's value, in double: the devices' logic is the same.
SAME = 1e-7
# In float32: what needs no explanation.
CLOSE = 1e-4
# Above it, how much worse than the CPU's own error (against double) a value may be; a relu whose argument is about 0
# turns rounding into a step, up to STEP.
FACTOR = 8.0
STEP = 1e-2

Program = Callable[[str, torch.dtype], Any]


class Differs(Exception):
    """The device gives something else than the CPU does."""


def leaves(value: Any, path: str = "") -> Iterator[Tuple[str, Any]]:
    """Tensors and numbers of nested results, each with its place."""
    if isinstance(value, (Tensor, int, float)):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{number}]")
    elif hasattr(value, "__dict__") and not isinstance(value, torch.nn.Module):
        yield from leaves(vars(value), path)


def distance(found: Tensor, wanted: Tensor) -> float:
    """Norm of the difference over the norm of what is wanted; infinite where only one of the two is no number."""
    same = (found == wanted) | (found.isnan() & wanted.isnan())
    if bool(same.all()):
        return 0.0
    ours, theirs = found[~same].double(), wanted[~same].double()
    scale = float(wanted[wanted.isfinite()].double().norm()) or 1.0
    apart = float((ours - theirs).norm()) / scale
    return math.inf if math.isnan(apart) else apart


def compare(program: Program) -> float:
    """Run ``program(device, dtype)`` on both devices, in double (if the CPU does) and in float32.

    Returns the largest relative difference in float32.

    Raises:
        Differs: another structure, dtype, shape or value.
    """
    exact = _pairs(program, torch.float64) if _has_double(program) else []
    for path, wanted, got in exact:
        apart = distance(got, wanted)
        if apart > SAME:
            raise Differs(f"in double {path} is {apart:.2g} from the CPU's")
    truth = {path: wanted for path, wanted, _ in exact}
    largest = 0.0
    for path, wanted, got in _pairs(program, torch.float32):
        apart = distance(got, wanted)
        largest = max(largest, apart)
        if apart > CLOSE:
            true = truth.get(path)
            if true is None or true.shape != wanted.shape or not wanted.is_floating_point():
                raise Differs(f"in float32 {path} is {apart:.2g} from the CPU's")
            own, cpus = distance(got.double(), true.double()), distance(wanted.double(), true.double())
            if own > max(STEP, FACTOR * cpus):
                raise Differs(f"in float32 {path} is {own:.2g} from its value in double, the CPU's {cpus:.2g}")
    return largest


def _has_double(program: Program) -> bool:
    """Whether the CPU runs it in double: some programs ask for float32 somewhere."""
    try:
        program("cpu", torch.float64)
    except Exception:
        return False
    return True


def _results(program: Program, device: str, dtype: torch.dtype) -> List[Tuple[str, Any]]:
    """What a program returns, on the CPU. The device's memory, which is the host's, goes back before the next run."""
    found = [
        (path, value.detach().cpu() if isinstance(value, Tensor) else value)
        for path, value in leaves(program(device, dtype))
    ]
    torch.cuda.empty_cache()
    return found


def _pairs(program: Program, dtype: torch.dtype) -> List[Tuple[str, Tensor, Tensor]]:
    """What a program returns on both devices: place, the CPU's value and the device's, both on the CPU."""
    theirs, ours = (_results(program, device, dtype) for device in DEVICES)
    if not theirs:
        raise Differs("the program returned nothing that could be compared")
    if [path for path, _ in theirs] != [path for path, _ in ours]:
        raise Differs(f"{len(ours)} results where the CPU has {len(theirs)}, or others")
    pairs = []
    for (path, wanted), (_, got) in zip(theirs, ours):
        if isinstance(wanted, Tensor) != isinstance(got, Tensor):
            raise Differs(f"{path} is {type(got).__name__}, not {type(wanted).__name__}")
        wanted, got = (torch.as_tensor(value) for value in (wanted, got))
        if (wanted.shape, wanted.dtype) != (got.shape, got.dtype):
            raise Differs(f"{path} is {got.dtype} {tuple(got.shape)}, not {wanted.dtype} {tuple(wanted.shape)}")
        pairs.append((path, wanted, got))
    return pairs


def without_chance(module: torch.nn.Module) -> torch.nn.Module:
    """The module with every probability of dropout at 0: the two devices draw other numbers."""
    for part in module.modules():
        if "drop" in type(part).__name__.lower() or "stochasticdepth" in type(part).__name__.lower():
            for name in ("p", "drop_prob", "dropout"):
                if isinstance(getattr(part, name, None), float):
                    setattr(part, name, 0.0)
        # Read by the functions that some modules call instead of a module of dropout.
        for name in ("dropout", "drop_rate"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)
    return module


def moved(value: Any, device: str, dtype: torch.dtype) -> Any:
    """Copies of the inputs on a device, those of floating point in ``dtype``."""
    if isinstance(value, Tensor):
        return value.to(device, dtype) if value.is_floating_point() else value.to(device)
    if isinstance(value, dict):
        return {key: moved(inner, device, dtype) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(moved(inner, device, dtype) for inner in value)
    return value


def training(make: Callable[[], torch.nn.Module], inputs: Any, loss: Callable[[torch.nn.Module, Any], Any]) -> Program:
    """A program of one pass of inference and of training steps with SGD.

    In float32 it is one step: batch normalisation of a few images multiplies rounding from step to step. In double it
    is two, and a second pass of inference with what they have learned.

    ``make``: the module with its initial weights on the CPU. ``loss(module, inputs)``: (scalar, further results).
    """
    torch.manual_seed(0)
    initial = without_chance(make())

    def program(device: str, dtype: torch.dtype) -> Dict[str, Any]:
        module = copy.deepcopy(initial).to(device=device, dtype=dtype)
        given = moved(inputs, device, dtype)
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)
        found: Dict[str, Any] = {"inference": inferred(module, given)}
        module.train()
        for step in range(1 if dtype == torch.float32 else 2):
            optimizer.zero_grad()
            value, outputs = loss(module, given)
            value.backward()
            # One number for all gradients: a network's single bias may be all rounding.
            gradients = [p.grad.flatten() for _, p in sorted(module.named_parameters()) if p.grad is not None]
            found[f"step {step}"] = {"loss": value.detach(), "outputs": outputs, "gradients": torch.cat(gradients)}
            optimizer.step()
        if dtype == torch.float64:
            found["inference afterwards"] = inferred(module, given)
        for name, parameter in module.named_parameters():
            if parameter.device.type != device:
                raise Differs(f"the parameter {name} is on {parameter.device}")
        return found

    def inferred(module: torch.nn.Module, given: Any) -> Any:
        module.eval()
        with torch.no_grad():
            return loss(module, given)[1]

    return program
