"""The tests of the companions' own projects: where they lie, and how they are run.

Triton's and apex's are in no archive that can be fetched: the user gives the sources. Those of torchvision and
torchaudio come from Debian's source packages, as torch's do (the companions' rows in ``companions.toml``).
"""

import os
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .. import cache
from ..errors import FactoryError
from ..progress import step
from ..releases import CHECKOUT, Release, Table
from .conformity import RANDOM
from .upstream_tests import obtain

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = CHECKOUT / "tests" / "conformity"
TABLE = TESTS / "projects.toml"
TRITON = "triton"
TRITON_EXPECTED = TESTS / "triton_expected.toml"
TRITON_FOLDERS = ("language", "runtime")
# Fills in what the package lacks of what tests of a commit near the release import.
TRITON_PLUGIN = "triton_names"


@dataclass(frozen=True)
class Project:
    """A companion's tests. ``files`` lie below ``folder``; ``marks`` is pytest's expression of those that are run."""

    name: str
    version: str
    folder: Path
    files: Tuple[str, ...]
    variables: Dict[str, str]
    expected: Path
    marks: str = ""
    # Names of requirement files, beside those of torch's own tests.
    needs: Tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"


def names() -> List[str]:
    """The companions whose tests can be run."""
    return [TRITON, *_rows()]


def find(name: str, table: Table, release: Release, given: Optional[Path]) -> Project:
    """The tests of a companion that this release of torch has; ``given``: the sources that the user names.

    Raises:
        FactoryError: the release has no such companion, or the tests are not there.
    """
    version = release.companions.get(name)
    if version is None:
        raise FactoryError(f"torch {release.torch} has no {name}.", "`list` shows which companions a release has.")
    # As for torch's own tests, which know upstream's layout only.
    variables = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), "PYTORCH_DEFAULT_NCHW": "1"}
    if name == TRITON:
        tests = triton_folder(given, version)
        variables["PYTEST_PLUGINS"] = TRITON_PLUGIN
        return Project(name, version, tests, (*triton_files(tests), RANDOM), variables, TRITON_EXPECTED)
    row = _rows()[name]
    companion = table.companion(name, version)
    if companion is not None and companion.tests is not None:
        tests = obtain(companion.tests, given)
    else:
        tests = given_folder(given, name, version, row.get("folder"))
    files = [path for pattern in row["files"] for path in sorted(tests.glob(pattern))]
    if not files:
        raise FactoryError(f"{tests} holds no tests of {name} {version}.", "Name its sources with --tests PATH.")
    return Project(
        name,
        version,
        tests,
        tuple(str(path.relative_to(tests)) for path in files),
        {**variables, **row.get("variables", {})},
        TABLE,
        row.get("marks", ""),
        tuple(row.get("needs", ())),
    )


def _rows() -> Dict[str, Any]:
    return dict(tomllib.loads(TABLE.read_text(encoding="utf-8"))["project"])


def given_folder(given: Optional[Path], name: str, version: str, folder: Optional[str]) -> Path:
    """The tests in sources that the user gives, a folder or an archive of one.

    Raises:
        FactoryError: nothing was given, or it holds no such folder.
    """
    if given is None or folder is None:
        raise FactoryError(f"The tests of {name} {version} are in no archive here.", "Name its sources: --tests PATH.")
    root = given.resolve()
    if root.is_file():
        root = _unpacked(root, name)
    # An archive's one folder bears the release's name (vision-0.27.1).
    only = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    for sources in (root, root / name, *(only if len(only) == 1 else [])):
        if (sources / folder).is_dir():
            return sources / folder
    raise FactoryError(f"{given} holds no {folder} of {name}.", "Name the folder or the archive of its sources.")


def _unpacked(archive: Path, name: str) -> Path:
    key = f"{name}-{cache.sha256_of(archive)[:16]}"
    final = cache.folder("tests") / key
    with cache.lock(f"tests-{key}"):
        if not cache.whole(final, may_grow=True):
            with cache.work_folder(f"tests-{key}") as work, step(f"Unpacking {archive.name}"):
                try:
                    with tarfile.open(str(archive)) as tar:
                        members = [m for m in tar if (m.isfile() or m.isdir()) and _stays_inside(m.name)]
                        tar.extractall(str(work / "unpacked"), members=members)
                except tarfile.TarError as error:
                    raise FactoryError(
                        f"{archive} is no archive: {error}", "Name a folder or a tar archive."
                    ) from error
                cache.keep(work / "unpacked", final)
    return final


def _stays_inside(member: str) -> bool:
    parts = Path(member).parts
    return not Path(member).is_absolute() and ".." not in parts


def triton_folder(given: Optional[Path], version: str) -> Path:
    """The folder ``python/test`` of Triton's sources, which PATH or its ``triton-<minor release>`` holds.

    Raises:
        FactoryError: there is none.
    """
    minor = ".".join(version.split(".")[:2])
    for root in [] if given is None else [given, given / f"triton-{minor}"]:
        tests = root.resolve() / "python" / "test"
        if all((tests / "unit" / name).is_dir() for name in TRITON_FOLDERS):
            return tests
    raise FactoryError(
        f"{given} holds no python/test/unit of Triton." if given else "Triton's tests are in no wheel.",
        f"Name Triton's sources near release {version}, a folder, with --tests PATH.",
    )


def triton_files(tests: Path) -> List[str]:
    """The test files below the folder, as pytest names them."""
    found = [path for name in TRITON_FOLDERS for path in sorted((tests / "unit" / name).glob("test_*.py"))]
    return [str(path.relative_to(tests)) for path in found]
