"""The list of what an image or a bundle holds, as CycloneDX has it: the distribution's packages and the system's."""

import email.parser
import tarfile
import uuid
from datetime import datetime, timezone
from email.message import Message
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

from ..errors import FactoryError
from ..factory.wheel import WheelReader
from .base import Base

try:
    from cyclonedx.factory.license import LicenseFactory
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion
    from packageurl import PackageURL
except ImportError:  # said by require()
    Bom = None  # type: ignore[assignment,misc]

DPKG = "var/lib/dpkg/status"
PYTHON = "usr/local/lib/"


def require() -> None:
    if Bom is None:
        raise FactoryError(
            "cyclonedx-python-lib is not installed.",
            "python -m pip install -r requirements/image.txt, or `make image`.",
        )


def read(layer: Path) -> "Dict[str, List[Message]]":
    """What is installed in a layer: the records of its Debian packages (``deb``) and Python packages (``pypi``)."""
    found: Dict[str, List[Message]] = {"deb": [], "pypi": []}
    parser = email.parser.Parser()
    with tarfile.open(str(layer)) as archive:
        for member in archive:
            system = member.name == DPKG
            package = member.name.startswith(PYTHON) and member.name.endswith(".dist-info/METADATA")
            content = archive.extractfile(member) if system or package else None
            if content is None:
                continue
            text = content.read().decode("utf-8", "replace")
            if package:
                found["pypi"].append(parser.parsestr(text, headersonly=True))
                continue
            records = (parser.parsestr(record, headersonly=True) for record in text.split("\n\n") if record.strip())
            found["deb"] += [record for record in records if str(record["Status"]).endswith(" installed")]
    return found


def _licences(record: Message) -> Iterator[Any]:
    """A Python package's licence: SPDX where it is one, else the name it gives; long texts say nothing to a list."""
    stated = record["License-Expression"] or record["License"] or ""
    classified = [
        str(line).split("::")[-1].strip() for line in record.get_all("Classifier", []) if "License ::" in line
    ]
    text = str(stated).strip() if stated and "\n" not in str(stated) and len(str(stated)) < 80 else ""
    text = text or " OR ".join(classified[:1])
    if text and text != "UNKNOWN":
        yield LicenseFactory().make_from_string(text)


def write(
    path: Path,
    name: str,
    version: str,
    base: Base,
    packed: Sequence[Path],
    digests: Sequence[str],
    sources: Dict[str, str],
    epoch: int,
) -> int:
    """Write the list. ``digests`` are the layers'; ``sources`` gives the sha256 of the wheel that a Python package, as
    ``name-version``, came from. Returns how many packages it names."""
    components = []
    for layer in packed:
        found = read(layer)
        for record in found["deb"]:
            qualifiers = {"arch": record["Architecture"], "distro": f"{base.id}-{base.version}"}
            purl = PackageURL("deb", base.id, record["Package"], record["Version"], qualifiers)
            components.append(_component(record["Package"], record["Version"], purl, ComponentType.LIBRARY))
        for record in found["pypi"]:
            key = f"{record['Name'].lower().replace('-', '_').replace('.', '_')}-{record['Version']}"
            components.append(_package(record, sources.get(key, "")))
    image = Component(name=name, version=version, type=ComponentType.CONTAINER, bom_ref=f"{name}:{version}")
    image.properties.update(Property(name=f"layer:{n}", value=digest) for n, digest in enumerate(digests))
    _output(path, image, components, digests, epoch)
    return len(components)


def write_wheels(path: Path, name: str, version: str, wheels: Dict[Path, str], epoch: int) -> None:
    """Write the list of an archive of wheels. ``wheels`` gives each one's sha256."""
    components = []
    for wheel, digest in wheels.items():
        with WheelReader(wheel) as reader:
            text = reader.read(f"{reader.dist_info}/METADATA").decode("utf-8", "replace")
        components.append(_package(email.parser.Parser().parsestr(text, headersonly=True), digest))
    archive = Component(name=name, version=version, type=ComponentType.FILE, bom_ref=name)
    _output(path, archive, components, list(wheels.values()), epoch)


def _package(record: Message, digest: str) -> Any:
    """A Python package by its metadata and the sha256 of its wheel, empty where that is not known."""
    purl = PackageURL("pypi", None, record["Name"].lower().replace("_", "-"), record["Version"])
    component = _component(record["Name"], record["Version"], purl, ComponentType.LIBRARY)
    component.licenses.update(_licences(record))
    if digest:
        component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
    return component


def _output(path: Path, whole: Any, components: List[Any], digests: Sequence[str], epoch: int) -> None:
    # The number and the time follow from the content: the same content has the same list.
    number = uuid.uuid5(uuid.NAMESPACE_OID, " ".join(digests))
    bom = Bom(components=components, serial_number=number)
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    bom.register_dependency(whole, components)
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_5).output_as_string(indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _component(name: str, version: str, purl: Any, kind: Any) -> Any:
    return Component(name=name, version=version, purl=purl, type=kind, bom_ref=str(purl))
