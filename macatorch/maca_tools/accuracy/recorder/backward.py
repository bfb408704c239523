"""The backward passes over recorded operators: hooks on the nodes that boundary.py finds, and what they have seen."""

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch

from maca_tools.accuracy import names
from maca_tools.accuracy.data import capture
from maca_tools.accuracy.recorder import intercept
from maca_tools.accuracy.recorder.thread import Own, python_stack

_EngineCallback = Callable[[], None]


def graph_task() -> int:
    """A number for the running backward pass, -1 where torch cannot tell."""
    ask = getattr(torch._C, "_current_graph_task_id", None)
    return int(ask()) if ask is not None else -1


def at_end_of_backward(callback: _EngineCallback) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(callback)


class Pass:
    """One backward pass over one operator, while it runs: gradients as they were when the hook saw them."""

    __slots__ = ("name", "take", "pending", "grad_out", "grad_in", "stack")

    def __init__(self, name: Any, take: bool, nodes: List[int], stack: Any) -> None:
        self.name, self.take, self.stack = name, take, stack
        self.pending = set(nodes)
        self.grad_out: Dict[str, Any] = {}
        self.grad_in: Dict[str, Any] = {}


class Backward:
    """The backward passes over the operators of one stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._passes: Dict[int, List[Any]] = {}

    def watch(self, run: Any, outputs: List[Tuple[str, Any]]) -> None:
        assert run.boundary is not None
        nodes = run.boundary.nodes_of(outputs)
        if not nodes:
            return
        # What leads to an input runs after what makes an output; an output that nobody used never gets a gradient.
        last = [index for index, found in enumerate(nodes) if found.inputs]
        watch = Watch(self, run.name, run.candidate, run.take, last or list(range(len(nodes))), run)
        paths = [path for found in nodes for path, _ in found.inputs]
        watch.added = {path for path in paths if paths.count(path) > 1}
        for index, found in enumerate(nodes):
            found.node.register_hook(watch.hook(index, found.outputs, found.inputs))

    def begins(self, watch: "Watch") -> Pass:
        watch.passes += 1
        name = watch.name._replace(way="bwd", again=watch.passes if watch.passes > 1 else 0)
        take = self.stream.session.running and self.stream.selector.backward(name, watch.candidate, watch.selected)
        stack = (python_stack(4) or watch.stack) if take and self.stream.session.options.record_stack else []
        found = Pass(name, take, watch.nodes, stack)
        task = graph_task()
        if task not in self._passes:
            self._passes[task] = []
            at_end_of_backward(lambda: self._ends(task))
        self._passes[task].append((watch, found))
        return found

    def _ends(self, task: int) -> None:
        """Operators of which only a part was needed, such as one of two outputs."""
        with Own():
            for watch, found in self._passes.pop(task, []):
                if watch.now is found:
                    watch.finish()

    def done(self, watch: "Watch", found: Pass) -> None:
        if not found.take:
            return
        if self.stream.session.options.record_level == 0:
            again = self.stream.session.graph_is_kept()
            self.stream.session.checker.compare_backward(self.stream, watch.reference, found, again)
            if not again:
                # The plain graph is let go as backward passes; who still holds its ends must not hold this one.
                watch.reference = None
            capture.release([found.grad_out, found.grad_in])
            return
        extra: Any = type("Run", (), {"name": found.name, "stack": found.stack})()
        self.stream.emit(extra, {"grad_out": found.grad_out}, {"grad_in": found.grad_in})


class Watch:
    """The hooks of one forward operator; lives as long as its part of the graph."""

    def __init__(
        self, owner: Backward, name: names.FullName, candidate: bool, selected: bool, nodes: List[int], run: Any
    ) -> None:
        self.backward, self.name, self.candidate, self.selected, self.nodes = owner, name, candidate, selected, nodes
        self.reference = run.reference
        # The forward's stack, for a backward that runs in a thread without one.
        self.stack = run.stack
        # Inputs whose gradient comes in parts.
        self.added: Set[str] = set()
        self.passes = 0
        self.now: Optional[Pass] = None
        self._seen: List[int] = []

    def hook(
        self, index: int, outputs: List[Tuple[str, int]], inputs: List[Tuple[str, int]]
    ) -> Callable[[Any, Any], None]:
        def call(grad_inputs: Any, grad_outputs: Any) -> None:
            if not self.backward.stream.session.running or intercept.compiling():
                return
            with Own():
                self._see(index, outputs, inputs, grad_inputs, grad_outputs)

        return call

    def _see(self, index: int, outputs: Any, inputs: Any, grad_inputs: Any, grad_outputs: Any) -> None:
        if self.now is not None and index in self._seen:
            self.finish()
        if self.now is None:
            self.now = self.backward.begins(self)
            self._seen = []
        self._seen.append(index)
        now = self.now
        now.pending.discard(index)
        if now.take:
            for path, number in outputs:
                if number < len(grad_outputs) and grad_outputs[number] is not None:
                    now.grad_out[path] = self._taken(grad_outputs[number], whole=True)
            for path, edge in inputs:
                grad = grad_inputs[edge] if edge < len(grad_inputs) else None
                if grad is None:
                    continue
                copied = self._taken(grad, whole=path not in self.added)
                before = now.grad_in.get(path)
                if before is None:
                    now.grad_in[path] = copied
                elif isinstance(before, capture.Copied) and isinstance(copied, capture.Copied):
                    before.tensor = before.tensor + copied.tensor
                    before.buffer = None
        if not now.pending:
            self.finish()

    def _taken(self, grad: Any, whole: bool) -> Any:
        """What is kept of a gradient: at level 1 its summary, where nothing is added to it."""
        level = self.backward.stream.session.options.record_level
        if level == 1 and whole:
            return self.backward.stream.session.writer.summaries(grad)
        # What is compared or summarised before the hook returns needs no copy.
        return capture.copy_values(grad, live=level < 2 and len(self.nodes) == 1)

    def finish(self) -> None:
        found, self.now = self.now, None
        if found is not None:
            self.backward.done(self, found)
