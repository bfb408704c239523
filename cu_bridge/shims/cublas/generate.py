"""Write cuBLAS's header and exported functions from functions.txt.

python generate.py --functions functions.txt --header cublas_functions.h [--exports exports.cpp]
"""

import argparse
import pathlib
import re
from typing import Iterator, List, NamedTuple

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


def read(path: pathlib.Path) -> Iterator[Function]:
    """Expand the table's rows."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        family, variants, suffix, wide, parameters = (cell.strip() for cell in line.split("|"))
        suffix = "" if suffix == "-" else suffix
        for variant in variants.split():
            letter, _, name = variant.partition(":")
            name = "cublas" + (name or letter + family)
            kind, real = TYPES[letter]
            for size, integer in (("", "int"), ("_64", "int64_t")):
                if size and wide != "64":
                    continue
                text = parameters.replace("{T}", kind).replace("{R}", real).replace("{int}", integer)
                yield Function(family, letter, name + size, name + suffix + size, text.split(", "))


def header(functions: List[Function]) -> str:
    """Return the declarations."""
    lines = ["// Generated from shims/cublas/functions.txt: cuBLAS's computing functions.", "#pragma once", ""]
    lines += [f"#define {f.short} {f.symbol}" for f in functions if f.short != f.symbol]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    lines += [f"cublasStatus_t {f.symbol}(cublasHandle_t handle, {', '.join(f.parameters)});" for f in functions]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", ""])


def exports(functions: List[Function]) -> str:
    """Return the definitions: each calls its family's template with the types that C++ computes with."""
    lines = ["// Generated from shims/cublas/functions.txt.", '#include "families.h"', "", 'extern "C" {']
    for f in functions:
        names = [re.sub(r"\[\]$", "", parameter).split()[-1] for parameter in f.parameters]
        kind = "" if f.letter == "-" else f"<mxmaca::Native<{TYPES[f.letter][0]}>>"
        arguments = ", ".join(f"mxmaca::native({name})" for name in names)
        lines.append(f"MXMACA_EXPORT cublasStatus_t {f.symbol}(cublasHandle_t handle, {', '.join(f.parameters)}) {{")
        call = f"mxmaca::cublas::{f.family}{kind}({arguments})"
        lines.append(f"  return mxmaca::cublas::guarded(handle, [&] {{ return {call}; }});")
        lines.append("}")
    return "\n".join([*lines, "}", ""])


def main() -> None:
    """Write what is asked for; a file that would not change keeps its time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=pathlib.Path, required=True)
    parser.add_argument("--header", type=pathlib.Path)
    parser.add_argument("--exports", type=pathlib.Path)
    options = parser.parse_args()
    functions = list(read(options.functions))
    for path, text in ((options.header, header(functions)), (options.exports, exports(functions))):
        if path is not None and not (path.exists() and path.read_text(encoding="utf-8") == text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
