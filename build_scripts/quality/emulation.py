"""Running what is built for another processor: qemu's emulation of single programs, and a Debian system below it.

The system is a folder of the cache with Debian's packages unpacked, as this machine's apt finds them for the other
architecture: the C library, the C++ runtime and Python. Nothing is installed in it and nothing of it is run as root. A
program that the emulated one starts runs only where the kernel knows such programs (binfmt_misc), so tests start none.
"""

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Dict, List, Sequence

from .. import cache, children
from ..errors import FactoryError
from ..factory import dependencies
from ..platforms import Architecture
from ..progress import step
from ..releases import Table

# What Debian calls the architectures.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
PYTHON = "3.11"
PACKAGES = ("libc6", "libstdc++6", "libgomp1", f"python{PYTHON}", f"libpython{PYTHON}")
FORMAT = 2
# What Linux says of a processor that is a small Arm server's (Neoverse N1). The emulator shows the machine's own file,
# of another processor, and the library that upstream asks about processors (cpuinfo) ends the process on that.
CPUINFO = """processor\t: {number}
BogoMIPS\t: 50.00
Features\t: fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""
SPACE = 300_000_000


def emulator(architecture: Architecture) -> str:
    """The program that runs programs of another processor."""
    for name in (f"qemu-{architecture.name}-static", f"qemu-{architecture.name}"):
        found = shutil.which(name)
        if found:
            return found
    raise FactoryError(
        f"No emulator for {architecture.name}: qemu-{architecture.name}-static is not on PATH.",
        "Install one: apt install qemu-user-static (Debian, Ubuntu).",
    )


def system(architecture: Architecture) -> Path:
    """The folder with a Debian system of that architecture, from the cache or made now.

    Raises FactoryError where this machine has no apt, or apt's archive no such packages.
    """
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise FactoryError(f"{program} is missing: a system for {architecture.name} comes from Debian's archive.")
    key = hashlib.sha256(repr((PACKAGES, FORMAT, os.cpu_count())).encode()).hexdigest()[:16]
    final = cache.folder("systems") / f"{architecture.name}-{key}"
    with cache.lock(f"system-{architecture.name}"):
        if cache.whole(final, may_grow=True):
            return final
        with cache.work_folder(f"system-{architecture.name}") as work:
            cache.require_space(work, SPACE, f"A system for {architecture.name}")
            with step(f"Unpacking Debian's Python {PYTHON} for {architecture.name}"):
                made = work / "root"
                made.mkdir()
                for package in _packages(architecture, work / "apt"):
                    _run(["dpkg-deb", "--extract", str(package), str(made)])
                # A file below the emulator's system is opened in the place of the machine's.
                (made / "proc").mkdir()
                described = "".join(CPUINFO.format(number=number) for number in range(os.cpu_count() or 1))
                (made / "proc" / "cpuinfo").write_text(described, encoding="ascii")
            cache.keep(made, final)
    return final


def _packages(architecture: Architecture, folder: Path) -> List[Path]:
    """Fetch the packages, and what they need, with an apt that knows of that architecture alone."""
    status, archives = folder / "status", folder / "cache" / "archives"
    for path in (folder / "state" / "lists" / "partial", archives / "partial"):
        path.mkdir(parents=True)
    status.write_text("")
    settings = {
        "APT::Architecture": DEBIAN[architecture.name],
        "APT::Architectures": DEBIAN[architecture.name],
        "Dir::State": folder / "state",
        "Dir::State::status": status,
        "Dir::Cache": folder / "cache",
        # The folders are ours alone.
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "--quiet", "--assume-yes"]
    apt += [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    _run([*apt, "update"])
    _run([*apt, "install", "--download-only", "--no-install-recommends", *PACKAGES])
    return sorted(archives.glob("*.deb"))


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = children.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise FactoryError(
            f"{command[0]} failed: " + " ".join(lines[-3:]), "Check the network and this machine's apt sources."
        )


def command(architecture: Architecture, program: str, *arguments: str) -> List[str]:
    """The command that runs a program: one of the system (``/usr/bin/…``), or one that was built."""
    root = system(architecture)
    inside = root / program.lstrip("/")
    path = inside if program.startswith("/usr/") and inside.exists() else Path(program)
    return [emulator(architecture), "-L", str(root), str(path), *arguments]


def python(architecture: Architecture, *arguments: str) -> List[str]:
    """The command that runs the system's Python. ``-S``: this machine's own packages are not its."""
    return command(architecture, f"/usr/bin/python{PYTHON}", "-S", *arguments)


def site(architecture: Architecture, wheels: Sequence[Path], table: Table) -> Path:
    """A folder with these wheels and all that they require, unpacked, from the cache or made now.

    It is what pip would leave in site-packages, without scripts: enough to import them.
    """
    digests = [cache.sha256_of(wheel) for wheel in wheels]
    key = hashlib.sha256(repr((sorted(digests), PYTHON, FORMAT)).encode()).hexdigest()[:16]
    final = cache.folder("sites") / f"{architecture.name}-{key}"
    with cache.lock(f"site-{architecture.name}"):
        if cache.whole(final, may_grow=True):
            return final
        ours = {"torch", table.sdk.name, *(companion.name for companion in table.companions)}
        words = {word for wheel in wheels for word in dependencies.requirements(wheel, PYTHON, architecture.name, ours)}
        with cache.work_folder(f"site-{architecture.name}") as work, step(f"Unpacking wheels for {architecture.name}"):
            (work / "wheels").mkdir()
            dependencies.download(sorted({*words, "numpy"}), PYTHON, architecture.name, work / "wheels")
            made = work / "site"
            for wheel in [*wheels, *sorted((work / "wheels").glob("*.whl"))]:
                with zipfile.ZipFile(wheel) as archive:
                    cache.require_space(made.parent, sum(info.file_size for info in archive.infolist()), "A site")
                    archive.extractall(made)
            cache.keep(made, final)
        for old in final.parent.glob(f"{architecture.name}-{'?' * len(key)}"):
            if old != final:
                cache.drop(old)
    return final


def variables(packages: Path, state: Path) -> Dict[str, str]:
    """The environment of an emulated Python that finds these packages and has the devices to itself."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MACA_", "CUDA_", "PYTHON", "LD_"))}
    return {**kept, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1", "MACA_STATE_DIR": str(state)}
