"""Runs a script on one device under the recorder, once for each line that bisect sends.

A script written for CUDA names "cuda" itself. Where another device is asked for, every device argument that says cuda,
and `.cuda()`, is redirected to it. A script can also read MACA_ACCURACY_DEVICE, or take {device} as an argument.

Note [A process a run]
torch is imported once; each run is a fork of that process, which has touched no device and started no thread. So runs
know nothing of each other and do not wait for the import. Where there is no fork, each run is a process of its own.
"""

import atexit
import gc
import json
import os
import random
import runpy
import sys
import traceback
from typing import Any, Dict

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


def _record(settings: Dict[str, Any]) -> None:
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
            try:
                runpy.run_path(script, run_name="__main__")
            except SystemExit as error:
                # A script that ends by sys.exit(0) has run to its end.
                if error.code not in (None, 0):
                    raise
    finally:
        if redirect is not None:
            redirect.__exit__(None, None, None)


def _run(settings: Dict[str, Any]) -> int:
    """The run's exit code, in a process that ends with it."""
    log = os.open(settings["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # What comes from bisect is not the script's to read.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = 0
    try:
        _record(settings)
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def main() -> None:
    """One line of settings in, one line with an exit code out, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # What is here already stays: a collection in a child would touch, and so copy, every page of it.
    gc.freeze()
    for line in sys.stdin:
        settings = json.loads(line)
        if not hasattr(os, "fork"):
            answers.write(f"{_run(settings)}\n")
            answers.flush()
            return
        child = os.fork()
        if child == 0:
            answers.close()
            os._exit(_run(settings))
        _, status = os.waitpid(child, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        answers.write(f"{code}\n")
        answers.flush()


if __name__ == "__main__":
    main()
