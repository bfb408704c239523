"""The operators of one thread: what is recorded of each, and the numbers that they get."""

from typing import Any, Callable, ContextManager, Dict, List, Optional, Tuple

import torch

from maca_tools.accuracy import names
from maca_tools.accuracy.data import capture
from maca_tools.accuracy.options import Selector
from maca_tools.accuracy.recorder import backward, exchange, intercept, optimizer
from maca_tools.accuracy.recorder.boundary import Boundary
from maca_tools.accuracy.recorder.thread import Own, local, python_stack
from maca_tools.accuracy.recorder.writer import Item, Written


class Running:
    """An operator between its call and its return."""

    __slots__ = (
        "name",
        "candidate",
        "take",
        "inputs",
        "versions",
        "boundary",
        "stack",
        "extra",
        "state",
        "reference",
        "paths",
    )

    def __init__(self, name: names.FullName, candidate: bool, take: bool) -> None:
        self.name, self.candidate, self.take = name, candidate, take
        self.inputs: Any = None
        self.versions: List[Tuple[str, Any, int]] = []
        self.paths: List[Tuple[str, Any]] = []
        self.boundary: Optional[Boundary] = None
        self.stack: List[str] = []
        self.extra: Dict[str, Any] = {}
        self.reference: Any = None


def _version(tensor: Any) -> int:
    try:
        return int(tensor._version)
    except RuntimeError:
        # An inference tensor counts no versions.
        return -1


