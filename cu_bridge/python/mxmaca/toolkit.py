"""The toolkit trees of the SDK: what CUDA_HOME stands for, one for each CUDA release."""

import os
import pathlib
import warnings
from typing import Optional, Tuple

import mxmaca

__all__ = ["cuda_home", "tree"]

# By what a user names a toolkit, the first that is set counts.
VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUCC_PATH")


def tree(cuda_major: int) -> pathlib.Path:
    """Return the folder that serves as CUDA_HOME for that major release (12 or 13): bin, include, lib64.

    Raises:
        ValueError: the SDK has no toolkit of that release.
    """
    path = mxmaca.root() / f"cuda{cuda_major}"
    if not (path / "bin" / "nvcc").is_file():
        raise ValueError(f"mxmaca has no toolkit for CUDA {cuda_major} in {mxmaca.root()}")
    return path


def cuda_home(cuda: str) -> str:
    """Return the CUDA_HOME for a torch of that CUDA release, such as "13.0".

    The user's CUDA_HOME, CUDA_PATH or CUCC_PATH chooses which copy of the SDK where it points into one. Any other
    toolkit, named by a variable or found on PATH, makes code that the device cannot run: it is passed over, with a
    warning where a variable named it.

    Raises:
        ValueError: the SDK has no toolkit of that release.
    """
    major = int(cuda.split(".")[0])
    name, chosen = _chosen()
    if chosen is None:
        return str(tree(major))
    root = _root_around(chosen)
    if root is not None and (root / f"cuda{major}" / "bin" / "nvcc").is_file():
        return str(root / f"cuda{major}")
    home = str(tree(major))
    warnings.warn(
        f"{name}={chosen} holds no toolkit of the MXMACA SDK for CUDA {major}. What another compiler makes cannot run "
        f"on this device, so {home} is used. Unset {name}, or set it to that folder.",
        stacklevel=3,
    )
    return home


def _chosen() -> Tuple[str, Optional[pathlib.Path]]:
    for name in VARIABLES:
        value = os.environ.get(name)
        if value:
            return name, pathlib.Path(value)
    return "", None


def _root_around(path: pathlib.Path) -> Optional[pathlib.Path]:
    """The SDK of which the folder is a part: itself, a toolkit tree, or tools/cu-bridge."""
    folder = path.resolve()
    for candidate in [folder, *list(folder.parents)[:2]]:
        if (candidate / "lib" / "libmcruntime.so").is_file():
            return candidate
    return None
