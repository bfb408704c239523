"""Libraries that upstream's tests load and that its wheel does not hold: compiled from the sources of the tests.

Upstream's own runs find them in the build of PyTorch itself. `[libraries]` in files.toml is the table: of each library
the files of tests that load it, and its sources below upstream's folder of tests.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Mapping, Sequence

from .. import cache, children
from ..errors import FactoryError
from ..progress import step

# What the installed torch says of how to compile against it.
ASK = """
import json, torch
from pathlib import Path
from torch.utils import cpp_extension
print(json.dumps({
    "includes": cpp_extension.include_paths(),
    "abi": int(torch._C._GLIBCXX_USE_CXX11_ABI),
    "libraries": str(Path(torch.__file__).parent / "lib"),
    "link": ["torch", "torch_cpu", "c10"],
}))
"""


def provide(
    program: Path, upstream: Path, libraries: Mapping[str, Mapping[str, Sequence[str]]], files: Sequence[str]
) -> None:
    """Compile what these test files load, once for each environment, and put it among its torch's libraries.

    Raises:
        FactoryError: there is no compiler, or it fails.
    """
    wanted = {name: row["sources"] for name, row in libraries.items() if not set(files).isdisjoint(row["files"])}
    if not wanted:
        return
    done = children.run([str(program), "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise FactoryError("The installed torch cannot be imported: " + done.stdout[-400:])
    torch = json.loads(done.stdout.splitlines()[-1])
    for name, sources in wanted.items():
        place = Path(torch["libraries"]) / name
        if not place.exists():
            with step(f"Compiling {name}, which tests load"), cache.work_folder(f"tests-{name}") as work:
                _compile(torch, upstream, [upstream / source for source in sources], work / name)
                shutil.move(str(work / name), str(place))


def _compile(torch: Dict[str, object], upstream: Path, sources: List[Path], output: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        raise FactoryError(
            "g++ is missing: some of upstream's tests load libraries that are compiled from their sources."
        )
    # The sources include each other as test/….
    (output.parent / "test").symlink_to(upstream)
    includes = [str(output.parent), *map(str, torch["includes"])]  # type: ignore[call-overload]
    command = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={torch['abi']}"]
    command += [f"-I{folder}" for folder in includes] + [str(source) for source in sources] + ["-o", str(output)]
    # Python loads torch's libraries for itself alone, so these must name what they need.
    command += [f"-L{torch['libraries']}", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed"]
    command += [f"-l{name}" for name in torch["link"]]  # type: ignore[attr-defined]
    done = children.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "error" in line or "/ld: " in line]
        raise FactoryError(f"{output.name} does not compile: " + "\n    ".join(errors[:4]))
