"""A whole build of a small release, and everything that can go wrong on the way."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import List, Tuple

import pytest

from build_scripts import cache
from build_scripts.errors import FactoryError
from build_scripts.factory import elf
from build_scripts.factory.wheel import WheelReader

from ..small import CHECKOUT, SmallRelease, write_zip


def test_a_build_leaves_both_wheels_and_verify_finds_them_sound(small_release: SmallRelease) -> None:
    done = small_release.build()
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(small_release.built), str(small_release.sdk)]
    verified = small_release.run("verify", str(small_release.built), str(small_release.sdk))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with WheelReader(small_release.built) as reader:
        assert b"9.9.0+maca1.0.0" in reader.read("torch/version.py")
        assert reader.read("torch/__init__.py").endswith(b"return os.name\n")
        assert "torch/bin/ptxas" not in reader.members
        assert {"torch/lib/libmacatorch.so", "torch/lib/libmacatorch_autograd.so", "macatorch/__init__.py"} <= set(
            reader.members
        )
        info = reader.dist_info
        assert info == "torch-9.9.0+maca1.0.0.dist-info"
        assert reader.read(f"{info}/entry_points.txt").startswith(b"[console_scripts]")
        assert reader.read(f"{info}/top_level.txt") == b"macatorch\ntorch\n"
        assert b"Tag: cp311-cp311-linux_x86_64\n" in reader.read(f"{info}/WHEEL")
        manifest = json.loads(reader.read(f"{info}/maca.json"))
    assert manifest["removed"] == ["torch/bin/ptxas"]
    assert [patch["name"] for patch in manifest["patches"]] == ["0001-version.patch", "0002-load.patch"]
    assert set(manifest["device_code"]) == {"torch/lib/libtorch_cuda.so"}


def test_two_builds_give_the_same_bytes(
    small_release: SmallRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert small_release.build().returncode == 0
    first = [path.read_bytes() for path in (small_release.built, small_release.sdk)]
    again = tmp_path / "again"
    assert small_release.build("--output", str(again)).returncode == 0
    assert [(again / path.name).read_bytes() for path in (small_release.built, small_release.sdk)] == first
    # From nothing, in another place: native code as well.
    monkeypatch.setenv("MACATORCH_CACHE", str(tmp_path / "elsewhere" / "cache"))
    afresh = tmp_path / "afresh"
    assert small_release.build("--output", str(afresh)).returncode == 0
    assert [(afresh / path.name).read_bytes() for path in (small_release.built, small_release.sdk)] == first


def test_the_wheels_install_and_uninstall_with_plain_pip(small_release: SmallRelease, tmp_path: Path) -> None:
    assert small_release.build().returncode == 0
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(target)]
    command += ["--disable-pip-version-check", str(small_release.sdk)]
    if sys.version_info[:2] == (3, 11):
        command.append(str(small_release.built))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PIP_CONFIG_FILE": os.devnull})
    assert (target / "mxmaca" / "lib" / "cuda12" / "libcudart.so.12").is_file()


def test_the_index_serves_the_wheels_by_name(small_release: SmallRelease, tmp_path: Path) -> None:
    assert small_release.build().returncode == 0
    done = small_release.run("index", "--no-dependencies")
    assert done.returncode == 0, done.stderr
    page = (small_release.output / "simple" / "torch" / "index.html").read_text()
    digest = hashlib.sha256(small_release.built.read_bytes()).hexdigest()
    assert f'href="../../torch-9.9.0%2Bmaca1.0.0-cp311-cp311-linux_x86_64.whl#sha256={digest}"' in page
    assert 'data-requires-python="&gt;=3.8.0"' in page
    metadata = small_release.output / f"{small_release.built.name}.metadata"
    told = hashlib.sha256(metadata.read_bytes()).hexdigest()
    assert f'data-core-metadata="sha256={told}"' in page and "Version: 9.9.0+maca1.0.0" in metadata.read_text()
    listed = json.loads((small_release.output / "simple" / "torch" / "index.json").read_text())
    assert listed["versions"] == ["9.9.0+maca1.0.0"]
    assert [(file["hashes"], file["core-metadata"]) for file in listed["files"]] == [
        ({"sha256": digest}, {"sha256": told})
    ]
    command = [sys.executable, "-m", "pip", "download", "--isolated", "--no-deps", "--index-url", done.stdout.strip()]
    command += [
        "--only-binary=:all:",
        "--python-version",
        "3.11",
        "--platform",
        "linux_x86_64",
        "--dest",
        str(tmp_path),
        "torch==9.9.0",
    ]
    # The machine's own settings may hold a constraint on torch.
    settings = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    fetched = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=settings)
    assert fetched.returncode == 0, fetched.stdout
    assert (tmp_path / small_release.built.name).read_bytes() == small_release.built.read_bytes()


def test_an_index_takes_what_it_wrote_away_and_nothing_else(small_release: SmallRelease) -> None:
    assert small_release.build().returncode == 0
    other = small_release.output / "other-1-py3-none-any.whl"
    shutil.copyfile(str(small_release.sdk), str(other))
    assert small_release.run("index", "--no-dependencies").returncode == 0
    assert (small_release.output / "simple" / "other" / "index.json").is_file()
    other.unlink()
    assert small_release.run("index", "--no-dependencies").returncode == 0
    assert not (small_release.output / "simple" / "other").exists()
    assert not other.with_name(f"{other.name}.metadata").exists()
    foreign = small_release.output / "simple" / "torch" / "notes.txt"
    foreign.write_text("mine")
    kept = {path: path.read_bytes() for path in small_release.output.rglob("*") if path.is_file()}
    done = small_release.run("index", "--no-dependencies")
    assert done.returncode == 1 and "notes.txt was not written by this command" in done.stderr
    assert kept == {path: path.read_bytes() for path in small_release.output.rglob("*") if path.is_file()}


def test_an_index_of_an_empty_folder_is_refused(small_release: SmallRelease, tmp_path: Path) -> None:
    done = small_release.run("index", "--output", str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "There is no wheel" in done.stderr


def test_the_index_can_hold_what_the_wheels_require(small_release: SmallRelease, tmp_path: Path) -> None:
    assert small_release.build().returncode == 0
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    info = "filelock-1.0.dist-info"
    write_zip(
        shelf / "filelock-1.0-py3-none-any.whl",
        {
            f"{info}/METADATA": b"Metadata-Version: 2.1\nName: filelock\nVersion: 1.0\n",
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        },
    )
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "PIP_CONFIG_FILE": os.devnull}
    done = small_release.run("index", **settings)
    assert done.returncode == 0, done.stderr
    page = (small_release.output / "simple" / "filelock" / "index.html").read_text()
    assert 'href="../../dependencies/filelock-1.0-py3-none-any.whl#sha256=' in page
    (shelf / "filelock-1.0-py3-none-any.whl").unlink()
    shutil.rmtree(str(small_release.output / "dependencies"))
    done = small_release.run("index", **settings)
    assert done.returncode == 1
    assert "could not be fetched" in done.stderr and "--no-dependencies" in done.stderr


def test_list_says_what_is_fetched_and_built(small_release: SmallRelease) -> None:
    assert json.loads(small_release.run("list", "--json").stdout)[0]["built"] is False
    assert small_release.build().returncode == 0
    (row,) = json.loads(small_release.run("list", "--json").stdout)
    assert row["built"] is True and row["fetched"] is True and row["wheel"] == small_release.built.name


def test_a_wheel_in_the_cache_is_not_fetched_again(small_release: SmallRelease) -> None:
    assert small_release.run("fetch", "--python", "3.11", "--from", str(small_release.wheel)).returncode == 0
    small_release.wheel.unlink()
    done = small_release.run("build", "--python", "3.11", PIP_NO_INDEX="1")
    assert done.returncode == 0, done.stderr


def test_unchanged_native_code_is_not_compiled_again_and_changed_code_is(small_release: SmallRelease) -> None:
    assert "Building macatorch" in small_release.build().stderr
    assert "Building" not in small_release.build().stderr
    source = small_release.checkout / "macatorch" / "csrc" / "operators.cpp"
    source.write_text(source.read_text() + "int more() { return 1; }\n")
    done = small_release.build()
    assert "Building macatorch" in done.stderr and "Building sdk" not in done.stderr


def test_a_build_has_the_parts_of_fast_that_were_asked_for(small_release: SmallRelease, tmp_path: Path) -> None:
    cmake = small_release.checkout / "macatorch" / "CMakeLists.txt"
    parts = '\\"of ${MACATORCH_FAST_ALLOCATOR} ${MACATORCH_FAST_COPIES}.\\"'
    cmake.write_text(f'{cmake.read_text()}target_compile_definitions(macatorch PRIVATE "PARTS={parts}")\n')
    source = small_release.checkout / "macatorch" / "csrc" / "operators.cpp"
    source.write_text('extern "C" const char* parts() { return PARTS; }\n')

    def built() -> Tuple[bool, bool, List[str]]:
        """What the library was compiled with, and what the manifest says."""
        with zipfile.ZipFile(str(small_release.built)) as wheel:
            library = wheel.read("torch/lib/libmacatorch.so")
            (manifest,) = [name for name in wheel.namelist() if name.endswith("/maca.json")]
            found = re.search(rb"of (ON|OFF) (ON|OFF)\.", library)
            assert found is not None
            return found.group(1) == b"ON", found.group(2) == b"ON", json.loads(wheel.read(manifest))["fast"]

    assert small_release.build("--fast", "ALLOCATOR").returncode == 0
    assert built() == (True, False, ["ALLOCATOR"])
    assert small_release.build("--fast", "off").returncode == 0
    assert built() == (False, False, [])
    assert small_release.build().returncode == 0
    assert built()[:2] == (True, True)
    # All three are kept.
    assert "Building" not in small_release.build("--fast", "off").stderr
    assert built() == (False, False, [])

    # By themselves, with the search paths of the wheel.
    code = (
        "import sys; from pathlib import Path; from build_scripts import releases; "
        "from build_scripts.products import torch_wheel; table = releases.load(); row = table.release('9.9.0'); "
        "torch_wheel.leave_libraries(table, row, row.wheel_for('3.11'), *map(Path, sys.argv[1:]), fast=['COPIES'])"
    )
    command = [sys.executable, "-c", code, str(small_release.wheel), str(tmp_path / "libraries")]
    subprocess.run(command, cwd=str(small_release.checkout), check=True)
    assert b"of OFF ON." in (tmp_path / "libraries" / "libmacatorch.so").read_bytes()
    with zipfile.ZipFile(str(small_release.built)) as wheel:
        wheel.extract("torch/lib/libmacatorch.so", str(tmp_path))
    paths = []
    for path in (tmp_path / "torch" / "lib", tmp_path / "libraries"):
        with elf.open_elf(path / "libmacatorch.so") as library:
            paths.append(library.rpath)
    assert paths[0] == paths[1] and "$ORIGIN/../../mxmaca/lib" in paths[0]


# ---- bad input -------------------------------------------------------------------------------------------------------


def refused(done: "subprocess.CompletedProcess[str]", small_release: SmallRelease, *texts: str) -> None:
    """One clear message, exit code 1, nothing half-written."""
    assert done.returncode == 1, done.stderr
    assert sum(line.startswith("error: ") for line in done.stderr.splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for text in texts:
        assert text in done.stderr
    assert not small_release.leftovers()


def test_a_wrong_sha256_is_refused(small_release: SmallRelease) -> None:
    small_release.write_table("0" * 64)
    refused(small_release.build(), small_release, "is not the file that the table names", "expected " + "0" * 64)


def test_a_truncated_wheel_is_refused_with_its_size(small_release: SmallRelease) -> None:
    small_release.wheel.write_bytes(small_release.wheel.read_bytes()[:-1000])
    refused(small_release.build(), small_release, "is not the file that the table names", "bytes instead of")


def test_a_foreign_wheel_is_refused_even_when_the_table_names_it(small_release: SmallRelease) -> None:
    members = {"other/__init__.py": b"", "other-1.dist-info/METADATA": b"", "other-1.dist-info/WHEEL": b""}
    write_zip(small_release.wheel, members)
    small_release.write_table()
    refused(small_release.build(), small_release, "is a foreign wheel: it holds other-1.dist-info")


def test_a_cpu_wheel_is_refused(small_release: SmallRelease) -> None:
    with zipfile.ZipFile(str(small_release.wheel)) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith(("RECORD", "cuda.so"))}
    write_zip(small_release.wheel, members)
    small_release.write_table()
    refused(small_release.build(), small_release, "holds no device code: it is not the CUDA build")


def test_the_packages_are_found_where_upstreams_wheel_does_not_list_them(small_release: SmallRelease) -> None:
    with zipfile.ZipFile(str(small_release.wheel)) as archive:
        left_out = ("RECORD", "top_level.txt")
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith(left_out)}
    members["torchgen/__init__.py"] = b""
    members["torchgen/api/__init__.py"] = b""
    write_zip(small_release.wheel, members)
    small_release.write_table()
    done = small_release.build()
    assert done.returncode == 0, done.stderr
    with WheelReader(small_release.built) as reader:
        assert reader.read(f"{reader.dist_info}/top_level.txt") == b"macatorch\ntorch\ntorchgen\n"


def test_a_wheel_with_members_outside_its_root_is_refused(small_release: SmallRelease) -> None:
    with zipfile.ZipFile(str(small_release.wheel), "a") as archive:
        archive.writestr("torch/../../outside.py", b"")
    small_release.write_table()
    refused(small_release.build(), small_release, "is refused", "a path out of the wheel")


def test_an_unknown_release_is_refused(small_release: SmallRelease) -> None:
    done = small_release.run("build", "--torch", "1.2.3")
    refused(done, small_release, "torch 1.2.3 is not in the table of releases", "9.9.0")


def test_a_python_without_a_wheel_is_refused(small_release: SmallRelease) -> None:
    done = small_release.run("build", "--torch", "9.9.0", "--python", "3.7")
    refused(done, small_release, "torch 9.9.0 has no wheel for Python 3.7", "3.11")


def test_a_missing_file_is_refused(small_release: SmallRelease, tmp_path: Path) -> None:
    refused(small_release.build("--from", str(tmp_path / "gone")), small_release, "does not exist", "--from takes")


def path_without(tmp_path: Path, *missing: str) -> str:
    """A PATH with every program of this one's, but for some."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name not in missing:
                if link.is_symlink():
                    link.unlink()
                link.symlink_to(program)
    return str(folder)


