"""Write a source file with the names that a library exports, for its name without a version (libcudart.so).

    python linkable_names.py --nm nm --library libcudart.so.12 --output names.cpp

Linkers and programs ask for that name: a linker wants the symbols in it, and `dlopen` wants the library itself. A wheel
holds no links. So the name is a small library with the symbols alone, and with DT_FILTER of the real one: whoever opens
it gets the real one's functions, and whoever is linked with it wants the real one, whose SONAME it has.
"""

import argparse
import pathlib
import subprocess

HEAD = "// Generated: the names that {library} exports. None of these is called (cmake/linkable_names.py).\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nm", required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    command = [options.nm, "--dynamic", "--defined-only", "--format=posix", str(options.library)]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    # Of absolute type are the names of symbol versions.
    names = sorted({name.partition("@")[0] for name, kind, *_ in rows if kind in ("T", "W")})
    text = [f'__asm__(".globl {name}\\n.type {name}, %function\\n{name}:\\n");' for name in names]
    text.append('__asm__(".byte 0\\n");')
    options.output.write_text(HEAD.format(library=options.library.name) + "\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
