"""What upstream's wheel of a new release says about itself: what its row holds, and what is left to a person."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .. import cache, children
from ..errors import FactoryError
from ..progress import step
from ..releases import CHECKOUT, Release, Table, sdk_version
from . import elf, patches
from .native import HEADERS
from .wheel import WheelReader

VERSION_FILE = "torch/version.py"
# The first letters of the constructor of upstream's error class: it takes a std::string.
ERROR_CONSTRUCTOR = "_ZN3c105ErrorC"
SHIMS = "cu_bridge/shims"
DTYPES = "macatorch/cpu_dtypes"


@dataclass
class Survey:
    """``patches``: names for the new series, with the text of those that are the release's own (None: shared).

    ``gone``: names in operators.toml that the release does not have. ``uncovered``: operators with a CUDA kernel that
    neither run on the CPU nor stand in operators.toml; a call of theirs fails and names the kernel.
    """

    cuda: str
    cxx11_abi: int
    patches: Dict[str, "str | None"] = field(default_factory=dict)
    unfit: List[str] = field(default_factory=list)
    symbols: Dict[str, List[str]] = field(default_factory=dict)
    unknown_libraries: List[str] = field(default_factory=list)
    dtypes: str = ""
    gone: List[str] = field(default_factory=list)
    uncovered: List[str] = field(default_factory=list)


def facts_of(source: str) -> Dict[str, str]:
    """The strings that torch/version.py assigns."""
    found = {}
    for node in ast.parse(source).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        value = node.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[target.id] = value.value
    return found


def survey(
    wheel: Path, version: str, nearest: Release, table: Table, folder: Path, checkout: Path = CHECKOUT
) -> Survey:
    """Look at everything. ``folder`` is for what is unpacked; nothing of the checkout is changed."""
    with WheelReader(wheel) as reader:
        facts = facts_of(reader.read(VERSION_FILE).decode("utf-8"))
        if "cuda" not in facts:
            raise FactoryError(
                f"{wheel.name} was built without CUDA.", "Take an architecture that upstream builds with CUDA."
            )
        with step(f"Unpacking {wheel.name}"):
            libraries = _unpack(reader, folder)
        with elf.open_elf(folder / "torch/lib/libc10.so") as library:
            names = [symbol.name for symbol in library.defined_symbols()]
        abi = int(any(name.startswith(ERROR_CONSTRUCTOR) and "__cxx11" in name for name in names))
        result = Survey(facts["cuda"], abi)
        with step(f"Trying the patches of {nearest.torch}"):
            _try_patches(reader, version, nearest, checkout, result)
    with step("Looking for new symbols of NVIDIA's libraries"):
        _scan(folder, libraries, table, checkout, result)
    with step("Asking codegen"):
        _codegen(folder, version, nearest, checkout, result)
    return result


def _unpack(reader: WheelReader, folder: Path) -> List[Path]:
    """The ELF files, the headers and torchgen. Returns the ELF files."""
    names = [name for name in reader.members if name.startswith(HEADERS) or elf.is_elf(reader.head(name))]
    cache.require_space(folder, sum(reader.members[name].file_size for name in names), f"Unpacking {reader.path.name}")
    paths = {name: reader.extract(name, folder / name) for name in names}
    return [path for name, path in paths.items() if elf.is_elf(reader.head(name))]


def own_version_patch(text: str, facts: Dict[str, str], version: str) -> str:
    """The patch of torch/version.py with the release's own version, CUDA release and commit in it."""
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        name = line[1:].partition(":" if ":" in line.partition("=")[0] else " =")[0]
        if line[:1] not in " +-" or name not in facts or "'" not in line:
            continue
        head, _, rest = line.partition("'")
        value = rest.rpartition("'")[0]
        if line[0] == "+" and "@" in value:
            lines[at] = f"{head}'{version}+{value.partition('+')[2]}'\n" if "+" in value else line
        else:
            lines[at] = f"{head}'{facts[name]}'\n"
    return "".join(lines)


