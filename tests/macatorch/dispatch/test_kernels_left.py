"""Every CUDA entry of the release has a kernel that runs here, or a reason in kernels_left.toml.

`python tests/macatorch/test_kernels_left.py` lists those that are left to upstream's kernels, with reasons.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
import torch

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = ("CUDA", "SparseCUDA", "SparseCsrCUDA", "QuantizedCUDA", "NestedTensorCUDA")
CLASSES: Dict[str, Any] = tomllib.loads((Path(__file__).parent / "kernels_left.toml").read_text())
Entry = Tuple[str, str]  # dispatch key, operator


@functools.lru_cache(maxsize=None)
def upstreams_kernels() -> List[Entry]:
    """Entries whose active kernel was registered by upstream's own files, in a process that has loaded nothing else."""
    done = subprocess.run([sys.executable, __file__, "--entries"], stdout=subprocess.PIPE, text=True, check=True)
    return [(key, name) for key, name in json.loads(done.stdout)]


def registered_by_upstream() -> List[Entry]:
    found = []
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        dump = torch._C._dispatch_dump(name)
        if not name.startswith("c10d::") and re.search(r"^BackendSelect: registered at macatorch", dump, re.M):
            continue  # defined after our library was loaded: its CUDA kernels are tried, and given up (Foreign.cpp)
        for key in KEYS:
            if not torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
                continue
            active = re.search(rf"^{key}: registered at (\S+)", dump, re.M)
            if active and active.group(1).startswith(("/pytorch", "aten", "/__w", "../")):
                found.append((key, name))
    return found


@functools.lru_cache(maxsize=None)
def composed() -> List[Entry]:
    """Entries for which upstream names one function for CPU and CUDA: host code over operators of the members."""
    import torchgen
    from torchgen.gen import parse_native_yaml
    from torchgen.model import DispatchKey

    native = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    entries = []
    for layout in ("Sparse", "SparseCsr", "NestedTensor"):
        on_cpu, on_cuda = (parsed.backend_indices[DispatchKey.parse(layout + backend)] for backend in ("CPU", "CUDA"))
        for f in parsed.native_functions:
            cpu, cuda = on_cpu.get_kernel(f), on_cuda.get_kernel(f)
            if cpu is not None and cuda is not None and cpu.kernel == cuda.kernel:
                entries.append((f"{layout}CUDA", f"aten::{f.func.name}"))
    return entries


def classified(entry: Entry, same: List[Entry]) -> str:
    """The class of kernels_left.toml that an entry belongs to, or the empty string."""
    if entry in same:
        return "composed"
    key, name = entry
    for kind, content in CLASSES.items():
        if key in content.get("keys", KEYS) and any(re.fullmatch(pattern, name) for pattern in content["names"]):
            return kind
    return ""


def test_no_operator_is_left_to_launch_missing_code() -> None:
    same = composed()
    entries = upstreams_kernels()
    assert len(entries) > 100
    assert [entry for entry in entries if not classified(entry, same)] == []


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if CLASSES[kind].get("since", "") in ("", "2.5")])
def test_every_reason_is_needed(kind: str) -> None:
    import release_facts  # this file is a program too, which has no conftest.py

    if not release_facts.installed(CLASSES[kind].get("since", "0.0")):
        pytest.skip("came with a later release")
    same = composed()
    kinds = {classified(entry, same) for entry in upstreams_kernels()}
    assert kind in kinds and CLASSES[kind]["sentence"]


def test_no_kernel_of_macatorch_hides_another() -> None:
    """The generated ones may be replaced by hand, once: of two files that take one entry the first is lost."""
    hidden = []
    ours = 0
    for name in torch._C._dispatch_get_all_op_names():
        registered = re.findall(r"^(\w+)(?: \(inactive\))?: registered at (\S+)", torch._C._dispatch_dump(name), re.M)
        by_hand = [key for key, place in registered if "macatorch/csrc/" in place]
        ours += len(by_hand)
        hidden += [(name, key) for key in set(by_hand) if by_hand.count(key) > 1]
    assert ours > 100, "none of macatorch's registrations was recognised"
    assert not hidden


def main() -> int:
    if "--entries" in sys.argv:
        print(json.dumps(registered_by_upstream()))
        return 0
    same = composed()
    unknown = 0
    for entry in upstreams_kernels():
        kind = classified(entry, same)
        unknown += not kind
        print(f"{entry[0]:17} {entry[1]:60} {kind or 'LAUNCHES MISSING CODE?'}")
    print(f"{unknown} without a reason")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
