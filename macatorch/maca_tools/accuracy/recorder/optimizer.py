"""The step of an optimizer as one operator: parameters, gradients and state before it, and after it."""

from typing import Any, Dict, Optional, Tuple

from maca_tools.accuracy.recorder.thread import Own, local


class Step:
    """The steps of one stream. Without a closure, what a step calls belongs to it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._running: Optional[Tuple[Any, Any]] = None

    def begins(self, optimizer: Any, args: Any, kwargs: Any, frame: Any) -> None:
        if getattr(local, "inside", None):
            return
        api = f"torch.optim.{type(optimizer).__name__}"
        run = self._stream.begin(api)
        if run.take and self._stream.session.options.record_level > 0:
            with Own():
                run.inputs = self._stream.taken(run, "input", _values(optimizer))
        closure = kwargs.get("closure") or (
            args[1] if len(args) > 1 else args[0] if args and callable(args[0]) else None
        )
        if run.take and self._stream.session.options.record_level == 0:
            with Own():
                self._stream.session.checker.before_step(self._stream, run, optimizer, closure)
        self._running = (optimizer, run)
        if closure is None:
            # A closure runs the model inside the step; without one, what the step calls belongs to the step.
            local.inside = ("optimizer", frame)

    def ends(self, optimizer: Any) -> None:
        if self._running is None or self._running[0] is not optimizer:
            return
        _, run = self._running
        self._running = None
        inside = getattr(local, "inside", None)
        if inside and inside[0] == "optimizer":
            local.inside = None
        if run.take and self._stream.session.options.record_level > 0:
            with Own():
                values = _values(optimizer)
                values.pop("grads")
                self._stream.emit(run, run.inputs, self._stream.taken(run, "output", values))
        elif run.reference is not None:
            with Own():
                self._stream.session.checker.compare_step(self._stream, run, optimizer)

    def give_up(self) -> None:
        """The step that was begun has raised."""
        local.inside = self._running = None


def _values(optimizer: Any) -> Dict[str, Any]:
    params = [param for group in optimizer.param_groups for param in group["params"]]
    return {
        "params": params,
        "grads": [param.grad for param in params],
        "state": [dict(optimizer.state[param]) if param in optimizer.state else {} for param in params],
        "groups": [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups],
    }
