"""What the package index has of a project, asked through pip as the user has configured it; nothing is installed.

pip's constraints do not count: they say what may be installed on this machine, and here the question is what exists.
"""

import fnmatch
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from .. import children, python_names
from ..errors import FactoryError
from .upstream import NETWORK_SIGNS

PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux2014", "manylinux_2_17", "manylinux1", "manylinux_2_5")
HEAD_TIMEOUT = 60


@dataclass(frozen=True)
class Found:
    """A wheel of the index."""

    project: str
    version: str
    file: str
    url: str
    sha256: str
    requires: Tuple[str, ...]

    def requirement(self, project: str) -> Optional[Requirement]:
        """What it requires of another project, extras left out."""
        for text in self.requires:
            requirement = Requirement(text)
            in_extra = requirement.marker is not None and "extra" in str(requirement.marker)
            if canonicalize_name(requirement.name) == project and not in_extra:
                return requirement
        return None

    def requires_any(self, patterns: Sequence[str], architecture: str) -> bool:
        """Whether it requires a project of these names (``nvidia-*``) on Linux and that architecture."""
        where = {"platform_machine": architecture, "platform_system": "Linux", "sys_platform": "linux", "extra": ""}
        for requirement in map(Requirement, self.requires):
            here = requirement.marker is None or requirement.marker.evaluate(where)
            name = canonicalize_name(requirement.name)
            if here and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                return True
        return False


class Missing(Exception):
    """The index has no wheel that fits. ``versions``: those that it has for that Python and architecture."""

    def __init__(self, versions: Sequence[str]) -> None:
        super().__init__(", ".join(versions))
        self.versions = list(versions)


def _command(requirement: str, python: str, architecture: str, target: str, report: str) -> List[str]:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--dry-run",
        "--quiet",
        "--no-deps",
    ]
    command += ["--ignore-installed", "--only-binary=:all:", "--target", target, "--report", report]
    command += ["--implementation", "cp", "--python-version", python_names.number(python)]
    for abi in python_names.abis(python):
        command += ["--abi", abi]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_{architecture}"]
    return [*command, requirement]


def _ask(requirement: str, python: str, architecture: str) -> Dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="index-") as folder:
        report = os.path.join(folder, "report.json")
        command = _command(requirement, python, architecture, os.path.join(folder, "target"), report)
        done = children.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "PIP_CONSTRAINT": os.devnull, "LC_ALL": "C"},
        )
        if done.returncode == 0:
            with open(report, encoding="utf-8") as file:
                return dict(json.load(file)["install"][0])
    text = done.stderr
    if "No module named pip" in text:
        raise FactoryError("This Python has no pip.", "Run `python -m ensurepip`, or make a virtual environment.")
    if "no such option" in text:
        raise FactoryError(
            "This pip is too old to be asked.", "Run `python -m pip install --upgrade pip` (22.2 or later)."
        )
    listed = re.search(r"\(from versions: ([^)]*)\)", text)
    offline = any(sign in text for sign in NETWORK_SIGNS)
    if listed is None or (listed.group(1) == "none" and offline):
        raise FactoryError(
            f"The package index could not be asked for {requirement}: {' '.join(text.split())[-300:]}",
            "Check the network and `python -m pip config list`.",
        )
    raise Missing([version for version in listed.group(1).split(", ") if version != "none"])


def _found(entry: Dict[str, Any]) -> Found:
    archive = entry["download_info"]
    metadata = entry["metadata"]
    hashes = archive.get("archive_info", {}).get("hashes", {})
    name = unquote(urlsplit(archive["url"]).path.rsplit("/", 1)[-1])
    if "sha256" not in hashes:
        raise FactoryError(
            f"The index gives no sha256 of {name}.", "Ask an index that does: PEP 503 has it in the link."
        )
    return Found(
        canonicalize_name(metadata["name"]),
        metadata["version"],
        name,
        archive["url"],
        hashes["sha256"],
        tuple(metadata.get("requires_dist", ())),
    )


def find(requirement: str, python: str, architecture: str) -> Found:
    """The newest wheel that a requirement allows. Raises Missing where there is none."""
    return _found(_ask(requirement, python, architecture))


def versions(project: str, python: str, architecture: str) -> List[Version]:
    """The versions of a project that have a wheel for that Python and architecture, newest first, no pre-releases."""
    try:
        found = [Version(find(f"{project}==0", python, architecture).version)]
    except Missing as missing:
        found = [Version(text) for text in missing.versions]
    return sorted((version for version in found if not version.is_prerelease), reverse=True)


def beside(project: str, release: Found, python: str, architecture: str) -> Optional[Found]:
    """The newest wheel of ``project`` that says by its requirement that it takes this release."""
    own = Version(release.version)
    for version in versions(project, python, architecture):
        found = find(f"{project}==={version}", python, architecture)
        wanted = found.requirement(release.project)
        if wanted is None or not wanted.specifier:
            return None
        if wanted.specifier.contains(own):
            return found
        if all(s.operator == "==" and Version(s.version) < own for s in wanted.specifier):
            # Older ones belong to older releases.
            return None
    return None


def link_of(project: str, file: str) -> str:
    """The address of a file that pip lists for a project, as a source distribution, which pip alone would also run."""
    with tempfile.TemporaryDirectory(prefix="index-") as folder:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-vv", "--no-deps"]
        # No such version: pip says what there is, fetches nothing and runs nothing.
        command += ["--no-binary=:all:", "--dest", folder, f"{project}===0+none"]
        done = children.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PIP_CONSTRAINT": os.devnull, "LC_ALL": "C"},
        )
    for match in re.finditer(r"(?:Found link|Skipping link: .*?:) (\S+)", done.stdout):
        if unquote(urlsplit(match.group(1)).path.rsplit("/", 1)[-1]) == file:
            return match.group(1).split("#", 1)[0]
    offline = any(sign in done.stdout for sign in NETWORK_SIGNS)
    raise FactoryError(
        f"{file} could not be found: "
        + ("no connection to pip's index." if offline else "pip's index does not list it."),
        "Check the network and `python -m pip config list`, or fetch it elsewhere and pass its folder with --from.",
    )


def fetch(url: str, target: Path) -> None:
    """Fetch a file of the index."""
    try:
        with urllib.request.urlopen(url, timeout=HEAD_TIMEOUT, context=_certificates()) as answer:
            with target.open("wb") as file:
                shutil.copyfileobj(answer, file)
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise FactoryError(
            f"{target.name} could not be fetched: {error}",
            "Check the network, or fetch it elsewhere and pass its folder with --from.",
        ) from error


def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)


def size_of(found: Found) -> Optional[int]:
    """The size of a file of the index, without fetching it; None where its server does not say."""
    request = urllib.request.Request(found.url, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=HEAD_TIMEOUT, context=_certificates()) as answer:
            length = answer.headers.get("Content-Length")
            return int(length) if length else None
    except (OSError, urllib.error.URLError, ValueError):
        return None
