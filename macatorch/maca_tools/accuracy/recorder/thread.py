"""What the recorder knows of the running thread: whether it is inside an operator, and which calls led here."""

import os
import sys
import threading
from typing import Any, List

import torch

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_TORCH_MACHINERY = (
    "/torch/nn/modules/module.py",
    "/torch/overrides.py",
    "/torch/utils/_contextlib.py",
    "/torch/_tensor.py",
    "/torch/autograd/graph.py",
    "/torch/autograd/__init__.py",
    "/torch/optim/optimizer.py",
)
# What an operator is being recorded in: .inside, and .stream, the stream of the thread.
local = threading.local()


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


class Own:
    """What this thread does meanwhile is the recorder's own: torch calls nobody's functions and modes for it."""

    __slots__ = ("_inside", "_silent")

    def __enter__(self) -> None:
        self._inside = getattr(local, "inside", None)
        local.inside = ("own",)
        self._silent = torch._C.DisableTorchFunction()
        self._silent.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._silent.__exit__(*error)
        local.inside = self._inside
