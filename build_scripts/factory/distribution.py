"""All wheels of one release for one Python: what `pip install` of the torch wheel asks for."""

from pathlib import Path
from typing import List, NamedTuple, Optional, Set

from .. import platforms
from ..releases import CHECKOUT, Release, Table, UpstreamWheel, sdk_version
from . import companion_wheel, sdk_wheel, torch_wheel, triton_wheel


class Distribution(NamedTuple):
    """The files of a release."""

    torch: Path
    sdk: Path
    companions: List[Path]

    @property
    def wheels(self) -> List[Path]:
        """All of them, what others require first."""
        return [self.sdk, *self.companions, self.torch]


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
    for companion in table.built_companions(release):
        if companion.wants_torch:
            built.append(companion_wheel.build(table, release, companion, wheel, output, given, checkout))
        else:
            built.append(triton_wheel.build(table, companion, wheel, output, given, checkout))
    return built


def names(table: Table, release: Release, wheel: UpstreamWheel) -> Distribution:
    """The file names alone, in the folder that is the current one."""
    version = sdk_version()
    return Distribution(
        Path(torch_wheel.file_name(release, wheel, version)),
        Path(sdk_wheel.file_name(table.sdk, version, platforms.architecture(wheel.architecture))),
        [
            Path(companion_wheel.file_name(companion, companion.beside(wheel), version))
            for companion in table.built_companions(release)
        ],
    )


def projects(table: Table) -> Set[str]:
    """The names of the packages that are built here."""
    return {"torch", table.sdk.name, *(companion.name for companion in table.companions)}
