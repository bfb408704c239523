"""The exchange of gradients of DistributedDataParallel, which its reducer does in C++, as one operator.

A hook on each parameter sees the gradient of this process before the reducer gets it; when backward has returned, the
parameters hold what came back. So nothing stands between the reducer and its process group, and the run stays as it is.
"""

import functools
import sys
from typing import Any, Dict

import torch

from maca_tools.accuracy import names
from maca_tools.accuracy.data import capture


def exchanges_gradients(module: Any) -> bool:
    """Whether the next backward over this module ends with an exchange."""
    distributed = sys.modules.get("torch.nn.parallel.distributed")
    kind = getattr(distributed, "DistributedDataParallel", None)
    return (
        kind is not None
        and isinstance(module, kind)
        and torch.is_grad_enabled()
        and bool(getattr(module, "require_backward_grad_sync", True))
    )


class Exchange:
    """From a forward pass to the end of the backward pass over it."""

    def __init__(self, stream: Any, module: Any) -> None:
        self._stream = stream
        self._run: Any = None
        self._before: Dict[str, Any] = {}
        self._params = {name: param for name, param in module.module.named_parameters() if param.requires_grad}
        self._handles = [
            param.register_hook(functools.partial(self._see, name, param)) for name, param in self._params.items()
        ]

    def _see(self, name: str, param: Any, grad: Any) -> None:
        session = self._stream.session
        if not session.running or session.options.record_level == 0:
            return
        with self._stream.unseen():
            if self._run is None:
                self._run = self._stream.begin(names.EXCHANGE)
            if self._run.take and session.options.record_input:
                # What the reducer sends is what has gathered in .grad, such as under no_sync before this pass.
                whole = grad if param.grad is None else param.grad + grad
                self._before[name] = capture.copy_values(whole)

    def ended(self) -> bool:
        """Whether the backward pass that has returned was the one over this module; its exchange is recorded then."""
        if self._run is None:
            return False
        for handle in self._handles:
            handle.remove()
        if self._run.take and self._stream.session.running:
            with self._stream.unseen():
                after = {name: param.grad for name, param in self._params.items() if param.grad is not None}
                self._stream.exchange_ends(self._run, self._before, after)
        return True
