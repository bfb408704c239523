"""Upstream's files: fetched through pip as the user has configured it, kept by their sha256."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, List, Optional, Union

from .. import cache, children, python_names
from ..errors import FactoryError
from ..progress import note, step
from ..releases import SourceDistribution, UpstreamWheel

UpstreamFile = Union[UpstreamWheel, SourceDistribution]

# What pip writes when it cannot reach its index, as opposed to what it writes when the index has no such file.
NETWORK_SIGNS = (
    "Connection",
    "connection",
    "timed out",
    "Name or service",
    "name resolution",
    "Network is unreachable",
    "ProxyError",
)


def path_in_cache(wheel: UpstreamFile) -> Path:
    return cache.folder("upstream", wheel.sha256) / wheel.file


def obtain(wheel: UpstreamWheel, given: Optional[Path] = None) -> Path:
    """The wheel on disk, with the right sha256: from the cache, from ``given`` (a file or a folder), or through pip."""
    return obtain_file(wheel, given, lambda work: _download(wheel, work))


def obtain_file(wheel: UpstreamFile, given: Optional[Path], download: Callable[[Path], Path]) -> Path:
    """The same for any file of a table. ``download`` leaves it in a folder and returns its path."""
    name = f"upstream-{wheel.sha256[:16]}"
    with cache.lock(name):
        kept = path_in_cache(wheel)
        if kept.exists():
            with step(f"Checking {wheel.file} in the cache"):
                if cache.sha256_of(kept) == wheel.sha256:
                    return kept
            note(f"{kept} is damaged; it is removed and fetched again.")
            kept.unlink()
        with cache.work_folder(name) as work:
            cache.require_space(work, wheel.size, f"Fetching {wheel.file}")
            if given is not None:
                arrived = _copy(wheel, given, work)
            else:
                arrived = download(work)
            with step(f"Checking the sha256 of {wheel.file}"):
                _check(wheel, arrived, given is not None)
            cache.publish(arrived, kept)
        return kept


def _check(wheel: UpstreamFile, path: Path, given: bool) -> None:
    size = path.stat().st_size
    found = cache.sha256_of(path)
    if found == wheel.sha256:
        return
    shape = f"It has {size} bytes instead of {wheel.size}. " if size != wheel.size else ""
    raise FactoryError(
        f"{wheel.file} is not the file that the table names: its sha256 is {found}, expected {wheel.sha256}.",
        shape
        + (
            "Give the right file with --from."
            if given
            else "Check the index that pip is configured with, and try again."
        ),
    )


def _copy(wheel: UpstreamFile, given: Path, work: Path) -> Path:
    source = given / wheel.file if given.is_dir() else given
    if not source.is_file():
        raise FactoryError(f"{source} does not exist.", f"--from takes {wheel.file}, or the folder that holds it.")
    target = work / wheel.file
    with step(f"Copying {source.name}"):
        shutil.copyfile(str(source), str(target))
    return target


def pip_command(wheel: UpstreamWheel, requirements: Path, target: Path) -> List[str]:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]
    command += [
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
        str(requirements),
        "--dest",
        str(target),
    ]
    command += ["--implementation", "cp", "--abi", wheel.abi, "--python-version", python_names.number(wheel.python)]
    for platform in wheel.platforms:
        command += ["--platform", platform]
    return command


def _download(wheel: UpstreamWheel, work: Path) -> Path:
    requirements = work / "requirements.txt"
    requirements.write_text(f"{wheel.project}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    target = work / "download"
    with step(f"Fetching {wheel.file} ({wheel.size / 1e6:.0f} MB) through pip"):
        # pip draws its own progress bar, on standard output; its errors are read here.
        command = pip_command(wheel, requirements, target)
        try:
            # The file is named by its hash; a constraint of this machine speaks of what is installed.
            environment = {**os.environ, "PIP_CONSTRAINT": os.devnull}
            done = children.run(command, stdout=sys.stderr.fileno(), stderr=subprocess.PIPE, env=environment)
        except FileNotFoundError:
            raise FactoryError(
                f"{sys.executable} cannot be started.", "Run the command with a working Python."
            ) from None
    arrived = target / wheel.file
    if done.returncode == 0 and arrived.is_file():
        return arrived
    raise _download_error(wheel, done.stderr)


def _download_error(wheel: UpstreamWheel, text: str) -> FactoryError:
    offline = (
        "Or fetch the file elsewhere and pass it with --from PATH; what is in the cache already is not fetched again."
    )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = " ".join(line for line in lines[-3:])
    if "No module named pip" in text:
        return FactoryError("This Python has no pip.", "Run `python -m ensurepip`, or make a virtual environment.")
    if "DO NOT MATCH" in text:
        return FactoryError(
            f"pip got another file than {wheel.file}: the sha256 differs from releases.toml.",
            f"The download may be damaged; try again. {offline}",
        )
    if "No space left" in text:
        return FactoryError(f"No space left while fetching {wheel.file}.", "Free some space or set MACATORCH_CACHE.")
    if any(sign in text for sign in NETWORK_SIGNS):
        return FactoryError(
            f"{wheel.file} could not be fetched: no connection to pip's index.",
            f"Check the network and `python -m pip config list`. {offline}",
        )
    if "No matching distribution" in text or "from versions: none" in text:
        return FactoryError(
            f"pip found no {wheel.file}: its index does not have the file, or could not be reached.",
            f"Check the network and `python -m pip config list`. {offline}",
        )
    return FactoryError(f"pip could not fetch {wheel.file}: {last}", f"Check `python -m pip config list`. {offline}")
