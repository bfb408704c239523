"""The METADATA and WHEEL files of the wheels."""

from email.message import Message
from email.parser import HeaderParser
from fnmatch import fnmatch
from typing import Callable, List, Optional, Sequence, Tuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import FactoryError
from ..releases import Companion, Nvidia, Release, Table

GENERATOR = "macatorch build_scripts"


def split(text: str) -> Tuple[List[str], str]:
    """Header lines (folded ones joined as they are) and the body, with the line end before it."""
    head, separator, body = text.partition("\n\n")
    return head.rstrip("\n").split("\n"), separator + body if separator else "\n"


def parse(text: str) -> Message:
    return HeaderParser().parsestr(text)


def requirements(text: str) -> List[Requirement]:
    return [Requirement(value) for value in parse(text).get_all("Requires-Dist", [])]


def is_nvidia(requirement: Requirement, nvidia: Nvidia) -> bool:
    return any(fnmatch(canonicalize_name(requirement.name), pattern) for pattern in nvidia.requirements)


def torch_version(release: Release, sdk_version: str) -> str:
    return local_version(release.torch, sdk_version)


def local_version(version: str, sdk_version: str) -> str:
    """The version of a wheel that is built from upstream's."""
    return f"{version}+maca{sdk_version}"


def companion_version(table: Table, companion: Companion, torch: str, sdk_version: str) -> str:
    """The version of a companion's wheel beside a torch release.

    The label names the release where wheels of one version fit different ones: libraries that were compiled with it,
    and upstream's where several releases have that version beside them, as each wheel requires one torch.
    """
    own = local_version(companion.version, sdk_version)
    if companion.wants_torch and companion.source is None:
        beside = [release for release in table.releases if release.companions.get(companion.name) == companion.version]
        return f"{own}.torch{torch}" if companion.is_given or len(beside) > 1 else own
    return own


def rewrite(text: str, release: Release, table: Table, sdk_version: str) -> str:
    """Upstream's METADATA of torch without NVIDIA's packages, with the SDK.

    Companions that are built here are required in that version; others become extras of their own name, and what the
    release leaves out is gone.
    """
    built = {companion.name for companion in table.built_companions(release) if not companion.wants_torch}
    extras: List[str] = []

    def requirement_line(requirement: Requirement) -> Optional[str]:
        name = canonicalize_name(requirement.name)
        if is_nvidia(requirement, table.nvidia) or name in release.left_out:
            return None
        if name in built:
            marker = f" ; {requirement.marker}" if requirement.marker else ""
            return f"{requirement.name}=={local_version(release.companions[name], sdk_version)}{marker}"
        if name not in release.companions or name in {c.name for c in table.companions if c.wants_torch}:
            return str(requirement)
        # It has no wheel of its own here: nobody gets upstream's unasked.
        extras.append(f"Provides-Extra: {name}")
        condition = f"({requirement.marker}) and " if requirement.marker else ""
        extras.append(f'Requires-Dist: {requirement.name}{requirement.specifier}; {condition}extra == "{name}"')
        return None

    head, body = _rewritten(text, release.torch, torch_version(release, sdk_version), requirement_line)
    return "\n".join([*head, f"Requires-Dist: {table.sdk.name}=={sdk_version}", *extras]) + body


def rewrite_companion(
    text: str,
    version: str,
    table: Table,
    sdk_version: str,
    release: Optional[Release] = None,
    own: Optional[str] = None,
) -> str:
    """Upstream's METADATA of a companion without NVIDIA's packages, with the SDK.

    ``release``: the one that a companion requires, whether it says so or not; it then wants our wheel of it.
    ``own``: its version here, if it says more than the SDK's.
    """

    def requirement_line(requirement: Requirement) -> Optional[str]:
        if release is not None and canonicalize_name(requirement.name) == "torch":
            if not requirement.specifier.contains(release.torch):
                raise FactoryError(f"Upstream's wheel requires {requirement}, the table has torch {release.torch}.")
            return f"torch=={torch_version(release, sdk_version)}"
        return None if is_nvidia(requirement, table.nvidia) else str(requirement)

    if release is not None and all(canonicalize_name(each.name) != "torch" for each in requirements(text)):
        text = with_requirements(text, ["torch"])
    head, body = _rewritten(text, version, own or local_version(version, sdk_version), requirement_line)
    return "\n".join([*head, f"Requires-Dist: {table.sdk.name}=={sdk_version}"]) + body


def _rewritten(
    text: str, version: str, own_version: str, requirement_line: Callable[[Requirement], Optional[str]]
) -> Tuple[List[str], str]:
    """The lines of the head with our version and each requirement as the function has it (None: left out); the body."""
    head, body = split(text)
    result = []
    seen_version = False
    for line in head:
        key, _, value = line.partition(":")
        if key == "Version":
            seen_version = True
            if value.strip() != version:
                raise FactoryError(f"Upstream's wheel says version {value.strip()}, the table {version}.")
            line = f"Version: {own_version}"
        elif key == "Requires-Dist":
            requirement = Requirement(value)
            wanted = requirement_line(requirement)
            if wanted is None:
                continue
            if wanted != str(requirement):
                line = f"Requires-Dist: {wanted}"
        result.append(line)
    if not seen_version:
        raise FactoryError("Upstream's METADATA has no version.")
    return result, body


def with_requirements(text: str, requirements: Sequence[str]) -> str:
    """METADATA with these requirements at the end of its head."""
    head, body = split(text)
    return "\n".join([*head, *(f"Requires-Dist: {requirement}" for requirement in requirements)]) + body


def wheel_file(tags: Sequence[str], pure: bool = False) -> str:
    """The WHEEL file. Never manylinux: nobody has audited these wheels for it."""
    lines = ["Wheel-Version: 1.0", f"Generator: {GENERATOR}", f"Root-Is-Purelib: {str(pure).lower()}"]
    return "\n".join(lines + [f"Tag: {tag}" for tag in tags]) + "\n"
