"""Runs one recorded operator again, from its recorded inputs, on two devices, and says how far they are apart."""

import ast
import os
import sys
from typing import Any, Dict, Optional

import torch

from maca_tools.accuracy import capture, metrics, names
from maca_tools.accuracy.errors import AccuracyError


def _restore(value: Any, device: str) -> Any:
    """Arguments as they were: the inverse of capture.copy_values for dense tensors and plain data."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        if "__slice__" in value:
            return slice(*[_restore(part, device) for part in value["__slice__"]])
        if "__dtype__" in value:
            return getattr(torch, value["__dtype__"].replace("torch.", ""))
        if "__device__" in value:
            return torch.device(device)
        if "__ellipsis__" in value:
            return Ellipsis
        if capture.KIND in value:
            raise AccuracyError(f"a {value[capture.KIND]} tensor cannot be given to an operator again")
        return {key: _restore(part, device) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_restore(part, device) for part in value)
    return value


def _module(text: str, api: str) -> Any:
    """A module from its repr, such as `Linear(in_features=4, out_features=2, bias=True)`; constants only."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != names.last(api):
            raise ValueError
        given = [ast.literal_eval(argument) for argument in call.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        if "inplace" in text and call.args and not call.keywords:
            raise ValueError
        return getattr(torch.nn, call.func.id)(*given, **named)
    except (SyntaxError, ValueError, TypeError, AttributeError) as error:
        raise AccuracyError(
            f"{api} cannot be built from its description; build it by hand and load the recorded parameters: {text}"
        ) from error


def _function(api: str) -> Any:
    found: Any = torch
    for part in api.split(".")[1:]:
        found = getattr(found, part)
    return found


def _load(folder: str, name: names.FullName, part: str) -> Dict[str, Any]:
    path = os.path.join(folder, f"{name}.{part}.pt")
    try:
        content: Dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise AccuracyError(f"{path} cannot be read: {error}") from error
    return content


def results(folder: str, text: str, device: str) -> Dict[str, Any]:
    """Outputs by path; of a backward operator the gradients of the inputs."""
    name = names.parse(text)
    if name is None:
        raise AccuracyError(f"{text!r} is no operator's full name")
    forward = name._replace(way="fwd", again=0)
    content = _load(folder, forward, "input")
    values = _restore(content["values"], device)
    if name.way == "bwd":
        for entry in content["tensors"]:
            if entry["requires_grad"]:
                dict(capture.paths_of_tensors(values))[entry["path"]].requires_grad_()
    args, kwargs = values.get("args", []), values.get("kwargs", {})
    # In-place operators must not write a leaf; and a caller's tensor is not written twice.
    given = [part * 1 if isinstance(part, torch.Tensor) and part.requires_grad else part for part in args]
    if "params" in values:
        module = _module(content["module"], name.api).to(device)
        module.train(bool(content["training"]))
        call = (
            getattr(getattr(torch, "func", None), "functional_call", None) or torch.nn.utils.stateless.functional_call
        )
        result = call(module, {**values["params"], **values["buffers"]}, tuple(given), kwargs)
    else:
        result = _function(name.api)(*given, **kwargs)
    outputs = dict(capture.paths_of_tensors({"result": result if result is not None else given[0]}))
    if name.way == "fwd":
        return {path: tensor.detach().cpu() for path, tensor in outputs.items()}
    grads = _restore(_load(folder, name, "input")["values"]["grad_out"], device)
    paths = [path for path in grads if path in outputs and outputs[path].requires_grad]
    leaves = {path: tensor for path, tensor in capture.paths_of_tensors(values) if tensor.requires_grad}
    found = torch.autograd.grad(
        [outputs[path] for path in paths], list(leaves.values()), [grads[path] for path in paths], allow_unused=True
    )
    return {f"grad_in.{path}": grad.cpu() for path, grad in zip(leaves, found) if grad is not None}


def main(folder: str, text: str, device0: str, device1: str) -> int:
    """Print one line a tensor."""
    try:
        side0, side1 = results(folder, text, device0), results(folder, text, device1)
    except AccuracyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{text}: {device0} against {device1}, from the same inputs")
    for path, tensor in side0.items():
        other: Optional[Any] = side1.get(path)
        if other is None or other.shape != tensor.shape:
            print(f"  {path}: not comparable")
            continue
        found = metrics.of_tensors(tensor, other)
        print(f"  {path}: {tensor.dtype} {list(tensor.shape)} diff2 {found.diff2:.3e} max_abs {found.max_abs:.3e}")
    return 0
