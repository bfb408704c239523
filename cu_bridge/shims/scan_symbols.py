"""Rewrite the symbol lists of the shims from unpacked upstream wheels.

    python cu_bridge/shims/scan_symbols.py 12=PATH_OF_UNPACKED_WHEEL 13=PATH_OF_ANOTHER ...

For each library in libraries.txt, `<folder>/symbols.<CUDA major>.txt` gets every symbol that an ELF file of the wheels
needs from it, added to those that earlier releases needed. Needs `readelf`. A library of which the same CUDA major has
two versions has a list for each: that of the second row ends in its version, as `symbols.12.so8.txt`.
"""

import argparse
import fnmatch
import pathlib
import re
import subprocess
from typing import Dict, Iterator, List, NamedTuple, Set

HERE = pathlib.Path(__file__).resolve().parent


class Library(NamedTuple):
    """A row of libraries.txt."""

    folder: str
    major: int
    soname: str
    node: str
    patterns: List[str]
    status: int
    status_name: str
    version: str = ""  # of the SONAME, where an earlier row has the same folder and CUDA major

    @property
    def symbols(self) -> pathlib.PurePosixPath:
        """The list of its symbols, seen from this folder."""
        version = f".so{self.version}" if self.version else ""
        return pathlib.PurePosixPath(self.folder) / f"symbols.{self.major}{version}.txt"


def read_libraries(path: pathlib.Path = HERE / "libraries.txt") -> List[Library]:
    """Read the table of libraries."""
    libraries: List[Library] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        folder, major, soname, node, patterns, status, status_name = (cell.strip() for cell in line.split("|"))
        again = any((library.folder, library.major) == (folder, int(major)) for library in libraries)
        version = soname.rpartition(".")[2] if again else ""
        libraries.append(Library(folder, int(major), soname, node, patterns.split(), int(status), status_name, version))
    return libraries


def read_symbols(library: Library) -> List[str]:
    """Read the symbols that upstream needs from a library."""
    path = HERE / library.symbols
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def elf_files(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Find the ELF files below a folder."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def needed_symbols(root: pathlib.Path) -> Set[str]:
    """Undefined dynamic symbols of all ELF files below `root` that none of them defines, as `name` or `name@node`."""
    undefined: Set[str] = set()
    defined: Set[str] = set()
    for path in elf_files(root):
        text = subprocess.run(
            ["readelf", "--dyn-syms", "-W", str(path)], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        for line in text.splitlines():
            match = re.match(r"\s*\d+: [0-9a-f]+ .* (UND|ABS|\d+) ([^ ]+)( \(\d+\))?$", line)
            if match and match.group(1) == "UND":
                undefined.add(match.group(2))
            elif match:
                defined.add(match.group(2).split("@")[0])
    return {symbol for symbol in undefined if symbol.split("@")[0] not in defined}


def belongs(symbol: str, library: Library) -> bool:
    """Whether a needed symbol is the library's: by its version node, or by its name where it carries none."""
    name, _, node = symbol.partition("@")
    if node:
        return node.strip("@") == library.node
    mine = any(fnmatch.fnmatchcase(name, pattern) for pattern in library.patterns)
    if library.folder == "cuda":  # cu* is a prefix of all the others: a driver function goes on with a capital
        return re.match(r"cu(?!File)[A-Z]", name) is not None
    return mine and (library.node == "-" or library.folder == "nvshmem")


def main() -> None:
    """Scan and rewrite."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="+", metavar="MAJOR=FOLDER", help="CUDA major and unpacked wheel")
    found: Dict[int, Set[str]] = {}
    for argument in parser.parse_args().wheels:
        major, _, folder = argument.partition("=")
        found.setdefault(int(major), set()).update(needed_symbols(pathlib.Path(folder)))
    for library in read_libraries():
        names = {symbol.partition("@")[0] for symbol in found.get(library.major, set()) if belongs(symbol, library)}
        names.update(read_symbols(library))
        path = HERE / library.symbols
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(name + "\n" for name in sorted(names)), encoding="utf-8")
        print(f"{path.relative_to(HERE)!s:40} {len(names):4} symbols")


if __name__ == "__main__":
    main()
