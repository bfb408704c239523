"""The bundle: all wheels of one release for one Python, as an archive that installs without a network."""

import io
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Dict, List, NamedTuple, Tuple

from packaging.utils import canonicalize_name, parse_wheel_filename

from .. import cache
from ..errors import FactoryError
from ..factory.wheel import WheelReader
from ..progress import bar
from ..releases import Release, UpstreamWheel
from . import archive, sbom

# Said in its own words: pip's complaint about a wheel's tag does not name the Python that is needed.
INSTALL = """#!/bin/sh
# Installs torch {version} and what it requires from this folder. PYTHON names another Python, and arguments go to pip.
set -eu
cd "$(dirname "$0")"
python=${{PYTHON:-python3}}
found=$("$python" -c 'import sys, sysconfig
print("%d.%d" % sys.version_info[:2] + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))') || {{
    echo "error: $python does not run. Name a Python {python} with PYTHON=." >&2
    exit 1
}}
if [ "$found" != {python} ]; then
    echo "error: $python is Python $found, and these wheels are for {python}. Name one with PYTHON=." >&2
    exit 1
fi
machine=$("$python" -c 'import platform; print(platform.machine())')
if [ "$machine" != {architecture} ]; then
    echo "error: this machine is a $machine, and these wheels are for {architecture}." >&2
    exit 1
fi
# Settings of this machine could ask an index, or hold torch at another version.
PIP_CONFIG_FILE=/dev/null exec "$python" -m pip --isolated --disable-pip-version-check install --no-index \\
    --find-links wheels --require-hashes -r requirements.txt "$@"
"""


class Bundle(NamedTuple):
    """What a bundle is called."""

    release: Release
    wheel: UpstreamWheel
    sdk: str

    @property
    def name(self) -> str:
        minor = ".".join(self.release.torch.split(".")[:2])
        python = self.wheel.python.replace(".", "")
        return f"maca-pytorch{minor}-py{python}-{self.sdk}-{self.wheel.architecture}"


def lock(digests: Dict[str, str]) -> str:
    """A requirements file for pip's ``--require-hashes``. ``digests``: sha256 by file name."""
    lines = []
    for file, digest in digests.items():
        name, version, _, _ = parse_wheel_filename(file)
        lines.append(f"{canonicalize_name(name)}=={version} --hash=sha256:{digest}\n")
    return "".join(sorted(lines))


def installer(bundle: Bundle, version: str, digests: Dict[str, str]) -> Dict[str, bytes]:
    """The files beside the folder ``wheels`` that install what lies in it. ``digests``: sha256 by file name."""
    script = INSTALL.format(version=version, python=bundle.wheel.python, architecture=bundle.wheel.architecture)
    return {"install.sh": script.encode(), "requirements.txt": lock(digests).encode()}


def licences(wheel: Path) -> List[Tuple[str, bytes]]:
    """The licence files of a wheel: a path below ``licenses/`` and the text."""
    project = canonicalize_name(wheel.name.split("-")[0])
    found = []
    with WheelReader(wheel) as reader:
        for name in sorted(reader.members):
            path = PurePosixPath(name)
            told = path.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE"))
            if path.parts[0] == reader.dist_info and (told or "licenses" in path.parts):
                inner = "/".join(part for part in path.parts[1:] if part != "licenses")
                found.append((f"{project}/{inner}", reader.read(name)))
    return found


def write(work: Path, bundle: Bundle, version: str, wheels: List[Path], epoch: int) -> List[Path]:
    """Write the archive, its checksum and its list of contents to ``work``; the archive last."""
    names = [canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FactoryError(
            f"There are two wheels of {', '.join(twice)}.", "Remove the one that does not belong to this release."
        )
    digests = {wheel.name: cache.sha256_of(wheel) for wheel in sorted(wheels)}
    listed = work / f"{bundle.name}.cdx.json"
    sbom.write_wheels(listed, bundle.name, version, {wheel: digests[wheel.name] for wheel in sorted(wheels)}, epoch)
    texts = {
        **installer(bundle, version, digests),
        "contents.cdx.json": listed.read_bytes(),
        **{f"licenses/{name}": text for wheel in wheels for name, text in licences(wheel)},
    }
    result = work / f"{bundle.name}.tar.xz"
    total = sum(wheel.stat().st_size for wheel in wheels)
    with result.open("wb") as file, bar("packing", total) as progress, archive.XzFile(file) as out:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
            for name, text in sorted(texts.items()):
                _add(tar, f"{bundle.name}/{name}", len(text), io.BytesIO(text), epoch)
            for wheel in sorted(wheels):
                with wheel.open("rb") as content:
                    _add(tar, f"{bundle.name}/wheels/{wheel.name}", wheel.stat().st_size, content, epoch)
                progress.advance(wheel.stat().st_size)
    checksum = work / f"{result.name}.sha256"
    checksum.write_text(f"{cache.sha256_of(result)}  {result.name}\n")
    return [listed, checksum, result]


def _add(tar: tarfile.TarFile, name: str, size: int, content: "IO[bytes]", epoch: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size, epoch
    info.mode = 0o755 if name.endswith(".sh") else 0o644
    tar.addfile(info, content)
