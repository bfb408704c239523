"""METADATA: NVIDIA's packages go, the SDK comes, everything else stays."""

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from build_scripts import releases
from build_scripts.errors import FactoryError
from build_scripts.factory import metadata

from ..small import METADATA


@pytest.fixture
def rewritten(table: releases.Table) -> str:
    release = releases.Release("9.9.0", "12.4", 0, "9.9.0", {"triton": "3.2.0"}, ())
    return metadata.rewrite(METADATA, release, table.sdk, "1.0.0", table.nvidia)


def test_no_requirement_of_nvidia_is_left(rewritten: str, table: releases.Table) -> None:
    names = [requirement.name for requirement in metadata.requirements(rewritten)]
    assert names == ["filelock", "optree", "mxmaca", "triton"]


def test_the_sdk_is_required_in_its_exact_version(rewritten: str) -> None:
    assert Requirement("mxmaca==1.0.0") in metadata.requirements(rewritten)


def test_triton_is_an_extra_of_its_own(rewritten: str) -> None:
    (triton,) = (r for r in metadata.requirements(rewritten) if r.name == "triton")
    assert triton.specifier == SpecifierSet("==3.2.0")
    assert triton.marker is not None
    linux = {"platform_system": "Linux", "platform_machine": "x86_64"}
    assert not triton.marker.evaluate({**linux, "extra": ""})
    assert triton.marker.evaluate({**linux, "extra": "triton"})
    assert "triton" in (metadata.parse(rewritten).get_all("Provides-Extra") or [])


def test_the_version_meets_what_other_packages_ask_for(rewritten: str) -> None:
    version = metadata.parse(rewritten)["Version"]
    assert version == "9.9.0+maca1.0.0"
    assert version in SpecifierSet("==9.9.0")


def test_the_description_stays(rewritten: str) -> None:
    assert rewritten.endswith("\n\nA description: with a colon.\n")
    assert metadata.parse(rewritten)["Requires-Python"] == ">=3.8.0"


def test_a_wheel_of_another_version_is_refused(table: releases.Table) -> None:
    release = releases.Release("9.9.1", "12.4", 0, "9.9.1", {}, ())
    with pytest.raises(FactoryError, match="says version 9.9.0, the table 9.9.1"):
        metadata.rewrite(METADATA, release, table.sdk, "1.0.0", table.nvidia)
