"""The Python side of macatorch: makes the MXMACA SDK the first that a process knows of every CUDA library.

torch's own libraries find the SDK through their RPATH. That alone is not enough: some libraries are opened later and
by bare name (``libcuda.so.1``, ``libnvidia-ml.so.1``), and NVIDIA's may lie in the same environment. glibc gives a
library that is already loaded to whoever asks for its SONAME, so whatever is loaded first stays.
"""

import ctypes
import os
import re
from typing import Optional

from .engine_threads import settle_at_exit

__all__ = ["preload"]

# A run-time name carries its major version; the bare .so names serve linkers, but for one that Triton's profiler opens.
_RUNTIME_NAME = re.compile(r"lib.+\.so\.\d+|libcupti\.so")


def preload() -> None:
    """Load the SDK's libraries for the CUDA release that this torch was built with.

    ``torch/__init__.py`` calls it before it loads anything native; a further call does nothing new.

    Raises:
        ImportError: the SDK is missing, of another version or broken, or one of NVIDIA's libraries is loaded
            already. The message names the way out.
    """
    from torch.version import cuda, maca

    settle_at_exit()
    root = _sdk_root(maca)
    directory = os.path.join(root, "lib", "cuda" + str(cuda).split(".")[0])
    try:
        names = sorted(filter(_RUNTIME_NAME.fullmatch, os.listdir(directory)))
    except OSError:
        names = []
    if not names:
        raise ImportError(
            f"The MXMACA SDK in {root} has no libraries for CUDA {cuda} (looked in {directory}). {_way_out(maca)}"
        )
    for name in names:
        _load_first(directory, name, maca)
    # NVTX looks for its tool by this variable, in each library that was compiled with its headers. Another tool of the
    # user's is left alone. What a child process loads for it declines where the SDK's runtime is not there.
    os.environ.setdefault("NVTX_INJECTION64_PATH", os.path.join(root, "lib", "libmcnvtx.so"))
    # Later releases of Triton's profiler look in one folder alone.
    os.environ.setdefault("TRITON_CUPTI_LIB_PATH", directory)


def _load_first(directory: str, name: str, version: str) -> None:
    path = os.path.join(directory, name)
    try:
        ours = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"The MXMACA SDK is damaged: {error}. {_way_out(version)}") from error
    # One handle per loaded library: another one under this name means that another library was here before ours.
    first = ctypes.CDLL(name, mode=os.RTLD_NOLOAD)._handle
    if first != ours._handle and first != _handle_in_toolkit(directory, name):
        raise ImportError(
            f"Another {name} than the MXMACA SDK's is already loaded in this process{_where(name, path)}. "
            "Import torch before the package that loads it."
        )


def _handle_in_toolkit(directory: str, name: str) -> Optional[int]:
    """The handle of the copy in the SDK's toolkit tree, where a program that was linked against it has loaded that."""
    toolkit = os.path.join(directory, "..", "..", os.path.basename(directory), "lib64", name)
    try:
        return ctypes.CDLL(toolkit, mode=os.RTLD_NOLOAD)._handle
    except OSError:
        return None


def _where(name: str, ours: str) -> str:
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    # A library's file may carry its full version: libcudart.so.12.4.127.
    foreign = sorted(p for p in paths if os.path.basename(p).startswith(name) and not os.path.samefile(p, ours))
    return " (" + ", ".join(foreign) + ")" if foreign else ""


def _sdk_root(version: str) -> str:
    """The folder of the SDK: MACA_PATH where it is set, the installed package ``mxmaca`` otherwise."""
    chosen = os.environ.get("MACA_PATH")
    root = chosen or _installed_sdk()
    if root is None:
        raise ImportError("torch needs the MXMACA SDK, which is not installed. " + _way_out(version))
    found = _version_of(root)
    if found is None:
        origin = "MACA_PATH is {0}, but no MXMACA SDK is there" if chosen else "The MXMACA SDK in {0} is damaged"
        raise ImportError(f"{origin.format(root)}. {_way_out(version)}")
    if found != version:
        raise ImportError(
            f"This torch was built for MXMACA SDK {version}, but the one in {root} is {found}. {_way_out(version)}"
        )
    return root


def _installed_sdk() -> Optional[str]:
    # Late: who sets MACA_PATH pays nothing for it.
    import importlib.util

    spec = importlib.util.find_spec("mxmaca")
    locations = spec.submodule_search_locations if spec else None
    return next(iter(locations), None) if locations else None


def _version_of(root: str) -> Optional[str]:
    try:
        with open(os.path.join(root, "VERSION")) as file:
            return file.read().strip()
    except OSError:
        return None


def _way_out(version: str) -> str:
    remedy = f"Install the SDK wheel that came with torch (python -m pip install mxmaca=={version})"
    if os.environ.get("MACA_PATH"):
        return remedy + f" and unset MACA_PATH, or point MACA_PATH at a copy of version {version}."
    return remedy + ", or point MACA_PATH at a copy of it."
