"""The conformity run survives whatever a test does, resumes, and its list of expected failures has reasons."""

import argparse
import dataclasses
import shutil
import sys
import threading
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from build_scripts import releases
from build_scripts.commands import conformity as command
from build_scripts.errors import FactoryError
from build_scripts.products import distribution
from build_scripts.progress import bar
from build_scripts.quality import conformity, conformity_report, upstream_tests

SUITE = """
import os, signal, subprocess, sys, time, unittest


class TestThing(unittest.TestCase):
    def test_a_passes(self):
        pass

    def test_b_fails(self):
        self.assertEqual(1, 2)

    def test_c_crashes(self):
        os.kill(os.getpid(), signal.SIGSEGV)

    def test_d_is_skipped(self):
        self.skipTest("not today")

    def test_e_hangs(self):
        # With a child that would outlive a kill of its parent alone.
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        time.sleep(60)

    @unittest.expectedFailure
    def test_f_is_expected_to_fail(self):
        self.assertEqual(1, 2)

    @unittest.expectedFailure
    def test_g_passes_unexpectedly(self):
        pass

    def test_h_ends_the_process(self):
        os._exit(0)

    def test_i_passes_as_the_last(self):
        pass
"""
# A program as upstream's are: each of its ranks runs the tests. What they wait for is a file of the other one.
PROGRAM = """
import os, pathlib, signal, sys, time

RANK = int(os.environ["RANK"])


def meet(name):
    pathlib.Path(f"{name}.{RANK}").touch()
    while not all(pathlib.Path(f"{name}.{rank}").exists() for rank in range(int(os.environ["WORLD_SIZE"]))):
        time.sleep(0.01)


def test_a_meets():
    meet("a")


def test_b_fails_on_one():
    assert RANK == 0


def test_c_fails_where_the_other_waits():
    assert RANK == 1
    meet("c")


def test_d_crashes_on_one():
    if RANK:
        os.kill(os.getpid(), signal.SIGSEGV)
    meet("d")


def test_e_is_skipped_on_one():
    if RANK:
        import pytest

        pytest.skip("not here")


def test_f_ends_one():
    if RANK:
        os._exit(0)
    meet("f")


def test_g_meets_at_last():
    meet("g")


if __name__ == "__main__":
    import pytest

    assert sys.argv[1:] == ["--use-pytest"]
    sys.exit(pytest.main([__file__]))
"""
OUTCOMES = {
    "test_a_passes": "passed",
    "test_b_fails": "failed",
    "test_c_crashes": "crashed",
    "test_d_is_skipped": "skipped",
    "test_e_hangs": "timeout",
    "test_f_is_expected_to_fail": "expected failure",
    "test_g_passes_unexpectedly": "unexpected success",
    "test_h_ends_the_process": "crashed",
    "test_i_passes_as_the_last": "passed",
}


def settings(tmp_path: Path, timeout: float = 600, failed: bool = False, text: str = SUITE) -> conformity.Settings:
    upstream = tmp_path / "upstream"
    upstream.mkdir(exist_ok=True)
    (upstream / "test_thing.py").write_text(text)
    return conformity.Settings(Path(sys.executable), tmp_path / "results", upstream, {}, (), timeout, failed)


def run(given: conformity.Settings, shard: str = "1/1", jobs: int = 1) -> Dict[str, str]:
    units = conformity.split(["test_thing.py"], shard, jobs)
    with bar("tests", None, "test") as shown:
        conformity.run(units, given, jobs, conformity.Progress(shown))
    found = conformity.outcomes(conformity.folder_of(given.results, "test_thing.py"))
    return {name.split("::")[-1]: row["outcome"] for name, row in found.items()}


def test_a_crash_or_a_hang_costs_one_test(tmp_path: Path) -> None:
    assert run(settings(tmp_path, timeout=4), jobs=2) == OUTCOMES


def test_a_crash_is_recorded_with_its_traceback(tmp_path: Path) -> None:
    given = settings(tmp_path, timeout=4, text=SUITE.replace("time.sleep(60)", "pass"))
    run(given)
    rows = conformity.outcomes(conformity.folder_of(given.results, "test_thing.py"))
    crash = next(row for name, row in rows.items() if name.endswith("test_c_crashes"))
    assert "Segmentation fault" in crash["message"] and "test_c_crashes" in crash["message"]


