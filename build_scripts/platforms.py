"""The table of processors and systems, ``platforms.toml``, as objects."""

import platform
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Dict, Optional, Tuple

from .errors import FactoryError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).resolve().with_name("platforms.toml")


@dataclass(frozen=True)
class Architecture:
    """A processor: ``machine`` as ELF files have it, the GNU triplet, Debian's package of its cross compiler."""

    name: str
    machine: int
    triplet: str
    package: str

    @property
    def is_foreign(self) -> bool:
        """Whether what is built for it cannot run on this machine."""
        return self.name != platform.machine()


@dataclass(frozen=True)
class System:
    """What a platform tag promises: the newest version that may be asked for, by the prefix of the version's name.

    ``also``: versions of these prefixes without a number that it has.
    """

    tag: str
    versions: Dict[str, Tuple[int, ...]]
    also: Tuple[str, ...]

    def has(self, version: str) -> bool:
        """Whether the system has a symbol version, as ``GLIBC_2.28``. Those of other libraries are not its matter."""
        prefix, _, rest = version.partition("_")
        if prefix not in self.versions or version in self.also:
            return True
        # GLIBC_PRIVATE and GLIBC_ABI_DT_RELR have no number: no system promises them.
        return re.fullmatch(r"[0-9.]+", rest) is not None and numbers(rest) <= self.versions[prefix]


def numbers(version: str) -> Tuple[int, ...]:
    """``2.28`` as numbers that compare."""
    return tuple(int(part) for part in version.split("."))


@lru_cache(maxsize=None)
def _table() -> Tuple[Tuple[Architecture, ...], Tuple[System, ...]]:
    with TABLE.open("rb") as file:
        data = tomllib.load(file)
    systems = (
        System(row["tag"], {name: numbers(text) for name, text in row["versions"].items()}, tuple(row["also"]))
        for row in data["system"]
    )
    return tuple(Architecture(**row) for row in data["architecture"]), tuple(systems)


def architectures() -> Tuple[Architecture, ...]:
    return _table()[0]


def architecture(name: Optional[str] = None) -> Architecture:
    """The architecture of that name; without one, this machine's."""
    wanted = name or platform.machine()
    for known in architectures():
        if known.name == wanted:
            return known
    there = ", ".join(known.name for known in architectures())
    raise FactoryError(f"Wheels are not built for {wanted}.", f"Choose one of {there} with --arch (make: ARCH=).")


def oldest_system() -> System:
    """The oldest system that wheels must load on."""
    return _table()[1][0]
