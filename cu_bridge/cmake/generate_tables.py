"""Turn the runtime's data tables (errors.txt, profiles.txt) into C headers. Called by CMake."""

import argparse
import pathlib
from typing import List

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def rows(path: pathlib.Path) -> List[List[str]]:
    """Read the rows of a `|`-separated table, without comments and blank lines."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [[cell.strip() for cell in line.split("|")] for line in lines if line and not line.startswith("#")]


def parse_bytes(text: str) -> int:
    """Parse a memory size such as `64GiB`."""
    return int(text[:-3]) * UNITS[text[-3:]]


def enum(tag: str, type_name: str, prefix: str, success: str, entries: List[List[str]], column: int) -> str:
    """Write a C enum of the error codes that have a name in `column`. The tag is part of C++ symbol names."""
    lines = [f"typedef enum {tag} {{", f"  {success} = 0,"]
    lines += [f"  {prefix}{row[column]} = {row[0]}," for row in entries if row[column] != "-"]
    return "\n".join(lines) + f"\n}} {type_name};\n"


def main() -> None:
    """Write the headers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", type=pathlib.Path, required=True, help="folder with errors.txt and profiles.txt")
    parser.add_argument("--public", type=pathlib.Path, required=True, help="folder for the installed headers")
    parser.add_argument(
        "--private", type=pathlib.Path, required=True, help="folder for the tables that the runtime includes"
    )
    options = parser.parse_args()
    options.public.mkdir(parents=True, exist_ok=True)
    options.private.mkdir(parents=True, exist_ok=True)

    errors = rows(options.runtime / "errors.txt")
    notice = "// Generated from runtime/errors.txt.\n#pragma once\n\n"
    (options.public / "mc_error_codes.h").write_text(
        notice + enum("mcError", "mcError_t", "mcError", "mcSuccess", errors, 1)
    )
    (options.public / "mxmaca_cuda_error_codes.h").write_text(
        notice + enum("cudaError", "cudaError_t", "cudaError", "cudaSuccess", errors, 1)
    )
    (options.public / "mxmaca_driver_error_codes.h").write_text(
        notice + enum("cudaError_enum", "CUresult", "CUDA_ERROR_", "CUDA_SUCCESS", errors, 2)
    )
    table = [f'{{{code}, "{name}", "{driver}", "{text}"}},' for code, name, driver, text in errors]
    (options.private / "error_table.inc").write_text("\n".join(table) + "\n")

    names = [f'MXMACA_ERROR({row[0]}, "{row[1]}")' for row in errors]
    (options.private / "error_names.inc").write_text("\n".join(names) + "\n")

    names = [f'MXMACA_ERROR({row[0]}, "{row[2]}")' for row in errors if row[2] != "-"]
    (options.private / "driver_error_names.inc").write_text("\n".join(names) + "\n")

    profiles = []
    for profile, name, memory, capability, multiprocessors, clock, memory_clock, bus, l2 in rows(
        options.runtime / "profiles.txt"
    ):
        numbers = [*capability.split("."), multiprocessors, clock, memory_clock, bus, l2]
        profiles.append(f'{{"{profile}", "{name}", {parse_bytes(memory)}ULL, {", ".join(numbers)}}},')
    (options.private / "profile_table.inc").write_text("\n".join(profiles) + "\n")


if __name__ == "__main__":
    main()
