"""Write cuBLAS's header and exported functions from functions.txt.

python generate.py --functions functions.txt --header cublas_functions.h [--exports exports.cpp]
"""

import argparse
import pathlib
import re
from typing import List, NamedTuple, Tuple

TYPES = {
    "S": ("float", "float"),
    "D": ("double", "double"),
    "C": ("cuComplex", "float"),
    "Z": ("cuDoubleComplex", "double"),
    "H": ("__half", "__half"),
    "-": ("void", "void"),
}


class Function(NamedTuple):
    """One exported function."""

    family: str
    letter: str
    short: str  # what a program calls
    symbol: str  # what the library exports
    parameters: List[str]


class Library(NamedTuple):
    """The library of a table."""

    folder: str
    prefix: str
    handle: str
    status: str


def read(path: pathlib.Path) -> Tuple[Library, List[Function]]:
    """Expand the table's rows."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and line[0] != "#"]
    library = Library(path.parent.name, *lines[0].split()[1:])
    functions = []
    for line in lines[1:]:
        family, variants, suffix, wide, parameters = (cell.strip() for cell in line.split("|"))
        suffix = "" if suffix == "-" else suffix
        for variant in variants.split():
            letter, _, name = variant.partition(":")
            name = library.prefix + (name or letter + family)
            kind, real = TYPES[letter]
            for size, integer in (("", "int"), ("_64", "int64_t")):
                if size and wide != "64":
                    continue
                text = parameters.replace("{T}", kind).replace("{R}", real).replace("{int}", integer)
                functions.append(Function(family, letter, name + size, name + suffix + size, text.split(", ")))
    return library, functions


def header(library: Library, functions: List[Function]) -> str:
    """Return the declarations."""
    lines = [f"// Generated from shims/{library.folder}/functions.txt: what computes.", "#pragma once", ""]
    lines += [f"#define {f.short} {f.symbol}" for f in functions if f.short != f.symbol]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for f in functions:
        lines.append(f"{library.status} {f.symbol}({library.handle} handle, {', '.join(f.parameters)});")
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", ""])


def exports(library: Library, functions: List[Function]) -> str:
    """Return the definitions: each calls its family's template with the types that C++ computes with."""
    space = f"mxmaca::{library.folder}"
    lines = [f"// Generated from shims/{library.folder}/functions.txt.", '#include "families.h"', "", 'extern "C" {']
    for f in functions:
        names = [re.sub(r"\[\]$", "", parameter).split()[-1] for parameter in f.parameters]
        kind = "" if f.letter == "-" else f"<mxmaca::Native<{TYPES[f.letter][0]}>>"
        arguments = ", ".join(f"mxmaca::native({name})" for name in names)
        parameters = ", ".join([f"{library.handle} handle", *f.parameters])
        lines.append(f"MXMACA_EXPORT {library.status} {f.symbol}({parameters}) {{")
        lines.append(f"  return {space}::guarded(handle, [&] {{ return {space}::{f.family}{kind}({arguments}); }});")
        lines.append("}")
    return "\n".join([*lines, "}", ""])


def main() -> None:
    """Write what is asked for; a file that would not change keeps its time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=pathlib.Path, required=True)
    parser.add_argument("--header", type=pathlib.Path)
    parser.add_argument("--exports", type=pathlib.Path)
    options = parser.parse_args()
    library, functions = read(options.functions)
    for path, text in (
        (options.header, header(library, functions)),
        (options.exports, exports(library, functions)),
    ):
        if path is not None and not (path.exists() and path.read_text(encoding="utf-8") == text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
