"""Write what a shim does not implement by hand: a refusal for each needed symbol, and the linker's version script.

A refusal is a weak function, so that a function of the same name in the shim's own source takes its place. It returns
the library's own "not supported" status and says once, on stderr, which function was asked for.
"""

import argparse
import pathlib

from scan_symbols import read_libraries, read_symbols

SOURCE = """// Generated from shims/{symbols}.
#include "refuse.h"

#define REFUSE(name) \\
  extern "C" __attribute__((weak, visibility("default"))) long name() {{ \\
    return mxmaca::refuse("{soname}", #name, {status}, "{status_name}"); \\
  }}

{refusals}
"""


def main() -> None:
    """Write the sources, the version scripts and the list of shims that CMake reads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    targets = []
    for library in read_libraries():
        stem = f"{library.folder}_{library.major}" + (f"_{library.version}" if library.version else "")
        symbols = read_symbols(library)
        text = SOURCE.format(
            symbols=library.symbols,
            soname=library.soname,
            status=library.status,
            status_name=library.status_name,
            refusals="\n".join(f"REFUSE({name})" for name in symbols),
        )
        node = "" if library.node == "-" else library.node + " "
        exported = " ".join(pattern + ";" for pattern in library.patterns)
        script = f"{node}{{ global: {exported} local: *; }};\n"
        for path, content in ((output / (stem + "_refusals.cpp"), text), (output / (stem + ".map"), script)):
            if not path.exists() or path.read_text(encoding="utf-8") != content:  # keep times: nothing to rebuild
                path.write_text(content, encoding="utf-8")
        targets.append(f"{library.folder} {library.major} {library.soname} {stem} {library.version}".rstrip())
    (output / "shims.txt").write_text("\n".join(targets) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
