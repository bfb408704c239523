"""cuobjdump: the architectures that objects, libraries, programs and archives were made for."""

import pathlib
import shutil
import subprocess
import sys
from typing import Callable, List

import pytest
from compiling import Cucc, clean_environment

KERNEL = "__global__ void k(int* p) { *p = 1; }\nint main() { k<<<1, 1>>>(nullptr); }\n"
Dump = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture()
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "kernel.cu"
    path.write_text(KERNEL)
    return path


@pytest.fixture()
def dump(sdk: pathlib.Path, tmp_path: pathlib.Path) -> Dump:
    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(sdk / "bin" / "cuobjdump"), *map(str, arguments)]
        return subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=60)

    return run


CODES = {
    "": (["80"], []),
    "-arch=sm_75": (["75"], ["75"]),
    "-arch=compute_70": ([], ["70"]),
    "-arch=compute_80 -code=sm_80,sm_86": (["80", "86"], []),
    "-gencode=arch=compute_80,code=sm_80": (["80"], []),
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=compute_86": (["80"], ["86"]),
    "-gencode=arch=compute_86,code=[sm_86,compute_86]": (["86"], ["86"]),
    '-gencode=arch=compute_86,code="sm_86,compute_86"': (["86"], ["86"]),
    "-gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=sm_80": (["80", "90a"], []),
}


@pytest.mark.parametrize("flags", CODES)
def test_an_object_has_the_codes_that_were_asked_for(
    cucc: Cucc, dump: Dump, source: pathlib.Path, tmp_path: pathlib.Path, flags: str
) -> None:
    made = tmp_path / "made.o"
    cucc("-c", source, "-o", made, *flags.split())
    elf, ptx = CODES[flags]
    assert dump("--list-elf", made).stdout == lines("ELF", "cubin", elf)
    assert dump("--list-ptx", made).stdout == lines("PTX", "ptx", ptx)


def lines(word: str, ending: str, numbers: List[str]) -> str:
    return "".join(f"{word} file {at:4}: made.{at}.sm_{number}.{ending}\n" for at, number in enumerate(numbers, 1))


def test_what_is_linked_has_those_of_all_its_objects(
    cucc: Cucc, dump: Dump, source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    other = tmp_path / "other.cu"
    other.write_text("__global__ void another(int* p) { *p = 2; }\n")
    cucc("-c", source, "-o", tmp_path / "first.o", "-arch=sm_80")
    cucc("-c", other, "-o", tmp_path / "second.o", "-gencode=arch=compute_86,code=sm_86")
    program = tmp_path / "made"
    cucc(tmp_path / "first.o", tmp_path / "second.o", "-o", program, "-Xlinker", "--gc-sections")
    assert dump("-lelf", "-lptx", program).stdout == lines("ELF", "cubin", ["80", "86"]) + lines("PTX", "ptx", ["80"])
    archiver = shutil.which("ar")
    if archiver is not None:
        archive = tmp_path / "made.a"
        subprocess.run([archiver, "cr", str(archive), *map(str, sorted(tmp_path.glob("*.o")))], check=True)
        assert dump("--list-elf", archive).stdout == lines("ELF", "cubin", ["80", "86"])


def test_what_cannot_be_shown_says_so(cucc: Cucc, dump: Dump, source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    made = tmp_path / "made.o"
    cucc("-c", source, "-o", made)
    refused = dump("-sass", made)
    assert refused.returncode != 0 and "objdump -d" in refused.stderr
    nothing = dump("--list-elf", tmp_path / "none.o")
    assert nothing.returncode != 0 and "No such file" in nothing.stderr
    (tmp_path / "cut.o").write_bytes(made.read_bytes()[:300])
    for foreign in (source, tmp_path / "cut.o", pathlib.Path(sys.executable)):
        done = dump("--list-elf", foreign)
        assert done.returncode != 0 and "does not contain device code" in done.stderr
    assert "--list-elf" in dump(made).stderr
