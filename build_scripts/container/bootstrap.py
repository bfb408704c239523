"""A base made with debootstrap from the distribution's packages, where no image registry can be reached.

It holds what docker/packages.txt lists already, with the updates that its archive has, and is kept in the cache under
the hash of what went in: our scripts, and the archive's signed lists of what is current.
"""

import email.utils
import hashlib
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from .. import cache, children
from ..errors import FactoryError
from ..progress import note, step
from . import layers
from .base import FOLDER, Base

SPACE = 2_500_000_000
SCRIPTS = ("packages.txt", "prepare_system.sh", "clean_system.sh")
TIMEOUT = 60


@dataclass(frozen=True)
class Source:
    """One suite of an archive, and its signed list of contents."""

    uri: str
    suite: str
    components: Tuple[str, ...]
    release: bytes

    @property
    def line(self) -> str:
        return f"deb {self.uri} {self.suite} {' '.join(self.components)}"

    @property
    def time(self) -> int:
        """When the archive was last changed, in seconds since 1970."""
        found = re.search(rb"^Date: (.+)$", self.release, re.MULTILINE)
        return int(email.utils.parsedate_to_datetime(found.group(1).decode()).timestamp()) if found else 0


def require_tools(base: Base) -> None:
    """Refuse early where debootstrap cannot work."""
    for program, package in (("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("gpgv", "gpgv")):
        if not shutil.which(program):
            raise FactoryError(
                f"--bootstrap needs {program}, which is not on PATH.",
                f"apt-get install {package}; or use --base IMAGE.",
            )
    if os.geteuid() != 0:
        raise FactoryError("--bootstrap has to be run as root: debootstrap makes a system.", "Or use --base IMAGE.")
    if not Path(base.keyring).is_file():
        raise FactoryError(
            f"The archive's keys are not on this machine: {base.keyring}.",
            f"Install them (apt-get install {Path(base.keyring).stem}); or use --base IMAGE.",
        )


def _host_archives() -> Dict[str, str]:
    """The archive that this machine's apt takes each suite from."""
    if not shutil.which("apt-get"):
        return {}
    command = ["apt-get", "indextargets", "--no-release-info", "--format", "$(RELEASE) $(REPO_URI)"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    pairs = (line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return {suite: uri.strip() for suite, uri in pairs}


def sources(base: Base, mirror: Optional[str]) -> List[Source]:
    """Where the packages come from: ``mirror`` for every suite, else what this machine's apt uses."""
    uris = dict.fromkeys(base.suites, mirror) if mirror else _host_archives()
    if base.suites[0] not in uris:
        raise FactoryError(
            f"This machine's apt has no archive of {base.suites[0]}.",
            "Name one with --mirror URL; or use --base IMAGE.",
        )
    found = []
    for suite in base.suites:
        uri = uris.get(suite)
        if uri is None:
            continue
        if "@" in uri:
            raise FactoryError("The archive's address holds a password, which would stay in the image.", "Use another.")
        url = f"{uri.rstrip('/')}/dists/{suite}/InRelease"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
                found.append(Source(uri, suite, base.components, answer.read()))
        except (urllib.error.URLError, OSError, ValueError) as error:
            if mirror and suite != base.suites[0] and getattr(error, "code", None) == 404:
                note(f"{mirror} has no {suite}; the base is made without it.")
                continue
            raise FactoryError(f"{url} could not be fetched: {error}", "Check the network, or use --mirror.") from error
    return found


def key(base: Base, from_: Sequence[Source]) -> str:
    digest = hashlib.sha256(repr((base, [source.line for source in from_], layers.FORMAT)).encode())
    for name in SCRIPTS:
        digest.update((FOLDER / name).read_bytes())
    digest.update(Path(__file__).read_bytes())
    for source in from_:
        digest.update(source.release)
    return digest.hexdigest()[:20]


def obtain(base: Base, mirror: Optional[str] = None) -> Path:
    """The base's root file system as a tar file, from the cache or made now."""
    require_tools(base)
    suite = base.suites[0]
    from_ = sources(base, mirror)
    final = cache.folder("bases") / f"{suite}-{key(base, from_)}.tar"
    with cache.lock(f"base-{suite}"):
        if cache.whole(final):
            return final
        with cache.work_folder(f"base-{suite}") as work:
            cache.require_space(work, SPACE, f"Making a base of {suite}")
            with step(f"Making a base of {suite} with debootstrap"):
                _make(base, from_, work)
            with step("Packing the base"):
                part = work / "base.tar"
                layers.pack_tree(work / "root", part, max(source.time for source in from_))
            cache.keep(part, final)
        for old in final.parent.glob(f"{suite}-*.tar"):
            if old != final:
                cache.drop(old)
    return final


def _make(base: Base, from_: Sequence[Source], work: Path) -> None:
    root, log = work / "root", work / "log"
    root.mkdir()
    build = root / "opt" / "build"
    # What debootstrap mounts, and what still runs when we are killed, ends with these name spaces.
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    debootstrap = ["debootstrap", "--variant=minbase", "--force-check-gpg", f"--keyring={base.keyring}"]
    debootstrap += [f"--components={','.join(base.components)}", base.suites[0], str(root), from_[0].uri]
    _run([*isolated, *debootstrap], log, {})
    (root / "etc" / "apt" / "sources.list").write_text("".join(f"{source.line}\n" for source in from_))
    build.mkdir(parents=True)
    for name in SCRIPTS:
        shutil.copyfile(str(FOLDER / name), str(build / name))
    prepare = [*isolated, f"--mount-proc={root}/proc", "chroot", str(root), "sh", "/opt/build/prepare_system.sh"]
    _run(prepare, log, {"SOURCE_DATE_EPOCH": str(max(source.time for source in from_))})
    shutil.rmtree(str(build))
    # This machine's own, which debootstrap copies.
    for name in ("etc/resolv.conf", "etc/hostname"):
        (root / name).unlink()


def _run(command: Sequence[str], log: Path, variables: Dict[str, str]) -> None:
    kept = {key: value for key, value in os.environ.items() if key.lower().endswith("_proxy")}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = {**kept, "PATH": path, "LC_ALL": "C", "HOME": "/root", **variables}
    with log.open("a") as out:
        status = children.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment
        ).returncode
    if status:
        text = log.read_text(errors="replace").splitlines()
        # debootstrap keeps what its steps said in a log of its own.
        inner = log.parent / "root" / "debootstrap" / "debootstrap.log"
        if inner.is_file():
            text += inner.read_text(errors="replace").splitlines()[-3:]
        raise FactoryError(
            "Making the base failed: " + "\n    ".join(line for line in text[-8:] if line.strip()),
            "Check the network and the archive (--mirror), or use --base IMAGE.",
        )
