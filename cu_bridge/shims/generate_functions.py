"""Write a library's header and exported functions from a table such as functions.txt.

python generate_functions.py --functions functions.txt --header cublas_functions.h [--exports exports.cpp]

The templates that compute are in families.h beside functions.txt, in sparse_families.h beside sparse_functions.txt,
and so on.
"""

import argparse
import pathlib
import re
from typing import List, NamedTuple, Tuple

# What {T}, {R} and {C} stand for: the type, its real and its complex type.
TYPES = {
    "S": ("float", "float", "cuComplex"),
    "D": ("double", "double", "cuDoubleComplex"),
    "C": ("cuComplex", "float", "cuComplex"),
    "Z": ("cuDoubleComplex", "double", "cuDoubleComplex"),
    "H": ("__half", "__half", "__half2"),
    "-": ("void", "void", "void"),
}


# Nothing is read or written where one of these is 0. With an empty inner dimension the inputs are not read.
OUTER_SIZES = ("m", "n", "nrhs", "batchCount", "batchSize", "groupCount")
INNER_SIZES = ("k",)
BATCH_SIZES = ("batchCount", "batchSize")
SCALARS = ("alpha", "beta")
ROTATION = {"c": 1, "s": 1, "param": 5}  # what a rotation reads as scalars, and how many
RESULTS = ("result", "info", "devInfo", "infoArray", "iter")  # written even where nothing is computed


class Parameter(NamedTuple):
    """One parameter.

    A `?` after its name in the table: it may be null, or it is a size that the family checks. A `!`: it is on the host,
    and told at the call what is wrong with the arguments.
    """

    text: str  # as C declares it
    name: str
    optional: bool
    verdict: bool

    @property
    def is_pointer(self) -> bool:
        """Whether it names memory, or an object of the library (`..._t params`)."""
        return "*" in self.text or self.text.endswith("[]")

    @property
    def is_input(self) -> bool:
        """Whether its elements are only read."""
        return self.text.startswith("const ")

    def kept(self) -> str:
        """What a call that is made later keeps of the argument (stream_work.h); empty: its value."""
        if self.verdict:
            return f"verdict({self.name})"
        if self.text.endswith("[]") and not self.holds_pointers:
            return f"hostArray({self.name}, groupCount)"
        if self.is_pointer and self.is_input and self.name in SCALARS:
            return f"scalars(handle, {self.name})"
        if self.is_pointer and self.is_input and self.name in ROTATION:
            return f"scalars(handle, {self.name}, {ROTATION[self.name]})"
        if self.name == "result":
            return f"resultOf(handle, {self.name})"
        return self.name if self.is_object else ""

    @property
    def is_object(self) -> bool:
        """Whether it is an object of the library."""
        return self.text.endswith("_t params")

    @property
    def is_memory(self) -> bool:
        """Whether it names memory, of which an address is all that is kept."""
        return self.is_pointer and not self.is_object and self.name != "bufferOnHost" and not self.kept()

    @property
    def holds_pointers(self) -> bool:
        """Whether it is an array of addresses."""
        return self.text.endswith("[]") and "*" in self.text


class Function(NamedTuple):
    """One exported function."""

    family: str
    letter: str
    short: str  # what a program calls
    symbol: str  # what the library exports
    parameters: List[Parameter]

    @property
    def is_question(self) -> bool:
        """Whether it computes nothing: it reads no element, and asks for the places of the results."""
        return self.family.endswith("_bufferSize")

    def sizes(self, among: Tuple[str, ...]) -> List[str]:
        """The sizes of this function among those names; an array of sizes is none."""
        return [p.name for p in self.parameters if p.name in among and not p.is_pointer]

    def conditions(self) -> List[Tuple[str, str]]:
        """What is wrong with the arguments whatever the function computes: conditions in C++, each with its status."""
        objects = [("!liveOrNull" if p.optional else "!live") + f"({p.name})" for p in self.parameters if p.is_object]
        types = [p.name for p in self.parameters if p.text.startswith("cudaDataType ")]
        checked = [p.name for p in self.parameters if p.optional]
        sizes = [name for name in self.sizes(OUTER_SIZES + INNER_SIZES) if name not in checked]
        found = [(" || ".join(objects), "kInvalidValue")]
        found += [(" || ".join(f"{name} < 0" for name in sizes), "kInvalidValue")]
        found += [(" || ".join(f"!known({name})" for name in types), "kNotSupported")]
        if not self.is_question:
            found += [(self.missing(), "kInvalidValue")]
        return [(condition, status) for condition, status in found if condition]

    def missing(self) -> str:
        """Return the condition under which a pointer that is needed is null, or the workspace too small."""
        pointers = [p for p in self.parameters if p.is_pointer and not p.optional]
        results = [p for p in pointers if p.name in RESULTS]
        inputs = [p for p in pointers if p.is_input and p.name not in SCALARS]
        others = [p for p in pointers if p not in results and p not in inputs]
        small = [f"{p.name} < kWorkspace" for p in self.parameters if p.name.lower() == "lwork"]
        needs = ((results, (), []), (others, OUTER_SIZES, small), (inputs, OUTER_SIZES + INNER_SIZES, []))
        conditions = []
        for needed, sizes, wrong in needs:
            wrong = wrong + [f"{p.name} == nullptr" for p in needed]
            wrong += [f"hasNull({p.name}, {b})" for p in needed if p.holds_pointers for b in self.sizes(BATCH_SIZES)]
            if wrong:
                filled = [f"{size} > 0" for size in self.sizes(sizes)]
                conditions.append(" && ".join([*filled, f"({' || '.join(wrong)})" if filled else " || ".join(wrong)]))
        return " || ".join(f"({condition})" if "&&" in condition else condition for condition in conditions)


