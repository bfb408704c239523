"""Runs a script on one device under the recorder; bisect starts it, once for each device and step.

A script written for CUDA names "cuda" itself. Where another device is asked for, every device argument that says cuda,
and `.cuda()`, is redirected to it. A script can also read MACA_ACCURACY_DEVICE, or take {device} as an argument.
"""

import atexit
import json
import os
import random
import runpy
import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from maca_tools import accuracy


def _other(value: Any, device: Any) -> Any:
    if isinstance(value, torch.device):
        return device if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return device
    return value


class Redirect(TorchFunctionMode):  # type: ignore[misc]
    """Sends what asks for a CUDA device to another one."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = torch.device(device)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0].to(self._device)
        if "device" in kwargs:
            kwargs["device"] = _other(kwargs["device"], self._device)
        if func is torch.Tensor.to:
            args = tuple(_other(value, self._device) for value in args)
        return func(*args, **kwargs)


def _redirect_classes(device: str) -> None:
    """What takes a device without being a function of torch."""
    target = torch.device(device)
    torch.nn.Module.cuda = lambda module, device=None: module.to(target)
    autocast = torch.autocast
    original = autocast.__init__

    def initialise(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        original(self, target.type if device_type == "cuda" else device_type, *args, **kwargs)

    autocast.__init__ = initialise


def main() -> None:
    settings = json.loads(sys.argv[1])
    script, device = settings["script"], settings["device"]
    sys.argv = [script] + [argument.replace("{device}", device) for argument in settings["arguments"]]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    os.environ["MACA_ACCURACY_DEVICE"] = device
    random.seed(settings["seed"])
    torch.manual_seed(settings["seed"])
    redirect = None
    if not device.startswith("cuda"):
        _redirect_classes(device)
        redirect = Redirect(device)
        redirect.__enter__()
    try:
        with accuracy.record(**settings["record"]):
            runpy.run_path(script, run_name="__main__")
    finally:
        if redirect is not None:
            redirect.__exit__(None, None, None)


if __name__ == "__main__":
    main()
    # The record is on the disk. What the end of the process may still do to the exit code (threads of autograd's engine
    # that are not done with Python) says nothing about the run.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
