"""The tables of releases and companions, ``releases.toml`` and ``companions.toml``, as objects."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from packaging.version import Version

from . import platforms, python_names
from .errors import FactoryError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKOUT = Path(__file__).resolve().parent.parent
REQUIREMENTS = CHECKOUT / "requirements"
TABLE = Path(__file__).resolve().with_name("releases.toml")
COMPANIONS = "companions.toml"


@dataclass(frozen=True)
class UpstreamWheel:
    """One of upstream's wheels as the package index has it. ``python`` is written ``3.10``, or ``3.14t``."""

    version: str
    python: str
    file: str
    size: int
    sha256: str
    project: str = "torch"

    @property
    def python_tag(self) -> str:
        """``cp310``, or ``cp314t`` for a Python without the global lock."""
        return python_names.abi_tag(self.python)

    @property
    def built_tag(self) -> str:
        """The tag of the wheel that is built from this one."""
        return f"{python_names.interpreter_tag(self.python)}-{self.python_tag}-linux_{self.architecture}"

    @property
    def abi(self) -> str:
        """The ABI in the file's name: the Python's own, ``abi3``, which later Pythons have as well, or ``none``."""
        return self.file.split("-")[-2]

    @property
    def platforms(self) -> List[str]:
        return self.file[: -len(".whl")].split("-")[-1].split(".")

    @property
    def architecture(self) -> str:
        return "aarch64" if self.platforms[0].endswith("aarch64") else "x86_64"


def wheels_for(
    wheels: "Tuple[UpstreamWheel, ...]", architecture: Optional[str] = None, title: str = ""
) -> "Tuple[UpstreamWheel, ...]":
    """Those for an architecture (default: this machine's). With a ``title``, having none is an error that names it."""
    wanted = platforms.architecture(architecture)
    found = tuple(wheel for wheel in wheels if wheel.architecture == wanted.name)
    if not found and title:
        there = ", ".join(sorted({wheel.architecture for wheel in wheels}, reverse=True))
        raise FactoryError(
            f"{title} has no wheel for {wanted.name}.",
            f"It has wheels for {there}: upstream's other wheels of it, if any, are not CUDA builds. See `list`.",
        )
    return found


@dataclass(frozen=True)
class SourceDistribution:
    """The source distribution of a package as the package index has it. ``python``: the oldest that it is for."""

    version: str
    python: str
    file: str
    size: int
    sha256: str
    project: str


@dataclass(frozen=True)
class SourceArchive:
    """A source archive of a Debian mirror that holds upstream's tests in ``folder``."""

    pool: str
    file: str
    folder: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Release:
    """A torch release: which wheels there are and what it was built with. ``tested``: the Python of its test runs.

    ``every_run``: whether test runs take it unasked. ``trial``: it is built where it is asked for by name, and is no
    default, since its tests have not been passed yet. ``left_out``: what upstream's wheel requires and ours does not,
    since nothing here could stand in for it. ``beside``: requirements of the environments and images that it is
    installed in, of packages whose newest releases it does not know.
    """

    torch: str
    cuda: str
    cxx11_abi: int
    patches: str
    companions: Dict[str, str]
    wheels: Tuple[UpstreamWheel, ...]
    tested: str
    every_run: bool = False
    trial: bool = False
    tests: Optional[SourceArchive] = None
    left_out: Tuple[str, ...] = ()
    beside: Tuple[str, ...] = ()

    @property
    def cuda_major(self) -> int:
        return int(self.cuda.split(".")[0])

    def wheel_for(self, python: str, architecture: Optional[str] = None) -> UpstreamWheel:
        """The wheel for that Python and architecture (default: this machine's)."""
        for wheel in wheels_for(self.wheels, architecture, f"torch {self.torch}"):
            if wheel.python == python:
                return wheel
        there = ", ".join(wheel.python for wheel in wheels_for(self.wheels, architecture))
        raise FactoryError(
            f"torch {self.torch} has no wheel for Python {python}.",
            f"It has wheels for Python {there}; choose with --python.",
        )


@dataclass(frozen=True)
class Companion:
    """A package beside torch that is built here. ``remove``: patterns (fnmatch) of what goes.

    It is made from one of upstream's ``wheels``; from its ``source`` distribution, with an extension of ours behind it;
    or, with neither, by its own setup.py from sources that the user gives, with ``options``. ``wants_torch``: it
    requires torch, while torch requires the others. ``tests``: where its project's tests lie.
    """

    name: str
    version: str
    remove: Tuple[str, ...]
    wheels: Tuple[UpstreamWheel, ...]
    wants_torch: bool = False
    source: Optional[SourceDistribution] = None
    options: Tuple[str, ...] = ()
    tests: Optional[SourceArchive] = None

    @property
    def is_given(self) -> bool:
        """Whether it is in no index: the user has to give its source."""
        return not self.wheels and self.source is None

    def wheel_for(self, python: str, architecture: Optional[str] = None) -> UpstreamWheel:
        """The wheel for that Python and architecture (default: this machine's)."""
        found = wheels_for(self.wheels, architecture, f"{self.name} {self.version}")
        for wheel in found:
            if wheel.python == python:
                return wheel
        raise FactoryError(
            f"{self.name} {self.version} has no wheel for Python {python} in {COMPANIONS}.",
            f"It has wheels for Python {', '.join(wheel.python for wheel in found)}.",
        )

    def beside(self, wheel: UpstreamWheel) -> UpstreamWheel:
        """The wheel for the Python and the architecture of another."""
        return self.wheel_for(wheel.python, wheel.architecture)


