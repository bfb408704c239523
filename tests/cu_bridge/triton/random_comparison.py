"""Random kernels on the device beside the same in Triton's interpreter."""

import os
import pathlib
import pickle
import re
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple

import numpy as np
import triton
from random_triton import module

HERE = pathlib.Path(__file__).resolve().parent


class Comparison(NamedTuple):
    """How many kernels ran both ways, and a line for each that differs."""

    compared: int
    wrong: List[str]


def results(path: pathlib.Path, device: str, seconds: float) -> Dict[str, Any]:
    """What each kernel of a module leaves on a device, in a process of its own."""
    target = path.with_suffix(f".{device}")
    environment = dict(os.environ, TRITON_INTERPRET="1" if device == "cpu" else "0")
    command = [sys.executable, str(HERE / "run_random.py"), str(path), str(target), device]
    subprocess.run(command, env=environment, check=True, timeout=seconds)
    return dict(pickle.loads(target.read_bytes()))


def comparable(text: str) -> List[str]:
    """The names of a module's kernels that the interpreter of the release computes as a GPU does.

    Triton 3.2 has no `tl.gather`, and its interpreter takes a mask of one element that is false for no mask.
    """
    kernels = re.findall(r"^def (k\d+)\((.*?)(?=^@triton|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    lacks = re.compile(r"tl\.gather\(|mask=\(tl\.arange\(0, 1\) |mask=tl\.broadcast_to\([^\n]*?, \[1(, 1)*\]\)")
    older = not hasattr(triton, "knobs")
    return [name for name, body in kernels if not (older and lacks.search(body))]


def compare(seed: int, count: int, folder: pathlib.Path) -> Comparison:
    """Run so many kernels of a seed both ways."""
    path = folder / "kernels.py"
    text = module(seed, count)
    path.write_text(text)
    fit = comparable(text)
    compiled, interpreted = (results(path, device, 120 + 20 * count) for device in ("cuda", "cpu"))
    compared, wrong = 0, []
    for name, expected in interpreted.items():
        got = compiled[name]
        if name not in fit or isinstance(expected, str):
            # The interpreter refuses some that run on a GPU: literals that its integers do not hold.
            continue
        compared += 1
        if isinstance(got, str):
            wrong.append(f"{name}: {got[-300:]}")
            continue
        for place in expected:
            if not np.array_equal(got[place], expected[place]):
                at = int(np.flatnonzero(got[place] != expected[place])[0])
                wrong.append(f"{name}: {place}[{at}] is {got[place][at]} and not {expected[place][at]}")
                break
    return Comparison(compared, wrong)
