"""Write the toolkit trees of an installed SDK: mxmaca/cuda12 and mxmaca/cuda13, each a whole CUDA_HOME.

Build files reach for CUDA_HOME/bin/nvcc, CUDA_HOME/include and CUDA_HOME/lib64 and know nothing of a second CUDA
release beside it, so each release that the SDK speaks gets a tree. A wheel holds no links, hence

    bin/      scripts that call the one cucc with CUCC_CUDA_MAJOR
    include/  a forwarder for each header that chooses the release
    lib64/    copies of the libraries (100 kB each), libraries of their names under the names without a version
              (linkable_names.py), and linker scripts in the place of archives
"""

import argparse
import json
import os
import re
import shutil
from pathlib import Path
from typing import Dict

RUNTIME_NAME = re.compile(r"lib(?P<name>[\w-]+)\.so\.\d+")
# Names by which a library is linked besides its own. What CUDA has as an archive as well is ours, shared.
STATIC = (
    "cublas",
    "cublasLt",
    "cudart",
    "cufft",
    "cufile",
    "curand",
    "cusolver",
    "cusparse",
    "nccl",
    "nvjpeg",
    "nvrtc",
)
ALSO = {
    **{name: [f"lib{name}_static.a"] for name in STATIC},
    "cuda": ["stubs/libcuda.so"],
    "nvidia-ml": ["stubs/libnvidia-ml.so"],
}
ALSO["cufft"].append("libcufft_static_nocallback.a")
# Archives without members: there is no device run time to link, NVTX is all in its header, and a shared library needs
# nothing of what CUDA's archives are linked with.
EMPTY_ARCHIVES = (
    "libcudadevrt.a",
    "libculibos.a",
    "libcusolver_lapack_static.a",
    "libcusolver_metis_static.a",
    "libmetis_static.a",
    "libnvToolsExt.a",
    "libnvrtc-builtins_static.a",
    "libnvptxcompiler_static.a",
)

COMMAND = """#!/bin/sh
# cucc for CUDA {release}.
here=$(dirname "$(readlink -f "$0")")
CUCC_CUDA_MAJOR={major} exec "$here/{up}/bin/{program}" "$@"
"""
CALL = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/{up}/{program}" "$@"
"""
# What CMake links targets of CUDA with: it has the compiler's own options left out, so the search path is added here.
LINK = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "${{CUDAHOSTCXX:-g++}}" "$@" "-Wl,-rpath,$(readlink -f "$here/../../lib/cuda{major}")"
"""
# Programs that put a header's text in the place of its #include (KeOps) leave a name that is a macro alone.
FORWARDER = """#ifndef MXMACA_CUDA_MAJOR
#define MXMACA_CUDA_MAJOR {major}
#endif
#undef MXMACA_HEADER
#define MXMACA_HEADER "{path}"
#if __has_include(MXMACA_HEADER)
#include MXMACA_HEADER
#else  // this is a copy: programs lay headers beside the sources that they compile at run time
#include_next <{name}>
#endif
"""
# In CUDA 13 these headers lie in a folder of their own, and compilers find them without its name.
CCCL = ("cub", "cuda", "nv", "thrust")
NO_LIBDEVICE = "The simulated device needs no device bitcode. CMake takes this folder as the mark of a CUDA toolkit.\n"


def write(path: Path, text: str, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755 if executable else 0o644)


def forward_headers(root: Path, tree: Path, major: int) -> None:
    include = root / "include"
    for header in sorted(path for path in include.rglob("*") if path.is_file()):
        name = header.relative_to(include)
        forwarders = [tree / "include" / name]
        if major >= 13 and name.parts[0] in CCCL:
            forwarders.append(tree / "include" / "cccl" / name)
        for forwarder in forwarders:
            path = Path(os.path.relpath(header, forwarder.parent)).as_posix()
            write(forwarder, FORWARDER.format(major=major, path=path, name=name.as_posix()))


def link_libraries(root: Path, tree: Path, major: int) -> None:
    lib64 = tree / "lib64"
    lib64.mkdir(parents=True)
    for library in sorted((root / "lib" / f"cuda{major}").iterdir()):
        match = RUNTIME_NAME.fullmatch(library.name)
        if match is None:
            continue
        shutil.copy2(library, lib64 / library.name)
        for name in ALSO.get(match["name"], []):
            target = "../" * name.count("/") + library.name
            write(lib64 / name, f"INPUT({target})\n")
    linkable = root / "linkable" / f"cuda{major}"
    for library in linkable.iterdir():
        shutil.move(str(library), str(lib64 / library.name))
    linkable.rmdir()
    for name in EMPTY_ARCHIVES:
        write(lib64 / name, "!<arch>\n")


def make(root: Path, major: int, release: str) -> None:
    tree = root / f"cuda{major}"
    if tree.exists():
        shutil.rmtree(tree)
    for program in ("cucc", "cuobjdump", "nvcc"):
        text = COMMAND.format(release=release, major=major, up="../..", program=program)
        write(tree / "bin" / program, text, executable=True)
    write(tree / "bin" / "cucc-link", LINK.format(major=major), executable=True)
    write(tree / "tools" / "cmake_maca", CALL.format(up="../..", program="tools/cmake_maca"), executable=True)
    forward_headers(root, tree, major)
    link_libraries(root, tree, major)
    write(tree / "nvvm" / "libdevice" / "README", NO_LIBDEVICE)
    facts = {"cuda": {"name": "CUDA SDK", "version": f"{release}.0"}}
    write(tree / "version.json", json.dumps(facts, indent=2) + "\n")


def make_cu_bridge(root: Path) -> None:
    """tools/cu-bridge, where CUCC_PATH of the classic installation points: the commands."""
    folder = root / "tools" / "cu-bridge"
    for program in ("cucc", "nvcc"):
        text = CALL.format(up="../../..", program=f"bin/{program}")
        write(folder / "bin" / program, text, executable=True)
    write(folder / "tools" / "cmake_maca", CALL.format(up="../..", program="cmake_maca"), executable=True)


def releases(root: Path) -> Dict[int, str]:
    """The CUDA releases of the SDK by their major numbers, as facts/versions.txt has them."""
    lines = (root / "facts" / "versions.txt").read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.startswith("mxmaca_cuda_version.h"))
    found = [version.strip().rpartition(".")[0] for version in row.split("|")[4:]]
    return {int(release.partition(".")[0]): release for release in found}


def main() -> None:
    """Write all trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, help="the installed folder mxmaca")
    root = parser.parse_args().root
    for major, release in releases(root).items():
        make(root, major, release)
    (root / "linkable").rmdir()
    make_cu_bridge(root)


if __name__ == "__main__":
    main()