class Stream:
    """The operators of one thread, in the order of their calls."""

    def __init__(self, session: Any, folder: str) -> None:
        self.session = session
        self.folder = folder
        self.selector = Selector(session.options)
        self.mode = intercept.Mode(self)
        self._number = 0
        self._kinds: Dict[Any, Tuple[str, str]] = {}
        self.optimizer = optimizer.Step(self)
        self.backward = backward.Backward(self)
        self._exchanges: Dict[int, exchange.Exchange] = {}
        session.prepare_folder(folder)

    # -- what the interception calls --------------------------------------------------------------------------------

    def function(self, func: Any, args: Any, kwargs: Any) -> Any:
        if getattr(local, "inside", None) and not self._inner_wanted():
            return func(*args, **kwargs)
        try:
            kind = self._kinds.get(func)
        except TypeError:
            return func(*args, **kwargs)
        if kind is None:
            kind = self._kinds[func] = self._classify(func)
        api, what = kind
        if what == "pass":
            return func(*args, **kwargs)
        return self._operate(api, func, args, kwargs, numbers=what == "numbers")

    def module(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        if id(module) not in self._exchanges and exchange.exchanges_gradients(module):
            self._exchanges[id(module)] = exchange.Exchange(self, module)
        api = names.module_name(type(module))
        if api is None or (getattr(local, "inside", None) and not self._inner_wanted()):
            return original(module, *args, **kwargs)
        return self._operate(api, lambda *a, **k: original(module, *a, **k), args, kwargs, module=module)

    def named(self, api: str, func: Any, args: Any, kwargs: Any) -> Any:
        if getattr(local, "inside", None):
            return func(*args, **kwargs)
        return self._operate(api, func, args, kwargs)

    def collective(self, api: str, func: Any, args: Any, kwargs: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with intercept.away():
                return func(*args, **kwargs)

        if getattr(local, "inside", None):
            return call(*args, **kwargs)
        return self._operate(api, call, args, kwargs, collective=True)

    def leave_mode(self) -> None:
        """Take the mode off this thread's stack; work on its way may still hold it, so the next one is another."""
        intercept.leave(self.mode)
        self.session.held.add(self.mode)
        self.mode = intercept.Mode(self)

    def idle(self) -> bool:
        """Whether this thread is outside of any operator that is being recorded."""
        return not getattr(local, "inside", None)

    # -- an operator ------------------------------------------------------------------------------------------------

    def _inner_wanted(self) -> bool:
        """Whether something inside the running operator may be recorded on its own. See names.FullName.inner."""
        inside = local.inside
        if inside[0] == "optimizer":
            try:
                # The step may have raised: then its frame is no longer running and can be cleared.
                inside[1].clear()
            except RuntimeError:
                return False
            self.optimizer.give_up()
            return True
        return bool(inside[0] == "open")

    def _classify(self, func: Any) -> Tuple[str, str]:
        api = names.function_name(func)
        last = names.last(api)
        if getattr(func, "__name__", "") == "__get__":
            return api, "operator" if last in names.ATTRIBUTES else "pass"
        if last in names.READ_NUMBERS:
            return api, "numbers"
        return api, "pass" if last in names.NOT_OPERATORS or last in ("grad", "backward") else "operator"

    def begin(self, api: str) -> Running:
        inside = getattr(local, "inside", None)
        if inside and inside[0] == "open":
            inside[2] += 1
            name = names.FullName(api, inside[1], "fwd", inner=inside[2])
        else:
            name = names.FullName(api, self._number, "fwd")
            self._number += 1
        candidate, take = self.selector.forward(name)
        run = Running(name, candidate, take and self.selector.listed(name))
        if run.take and self.session.options.record_stack:
            run.stack = python_stack(3)
        return run

    def _operate(
        self,
        api: str,
        func: Any,
        args: Any,
        kwargs: Any,
        module: Any = None,
        numbers: bool = False,
        collective: bool = False,
    ) -> Any:
        options = self.session.options
        before = (self._number, self.selector.__dict__.copy())
        run = self.begin(api)
        inside = getattr(local, "inside", None)
        wants_backward = (
            torch.is_grad_enabled() and self.selector.listed_class(api) and (run.take or self.selector.may_select_late)
        )
        if run.take or wants_backward:
            with Own():
                run.paths = capture.paths_of_tensors({"args": args, "kwargs": kwargs})
                if module is not None:
                    run.paths += [(f"params.{key}", value) for key, value in module.named_parameters()]
                    run.paths += [(f"buffers.{key}", value) for key, value in module.named_buffers()]
                    run.extra = {"module": repr(module)[:4000], "training": module.training}
                run.versions = [(path, tensor, _version(tensor)) for path, tensor in run.paths]
                if run.take and options.record_level > 0 and options.record_input:
                    run.inputs = self._inputs(run, args, kwargs, module)
                if wants_backward:
                    boundary = Boundary(run.paths)
                    run.boundary = None if boundary.empty() else boundary
                if run.take and options.record_level == 0:
                    run.reference = self.session.checker.forward(api, func, module, args, kwargs)
        local.inside = ("closed",) if not self.selector.takes_inner or run.take else ["open", run.name.number, 0]
        try:
            result = func(*args, **kwargs)
        except BaseException:
            self._give_back(before, run)
            raise
        finally:
            local.inside = inside
        if not (run.take or wants_backward):
            if not self._is_operator(result, kwargs, numbers, collective, module, api):
                self._give_back(before, run)
            return result
        with Own():
            outputs = capture.paths_of_tensors({"result": result})
            ids = {id(tensor) for _, tensor in outputs}
            after = [
                (path, tensor)
                for path, tensor, version in run.versions
                if id(tensor) not in ids and (collective or (version >= 0 and _version(tensor) != version))
            ]
            if not self._is_operator(result, kwargs, numbers, collective, module, api):
                self._give_back(before, run)
                return result
            if collective and hasattr(result, "wait"):
                return _Work(result, lambda: self._after_collective(run, after))
            if run.take:
                if options.record_level == 0:
                    self.session.checker.compare(self, run, dict(outputs), dict(after))
                else:
                    values = {"result": result}
                    if after:
                        values["after"] = dict(after)
                    self.emit(run, run.inputs, self.taken(run, "output", values))
            if run.boundary is not None:
                self.backward.watch(run, outputs + after)
        return result

    def _after_collective(self, run: Running, after: List[Tuple[str, Any]]) -> None:
        if run.take and self.session.options.record_level > 0:
            with Own():
                self.emit(run, run.inputs, self.taken(run, "output", {"result": None, "after": dict(after)}))

    def _inputs(self, run: Running, args: Any, kwargs: Any, module: Any) -> Any:
        values = {"args": list(args), "kwargs": dict(kwargs)}
        if module is not None:
            values["params"] = dict(module.named_parameters())
            values["buffers"] = dict(module.named_buffers())
        return self.taken(run, "input", values)

    def taken(self, run: Any, part: str, values: Any) -> Any:
        """What _emit needs of values: summaries, copies, or the file that holds those too large for a copy already."""
        options = self.session.options
        if not (options.record_input if part == "input" else options.record_output):
            return None
        if options.record_level == 1:
            return self.session.writer.summaries(values)
        if capture.tensor_bytes(capture.tensors_in(values)) <= self.session.writer.large:
            return capture.copy_values(values)
        values = capture.copy_values(values, live=True)
        return self.session.writer.write_through(self.folder, str(run.name), part, values, _extra(run))

    def _is_operator(self, result: Any, kwargs: Any, numbers: bool, collective: bool, module: Any, api: str) -> bool:
        """The same answer as for an operator that is recorded, so that numbers do not depend on the selection."""
        # A function that returns no tensor counts only if it writes in place, and those names end in an underscore
        # (Tensor.__setitem__ and _foreach_*_ included).
        return bool(
            numbers
            or collective
            or module is not None
            or api.endswith("_")
            or capture.tensors_in(result)
            or "out" in kwargs
        )

    def _give_back(self, before: Tuple[int, Dict[str, Any]], run: Running) -> None:
        if isinstance(run.inputs, Written):
            self.session.writer.discard(run.inputs)
        if run.name.inner == 0 and self._number == before[0] + 1:
            self._number = before[0]
            self.selector.__dict__.update(before[1])

    def emit(self, run: Any, inputs: Any, outputs: Any) -> None:
        options = self.session.options
        name = str(run.name)
        items = []
        for part, wanted, values in (
            ("input", options.record_input, inputs),
            ("output", options.record_output, outputs),
        ):
            if wanted:
                written = values if isinstance(values, Written) else None
                values = None if written is not None else values
                if options.record_level == 1 and not isinstance(values, capture.Summaries):
                    values = self.session.writer.summaries(values)
                items.append(Item(self.folder, name, part, values, _extra(run), written))
        self.session.writer.put(items)

    # -- what exchange.py calls -------------------------------------------------------------------------------------

    def exchange_ends(self, run: Running, before: Dict[str, Any], after: Dict[str, Any]) -> None:
        self.emit(run, {"grads": before}, self.taken(run, "output", {"grads": after}))

    def unseen(self) -> ContextManager[None]:
        return Own()

    def backward_returns(self) -> None:
        """A whole backward has run, and with it the exchange of what it computed."""
        for key in [key for key, found in self._exchanges.items() if found.ended()]:
            del self._exchanges[key]


def _extra(run: Any) -> Dict[str, Any]:
    """What a file says besides its values."""
    return {**(run.extra if isinstance(run, Running) else {}), "stack": "\n".join(run.stack)}


class _Work:
    """A collective that runs on: its output is what is there when wait() returns."""

    def __init__(self, work: Any, done: Callable[[], None]) -> None:
        self._work, self._done = work, done
        self._finished = False

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        result = self._work.wait(*args, **kwargs)
        if not self._finished:
            self._finished = True
            self._done()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)
