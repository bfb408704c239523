"""Runs a module of random kernels and leaves what they wrote.

python run_random.py MODULE.py FILE DEVICE [kernel ...]
"""

import importlib.util
import pickle
import sys
from typing import Any, Dict

import numpy as np
import torch
from random_triton import ATOMICS, EXACT, LARGEST_INPUT, LENGTH, PROGRAMS, ROOM, SCRATCH, SLOTS, TYPES

N, M = 13, 2


def inputs(device: str) -> Dict[str, torch.Tensor]:
    """The same numbers in every run: integers of all sizes, floating-point numbers that are small integers."""
    generator = np.random.RandomState(5)
    found = {}
    for name in TYPES:
        if name in EXACT:
            numbers = generator.randint(-LARGEST_INPUT, LARGEST_INPUT + 1, LENGTH)
            found[name] = torch.from_numpy(numbers).to(getattr(torch, name)).to(device)
        else:
            limits = np.iinfo(name)
            numbers = generator.randint(limits.min, limits.max, LENGTH, dtype=name)
            # Half of them small: divisions and shifts of large numbers alone say little.
            numbers[::2] = generator.randint(0, 20, LENGTH // 2).astype(name)
            found[name] = torch.from_numpy(numbers.view(name.replace("u", ""))).to(device).view(getattr(torch, name))
    return found


def run(kernel: Any, device: str) -> Dict[str, np.ndarray]:
    """What a kernel writes, by the name of the place."""
    outputs = {name: torch.zeros(PROGRAMS * ROOM, dtype=getattr(torch, name), device=device) for name in TYPES}
    scratch = torch.zeros(PROGRAMS * SCRATCH, dtype=torch.int32, device=device)
    slots = torch.full((len(ATOMICS) * SLOTS,), 5, dtype=torch.int32, device=device)
    kernel[(PROGRAMS,)](*inputs(device).values(), *outputs.values(), scratch, slots, N, M)
    found = {**outputs, "scratch": scratch, "slots": slots}
    numbers = {name: value.cpu() for name, value in found.items()}
    return {name: (v.float() if v.dtype == torch.bfloat16 else v).numpy() for name, v in numbers.items()}


def main() -> None:
    """Write a dictionary: name of the kernel, and its outputs or the error as text."""
    path, target, device, *wanted = sys.argv[1:]
    specification = importlib.util.spec_from_file_location("kernels", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    results: Dict[str, Any] = {}
    for name in wanted or [name for name in vars(module) if name[0] == "k" and name[1:].isdigit()]:
        try:
            results[name] = run(getattr(module, name), device)
        except Exception as error:  # compared as well: both ways must refuse the same kernels
            results[name] = f"{type(error).__name__}: {error}"
    with open(target, "wb") as out:
        pickle.dump(results, out)


if __name__ == "__main__":
    main()
