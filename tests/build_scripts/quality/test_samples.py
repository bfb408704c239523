"""NVIDIA's samples: what is taken for samples, what their outcomes are, and the table."""

import tarfile
from pathlib import Path

import pytest

from build_scripts.errors import FactoryError
from build_scripts.quality import samples

PROGRAMS = {
    "good": "#!/bin/sh\necho all right\n",
    "waiving": "#!/bin/sh\necho no second device\nexit 2\n",
    "wrong": "#!/bin/sh\necho 'error in /some/where/cuda-samples/Samples/x.cu'\necho bye\nexit 1\n",
    "slow": "#!/bin/sh\nexec sleep 30\n",
    "choosy": '#!/bin/sh\n[ "$1" = --size=3 ] || exit 1\n',
}
SAID = """[1/2] Building a.o
FAILED: [code=1] Samples/0_Some/missing/CMakeFiles/a.o
nvcc -c a.cu
a.cu:3:5: error: 'textures' was not declared
[2/2] Linking
"""


@pytest.fixture()
def sources(tmp_path: Path) -> Path:
    """A selection of samples without the list of the categories."""
    top = tmp_path / "given" / "cuda-samples"
    (top / "Samples" / "0_Some").mkdir(parents=True)
    (top / "Samples" / "0_Some" / "CMakeLists.txt").write_text("")
    for name in (*PROGRAMS, "missing"):
        (top / "Samples" / "0_Some" / name).mkdir()
        (top / "Samples" / "0_Some" / name / "CMakeLists.txt").write_text("")
    (top / "test_args.json").write_text('{"choosy": {"args": ["--size=3"]}}')
    return top


def outcomes(sources: Path, tmp_path: Path) -> "dict[str, samples.Outcome]":
    for name, text in PROGRAMS.items():
        program = tmp_path / "build" / "Samples" / "0_Some" / name / name
        program.parent.mkdir(parents=True)
        program.write_text(text)
        program.chmod(0o755)
    return {one.name: one for one in samples.run_all(sources, tmp_path / "build", SAID, limit=1)}


def test_a_folder_and_an_archive_are_taken_and_nothing_else(sources: Path, tmp_path: Path) -> None:
    archive = tmp_path / "cuda-samples.tar.xz"
    with tarfile.open(archive, "w:xz") as made:
        made.add(sources, "cuda-samples")
    for given in (sources, archive):
        found = samples.sources_of(given, tmp_path / "work")
        assert (found / "Samples" / "CMakeLists.txt").read_text() == "add_subdirectory(0_Some)\n"
    assert not (sources / "Samples" / "CMakeLists.txt").exists(), "what was given stays as it is"
    for given in (tmp_path / "given", tmp_path / "nowhere"):
        with pytest.raises(FactoryError, match="cuda-samples"):
            samples.sources_of(given, tmp_path / "work")


def test_each_outcome_is_what_the_sample_says_of_itself(sources: Path, tmp_path: Path) -> None:
    found = outcomes(sources, tmp_path)
    assert {name: one.outcome for name, one in found.items()} == {
        "good": "passes",
        "choosy": "passes",
        "waiving": "waives",
        "wrong": "fails",
        "slow": "takes too long",
        "missing": "does not build",
    }
    assert found["missing"].says == "error: 'textures' was not declared"
    assert found["wrong"].says == "error in Samples/x.cu"


def test_reasons_and_outcomes_have_to_agree(sources: Path, tmp_path: Path) -> None:
    found = list(outcomes(sources, tmp_path).values())
    known = {one.name: "known" for one in found if one.outcome != "passes"}
    assert samples.surprises(found, known) == []
    del known["slow"]
    known["good"] = "was wrong once"
    lines = samples.surprises(found, known)
    assert len(lines) == 2 and any("good" in line and "was wrong once" in line for line in lines)
    samples.save(tmp_path / "kept" / "outcomes.json", found)
    assert samples.load(tmp_path / "kept" / "outcomes.json") == found


def test_the_table_stands_between_its_comments(sources: Path, tmp_path: Path) -> None:
    found = list(outcomes(sources, tmp_path).values())
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table samples -->\nold\n<!-- end samples -->\nbehind\n")
    samples.write(page, samples.table(found, {}))
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("<!-- end samples -->\nbehind\n") and "old" not in text
    assert "Of 6 samples: 2 passes, 1 waives" in text
    page.write_text("nothing\n")
    with pytest.raises(FactoryError, match="no place for the samples"):
        samples.write(page, "")


def test_every_reason_is_a_sentence_of_its_own() -> None:
    assert all(len(reason.split()) > 3 for reason in samples.reasons().values())
