"""The cut: device code goes, nothing else moves, every tool still reads the result."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Callable

import pytest
from elftools.elf.elffile import ELFFile

from build_scripts.errors import FactoryError
from build_scripts.factory import device_code, elf, patchelf

from ..small import DEVICE_CODE_SIZE


@pytest.fixture
def pair(device_library: Callable[..., Path], tmp_path: Path) -> "tuple[Path, Path]":
    """A library before and after the cut."""
    before, after = device_library(), tmp_path / "libcut.so"
    device_code.cut(before, after, before.name)
    return before, after


def test_the_cut_reports_and_removes_the_device_code(device_library: Callable[..., Path], tmp_path: Path) -> None:
    before, after = device_library(), tmp_path / "libcut.so"
    result = device_code.cut(before, after, before.name)
    assert set(result.device_sections) == {".nv_fatbin", "__nv_relfatbin"}
    assert result.removed == before.stat().st_size - after.stat().st_size >= 2 * (DEVICE_CODE_SIZE // 4096) * 4096
    with elf.open_elf(before) as library:
        assert device_code.device_sections(library)
        assert device_code.fatbin_offsets(library)
    with elf.open_elf(after) as library:
        assert not device_code.device_sections(library)
        assert not device_code.fatbin_offsets(library)


def test_no_virtual_address_moves(pair: "tuple[Path, Path]") -> None:
    before, after = pair
    with before.open("rb") as old, after.open("rb") as new:
        old_file, new_file = ELFFile(old), ELFFile(new)
        for section in old_file.iter_sections():
            kept = new_file.get_section_by_name(section.name)
            if section["sh_flags"] & elf.SHF_ALLOC:
                assert kept["sh_addr"] == section["sh_addr"], section.name
                assert kept["sh_size"] == section["sh_size"], section.name
                if kept["sh_type"] != "SHT_NOBITS" and section["sh_type"] != "SHT_NOBITS" and section.name != ".dynsym":
                    assert kept.data() == section.data(), section.name
        assert new_file.get_section_by_name(".nv_fatbin")["sh_type"] == "SHT_NOBITS"
        assert new_file.get_section_by_name(".symtab") is None


def test_dynamic_symbols_name_the_right_sections_after_the_cut(pair: "tuple[Path, Path]") -> None:
    before, after = pair
    with before.open("rb") as old, after.open("rb") as new:
        old_file, new_file = ELFFile(old), ELFFile(new)
        names = []
        for file in (old_file, new_file):
            table = file.get_section_by_name(".dynsym")
            names.append(
                {
                    symbol.name: file.get_section(symbol["st_shndx"]).name
                    for symbol in table.iter_symbols()
                    if isinstance(symbol["st_shndx"], int)
                }
            )
        assert names[0] == names[1]
        assert names[0]["answer"] == ".text"


def test_a_cut_library_loads_and_computes_and_its_device_code_reads_as_zeros(pair: "tuple[Path, Path]") -> None:
    before, after = pair
    for path, is_cut in ((before, False), (after, True)):
        library = ctypes.CDLL(str(path))
        library.read_only.restype = ctypes.c_char_p
        library.device_size.restype = ctypes.c_long
        library.device_byte.argtypes = [ctypes.c_long]
        assert library.answer() == 42
        assert library.thread_local_value() == 5
        assert library.read_only() == b"what stands in .rodata"
        size = library.device_size()
        places = [0, 4095, 4096, size // 2, size - 1, size]
        assert all(library.device_byte(at) == 0 for at in places) == is_cut
        assert (library.through_wrapper() == 0) == is_cut
        assert (library.relocatable_byte() == 0) == is_cut


@pytest.mark.parametrize("tool", [["readelf", "-aW"], ["nm", "-D"], ["objdump", "-h"], ["strip", "--strip-unneeded"]])
def test_binutils_still_read_a_cut_library(pair: "tuple[Path, Path]", tool: "list[str]") -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"needs {tool[0]}")
    after = pair[1]
    done = subprocess.run([*tool, str(after)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    assert "rror" not in done.stderr, done.stderr
    assert ctypes.CDLL(str(after)).answer() == 42


def test_patchelf_still_edits_a_cut_library(pair: "tuple[Path, Path]") -> None:
    after = pair[1]
    patchelf.edit(after, ["$ORIGIN/../../mxmaca/lib/cuda12", "$ORIGIN"], ["libm.so.6"])
    with elf.open_elf(after) as library:
        assert library.rpath == ["$ORIGIN/../../mxmaca/lib/cuda12", "$ORIGIN"]
        assert not library.runpath
        assert "libm.so.6" in library.needed
        assert not device_code.device_sections(library)
    assert ctypes.CDLL(str(after)).answer() == 42


def test_a_library_without_device_code_and_symbols_is_left_as_it_is(
    compile_library: Callable[..., Path], tmp_path: Path
) -> None:
    library = compile_library("libplain.so", "int plain(void) { return 3; }", "-s")
    result = device_code.cut(library, tmp_path / "out.so", "libplain.so")
    assert result.removed == 0
    assert (tmp_path / "out.so").read_bytes() == library.read_bytes()


def test_the_cut_gives_the_same_bytes_each_time(pair: "tuple[Path, Path]", tmp_path: Path) -> None:
    before, after = pair
    device_code.cut(before, tmp_path / "again.so", before.name)
    assert (tmp_path / "again.so").read_bytes() == after.read_bytes()


def test_a_library_without_room_for_program_headers_is_refused(
    device_library: Callable[..., Path], tmp_path: Path
) -> None:
    library = device_library(through_patchelf=False)
    with pytest.raises(FactoryError, match=r"libdevice\.so: no room for .* program headers"):
        device_code.cut(library, tmp_path / "out.so", "libdevice.so")


@pytest.mark.parametrize("size, goes", [(8192, True), (8000, False)])
def test_a_section_goes_if_nothing_but_fat_binaries_is_in_it(
    device_library: Callable[..., Path], tmp_path: Path, size: int, goes: bool
) -> None:
    # With a smaller size there is something behind the last one.
    source = f"""
        struct fat {{ unsigned magic; unsigned short version, header; unsigned long size; char code[8192]; }};
        __attribute__((section(".fat_rodata"), aligned(8))) const struct fat fats[2] = {{
            {{0xBA55ED50, 1, 16, 8192, {{7}}}}, {{0xBA55ED50, 1, 16, {size}, {{7}}}}
        }};
        int code_of_fat(int number) {{ return fats[number].code[0]; }}
    """
    before, after = device_library(extra=source), tmp_path / "libcut.so"
    result = device_code.cut(before, after, before.name)
    assert (".fat_rodata" in result.device_sections) == goes
    assert ctypes.CDLL(str(before)).code_of_fat(1) == 7
    assert ctypes.CDLL(str(after)).code_of_fat(1) == (0 if goes else 7)
    with elf.open_elf(after) as library:
        assert bool(device_code.fatbin_offsets(library)) != goes


def test_device_code_in_a_writable_section_is_refused(compile_library: Callable[..., Path], tmp_path: Path) -> None:
    source = 'char code[8192] __attribute__((section(".nv_fatbin"))) = {1};'
    library = compile_library("libwritable.so", source)
    with pytest.raises(FactoryError, match="is writable"):
        device_code.cut(library, tmp_path / "out.so", "libwritable.so")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(100), b"no library"])
def test_what_is_no_elf_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.so"
    path.write_bytes(content)
    with pytest.raises(FactoryError, match=r"bad\.so"):
        device_code.cut(path, tmp_path / "out.so", "bad.so")


def test_a_truncated_library_is_refused(device_library: Callable[..., Path], tmp_path: Path) -> None:
    path = tmp_path / "short.so"
    path.write_bytes(device_library().read_bytes()[:20000])
    with pytest.raises(FactoryError, match="truncated"):
        device_code.cut(path, tmp_path / "out.so", "short.so")


def test_versioned_symbols_are_read_as_readelf_reads_them(compile_library: Callable[..., Path], tmp_path: Path) -> None:
    script = tmp_path / "map"
    script.write_text("libcudart.so.12 { global: cuda*; local: *; };")
    provider = compile_library(
        "libcudart.so.12", "int cudaFree(void){return 0;} int hidden(void){return 1;}", f"-Wl,--version-script={script}"
    )
    user = compile_library("libuser.so", "int cudaFree(void); int use(void){return cudaFree();}", "-l:libcudart.so.12")
    with elf.open_elf(provider) as library:
        assert {str(symbol) for symbol in library.defined_symbols() if "cuda" in symbol.name and symbol.version} >= {
            "cudaFree@libcudart.so.12"
        }
        assert "hidden" not in {symbol.name for symbol in library.defined_symbols()}
        assert library.soname == "libcudart.so.12"
    with elf.open_elf(user) as library:
        needed = {(symbol.name, symbol.version, symbol.library) for symbol in library.undefined_symbols(weak=False)}
        assert ("cudaFree", "libcudart.so.12", "libcudart.so.12") in needed
