"""Runs recorded operators again from their recorded inputs.

gen_report runs a suspect in double precision from the inputs of each side: what that run does not explain is the
operator's own error. reproduce.py, which bisect leaves, runs one on two devices.
"""

import ast
import contextlib
import functools
import math
import os
import sys
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

import torch

from maca_tools.accuracy import names
from maca_tools.accuracy.compare import metrics
from maca_tools.accuracy.data import capture, record_dir
from maca_tools.accuracy.errors import AccuracyError
from maca_tools.accuracy.recorder import check

# What gen_report runs again: both inputs and results are held in double precision, so this bounds its memory.
MOST_BYTES = 256 << 20
_LOW_PRECISION = (torch.float32, torch.float16, torch.bfloat16)
Content = Dict[str, Any]
Loader = Callable[[names.FullName, str], Content]


def _restore(value: Any, device: str, double: bool) -> Any:
    """Arguments as they were: the inverse of capture.copy_values for dense tensors and plain data."""
    if isinstance(value, torch.Tensor):
        if double and value.is_floating_point():
            return value.to(device, torch.float64, copy=True)
        if double and value.is_complex():
            return value.to(device, torch.complex128, copy=True)
        # A copy: the operator may write in place, and the file may be mapped.
        return value.to(device, copy=True)
    if isinstance(value, dict):
        if "__slice__" in value:
            return slice(*[_restore(part, device, double) for part in value["__slice__"]])
        if "__dtype__" in value:
            dtype = getattr(torch, value["__dtype__"].replace("torch.", ""))
            return torch.float64 if double and dtype in _LOW_PRECISION else dtype
        if "__device__" in value:
            return torch.device(device)
        if "__ellipsis__" in value:
            return Ellipsis
        if capture.KIND in value:
            raise AccuracyError(f"a {value[capture.KIND]} tensor cannot be given to an operator again")
        return {key: _restore(part, device, double) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_restore(part, device, double) for part in value)
    if isinstance(value, str) and value.startswith("cuda"):
        return device
    return value


def _module(text: str, api: str) -> Any:
    """A module from its repr, such as `Linear(in_features=4, out_features=2, bias=True)`; constants only."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != names.last(api):
            raise ValueError
        kind = getattr(torch.nn, call.func.id)
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
            raise ValueError
        given = [ast.literal_eval(argument) for argument in call.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        if "inplace" in text and call.args and not call.keywords:
            raise ValueError
        return kind(*given, **named)
    except (SyntaxError, ValueError, TypeError, AttributeError) as error:
        raise AccuracyError(
            f"{api} cannot be built from its description; build it by hand and load the recorded parameters: {text}"
        ) from error


@functools.lru_cache(maxsize=1)
def _operators() -> FrozenSet[Any]:
    """The functions that a record may name: what torch lets one override, and nothing that reads files or runs code."""
    return frozenset(
        function for functions in torch.overrides.get_overridable_functions().values() for function in functions
    )


def _function(api: str) -> Any:
    found: Any = torch
    for part in api.split(".")[1:]:
        found = getattr(found, part, None)
    if not callable(found) and hasattr(found, "__get__"):
        # An attribute such as Tensor.T.
        getter = found.__get__
        if getter in _operators():
            return getter
        found = None
    try:
        known = found in _operators() or api.startswith("torch._foreach_")
    except TypeError:
        known = False
    if not known or names.last(api) in names.NOT_OPERATORS or not callable(found):
        raise AccuracyError(f"{api} is no operator of this torch")
    return found


def _optimizer(api: str, values: Content) -> Dict[str, Any]:
    """The parameters and state after one step of an optimizer."""
    kind = getattr(torch.optim, names.last(api), None)
    if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)):
        raise AccuracyError(f"{api} is no optimizer of this torch")
    params = [torch.nn.Parameter(param, requires_grad=param.is_floating_point()) for param in values["params"]]
    groups: List[Dict[str, Any]] = [dict(group) for group in values["groups"]]
    if len(groups) != 1:
        # The record does not say which parameter is in which group.
        raise AccuracyError(f"{api} has several groups of parameters")
    # What decides only how the step is computed, not what.
    options = {key: value for key, value in groups[0].items() if key not in ("foreach", "fused", "capturable")}
    optimizer = kind(params, **{key: options[key] for key in ("lr",) if key in options})
    optimizer.param_groups[0].update(options)
    for param, grad, state in zip(params, values["grads"], values["state"]):
        param.grad = grad
        if state:
            optimizer.state[param] = dict(state)
    optimizer.step()
    after = {
        "params": [param.detach() for param in params],
        "state": [dict(optimizer.state[param]) if param in optimizer.state else {} for param in params],
    }
    return dict(capture.paths_of_tensors(after))


@contextlib.contextmanager
def _unnoticed() -> Iterator[None]:
    """The caller's random stream and mode of gradients stay as they are."""
    state = torch.get_rng_state()
    try:
        with torch.enable_grad():
            yield
    finally:
        torch.set_rng_state(state)


def results(
    load: Loader, name: names.FullName, device: str, double: bool = False, like: Optional[Content] = None
) -> Dict[str, Any]:
    """Outputs by their path in the record; of a backward operator the gradients of the inputs.

    load gives the content of a file; with double, floating point is computed in float64. Of like, the input file of
    another record, everything but the tensors is taken. Raises AccuracyError for what cannot be run again.
    """
    with _unnoticed():
        return _results(load, name, device, double, like)


