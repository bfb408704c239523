"""Builds of extensions, once for each state of everything that goes in, outside the checkout."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import torch

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("MACATORCH_CACHE") or Path.home() / ".cache" / "macatorch") / "extensions"


def sdk() -> Path:
    import mxmaca

    return mxmaca.root()


def digest(*roots: Path) -> str:
    """Of the files below the roots, the SDK's headers and compiler, and torch."""
    total = hashlib.sha256(f"{torch.__version__} {sys.version}".encode())
    for root in [*roots, sdk() / "include", sdk() / "bin", sdk() / "cucc", sdk() / "lib"]:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and path.suffix != ".pyc":
                total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:20]


def environment() -> Dict[str, str]:
    """What a user has who knows of no toolkit."""
    named = ("CUDA_HOME", "CUDA_PATH", "CUCC_PATH", "TORCH_CUDA_ARCH_LIST", "CUDACXX", "CUDAHOSTCXX")
    return {key: value for key, value in os.environ.items() if key not in named}


def run(command: List[str], folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A command's result, both its streams together."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def build_folder(name: str, *sources: Path) -> Path:
    """The folder of a build, made when it is new; a build writes `.complete` there when it is done."""
    folder = CACHE / f"{name}-{digest(*sources)}"
    if not (folder / ".complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        others = sorted(CACHE.glob(f"{name}-{'?' * 20}"), key=lambda path: path.stat().st_mtime)
        for old in others[:-4]:
            shutil.rmtree(old, ignore_errors=True)
    return folder
