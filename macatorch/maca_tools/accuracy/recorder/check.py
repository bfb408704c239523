"""Level 0: run each operator again on the CPU in double precision, and log what is further off than rounding.

What exceeds its threshold is run once more on the CPU in its own precision: where that is as far off, the operator is
ill-conditioned at these inputs (a loss near zero, a sum whose terms cancel) and the device is not to blame.
"""

import contextlib
import json
import math
import os
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from maca_tools.accuracy import names, verdict
from maca_tools.accuracy.data import buffers, capture, host_memory
from maca_tools.accuracy.data.workers import PIECE, Workers, pieces
from maca_tools.accuracy.recorder import step_check
from maca_tools.accuracy.recorder.heap import Heap

_SHOWN = 20
_WORTH_NARROWING = 1 << 12
# Moves between devices compute nothing, and their reference would not be on the CPU.
_MOVES = frozenset(
    ["to", "cuda", "cpu", "pin_memory", "type", "clone", "detach", "contiguous", "double", "float", "half", "bfloat16"]
)


class Reference:
    """The double precision run of one operator; kept until its backward one has run."""

    __slots__ = ("api", "outputs", "leaves", "kept", "dtypes", "call", "originals", "saved")

    def __init__(
        self,
        api: str,
        outputs: Dict[str, Any],
        leaves: Dict[str, Any],
        kept: Dict[str, Any],
        dtypes: Dict[str, Any],
        call: Callable[[Callable[[Any, str], Any]], Any],
        originals: Dict[str, Any],
        saved: "_Saved",
    ) -> None:
        self.api, self.outputs, self.leaves, self.kept = api, outputs, leaves, kept
        self.dtypes, self.call, self.saved = dtypes, call, saved
        # Path of a parameter: the parameter and its version.
        self.originals = {path: (tensor, tensor._version) for path, tensor in originals.items()}

    def forget_values(self) -> None:
        """After the forward comparison: what is kept for backward is what autograd saved, and the inputs. See _Saved.

        The values of an only output go, and so do the copies of the inputs. The tensors stay: they are the ends of the
        graph. One of several outputs may be what autograd saved for another one, and an input that is returned is still
        needed.
        """
        ends = [self.leaves[path] for path in self.originals]
        for path, leaf in self.leaves.items():
            if path not in self.originals and self.saved.narrow(path) is not None:
                ends.append(leaf)
        inputs = {id(tensor) for tensor in self.kept.values()}
        if len(self.outputs) == 1:
            ends += [tensor for tensor in self.outputs.values() if id(tensor) not in inputs]
        self.kept = {}
        for tensor in ends:
            if tensor.requires_grad and tensor.layout == torch.strided:
                tensor.data = tensor.new_zeros(()).expand(tensor.shape)

    def unchanged(self) -> bool:
        return all(tensor._version == version for tensor, version in self.originals.values())

    def own_precision(self, wanted: List[str], grads: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """The outputs of a CPU run in the operator's own precision, or the gradients that grads lead to.

        Empty where that run is not possible.
        """
        if not self.unchanged():
            return {}
        leaves: Dict[str, Any] = {}

        def narrow(value: Any, path: str) -> Any:
            source = self.originals[path][0] if path in self.originals else self.saved.kept.get(path, value)
            copy = host_memory.seen_from_host(source.detach()).to("cpu", self.dtypes[path], copy=True)
            if path in self.leaves and grads is not None:
                leaves[path] = copy.requires_grad_()
                return copy.view_as(copy)
            return copy

        state = torch.get_rng_state()
        try:
            with torch.set_grad_enabled(grads is not None):
                outputs = dict(capture.paths_of_tensors({"result": self.call(narrow)}))
                if grads is None:
                    return outputs
                given = {path: grad.to(outputs[path].dtype) for path, grad in grads.items()}
                torch.autograd.backward([outputs[path] for path in given], list(given.values()))
        except Exception:
            return {}
        finally:
            torch.set_rng_state(state)
        return {path: leaves[path].grad for path in wanted if path in leaves and leaves[path].grad is not None}


class _Saved:
    """What autograd saves of the inputs of a double precision run: not the copies in double precision.

    Of a parameter nothing, it is copied again when backward needs it; of any other input that needs a gradient a copy
    in its own dtype, which holds the same values.
    """

    def __init__(self, leaves: Dict[str, Any], dtypes: Dict[str, Any]) -> None:
        self._leaves, self._dtypes = leaves, dtypes
        self._parameters: Dict[str, Tuple[Any, int]] = {}
        self._paths: Dict[int, str] = {}
        self.kept: Dict[str, Any] = {}

    def begin(self, parameters: Dict[str, Any]) -> None:
        """The copies are made; parameters: path and tensor of those that nothing changes before backward."""
        self._parameters = {path: (tensor, tensor._version) for path, tensor in parameters.items()}
        # Smaller ones are not worth it, and the empty ones all lie at 0.
        self._paths = {leaf.data_ptr(): path for path, leaf in self._leaves.items() if leaf.numel() >= _WORTH_NARROWING}

    def narrow(self, path: str) -> Any:
        """The values of an input in its own dtype; None where they are not kept so."""
        if path not in self.kept:
            leaf = self._leaves[path]
            if leaf.numel() < _WORTH_NARROWING or leaf.dtype == self._dtypes[path] or not buffers.dense(leaf):
                return None
            self.kept[path] = leaf.detach().to(self._dtypes[path])
        return self.kept[path]

    def pack(self, tensor: Any) -> Any:
        path = self._paths.get(tensor.data_ptr()) if tensor.layout == torch.strided else None
        if path is None:
            return tensor
        leaf = self._leaves[path]
        if leaf.numel() != tensor.numel() or leaf.dtype != tensor.dtype or not buffers.dense(tensor):
            return tensor
        if path not in self._parameters and self.narrow(path) is None:
            return tensor
        # Both fill one piece of memory, so strides of one can be those of a copy of the other.
        return (path, tensor.dtype, leaf.stride(), tensor.shape, tensor.stride())

    def unpack(self, packed: Any) -> Any:
        if isinstance(packed, torch.Tensor):
            return packed
        path, dtype, strides, shape, wanted = packed
        if path in self._parameters:
            source, version = self._parameters[path]
            if source._version != version:
                raise RuntimeError("a parameter has changed since the forward pass")
            source = source.detach()
        else:
            source = self.kept[path]
        wide = _on_cpu(source, dtype)
        if wide.stride() != strides:
            raise RuntimeError("a copy of an input has other strides than the one before it")
        return wide.as_strided(shape, wanted)


class Checker:
    def __init__(self, options: Any) -> None:
        self._level = options.record_level
        self._lock = threading.Lock()
        self._logged = 0
        # By optimizer and reason: steps, the most parameters of one, of how many, which.
        self._passed_over: Dict[Tuple[str, str], Tuple[int, int, int, str]] = {}
        self._heap = Heap() if self._level == 0 else None
        self._workers = Workers() if self._level == 0 else None

    def close(self) -> None:
        """Also say again at the end of the record what was not checked."""
        self._say_unchecked()
        if self._heap is not None:
            self._heap.close()
        if self._workers is not None:
            self._workers.close()

    def in_child(self) -> None:
        """After a fork: the child does not check."""
        if self._heap is not None:
            self._heap.leave()

    def _compute(self, what: Callable[[], Any]) -> Any:
        return what() if self._heap is None else self._heap.on_main_arena(what)

    def forward(self, api: str, func: Any, module: Any, args: Any, kwargs: Any) -> Optional[Reference]:
        """None for what has no reference: random, uninitialised, a move between devices, or not possible on the CPU."""
        last = names.last(api)
        if last in names.RANDOM or last in names.UNINITIALISED or last in _MOVES or api.startswith("torch.distributed"):
            return None
        if last in names.RANDOM_WHILE_TRAINING and _is_random(last, module, args, kwargs):
            return None
        leaves: Dict[str, Any] = {}
        kept: Dict[str, Any] = {}
        dtypes: Dict[str, Any] = {}
        state = torch.get_rng_state()
        # What only arranges elements loses nothing: its own precision is as good, in half the memory.
        double = last not in names.ARRANGES
        try:
            given = _doubled({"args": tuple(args), "kwargs": dict(kwargs)}, "", leaves, kept, dtypes, double)
            values: Dict[str, Any] = {}
            before = capture.paths_of_tensors({"args": args, "kwargs": kwargs})
            originals = {path: tensor for path, tensor in before if path in leaves and tensor.is_leaf}
            if module is not None:
                named = [(f"params.{key}", key, value) for key, value in module.named_parameters()]
                named += [(f"buffers.{key}", key, value) for key, value in module.named_buffers()]
                values = {key: _doubled(value, path, leaves, kept, dtypes) for path, key, value in named}
                paths = {key: path for path, key, _ in named}
                originals.update((path, value) for path, _, value in named if path in leaves and value.is_leaf)

            # A leaf must not be written in place; what an in-place operator gets is not one.
            in_place = api.endswith("_") or bool(getattr(module, "inplace", kwargs.get("inplace")))

            def call(change: Callable[[Any, str], Any]) -> Any:
                again = _changed(given, "", (lambda value, path: change(value, path) * 1) if in_place else change)
                if module is None:
                    return func(*again["args"], **again["kwargs"])
                changed = {key: change(value, paths[key]) for key, value in values.items()}
                return functional_call()(module, changed, again["args"], again["kwargs"])

            saved = _Saved(leaves, dtypes)
            saved.begin(originals)
            with torch.autograd.graph.saved_tensors_hooks(saved.pack, saved.unpack):
                result = call(lambda value, path: value)
            # From here on these are only places in the graph. See Reference.forget_values.
            given = _changed(given, "", lambda value, path: leaves.get(path, value))
            values = {key: leaves.get(paths[key], value) for key, value in values.items()}
        except Exception:
            # Not every operator has a double precision form on the CPU; level 0 checks what can be checked.
            return None
        finally:
            torch.set_rng_state(state)
        outputs = dict(capture.paths_of_tensors({"result": result}))
        if any(getattr(tensor, "is_nested", False) for tensor in outputs.values()):
            return None
        return Reference(api, outputs, leaves, kept, dtypes, call, originals, saved)

    def compare(self, stream: Any, run: Any, outputs: Dict[str, Any], after: Dict[str, Any]) -> None:
        reference = run.reference
        if reference is None:
            return
        lines = []
        for path, tensor in outputs.items():
            lines += self._line(path, tensor, reference.outputs.get(path))
        for path, tensor in after.items():
            lines += self._line(path, tensor, reference.kept.get(path))
        # After an operator that writes in place the inputs are no longer there for another run.
        if lines and not after and not run.name.api.endswith("_"):
            lines = _worse(lines, reference.outputs, reference.own_precision([line["path"] for line in lines]), "")
        self._log(stream, str(run.name), run.stack, lines)
        if run.boundary is None:
            run.reference = None
        else:
            reference.forget_values()

    def before_step(self, stream: Any, run: Any, optimizer: Any, closure: Any) -> None:
        """Before a step of an optimizer: what compare_step needs, or the reason why it is not checked."""
        why = step_check.why_not(optimizer, closure)
        if why is None:
            run.reference = step_check.Before(optimizer)
        else:
            params = sum(len(group["params"]) for group in optimizer.param_groups)
            self._unchecked(stream, str(run.name), params, params, "params[0]", why)

    def compare_step(self, stream: Any, run: Any, optimizer: Any) -> None:
        """After a step of an optimizer."""
        found, run.reference = run.reference, None
        state = torch.get_rng_state()
        try:
            lines, unchecked = self._compute(lambda: step_check.lines(optimizer, found, self._workers))
        finally:
            torch.set_rng_state(state)
        self._log(stream, str(run.name), run.stack, lines)
        if unchecked:
            first = unchecked[0]
            self._unchecked(stream, str(run.name), len(unchecked), len(found.entries), first.path, first.why)

    def _unchecked(self, stream: Any, name: str, params: int, of: int, first: str, why: str) -> None:
        """Say what of a step was not checked: in the log, and once for each kind of optimizer and reason at once."""
        line = {"name": name, "not_checked": params, "of": of, "first": first, "why": why}
        parsed = names.parse(name)
        key = (name if parsed is None else parsed.api, why)
        with self._lock:
            with open(os.path.join(stream.folder, "check.jsonl"), "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            steps, most, _, _ = self._passed_over.get(key, (0, 0, 0, ""))
            self._passed_over[key] = (steps + 1, max(most, params), of, first)
            if not steps:
                print(f"accuracy: {name}: {params} of {of} parameters are not checked ({why})", file=sys.stderr)

    def _say_unchecked(self) -> None:
        for (api, why), (steps, most, of, first) in self._passed_over.items():
            print(
                f"accuracy: not checked in {steps} steps of {api}: up to {most} of {of} parameters, such as {first} "
                f"({why})",
                file=sys.stderr,
            )

    def compare_backward(self, stream: Any, reference: Optional[Reference], found: Any, again: bool) -> None:
        """again: whether there may be another backward over the same operator."""
        if reference is not None:
            lines = self._compute(lambda: self._backward_lines(reference, found, again))
            self._log(stream, str(found.name), found.stack, lines)

    def _backward_lines(self, reference: Reference, found: Any, again: bool) -> List[Dict[str, Any]]:
        # A sparse or nested gradient is a dict of its parts and is not checked.
        dense = {path for grads in (found.grad_out, found.grad_in) for path in grads if _is_dense(grads[path])}
        paths = [path for path in found.grad_out if path in reference.outputs and reference.outputs[path].requires_grad]
        wanted = [path for path in found.grad_in if path in reference.leaves and path in dense]
        if not dense.issuperset(paths):
            return []
        if not paths or not wanted:
            return []
        outs = [reference.outputs[path] for path in paths]
        grads = [_on_cpu(found.grad_out[path].tensor, out.dtype) for path, out in zip(paths, outs)]
        try:
            results = torch.autograd.grad(
                outs, [reference.leaves[path] for path in wanted], grads, retain_graph=again, allow_unused=True
            )
        except RuntimeError:
            return []
        # A gradient that is a sum over grad_out may cancel to nothing: rounding is then relative to the terms.
        terms = max(float(torch.linalg.vector_norm(grad)) for grad in grads)
        most = max(grad.numel() for grad in grads)
        lines = []
        exact = {path: expected for path, expected in zip(wanted, results) if expected is not None}
        for path, expected in exact.items():
            lines += self._line(
                f"grad_in.{path}", found.grad_in[path].tensor, expected, terms if expected.numel() < most else 0.0
            )
        if lines:
            lines = _worse(lines, exact, reference.own_precision(wanted, dict(zip(paths, grads))), "grad_in.")
        return lines

    def _line(self, path: str, tensor: Any, expected: Any, terms: float = 0.0) -> List[Dict[str, Any]]:
        if expected is None or tensor.shape != expected.shape or tensor.layout != torch.strided:
            return []
        if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_quantized:
            return []
        dtype = str(tensor.dtype).replace("torch.", "")
        expected = expected.detach()
        error, norm = _norms(tensor.detach(), expected, self._workers)
        limit = verdict.threshold(dtype)
        if norm != norm or norm == float("inf") or error <= limit * norm or norm == 0.0:
            return []
        if error <= 4 * float(verdict.THRESHOLDS["unit"].get(dtype, 0.0)) * terms:
            return []
        return [{"path": path, "dtype": dtype, "diff2": error / norm, "threshold": limit}]

    def _log(self, stream: Any, name: str, stack: List[str], lines: List[Dict[str, Any]]) -> None:
        if not lines:
            return
        with self._lock:
            with open(os.path.join(stream.folder, "check.jsonl"), "a", encoding="utf-8") as file:
                for line in lines:
                    file.write(json.dumps({"name": name, **line, "stack": stack}) + "\n")
            self._logged += 1
            if self._logged <= _SHOWN:
                first = lines[0]
                where = stack[-1] if stack else "record_stack is off"
                print(
                    f"accuracy: {name} {first['path']} is off by {first['diff2']:.2e} "
                    f"(threshold {first['threshold']:.1e} for {first['dtype']}), {where}",
                    file=sys.stderr,
                )
            if self._logged == _SHOWN:
                print("accuracy: more of these only in check.jsonl", file=sys.stderr)


def functional_call() -> Any:
    """torch.func.functional_call, or what it was called before torch 2."""
    func = getattr(torch, "func", None)
    if func is not None and hasattr(func, "functional_call"):
        return func.functional_call
    from torch.nn.utils import stateless

    return stateless.functional_call


def _is_random(last: str, module: Any, args: Any, kwargs: Any) -> bool:
    if module is not None:
        return bool(module.training and (getattr(module, "p", 0) or getattr(module, "dropout", 0)))
    if last == "scaled_dot_product_attention":
        return bool((args[4] if len(args) > 4 else kwargs.get("dropout_p", 0)) > 0)
    with contextlib.suppress(TypeError):
        if kwargs.get("training", args[2] if len(args) > 2 else True) is False:
            return False
    return bool(kwargs.get("p", args[1] if len(args) > 1 else 0.5) != 0)


def _is_dense(copied: Any) -> bool:
    return isinstance(copied, capture.Copied)


def _on_cpu(tensor: Any, dtype: Any) -> Any:
    """A copy in another dtype. The device converts nothing: that would take as much memory there as the result."""
    tensor = host_memory.seen_from_host(tensor)
    if tensor.device.type == "cpu":
        return tensor.to(dtype, copy=True)
    if tensor.numel() <= PIECE or not tensor.is_contiguous():
        return tensor.to("cpu").to(dtype)
    copy = torch.empty(tensor.shape, dtype=dtype, device="cpu")
    source, target = tensor.view(-1), copy.view(-1)
    for start, end in pieces(0, tensor.numel()):
        target[start:end].copy_(source[start:end].to("cpu"))
    return copy


def _norms(actual: Any, expected: Any, workers: Optional[Workers]) -> Tuple[float, float]:
    """The norms of the difference and of expected.

    Piece by piece, in memory that stays in the processor's cache: a whole copy in double precision costs more.
    """
    there = host_memory.seen_from_host(actual)
    if not there.is_contiguous():
        # The device rearranges nothing, either.
        there = there.to("cpu")
    a, b = there.reshape(-1), expected.reshape(-1)

    def of_part(first: int, end: int) -> Tuple[float, float]:
        gaps, wholes = 0.0, 0.0
        length = min(PIECE, end - first)
        room, narrow = (torch.empty(length, dtype=dtype, device="cpu") for dtype in (b.dtype, a.dtype))
        for start, behind in pieces(first, end):
            exact, piece = b[start:behind], a[start:behind]
            if piece.device.type != "cpu":
                piece = narrow[: exact.numel()].copy_(piece)
            gap = room[: exact.numel()].copy_(piece).sub_(exact)
            gaps = math.hypot(gaps, float(torch.linalg.vector_norm(gap)))
            wholes = math.hypot(wholes, float(torch.linalg.vector_norm(exact)))
        return gaps, wholes

    parts = [of_part(0, a.numel())] if workers is None else workers.over_parts(a, of_part)
    return math.hypot(*[gaps for gaps, _ in parts]), math.hypot(*[wholes for _, wholes in parts])


def _worse(
    lines: List[Dict[str, Any]], exact: Dict[str, Any], narrow: Dict[str, Any], prefix: str
) -> List[Dict[str, Any]]:
    """The lines whose error is more than twice that of a CPU run in the operator's own precision."""
    kept = []
    for line in lines:
        path = line["path"][len(prefix) :]
        other, expected = narrow.get(path), exact[path].detach()
        if other is not None and other.shape == expected.shape:
            gap = float(torch.linalg.vector_norm(other.detach().to(expected.dtype) - expected))
            if line["diff2"] <= 2.0 * gap / float(torch.linalg.vector_norm(expected)):
                continue
        kept.append(line)
    return kept


def _changed(value: Any, path: str, change: Callable[[Any, str], Any]) -> Any:
    """The same nested data with each tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value, path)
    if isinstance(value, dict):
        return {key: _changed(part, f"{path}.{key}" if path else str(key), change) for key, part in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_changed(part, f"{path}[{index}]", change) for index, part in enumerate(value))
    return value


def _doubled(
    value: Any,
    path: str,
    leaves: Dict[str, Any],
    kept: Dict[str, Any],
    dtypes: Dict[str, Any],
    double: bool = True,
) -> Any:
    """The same arguments on the CPU, in double precision if wanted, with leaves of their own for the gradients."""
    if isinstance(value, torch.Tensor):
        if not capture.has_values(value):
            raise TypeError("what stands for a tensor has no double precision form")
        dtypes[path] = value.dtype
        copy = value.detach()
        if type(copy) is not torch.Tensor:
            copy = copy.as_subclass(torch.Tensor)
        copy = host_memory.seen_from_host(copy)
        if copy.layout != torch.strided or copy.is_quantized or getattr(copy, "is_nested", False):
            raise TypeError("only dense tensors have a double precision form")
        if not double:
            copy = copy.to("cpu", copy=True)
        elif copy.is_floating_point():
            copy = _on_cpu(copy, torch.float64)
        elif copy.is_complex():
            copy = _on_cpu(copy, torch.complex128)
        else:
            copy = copy.to("cpu", copy=True)
        if value.requires_grad and torch.is_grad_enabled():
            leaves[path] = copy.requires_grad_()
            copy = copy.view_as(copy)
        kept[path] = copy
        return copy
    if isinstance(value, dict):
        return {
            key: _doubled(part, f"{path}.{key}" if path else str(key), leaves, kept, dtypes, double)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        parts = [_doubled(part, f"{path}[{index}]", leaves, kept, dtypes, double) for index, part in enumerate(value)]
        return type(value)(parts)
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if double and isinstance(value, torch.dtype) and value in (torch.float16, torch.bfloat16, torch.float32):
        return torch.float64
    if isinstance(value, str) and value.startswith("cuda"):
        return "cpu"
    return value
