"""The one mechanism that sees operators, and its installation.

Note [What sees what]
A torch function mode sees every function of torch, whenever and under whatever name it was imported, operators and
indexing, methods, attributes, factory functions and _foreach_* (torch 2.1 passes on indexing by several indices or a
list, and not by one number, slice or tensor; a __getitem__ of ours would make every tensor a sequence there, which
torch.tensor([...]) of scalars refuses). `Module.__call__` makes a module one operator: what runs inside is passed
through. Hooks on autograd's nodes (backward.py) see gradients. Optimizers are seen through torch's own step hooks.
Collectives and the making of a nested tensor from a list have no torch function protocol: their functions are replaced
in every module that holds them. A module that torch.compile made is one operator; of a function that it made only what
the compiled code calls back in Python is seen. A mode belongs to a thread, so each thread that starts later gets its
own, with its own numbers and folder. A thread that runs already gets it when it first calls what is replaced for all
threads: a module, backward, an optimizer's step or a collective. DistributedDataParallel exchanges gradients in C++:
its parameters get hooks that see each gradient before the exchange (exchange.py).
"""

import contextlib
import functools
import sys
import threading
import time
import types
import weakref
from typing import Any, Callable, Iterator, List, Optional, Tuple

import torch
from torch.overrides import TorchFunctionMode

from maca_tools.accuracy import names

_reads_a_function: Any = getattr(getattr(torch, "compiler", None), "is_compiling", None) or getattr(
    getattr(torch, "_utils", None), "is_compiling", lambda: False
)
# Of torch 2.1; later releases have torch.compiler.is_compiling, and a function of ours that asks it is read as a whole.
_eval_frame: Any = (
    None
    if hasattr(getattr(torch, "compiler", None), "is_compiling")
    else getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
)
_guards: Any = None if _eval_frame is None else getattr(torch, "_guards", None)
# What torch.jit.trace of this thread notes down.
_traces: Callable[[], Any] = getattr(torch._C, "_get_tracing_state", lambda: None)
_dispatch_modes: Callable[[], int] = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_dispatch_mode = getattr(torch._C, "_get_dispatch_mode", None)
_TRACERS = [
    key
    for name in ("FAKE", "PROXY", "FUNCTIONAL")
    for key in [getattr(getattr(torch._C, "_TorchDispatchModeKey", None), name, None)]
    if key is not None
]


def compiling() -> bool:
    """Whether torch.compile or a tracer is at work: it must not find the recorder, whose work would join the trace."""
    if _reads_a_function() or _traces() is not None:
        return True
    if _guards is not None and _guards.TracingContext.get() is not None:
        return True
    return _dispatch_mode is not None and _dispatch_modes() > 0 and any(_dispatch_mode(key) for key in _TRACERS)


def _never_compiled(function: Callable[..., Any]) -> None:
    """For torch 2.1: torch.compile shall not begin with this function; it still reads it as a part of others.

    There a backend's graph is a module that torch.compile has made again, with compilation off. What it would make of
    a function that calls this module is a graph of one call, which is made into a module again, without end.
    """
    if _eval_frame is not None:
        _eval_frame.skip_code(function.__code__)


def _compiles_frames() -> bool:
    """For torch 2.1: whether functions that this thread calls are compiled; the recorder's own must not be."""
    if _eval_frame is None:
        return False
    callback = _eval_frame.set_eval_frame(None)
    _eval_frame.set_eval_frame(callback)
    return callback is not None


_never_compiled(_compiles_frames)


