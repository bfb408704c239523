"""A running record: options, writer, and one stream of operators for each thread that takes part."""

import atexit
import contextlib
import itertools
import json
import os
import shutil
import sys
import threading
import time
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Set, Tuple

import torch

from maca_tools.accuracy import (
    backward,
    buffers,
    capture,
    direct_file,
    exchange,
    intercept,
    names,
    record_dir,
)
from maca_tools.accuracy.check import Checker
from maca_tools.accuracy.errors import AccuracyError
from maca_tools.accuracy.options import Options, Selector
from maca_tools.accuracy.writer import Item, Writer, Written

META = "record.json"
ORDER = "order.jsonl"
CHECKS = "check.jsonl"
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
_TORCH_MACHINERY = (
    "/torch/nn/modules/module.py",
    "/torch/overrides.py",
    "/torch/utils/_contextlib.py",
    "/torch/_tensor.py",
    "/torch/autograd/graph.py",
    "/torch/autograd/__init__.py",
    "/torch/optim/optimizer.py",
)
_local = threading.local()


def python_stack(start: int = 2) -> List[str]:
    """The calls that led here, outermost first, without the recorder's own and torch's dispatching frames."""
    found: List[str] = []
    try:
        frame: Any = sys._getframe(start)
    except ValueError:
        # A hook in a thread of autograd's engine has no Python caller.
        return []
    while frame is not None and len(found) < 40:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN_FOLDER) and not code.co_filename.endswith(_TORCH_MACHINERY):
            found.append(f"{code.co_filename}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return found[::-1]


def current_stream() -> "Optional[Stream]":
    """The stream of this thread; a thread of autograd's engine works for the stream whose mode it inherited.

    A thread that ran before the record began gets its stream here.
    """
    stream: Optional[Stream] = getattr(_local, "stream", None)
    if stream is not None and stream.session.running:
        return stream
    thread = threading.current_thread()
    if isinstance(thread, threading._DummyThread):
        modes: List[Any] = getattr(torch.overrides, "_get_current_function_mode_stack", list)()
        for mode in modes:
            if isinstance(mode, intercept.Mode) and mode.stream.session.running:
                return mode.stream  # type: ignore[no-any-return]
        return None
    if _session is None or thread.name.startswith("maca-accuracy"):
        return None
    return _session.adopt_thread(stream)


class _Own:
    """What this thread does meanwhile is the recorder's own: torch calls nobody's functions and modes for it."""

    __slots__ = ("_inside", "_silent")

    def __enter__(self) -> None:
        self._inside = getattr(_local, "inside", None)
        _local.inside = ("own",)
        self._silent = torch._C.DisableTorchFunction()
        self._silent.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._silent.__exit__(*error)
        _local.inside = self._inside


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
        self.boundary: Optional[backward.Boundary] = None
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

    def __init__(self, session: "Session", folder: str) -> None:
        self.session = session
        self.folder = folder
        self.selector = Selector(session.options)
        self.mode = intercept.Mode(self)
        self._number = 0
        self._kinds: Dict[Any, Tuple[str, str]] = {}
        self._passes: Dict[int, List[Any]] = {}
        self._optimizer: Any = None
        self._exchanges: Dict[int, exchange.Exchange] = {}
        session.prepare_folder(folder)

    # -- what the interception calls --------------------------------------------------------------------------------

    def function(self, func: Any, args: Any, kwargs: Any) -> Any:
        if getattr(_local, "inside", None) and not self._inner_wanted():
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
        if api is None or (getattr(_local, "inside", None) and not self._inner_wanted()):
            return original(module, *args, **kwargs)
        return self._operate(api, lambda *a, **k: original(module, *a, **k), args, kwargs, module=module)

    def named(self, api: str, func: Any, args: Any, kwargs: Any) -> Any:
        if getattr(_local, "inside", None):
            return func(*args, **kwargs)
        return self._operate(api, func, args, kwargs)

    def collective(self, api: str, func: Any, args: Any, kwargs: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with intercept.away():
                return func(*args, **kwargs)

        if getattr(_local, "inside", None):
            return call(*args, **kwargs)
        return self._operate(api, call, args, kwargs, collective=True)

    def leave_mode(self) -> None:
        """Take the mode off this thread's stack; work on its way may still hold it, so the next one is another."""
        intercept.leave(self.mode)
        self.session.held.add(self.mode)
        self.mode = intercept.Mode(self)

    def idle(self) -> bool:
        """Whether this thread is outside of any operator that is being recorded."""
        return not getattr(_local, "inside", None)

    def optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any, frame: Any) -> None:
        if getattr(_local, "inside", None):
            return
        api = f"torch.optim.{type(optimizer).__name__}"
        run = self._begin(api)
        if run.take and self.session.options.record_level > 0:
            with _Own():
                run.inputs = self._taken(run, "input", _optimizer_values(optimizer))
        closure = kwargs.get("closure") or (
            args[1] if len(args) > 1 else args[0] if args and callable(args[0]) else None
        )
        if run.take and self.session.options.record_level == 0:
            with _Own():
                self.session.checker.before_step(self, run, optimizer, closure)
        self._optimizer = (optimizer, run)
        if closure is None:
            # A closure runs the model inside the step; without one, what the step calls belongs to the step.
            _local.inside = ("optimizer", frame)

    def optimizer_ends(self, optimizer: Any) -> None:
        if self._optimizer is None or self._optimizer[0] is not optimizer:
            return
        _, run = self._optimizer
        self._optimizer = None
        inside = getattr(_local, "inside", None)
        if inside and inside[0] == "optimizer":
            _local.inside = None
        if run.take and self.session.options.record_level > 0:
            with _Own():
                values = _optimizer_values(optimizer)
                values.pop("grads")
                self._emit(run, run.inputs, self._taken(run, "output", values))
        elif run.reference is not None:
            with _Own():
                self.session.checker.compare_step(self, run, optimizer)

    # -- an operator ------------------------------------------------------------------------------------------------

    def _inner_wanted(self) -> bool:
        """Whether something inside the running operator may be recorded on its own. See names.FullName.inner."""
        inside = _local.inside
        if inside[0] == "optimizer":
            try:
                # The step may have raised: then its frame is no longer running and can be cleared.
                inside[1].clear()
            except RuntimeError:
                return False
            _local.inside = self._optimizer = None
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

    def _begin(self, api: str) -> Running:
        inside = getattr(_local, "inside", None)
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
        run = self._begin(api)
        inside = getattr(_local, "inside", None)
        wants_backward = (
            torch.is_grad_enabled() and self.selector.listed_class(api) and (run.take or self.selector.may_select_late)
        )
        if run.take or wants_backward:
            with _Own():
                run.paths = capture.paths_of_tensors({"args": args, "kwargs": kwargs})
                if module is not None:
                    run.paths += [(f"params.{key}", value) for key, value in module.named_parameters()]
                    run.paths += [(f"buffers.{key}", value) for key, value in module.named_buffers()]
                    run.extra = {"module": repr(module)[:4000], "training": module.training}
                run.versions = [(path, tensor, _version(tensor)) for path, tensor in run.paths]
                if run.take and options.record_level > 0 and options.record_input:
                    run.inputs = self._inputs(run, args, kwargs, module)
                if wants_backward:
                    boundary = backward.Boundary(run.paths)
                    run.boundary = None if boundary.empty() else boundary
                if run.take and options.record_level == 0:
                    run.reference = self.session.checker.forward(api, func, module, args, kwargs)
        _local.inside = ("closed",) if not self.selector.takes_inner or run.take else ["open", run.name.number, 0]
        try:
            result = func(*args, **kwargs)
        except BaseException:
            self._give_back(before, run)
            raise
        finally:
            _local.inside = inside
        if not (run.take or wants_backward):
            if not self._is_operator(result, kwargs, numbers, collective, module, api):
                self._give_back(before, run)
            return result
        with _Own():
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
                    self._emit(run, run.inputs, self._taken(run, "output", values))
            if run.boundary is not None:
                self._watch(run, outputs + after)
        return result

    def _after_collective(self, run: Running, after: List[Tuple[str, Any]]) -> None:
        if run.take and self.session.options.record_level > 0:
            with _Own():
                self._emit(run, run.inputs, self._taken(run, "output", {"result": None, "after": dict(after)}))

    def _inputs(self, run: Running, args: Any, kwargs: Any, module: Any) -> Any:
        values = {"args": list(args), "kwargs": dict(kwargs)}
        if module is not None:
            values["params"] = dict(module.named_parameters())
            values["buffers"] = dict(module.named_buffers())
        return self._taken(run, "input", values)

    def _taken(self, run: Any, part: str, values: Any) -> Any:
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

    def _emit(self, run: Any, inputs: Any, outputs: Any) -> None:
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

    def exchange_begins(self, api: str) -> Running:
        return self._begin(api)

    def exchange_ends(self, run: Running, before: Dict[str, Any], after: Dict[str, Any]) -> None:
        self._emit(run, {"grads": before}, self._taken(run, "output", {"grads": after}))

    def unseen(self) -> ContextManager[None]:
        return _Own()

    def backward_returns(self) -> None:
        """A whole backward has run, and with it the exchange of what it computed."""
        for key in [key for key, found in self._exchanges.items() if found.ended()]:
            del self._exchanges[key]

    # -- backward ---------------------------------------------------------------------------------------------------

    def _watch(self, run: Running, outputs: List[Tuple[str, Any]]) -> None:
        assert run.boundary is not None
        nodes = run.boundary.nodes_of(outputs)
        if not nodes:
            return
        # What leads to an input runs after what makes an output; an output that nobody used never gets a gradient.
        last = [index for index, found in enumerate(nodes) if found.inputs]
        watch = _Watch(self, run.name, run.candidate, run.take, last or list(range(len(nodes))), run)
        paths = [path for found in nodes for path, _ in found.inputs]
        watch.added = {path for path in paths if paths.count(path) > 1}
        for index, found in enumerate(nodes):
            found.node.register_hook(watch.hook(index, found.outputs, found.inputs))

    def backward_begins(self, watch: "_Watch") -> "backward.Pass":
        watch.passes += 1
        name = watch.name._replace(way="bwd", again=watch.passes if watch.passes > 1 else 0)
        take = self.session.running and self.selector.backward(name, watch.candidate, watch.selected)
        stack = (python_stack(4) or watch.stack) if take and self.session.options.record_stack else []
        found = backward.Pass(name, take, watch.nodes, stack)
        task = backward.graph_task()
        if task not in self._passes:
            self._passes[task] = []
            backward.at_end_of_backward(lambda: self._backward_ends(task))
        self._passes[task].append((watch, found))
        return found

    def _backward_ends(self, task: int) -> None:
        """Operators of which only a part was needed, such as one of two outputs."""
        with _Own():
            for watch, found in self._passes.pop(task, []):
                if watch.now is found:
                    watch.finish()

    def backward_done(self, watch: "_Watch", found: "backward.Pass") -> None:
        if not found.take:
            return
        if self.session.options.record_level == 0:
            again = self.session.graph_is_kept()
            self.session.checker.compare_backward(self, watch.reference, found, again)
            if not again:
                # The plain graph is let go as backward passes; who still holds its ends must not hold this one.
                watch.reference = None
            capture.release([found.grad_out, found.grad_in])
            return
        extra: Any = type("Run", (), {"name": found.name, "stack": found.stack})()
        self._emit(extra, {"grad_out": found.grad_out}, {"grad_in": found.grad_in})


def _extra(run: Any) -> Dict[str, Any]:
    """What a file says besides its values."""
    return {**(run.extra if isinstance(run, Running) else {}), "stack": "\n".join(run.stack)}


class _Watch:
    """The hooks of one forward operator; lives as long as its part of the graph."""

    def __init__(
        self, stream: Stream, name: names.FullName, candidate: bool, selected: bool, nodes: List[int], run: Running
    ) -> None:
        self.stream, self.name, self.candidate, self.selected, self.nodes = stream, name, candidate, selected, nodes
        self.reference = run.reference
        # The forward's stack, for a backward that runs in a thread without one.
        self.stack = run.stack
        # Inputs whose gradient comes in parts.
        self.added: Set[str] = set()
        self.passes = 0
        self.now: Optional[backward.Pass] = None
        self._seen: List[int] = []

    def hook(
        self, index: int, outputs: List[Tuple[str, int]], inputs: List[Tuple[str, int]]
    ) -> Callable[[Any, Any], None]:
        def call(grad_inputs: Any, grad_outputs: Any) -> None:
            if not self.stream.session.running or intercept.compiling():
                return
            with _Own():
                self._see(index, outputs, inputs, grad_inputs, grad_outputs)

        return call

    def _see(self, index: int, outputs: Any, inputs: Any, grad_inputs: Any, grad_outputs: Any) -> None:
        if self.now is not None and index in self._seen:
            self.finish()
        if self.now is None:
            self.now = self.stream.backward_begins(self)
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
        level = self.stream.session.options.record_level
        if level == 1 and whole:
            return self.stream.session.writer.summaries(grad)
        # What is compared or summarised before the hook returns needs no copy.
        return capture.copy_values(grad, live=level < 2 and len(self.nodes) == 1)

    def finish(self) -> None:
        found, self.now = self.now, None
        if found is not None:
            self.stream.backward_done(self, found)


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


def _optimizer_values(optimizer: Any) -> Dict[str, Any]:
    params = [param for group in optimizer.param_groups for param in group["params"]]
    return {
        "params": params,
        "grads": [param.grad for param in params],
        "state": [dict(optimizer.state[param]) if param in optimizer.state else {} for param in params],
        "groups": [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups],
    }


class Session:
    """From start_record to the next start_record or the end of the process."""

    def __init__(self, options: Options, folder: str) -> None:
        self.options = options
        self.folder = folder
        self.running = False
        self.process = os.getpid()
        self._streams: List[Stream] = []
        self._installation: Optional[intercept.Installation] = None
        self._threads = itertools.count(1)
        self._backwards: List[bool] = []
        self.held = intercept.Held()
        self.writer = Writer(options.record_level)
        self.checker = Checker(options)
        try:
            self._main = Stream(self, folder)
        except BaseException:
            self.writer.close()
            self.checker.close()
            raise

    def prepare_folder(self, folder: str) -> None:
        """Make the folder, or empty it of an earlier record; AccuracyError for one that holds anything else."""
        try:
            os.makedirs(folder, exist_ok=True)
            present = os.listdir(folder)
            if (
                present
                and META not in present
                and any(entry.endswith(".pt") or os.path.isfile(os.path.join(folder, entry)) for entry in present)
            ):
                raise AccuracyError(
                    f"{folder} holds files but no record; name an empty folder or one of an earlier record"
                )
            for entry in present:
                path = os.path.join(folder, entry)
                if (
                    entry in (META, ORDER, CHECKS)
                    or (entry.startswith("partial") and entry.endswith(".tmp"))
                    or (entry.endswith(".pt") and names.parse(entry.rsplit(".", 2)[0]))
                ):
                    os.unlink(path)
                elif (
                    folder == self.folder
                    and entry.startswith(("thread", "process"))
                    and os.path.isfile(os.path.join(path, META))
                ):
                    shutil.rmtree(path)
            meta = {
                "format": record_dir.FORMAT,
                "torch": torch.__version__,
                "python": sys.version.split()[0],
                "argv": sys.argv[:20],
                "started": time.strftime("%Y-%m-%dT%H:%M:%S"),
                "options": self.options.as_dict(),
                "cuda": torch.cuda.is_available(),
            }
            with open(os.path.join(folder, META), "w", encoding="utf-8") as file:
                json.dump(meta, file, indent=1, default=str)
        except OSError as error:
            raise AccuracyError(f"{folder} cannot be written: {error}") from error

    def start(self) -> None:
        if self.running or os.getpid() != self.process:
            return
        self.writer.resume()
        self.running = True
        self._installation = intercept.Installation(current_stream, self._new_thread)
        _local.stream = self._main
        intercept.enter(self._main.mode)

    def pause(self) -> None:
        """Stop, and wait until every file of what was recorded is complete. Raises AccuracyError if one cannot be."""
        self.stop()
        if os.getpid() == self.process:
            self.writer.pause()

    def stop(self) -> None:
        """Stop seeing operators; what is queued goes on being written."""
        if not self.running:
            return
        self.running = False
        _local.inside = None
        self._main.leave_mode()
        _local.stream = None
        if self._installation is not None:
            self._installation.undo()
            self._installation = None
        if os.getpid() == self.process:
            self.held.wait()

    def close(self) -> None:
        """Stop, and wait until everything is on the disk. Raises AccuracyError if it could not be written."""
        self.stop()
        if os.getpid() == self.process:
            try:
                self.writer.close()
            finally:
                self.checker.close()
                buffers.clear()
                direct_file.clear()

    @contextlib.contextmanager
    def backward_runs(self, keeps_graph: bool) -> Iterator[None]:
        """While one backward runs; several may, in different threads."""
        self._backwards.append(keeps_graph)
        try:
            yield
        finally:
            self._backwards.remove(keeps_graph)

    def graph_is_kept(self) -> bool:
        """Whether a backward may run over the same operator again."""
        return not self._backwards or any(self._backwards)

    def _new_thread(self) -> Optional[Callable[[], None]]:
        if self.adopt_thread(None) is None:
            return None

        def leave_thread() -> None:
            # None where the thread itself has ended the record.
            stream, _local.stream = _local.stream, None
            if stream is not None:
                stream.leave_mode()

        return leave_thread

    def adopt_thread(self, earlier: Optional[Stream]) -> Optional[Stream]:
        """A stream for this thread, in place of that of an earlier record; None while nothing is recorded."""
        if not self.running or os.getpid() != self.process:
            return None
        if earlier is not None:
            earlier.leave_mode()
        _local.inside = None
        _local.stream = stream = Stream(self, os.path.join(self.folder, f"thread{next(self._threads)}"))
        intercept.enter(stream.mode)
        return stream


_session: Optional[Session] = None


def begin(options: Options, folder: str) -> Session:
    global _session
    finish()
    _session = Session(options, folder)
    _session.start()
    return _session


def present() -> Optional[Session]:
    return _session


def finish() -> None:
    """Close the record that is open, if one is."""
    global _session
    session, _session = _session, None
    if session is not None:
        session.close()


def _in_child() -> None:
    """A forked child has the patches but not the writer's thread: it records only if it asks for it."""
    global _session
    session, _session = _session, None
    if session is not None:
        session.stop()
        session.checker.in_child()


@atexit.register
def _at_exit() -> None:
    try:
        finish()
    except AccuracyError as error:
        print(f"accuracy: {error}", file=sys.stderr)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
