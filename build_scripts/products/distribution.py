"""All wheels of one release for one Python: what `pip install` of the torch wheel asks for."""

from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Set

from .. import platforms
from ..errors import FactoryError
from ..releases import CHECKOUT, Companion, Release, Table, UpstreamWheel, sdk_version
from . import companion_wheel, given_wheel, sdk_wheel, source_wheel, torch_wheel, triton_wheel


class Distribution(NamedTuple):
    """The files of a release."""

    torch: Path
    sdk: Path
    companions: List[Path]
    # Those that exist only where the user has given their sources.
    given: List[Path] = []

    @property
    def wheels(self) -> List[Path]:
        """All of them."""
        return [self.sdk, *self.companions, *self.given, self.torch]


def build(
    table: Table, release: Release, wheel: UpstreamWheel, output: Path, given: Optional[Path], checkout: Path = CHECKOUT
) -> Distribution:
    """Build what is missing or old."""
    torch = torch_wheel.build(table, release, wheel, output, given, checkout)
    companions = build_companions(table, release, wheel, output, given, checkout)
    sdk = sdk_wheel.build(table.sdk, output, checkout, platforms.architecture(wheel.architecture))
    return Distribution(torch, sdk, companions)


def build_companions(
    table: Table, release: Release, wheel: UpstreamWheel, output: Path, given: Optional[Path], checkout: Path = CHECKOUT
) -> List[Path]:
    """Build the companions of a release: what its wheel requires, then what requires its wheel."""
    built = []
    for companion in table.built_companions(release, wheel.python):
        if companion.source is not None:
            built.append(source_wheel.build(table, companion, wheel.python, output, given, checkout))
        elif companion.wants_torch:
            built.append(companion_wheel.build(table, release, companion, wheel, output, given, checkout))
        else:
            built.append(triton_wheel.build(table, companion, wheel, output, given, checkout))
    return built


def build_given(
    table: Table,
    release: Release,
    wheel: UpstreamWheel,
    output: Path,
    sources: Dict[str, Path],
    environment: Callable[[], Path],
    checkout: Path = CHECKOUT,
) -> List[Path]:
    """Build those companions whose sources the user gives, by their name. The other wheels lie in ``output``.

    ``environment``: a Python that has them, and setuptools.
    """
    wanted = {companion.name: companion for companion in table.given_companions(release)}
    for name in sources:
        if name not in wanted:
            raise FactoryError(
                f"torch {release.torch} has no {name} beside it in releases.toml.",
                "Leave the source out, or see `list`.",
            )
    sdk = output / sdk_wheel.file_name(table.sdk, sdk_version(checkout))
    return [
        given_wheel.build(table, release, wanted[name], wheel, source, sdk, environment, output, checkout)
        for name, source in sources.items()
    ]


def names(table: Table, release: Release, wheel: UpstreamWheel, version: Optional[str] = None) -> Distribution:
    """The file names alone, in the folder that is the current one.

    ``version``: that of the SDK (default: this checkout's), or ``*`` for patterns.
    """
    version = version or sdk_version()
    return Distribution(
        Path(torch_wheel.file_name(release, wheel, version)),
        Path(sdk_wheel.file_name(table.sdk, version, platforms.architecture(wheel.architecture))),
        [
            Path(_file_name(table, companion, wheel, version))
            for companion in table.built_companions(release, wheel.python)
        ],
        [Path(given_wheel.file_name(table, c, release, wheel, version)) for c in table.given_companions(release)],
    )


def _file_name(table: Table, companion: Companion, wheel: UpstreamWheel, version: str) -> str:
    if companion.source is not None:
        return source_wheel.file_name(companion, version)
    return companion_wheel.file_name(table, companion, wheel, version)


def projects(table: Table) -> Set[str]:
    """The names of the packages that are built here."""
    return {"torch", table.sdk.name, *(companion.name for companion in table.companions)}
