"""The METADATA and WHEEL files of the wheels."""

from email.message import Message
from email.parser import HeaderParser
from fnmatch import fnmatch
from typing import List, Sequence, Tuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import FactoryError
from ..releases import Nvidia, Release, Sdk

GENERATOR = "macatorch build_scripts"


def split(text: str) -> Tuple[List[str], str]:
    """Header lines (folded ones joined as they are) and the body."""
    head, separator, body = text.partition("\n\n")
    return head.split("\n"), separator + body


def parse(text: str) -> Message:
    return HeaderParser().parsestr(text)


def requirements(text: str) -> List[Requirement]:
    return [Requirement(value) for value in parse(text).get_all("Requires-Dist", [])]


def is_nvidia(requirement: Requirement, nvidia: Nvidia) -> bool:
    return any(fnmatch(canonicalize_name(requirement.name), pattern) for pattern in nvidia.requirements)


def torch_version(release: Release, sdk_version: str) -> str:
    return f"{release.torch}+maca{sdk_version}"


def rewrite(text: str, release: Release, sdk: Sdk, sdk_version: str, nvidia: Nvidia) -> str:
    """Upstream's METADATA without NVIDIA's packages, with the SDK; companions become extras of their own name."""
    head, body = split(text)
    result, extras = [], []
    seen_version = False
    for line in head:
        key, _, value = line.partition(":")
        if key == "Version":
            seen_version = True
            if value.strip() != release.torch:
                raise FactoryError(f"Upstream's wheel says version {value.strip()}, the table {release.torch}.")
            line = f"Version: {torch_version(release, sdk_version)}"
        elif key == "Requires-Dist":
            requirement = Requirement(value)
            if is_nvidia(requirement, nvidia):
                continue
            name = canonicalize_name(requirement.name)
            if name in release.companions:
                # Until the companion has a wheel of its own here, nobody gets upstream's unasked.
                extras.append(f"Provides-Extra: {name}")
                condition = f"({requirement.marker}) and " if requirement.marker else ""
                line = f'Requires-Dist: {requirement.name}{requirement.specifier}; {condition}extra == "{name}"'
                extras.append(line)
                continue
        result.append(line)
    if not seen_version:
        raise FactoryError("Upstream's METADATA has no version.")
    result.append(f"Requires-Dist: {sdk.name}=={sdk_version}")
    return "\n".join(result + extras) + body


def wheel_file(tags: Sequence[str]) -> str:
    """The WHEEL file. Never manylinux: nobody has audited these wheels for it."""
    lines = ["Wheel-Version: 1.0", f"Generator: {GENERATOR}", "Root-Is-Purelib: false"]
    return "\n".join(lines + [f"Tag: {tag}" for tag in tags]) + "\n"