class Library(NamedTuple):
    """The library of a table."""

    table: str  # its path below shims/
    folder: str
    families: str  # the header of its templates
    prefix: str
    handle: str
    status: str
    later: str = ""  # "later": its work may be captured, and wait


def read(path: pathlib.Path) -> Tuple[Library, List[Function]]:
    """Expand the table's rows."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and line[0] != "#"]
    families = path.stem.replace("functions", "families") + ".h"
    library = Library(f"{path.parent.name}/{path.name}", path.parent.name, families, *lines[0].split()[1:])
    functions = []
    for line in lines[1:]:
        family, variants, suffix, wide, parameters = (cell.strip() for cell in line.split("|"))
        suffix = "" if suffix == "-" else suffix
        for variant in variants.split():
            letter, _, name = variant.partition(":")
            name = library.prefix + (name or letter + family)
            kind, real, pair = TYPES[letter]
            for size, integer in (("", "int"), ("_64", "int64_t")):
                if size and wide != "64":
                    continue
                text = parameters.replace("{T}", kind).replace("{R}", real).replace("{C}", pair)
                text = text.replace("{int}", integer)
                declared = [parameter(part) for part in text.split(", ")]
                functions.append(Function(family, letter, name + size, name + suffix + size, declared))
    return library, functions


def parameter(cell: str) -> Parameter:
    """Read one parameter of the table."""
    text = cell.replace("?", "").replace("!", "")
    return Parameter(text, re.sub(r"\[\]$", "", text).split()[-1], "?" in cell, "!" in cell)


def header(library: Library, functions: List[Function]) -> str:
    """Return the declarations."""
    lines = [f"// Generated from shims/{library.table}: what computes.", "#pragma once", ""]
    lines += [f"#define {f.short} {f.symbol}" for f in functions if f.short != f.symbol]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for f in functions:
        lines.append(
            f"{library.status} {f.symbol}({library.handle} handle, {', '.join(p.text for p in f.parameters)});"
        )
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", ""])


def exports(library: Library, functions: List[Function]) -> str:
    """Return the definitions: each calls its family's template with the types that C++ computes with."""
    space = f"mxmaca::{library.folder}"
    lines = [f"// Generated from shims/{library.table}.", f'#include "{library.families}"', ""]
    lines += ["using namespace mxmaca;", f"using namespace {space};", "", 'extern "C" {']
    for f in functions:
        kind = "" if f.letter == "-" else f"<Native<{TYPES[f.letter][0]}>>"
        arguments = ", ".join(f"native({p.name})" for p in f.parameters)
        parameters = ", ".join([f"{library.handle} handle", *(p.text for p in f.parameters)])
        lines.append(f"MXMACA_EXPORT {library.status} {f.symbol}({parameters}) {{")
        lines.append(f"  const auto work_ = [&]() -> {library.status} {{")
        lines += [f"    if ({condition}) return {status};" for condition, status in f.conditions()]
        lines += [f"    return {space}::{f.family}{kind}({arguments});", "  };"]
        if f.is_question:
            lines += ["  return described(handle, work_);", "}"]
            continue
        lines.append("  const auto run_ = [&, name = __func__] { return guarded(handle, work_, name); };")
        lines += later(library, f) if library.later else []
        lines += ["  return run_();", "}"]
    return "\n".join([*lines, "}", ""])


def later(library: Library, f: Function) -> List[str]:
    """Return the statements that leave a function whose work is done later (stream_work.h)."""
    kept = [p.name for p in f.parameters if p.kept()]
    captures = [f"{p.name} = keep({p.kept()})" if p.kept() else p.name for p in f.parameters]
    arguments = [f"{name}.use()" if name in kept else name for name in ["handle", *(p.name for p in f.parameters)]]
    arguments[0] = "handle.use()"
    lines = [f"  {library.status} answer_;", "  const auto keepCall_ = [&] {"]
    lines += [f"    requireDeviceMemory({p.name});" for p in f.parameters if p.is_memory]
    lines += [
        f"    return [handle = keep(handle), {', '.join(captures)}]() mutable {{",
        f"      return {f.symbol}({', '.join(arguments)});",
        "    };",
        "  };",
        "  if (defers(handle) && madeLater(&answer_, streamOf(handle), __func__, run_, keepCall_)) return answer_;",
    ]
    return lines


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