class Mode(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream = stream

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A thread that goes on after the record ended still has its mode: nobody else can take it away.
        if not self.stream.session.running or compiling():
            return func(*args, **(kwargs or {}))
        return self.stream.function(func, args, kwargs or {})


def _stack_functions() -> Any:
    """Length, pop and push of the stack of modes; None where torch has no such stack."""
    # torch.overrides' own pop and push: before torch 2 they also switch the stack itself on and off.
    found = [
        getattr(torch._C, "_len_torch_function_stack", None),
        getattr(torch.overrides, "_pop_mode", None),
        getattr(torch.overrides, "_push_mode", None),
    ]
    return found if all(found) else None


def _at_bottom(change: Callable[[], None]) -> None:
    """Run change with the mode stack empty, then put the modes back.

    Recording may start or stop inside somebody's `with torch.device(...)`, which pops whatever is on top at its end: so
    ours lies below all others.
    """
    functions = _stack_functions()
    if functions is None:
        change()
        return
    length, pop, push = functions
    others = [pop() for _ in range(length())]
    try:
        change()
    finally:
        for mode in reversed(others):
            push(mode)


def enter(mode: Mode) -> None:
    _at_bottom(lambda: _enter(mode))


def _enter(mode: Mode) -> None:
    mode.__enter__()


def leave(mode: Mode) -> None:
    functions = _stack_functions()
    if functions is None:
        mode.__exit__(None, None, None)
        return
    length, pop, push = functions
    others = [pop() for _ in range(length())]
    for other in reversed(others):
        if other is not mode:
            push(other)


@contextlib.contextmanager
def away() -> Iterator[None]:
    """Without our modes on this thread's stack. See Note [Modes that outlive their call]."""
    functions = _stack_functions()
    if functions is None:
        yield
        return
    length, pop, push = functions
    modes = [pop() for _ in range(length())][::-1]
    for mode in modes:
        if not isinstance(mode, Mode):
            push(mode)
    try:
        yield
    finally:
        while length():
            pop()
        for mode in modes:
            push(mode)


class Held:
    """Modes that have left their stack and may still be held by work that is on its way.

    Note [Modes that outlive their call]
    What C++ hands to another thread (a collective, autograd's nodes) takes the stack of modes along, and that thread
    lets it go when the work is done, for which it needs Python's lock. gloo's process group waits in its destructor for
    its threads; where Python destroys it with the lock held, and such a thread is about to let a mode go, both wait for
    ever. So collectives that Python calls run without our modes, and where processes work together a mode that leaves
    the stack, such as the one under which DistributedDataParallel's C++ calls gloo, is waited for: before a group is
    destroyed, and at the end of the record.
    """

    # Somebody may keep work for good, with what it holds; a thread may wait long for a core.
    _PATIENCE_S, _SILENT_S = 60.0, 5.0

    def __init__(self) -> None:
        self._modes: List[Any] = []

    def add(self, mode: Mode) -> None:
        self._modes = [known for known in self._modes if known() is not None] + [weakref.ref(mode)]

    def wait(self) -> None:
        """Until nobody holds one any more; Python's lock is free meanwhile."""
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return
        began, said = time.monotonic(), False
        while any(mode() is not None for mode in self._modes):
            waited = time.monotonic() - began
            if waited > self._PATIENCE_S:
                print(
                    f"accuracy: after {waited:.0f} s it still does; the program goes on. If it hangs where a process "
                    "group is destroyed, drop the work or the gradients that are kept before",
                    file=sys.stderr,
                )
                break
            if waited > self._SILENT_S and not said:
                said = True
                print("accuracy: waiting for work of a process group that holds the recorder", file=sys.stderr)
            time.sleep(0.001)
        self._modes.clear()


class _Engine:
    """Autograd's engine with the mode on.

    Whoever calls backward is called by the mode itself, which is off meanwhile; but backward runs Python code of its
    own (custom functions, hooks, recomputed forwards) that shall be seen, also in the engine's threads.
    """

    def __init__(self, engine: Any, current: Callable[[], Any]) -> None:
        self._engine, self._current = engine, current

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        stream = None if compiling() else self._current()
        if stream is None or not stream.idle():
            return self._engine.run_backward(*args, **kwargs)
        # Positional in every release: tensors, gradients, retain_graph.
        keeps_graph = bool(args[2] if len(args) > 2 else kwargs.get("keep_graph", True))
        mode = Mode(stream)
        stream.session.held.add(mode)
        with stream.session.backward_runs(keeps_graph), mode:
            del mode
            result = self._engine.run_backward(*args, **kwargs)
        stream.backward_returns()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class Installation:
    """Everything that is patched for all threads; undo() restores it."""

    def __init__(self, current: Callable[[], Any], new_thread: Callable[[], Any]) -> None:
        self._current = current
        self._undo: List[Callable[[], None]] = []
        self._modules()
        self._optimizers()
        self._without_protocol()
        self._engine()
        self._threads(new_thread)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = owner.__dict__.get(name)
        if original is None:
            return
        wrapper = make(original)
        setattr(owner, name, wrapper)

        def restore() -> None:
            # Somebody else may have wrapped ours in between: then it stays and only passes on.
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)

        self._undo.append(restore)

    def _modules(self) -> None:
        current = self._current

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def call(module: Any, *args: Any, **kwargs: Any) -> Any:
                if compiling() or _compiles_frames():
                    return original(module, *args, **kwargs)
                stream = current()
                if stream is None:
                    return original(module, *args, **kwargs)
                return stream.module(original, module, args, kwargs)

            _never_compiled(call)
            return call

        self._replace(torch.nn.Module, "__call__", make)
        script = getattr(torch.jit, "ScriptFunction", None)
        if script is not None and "__call__" in script.__dict__:

            def make_script(original: Any) -> Any:
                def call(function: Any, *args: Any, **kwargs: Any) -> Any:
                    stream = current()
                    if stream is None:
                        return original(function, *args, **kwargs)
                    return stream.named("torch.jit.ScriptFunction", functools.partial(original, function), args, kwargs)

                return call

            self._replace(script, "__call__", make_script)

    def _optimizers(self) -> None:
        current = self._current
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        except ImportError:
            # Before torch 2.1 there are no such hooks.
            self._optimizer_classes(current)
            return

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            stream = current()
            if stream is not None:
                stream.optimizer.begins(optimizer, args, kwargs, sys._getframe(1))

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            stream = current()
            if stream is not None:
                stream.optimizer.ends(optimizer)

        for handle in (register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)):
            self._undo.append(handle.remove)

    def _optimizer_classes(self, current: Callable[[], Any]) -> None:
        def make(original: Any) -> Any:
            @functools.wraps(original)
            def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                stream = current()
                if stream is None:
                    return original(optimizer, *args, **kwargs)
                stream.optimizer.begins(optimizer, (optimizer, *args), kwargs, sys._getframe())
                result = original(optimizer, *args, **kwargs)
                stream.optimizer.ends(optimizer)
                return result

            return step

        kinds = [torch.optim.Optimizer]
        for kind in kinds:
            kinds += [derived for derived in kind.__subclasses__() if derived not in kinds]
        for kind in kinds[1:]:
            self._replace(kind, "step", make)

    def _engine(self) -> None:
        variable = torch.autograd.Variable
        original = variable._execution_engine
        engine = _Engine(original, self._current)
        variable._execution_engine = engine

        def restore() -> None:
            if variable._execution_engine is engine:
                variable._execution_engine = original

        self._undo.append(restore)

    def _named(self, api: str, original: Any) -> Any:
        current = self._current

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            stream = None if compiling() else current()
            return original(*args, **kwargs) if stream is None else stream.named(api, original, args, kwargs)

        return call

    def _without_protocol(self) -> None:
        distributed = sys.modules.get("torch.distributed.distributed_c10d")
        replaced = {}
        for name in names.COLLECTIVES if distributed is not None else ():
            original = distributed.__dict__.get(name)
            if original is not None:
                replaced[id(original)] = (original, self._collective(name, original))
        original = None if distributed is None else distributed.__dict__.get("destroy_process_group")
        if original is not None:
            replaced[id(original)] = (original, self._destroyer(original))
        for api in names.WITHOUT_PROTOCOL:
            owner, _, name = api.rpartition(".")
            original = getattr(sys.modules.get(owner), name, None)
            if original is not None:
                replaced[id(original)] = (original, self._named(api, original))
        held = frozenset(replaced)
        changes: List[Tuple[types.ModuleType, str, Any, Any]] = []
        for module in list(sys.modules.values()):
            # Most modules hold none; isdisjoint says so without a step of Python for each of their names.
            if not isinstance(module, types.ModuleType) or held.isdisjoint(map(id, list(vars(module).values()))):
                continue
            for name, value in list(vars(module).items()):
                pair = replaced.get(id(value))
                if pair is not None:
                    setattr(module, name, pair[1])
                    changes.append((module, name, pair[0], pair[1]))

        def restore() -> None:
            for module, name, original, wrapper in changes:
                if vars(module).get(name) is wrapper:
                    setattr(module, name, original)

        self._undo.append(restore)

    def _collective(self, name: str, original: Any) -> Any:
        current = self._current

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            stream = None if compiling() else current()
            if stream is None:
                return original(*args, **kwargs)
            return stream.collective(f"torch.distributed.{name}", original, args, kwargs)

        return call

    def _destroyer(self, original: Any) -> Any:
        current = self._current

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            stream = current()
            if stream is None:
                return original(*args, **kwargs)
            stream.leave_mode()
            stream.session.held.wait()
            try:
                return original(*args, **kwargs)
            finally:
                enter(stream.mode)

        return call

    def _threads(self, new_thread: Callable[[], Any]) -> None:
        def make(original: Any) -> Any:
            @functools.wraps(original)
            def bootstrap(thread: Any) -> Any:
                # torch's own helpers (pin_memory, our writer) say so by their names.
                leave_thread: Optional[Callable[[], None]] = None
                if not thread.name.startswith("maca-accuracy"):
                    leave_thread = new_thread()
                try:
                    return original(thread)
                finally:
                    if leave_thread is not None:
                        leave_thread()

            return bootstrap

        self._replace(threading.Thread, "_bootstrap_inner", make)
