"""Objects become a program, a library, or one object."""

import shutil
from pathlib import Path
from typing import Dict, List, Sequence

from . import toolkit
from .errors import CuccError
from .flags import Flags
from .options import Input
from .toolchain import Toolchain, place


def device_link(tools: Toolchain, output: str, folder: Path) -> None:
    """An object for build systems that link device code in a step of its own: there is nothing left to do in it."""
    empty = folder / "empty.s"
    empty.write_text('.section .note.GNU-stack,"",@progbits\n', encoding="utf-8")
    made = folder / "dlink.o"
    tools.run(["as", str(empty), "-o", str(made)])
    if not tools.options.flag("dry_run"):
        place(made, output)


def link(
    tools: Toolchain, flags: Flags, sources: Sequence[Input], compiled: Dict[str, str], output: str, shared: bool
) -> None:
    """Make what the command line asks for.

    Args:
        compiled: the objects of source files.
        shared: a shared library instead of a program.
    """
    options = tools.options
    passed_on = [part for option in options.linker for part in ("-Xlinker", option)]
    parts = [compiled.get(part, part) for part in options.link_order]
    if any(part.startswith("-l") for part in parts):
        # nvcc's lines are a group, so that `-lcublas program.cu` finds the library also by linkers that drop those
        # which nothing before them needs.
        parts = ["-Wl,--start-group", *parts, "-Wl,--end-group"]
    if options.flag("library"):
        objects = [compiled.get(source.path, source.path) for source in sources]
        tools.run([options.value("archiver") or "ar", "rcs", *options.all("archive_options"), output, *objects])
    elif options.flag("relocatable_link"):
        tools.run([tools.compiler, "-r", "-nostdlib", *flags.shared(), *passed_on, *parts, "-o", output])
    else:
        tree = toolkit.tree(flags.major)
        # The linker that CMake finds in this line and uses by itself: it knows the libraries' folder.
        launcher = tree / "bin" / "cucc-link"
        own = launcher.is_file() and tools.compiler == shutil.which("g++")
        command = [str(launcher) if own else tools.compiler, "-o", output, *(["-shared"] if shared else [])]
        command += [*flags.shared(), *(["-pg"] if options.flag("profile") else []), *parts, *passed_on]
        command += [f"-L{path}" for path in options.all("library_path")]
        if options.value("run_time", "static") != "none":
            command += _libraries(flags.major, tree / "lib64", options.flag("dry_run"))
        tools.run(command)


def _libraries(major: int, folder: Path, dry_run: bool) -> List[str]:
    """The flags for the CUDA runtime library."""
    libraries = toolkit.libraries(major)
    names = [path.name for path in sorted(libraries.glob("libcudart.so.*"))]
    if not names and not dry_run:
        raise CuccError(f"cucc: fatal: no CUDA {major} libraries in {libraries}")
    found = [f"-L{folder}", "-lcudart"] if folder.is_dir() else [f"-L{libraries}", f"-l:{names[0]}"]
    paths = [f"-Wl,-rpath,{libraries}", f"-Wl,-rpath-link,{libraries.parent}"]
    return [*found, *paths, "-pthread", "-ldl", "-lrt"]
