"""What upstream's tests download comes from a package, and never takes the place of what is there."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict

import pytest

from build_scripts.quality import downloads

CONTROL = "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: a tool\n"
# An apt that has this one package: it puts it into the folder that it is called in.
APT = '#!/bin/sh\nfor package in "$@"; do :; done\n[ "$package" = tool ] && cp "{archive}" .\n'


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dict[str, Dict[str, Any]]:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs dpkg-deb")
    root, programs = tmp_path / "root", tmp_path / "bin"
    for folder in (root / "DEBIAN", root / "usr" / "share", programs):
        folder.mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(CONTROL)
    (root / "usr" / "share" / "script.pl").write_text("print 1;\n")
    archive = tmp_path / "tool.deb"
    subprocess.run(["dpkg-deb", "--build", str(root), str(archive)], check=True, stdout=subprocess.DEVNULL)
    (programs / "apt-get").write_text(APT.format(archive=archive))
    (programs / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    member = "usr/share/script.pl"
    return {
        "script.pl": {
            "package": "tool",
            "member": member,
            "places": [str(tmp_path / "{user}_script.pl"), str(tmp_path / "more" / "script.pl")],
        }
    }


def test_a_file_is_put_where_it_is_looked_for(table: Dict[str, Dict[str, Any]]) -> None:
    downloads.provide(table)
    place = downloads.places_of(table["script.pl"])[0]
    assert place.read_text() == "print 1;\n" and "{" not in place.name
    assert os.access(place, os.X_OK)
    assert downloads.places_of(table["script.pl"])[1].read_text() == "print 1;\n"


def test_what_is_there_stays(table: Dict[str, Dict[str, Any]]) -> None:
    downloads.places_of(table["script.pl"])[0].write_text("of the user\n")
    downloads.provide(table)
    assert downloads.places_of(table["script.pl"])[0].read_text() == "of the user\n"


@pytest.mark.parametrize("change", [{"package": "another"}, {"member": "usr/share/other.pl"}])
def test_what_cannot_be_had_is_told(
    table: Dict[str, Dict[str, Any]], change: Dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    table["script.pl"].update(change)
    downloads.provide(table)
    assert not downloads.places_of(table["script.pl"])[0].exists()
    assert "script.pl: apt has no package" in "".join(capsys.readouterr())