def _try_patches(reader: WheelReader, version: str, nearest: Release, checkout: Path, result: Survey) -> None:
    """Each patch of the nearest series on the files as those before it left them. What does not fit keeps its place in
    the series, so that the build stops at it."""
    folder = checkout / "patches" / nearest.patches
    facts = facts_of(reader.read(VERSION_FILE).decode("utf-8"))
    changed: Dict[str, bytes | None] = {}

    def read(name: str) -> "bytes | None":
        return changed[name] if name in changed else reader.read(name) if name in reader.members else None

    for name in patches.series(folder):
        path = patches.place(folder, name)
        text = path.read_text(encoding="utf-8")
        entry, own = f"{path.parent.name}/{path.name}", None
        if f"b/{VERSION_FILE}" in text:
            entry, own = path.name, own_version_patch(text, facts, version)
            text = own
        files = patches.parse(text.replace(patches.PLACEHOLDER, sdk_version(checkout)), entry)
        try:
            changed.update(patches.apply([patches.Patch(entry, "", files)], read, version))
        except FactoryError as error:
            result.unfit.append(str(error).splitlines()[0])
        result.patches[entry] = own


def _scanner(checkout: Path) -> Any:
    spec = importlib.util.spec_from_file_location("scan_symbols", checkout / SHIMS / "scan_symbols.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def _scan(folder: Path, libraries: List[Path], table: Table, checkout: Path, result: Survey) -> None:
    scanner = _scanner(checkout)
    major = int(result.cuda.split(".")[0])
    needed = scanner.needed_symbols(folder)
    rows = [row for row in scanner.read_libraries() if row.major == major]
    for row in rows:
        names = {symbol.partition("@")[0] for symbol in needed if scanner.belongs(symbol, row)}
        new = sorted(names - set(scanner.read_symbols(row)))
        if new:
            result.symbols[str(row.symbols)] = new
    known = {row.soname for row in rows}
    for path in libraries:
        with elf.open_elf(path) as library:
            for name in library.needed:
                if any(fnmatch(name, pattern) for pattern in table.nvidia.libraries) and name not in known:
                    result.unknown_libraries.append(name)
    result.unknown_libraries = sorted(set(result.unknown_libraries))


def _codegen(folder: Path, version: str, nearest: Release, checkout: Path, result: Survey) -> None:
    """Run the code generator with the nearest release's table of dtypes, less the operators that are gone."""
    tables = folder / "cpu_dtypes"
    tables.mkdir()
    command = [sys.executable, str(checkout / "macatorch/codegen/operators.py"), "--site", str(folder)]
    command += ["--table", str(checkout / "macatorch/operators.toml"), "--cpu-dtypes", str(tables)]
    command += ["--library", str(folder / "torch/lib/libtorch_cuda.so"), "--out", str(folder / "generated")]
    text = (checkout / DTYPES / f"{nearest.torch}.toml").read_text(encoding="utf-8").replace(nearest.torch, version)
    # Without any names, to learn which operators there are.
    empty = re.sub(r"\[.*?\]", "[]", text, flags=re.DOTALL)
    (tables / f"{version}.toml").write_text(empty, encoding="utf-8")
    command += ["--report", str(folder / "report.json")]
    done = children.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise FactoryError(
            f"codegen/operators.py failed for torch {version}: " + "\n    ".join(done.stderr.strip().splitlines()[-6:]),
            "A row of operators.toml does not fit this release; CONTRIBUTING.md says how rows are written.",
        )
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    result.gone, result.uncovered = report["missing"], report["uncovered"]
    there = set(report["operators"])
    result.dtypes = re.sub(r' ?"([^"\n]+)",', lambda found: found.group(0) if found.group(1) in there else "", text)


def added_symbols(checkout: Path, symbols: Dict[str, List[str]]) -> List[Tuple[Path, str]]:
    """The files of symbols with the new ones in them."""
    files = []
    for name, new in symbols.items():
        path = checkout / SHIMS / name
        old = path.read_text(encoding="utf-8").split() if path.exists() else []
        files.append((path, "".join(f"{symbol}\n" for symbol in sorted({*old, *new}))))
    return files