def test_a_resumed_run_runs_only_what_is_left(tmp_path: Path) -> None:
    given = settings(tmp_path, text="def test_a(): pass\ndef test_b(): pass\n")
    assert run(given) == {"test_a": "passed", "test_b": "passed"}
    log = given.upstream / "ran"  # type: ignore[operator]
    settings(tmp_path, text=f"def test_a(): open({str(log)!r}, 'w')\ndef test_b(): pass\ndef test_c(): pass\n")
    assert run(given) == {"test_a": "passed", "test_b": "passed", "test_c": "passed"}
    assert not log.exists()


def test_a_record_cut_off_in_the_middle_of_a_line_is_mended(tmp_path: Path) -> None:
    given = settings(tmp_path, text="def test_a(): pass\n")
    run(given)
    record = conformity.Unit("test_thing.py", "1/1").record(given.results)
    record.write_text('{"test": "test_thing.py::test_a", "outco')
    assert run(given) == {"test_a": "passed"}


def test_shards_are_disjoint_and_complete(tmp_path: Path) -> None:
    text = "".join(f"def test_{n}(): pass\n" for n in range(40))
    sizes = []
    for part in (1, 2, 3):
        given = settings(tmp_path / str(part) if (tmp_path / str(part)).mkdir() else tmp_path / str(part), text=text)
        sizes.append(set(run(given, f"{part}/3")))
    assert all(sizes) and sum(map(len, sizes)) == 40 and len(set.union(*sizes)) == 40


def test_a_run_of_limited_time_takes_a_sample_and_goes_on_from_there(tmp_path: Path) -> None:
    text = "import time\n" + "".join(f"def test_{n}(): time.sleep(0.02)\n" for n in range(200))
    given = dataclasses.replace(settings(tmp_path, text=text), seconds=2.0)
    first = run(given)
    assert 10 < len(first) < 200
    numbers = [int(name.partition("_")[2]) for name in first]
    # Any beginning of the order is spread over the file.
    assert min(numbers) < 40 and max(numbers) >= 160
    assert run(dataclasses.replace(given, seconds=None)).items() > first.items()
    assert len(run(given)) == 200


def test_a_file_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    given = settings(tmp_path)
    limited = dataclasses.replace(given, limits={"inductor/test_thing.py": 7.0})
    assert (limited.seconds_of("inductor/test_thing.py"), limited.seconds_of("test_thing.py")) == (7.0, None)
    assert dataclasses.replace(limited, seconds=3.0).seconds_of("inductor/test_thing.py") == 3.0


def test_what_is_left_out_counts_as_not_there(tmp_path: Path) -> None:
    text = "class TestCpuThing:\n def test_a(self): assert False\nclass TestGpu:\n def test_Cpu_b(self): pass\n"
    given = dataclasses.replace(settings(tmp_path, text=text), leave_out=["*::*Cpu*::*"])
    assert run(given) == {"test_Cpu_b": "passed"}
    assert conformity.collected(conformity.folder_of(given.results, "test_thing.py")) == 1


def test_a_file_with_several_ranks_has_its_devices(tmp_path: Path) -> None:
    text = "import os\ndef test_devices(): assert os.environ['MACA_DEVICE_COUNT'] == '3'\n"
    given = settings(tmp_path, text=text)
    assert run(dataclasses.replace(given, devices={"test_thing.py": 3})) == {"test_devices": "passed"}


def test_a_file_may_have_variables_of_its_own(tmp_path: Path) -> None:
    text = "import os\ndef test_memory(): assert os.environ['MACA_DEVICE_MEMORY'] == '9GiB'\n"
    given = dataclasses.replace(settings(tmp_path, text=text), variables={"MACA_DEVICE_MEMORY": "6GiB"})
    assert run(dataclasses.replace(given, file_variables={"test_thing.py": {"MACA_DEVICE_MEMORY": "9GiB"}})) == {
        "test_memory": "passed"
    }