def test_an_unknown_part_of_fast_is_refused(small_release: SmallRelease) -> None:
    refused(small_release.build("--fast", "ALLOCATOR,SPEED"), small_release, "'ALLOCATOR,SPEED' names no parts")


def test_no_compiler_is_reported_before_anything_is_fetched(small_release: SmallRelease, tmp_path: Path) -> None:
    path = path_without(tmp_path, "g++", "c++", "clang++")
    done = small_release.build(PATH=path, CXX="")
    refused(done, small_release, "No C++ compiler", "apt install g++")
    assert not (Path(os.environ["MACATORCH_CACHE"]) / "upstream").exists()


def test_a_compiler_that_does_not_work_is_reported(small_release: SmallRelease) -> None:
    refused(small_release.build(CXX="false"), small_release, "does not work")


def test_no_network_is_reported_with_the_way_out(small_release: SmallRelease) -> None:
    # A port that nobody listens on stands for a network that is not there.
    settings = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    settings.update(PIP_RETRIES="1", PIP_CONFIG_FILE=os.devnull, PIP_DEFAULT_TIMEOUT="2", NO_PROXY="127.0.0.1")
    done = small_release.run("build", "--python", "3.11", **settings)
    refused(done, small_release, "could not be fetched: no connection to pip's index", "--from PATH")