@dataclass(frozen=True)
class Sdk:
    """The SDK wheel's name; its metadata lies with its sources, in cu_bridge/python."""

    name: str


@dataclass(frozen=True)
class Nvidia:
    """Patterns (fnmatch) of what belongs to NVIDIA."""

    requirements: Tuple[str, ...]
    files: Tuple[str, ...]
    libraries: Tuple[str, ...]
    symbols: Tuple[str, ...]


@dataclass(frozen=True)
class Table:
    releases: Tuple[Release, ...]
    sdk: Sdk
    nvidia: Nvidia
    companions: Tuple[Companion, ...] = ()

    def built_companions(self, release: Release, python: Optional[str] = None) -> List[Companion]:
        """The companions of a release that are built here, for this Python if one is said; others stay upstream's."""
        fitting = [c for c in self.companions if release.companions.get(c.name) == c.version and not c.is_given]
        return [
            c
            for c in fitting
            if python is None or c.source is None or Version(c.source.python) <= Version(python_names.number(python))
        ]

    def given_companions(self, release: Release) -> List[Companion]:
        """Those that are built where the user gives their sources."""
        return [c for c in self.companions if release.companions.get(c.name) == c.version and c.is_given]

    def companion(self, name: str, version: str) -> Optional[Companion]:
        """The row of a companion, if it is built here."""
        return next((c for c in self.companions if (c.name, c.version) == (name, version)), None)

    def release(self, torch: str) -> Release:
        for release in self.releases:
            if release.torch == torch:
                return release
        known = ", ".join(release.torch for release in self.releases)
        raise FactoryError(f"torch {torch} is not in the table of releases.", f"Known releases: {known}. See `list`.")

    def newest_for(self, python: str, architecture: Optional[str] = None) -> Release:
        """The newest release with a wheel for that Python and architecture (default: this machine's)."""
        proven = [release for release in self.releases if not release.trial]
        there = {r.torch: [w.python for w in wheels_for(r.wheels, architecture)] for r in proven}
        fitting = [release for release in proven if python in there[release.torch]]
        if not fitting:
            pythons = sorted({version for versions in there.values() for version in versions}, key=python_names.order)
            where = f" on {architecture}" if architecture else ""
            raise FactoryError(
                f"No release has a wheel for Python {python}{where}.",
                f"Choose one of {', '.join(pythons)} with --python (see `list`).",
            )
        return max(fitting, key=lambda r: Version(r.torch))


def _release(row: Dict[str, Any]) -> Release:
    torch = row["torch"]
    wheels = tuple(UpstreamWheel(version=torch, **wheel) for wheel in row["wheels"])
    return Release(
        torch=torch,
        cuda=row["cuda"],
        cxx11_abi=row["cxx11_abi"],
        patches=row.get("patches", torch),
        companions=dict(row.get("companions", {})),
        wheels=wheels,
        every_run=row.get("every_run", False),
        trial=row.get("trial", False),
        tested=row.get("tested", wheels[0].python),
        tests=SourceArchive(**row["tests"]) if "tests" in row else None,
        left_out=tuple(row.get("left_out", ())),
        beside=tuple(row.get("beside", ())),
    )


def _companion(row: Dict[str, Any]) -> Companion:
    named = {"version": row["version"], "project": row["name"]}
    return Companion(
        row["name"],
        row["version"],
        tuple(row.get("remove", ())),
        tuple(UpstreamWheel(**named, **wheel) for wheel in row.get("wheels", ())),
        row.get("wants_torch", False),
        SourceDistribution(**named, **row["source"]) if "source" in row else None,
        tuple(row.get("options", ())),
        SourceArchive(**row["tests"]) if "tests" in row else None,
    )


def _companions(path: Path) -> Tuple[Companion, ...]:
    """The table beside that of the releases. Without one, no companion is built."""
    if not path.is_file():
        return ()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return tuple(_companion(row) for row in data["companion"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise FactoryError(f"{path.name} is not a valid table of companions: {error}") from error


def load(path: Path = TABLE) -> Table:
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
        return Table(
            releases=tuple(_release(row) for row in data["release"]),
            sdk=Sdk(**data["sdk"]),
            nvidia=Nvidia(**{key: tuple(patterns) for key, patterns in data["nvidia"].items()}),
            companions=_companions(path.with_name(COMPANIONS)),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise FactoryError(f"{path.name} is not a valid table of releases: {error}") from error


def sdk_version(checkout: Path = CHECKOUT) -> str:
    path = checkout / "cu_bridge" / "VERSION"
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise FactoryError("cu_bridge/VERSION is missing.", "Run the command in a complete checkout.") from None