def _results(load: Loader, name: names.FullName, device: str, double: bool, like: Optional[Content]) -> Dict[str, Any]:
    content = load(name._replace(way="fwd", again=0), "input")
    if like is not None:
        tensors = dict(capture.paths_of_tensors(content["values"]))
        content = {**like, "values": _with_tensors(like["values"], "", tensors)}
    values = _restore(content["values"], device, double)
    if name.api.startswith("torch.optim."):
        return _optimizer(name.api, values)
    leaves: Dict[str, Any] = {}
    if name.way == "bwd":
        tensors = dict(capture.paths_of_tensors(values))
        for entry in record_dir.layout(content):
            if entry["requires_grad"]:
                leaves[entry["path"]] = tensors[entry["path"]].requires_grad_()
    # In-place operators must not write a leaf.
    given = _not_leaves({"args": tuple(values.get("args", ())), "kwargs": dict(values.get("kwargs", {}))})
    if "module" in content:
        module = _module(content["module"], name.api).to(device)
        module.train(bool(content["training"]))
        call = check.functional_call()
        given["buffers"] = values["buffers"]
        result = call(module, {**values["params"], **values["buffers"]}, given["args"], given["kwargs"])
    else:
        result = _function(name.api)(*given["args"], **given["kwargs"])
    outputs = dict(capture.paths_of_tensors({"result": result}))
    written = {f"after.{path}": tensor for path, tensor in capture.paths_of_tensors(given)}
    if name.way == "fwd":
        return {path: tensor.detach() for path, tensor in {**written, **outputs}.items()}
    # A gradient arrives at what is returned, or at what is written in place, which has the path of an argument.
    outputs = {**{path[len("after.") :]: tensor for path, tensor in written.items()}, **outputs}
    grads = _restore(load(name, "input")["values"]["grad_out"], device, double)
    paths = [path for path in grads if path in outputs and outputs[path].requires_grad]
    if not paths or not leaves:
        raise AccuracyError(f"{name}: nothing in its forward operator needs a gradient")
    torch.autograd.backward([outputs[path] for path in paths], [grads[path] for path in paths])
    return {f"grad_in.{path}": leaf.grad for path, leaf in leaves.items() if leaf.grad is not None}


def _with_tensors(value: Any, path: str, tensors: Dict[str, Any]) -> Any:
    if isinstance(value, torch.Tensor):
        if path not in tensors:
            raise AccuracyError(f"the other record has no tensor {path}")
        return tensors[path]
    if isinstance(value, dict):
        return {key: _with_tensors(part, f"{path}.{key}" if path else str(key), tensors) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_with_tensors(part, f"{path}[{index}]", tensors) for index, part in enumerate(value))
    return value


def _not_leaves(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.view_as(value) * 1 if value.requires_grad else value
    if isinstance(value, dict):
        return {key: _not_leaves(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_not_leaves(part) for part in value)
    return value


class OwnError(NamedTuple):
    """diff2 of what an output holds beyond the double precision run of its own inputs: of both sides' difference, and
    of each side alone."""

    difference: float
    side0: float
    side1: float


def own_errors(
    sides: Tuple[Tuple[Loader, names.FullName], Tuple[Loader, names.FullName]],
) -> Optional[Dict[str, OwnError]]:
    """By path of the output; None where the operator cannot be run again from the records.

    Both runs are of the operator as side 0 called it: a side 1 with other arguments has an error of its own.
    """
    gaps: List[Dict[str, Any]] = []
    sizes: Dict[str, float] = {}
    try:
        first, forward = sides[0][0], sides[0][1]._replace(way="fwd", again=0)
        like = first(forward, "input")
        for side, (load, name) in enumerate(sides):
            recorded = dict(capture.paths_of_tensors(load(name, "output")["values"]))
            gap: Dict[str, Any] = {}
            for path, exact in results(load, name, "cpu", True, like).items():
                tensor = recorded.get(path)
                if (
                    tensor is None
                    or tensor.shape != exact.shape
                    or not (exact.is_floating_point() or exact.is_complex())
                ):
                    continue
                gap[path] = tensor.to(exact.dtype) - exact
                if side == 0:
                    sizes[path] = float(torch.linalg.vector_norm(tensor.to(exact.dtype)))
            gaps.append(gap)
    except Exception:
        # Anything that torch cannot run again from plain data: the caller judges by other means.
        return None
    found: Dict[str, OwnError] = {}
    for path, gap0 in gaps[0].items():
        gap1, size = gaps[1].get(path), sizes[path]
        if gap1 is None or size == 0.0 or gap1.shape != gap0.shape:
            continue
        errors = [float(torch.linalg.vector_norm(gap)) / size for gap in (gap1 - gap0, gap0, gap1)]
        if all(math.isfinite(error) for error in errors):
            found[path] = OwnError(*errors)
    return found


def _from_folder(folder: str) -> Loader:
    def load(name: names.FullName, part: str) -> Content:
        path = os.path.join(folder, f"{name}.{part}.pt")
        try:
            content: Content = torch.load(path, map_location="cpu", weights_only=True)
        except OSError as error:
            raise AccuracyError(f"{path} cannot be read: {error}") from error
        return content

    return load


def main(folder: str, text: str, device0: str, device1: str) -> int:
    """Print one line a tensor."""
    name = names.parse(text)
    if name is None:
        print(f"error: {text!r} is no operator's full name", file=sys.stderr)
        return 2
    try:
        load = _from_folder(folder)
        side0, side1 = results(load, name, device0), results(load, name, device1)
    except AccuracyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{text}: {device0} against {device1}, from the same inputs")
    for path, tensor in side0.items():
        other: Optional[Any] = side1.get(path)
        if other is None or other.shape != tensor.shape:
            print(f"  {path}: not comparable")
            continue
        found = metrics.of_tensors(tensor.cpu(), other.cpu())
        print(f"  {path}: {tensor.dtype} {list(tensor.shape)} diff2 {found.diff2:.3e} max_abs {found.max_abs:.3e}")
    return 0
