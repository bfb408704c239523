"""Turn the tables of facts/ into C headers for the runtime, the CUDA libraries and programs. Called by CMake."""

import argparse
import pathlib
from typing import List, Sequence

MAJORS = (12, 13)
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def rows(path: pathlib.Path) -> List[List[str]]:
    """Read the rows of a `|`-separated table, without comments and blank lines."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [[cell.strip() for cell in line.split("|")] for line in lines if line and not line.startswith("#")]


def parse_bytes(text: str) -> int:
    """Parse a number, or a memory size such as `64GiB`."""
    return int(text[:-3]) * UNITS[text[-3:]] if text[-3:] in UNITS else int(text)


def enum(tag: str, type_name: str, prefix: str, success: str, entries: List[List[str]], column: int) -> str:
    """Write a C enum of the error codes that have a name in `column`. The tag is part of C++ symbol names."""
    lines = [f"typedef enum {tag} {{", f"  {success} = 0,"]
    lines += [f"  {prefix}{row[column]} = {row[0]}," for row in entries if row[column] != "-"]
    return "\n".join(lines) + f"\n}} {type_name};\n"


def limits(entries: List[List[str]]) -> str:
    """Write a constant for each limit."""
    constants = [f"constexpr unsigned {name} = {parse_bytes(value)};" for name, value, _ in entries]
    return "\n".join(["namespace mc::limits {", *constants, "}  // namespace mc::limits"]) + "\n"


def attribute_enums(entries: List[List[str]]) -> List[str]:
    """Write the enums of device attributes for the runtime and for the driver interface."""
    runtime = [f"  cudaDevAttr{name} = {number}," for number, name, _, _ in entries if name != "-"]
    driver = [
        f"  CU_DEVICE_ATTRIBUTE_{name} = {number}," for number, _, names, _ in entries for name in names.split(", ")
    ]
    driver.append(f"  CU_DEVICE_ATTRIBUTE_MAX = {int(entries[-1][0]) + 1},")
    return [
        "\n".join(["enum cudaDeviceAttr {", *runtime, "};\n"]),
        "\n".join(["typedef enum CUdevice_attribute_enum {", *driver, "} CUdevice_attribute;\n"]),
    ]


def attribute_values(entries: List[List[str]]) -> str:
    """Write the cases of a switch over attributes: each value as an expression of `p`, the device's properties."""
    lines = []
    for number, _, _, value in entries:
        if value != "0":
            constant = value.lstrip("-").isdigit()
            text = value if constant else f"mc::limits::{value}" if value.startswith("k") else f"p.{value}"
            lines.append(f"case {number}: *value = {text}; break;")
    return "\n".join(lines) + "\n"


def version_header(parts: str, number: str, factors: str, versions: Sequence[str]) -> str:
    """Write the macros of a library's version, for each CUDA release where they differ."""
    blocks = []
    for version in versions:
        values = [int(part) for part in version.split(".")]
        lines = [f"#define {macro} {value}" for macro, value in zip(parts.split(), values) if macro != "-"]
        total = sum(value * int(factor) for value, factor in zip(values, factors.split()))
        blocks.append("\n".join([*lines, f"#define {number} {total}"]) + "\n")
    if len(set(blocks)) == 1:
        return blocks[0]
    return f"#if MXMACA_CUDA_MAJOR == {MAJORS[0]}\n{blocks[0]}#else\n{blocks[1]}#endif\n"


CHOICE = f"""// The CUDA release that programs are compiled for: MXMACA_CUDA_MAJOR chooses it.
#ifndef MXMACA_CUDA_MAJOR
#define MXMACA_CUDA_MAJOR {MAJORS[-1]}
#endif
#if {" && ".join(f"MXMACA_CUDA_MAJOR != {major}" for major in MAJORS)}
#error "MXMACA_CUDA_MAJOR must be {" or ".join(map(str, MAJORS))}"
#endif
#define CUDA_VERSION CUDART_VERSION

"""


def main() -> None:
    """Write the headers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=pathlib.Path, required=True, help="folder with the tables")
    parser.add_argument("--public", type=pathlib.Path, required=True, help="folder for the installed headers")
    parser.add_argument("--private", type=pathlib.Path, required=True, help="folder for what only the SDK includes")
    options = parser.parse_args()
    (options.public / "mxmaca" / "versions").mkdir(parents=True, exist_ok=True)
    options.private.mkdir(parents=True, exist_ok=True)

    def table(name: str) -> List[List[str]]:
        return rows(options.facts / name)

    def header(path: str, source: str, text: str) -> None:
        (options.public / path).write_text(f"// Generated from cu_bridge/facts/{source}.\n#pragma once\n\n{text}")

    def include(path: str, lines: List[str]) -> None:
        (options.private / path).write_text("\n".join(lines) + "\n")

    errors = table("errors.txt")
    header("mc_error_codes.h", "errors.txt", enum("mcError", "mcError_t", "mcError", "mcSuccess", errors, 1))
    header(
        "mxmaca_cuda_error_codes.h",
        "errors.txt",
        enum("cudaError", "cudaError_t", "cudaError", "cudaSuccess", errors, 1),
    )
    header(
        "mxmaca_driver_error_codes.h",
        "errors.txt",
        enum("cudaError_enum", "CUresult", "CUDA_ERROR_", "CUDA_SUCCESS", errors, 2),
    )
    include("error_table.inc", [f'{{{code}, "{name}", "{text}"}},' for code, name, _, text in errors])
    include("error_names.inc", [f'MXMACA_ERROR({row[0]}, "{row[1]}")' for row in errors])
    include("driver_error_names.inc", [f'MXMACA_ERROR({row[0]}, "{row[2]}")' for row in errors if row[2] != "-"])

    profiles = []
    for profile, name, memory, capability, *numbers in table("profiles.txt"):
        values = ", ".join([*capability.split("."), *numbers[:5]])
        sensors = ", ".join(numbers[5:])
        profiles.append(f'{{"{profile}", "{name}", {parse_bytes(memory)}ULL, {values}, {{{sensors}}}}},')
    include("profile_table.inc", profiles)

    header("mc_device_limits.h", "limits.txt", limits(table("limits.txt")))
    attributes = table("attributes.txt")
    runtime, driver = attribute_enums(attributes)
    header("mxmaca_device_attributes.h", "attributes.txt", runtime)
    header("mxmaca_driver_attributes.h", "attributes.txt", driver)
    include("device_attributes.inc", [attribute_values(attributes)])

    for path, parts, number, factors, *versions in table("versions.txt"):
        text = version_header(parts, number, factors, versions)
        if path == "mxmaca_cuda_version.h":
            text = CHOICE + text
        elif text.startswith("#if"):
            text = f'#include "{"../" * path.count("/")}mxmaca_cuda_version.h"\n\n' + text
        header(path, "versions.txt", text)


if __name__ == "__main__":
    main()
