"""The systems that the image can be built on: the table ``docker/bases.toml``."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

from ..errors import FactoryError
from ..releases import CHECKOUT, Release, wheels_for

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = CHECKOUT / "docker"


@dataclass(frozen=True)
class Base:
    """A system: its official image, how /etc/os-release names it, the Python it has, where debootstrap finds it."""

    image: str
    id: str
    version: str
    python: str
    suites: Tuple[str, ...]
    components: Tuple[str, ...]
    keyring: str

    @property
    def name(self) -> str:
        """As file names have it: ``debian12``."""
        return f"{self.id}{self.version}"


def load(path: Path = FOLDER / "bases.toml") -> Tuple[Base, ...]:
    with path.open("rb") as file:
        rows = tomllib.load(file)["base"]
    lists = ("suites", "components")
    return tuple(Base(**{**row, **{key: tuple(row[key]) for key in lists}}) for row in rows)


def _known(bases: Tuple[Base, ...]) -> str:
    return ", ".join(f"{base.id} {base.version} (Python {base.python})" for base in bases)


def default_for(release: Release, bases: Tuple[Base, ...]) -> Base:
    """The first system whose Python the release has a wheel for."""
    pythons = {wheel.python for wheel in wheels_for(release.wheels)}
    for base in bases:
        if base.python in pythons:
            return base
    raise FactoryError(f"No base has a Python that torch {release.torch} has a wheel for.", f"Known: {_known(bases)}.")


def of_suite(suite: str, bases: Tuple[Base, ...]) -> Base:
    for base in bases:
        if base.suites[0] == suite:
            return base
    suites = ", ".join(base.suites[0] for base in bases)
    raise FactoryError(f"Unknown suite '{suite}'.", f"--bootstrap takes one of {suites}.")


def of_image(image: str, os_release: str, bases: Tuple[Base, ...]) -> Base:
    """The system that an image holds, by the text of its /etc/os-release."""
    facts: Dict[str, str] = {}
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        facts[key.strip()] = value.strip().strip("\"'")
    for base in bases:
        if (base.id, base.version) == (facts.get("ID"), facts.get("VERSION_ID")):
            return base
    found = facts.get("PRETTY_NAME") or "a system without /etc/os-release"
    raise FactoryError(f"The base {image} is {found}, which the image cannot be built on.", f"Known: {_known(bases)}.")
