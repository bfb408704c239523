"""METADATA: NVIDIA's packages go, the SDK comes, everything else stays."""

import dataclasses

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from build_scripts import releases
from build_scripts.errors import FactoryError
from build_scripts.factory import metadata

from ..small import METADATA

RELEASE = releases.Release("9.9.0", "12.4", 0, "9.9.0", {"triton": "3.2.0"}, (), "3.10")
LINUX = {"platform_system": "Linux", "platform_machine": "x86_64"}


@pytest.fixture
def rewritten(table: releases.Table) -> str:
    """METADATA of a release whose companions are not built here."""
    return metadata.rewrite(METADATA, RELEASE, dataclasses.replace(table, companions=()), "1.0.0")


def test_no_requirement_of_nvidia_is_left(rewritten: str, table: releases.Table) -> None:
    names = [requirement.name for requirement in metadata.requirements(rewritten)]
    assert names == ["filelock", "optree", "mxmaca", "triton"]


def test_the_sdk_is_required_in_its_exact_version(rewritten: str) -> None:
    assert Requirement("mxmaca==1.0.0") in metadata.requirements(rewritten)


def test_a_companion_that_is_built_here_is_required_in_our_version(table: releases.Table) -> None:
    wheel = releases.UpstreamWheel("3.2.0", "3.10", "triton-3.2.0-cp310-cp310-linux_x86_64.whl", 1, "0" * 64, "triton")
    row = releases.Companion("triton", "3.2.0", (), (wheel,))
    text = metadata.rewrite(METADATA, RELEASE, dataclasses.replace(table, companions=(row,)), "1.0.0")
    (triton,) = (r for r in metadata.requirements(text) if r.name == "triton")
    assert triton.specifier == SpecifierSet("==3.2.0+maca1.0.0")
    assert triton.marker is not None
    assert triton.marker.evaluate({**LINUX, "extra": ""})
    assert not triton.marker.evaluate({**LINUX, "platform_system": "Windows", "extra": ""})
    assert "triton" not in (metadata.parse(text).get_all("Provides-Extra") or [])


def test_a_companions_own_metadata_requires_the_sdk(table: releases.Table) -> None:
    head = "Metadata-Version: 2.1\nName: triton\nVersion: 3.2.0\nRequires-Dist: lit ; extra == 'build'\n"
    for body in ("", "\nA description.\n"):
        text = metadata.rewrite_companion(head + body, "3.2.0", table, "1.0.0")
        assert metadata.parse(text)["Version"] == "3.2.0+maca1.0.0"
        assert [r.name for r in metadata.requirements(text)] == ["lit", "mxmaca"]
        assert text.endswith(body or "mxmaca==1.0.0\n")


def test_a_companion_that_is_not_built_here_is_an_extra_of_its_own(rewritten: str) -> None:
    (triton,) = (r for r in metadata.requirements(rewritten) if r.name == "triton")
    assert triton.specifier == SpecifierSet("==3.2.0")
    assert triton.marker is not None
    assert not triton.marker.evaluate({**LINUX, "extra": ""})
    assert triton.marker.evaluate({**LINUX, "extra": "triton"})
    assert "triton" in (metadata.parse(rewritten).get_all("Provides-Extra") or [])


def test_what_the_release_leaves_out_is_not_even_an_extra(table: releases.Table) -> None:
    release = dataclasses.replace(RELEASE, companions={}, left_out=("triton",))
    text = metadata.rewrite(METADATA, release, table, "1.0.0")
    assert [requirement.name for requirement in metadata.requirements(text)] == ["filelock", "optree", "mxmaca"]
    assert "triton" not in (metadata.parse(text).get_all("Provides-Extra") or [])


def test_the_version_meets_what_other_packages_ask_for(rewritten: str) -> None:
    version = metadata.parse(rewritten)["Version"]
    assert version == "9.9.0+maca1.0.0"
    assert version in SpecifierSet("==9.9.0")


def test_the_description_stays(rewritten: str) -> None:
    assert rewritten.endswith("\n\nA description: with a colon.\n")
    assert metadata.parse(rewritten)["Requires-Python"] == ">=3.8.0"


def test_a_wheel_of_another_version_is_refused(table: releases.Table) -> None:
    release = releases.Release("9.9.1", "12.4", 0, "9.9.1", {}, (), "3.10")
    with pytest.raises(FactoryError, match="says version 9.9.0, the table 9.9.1"):
        metadata.rewrite(METADATA, release, table, "1.0.0")
