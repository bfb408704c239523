"""Upstream's own tests for a release: from Debian's source package, through apt as the user has configured it.

Debian's ``.orig`` archive is upstream's tree, less third-party code; Debian's patches lie beside it and are not
applied. Nothing of the system's configuration is changed: the file is fetched by its path below the configured mirror
and checked against the sha256 in the table of releases.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import List, Optional

from .. import cache, children
from ..errors import FactoryError
from ..progress import note, step
from ..releases import SourceArchive

HELPERS = ("/usr/lib/apt/apt-helper", "/usr/libexec/apt-helper")
# Where there is no mirror: the user's own copy.
BY_HAND = "Fetch the file elsewhere and pass it with --tests PATH."


def obtain(source: SourceArchive, given: Optional[Path] = None) -> Path:
    """The folder with the unpacked tests."""
    name = f"tests-{source.sha256[:16]}"
    final = cache.folder("tests") / source.sha256[:16]
    with cache.lock(name):
        if cache.whole(final, may_grow=True):
            return final
        with cache.work_folder(name) as work:
            archive = work / source.file
            if given is not None:
                _copy(source, given, archive)
            else:
                _download(source, archive)
            with step(f"Checking the sha256 of {source.file}"):
                _check(source, archive)
            with step(f"Unpacking {source.folder}"):
                unpacked = _unpack(source, archive, work / "unpacked")
            cache.keep(unpacked, final)
    return final


def mirrors() -> List[str]:
    """The archives that apt is configured with; the first component of the pool's path is relative to each."""
    program = shutil.which("apt-get")
    if program is None:
        raise FactoryError("Upstream's tests come from Debian's archive, and this system has no apt-get.", BY_HAND)
    done = subprocess.run(
        [program, "indextargets", "--format", "$(REPO_URI)"], stdout=subprocess.PIPE, text=True, check=False
    )
    found = sorted({line.strip().rstrip("/") for line in done.stdout.splitlines() if line.strip()})
    if not found:
        raise FactoryError("apt is configured with no archive at all.", BY_HAND)
    return found


def _download(source: SourceArchive, target: Path) -> None:
    helper = next((path for path in HELPERS if os.access(path, os.X_OK)), None)
    if helper is None:
        raise FactoryError("This system's apt has no apt-helper.", BY_HAND)
    said = ""
    with step(f"Fetching {source.file} ({source.size / 1e6:.0f} MB) through apt"):
        for mirror in mirrors():
            command = [helper, "download-file", f"{mirror}/{source.pool}/{source.file}", str(target)]
            done = children.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode == 0 and target.is_file():
                return
            said = " ".join(line.strip() for line in done.stdout.splitlines() if line.startswith("E:")) or said
    raise FactoryError(f"None of apt's mirrors has {source.file}: {said}", BY_HAND)


def _copy(source: SourceArchive, given: Path, target: Path) -> None:
    path = given / source.file if given.is_dir() else given
    if not path.is_file():
        raise FactoryError(f"{path} does not exist.", f"--tests takes {source.file}, or the folder that holds it.")
    note(f"Taking {path}")
    shutil.copyfile(str(path), str(target))


def _check(source: SourceArchive, archive: Path) -> None:
    found = cache.sha256_of(archive)
    if found != source.sha256:
        raise FactoryError(
            f"{source.file} is not the file that releases.toml names: its sha256 is {found}, expected {source.sha256}.",
            "Try again, or give the right file with --tests PATH.",
        )


def _unpack(source: SourceArchive, archive: Path, target: Path) -> Path:
    with tarfile.open(str(archive)) as tar:
        wanted = []
        for member in tar:
            parts = Path(member.name).parts
            # Relative, below the folder that is wanted, nothing but files and folders.
            if (
                parts[:2] == tuple(source.folder.split("/"))
                and ".." not in parts
                and (member.isfile() or member.isdir())
            ):
                wanted.append(member)
        if not wanted:
            raise FactoryError(f"{source.file} holds no folder {source.folder}.", "Correct the table of releases.")
        tar.extractall(str(target), members=wanted)
    return target / source.folder
