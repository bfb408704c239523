"""What lets programs without torch see the device: `python -m mxmaca env` prints it, `mxmaca-run COMMAND` sets it.

Monitors, numba and nvidia-ml-py ask for `libcuda.so.1` and `libnvidia-ml.so.1` by bare names, or call `nvidia-smi`.
`import torch` loads the SDK's libraries first; without it the loader has to be told where they are.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import shlex
import sys
from typing import Dict, List, Mapping, Optional, Sequence

import mxmaca
from mxmaca import companions, toolkit

__all__ = ["cuda_majors", "default_major", "main", "run", "variables"]


def cuda_majors() -> List[int]:
    """Return the major releases of CUDA that the SDK has libraries of, in order."""
    folders = (mxmaca.root() / "lib").glob("cuda*")
    return sorted(int(folder.name[4:]) for folder in folders if folder.name[4:].isdigit())


def default_major() -> int:
    """Return the CUDA release that the installed torch was built with; without torch, the newest of the SDK.

    torch is not imported. A torch without CUDA, or for a release that the SDK lacks, counts as none.

    Raises:
        ValueError: the SDK has no CUDA libraries at all.
    """
    majors = cuda_majors()
    if not majors:
        raise ValueError(f"mxmaca has no CUDA libraries in {mxmaca.root() / 'lib'}")
    spec = importlib.util.find_spec("torch")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        try:
            text = (pathlib.Path(folder) / "version.py").read_text(encoding="utf-8")
        except OSError:
            continue
        found = re.search(r"^cuda\b[^=]*=\s*['\"](\d+)\.", text, flags=re.MULTILINE)
        if found and int(found.group(1)) in majors:
            return int(found.group(1))
    return majors[-1]


def variables(cuda_major: int, environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables that make programs in `environment` find the SDK of that CUDA release first.

    Raises:
        ValueError: the SDK has nothing for that release.
    """
    first = {
        "LD_LIBRARY_PATH": [str(mxmaca.lib_dir(cuda_major))],
        # Packages that compile kernels while they run (PyCUDA) call nvcc by its bare name.
        "PATH": [str(mxmaca.root() / "tools" / "nvidia"), str(toolkit.tree(cuda_major) / "bin")],
    }
    result = {}
    for name, folders in first.items():
        rest = [entry for entry in environment.get(name, "").split(os.pathsep) if entry and entry not in folders]
        result[name] = os.pathsep.join(folders + rest)
    home = str(toolkit.tree(cuda_major))
    result.update(CUDA_HOME=home, CUDA_PATH=home)
    result["NVTX_INJECTION64_PATH"] = environment.get(
        "NVTX_INJECTION64_PATH", str(mxmaca.root() / "lib" / "libmcnvtx.so")
    )
    return result


def _majors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cuda", type=int, choices=cuda_majors(), help="major CUDA release (default: that of the installed torch)"
    )


def _chosen(given: Optional[int]) -> Dict[str, str]:
    return variables(default_major() if given is None else given, os.environ)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """`python -m mxmaca`. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m mxmaca", description="the MXMACA SDK")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    _majors(commands.add_parser("env", help="print the variables that let programs without torch see the device"))
    commands.add_parser("bitsandbytes", help="compile the device code of the installed package bitsandbytes")
    options = parser.parse_args(arguments)
    try:
        if options.command == "bitsandbytes":
            print(*companions.build_bitsandbytes(default_major()), sep="\n")
            return 0
        found = _chosen(options.cuda)
    except ValueError as error:
        print(f"mxmaca: {error}", file=sys.stderr)
        return 1
    for name, value in sorted(found.items()):
        print(f"export {name}={shlex.quote(value)}")
    return 0


def run(arguments: Optional[Sequence[str]] = None) -> int:
    """`mxmaca-run COMMAND [ARGUMENT …]`: become the command, with those variables set.

    Returns an exit status only where that fails, as a shell would: 127 for a command that is not there, 126 for one
    that cannot be run.
    """
    parser = argparse.ArgumentParser(
        prog="mxmaca-run", description="run a command that sees the simulated MXMACA devices as CUDA devices"
    )
    _majors(parser)
    parser.add_argument("words", metavar="COMMAND", nargs=argparse.REMAINDER, help="the command and its arguments")
    options = parser.parse_args(arguments)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        parser.error("no command is given")
    try:
        environment = {**os.environ, **_chosen(options.cuda)}
        os.execvpe(words[0], words, environment)
    except ValueError as error:
        print(f"mxmaca-run: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"mxmaca-run: {words[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
