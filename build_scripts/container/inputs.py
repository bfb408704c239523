"""The wheels that go into the image: ours as they were built, and what they require."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Dict, List, Optional

from packaging.utils import canonicalize_name, parse_wheel_filename

from .. import cache, platforms
from ..errors import FactoryError
from ..factory import dependencies
from ..products import distribution, sdk_wheel, torch_wheel
from ..progress import step
from ..releases import Release, Table, UpstreamWheel, sdk_version

# Beside what the wheels require: torch's arrays.
ALSO = ("numpy",)


def build_missing(table: Table, release: Release, wheel: UpstreamWheel, folder: Path, given: Optional[Path]) -> None:
    """Build which of our wheels ``folder`` lacks. ``given``: upstream's wheel, or a folder of them, instead of a
    download."""
    named = distribution.names(table, release, wheel)
    if not (folder / named.torch).is_file():
        torch_wheel.build(table, release, wheel, folder, given)
    if not (folder / named.sdk).is_file():
        sdk_wheel.build(table.sdk, folder, architecture=platforms.architecture(wheel.architecture))
    if not all((folder / name).is_file() for name in named.companions):
        distribution.build_companions(table, release, wheel, folder, given)


def own(table: Table, release: Release, wheel: UpstreamWheel, folder: Path) -> List[Path]:
    """The wheels of a release in ``folder``, and those from given sources that were built.

    Says which Pythons there are wheels for if this one's is missing.
    """
    named = distribution.names(table, release, wheel)
    wheels = [folder / named.torch, folder / named.sdk, *(folder / name for name in named.companions)]
    for path in wheels:
        if path.is_file():
            continue
        pattern = f"torch-{release.torch}+maca{sdk_version()}-*.whl"
        others = sorted(folder.glob(pattern)) if path.name == named.torch.name else []
        known = ", ".join(other.name.split("-")[2] for other in others)
        there = f" (there is one for {known})" if known else ""
        raise FactoryError(
            f"{path.name} is not in {folder}{there}.",
            f"Build it first: make wheels TORCH={release.torch} PYTHON={wheel.python}",
        )
    return wheels + [folder / name for name in named.given if (folder / name).is_file()]


def gather(table: Table, release: Release, wheel: UpstreamWheel, folder: Path) -> List[Path]:
    """All wheels of the image, ours first."""
    ours = own(table, release, wheel, folder)
    names = distribution.projects(table)
    place = (wheel.python, wheel.architecture)
    required = {word for path in ours for word in dependencies.requirements(path, *place, names)}
    wanted = sorted(required.union(release.beside))
    wanted += [name for name in ALSO if not any(canonicalize_name(word).startswith(name) for word in wanted)]
    return ours + _fetched(wanted, wheel)


def _fetched(wanted: List[str], wheel: UpstreamWheel) -> List[Path]:
    key = hashlib.sha256(json.dumps([wanted, wheel.python, wheel.architecture]).encode()).hexdigest()[:20]
    final = cache.folder("image-wheels") / key
    with cache.lock(f"image-wheels-{key}"):
        if not cache.whole(final):
            with cache.work_folder(f"image-wheels-{key}") as work, step("Fetching what the wheels require"):
                part = work / "wheels"
                part.mkdir()
                dependencies.download(wanted, wheel.python, wheel.architecture, part)
                cache.keep(part, final)
    return sorted(final.glob("*.whl"))


def stage(wheels: List[Path], folder: Path) -> Dict[str, str]:
    """Copy the wheels into the build's context. Returns each one's sha256, by ``name-version``."""
    folder.mkdir(parents=True)
    digests = {}
    for path in wheels:
        shutil.copyfile(str(path), str(folder / path.name))
        name, version, _, _ = parse_wheel_filename(path.name)
        digests[f"{canonicalize_name(name).replace('-', '_')}-{version}"] = cache.sha256_of(path)
    return digests
