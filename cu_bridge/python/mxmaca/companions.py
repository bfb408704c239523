"""Libraries of other packages' device code, compiled from the SDK's sources: `python -m mxmaca bitsandbytes`."""

import importlib.util
import os
import pathlib
import subprocess
import sys
from typing import List

import mxmaca
from mxmaca import toolkit

__all__ = ["build_bitsandbytes"]


def build_bitsandbytes(major: int) -> List[pathlib.Path]:
    """Compile our library of bitsandbytes' device code and put it in the place of the package's own ones.

    `major` is torch's CUDA release. The package takes the library of exactly that release, or the nearest one below
    it: so every one of the major release is replaced. Installing the package again brings back what was there. Needs
    g++, as cucc does.

    Raises:
        ValueError: bitsandbytes is not installed, has no library for this CUDA release, or the compiler failed.
    """
    spec = importlib.util.find_spec("bitsandbytes")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError("bitsandbytes is not installed: python -m pip install --no-deps bitsandbytes")
    package = pathlib.Path(next(iter(spec.submodule_search_locations)))
    found = sorted(package.glob(f"libbitsandbytes_cuda{major}?.so"))
    if not found or not (package / "libbitsandbytes_cpu.so").is_file():
        raise ValueError(f"{package} has no libraries for CUDA {major}")
    part = package / f".libbitsandbytes.{os.getpid()}.part"
    command = [
        *(sys.executable, "-m", "mxmaca.cucc", "-shared", "-O3", "-Xcompiler", "-fPIC", "-o", str(part)),
        str(mxmaca.root() / "device_code" / "bitsandbytes.cu"),
        # Functions on the CPU's tensors are asked of the same library: they stay upstream's.
        *(f"-L{package}", "-Xlinker", "--no-as-needed", "-l:libbitsandbytes_cpu.so", "-Xlinker", "-rpath=$ORIGIN"),
    ]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "CUDA_PATH": str(toolkit.tree(major))},
            check=False,
        )
        if done.returncode:
            raise ValueError("cucc failed:\n" + done.stdout.decode("utf-8", "replace"))
        # Never written in place: a process may have the old file mapped.
        for path in found:
            copy = path.with_suffix(".part")
            copy.write_bytes(part.read_bytes())
            copy.chmod(0o755)
            os.replace(str(copy), str(path))
    finally:
        if part.exists():
            part.unlink()
    return found
