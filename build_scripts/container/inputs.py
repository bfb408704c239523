"""The wheels that go into the image: ours as they were built, and what they require."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Dict, List

from packaging.utils import canonicalize_name, parse_wheel_filename

from .. import cache
from ..errors import FactoryError
from ..factory import dependencies, sdk_wheel, torch_wheel
from ..progress import step
from ..releases import Release, Table, UpstreamWheel, sdk_version

# Beside what the wheels require: torch's arrays.
ALSO = ("numpy",)
COMPANION = "torchvision"


def own(table: Table, release: Release, wheel: UpstreamWheel, folder: Path) -> List[Path]:
    """The torch and SDK wheels in ``folder``. Says which Pythons there are wheels for if this one's is missing."""
    version = sdk_version()
    torch = folder / torch_wheel.file_name(release, wheel, version)
    sdk = folder / sdk_wheel.file_name(table.sdk, version)
    for path in (torch, sdk):
        if path.is_file():
            continue
        others = sorted(folder.glob(f"torch-{release.torch}+maca{version}-*.whl")) if path == torch else []
        known = ", ".join(other.name.split("-")[2] for other in others)
        there = f" (there is one for {known})" if known else ""
        raise FactoryError(
            f"{path.name} is not in {folder}{there}.",
            f"Build it first: make wheels TORCH={release.torch} PYTHON={wheel.python}",
        )
    return [torch, sdk]


def companion(release: Release, wheel: UpstreamWheel, folder: Path) -> List[Path]:
    """Our torchvision, where it is built. Upstream's carries libraries of NVIDIA's and stays outside."""
    version = release.companions.get(COMPANION)
    return sorted(folder.glob(f"{COMPANION}-{version}+maca*-{wheel.python_tag}-*.whl"))[-1:] if version else []


def gather(table: Table, release: Release, wheel: UpstreamWheel, folder: Path) -> List[Path]:
    """All wheels of the image, ours first."""
    ours = own(table, release, wheel, folder)
    vision = companion(release, wheel, folder)
    names = {"torch", table.sdk.name}
    wanted = sorted({word for path in ours + vision for word in dependencies.requirements(path, wheel.python, names)})
    wanted += [name for name in ALSO if not any(canonicalize_name(word).startswith(name) for word in wanted)]
    return ours + vision + _fetched(wanted, wheel)


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