def test_an_index_with_another_file_is_reported(small_release: SmallRelease, tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    shutil.copy(str(small_release.wheel), str(shelf))
    small_release.write_table("1" * 64)
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "PIP_CONFIG_FILE": os.devnull}
    done = small_release.run("build", "--python", "3.11", **settings)
    refused(done, small_release, "the sha256 differs from releases.toml")


def test_a_wheel_is_fetched_through_pip_as_configured(small_release: SmallRelease, tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    shutil.move(str(small_release.wheel), str(shelf))
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "PIP_CONFIG_FILE": os.devnull}
    done = small_release.run("build", "--python", "3.11", **settings)
    assert done.returncode == 0, done.stderr


def test_too_little_space_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12, 1000))  # type: ignore[attr-defined]
    with pytest.raises(FactoryError, match=r"needs 2\.0 GB below .* but only 0\.0 GB are free") as caught:
        cache.require_space(tmp_path / "not" / "there", 2_000_000_000, "Unpacking")
    assert "MACATORCH_CACHE" in str(caught.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_fills_up_in_the_middle_leaves_no_part_of_a_wheel(small_release: SmallRelease) -> None:
    assert small_release.build().returncode == 0
    small_release.built.unlink()
    part = small_release.output / f".{small_release.built.name}.part"
    part.symlink_to("/dev/full")
    done = small_release.build("--no-sdk")
    assert done.returncode == 1
    assert "error: No space left on device" in done.stderr and "Free some space" in done.stderr
    assert not small_release.built.exists() and not part.is_symlink()
    assert small_release.build("--no-sdk").returncode == 0


def test_a_patch_that_does_not_fit_stops_the_build_and_names_the_hunk(small_release: SmallRelease) -> None:
    patch = small_release.checkout / "patches" / "9.9.0" / "0002-load.patch"
    patch.write_text(patch.read_text().replace("-    pass", "-    passed"))
    done = small_release.build()
    refused(
        done, small_release, "patches/9.9.0/0002-load.patch does not fit torch 9.9.0: hunk 1 of 1, torch/__init__.py"
    )


def test_a_checkout_without_operators_makes_no_wheel(small_release: SmallRelease) -> None:
    shutil.rmtree(str(small_release.checkout / "macatorch"))
    refused(small_release.build(), small_release, "macatorch/macatorch/__init__.py is missing")


def test_native_code_that_does_not_compile_shows_the_compilers_words(small_release: SmallRelease) -> None:
    source = small_release.checkout / "macatorch" / "csrc" / "operators.cpp"
    source.write_text("int broken(\n")
    refused(small_release.build(), small_release, "compiling macatorch-9.9.0 failed", "expected", "build.log")
    source.write_text('extern "C" int operators() { return 1; }\n')
    assert small_release.build().returncode == 0


def test_a_damaged_file_in_the_cache_is_fetched_again(small_release: SmallRelease) -> None:
    assert small_release.run("fetch", "--python", "3.11", "--from", str(small_release.wheel)).returncode == 0
    (kept,) = Path(os.environ["MACATORCH_CACHE"]).glob("upstream/*/*.whl")
    kept.write_bytes(b"damaged")
    done = small_release.build()
    assert done.returncode == 0, done.stderr
    assert "is damaged; it is removed and fetched again" in done.stderr


STEPS = [
    "Copying",
    "Checking the sha256",
    "Cutting device code",
    "Packing what is left",
    "Building sdk",
    "Building macatorch",
    "Packing torch",
]


@pytest.mark.parametrize("step", STEPS)
def test_after_a_kill_at_any_step_the_next_build_goes_on(small_release: SmallRelease, step: str) -> None:
    command = [sys.executable, "-m", "build_scripts", "build", "--python", "3.11", "--from", str(small_release.wheel)]
    process = subprocess.Popen(
        command, cwd=str(small_release.checkout), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if step in line:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(small_release.output.glob("torch*.whl"))
    done = small_release.build()
    assert done.returncode == 0, done.stderr
    # The part file under the same name was overwritten, the intermediate folders were emptied.
    assert not [name for name in small_release.leftovers() if not name.endswith(".whl")]
    assert small_release.run("verify", str(small_release.built)).returncode == 0


def test_an_interrupt_is_reported_in_one_line(small_release: SmallRelease) -> None:
    command = [sys.executable, "-m", "build_scripts", "build", "--python", "3.11", "--from", str(small_release.wheel)]
    process = subprocess.Popen(
        command,
        cwd=str(small_release.checkout),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "Building macatorch" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait() == 130, rest
    assert "interrupted" in rest and "Traceback" not in rest
    assert not small_release.leftovers()


def test_two_builds_at_once_wait_for_each_other(small_release: SmallRelease) -> None:
    command = [sys.executable, "-m", "build_scripts", "build", "--python", "3.11", "--from", str(small_release.wheel)]
    options = {"cwd": str(small_release.checkout), "stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, **options) for _ in range(2)]  # type: ignore[call-overload]
    results = [(process.communicate(), process.returncode) for process in both]
    assert [code for _, code in results] == [0, 0], results
    assert small_release.run("verify", str(small_release.built)).returncode == 0


def test_a_lock_is_waited_for_and_free_after_its_holder_died(tmp_path: Path) -> None:
    code = "import time\nfrom build_scripts import cache\nwith cache.lock('x'):\n    print('held', flush=True)\n"
    code += "    time.sleep(60)\n"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=str(CHECKOUT))
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    holder.kill()
    holder.wait()
    start = time.monotonic()
    with cache.lock("x"):
        assert time.monotonic() - start < 5
