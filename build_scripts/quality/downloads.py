"""Files that upstream's tests download: from Debian's packages, put where upstream's code looks before it downloads.

So a machine that reaches no more than its package mirrors runs those tests as well. `[downloads]` in files.toml is the
table. What lies in such a place already stays.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, List, Mapping

from .. import cache, children
from ..progress import note


def places_of(entry: Mapping[str, Any]) -> List[Path]:
    """Where upstream's code looks for the file, in one release or another."""
    return [Path(place.format(user=os.getuid(), home=Path.home())) for place in entry["places"]]


def provide(table: Mapping[str, Mapping[str, Any]]) -> None:
    """Put each file of the table in its places. What cannot be had is told, and its test is left to download it."""
    for name, entry in table.items():
        empty = [place for place in places_of(entry) if not place.exists()]
        if not empty:
            continue
        with cache.lock(f"download-{name}"), cache.work_folder(f"download-{name}") as work:
            found = _unpacked(entry["package"], work) / entry["member"]
            if not found.is_file():
                note(f"{name}: apt has no package {entry['package']} with it; a test that downloads it may fail")
                continue
            for place in empty:
                part = work / name
                shutil.copyfile(str(found), str(part))
                part.chmod(0o755)  # what upstream downloads it makes executable
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(str(part), str(place))


def _unpacked(package: str, work: Path) -> Path:
    """The folder with the package's files; empty where apt does not have it."""
    made = work / "root"
    made.mkdir()
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return made
    # apt's own user may not write into the cache folder.
    fetch = ["apt-get", "--quiet", "-o", "APT::Sandbox::User=", "download", package]
    children.run(fetch, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for archive in work.glob("*.deb"):
        children.run(
            ["dpkg-deb", "--extract", str(archive), str(made)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    return made
