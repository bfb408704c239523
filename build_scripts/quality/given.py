"""Companions from given sources, built in an environment of the release's own wheels."""

from pathlib import Path
from typing import Dict, List

from ..products import distribution
from ..releases import REQUIREMENTS, Release, Table, UpstreamWheel
from . import environment


def build(table: Table, release: Release, wheel: UpstreamWheel, output: Path, sources: Dict[str, Path]) -> List[Path]:
    """Build them. The release's other wheels lie in ``output``."""
    if not sources:
        return []
    named = distribution.names(table, release, wheel)
    wheels = [output / named.sdk, *(output / name for name in named.companions if "triton" in name.name)]
    wheels.append(output / named.torch)

    def interpreter() -> Path:
        name = f"build-{release.torch}-{wheel.python_tag}"
        return environment.obtain(name, wheel.python, wheels, [REQUIREMENTS / "given.txt"])

    return distribution.build_given(table, release, wheel, output, sources, interpreter)
