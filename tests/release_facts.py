"""What tests want that not every release has: the rows of release_facts.toml. conftest.py makes this module known."""

import importlib.metadata
import sys
from pathlib import Path
from typing import Any, ContextManager, Dict, Tuple

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROWS: Dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def numbers(version: str) -> Tuple[int, ...]:
    """Major and minor number."""
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2])


def installed(since: str, package: str = "torch") -> bool:
    """Whether the package is installed, in this release or a later one."""
    try:
        return numbers(importlib.metadata.version(package)) >= numbers(since)
    except importlib.metadata.PackageNotFoundError:
        return False


def has(name: str) -> bool:
    """Whether the installed release has what the row is about."""
    row = ROWS[name]
    return installed(row["since"], row.get("package", "torch"))


def wants(name: str) -> Any:
    """Marks a test that is left out where the release does not have it."""
    return pytest.mark.skipif(not has(name), reason=ROWS[name]["reason"])


def need(name: str) -> None:
    """Leaves the running test out where the release does not have it."""
    if not has(name):
        pytest.skip(ROWS[name]["reason"])


def need_for_module(name: str) -> None:
    """Leaves the tests of a module out where the release does not have what the module imports."""
    if not has(name):
        pytest.skip(ROWS[name]["reason"], allow_module_level=True)


def cpp_standard() -> str:
    """The compiler's option for programs that include the installed release's headers."""
    return "-std=c++20" if has("headers_in_cpp20") else "-std=c++17"


def grad_scaler(**options: Any) -> Any:
    """Of the simulated device. Up to torch 2.2 it has its older name alone, torch.cuda.amp.GradScaler."""
    import torch

    of_any_device = getattr(torch.amp, "GradScaler", None)
    return of_any_device("cuda", **options) if of_any_device else torch.cuda.amp.GradScaler(**options)


def attention_by(*backends: str) -> ContextManager[Any]:
    """A context in which these backends alone compute attention, by their names in SDPBackend."""
    if has("attention_backends_by_name"):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        return sdpa_kernel([getattr(SDPBackend, name) for name in backends])
    from torch.backends.cuda import sdp_kernel

    switches = {"enable_flash": "FLASH_ATTENTION", "enable_math": "MATH", "enable_mem_efficient": "EFFICIENT_ATTENTION"}
    return sdp_kernel(**{switch: name in backends for switch, name in switches.items()})
