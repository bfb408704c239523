"""What the wheels require from elsewhere, fetched beside them: the index then answers all of pip's questions."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Sequence, Set, Tuple

from packaging.markers import default_environment
from packaging.utils import canonicalize_name, parse_wheel_filename

from .. import cache, children, python_names
from ..errors import FactoryError
from ..progress import step
from ..releases import Table
from . import metadata
from .wheel import WheelReader

FOLDER = "dependencies"
STAMP = ".stamp.json"
PLATFORMS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux1", "manylinux_2_5", "linux")


def requirements(wheel: Path, python: str, architecture: str, ours: Set[str]) -> List[str]:
    """What the wheel requires on Linux with that Python and processor, extras and our own packages left out."""
    ours = {canonicalize_name(name) for name in ours}
    with WheelReader(wheel) as reader:
        text = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8")
    environment: Dict[str, str] = {key: str(value) for key, value in default_environment().items()}
    number = python_names.number(python)
    environment.update(python_version=number, python_full_version=f"{number}.0", extra="")
    environment.update(platform_system="Linux", sys_platform="linux", os_name="posix", platform_machine=architecture)
    return [
        f"{r.name}{r.specifier}"
        for r in metadata.requirements(text)
        if canonicalize_name(r.name) not in ours and (r.marker is None or r.marker.evaluate(environment))
    ]


def _pythons(wheels: Sequence[Path]) -> List[Tuple[str, str]]:
    """Python versions and architectures that the torch wheels are for."""
    found = set()
    for wheel in wheels:
        for tag in parse_wheel_filename(wheel.name)[3]:
            if tag.interpreter.startswith("cp"):
                found.add((python_names.parse(tag.abi), tag.platform.split("_", 1)[1]))
    return sorted(found)


def fetch(wheels: Sequence[Path], folder: Path, table: Table) -> List[Path]:
    """Fetch, for each Python that a wheel is for, what all wheels need there. Returns the files in ``folder``."""
    ours = {"torch", table.sdk.name, *(companion.name for companion in table.companions)}
    wanted: Dict[str, List[str]] = {}
    for python, architecture in _pythons(wheels):
        tags = f"-{python_names.interpreter_tag(python)}-{python_names.abi_tag(python)}-"
        for wheel in wheels:
            if tags in wheel.name:
                # Each wheel by itself: two releases may want different versions of a package.
                others = [each for each in wheels if each.name.startswith(f"{table.sdk.name}-")]
                others += [each for each in wheels if each.name.endswith("-py3-none-any.whl")]
                needed = {word for each in (wheel, *others) for word in requirements(each, python, architecture, ours)}
                wanted[f"{python} {architecture} {wheel.name}"] = sorted(needed)
    stamp = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
    marker = folder / STAMP
    with cache.lock("dependencies-" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]):
        if not (marker.is_file() and marker.read_text() == stamp):
            # Beside the folder: pip takes a file that is there for whole, half of one as well.
            part = folder.with_name(f".{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            with step("Fetching what the wheels require"):
                for key, words in wanted.items():
                    python, architecture, _ = key.split(" ")
                    download(words, python, architecture, part)
            (part / STAMP).write_text(stamp)
            # Without its stamp, what is left of the old folder counts for nothing.
            marker.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(str(part), str(folder))
    return sorted(folder.glob("*.whl"))


def download(words: Sequence[str], python: str, architecture: str, folder: Path) -> None:
    """Fetch wheels for a Linux machine with that Python, and what they require."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    command += ["--only-binary=:all:", "--dest", str(folder), "--implementation", "cp"]
    command += ["--python-version", python_names.number(python)]
    for abi in python_names.abis(python):
        command += ["--abi", abi]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_{architecture}"]
    done = children.run([*command, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise FactoryError(
            f"What torch requires on Python {python} could not be fetched: {' '.join(errors[-2:])}",
            "Check the network and `python -m pip config list`, or leave it out with --no-dependencies.",
        )
