"""cuobjdump: for which devices the code in a file was asked for, as build scripts and tests list it.

cucc writes the codes that `-gencode` and `-arch` name into a section of every object (:data:`SECTION`), and linkers
join those of a program or library. The code itself is the host processor's, so that what prints or extracts it is
refused: `objdump -d` shows it.

    cuobjdump --list-elf FILE...    the real architectures, one a line: `ELF file    1: FILE.1.sm_80.cubin`
    cuobjdump --list-ptx FILE...    the virtual ones: `PTX file    1: FILE.1.sm_80.ptx`
"""

import argparse
import struct
import sys
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Tuple

SECTION = "mxmaca_code"
REFUSED = (
    *("-sass", "--dump-sass", "-ptx", "--dump-ptx", "-elf", "--dump-elf", "-xelf", "--extract-elf", "-xptx"),
    *("--extract-ptx", "-res-usage", "--dump-resource-usage", "-symbols", "--dump-elf-symbols"),
)
FAILURE = 255  # the exit status


class Unreadable(Exception):
    """The file is none that can hold device code."""


def sections(data: bytes, name: str) -> Iterator[bytes]:
    """What the sections of that name hold in an ELF file of 64 bits, little-endian.

    Raises:
        Unreadable: the data is no such file, or cut off.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise Unreadable
    try:
        table, size, count, names = struct.unpack_from("<Q", data, 40) + struct.unpack_from("<HHH", data, 58)
        headers: List[Tuple[int, int, int]] = []
        for index in range(count):
            label, _, _, _, offset, length = struct.unpack_from("<IIQQQQ", data, table + index * size)
            headers.append((label, offset, length))
        for label, offset, length in headers:
            start = headers[names][1] + label
            if data[start : data.index(b"\0", start)] == name.encode():
                yield data[offset : offset + length]
    except (struct.error, ValueError, IndexError):
        raise Unreadable from None


def members(data: bytes) -> Iterator[bytes]:
    """The files in an archive, or the file itself if it is none."""
    magic, header = b"!<arch>\n", 60
    if not data.startswith(magic):
        yield data
        return
    place = len(magic)
    while place + header <= len(data):
        size = int(data[place + 48 : place + 58])
        member = data[place + header : place + header + size]
        if member.startswith(b"\x7fELF"):  # neither the index nor the table of names
            yield member
        place += header + size + size % 2


def codes(path: Path) -> List[List[str]]:
    """The codes (`sm_80`, `compute_80`) of each object in the file that cucc has made."""
    try:
        found = [part for member in members(path.read_bytes()) for part in sections(member, SECTION)]
    except ValueError:  # a size that is no number
        raise Unreadable from None
    return [text.decode("ascii", "replace").split() for part in found for text in part.split(b"\0") if text]


def listing(path: Path, kind: str) -> Optional[List[str]]:
    """The lines for one file. None: there is no device code in it."""
    objects = codes(path)
    if not objects:
        return None
    prefix, word, ending = {"elf": ("sm_", "ELF", "cubin"), "ptx": ("compute_", "PTX", "ptx")}[kind]
    # Objects that are linked become one image of each architecture.
    numbers = sorted({code[len(prefix) :] for each in objects for code in each if code.startswith(prefix)})
    stem = path.name.partition(".")[0]
    return [f"{word} file {at:4}: {stem}.{at}.sm_{number}.{ending}" for at, number in enumerate(numbers, 1)]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for word in words:
        if word.partition("=")[0] in REFUSED:
            text = f"'{word}' is refused: the code is the host processor's, and `objdump -d` shows it"
            print(f"cuobjdump fatal   : {text}", file=sys.stderr)
            return FAILURE
    parser = argparse.ArgumentParser(prog="cuobjdump", allow_abbrev=False, description=__doc__.partition("\n")[0])
    parser.add_argument("-lelf", "--list-elf", action="store_true", help="list the real architectures")
    parser.add_argument("-lptx", "--list-ptx", action="store_true", help="list the virtual architectures")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args(words)
    kinds = [kind for kind in ("elf", "ptx") if getattr(options, f"list_{kind}")]
    if not kinds:
        parser.error("nothing to list: give --list-elf or --list-ptx")
    for path in options.files:
        for kind in kinds:
            try:
                lines = listing(path, kind)
            except OSError as problem:
                print(f"cuobjdump fatal   : Could not open input file '{path}': {problem.strerror}", file=sys.stderr)
                return FAILURE
            except Unreadable:
                lines = None
            if lines is None:
                print(f"cuobjdump info    : File '{path}' does not contain device code", file=sys.stderr)
                return FAILURE
            print("".join(line + "\n" for line in lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
