"""The MXMACA SDK: where the simulated device's libraries and headers are."""

import os
import pathlib

__all__ = ["__version__", "include_dir", "lib_dir", "root"]


def root() -> pathlib.Path:
    """Return the folder of the SDK: `MACA_PATH` if it is set to one, else this package."""
    chosen = os.environ.get("MACA_PATH")
    if chosen:
        path = pathlib.Path(chosen)
        if (path / "lib" / "libmcruntime.so").exists():
            return path
    return pathlib.Path(__file__).resolve().parent


def lib_dir(cuda_major: int) -> pathlib.Path:
    """Return the folder of the CUDA libraries of that major release (12 or 13).

    Raises:
        ValueError: the SDK has no libraries of that release.
    """
    path = root() / "lib" / f"cuda{cuda_major}"
    if not path.is_dir():
        raise ValueError(f"mxmaca has no libraries for CUDA {cuda_major} in {path.parent}")
    return path


def include_dir() -> pathlib.Path:
    """Return the folder of the C and C++ headers."""
    return root() / "include"


__version__ = (pathlib.Path(__file__).resolve().parent / "VERSION").read_text(encoding="utf-8").strip()