def test_a_file_may_call_commands_of_the_toolkit(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cuobjdump").write_text("#!/bin/sh\necho there\n")
    (tools / "cuobjdump").chmod(0o755)
    text = "import subprocess\ndef test_tool(): assert subprocess.check_output(['cuobjdump']) == b'there\\n'\n"
    given = dataclasses.replace(settings(tmp_path, text=text), tools=tools)
    assert run(given) == {"test_tool": "failed"}
    shutil.rmtree(given.results)
    assert run(dataclasses.replace(given, call_tools=["test_thing.py"])) == {"test_tool": "passed"}


def test_a_limited_file_may_keep_its_order(tmp_path: Path) -> None:
    names = [f"test_{number:02}" for number in range(40)]
    text = "ran = []\n"
    text += "".join(f"def {name}():\n    ran.append({name!r})\n    assert ran == sorted(ran)\n" for name in names)
    given = dataclasses.replace(settings(tmp_path, text=text), limits={"test_thing.py": 600.0})
    assert "failed" in run(given).values()
    shutil.rmtree(given.results)
    ordered = dataclasses.replace(given, in_order=["test_thing.py"])
    assert run(ordered) == dict.fromkeys(names, "passed")


def test_a_file_may_do_what_it_does_as_a_program(tmp_path: Path) -> None:
    text = "chosen = []\ndef run_tests(): raise AssertionError('pytest runs them')\n"
    text += "def test_choice(): assert chosen == ['expandable']\n"
    text += "if __name__ == '__main__':\n    chosen.append('expandable')\n    run_tests()\n"
    given = settings(tmp_path, text=text)
    assert run(given) == {"test_choice": "failed"}
    shutil.rmtree(given.results)
    assert run(dataclasses.replace(given, as_main=["test_thing.py"])) == {"test_choice": "passed"}


def test_what_fails_among_the_others_may_pass_by_itself_and_says_so(tmp_path: Path) -> None:
    text = "left = []\ndef test_a(): left.append(1)\ndef test_b(): assert not left\ndef test_c(): assert False\n"
    given = settings(tmp_path, text=text)
    assert run(given) == {"test_a": "passed", "test_b": "failed", "test_c": "failed"}
    shutil.rmtree(given.results)
    given = dataclasses.replace(given, once_more=["test_thing.py"])
    assert run(given) == {"test_a": "passed", "test_b": "passed", "test_c": "failed"}
    summary = conformity_report.summarise("2.6.0", given.results, ["test_thing.py"], [])
    assert summary.by_itself == 1 and summary.total["passed"] == 2 and summary.total["failed"] == 1


def test_a_file_may_have_folders_which_each_process_finds_empty(tmp_path: Path) -> None:
    text = "import os\nfrom pathlib import Path\n"
    for name in "ab":
        text += f"def test_{name}():\n    folder = Path(os.environ['TEMP_DIR'])\n"
        text += "    assert os.listdir(folder) == ['barrier'] and not os.listdir(folder / 'barrier')\n"
        text += "    (folder / 'barrier' / 'left').touch()\n"
    given = dataclasses.replace(settings(tmp_path, text=text), alone=["test_thing.py"])
    given = dataclasses.replace(given, file_folders={"test_thing.py": ["barrier"]})
    assert run(given) == {"test_a": "passed", "test_b": "passed"}


def test_files_that_a_release_does_not_have_are_left_out_unless_named(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").touch()
    files = ["test_here.py", "test_there.py", "sweep", "test_named.py"]
    assert command.there_are(files, tmp_path, ["test_named.py"]) == ["test_here.py", "sweep", "test_named.py"]


def test_a_name_that_is_nearly_right_gets_a_hint() -> None:
    release = next(release for release in releases.load().releases if release.tests is not None)
    for name, hint in (
        ("test_foreach", "Did you mean test_foreach.py"),
        ("qqq", "Choose from: sweep, fuzz, test_foreach"),
    ):
        with pytest.raises(FactoryError) as raised:
            command.chosen_files([name], ["test_foreach.py", "test_ops.py"], release)
        assert f"--only {name}: there is no such file." in str(raised.value) and hint in str(raised.value)


def test_each_file_is_listed_once_with_one_number_of_devices() -> None:
    table = command.tomllib.loads((conformity.TESTS / "files.toml").read_text(encoding="utf-8"))
    listed = [*table["files"], *(file for group in table["groups"].values() for file in group["files"])]
    numbered = [file for files in table["devices"].values() for file in files]
    assert len(set(listed)) == len(listed) and len(set(numbered)) == len(numbered)
    known = [*numbered, *table["alone"], *table["in_order"], *table["call_tools"], *table["programs"]]
    known += [*table["as_main"], *table["once_more"], *table["file_variables"], *table["file_folders"]]
    assert set(known) <= set(listed) and set(table["programs"]) <= set(numbered)
    assert all(int(number) > 1 for number in table["devices"])


def test_a_number_of_devices_holds_for_every_file() -> None:
    table = {"2": ["test_a.py"], "4": ["test_b.py"]}
    assert command._devices(table, ["test_c.py"], None) == {"test_a.py": 2, "test_b.py": 4}
    assert command._devices(table, ["test_a.py", "test_c.py"], 8) == {"test_a.py": 8, "test_c.py": 8}
    with pytest.raises(FactoryError, match="--devices 0"):
        command._devices(table, ["test_a.py"], 0)


def program(tmp_path: Path, text: str) -> conformity.Settings:
    given = settings(tmp_path, timeout=6, text=text)
    return dataclasses.replace(given, devices={"test_thing.py": 2}, programs=["test_thing.py"])


def test_a_test_of_a_program_has_the_worst_outcome_of_its_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformity, "GRACE", 1.0)
    given = program(tmp_path, PROGRAM)
    assert run(given) == {
        "test_a_meets": "passed",
        "test_b_fails_on_one": "failed",
        "test_c_fails_where_the_other_waits": "failed",
        "test_d_crashes_on_one": "crashed",
        "test_e_is_skipped_on_one": "skipped",
        "test_f_ends_one": "timeout",
        "test_g_meets_at_last": "passed",
    }
    rows = conformity.outcomes(conformity.folder_of(given.results, "test_thing.py"))
    messages = {name.split("::")[-1]: row["message"] for name, row in rows.items()}
    assert messages["test_b_fails_on_one"].startswith("rank 1: ")
    assert "rank 0: " in messages["test_c_fails_where_the_other_waits"]
    assert "rank 1: no outcome 1 s later" in messages["test_c_fails_where_the_other_waits"]


def test_a_rank_may_crash_before_another_has_begun(tmp_path: Path) -> None:
    late = "if RANK == 0:\n    time.sleep(2)\n"
    text = PROGRAM.replace("\n\n\ndef meet(name):", f"\n{late}\n\ndef meet(name):", 1)
    found = run(program(tmp_path, text))
    assert found["test_d_crashes_on_one"] == "crashed" and found["test_g_meets_at_last"] == "passed"
    assert not [name for name in found if "import" in name]


def test_a_program_takes_its_time_and_goes_on_from_there(tmp_path: Path) -> None:
    main = PROGRAM[PROGRAM.index("if __name__") :]
    # However fast the machine, the first test ends after the time, which no start of an interpreter takes.
    tests = "".join(f"def test_{n}(): time.sleep(0.6)\n" for n in range(4))
    given = program(tmp_path, f"import sys, time\n{tests}\n{main}")
    assert len(run(dataclasses.replace(given, seconds=0.5))) == 1
    assert set(run(given).values()) == {"passed"} and len(run(given)) == 4


def test_ranks_that_run_different_tests_and_a_program_that_runs_none_are_failures(tmp_path: Path) -> None:
    main = PROGRAM[PROGRAM.index("if __name__") :]
    text = f"import os, sys\nexec(f'def test_{{os.environ[\"RANK\"]}}(): pass')\n{main}"
    assert run(program(tmp_path, text)) == {"test_0": "failed", "test_1": "failed"}
    (tmp_path / "none").mkdir()
    assert run(program(tmp_path / "none", "import sys\nsys.exit(0)\n")) == {"test_thing.py (import)": "failed"}


LEAVES_CIRCLES = """
import gc, unittest, weakref
gc.disable()
alive = weakref.WeakSet()
class Node:
    def __init__(self):
        self.own = self
        alive.add(self)
class TestFirst(unittest.TestCase):
    pass
class TestSecond(unittest.TestCase):
    pass
for number in range(40):
    setattr(TestFirst, f"test_{number}", lambda self: Node() and None)
    setattr(TestSecond, f"test_second_{number}", lambda self: self.assertEqual(len(alive), 0))
"""


def test_samples_do_not_bring_to_a_class_what_another_has_left(tmp_path: Path) -> None:
    given = settings(tmp_path, text=LEAVES_CIRCLES)
    found = run(dataclasses.replace(given, seconds=600))
    assert len(found) == 80 and set(found.values()) == {"passed"}


def test_a_file_that_cannot_be_imported_is_a_failure(tmp_path: Path) -> None:
    found = run(settings(tmp_path, text="import nothing_of_that_name\n"))
    assert list(found.values()) == ["failed"]


def test_a_run_does_not_take_away_the_outcomes_of_one_that_goes_on(tmp_path: Path) -> None:
    unit = conformity.Unit("test_thing.py", "1/1")
    record = unit.record(tmp_path)
    record.parent.mkdir(parents=True)
    record.write_text("{}\n")
    second = threading.Thread(target=command.forget, args=([unit], tmp_path))
    with conformity.turn_of(unit, tmp_path):
        second.start()
        second.join(0.5)
        assert record.exists() and second.is_alive()
    second.join()
    assert not record.exists()


def test_failed_tests_are_run_again_with_other_wheels(tmp_path: Path) -> None:
    first = settings(tmp_path, text="def test_a(): pass\ndef test_b(): assert False\n")
    assert run(first) == {"test_a": "passed", "test_b": "failed"}
    settings(tmp_path, text="def test_a(): assert False\ndef test_b(): pass\n")
    runs = tmp_path / "runs"
    first.results.rename(runs / "old") if runs.mkdir() is None else None
    command.carry_over(["test_thing.py"], runs / "new")
    again = conformity.Settings(first.program, runs / "new", first.upstream, {}, (), 600, True)
    assert run(again) == {"test_a": "passed", "test_b": "passed"}
    summary = conformity_report.summarise("1.0", again.results, ["test_thing.py"], [])
    assert summary.kept == 1 and summary.total["passed"] == 2


def test_a_failure_that_was_not_run_again_counts_as_failed(tmp_path: Path) -> None:
    old = conformity.folder_of(tmp_path / "old", "test_thing.py")
    old.mkdir(parents=True)
    for name, outcome in (("t::a", "passed"), ("t::b", "failed")):
        conformity.append(old / "1-of-1.jsonl", test=name, outcome=outcome, message="m", seconds=0.0)
    for _ in range(2):
        # The second time, what is newest knows the failure only as something to do.
        assert command.carry_over(["test_thing.py"], tmp_path / "new") == ["test_thing.py"]
    total = conformity_report.summarise("1.0", tmp_path / "new", ["test_thing.py"], []).total
    assert (total["passed"], total["failed"]) == (1, 1)


def summary_of(outcomes: List[Tuple[str, str]], tmp_path: Path) -> conformity_report.Summary:
    folder = conformity.folder_of(tmp_path, "test_thing.py")
    folder.mkdir()
    record = folder / "1-of-1.jsonl"
    conformity.append(record, collected=len(outcomes), selected=len(outcomes), left=len(outcomes))
    for name, outcome in outcomes:
        conformity.append(record, test=name, outcome=outcome, message="m", seconds=0.0)
    known = conformity_report.Expected(("t::expected*",), "missing", "Not there.", ("1.0",))
    return conformity_report.summarise("1.0", tmp_path, ["test_thing.py"], [known])


def test_a_crash_and_a_missing_kernel_are_never_expected(tmp_path: Path) -> None:
    names = [("t::expected_1", "failed"), ("t::expected_2", "crashed"), ("t::expected_3", "missing kernel")]
    summary = summary_of(
        [*names, ("t::passes", "passed"), ("t::skip", "skipped"), ("t::ours", "skipped by us")], tmp_path
    )
    assert summary.total["failed"] == 3 and summary.total["as expected"] == 1
    assert [line.split(":")[0] for line in summary.files[0].surprises] == ["crashed", "missing kernel"]
    assert conformity_report.share(summary.total) == "20.00 %"


def test_the_table_is_written_between_its_marks_and_says_what_part_was_run(tmp_path: Path) -> None:
    summary = summary_of([("t::passes", "passed")], tmp_path)
    summary.files[0].counts["collected"] = 4
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table 1.0 -->\nold\n<!-- end 1.0 -->\nafter\n")
    conformity_report.write(page, summary)
    text = page.read_text()
    assert "old" not in text and text.startswith("before\n") and text.endswith("after\n") and "1 (25 %)" in text


def test_a_row_of_the_document_stays_where_it_knows_more(tmp_path: Path) -> None:
    page = tmp_path / "conformity.md"
    page.write_text("<!-- table 2.6.0 --><!-- end 2.6.0 -->")
    counts = dict.fromkeys(conformity_report.COLUMNS, 0)

    def write(wheels: str, **run: int) -> str:
        rows = [
            conformity_report.FileSummary(f"{file}.py", {**counts, "collected": 100, "run": number, "passed": number})
            for file, number in run.items()
        ]
        conformity_report.write(page, conformity_report.Summary("2.6.0", wheels, rows))
        return page.read_text()

    write("first", test_a=100, test_b=50, test_c=50)
    text = write("second", test_c=50, test_b=60, test_a=99, test_d=7)
    assert [line.split("|")[1:4] for line in text.splitlines() if line.startswith("| test_")] == [
        [" test_a.py † ", " 100 ", " 100 "],
        [" test_b.py ", " 100 ", " 60 (60 %) "],
        [" test_c.py ", " 100 ", " 50 (50 %) "],
        [" test_d.py ", " 100 ", " 7 (7 %) "],
    ]
    assert "| all | 400 | 217 (54 %) | 217 |" in text
    assert "Wheels `second`. Rows with † are of earlier wheels and another cache." in text
    assert write("third", test_a=100).count("†") == 4, "three rows and the sentence"


def test_what_was_not_run_whole_is_never_a_hundred_percent(tmp_path: Path) -> None:
    summary = summary_of([("t::passes", "passed")], tmp_path)
    summary.files[0].counts.update(run=999, collected=1000)
    assert "999 (99 %)" in conformity_report.table(summary)


@pytest.mark.parametrize("release", [release.torch for release in releases.load().releases])
def test_every_expected_failure_has_a_class_and_a_sentence(release: str) -> None:
    for entry in conformity_report.load(release):
        assert entry.reason in conformity_report.CLASSES and entry.sentence.endswith(".") and len(entry.sentence) > 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tests = ["a"]\nreleases = ["1.0"]\nclass = "because"\nsentence = "S."', "class must be one of"),
        ('tests = ["a"]\nreleases = ["1.0"]\nclass = "missing"', "needs tests, a sentence"),
        ('tests = ["a"]\nreleases = ["1.0"]\nclass = "missing"\nsentence = "S."\nreason = "x"', "unknown keys reason"),
    ],
)
def test_an_expected_failure_without_a_reason_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    path.write_text(f"[[expected]]\n{text}\n")
    with pytest.raises(FactoryError, match=words):
        conformity_report.load("1.0", path)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FactoryError, match="no part of a whole"):
        command.shard_of(text)


def test_a_wrong_archive_of_tests_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "tests.tar.xz"
    archive.write_bytes(b"something else")
    source = releases.SourceArchive("pool", "tests.tar.xz", "torch/test", 14, "0" * 64)
    with pytest.raises(FactoryError, match="its sha256 is"):
        upstream_tests.obtain(source, archive)


def test_wheels_of_a_folder_are_found_whatever_processors_and_pythons_they_are_for(tmp_path: Path) -> None:
    table = releases.load()
    release = table.release("2.6.0")
    wheel = release.wheel_for("3.10", "x86_64")
    named = distribution.names(table, release, wheel, version="9.9")
    arguments = argparse.Namespace(wheels=tmp_path)
    for other in (*named.wheels, *distribution.names(table, release, release.wheel_for("3.9", "x86_64"), "9.9").wheels):
        (tmp_path / other.name).touch()
    found = command._wheels(table, release, wheel, arguments)
    assert {path.name for path in found} == {path.name for path in {*named.wheels} - {*named.given}}
    found[1].unlink()
    with pytest.raises(FactoryError, match=r"holds 0 files triton-3\.2\.0\+maca\*-cp310-cp310-"):
        command._wheels(table, release, wheel, arguments)
